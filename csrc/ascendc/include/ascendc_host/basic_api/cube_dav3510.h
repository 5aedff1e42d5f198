// What the cube unit of dav-3510 takes: blocks of fractals by their place in a matrix, columns that become
// rows on the way in and out, and Fixpipe's parameters with distances in elements.
#ifndef ASCENDC_HOST_BASIC_API_CUBE_DAV3510_H
#define ASCENDC_HOST_BASIC_API_CUBE_DAV3510_H

#include "ascendc_host/basic_api/cube.h"

namespace AscendC {

// A block of mStep x kStep fractals of a matrix in L1, whose fractals lie by columns: srcStride of them from
// one column of fractals to the next, and dstStride in L0.
struct LoadData2DParamsV2 {
    LoadData2DParamsV2() = default;
    LoadData2DParamsV2(uint32_t m_start, uint32_t k_start, uint16_t m, uint16_t k, int32_t source,
                       uint16_t destination, bool transpose, uint8_t id)
        : mStartPosition(m_start),
          kStartPosition(k_start),
          mStep(m),
          kStep(k),
          srcStride(source),
          dstStride(destination),
          ifTranspose(transpose),
          sid(id) {}
    uint32_t mStartPosition = 0;
    uint32_t kStartPosition = 0;
    uint16_t mStep = 0;
    uint16_t kStep = 0;
    int32_t srcStride = 0;
    uint16_t dstStride = 0;
    bool ifTranspose = false;
    uint8_t sid = 0;
};

#if __NPU_ARCH__ == 3510

namespace detail {

// What a block becomes with rows and columns exchanged: `steps` of each are what makes whole fractals of it.
template <typename T>
void check_transposed(const LoadData2DParamsV2& p, const Where& where) {
    constexpr uint32_t c0 = 32 / sizeof(T), m_unit = std::max(c0 / 16, 1u), k_unit = std::max(16 / c0, 1u);
    if (p.mStep % m_unit == 0 && p.kStep % k_unit == 0) return;
    ascendc_host::fail(
        ascendc_host::current(), where,
        ascendc_host::format("LoadData: ifTranspose with mStep %u, kStep %u of elements of %zu bytes; mStep "
                             "must be a multiple of %u, kStep of %u",
                             unsigned(p.mStep), unsigned(p.kStep), sizeof(T), m_unit, k_unit));
}

}  // namespace detail

template <typename T>
void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2DParamsV2& params,
              Where where = Where()) {
    static_assert(!ascendc_host::is_packed<T>, "LoadData: dav-3510 does not have int4b_t");
    const auto& block = ascendc_host::enter(where);
    detail::require_l0(dst, "LoadData", where);
    detail::require_position(src, ascendc_host::Memory::l1, "LoadData", "src", where);
    detail::check_aligned(dst.use_bytes(0, "LoadData", "dst", where), 512, "LoadData", "dst", where);
    if (params.mStep > 255 || params.kStep > 255) {
        ascendc_host::fail(block, where,
                           ascendc_host::format("LoadData: mStep %u, kStep %u; each is at most 255",
                                                unsigned(params.mStep), unsigned(params.kStep)));
    }
    if (params.ifTranspose) detail::check_transposed<T>(params, where);
    constexpr uint32_t c0 = 32 / sizeof(T);
    const detail::OnPipe pipe(detail::Pipe::mte1);
    const int64_t start = int64_t(params.kStartPosition) * std::abs(params.srcStride) + params.mStartPosition;
    for (uint32_t k = 0; k < params.kStep; ++k) {
        for (uint32_t m = 0; m < params.mStep; ++m) {
            const int64_t index = start + int64_t(k) * params.srcStride + m;
            if (index < 0)
                ascendc_host::fail(block, where, "LoadData: the place of a fractal in src falls below 0");
            const uint64_t from = uint64_t(index) * detail::fractal_bytes;
            const uint8_t* fractal =
                src.use_bytes(from + detail::fractal_bytes, "LoadData", "src", where) + from;
            if (!params.ifTranspose) {
                const uint64_t to = (uint64_t(k) * params.dstStride + m) * detail::fractal_bytes;
                std::memcpy(dst.use_bytes(to + detail::fractal_bytes, "LoadData", "dst", where) + to, fractal,
                            detail::fractal_bytes);
                continue;
            }
            for (uint32_t i = 0; i < 16 * c0; ++i) {
                const uint32_t row = k * c0 + i % c0, column = m * 16 + i / c0;
                const uint64_t to = (uint64_t(column / c0) * params.dstStride + row / 16) * 16 * c0 +
                                    row % 16 * c0 + column % c0;
                T* place = dst.use(to + 1, "LoadData", "dst", where) + to;
                std::memcpy(static_cast<void*>(place), fractal + i * sizeof(T), sizeof(T));
            }
        }
    }
}

// Matrices of dValue rows and nValue columns, whose columns become the rows of what Nd2NzParams makes.
struct Dn2NzParams {
    Dn2NzParams() = default;
    Dn2NzParams(uint16_t matrices, uint16_t columns, uint32_t rows, uint64_t matrix_stride,
                uint64_t row_stride, uint16_t c0_stride, uint16_t n_stride, uint32_t nz_matrix_stride)
        : dnNum(matrices),
          nValue(columns),
          dValue(rows),
          srcDnMatrixStride(matrix_stride),
          srcDValue(row_stride),
          dstNzC0Stride(c0_stride),
          dstNzNStride(n_stride),
          dstNzMatrixStride(nz_matrix_stride) {}
    uint16_t dnNum = 0;
    uint16_t nValue = 0;
    uint32_t dValue = 0;
    uint64_t srcDnMatrixStride = 0;  // in elements, as srcDValue, which is that of two rows
    uint64_t srcDValue = 0;
    uint16_t dstNzC0Stride = 0;  // in units of 32 bytes, as dstNzNStride
    uint16_t dstNzNStride = 0;
    uint32_t dstNzMatrixStride = 0;  // in elements
};
template <typename T, bool enableSmallC0 = false>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Dn2NzParams& params,
              Where where = Where()) {
    static_assert(!ascendc_host::is_packed<T>, "DataCopy with Dn2NzParams: dav-3510 does not have int4b_t");
    static_assert(!enableSmallC0, "DataCopy with Dn2NzParams: the host does not have enableSmallC0");
    ascendc_host::enter(where);
    detail::require_local(dst, {ascendc_host::Memory::l1}, "DataCopy", "dst", where);
    constexpr uint32_t c0 = 32 / sizeof(T);
    const uint32_t padded = (params.dValue + c0 - 1) / c0 * c0;
    const detail::OnPipe pipe(detail::Pipe::mte2);
    for (uint32_t matrix = 0; matrix < params.dnNum; ++matrix) {
        for (uint32_t d = 0; d < padded && params.nValue > 0; ++d) {
            const uint8_t* row = nullptr;
            if (d < params.dValue) {
                row = src.use_bytes((matrix * params.srcDnMatrixStride + d * params.srcDValue) * sizeof(T),
                                    params.nValue * sizeof(T), "DataCopy", "src", where);
            }
            for (uint32_t n = 0; n < params.nValue; ++n) {
                const uint64_t to =
                    uint64_t(matrix) * params.dstNzMatrixStride +
                    (uint64_t(d / c0) * params.dstNzC0Stride + uint64_t(n) * params.dstNzNStride) * c0 +
                    d % c0;
                void* place = dst.use(to + 1, "DataCopy", "dst", where) + to;
                if (row == nullptr)
                    std::memset(place, 0, sizeof(T));
                else
                    std::memcpy(place, row + n * sizeof(T), sizeof(T));
            }
        }
    }
}

// --- out of L0C

enum class ReluMode { NO_RELU = 0, NORMAL_RELU, SCALAR_RELU, VECTOR_RELU };
enum class ClipReluMode { NOCLIP_RELU = 0, CLIP_RELU };

struct Nz2DnParams {
    Nz2DnParams() = default;
    Nz2DnParams(uint16_t matrices, uint16_t source, uint32_t destination, uint16_t row)
        : dnNum(matrices), srcNzMatrixStride(source), dstDnMatrixStride(destination), srcNzC0Stride(row) {}
    uint16_t dnNum = 1;
    uint16_t srcNzMatrixStride = 0;  // in rows of 16 elements, as srcNzC0Stride
    uint32_t dstDnMatrixStride = 0;  // in elements
    uint16_t srcNzC0Stride = 0;
};
template <CO2Layout format>
struct TransformParams;
template <>
struct TransformParams<CO2Layout::NZ> {
    using PARAMS = uint8_t;
};
template <>
struct TransformParams<CO2Layout::ROW_MAJOR> {
    struct PARAMS {
        PARAMS(uint16_t matrices = 1, uint16_t source = 0, uint32_t destination = 0)
            : ndNum(matrices), srcNdStride(source), dstNdStride(destination) {}
        uint16_t ndNum;
        uint16_t srcNdStride;  // in rows of 16 elements
        uint32_t dstNdStride;  // in elements
    };
};
template <>
struct TransformParams<CO2Layout::COLUMN_MAJOR> {
    using PARAMS = Nz2DnParams;
};

template <CO2Layout format = CO2Layout::ROW_MAJOR>
struct FixpipeParamsArch3510 {
    FixpipeParamsArch3510() = default;
    FixpipeParamsArch3510(uint16_t n, uint16_t m, uint16_t source, uint32_t destination)
        : nSize(n), mSize(m), srcStride(source), dstStride(destination) {}
    ReluMode preReluMode = ReluMode::NO_RELU;
    ClipReluMode preClipReluMode = ClipReluMode::NOCLIP_RELU;
    uint64_t reluScalar = 0;
    uint64_t vectorRelu = 0;
    uint16_t nSize = 0;
    uint16_t mSize = 0;
    uint16_t srcStride = 0;  // from one column of fractals to the next, in rows of 16 elements
    uint32_t dstStride = 0;  // elements of a row, or for NZ from one column to the next
    QuantMode_t quantPre = QuantMode_t::NoQuant;
    uint64_t deqScalar = 0;
    bool reluEn = false;
    uint8_t unitFlag = 0;
    uint8_t dualDstCtl = 0;
    bool subBlockId = false;
    typename TransformParams<format>::PARAMS params{};
    bool isChannelSplit = false;
};
template <CO2Layout format = CO2Layout::ROW_MAJOR>
struct FixpipeParamsC310 : FixpipeParamsArch3510<format> {
    using FixpipeParamsArch3510<format>::FixpipeParamsArch3510;
};

namespace detail {

// How many matrices there are, and how far they and the rows of one lie from each other: in rows of 16
// elements in L0C, in elements at the destination.
struct FixedMatrices {
    uint32_t count = 1, source = 0, row = 1;
    uint64_t destination = 0;
};
inline FixedMatrices matrices_of(const uint8_t&, const Where&) { return {}; }
inline FixedMatrices matrices_of(const TransformParams<CO2Layout::ROW_MAJOR>::PARAMS& p, const Where&) {
    return {p.ndNum, p.srcNdStride, 1, p.dstNdStride};
}
inline FixedMatrices matrices_of(const Nz2DnParams& p, const Where& where) {
    if (p.srcNzC0Stride == 0)
        ascendc_host::fail(ascendc_host::current(), where,
                           "Fixpipe: params.srcNzC0Stride is 0; it is 1 for rows without gaps");
    return {p.dnNum, p.srcNzMatrixStride, p.srcNzC0Stride, p.dstDnMatrixStride};
}

template <typename T, typename U, CO2Layout format>
void check_fixpipe(const LocalTensor<U>& src, const FixpipeParamsArch3510<format>& p, const Where& where) {
    ascendc_host::require_whole_bytes<T>();
    require_position(src, ascendc_host::Memory::l0c, "Fixpipe", "src", where);
    const auto refuse = [&](const char* what) { ascendc_host::fail(ascendc_host::current(), where, what); };
    static_assert(!ascendc_host::is_float8<T>, "Fixpipe: the host does not have conversions to 8-bit floats");
    if (p.preReluMode > ReluMode::NORMAL_RELU || p.preClipReluMode != ClipReluMode::NOCLIP_RELU)
        refuse("Fixpipe: the host has ReLU without factors and limits: NO_RELU, NORMAL_RELU, NOCLIP_RELU");
    if (p.isChannelSplit && (format != CO2Layout::NZ || !std::is_same<T, float>::value))
        refuse("Fixpipe: isChannelSplit is for float in CO2Layout::NZ");
    if (p.nSize > 4095) refuse("Fixpipe: nSize is above 4095");
    if (p.nSize == 0 || p.mSize == 0) return;  // nothing is moved
    if (p.dstStride == 0)
        refuse("Fixpipe: dstStride is 0; it is the distance of rows or columns, in elements");
    if (format == CO2Layout::NZ && p.nSize % (p.isChannelSplit ? 8 : 16) != 0)
        refuse("Fixpipe: nSize must be a multiple of 16 for CO2Layout::NZ, of 8 with isChannelSplit");
}

inline const uint64_t* scales_of(const LocalTensor<uint64_t>& workspace, uint32_t count, const Where& where) {
    require_position(workspace, ascendc_host::Memory::l1, "Fixpipe", "cbufWorkspace", where);
    return workspace.use(count, "Fixpipe", "cbufWorkspace", where);
}

// `store(offset in elements, values, count)` puts a run of elements.
template <typename T, typename U, CO2Layout format, typename Store>
void fixpipe_dav3510(const LocalTensor<U>& src, const FixpipeParamsArch3510<format>& p,
                     const uint64_t* scales, const Where& where, const Store& store) {
    check_fixpipe<T>(src, p, where);
    const OnPipe pipe(Pipe::fixpipe);
    if (p.unitFlag != 0) ascendc_host::wait_for_pipe(Pipe::fixpipe, Pipe::cube);
    constexpr bool by_columns = format == CO2Layout::COLUMN_MAJOR;
    const uint32_t width = format != CO2Layout::NZ ? 1 : sizeof(T) == 1 ? 32 : p.isChannelSplit ? 8 : 16;
    const bool relu = p.reluEn || p.preReluMode == ReluMode::NORMAL_RELU;
    const FixedMatrices matrices = matrices_of(p.params, where);
    const uint32_t together = by_columns ? 1 : std::min(width == 1 ? 16 : width, 16u);
    T run[16];
    for (uint32_t matrix = 0; matrix < matrices.count; ++matrix) {
        for (uint32_t m = 0; m < p.mSize; ++m) {
            for (uint32_t n = 0; n < p.nSize; n += together) {
                const uint32_t count = std::min<uint32_t>(together, p.nSize - n);
                const uint64_t at = (uint64_t(matrix) * matrices.source + uint64_t(n / 16) * p.srcStride +
                                     uint64_t(m) * matrices.row) *
                                        16 +
                                    n % 16;
                const U* from = src.use(at + count, "Fixpipe", "src", where) + at;
                for (uint32_t i = 0; i < count; ++i)
                    run[i] = fix_element<T>(from[i], relu, p.quantPre, scales, p.deqScalar, n + i);
                const uint64_t first = matrix * matrices.destination;
                store(format == CO2Layout::NZ ? uint64_t(n / width) * p.dstStride + m * width + n % width
                      : by_columns            ? first + uint64_t(n) * p.dstStride + m
                                              : first + uint64_t(m) * p.dstStride + n,
                      run, count);
            }
        }
    }
}
template <typename T, typename U, CO2Layout format>
void fixpipe_dav3510(const GlobalTensor<T>& dst, const LocalTensor<U>& src,
                     const FixpipeParamsArch3510<format>& p, const uint64_t* scales, const Where& where) {
    const auto& block = ascendc_host::enter(where);
    fixpipe_dav3510<T>(src, p, scales, where, [&](uint64_t at, const T* values, uint32_t count) {
        detail::store<T>(block, reinterpret_cast<const uint8_t*>(values),
                         dst.use_bytes(at * sizeof(T), count * sizeof(T), "Fixpipe", "dst", where),
                         count * sizeof(T));
    });
}
template <typename T, typename U, CO2Layout format>
void fixpipe_dav3510(const LocalTensor<T>& dst, const LocalTensor<U>& src,
                     const FixpipeParamsArch3510<format>& p, const uint64_t* scales, const Where& where) {
    ascendc_host::enter(where);
    if (memory_of(dst.position()) == ascendc_host::Memory::ub) {
        ascendc_host::fail(
            ascendc_host::current(), where,
            "Fixpipe: dst lies in the unified buffer of a vector core, which the host does not "
            "reach from the cube core; write to global memory or L1");
    }
    require_position(dst, ascendc_host::Memory::l1, "Fixpipe", "dst", where);
    fixpipe_dav3510<T>(src, p, scales, where, [&](uint64_t at, const T* values, uint32_t count) {
        std::copy_n(values, count, dst.use(at + count, "Fixpipe", "dst", where) + at);
    });
}

}  // namespace detail

// L0C to global memory or L1: in fractals, by rows or by columns.
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src,
             const FixpipeParamsArch3510<config.format>& params, Where where = Where()) {
    detail::fixpipe_dav3510(dst, src, params, nullptr, where);
}
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src,
             const FixpipeParamsArch3510<config.format>& params, Where where = Where()) {
    detail::fixpipe_dav3510(dst, src, params, nullptr, where);
}
// With a scale for each column.
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src,
             const LocalTensor<uint64_t>& cbufWorkspace, const FixpipeParamsArch3510<config.format>& params,
             Where where = Where()) {
    detail::fixpipe_dav3510(dst, src, params, detail::scales_of(cbufWorkspace, params.nSize, where), where);
}
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const LocalTensor<uint64_t>& cbufWorkspace,
             const FixpipeParamsArch3510<config.format>& params, Where where = Where()) {
    detail::fixpipe_dav3510(dst, src, params, detail::scales_of(cbufWorkspace, params.nSize, where), where);
}

#endif  // __NPU_ARCH__ == 3510

}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_CUBE_DAV3510_H
