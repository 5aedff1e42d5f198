// The cube unit: LoadData to L0A and L0B, Mmad into L0C, Fixpipe out of it.
//
// Matrices lie in fractals of 16 rows and 32 bytes (c0 = 32 / sizeof(T) elements): L0A holds A in Zz order
// (fractals by rows, elements by rows), on dav-3510 in Nz order (fractals by columns), L0B holds B in Zn
// order (fractals by rows, elements by columns), L0C holds C in Nz order (fractals of 16 x 16 by columns,
// elements by rows).
#ifndef ASCENDC_HOST_BASIC_API_CUBE_H
#define ASCENDC_HOST_BASIC_API_CUBE_H

#include "ascendc_host/basic_api/cast.h"
#include "ascendc_host/basic_api/copy.h"

namespace AscendC {

struct LoadData2DParams {
    LoadData2DParams() = default;
    LoadData2DParams(uint16_t start, uint8_t repeats, uint16_t stride, uint8_t id, uint16_t gap,
                     bool transpose, uint8_t mode)
        : startIndex(start),
          dstGap(gap),
          srcStride(stride),
          ifTranspose(transpose),
          repeatTimes(repeats),
          sid(id),
          addrMode(mode) {}
    uint16_t startIndex = 0;
    uint16_t dstGap = 0;
    uint16_t srcStride = 0;
    bool ifTranspose = false;
    uint8_t repeatTimes = 0;
    uint8_t sid = 0;
    uint8_t addrMode = 0;
};
using LoadData2dParams = LoadData2DParams;

struct LoadData2dTransposeParams {
    LoadData2dTransposeParams() = default;
    LoadData2dTransposeParams(uint16_t start, uint8_t repeats, uint16_t stride, uint16_t gap,
                              uint16_t fractal_gap, uint8_t mode = 0)
        : startIndex(start),
          repeatTimes(repeats),
          srcStride(stride),
          dstGap(gap),
          dstFracGap(fractal_gap),
          addrMode(mode) {}
    uint16_t startIndex = 0;
    uint8_t repeatTimes = 0;
    uint16_t srcStride = 0;
    uint16_t dstGap = 0;
    uint16_t dstFracGap = 0;
    uint8_t addrMode = 0;
};

struct MmadParams {
    MmadParams() = default;
    MmadParams(uint16_t m_in, uint16_t n_in, uint16_t k_in, bool bias, int32_t offset, bool sparse,
               bool winograd_a, bool winograd_b)
        : m(m_in),
          n(n_in),
          k(k_in),
          isBias(bias),
          fmOffset(offset),
          enSsparse(sparse),
          enWinogradA(winograd_a),
          enWinogradB(winograd_b) {}
    MmadParams(uint16_t m_in, uint16_t n_in, uint16_t k_in, uint8_t unit_flag, bool from_bias, bool zero)
        : m(m_in), n(n_in), k(k_in), unitFlag(unit_flag), cmatrixSource(from_bias), cmatrixInitVal(zero) {}
    uint16_t m = 0;
    uint16_t n = 0;
    uint16_t k = 0;
    bool isBias = false;
    int32_t fmOffset = 0;
    bool enSsparse = false;
    bool enWinogradA = false;
    bool enWinogradB = false;
    uint8_t unitFlag = 0;
    bool kDirectionAlign = false;
    bool cmatrixSource = false;
    bool cmatrixInitVal = true;
#if __NPU_ARCH__ == 3510
    bool disableGemv = false;
#endif
};

enum class CO2Layout : uint8_t { NZ = 0, ROW_MAJOR, COLUMN_MAJOR };
struct FixpipeConfig {
    CO2Layout format;
    bool isToUB = false;
};
constexpr FixpipeConfig CFG_NZ = {CO2Layout::NZ};
constexpr FixpipeConfig CFG_ROW_MAJOR = {CO2Layout::ROW_MAJOR};
constexpr FixpipeConfig CFG_COLUMN_MAJOR = {CO2Layout::COLUMN_MAJOR};

struct FixpipeParamsV220 {
    FixpipeParamsV220() = default;
    FixpipeParamsV220(uint16_t n, uint16_t m, uint16_t source, uint32_t destination, bool relu,
                      QuantMode_t quant = NoQuant, int64_t scalar = 0, uint16_t matrices = 1,
                      uint16_t source_matrix = 0, uint16_t destination_matrix = 0, uint8_t unit_flag = 0,
                      bool split = false)
        : nSize(n),
          mSize(m),
          srcStride(source),
          dstStride(destination),
          quantPre(quant),
          deqScalar(static_cast<uint64_t>(scalar)),
          ndNum(matrices),
          srcNdStride(source_matrix),
          dstNdStride(destination_matrix),
          reluEn(relu),
          unitFlag(unit_flag),
          isChannelSplit(split) {}
    uint16_t nSize = 0;
    uint16_t mSize = 0;
    uint16_t srcStride = 0;  // from one column of fractals to the next, in rows of 16 elements
    uint32_t dstStride = 0;  // elements of a row, or for NZ from one column to the next in units of 32 bytes
    QuantMode_t quantPre = QuantMode_t::NoQuant;
    uint64_t deqScalar = 0;
    uint16_t ndNum = 1;
    uint16_t srcNdStride = 0;  // in fractals of 1024 bytes
    uint16_t dstNdStride = 0;  // in elements
    bool reluEn = false;
    uint8_t unitFlag = 0;
    bool isChannelSplit = false;
};

// The same as earlier versions of the API say it: in runs of columns of fractals and the gaps between them.
struct QuantParams {
    QuantParams() = default;
    QuantParams(QuantMode_t quant) : quantPre(quant) {}
    QuantParams(QuantMode_t quant, uint64_t scalar) : quantPre(quant), deqScalar(scalar) {}
    QuantMode_t quantPre = QuantMode_t::NoQuant;
    uint64_t deqScalar = 0;
};
struct Nz2NdParams {
    Nz2NdParams() = default;
    Nz2NdParams(bool enabled, uint16_t matrices, uint16_t source, uint16_t destination, uint16_t columns)
        : nz2ndEn(enabled),
          ndNum(matrices),
          srcNdStride(source),
          dstNdStride(destination),
          originalNSize(columns) {}
    bool nz2ndEn = false;
    uint16_t ndNum = 1;
    uint16_t srcNdStride = 0;
    uint16_t dstNdStride = 0;
    uint16_t originalNSize = 0;
};
template <typename T = int32_t>
struct FixpipeParams {
    FixpipeParams() = default;
    FixpipeParams(uint16_t count, uint16_t length, uint16_t source, uint32_t destination)
        : cburstNum(count), burstLen(length), dstStride(destination), srcStride(source) {}
    uint16_t cburstNum = 1;  // columns of fractals
    uint16_t burstLen = 1;   // of each: rows of 16 elements, in units of 32 bytes
    uint32_t dstStride = 0;  // the gap after each in units of 32 bytes, or elements of a row
    uint16_t srcStride = 0;  // the gap after each, in fractals
    QuantParams quantParams;
    bool reluEn = false;
    Nz2NdParams nz2ndParams;
    uint8_t unitFlag = 0;
};

struct DataCopyCO12DstParams {
    DataCopyCO12DstParams() = default;
    DataCopyCO12DstParams(uint16_t n, uint16_t m, uint32_t destination, uint16_t source, QuantMode_t quant,
                          uint8_t relu, bool split, bool nd)
        : nSize(n),
          mSize(m),
          dstStride(destination),
          srcStride(source),
          quantPre(quant),
          reluPre(relu),
          channelSplit(split),
          nz2ndEn(nd) {}
    uint8_t sid = 0;
    uint16_t nSize = 0;
    uint16_t mSize = 0;
    uint32_t dstStride = 0;
    uint16_t srcStride = 0;
    uint8_t unitFlag = 0;
    uint8_t clipReluPre = 0;
    uint8_t eltWiseOp = 0;
    QuantMode_t quantPre = QuantMode_t::NoQuant;
    uint8_t reluPre = 0;
    bool channelSplit = false;
    bool nz2ndEn = false;
};

template <typename T>
struct InitConstValueParams {
    InitConstValueParams() = default;
    InitConstValueParams(uint16_t repeats, uint16_t blocks, uint16_t gap, T value)
        : repeatTimes(repeats), blockNum(blocks), dstGap(gap), initValue(value) {}
    InitConstValueParams(uint16_t repeats, T value) : repeatTimes(repeats), initValue(value) {}
    uint16_t repeatTimes = 0;
    uint16_t blockNum = 0;
    uint16_t dstGap = 0;
    T initValue = T(0);
};

namespace detail {

constexpr uint64_t fractal_bytes = 512;

template <typename T>
void require_position(const LocalTensor<T>& tensor, ascendc_host::Memory memory, const char* api,
                      const char* name, const Where& where) {
    if (memory_of(tensor.position()) == memory) return;
    tensor.use_bytes(0, api, name, where);  // that of no memory at all says so
    ascendc_host::fail(
        ascendc_host::current(), where,
        ascendc_host::format("%s: %s lies in %s; it must lie in the %s", api, name,
                             position_name(tensor.position()), ascendc_host::memory_name(memory)));
}
template <typename T>
void require_l0(const LocalTensor<T>& tensor, const char* api, const Where& where) {
    const auto memory = memory_of(tensor.position());
    if (memory == ascendc_host::Memory::l0a || memory == ascendc_host::Memory::l0b) return;
    tensor.use_bytes(0, api, "dst", where);
    ascendc_host::fail(ascendc_host::current(), where,
                       ascendc_host::format("%s: dst lies in %s; it must lie in A2 or B2", api,
                                            position_name(tensor.position())));
}
// One fractal, as it is or with rows and columns exchanged.
template <typename T>
void copy_fractal(uint8_t* to, const uint8_t* from, bool transpose, const Where& where) {
    if (!transpose) {
        std::memcpy(to, from, fractal_bytes);
    } else if constexpr (sizeof(T) == 2) {
        uint16_t values[256];
        std::memcpy(values, from, fractal_bytes);
        for (int i = 0; i < 256; ++i) reinterpret_cast<uint16_t*>(to)[i % 16 * 16 + i / 16] = values[i];
    } else {
        ascendc_host::fail(ascendc_host::current(), where,
                           "LoadData: ifTranspose is for elements of 2 bytes; use LoadDataWithTranspose");
    }
}
template <typename T, typename Source>
void load_2d(const LocalTensor<T>& dst, const LoadData2DParams& params, const Where& where,
             const Source& source) {
    for (uint32_t i = 0; i < params.repeatTimes; ++i) {
        const int64_t index =
            int64_t(params.startIndex) + (params.addrMode == 0 ? 1 : -1) * int64_t(i) * params.srcStride;
        if (index < 0)
            ascendc_host::fail(ascendc_host::current(), where, "LoadData: the source index falls below 0");
        const uint64_t at = uint64_t(i) * (1 + params.dstGap) * fractal_bytes;
        uint8_t* to = dst.use_bytes(at + fractal_bytes, "LoadData", "dst", where) + at;
        copy_fractal<T>(to, source(uint64_t(index) * fractal_bytes), params.ifTranspose, where);
    }
}

}  // namespace detail

template <typename T>
void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2DParams& params,
              Where where = Where()) {
    static_assert(detail::cube_has_packed<T>, "LoadData: dav-3510 does not have int4b_t");
    ascendc_host::enter(where);
    detail::require_l0(dst, "LoadData", where);
    detail::require_position(src, ascendc_host::Memory::l1, "LoadData", "src", where);
    detail::check_aligned(dst.use_bytes(0, "LoadData", "dst", where), 512, "LoadData", "dst", where);
    const detail::OnPipe pipe(detail::Pipe::mte1);
    detail::load_2d(dst, params, where, [&](uint64_t at) {
        return src.use_bytes(at + detail::fractal_bytes, "LoadData", "src", where) + at;
    });
}
template <typename T>
void LoadData(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const LoadData2DParams& params,
              Where where = Where()) {
    static_assert(!ascendc_host::is_packed<T>, "LoadData: int4b_t comes to L0A and L0B from L1");
    ascendc_host::enter(where);
    const detail::OnPipe pipe(detail::Pipe::mte2);
    detail::load_2d(dst, params, where, [&](uint64_t at) {
        return src.use_bytes(at, detail::fractal_bytes, "LoadData", "src", where);
    });
}

// Squares of fractals with rows and columns exchanged: one fractal of 2-byte elements, two of 1 byte or four
// of half a byte below each other, two of 4 bytes next to each other.
template <typename T>
void LoadDataWithTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                           const LoadData2dTransposeParams& params, Where where = Where()) {
    static_assert(detail::cube_has_packed<T>, "LoadDataWithTranspose: dav-3510 does not have int4b_t");
    ascendc_host::enter(where);
    detail::require_l0(dst, "LoadDataWithTranspose", where);
    if (ascendc_host::is_packed<T>)
        detail::require_position(dst, ascendc_host::Memory::l0b, "LoadDataWithTranspose", "dst of int4b_t",
                                 where);
    detail::require_position(src, ascendc_host::Memory::l1, "LoadDataWithTranspose", "src", where);
    constexpr uint32_t c0 = ascendc_host::elements_of<T>(32);
    constexpr uint32_t fractals = sizeof(T) == 4 ? 2 : c0 / 16;
    constexpr uint32_t size = std::max(c0, 16u);  // of the square
    const detail::OnPipe pipe(detail::Pipe::mte1);
    for (uint32_t i = 0; i < params.repeatTimes; ++i) {
        const int64_t index =
            int64_t(params.startIndex) + (params.addrMode == 0 ? 1 : -1) * int64_t(i) * params.srcStride;
        if (index < 0)
            ascendc_host::fail(ascendc_host::current(), where,
                               "LoadDataWithTranspose: the source index falls below 0");
        const uint64_t from = uint64_t(index) * fractals * 16 * c0;
        const uint8_t* square = src.use_bytes(ascendc_host::bytes_of<T>(from + fractals * 16 * c0),
                                              "LoadDataWithTranspose", "src", where) +
                                ascendc_host::bytes_of<T>(from);
        for (uint32_t row = 0; row < size; ++row) {
            for (uint32_t column = 0; column < size; ++column) {
                // Element [row, column] of the result is [column, row] of the square.
                const auto value = ascendc_host::element<T>(
                    square, (sizeof(T) == 4 ? row / c0 * 16 * c0 + row % c0 : row) + column * c0);
                const uint32_t fractal = sizeof(T) == 4 ? column / c0 : row / 16;
                const uint64_t at =
                    (uint64_t(i) * (1 + params.dstGap) + uint64_t(fractal) * (1 + params.dstFracGap)) * 16 *
                        c0 +
                    (row % 16) * c0 + column % c0;
                ascendc_host::set_element(
                    dst.use_bytes(ascendc_host::bytes_of<T>(at + 1), "LoadDataWithTranspose", "dst", where),
                    at, value);
            }
        }
    }
}

template <typename T>
void Fill(const LocalTensor<T>& dst, const InitConstValueParams<T>& params, Where where = Where()) {
    ascendc_host::require_whole_bytes<T>();
    ascendc_host::enter(where);
    // A block is 512 bytes in L0A and L0B and 32 bytes in L1; without blockNum a repeat is one block.
    const uint64_t unit = memory_of(dst.position()) == ascendc_host::Memory::l1 ? 32 : 512;
    const uint64_t blocks = params.blockNum == 0 ? 1 : params.blockNum;
    const detail::OnPipe pipe(unit == 32 ? detail::Pipe::mte2 : detail::Pipe::mte1);
    for (uint32_t repeat = 0; repeat < params.repeatTimes; ++repeat) {
        const uint64_t at = repeat * (blocks + params.dstGap) * unit;
        uint8_t* to = dst.use_bytes(at + blocks * unit, "Fill", "dst", where) + at;
        std::fill_n(reinterpret_cast<T*>(to), blocks * unit / sizeof(T), params.initValue);
    }
}
template <typename T>
void InitConstValue(const LocalTensor<T>& dst, const InitConstValueParams<T>& params, Where where = Where()) {
    Fill(dst, params, where);
}

// --- multiplication
// --------------------------------------------------------------------------------------------------

namespace detail {

// `count` elements from one on, in the type they are multiplied in.
template <typename S, typename W>
void unpack_run(const uint8_t* from, uint64_t first, uint64_t count, W* to) {
    if constexpr (ascendc_host::is_packed<S>) {
        ascendc_host::unpack(from, first, count, to);
    } else if constexpr (ascendc_host::is_float8<S>) {
        const auto& values = ascendc_host::float8_values<S>();
        for (uint64_t i = 0; i < count; ++i) to[i] = values[from[first + i]];
    } else {
        const S* run = reinterpret_cast<const S*>(from) + first;
        if constexpr (std::is_same<W, float>::value && !std::is_same<Wide<S>, S>::value) {
            ascendc_host::widen(run, to, count);
        } else {
            for (uint64_t i = 0; i < count; ++i) to[i] = static_cast<W>(run[i]);
        }
    }
}
// Which fractal of L0A has row `row` and column `column` of fractals, of so many rows and columns of them.
constexpr uint64_t fractal_of_a(uint32_t row, uint32_t column, uint32_t rows, uint32_t columns) {
    return __NPU_ARCH__ == 3510 ? uint64_t(column) * rows + row : uint64_t(row) * columns + column;
}
// A of L0A and B of L0B as plain matrices by rows.
template <typename S, typename W>
void unpack_a(const LocalTensor<S>& fm, uint32_t m, uint32_t k, uint32_t columns, bool is_vector,
              std::vector<W>& a, const Where& where) {
    constexpr uint32_t c0 = ascendc_host::elements_of<S>(32);
    a.resize(size_t(m) * k);
    // A single row is a vector: its elements follow one another.
    if (is_vector) {
        unpack_run<S>(fm.use_bytes(ascendc_host::bytes_of<S>(k), "Mmad", "fm", where), 0, k, a.data());
        return;
    }
    const uint32_t rows = (m + 15) / 16;
    const uint8_t* from = fm.use_bytes(uint64_t(rows) * columns * 512, "Mmad", "fm", where);
    for (uint32_t i = 0; i < m; ++i) {
        for (uint32_t first = 0; first < k; first += c0) {
            const uint64_t run = (fractal_of_a(i / 16, first / c0, rows, columns) * 16 + i % 16) * c0;
            unpack_run<S>(from, run, std::min(c0, k - first), a.data() + size_t(i) * k + first);
        }
    }
}
template <typename S, typename W>
void unpack_b(const LocalTensor<S>& filter, uint32_t k, uint32_t n, std::vector<W>& b, const Where& where) {
    constexpr uint32_t c0 = ascendc_host::elements_of<S>(32);
    const uint32_t columns = (n + 15) / 16;
    b.resize(size_t(k) * n);
    const uint8_t* from =
        filter.use_bytes(uint64_t((k + c0 - 1) / c0) * columns * 512, "Mmad", "filter", where);
    W fractal[16 * c0];
    for (uint32_t first = 0; first < k; first += c0) {
        const uint32_t count = std::min(c0, k - first);
        for (uint32_t left = 0; left < n; left += 16) {
            unpack_run<S>(from, (uint64_t(first / c0) * columns + left / 16) * 16 * c0, 16 * c0, fractal);
            const uint32_t wide = std::min(16u, n - left);
            for (uint32_t i = 0; i < count; ++i) {
                for (uint32_t j = 0; j < wide; ++j) b[size_t(first + i) * n + left + j] = fractal[j * c0 + i];
            }
        }
    }
}

// Whether the cube core multiplies these types as 8-bit floats; other pairs have rules of their own.
template <typename A, typename B>
constexpr bool multiplies_float8() {
    constexpr bool either = ascendc_host::is_float8<A> || ascendc_host::is_float8<B>;
    static_assert(!either || (ascendc_host::is_float8<A> && ascendc_host::is_float8<B>),
                  "an 8-bit float is multiplied with an 8-bit float");
    static_assert(ascendc_host::is_hifloat8<A> == ascendc_host::is_hifloat8<B>,
                  "hifloat8_t is multiplied with hifloat8_t");
    static_assert(!either || ascendc_host::npu_architecture == 3510,
                  "dav-2201 does not multiply 8-bit floats");
    return either;
}

// The type products are summed in.
template <typename S>
using Sum = std::conditional_t<std::is_integral<S>::value || ascendc_host::is_packed<S>, int32_t, float>;

// `unpack(b)` has the elements of filter in order.
template <typename T, typename U, typename S, typename Unpack>
void mmad(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<S>& filter,
          const LocalTensor<T>* bias, const MmadParams& params, const Where& where, const Unpack& unpack) {
    static_assert(ascendc_host::is_packed<U> == ascendc_host::is_packed<S> &&
                      (!ascendc_host::is_packed<U> || std::is_same<T, int32_t>::value),
                  "Mmad: int4b_t is multiplied with int4b_t, to int32_t");
    static_assert(cube_has_packed<U>, "Mmad: dav-3510 does not have int4b_t");
    static_assert(
        ascendc_host::is_packed<U> || multiplies_float8<U, S>() ||
            (std::is_same<U, S>::value && std::is_same<T, Sum<U>>::value &&
             is_one_of<U, int8_t, half, bfloat16_t, float>),
        "Mmad: fm and filter are both int8_t and dst int32_t, or both half, bfloat16_t or float and "
        "dst float");
    static_assert(!multiplies_float8<U, S>() || std::is_same<T, float>::value,
                  "Mmad: the product of 8-bit floats is float");
    ascendc_host::enter(where);
    require_position(dst, ascendc_host::Memory::l0c, "Mmad", "dst", where);
    require_position(fm, ascendc_host::Memory::l0a, "Mmad", "fm", where);
    require_position(filter, ascendc_host::Memory::l0b, "Mmad", "filter", where);
    const uint32_t m = params.m, n = params.n, k = params.k;
    if (m == 0 || n == 0 || k == 0) return;
    constexpr uint32_t c0 = ascendc_host::elements_of<U>(32);
    uint32_t columns = (k + c0 - 1) / c0;
    if (params.kDirectionAlign && sizeof(U) == 4) columns = (k + 15) / 16 * 2;
    const uint32_t rows = (m + 15) / 16 * 16;
    const OnPipe pipe(Pipe::cube);
    // With a unit flag the two wait for each other by fractals, without a flag of the kernel.
    if (params.unitFlag != 0) ascendc_host::wait_for_pipe(Pipe::cube, Pipe::fixpipe);
    T* results = dst.use(uint64_t((n + 15) / 16) * 16 * rows, "Mmad", "dst", where);
    using W = Sum<U>;
    static thread_local std::vector<W> a, b, c;
#if __NPU_ARCH__ == 3510
    const bool is_vector = m == 1 && !params.disableGemv;
#else
    const bool is_vector = m == 1;
#endif
    unpack_a(fm, m, k, columns, is_vector, a, where);
    unpack(b);
    c.resize(size_t(m) * n);
    // Without a tensor the bias table is read from its start.
    LocalTensor<T> table;
    if (bias == nullptr && params.cmatrixSource && !params.cmatrixInitVal && !params.isBias) {
        table = LocalTensor<T>(TPosition::C2, 0, n, where);
        bias = &table;
    }
    const T* biases = bias == nullptr ? nullptr : bias->use(n, "Mmad", "bias", where);
    const bool keep = params.isBias || (!params.cmatrixInitVal && !params.cmatrixSource);
    // A run of 16 columns of a row lies together in L0C.
    const auto by_runs = [&](const auto& each) {
        for (uint32_t i = 0; i < m; ++i) {
            for (uint32_t j = 0; j < n; j += 16)
                each(c.data() + size_t(i) * n + j, results + (uint64_t(j / 16) * rows + i) * 16, j,
                     std::min(16u, n - j));
        }
    };
    if (keep && biases == nullptr)
        dst.use(uint64_t((n + 15) / 16) * 16 * rows, "Mmad", "what dst has", where);
    by_runs([&](W* to, const T* from, uint32_t column, uint32_t count) {
        if (biases != nullptr) from = biases + column;
        for (uint32_t j = 0; j < count; ++j)
            to[j] = biases != nullptr || keep ? static_cast<W>(from[j]) : W(0);
    });
    ascendc_host::multiply_add(a.data(), b.data(), c.data(), m, n, k);
    by_runs([](const W* from, T* to, uint32_t, uint32_t count) {
        for (uint32_t j = 0; j < count; ++j) to[j] = static_cast<T>(from[j]);
    });
}
template <typename T, typename U, typename S>
void mmad(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<S>& filter,
          const LocalTensor<T>* bias, const MmadParams& params, const Where& where) {
    mmad(dst, fm, filter, bias, params, where,
         [&](std::vector<Sum<U>>& b) { unpack_b(filter, params.k, params.n, b, where); });
}

}  // namespace detail

// dst[m, n] = fm[m, k] * filter[k, n], added to what is in dst, or to a bias of n elements, as the parameters
// say.
template <typename T, typename U, typename S>
void Mmad(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<S>& filter,
          const MmadParams& params, Where where = Where()) {
    detail::mmad(dst, fm, filter, static_cast<const LocalTensor<T>*>(nullptr), params, where);
}
template <typename T, typename U, typename S, typename V>
void Mmad(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<S>& filter,
          const LocalTensor<V>& bias, const MmadParams& params, Where where = Where()) {
    static_assert(!ascendc_host::is_packed<U>, "Mmad: with a bias not for int4b_t");
    static_assert(std::is_same<T, V>::value, "Mmad: bias has the elements of dst");
    detail::mmad(dst, fm, filter, &bias, params, where);
}
enum class HF32Mode { ENABLE, DISABLE };
enum class HF32TransMode { NEAREST_ZERO, NEAREST_EVEN };
inline void SetHF32Mode(bool) {}
inline void SetHF32Mode(HF32Mode) {}
inline void SetHF32TransMode(bool) {}
inline void SetHF32TransMode(HF32TransMode) {}
inline void SetMMLayoutTransform(bool) {}
inline void SetMMRowMajor() {}
inline void SetMMColumnMajor() {}

// --- out of L0C
// ------------------------------------------------------------------------------------------------------

namespace detail {

// Scales of quantization are floats in the low half of a 64-bit word, of whose mantissa ten bits count.
inline float scale_of(uint64_t word) {
    const uint32_t bits = static_cast<uint32_t>(word) & 0xffffe000u;
    float scale;
    std::memcpy(&scale, &bits, sizeof scale);
    return scale;
}
// Whether a mode changes the type alone.
constexpr bool is_cast(QuantMode_t mode) { return mode == NoQuant || mode == F322F16 || mode == F322BF16; }
// Whether a mode has a scale for each column.
constexpr bool is_by_column(QuantMode_t mode) {
    return mode == VDEQF16 || mode == VQF322B8_PRE || mode == VREQ8 || mode == VQS322BF16_PRE ||
           mode == VQF322F32_PRE || mode == VQF322F16_PRE || mode == VQF322BF16_PRE;
}
// Whether the architecture has it.
constexpr bool is_known(QuantMode_t mode) { return __NPU_ARCH__ == 3510 || mode <= VREQ8; }
// The scales of columns where no tensor has them: those of SetFixPipeConfig.
inline const uint64_t* register_scales(uint32_t columns, const Where& where) {
    const auto& block = ascendc_host::current();
    if (block.fixpipe.scales_bytes < columns * sizeof(uint64_t))
        ascendc_host::fail(block, where,
                           "a scale for each column is missing; pass Fixpipe a cbufWorkspace, or call "
                           "SetFixPipeConfig first");
    return reinterpret_cast<const uint64_t*>(block.fixpipe.scales);
}
// Raises where a mode of dav-2201 makes other elements than T of U. dav-3510 has more modes.
template <typename T, typename U>
void check_quant_mode(QuantMode_t mode, const Where& where) {
    constexpr bool is_sum = std::is_same<U, float>::value || std::is_same<U, int32_t>::value;
    static_assert(is_sum, "Fixpipe: src has elements of float or int32_t");
    constexpr bool of_float = std::is_same<U, float>::value;
    constexpr bool is_byte = is_one_of<T, int8_t, uint8_t>;
    struct Pair {
        QuantMode_t mode;
        bool fits;
        const char* makes;
    };
    constexpr Pair pairs[] = {
        {NoQuant, std::is_same<T, U>::value, "the same elements"},
        {F322F16, of_float && std::is_same<T, half>::value, "half of float"},
        {F322BF16, of_float && std::is_same<T, bfloat16_t>::value, "bfloat16_t of float"},
        {DEQF16, !of_float && std::is_same<T, half>::value, "half of int32_t"},
        {VDEQF16, !of_float && std::is_same<T, half>::value, "half of int32_t"},
        {QF322B8_PRE, of_float && is_byte, "int8_t or uint8_t of float"},
        {VQF322B8_PRE, of_float && is_byte, "int8_t or uint8_t of float"},
        {REQ8, !of_float && is_byte, "int8_t or uint8_t of int32_t"},
        {VREQ8, !of_float && is_byte, "int8_t or uint8_t of int32_t"}};
    for (const Pair& pair : pairs) {
        if (pair.mode != mode || pair.fits) continue;
        const char* wanted = "none";
        for (const Pair& other : pairs) {
            if (!other.fits) continue;
            constexpr const char* names[] = {"NoQuant",     "F322F16",      "F322BF16", "DEQF16", "VDEQF16",
                                             "QF322B8_PRE", "VQF322B8_PRE", "REQ8",     "VREQ8"};
            wanted = names[&other - pairs];
            break;
        }
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("Fixpipe: quantPre %d makes %s, and dst and src have others; the mode of "
                                 "these is %s",
                                 static_cast<int>(mode), pair.makes, wanted));
    }
}
// The word of a scale says whether bytes are signed (bit 46), and whether integers are shifted first (bit
// 36).
template <typename T>
T quantized_byte(float scaled, uint64_t word, bool shifts) {
    if (shifts && (word >> 36 & 1) != 0)
        ascendc_host::fail(
            "Fixpipe: bit 36 of a scale shifts what it scales; the host does not have that, clear the bit");
    const int64_t offset = static_cast<int64_t>(word << 18) >> 55;
    const float value = std::clamp(std::nearbyint(scaled), -256.0f, 255.0f) + static_cast<float>(offset);
    if ((word >> 46 & 1) != 0) return static_cast<T>(saturate<int8_t>(value));
    return static_cast<T>(saturate<uint8_t>(value));
}
template <typename T, typename U>
T fix_element(U value, bool relu, QuantMode_t mode, const uint64_t* scales, uint64_t scalar,
              uint32_t column) {
    if (relu && value < U(0)) value = U(0);
    if (is_cast(mode)) return convert<T>(value, RoundMode::CAST_NONE);
    const bool by_column = is_by_column(mode);
    const float scale = scale_of(by_column && scales != nullptr ? scales[column] : scalar);
    const float scaled = static_cast<float>(value) * scale;
    if constexpr (sizeof(T) == 1) {
        const uint64_t word = by_column && scales != nullptr ? scales[column] : scalar;
        return quantized_byte<T>(scaled, word, mode == REQ8 || mode == VREQ8);
    } else {
        return convert<T>(scaled, RoundMode::CAST_NONE);
    }
}
// `store(offset in elements, values, count)` puts a run of a row.
template <typename T, typename U, typename Store>
void fixpipe(const LocalTensor<U>& src, const FixpipeParamsV220& p, CO2Layout layout, const uint64_t* scales,
             const Where& where, const Store& store) {
    ascendc_host::require_whole_bytes<T>();
    const OnPipe pipe(Pipe::fixpipe);
    if (p.unitFlag != 0) ascendc_host::wait_for_pipe(Pipe::fixpipe, Pipe::cube);
    require_position(src, ascendc_host::Memory::l0c, "Fixpipe", "src", where);
    if (!is_known(p.quantPre)) {
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("Fixpipe: quantPre %d is dav-3510's; this architecture has NoQuant, "
                                 "F322F16, F322BF16, (V)DEQF16, (V)QF322B8_PRE and (V)REQ8",
                                 static_cast<int>(p.quantPre)));
    }
    if (__NPU_ARCH__ != 3510) check_quant_mode<T, U>(p.quantPre, where);
    if (is_by_column(p.quantPre) && scales == nullptr) scales = register_scales(p.nSize, where);
    const uint32_t width = layout == CO2Layout::NZ && sizeof(T) == 1     ? 32
                           : layout == CO2Layout::NZ && p.isChannelSplit ? 8
                                                                         : 16;
    T run[32];
    for (uint32_t matrix = 0; matrix < (layout == CO2Layout::NZ ? 1u : p.ndNum); ++matrix) {
        for (uint32_t i = 0; i < p.mSize; ++i) {
            for (uint32_t first = 0; first < p.nSize; first += width) {
                const uint32_t count = std::min<uint32_t>(width, p.nSize - first);
                // In L0C 16 columns of a row lie together.
                for (uint32_t j = 0; j < count; j += 16) {
                    const uint32_t column = first + j;
                    const uint32_t together = std::min(16u, count - j);
                    const uint64_t at = uint64_t(matrix) * p.srcNdStride * 256 +
                                        (uint64_t(column / 16) * p.srcStride + i) * 16 + column % 16;
                    const U* from = src.use(at + together, "Fixpipe", "src", where) + at;
                    if (is_cast(p.quantPre) && !p.reluEn) {
                        convert_run(from, run + j, together, RoundMode::CAST_NONE);
                    } else {
                        for (uint32_t l = 0; l < together; ++l)
                            run[j + l] = fix_element<T>(from[l], p.reluEn, p.quantPre, scales, p.deqScalar,
                                                        column + l);
                    }
                }
                // NZ: columns of `width` elements, dstStride units of 32 bytes apart.
                const uint64_t to =
                    layout == CO2Layout::NZ
                        ? uint64_t(first / width) * p.dstStride * 32 / sizeof(T) + uint64_t(i) * width
                        : uint64_t(matrix) * p.dstNdStride + uint64_t(i) * p.dstStride + first;
                store(to, run, count);
            }
        }
    }
}
template <typename T, typename U>
void fixpipe_out(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsV220& p,
                 CO2Layout layout, const uint64_t* scales, const Where& where) {
    const auto& block = ascendc_host::enter(where);
    fixpipe<T>(src, p, layout, scales, where, [&](uint64_t at, const T* values, uint32_t count) {
        detail::store<T>(block, reinterpret_cast<const uint8_t*>(values),
                         dst.use_bytes(at * sizeof(T), count * sizeof(T), "Fixpipe", "dst", where),
                         count * sizeof(T));
    });
}
template <typename T, typename U>
void fixpipe_local(const LocalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsV220& p,
                   CO2Layout layout, const uint64_t* scales, const Where& where) {
    ascendc_host::enter(where);
    fixpipe<T>(src, p, layout, scales, where, [&](uint64_t at, const T* values, uint32_t count) {
        std::copy_n(values, count, dst.use(at + count, "Fixpipe", "dst", where) + at);
    });
}
// What earlier parameters say, with the sizes and distances that those of today have.
template <typename T, typename S>
FixpipeParamsV220 fixpipe_params(const FixpipeParams<S>& p, const Where& where) {
    const Nz2NdParams& nd = p.nz2ndParams;
    if (nd.nz2ndEn && nd.originalNSize == 0) {
        ascendc_host::fail(ascendc_host::current(), where,
                           "Fixpipe: nz2ndParams.originalNSize is 0; it is the number of columns");
    }
    constexpr uint32_t row = 16 * sizeof(float);  // of a fractal in L0C
    const uint32_t rows = uint32_t(p.burstLen) * 32 / row;
    FixpipeParamsV220 to;
    to.nSize = nd.nz2ndEn ? nd.originalNSize : static_cast<uint16_t>(p.cburstNum * 16);
    to.mSize = static_cast<uint16_t>(rows);
    to.srcStride = static_cast<uint16_t>((rows + 15) / 16 * 16 + p.srcStride * 16);
    to.dstStride = nd.nz2ndEn ? p.dstStride : p.dstStride + uint32_t(p.burstLen * sizeof(T) / sizeof(float));
    to.quantPre = p.quantParams.quantPre;
    to.deqScalar = p.quantParams.deqScalar;
    to.ndNum = nd.ndNum;
    to.srcNdStride = nd.srcNdStride;
    to.dstNdStride = nd.dstNdStride;
    to.reluEn = p.reluEn;
    to.unitFlag = p.unitFlag;
    return to;
}
template <typename S>
CO2Layout layout_of(const FixpipeParams<S>& p) {
    return p.nz2ndParams.nz2ndEn ? CO2Layout::ROW_MAJOR : CO2Layout::NZ;
}
inline FixpipeParamsV220 fixpipe_params(const DataCopyCO12DstParams& p) {
    const auto& nd = ascendc_host::current().fixpipe;
    return {p.nSize,
            p.mSize,
            p.srcStride,
            p.dstStride,
            p.reluPre != 0,
            p.quantPre,
            static_cast<int64_t>(nd.scale),
            nd.matrices,
            nd.source,
            nd.destination,
            p.unitFlag,
            p.channelSplit};
}

}  // namespace detail

// L0C to global memory or L1, by rows (the default) or in fractals, converted, quantized and with ReLU on the
// way.
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsV220& params,
             Where where = Where()) {
    detail::fixpipe_out(dst, src, params, config.format, nullptr, where);
}
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsV220& params,
             Where where = Where()) {
    detail::fixpipe_local(dst, src, params, config.format, nullptr, where);
}
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src,
             const LocalTensor<uint64_t>& cbufWorkspace, const FixpipeParamsV220& params,
             Where where = Where()) {
    detail::fixpipe_out(dst, src, params, config.format,
                        cbufWorkspace.use(params.nSize, "Fixpipe", "cbufWorkspace", where), where);
}
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const LocalTensor<uint64_t>& cbufWorkspace,
             const FixpipeParamsV220& params, Where where = Where()) {
    detail::fixpipe_local(dst, src, params, config.format,
                          cbufWorkspace.use(params.nSize, "Fixpipe", "cbufWorkspace", where), where);
}
template <typename T, typename U, typename S>
void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParams<S>& intriParams,
             Where where = Where()) {
    detail::fixpipe_out(dst, src, detail::fixpipe_params<T>(intriParams, where),
                        detail::layout_of(intriParams), nullptr, where);
}
template <typename T, typename U, typename S>
void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParams<S>& intriParams,
             Where where = Where()) {
    detail::fixpipe_local(dst, src, detail::fixpipe_params<T>(intriParams, where),
                          detail::layout_of(intriParams), nullptr, where);
}
// With a scale for each column.
template <typename T, typename U, typename S>
void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src,
             const LocalTensor<uint64_t>& cbufWorkspace, const FixpipeParams<S>& intriParams,
             Where where = Where()) {
    const auto params = detail::fixpipe_params<T>(intriParams, where);
    detail::fixpipe_out(dst, src, params, detail::layout_of(intriParams),
                        cbufWorkspace.use(params.nSize, "Fixpipe", "cbufWorkspace", where), where);
}
template <typename T, typename U, typename S>
void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const LocalTensor<uint64_t>& cbufWorkspace,
             const FixpipeParams<S>& intriParams, Where where = Where()) {
    const auto params = detail::fixpipe_params<T>(intriParams, where);
    detail::fixpipe_local(dst, src, params, detail::layout_of(intriParams),
                          cbufWorkspace.use(params.nSize, "Fixpipe", "cbufWorkspace", where), where);
}
// What a DataCopy with DataCopyCO12DstParams does not carry itself.
inline void SetFixpipeNz2ndFlag(uint16_t ndNum, uint16_t srcNdStride, uint16_t dstNdStride) {
    auto& nd = ascendc_host::current().fixpipe;
    nd.matrices = ndNum;
    nd.source = srcNdStride;
    nd.destination = dstNdStride;
}
inline void SetFixpipePreQuantFlag(uint64_t config) { ascendc_host::current().fixpipe.scale = config; }
// The scales of the columns, for the modes that have one for each. Unit flags order the cube and the fixpipe
// on the device; here they are in order.
template <typename T, bool setRelu = false>
void SetFixPipeConfig(const LocalTensor<T>& preData, bool = false, Where where = Where()) {
    static_assert(!setRelu, "SetFixPipeConfig: a ReLU with factors is not supported on the host");
    auto& fixpipe = ascendc_host::enter(where).fixpipe;
    fixpipe.scales = preData.use_bytes(0, "SetFixPipeConfig", "preData", where);
    fixpipe.scales_bytes = preData.rest();
}
// What a ReLU with factors would take is reserved: it is not read.
template <typename T>
void SetFixPipeConfig(const LocalTensor<T>& reluPre, const LocalTensor<T>& quantPre, bool isUnitFlag = false,
                      Where where = Where()) {
    static_assert(std::is_same<T, uint64_t>::value, "SetFixPipeConfig takes tensors of uint64_t");
    if (reluPre.GetSize() != 0)
        detail::require_position(reluPre, ascendc_host::Memory::fixpipe, "SetFixPipeConfig", "reluPre",
                                 where);
    detail::require_position(quantPre, ascendc_host::Memory::fixpipe, "SetFixPipeConfig", "quantPre", where);
    SetFixPipeConfig(quantPre, isUnitFlag, where);
}
template <typename T, typename U>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const DataCopyCO12DstParams& params,
              Where where = Where()) {
    detail::fixpipe_out(dst, src, detail::fixpipe_params(params),
                        params.nz2ndEn ? CO2Layout::ROW_MAJOR : CO2Layout::NZ, nullptr, where);
}
template <typename T, typename U>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const DataCopyCO12DstParams& params,
              Where where = Where()) {
    detail::fixpipe_local(dst, src, detail::fixpipe_params(params),
                          params.nz2ndEn ? CO2Layout::ROW_MAJOR : CO2Layout::NZ, nullptr, where);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_CUBE_H
