// DataCopy and DataCopyPad: blocks of bytes between global and local memory, with the alignment the device
// asks for.
#ifndef ASCENDC_HOST_BASIC_API_COPY_H
#define ASCENDC_HOST_BASIC_API_COPY_H

#include "ascendc_host/basic_api/pipe.h"
#include "ascendc_host/internal/element_types.h"

namespace AscendC {

// `blockCount` blocks of `blockLen` units, with gaps of `srcStride` and `dstStride` units between them; a
// unit is 32 bytes.
struct DataCopyParams {
    DataCopyParams() = default;
    DataCopyParams(uint16_t count, uint16_t length, uint16_t source, uint16_t destination)
        : blockCount(count), blockLen(length), srcStride(source), dstStride(destination) {}
    uint16_t blockCount = 1;
    uint16_t blockLen = 0;
    union {
        uint16_t srcGap = 0;
        uint16_t srcStride;
    };
    union {
        uint16_t dstGap = 0;
        uint16_t dstStride;
    };
};

struct DataCopyEnhancedParams {
    DataCopyEnhancedParams() = default;
    DataCopyEnhancedParams(BlockMode block_mode, DeqScale scale, uint64_t value, uint8_t store_mode,
                           bool relu, pad_t pad, uint64_t pad_value)
        : blockMode(block_mode),
          deqScale(scale),
          deqValue(value),
          sidStoreMode(store_mode),
          isRelu(relu),
          padMode(pad),
          padValue(pad_value) {}
    BlockMode blockMode = BlockMode::BLOCK_MODE_NORMAL;
    DeqScale deqScale = DeqScale::DEQ_NONE;
    uint64_t deqValue = 0;
    uint8_t sidStoreMode = 0;
    bool isRelu = false;
    pad_t padMode = pad_t::PAD_NONE;
    uint64_t padValue = 0;
    uint64_t deqTensorAddr = 0;
};

// For DataCopyPad: `blockLen` and the stride on global memory are bytes, the stride on local memory is units
// of 32 bytes.
struct DataCopyExtParams {
    DataCopyExtParams() = default;
    DataCopyExtParams(uint16_t count, uint32_t length, uint32_t source, uint32_t destination,
                      uint32_t reserved)
        : blockCount(count), blockLen(length), srcStride(source), dstStride(destination), rsv(reserved) {}
    uint16_t blockCount = 1;
    uint32_t blockLen = 0;
    uint32_t srcStride = 0;
    uint32_t dstStride = 0;
    uint32_t rsv = 0;
};

struct DataCopyPadParams {
    DataCopyPadParams() = default;
    DataCopyPadParams(bool pad, uint8_t left, uint8_t right, uint64_t value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
    bool isPad = false;
    uint8_t leftPadding = 0;
    uint8_t rightPadding = 0;
    uint64_t paddingValue = 0;
};
template <typename T>
struct DataCopyPadExtParams {
    DataCopyPadExtParams() = default;
    DataCopyPadExtParams(bool pad, uint8_t left, uint8_t right, T value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
    bool isPad = false;
    uint8_t leftPadding = 0;
    uint8_t rightPadding = 0;
    T paddingValue = T(0);
};

// `ndNum` matrices of nValue rows and dValue columns, from rows to fractals of 16 rows and 32 bytes. Strides
// of the destination count 32-byte units; those of the source count elements.
struct Nd2NzParams {
    Nd2NzParams() = default;
    Nd2NzParams(uint16_t matrices, uint16_t rows, uint16_t columns, uint16_t matrix_stride,
                uint16_t row_stride, uint16_t c0_stride, uint16_t n_stride, uint16_t nz_matrix_stride)
        : ndNum(matrices),
          nValue(rows),
          dValue(columns),
          srcNdMatrixStride(matrix_stride),
          srcDValue(row_stride),
          dstNzC0Stride(c0_stride),
          dstNzNStride(n_stride),
          dstNzMatrixStride(nz_matrix_stride) {}
    uint16_t ndNum = 0;
    uint16_t nValue = 0;
    uint16_t dValue = 0;
    uint16_t srcNdMatrixStride = 0;
    uint16_t srcDValue = 0;
    uint16_t dstNzC0Stride = 0;
    uint16_t dstNzNStride = 0;
    uint16_t dstNzMatrixStride = 0;
};
// And back. Strides: matrices in fractals of 256 elements at the source and elements at the destination.
struct Nz2NdParamsFull {
    Nz2NdParamsFull() = default;
    Nz2NdParamsFull(uint16_t matrices, uint16_t rows, uint16_t columns, uint16_t matrix_stride,
                    uint16_t n_stride, uint16_t d_stride, uint16_t nd_matrix_stride)
        : ndNum(matrices),
          nValue(rows),
          dValue(columns),
          srcNdMatrixStride(matrix_stride),
          srcNStride(n_stride),
          dstDStride(d_stride),
          dstNdMatrixStride(nd_matrix_stride) {}
    uint16_t ndNum = 1;
    uint16_t nValue = 0;
    uint16_t dValue = 0;
    uint16_t srcNdMatrixStride = 1;
    uint16_t srcNStride = 0;
    uint16_t dstDStride = 0;
    uint16_t dstNdMatrixStride = 1;
};

struct SliceInfo {
    SliceInfo() = default;
    SliceInfo(uint32_t start, uint32_t end, uint32_t stride, uint32_t burst, uint32_t shape = 0)
        : startIndex(start), endIndex(end), stride(stride), burstLen(burst), shapeValue(shape) {}
    uint32_t startIndex = 0;
    uint32_t endIndex = 0;
    uint32_t stride = 0;
    uint32_t burstLen = 0;
    uint32_t shapeValue = 0;
};

namespace detail {

using ascendc_host::Block;
using ascendc_host::OnPipe;
using ascendc_host::Pipe;

// The bytes of what nobody knows.
constexpr int unknown_byte = 0xa5;

// Rows of bytes at a fixed distance: what every copy is made of.
struct Rows {
    uint64_t count;
    uint64_t bytes;   // of one row
    uint64_t stride;  // from one row to the next
    uint64_t extent() const { return count == 0 ? 0 : (count - 1) * stride + bytes; }
};

inline void check_aligned(const void* address, uint64_t to, const char* api, const char* name,
                          const Where& where) {
    if (reinterpret_cast<uint64_t>(address) % to == 0) return;
    ascendc_host::fail(
        ascendc_host::current(), where,
        ascendc_host::format("%s: %s starts at an address that is not a multiple of %llu bytes", api, name,
                             static_cast<unsigned long long>(to)));
}

template <typename T>
void accumulate(Block::Atomic how, const T* from, T* to, uint64_t count) {
    using W = ascendc_host::Wide<T>;
    for (uint64_t i = 0; i < count; ++i) {
        const W old = static_cast<W>(to[i]);
        const W value = static_cast<W>(from[i]);
        to[i] = static_cast<T>(how == Block::Atomic::add   ? static_cast<W>(old + value)
                               : how == Block::Atomic::max ? std::max(old, value)
                                                           : std::min(old, value));
    }
}
// A write to global memory while SetAtomicAdd, SetAtomicMax or SetAtomicMin is in force.
template <typename T>
void store_atomic(Block::Atomic how, const uint8_t* from, uint8_t* to, uint64_t bytes) {
    if (bytes % sizeof(T) != 0)
        ascendc_host::fail(ascendc_host::format(
            "an atomic copy of %llu bytes, and the type that SetAtomicAdd, SetAtomicMax or SetAtomicMin "
            "was given has %zu; give it the type of the tensor",
            static_cast<unsigned long long>(bytes), sizeof(T)));
    for (uint64_t at = 0; at < bytes;) {
        const uint64_t page_rest =
            ascendc_host::lock_page - reinterpret_cast<uint64_t>(to + at) % ascendc_host::lock_page;
        const uint64_t step = std::min<uint64_t>(bytes - at, page_rest);
        const ascendc_host::GlobalLock lock(to + at);
        accumulate(how, reinterpret_cast<const T*>(from + at), reinterpret_cast<T*>(to + at),
                   step / sizeof(T));
        at += step;
    }
}
template <typename T>
constexpr bool accumulates_in_memory =
    std::is_same<T, float>::value || std::is_same<T, half>::value || std::is_same<T, bfloat16_t>::value ||
    std::is_same<T, int32_t>::value || std::is_same<T, int16_t>::value || std::is_same<T, int8_t>::value;
template <typename T>
void store(const Block& block, const uint8_t* from, uint8_t* to, uint64_t bytes) {
    if (block.atomic == Block::Atomic::none) {
        std::memcpy(to, from, bytes);
    } else if (block.accumulate != nullptr) {
        block.accumulate(block.atomic, from, to, bytes);  // by the type that was set, whatever the tensor's
    } else {
        ascendc_host::fail(
            "an atomic copy to global memory takes float, half, bfloat16_t, int32_t, int16_t or int8_t");
    }
}

template <typename T>
void require_local(const LocalTensor<T>& tensor, std::initializer_list<ascendc_host::Memory> allowed,
                   const char* api, const char* name, const Where& where) {
    const auto memory = memory_of(tensor.position());
    for (auto one : allowed) {
        if (one == memory) return;
    }
    ascendc_host::fail(ascendc_host::current(), where,
                       ascendc_host::format("%s: %s lies in %s, which this copy does not reach", api, name,
                                            position_name(tensor.position())));
}

inline void refuse_loops(bool to_local, const char* api, const Where& where) {
    const Block& block = ascendc_host::current();
    if (!block.copy_loops[to_local ? 1 : 0].set) return;
    ascendc_host::fail(
        block, where,
        ascendc_host::format("%s within the loops of SetLoopModePara is not supported on the host; "
                             "use DataCopyPad, or ResetLoopModePara before",
                             api));
}

// The pipe of a copy within local memory.
constexpr Pipe pipe_between(TPosition source, TPosition destination) {
    const auto from = memory_of(source), to = memory_of(destination);
    if (from == ascendc_host::Memory::ub) return to == ascendc_host::Memory::ub ? Pipe::vector : Pipe::mte3;
    if (from == ascendc_host::Memory::l1)
        return to == ascendc_host::Memory::fixpipe ? Pipe::fixpipe : Pipe::mte1;
    return Pipe::vector;
}

template <typename T>
void copy_in(const LocalTensor<T>& dst, const GlobalTensor<T>& src, Rows to, Rows from, const char* api,
             const Where& where) {
    refuse_loops(true, api, where);
    require_local(dst, {ascendc_host::Memory::ub, ascendc_host::Memory::l1}, api, "dst", where);
    OnPipe pipe(Pipe::mte2);
    pipe.rows(to.bytes, to.stride);
    uint8_t* local = dst.use_bytes(to.extent(), api, "dst", where);
    check_aligned(local, 32, api, "dst", where);
    // What a last block has after the tensor's end is anything.
    const uint64_t own = src.within(from.extent());
    pipe.rows(from.bytes, from.stride);
    const uint8_t* global = src.use_bytes(0, own, api, "src", where);
    for (uint64_t row = 0; row < from.count; ++row) {
        const uint64_t bytes = std::min(from.bytes, own - row * from.stride);
        std::memcpy(local + row * to.stride, global + row * from.stride, bytes);
        std::memset(local + row * to.stride + bytes, unknown_byte, from.bytes - bytes);
    }
}
template <typename T>
void copy_out(const GlobalTensor<T>& dst, const LocalTensor<T>& src, Rows to, Rows from, const char* api,
              const Where& where) {
    refuse_loops(false, api, where);
    require_local(src, {ascendc_host::Memory::ub, ascendc_host::Memory::l1}, api, "src", where);
    OnPipe pipe(Pipe::mte3);
    pipe.rows(from.bytes, from.stride);
    const uint8_t* local = src.use_bytes(from.extent(), api, "src", where);
    check_aligned(local, 32, api, "src", where);
    const Block& block = ascendc_host::current();
    // A last block is written to its end, where the allocation is known to have that.
    const uint64_t own = dst.has_memory(to.extent()) ? dst.within(to.extent()) : to.extent();
    pipe.rows(to.bytes, to.stride);
    uint8_t* global = dst.use_bytes(0, own, api, "dst", where);
    if (own != to.extent()) {
        ascendc_host::warn_once(
            ascendc_host::format("kernel %s: %s writes %llu bytes after the end of dst, in whole blocks of "
                                 "32 bytes; DataCopyPad does not",
                                 block.kernel, api, static_cast<unsigned long long>(to.extent() - own)));
    }
    for (uint64_t row = 0; row < to.count; ++row)
        store<T>(block, local + row * from.stride, global + row * to.stride, to.bytes);
}
template <typename T, typename U>
void copy_local(const LocalTensor<T>& dst, const LocalTensor<U>& src, Rows to, Rows from, const char* api,
                const Where& where) {
    OnPipe pipe(pipe_between(src.position(), dst.position()));
    pipe.rows(to.bytes, to.stride);
    uint8_t* target = dst.use_bytes(to.extent(), api, "dst", where);
    pipe.rows(from.bytes, from.stride);
    const uint8_t* origin = src.use_bytes(from.extent(), api, "src", where);
    check_aligned(target, 32, api, "dst", where);
    check_aligned(origin, 32, api, "src", where);
    for (uint64_t row = 0; row < from.count; ++row)
        std::memmove(target + row * to.stride, origin + row * from.stride, from.bytes);
}

template <typename T>
uint64_t whole_bytes(uint64_t count, const char* api, const Where& where) {
    if (ascendc_host::is_packed<T>) {
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("%s: %llu elements of int4b_t; a count is not for this type: copy half as "
                                 "many of ReinterpretCast<int8_t>(), or give DataCopyParams",
                                 api, static_cast<unsigned long long>(count)));
    }
    const uint64_t bytes = count * sizeof(T);
    if (bytes % ONE_BLK_SIZE != 0) {
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format(
                "%s: unaligned copy: %llu elements of %zu bytes are %llu bytes, no multiple of 32; "
                "round the count up, or use DataCopyPad",
                api, static_cast<unsigned long long>(count), sizeof(T),
                static_cast<unsigned long long>(bytes)));
    }
    return bytes;
}
inline void check_blocks(uint32_t count, uint64_t length, const char* api, const Where& where) {
    if (count > 4095) {
        ascendc_host::fail(ascendc_host::current(), where,
                           ascendc_host::format("%s: blockCount %u; valid: 1 to 4095", api, count));
    }
    (void)length;
}
// The unit of blockLen and the strides in DataCopyParams: 32 bytes, more on the way to the bias and fixpipe
// buffers.
constexpr uint64_t copy_unit(TPosition destination) {
    return destination == TPosition::C2 ? 64 : destination == TPosition::C2PIPE2GM ? 128 : 32;
}
inline Rows rows_of(const DataCopyParams& params, uint16_t gap, uint64_t unit) {
    return {params.blockLen == 0 ? 0u : params.blockCount, params.blockLen * unit,
            (uint64_t(params.blockLen) + gap) * unit};
}

}  // namespace detail

// --- contiguous
// ------------------------------------------------------------------------------------------------------

template <typename T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, uint32_t count, Where where = Where()) {
    ascendc_host::enter(where);
    const uint64_t bytes = detail::whole_bytes<T>(count, "DataCopy", where);
    const detail::Rows rows{1, bytes, bytes};
    detail::copy_in(dst, src, rows, rows, "DataCopy", where);
}
template <typename T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count, Where where = Where()) {
    ascendc_host::enter(where);
    const uint64_t bytes = detail::whole_bytes<T>(count, "DataCopy", where);
    const detail::Rows rows{1, bytes, bytes};
    detail::copy_out(dst, src, rows, rows, "DataCopy", where);
}
template <typename T>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count, Where where = Where()) {
    ascendc_host::enter(where);
    const uint64_t bytes = detail::whole_bytes<T>(count, "DataCopy", where);
    const detail::Rows rows{1, bytes, bytes};
    detail::copy_local(dst, src, rows, rows, "DataCopy", where);
}

// --- blocks
// ----------------------------------------------------------------------------------------------------------

template <typename T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& params,
              Where where = Where()) {
    ascendc_host::enter(where);
    detail::check_blocks(params.blockCount, params.blockLen, "DataCopy", where);
    detail::copy_in(dst, src, detail::rows_of(params, params.dstStride, 32),
                    detail::rows_of(params, params.srcStride, 32), "DataCopy", where);
}
template <typename T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params,
              Where where = Where()) {
    ascendc_host::enter(where);
    detail::check_blocks(params.blockCount, params.blockLen, "DataCopy", where);
    detail::copy_out(dst, src, detail::rows_of(params, params.dstStride, 32),
                     detail::rows_of(params, params.srcStride, 32), "DataCopy", where);
}
template <typename T, typename U = T>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const DataCopyParams& params,
              Where where = Where()) {
    ascendc_host::enter(where);
    detail::check_blocks(params.blockCount, params.blockLen, "DataCopy", where);
    const uint64_t unit = detail::copy_unit(dst.position());
    if constexpr (std::is_same<T, U>::value) {
        detail::copy_local(dst, src, detail::rows_of(params, params.dstStride, unit),
                           detail::rows_of(params, params.srcStride, unit), "DataCopy", where);
    } else {
        // To the bias buffer half becomes float on the way: a unit of 64 bytes at the source has twice as
        // many there.
        const uint64_t wide = unit * sizeof(T) / sizeof(U);
        const detail::Rows to{params.blockLen == 0 ? 0u : params.blockCount, params.blockLen * wide,
                              params.blockLen * wide + params.dstStride * unit};
        const auto from = detail::rows_of(params, params.srcStride, unit);
        const detail::OnPipe pipe(detail::pipe_between(src.position(), dst.position()));
        uint8_t* target = dst.use_bytes(to.extent(), "DataCopy", "dst", where);
        const uint8_t* origin = src.use_bytes(from.extent(), "DataCopy", "src", where);
        for (uint64_t row = 0; row < from.count; ++row) {
            const auto* values = reinterpret_cast<const U*>(origin + row * from.stride);
            auto* results = reinterpret_cast<T*>(target + row * to.stride);
            for (uint64_t i = 0; i < from.bytes / sizeof(U); ++i) results[i] = static_cast<T>(values[i]);
        }
    }
}
template <typename T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& params,
              const DataCopyEnhancedParams&, Where where = Where()) {
    DataCopy(dst, src, params, where);
}
template <typename T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params,
              const DataCopyEnhancedParams&, Where where = Where()) {
    DataCopy(dst, src, params, where);
}
// From the cube's results to the unified buffer: whole fractals of 16 x 16 elements in BLOCK_MODE_MATRIX, one
// row of 16 in BLOCK_MODE_VECTOR, converted to the type of the destination.
template <typename T, typename U = T>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const DataCopyParams& params,
              const DataCopyEnhancedParams& how, Where where = Where()) {
    ascendc_host::enter(where);
    uint64_t fractal = 32 / sizeof(T);
    if (how.blockMode == BlockMode::BLOCK_MODE_MATRIX) fractal = 256;
    if (how.blockMode == BlockMode::BLOCK_MODE_VECTOR) fractal = 16;
    const uint64_t count = params.blockLen * fractal;
    const uint64_t to_stride = count + params.dstStride * (32 / sizeof(T));
    const uint64_t from_stride =
        count + params.srcStride * (how.blockMode == BlockMode::BLOCK_MODE_NORMAL ? 32 / sizeof(U) : fractal);
    if (params.blockCount == 0 || count == 0) return;
    const detail::OnPipe pipe(detail::pipe_between(src.position(), dst.position()));
    T* to = dst.use((params.blockCount - 1) * to_stride + count, "DataCopy", "dst", where);
    const U* from = src.use((params.blockCount - 1) * from_stride + count, "DataCopy", "src", where);
    for (uint32_t row = 0; row < params.blockCount; ++row) {
        for (uint64_t i = 0; i < count; ++i) {
            const U value = from[row * from_stride + i];
            to[row * to_stride + i] = static_cast<T>(how.isRelu && value < U(0) ? U(0) : value);
        }
    }
}

// --- slices of tensors with several dimensions
// -----------------------------------------------------------------------

namespace detail {

// The byte offsets of the runs of a slice, the first dimension running fastest; burstLen counts 32-byte
// units.
template <typename T>
std::vector<uint64_t> slice_offsets(const SliceInfo slices[], uint32_t dims) {
    ascendc_host::require_whole_bytes<T>();
    std::vector<uint64_t> offsets{0};
    uint64_t step = sizeof(T);
    for (uint32_t dim = 0; dim < dims; ++dim) {
        const SliceInfo& slice = slices[dim];
        std::vector<uint64_t> next;
        const uint64_t run = dim == 0 ? uint64_t(slice.burstLen) * ONE_BLK_SIZE / sizeof(T) : 1;
        std::vector<uint64_t> own;
        for (uint64_t at = slice.startIndex; at + run <= uint64_t(slice.endIndex) + 1;
             at += run + slice.stride)
            own.push_back(at * step);
        for (uint64_t outer : own) {
            for (uint64_t inner : offsets) next.push_back(outer + inner);
        }
        offsets = std::move(next);
        step *= slice.shapeValue == 0 ? slice.endIndex + 1 : slice.shapeValue;
    }
    return offsets;
}
template <typename T>
void check_slices(const std::vector<uint64_t>& to, const std::vector<uint64_t>& from, const SliceInfo dst[],
                  const SliceInfo src[], const Where& where) {
    if (to.size() != from.size() || dst[0].burstLen != src[0].burstLen) {
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("DataCopy: the slices differ: %zu runs of %u units to %zu runs of %u units",
                                 from.size(), src[0].burstLen, to.size(), dst[0].burstLen));
    }
}

}  // namespace detail

template <typename T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const SliceInfo to[],
              const SliceInfo from[], uint32_t dims = 1, Where where = Where()) {
    ascendc_host::enter(where);
    const auto targets = detail::slice_offsets<T>(to, dims);
    const auto origins = detail::slice_offsets<T>(from, dims);
    detail::check_slices<T>(targets, origins, to, from, where);
    const uint64_t bytes = uint64_t(to[0].burstLen) * ONE_BLK_SIZE;
    const detail::OnPipe pipe(detail::Pipe::mte2);
    for (size_t i = 0; i < targets.size(); ++i) {
        std::memcpy(dst.use_bytes(targets[i] + bytes, "DataCopy", "dst", where) + targets[i],
                    src.use_bytes(origins[i], bytes, "DataCopy", "src", where), bytes);
    }
}
template <typename T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const SliceInfo to[],
              const SliceInfo from[], uint32_t dims = 1, Where where = Where()) {
    ascendc_host::enter(where);
    const auto targets = detail::slice_offsets<T>(to, dims);
    const auto origins = detail::slice_offsets<T>(from, dims);
    detail::check_slices<T>(targets, origins, to, from, where);
    const uint64_t bytes = uint64_t(to[0].burstLen) * ONE_BLK_SIZE;
    const detail::OnPipe pipe(detail::Pipe::mte3);
    for (size_t i = 0; i < targets.size(); ++i) {
        detail::store<T>(ascendc_host::current(),
                         src.use_bytes(origins[i] + bytes, "DataCopy", "src", where) + origins[i],
                         dst.use_bytes(targets[i], bytes, "DataCopy", "dst", where), bytes);
    }
}

// --- layouts of the cube
// ---------------------------------------------------------------------------------------------

namespace detail {

template <typename T>
constexpr bool cube_has_packed = !ascendc_host::is_packed<T> || ascendc_host::npu_architecture != 3510;

// The source is read through `row`, which checks bounds and gives the start of `bytes` bytes.
template <typename T, typename Row>
void nd_to_nz(const LocalTensor<T>& dst, const Nd2NzParams& params, const Where& where, const Row& row) {
    constexpr uint32_t c0 = 32 / sizeof(T);
    for (uint32_t matrix = 0; matrix < params.ndNum; ++matrix) {
        for (uint32_t n = 0; n < params.nValue; ++n) {
            const T* from = row(uint64_t(matrix) * params.srcNdMatrixStride + uint64_t(n) * params.srcDValue,
                                params.dValue);
            for (uint32_t first = 0; first < params.dValue; first += c0) {
                // dstNzMatrixStride counts elements; the other two count units of 32 bytes.
                const uint64_t at =
                    uint64_t(matrix) * params.dstNzMatrixStride +
                    (uint64_t(first / c0) * params.dstNzC0Stride + uint64_t(n) * params.dstNzNStride) * c0;
                T* to = dst.use(at + c0, "DataCopy", "dst", where) + at;
                for (uint32_t i = 0; i < c0; ++i) to[i] = first + i < params.dValue ? from[first + i] : T(0);
            }
        }
    }
}

}  // namespace detail

template <typename T, bool enableSmallC0 = false>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Nd2NzParams& params,
              Where where = Where()) {
    static_assert(detail::cube_has_packed<T>, "DataCopy with Nd2NzParams: dav-3510 does not have int4b_t");
    static_assert(!enableSmallC0, "DataCopy with Nd2NzParams: the host does not have enableSmallC0");
    ascendc_host::enter(where);
    detail::require_local(dst, {ascendc_host::Memory::l1, ascendc_host::Memory::ub}, "DataCopy", "dst",
                          where);
    // Of elements that share bytes the parameters count bytes.
    if constexpr (ascendc_host::is_packed<T>) {
        DataCopy(dst.template ReinterpretCast<int8_t>(), src.template ReinterpretCast<int8_t>(), params,
                 where);
    } else {
        const detail::OnPipe pipe(detail::Pipe::mte2);
        detail::nd_to_nz(dst, params, where, [&](uint64_t at, uint64_t count) {
            return reinterpret_cast<const T*>(
                src.use_bytes(at * sizeof(T), count * sizeof(T), "DataCopy", "src", where));
        });
    }
}
template <typename T>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const Nd2NzParams& params,
              Where where = Where()) {
    ascendc_host::enter(where);
    const detail::OnPipe pipe(detail::pipe_between(src.position(), dst.position()));
    detail::nd_to_nz(dst, params, where, [&](uint64_t at, uint64_t count) {
        return src.use(at + count, "DataCopy", "src", where) + at;
    });
}
template <typename T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const Nz2NdParamsFull& params,
              Where where = Where()) {
    ascendc_host::require_whole_bytes<T>();
    const auto& block = ascendc_host::enter(where);
    constexpr uint32_t c0 = 16;
    const detail::OnPipe pipe(detail::Pipe::mte3);
    for (uint32_t matrix = 0; matrix < params.ndNum; ++matrix) {
        for (uint32_t n = 0; n < params.nValue; ++n) {
            for (uint32_t first = 0; first < params.dValue; first += c0) {
                const uint32_t count = std::min<uint32_t>(c0, params.dValue - first);
                const uint64_t at = uint64_t(matrix) * params.srcNdMatrixStride * 256 +
                                    uint64_t(first / c0) * params.srcNStride * c0 + uint64_t(n) * c0;
                const uint64_t to =
                    uint64_t(matrix) * params.dstNdMatrixStride + uint64_t(n) * params.dstDStride + first;
                const T* from = src.use(at + count, "DataCopy", "src", where) + at;
                detail::store<T>(block, reinterpret_cast<const uint8_t*>(from),
                                 dst.use_bytes(to * sizeof(T), count * sizeof(T), "DataCopy", "dst", where),
                                 count * sizeof(T));
            }
        }
    }
}

// --- atomic accumulation
// ---------------------------------------------------------------------------------------------

template <typename T>
void SetAtomicType() {
    ASCENDC_ATOMIC(SetAtomicType, T);
    if constexpr (detail::accumulates_in_memory<T>) {
        ascendc_host::current().accumulate = detail::store_atomic<T>;
    } else {
        ascendc_host::current().accumulate = nullptr;
    }
}
// From here on, copies from local to global memory add to what is there.
template <typename T>
void SetAtomicAdd() {
    ASCENDC_ATOMIC(SetAtomicAdd, T);
    SetAtomicType<T>();
    ascendc_host::current().atomic = ascendc_host::Block::Atomic::add;
}
template <typename T>
void SetAtomicMax() {
    ASCENDC_ATOMIC(SetAtomicMax, T);
    SetAtomicType<T>();
    ascendc_host::current().atomic = ascendc_host::Block::Atomic::max;
}
template <typename T>
void SetAtomicMin() {
    ASCENDC_ATOMIC(SetAtomicMin, T);
    SetAtomicType<T>();
    ascendc_host::current().atomic = ascendc_host::Block::Atomic::min;
}
inline void SetAtomicNone() { ascendc_host::current().atomic = ascendc_host::Block::Atomic::none; }
inline void DisableDmaAtomic() { SetAtomicNone(); }

}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_COPY_H
