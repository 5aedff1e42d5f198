// The instructions that move and order data, by the compiler's names for them: see instructions.h.
#ifndef ASCENDC_HOST_INTERNAL_INSTRUCTION_COPIES_H
#define ASCENDC_HOST_INTERNAL_INSTRUCTION_COPIES_H

#include "ascendc_host/internal/instructions.h"

#if __NPU_ARCH__ != 3510

// Bursts of `length` bytes from global memory, in local memory padded to whole blocks of 32 bytes; gaps are
// of bytes there, of blocks here. What is padded has the value of SetPadValue. A copy to global memory is one
// of bytes: what it accumulates has the type that set_atomic_… gave.
#define ASCENDC_ALIGNED_COPY(suffix, Bits)                                                                 \
    inline void copy_gm_to_ubuf_align_##suffix(__ubuf__ void* dst, __gm__ void* src, uint8_t,              \
                                               uint16_t bursts, uint32_t length, uint8_t left,             \
                                               uint8_t right, uint32_t srcGap, uint32_t dstGap,            \
                                               const ascendc_host::Where& where = ascendc_host::Where()) { \
        constexpr const char* api = "copy_gm_to_ubuf_align_" #suffix;                                      \
        AscendC::DataCopyPad(AscendC::detail::local_at(static_cast<Bits*>(dst), api, "dst", where),        \
                             AscendC::detail::global_at(static_cast<Bits*>(src)),                          \
                             AscendC::DataCopyExtParams{bursts, length, srcGap, dstGap, 0},                \
                             AscendC::DataCopyPadExtParams<Bits>{false, left, right, 0}, where);           \
    }                                                                                                      \
    inline void copy_ubuf_to_gm_align_##suffix(                                                            \
        __gm__ void* dst, __ubuf__ void* src, uint8_t, uint16_t bursts, uint32_t length, uint8_t, uint8_t, \
        uint32_t srcGap, uint32_t dstGap, const ascendc_host::Where& where = ascendc_host::Where()) {      \
        constexpr const char* api = "copy_ubuf_to_gm_align_" #suffix;                                      \
        AscendC::DataCopyPad(AscendC::detail::global_at(static_cast<uint8_t*>(dst)),                       \
                             AscendC::detail::local_at(static_cast<uint8_t*>(src), api, "src", where),     \
                             AscendC::DataCopyExtParams{bursts, length, srcGap, dstGap, 0}, where);        \
    }
ASCENDC_ALIGNED_COPY(b8, uint8_t)
ASCENDC_ALIGNED_COPY(b16, uint16_t)
ASCENDC_ALIGNED_COPY(b32, uint32_t)
#undef ASCENDC_ALIGNED_COPY

// Bursts of blocks of 32 bytes with gaps of blocks.
inline void copy_ubuf_to_ubuf(__ubuf__ void* dst, __ubuf__ void* src, uint8_t, uint16_t bursts,
                              uint16_t length, uint16_t srcGap, uint16_t dstGap,
                              const ascendc_host::Where& where = ascendc_host::Where()) {
    AscendC::DataCopy(
        AscendC::detail::local_at(static_cast<uint8_t*>(dst), "copy_ubuf_to_ubuf", "dst", where),
        AscendC::detail::local_at(static_cast<uint8_t*>(src), "copy_ubuf_to_ubuf", "src", where),
        AscendC::DataCopyParams{bursts, length, srcGap, dstGap}, where);
}

// A matrix of 16 x 16 elements of 2 bytes.
template <typename T>
void vtranspose(__ubuf__ T* dst, __ubuf__ T* src, const ascendc_host::Where& where = ascendc_host::Where()) {
    AscendC::Transpose(AscendC::detail::local_at(dst, "vtranspose", "dst", where),
                       AscendC::detail::local_at(src, "vtranspose", "src", where), where);
}
template <typename T>
void vbrcb(__ubuf__ T* dst, __ubuf__ T* src, uint16_t dstBlockStride, uint16_t dstRepeatStride,
           uint8_t repeat, const ascendc_host::Where& where = ascendc_host::Where()) {
    AscendC::Brcb(AscendC::detail::local_at(dst, "vbrcb", "dst", where),
                  AscendC::detail::local_at(src, "vbrcb", "src", where), repeat,
                  AscendC::BrcbRepeatParams(dstBlockStride, dstRepeatStride), where);
}
// Elements at byte offsets from an address.
template <typename T>
void vgather(__ubuf__ T* dst, __ubuf__ uint32_t* offset, uint64_t src, uint16_t dstRepeatStride,
             uint8_t repeat, const ascendc_host::Where& where = ascendc_host::Where()) {
    using namespace AscendC::detail;
    gather_repeats(
        local_at(dst, "vgather", "dst", where), local_at(reinterpret_cast<T*>(src), "vgather", "src", where),
        local_at(offset, "vgather", "offset", where), 0, register_mask(), repeat, dstRepeatStride, where);
}
template <typename T>
void vbitsort(__ubuf__ T* dst, __ubuf__ T* src0, __ubuf__ uint32_t* src1, uint8_t repeat,
              const ascendc_host::Where& where = ascendc_host::Where()) {
    AscendC::Sort32(AscendC::detail::local_at(dst, "vbitsort", "dst", where),
                    AscendC::detail::local_at(src0, "vbitsort", "src0", where),
                    AscendC::detail::local_at(src1, "vbitsort", "src1", where), repeat, where);
}

// Sixteen rows become columns; their addresses are in two registers each of source and destination.
inline void set_va_reg_sb(ub_addr8_t which, const uint64_t* addresses) {
    std::copy_n(addresses, 8, ascendc_host::current().addresses[which]);
}
namespace AscendC {
namespace detail {
template <typename T>
void scatter_rows(const char* api, ub_addr8_t dst, ub_addr8_t src, const TransDataTo5HDParams& params,
                  const Where& where) {
    auto& registers = ascendc_host::enter(where).addresses;
    if (dst == VA7 || src == VA7)
        ascendc_host::fail(ascendc_host::current(), where,
                           ascendc_host::format("%s: VA7 is the last register; each operand takes two", api));
    TransDataTo5HD<T>(registers[dst], registers[src], params, where);
}
}  // namespace detail
}  // namespace AscendC
inline void scatter_vnchwconv_b8(ub_addr8_t dst, ub_addr8_t src, uint8_t repeat, uint16_t dstStride,
                                 uint16_t srcStride, bool dstHighHalf, bool srcHighHalf,
                                 const ascendc_host::Where& where = ascendc_host::Where()) {
    AscendC::detail::scatter_rows<uint8_t>("scatter_vnchwconv_b8", dst, src,
                                           {dstHighHalf, srcHighHalf, repeat, dstStride, srcStride}, where);
}
inline void scatter_vnchwconv_b16(ub_addr8_t dst, ub_addr8_t src, uint8_t repeat, uint16_t dstStride,
                                  uint16_t srcStride,
                                  const ascendc_host::Where& where = ascendc_host::Where()) {
    AscendC::detail::scatter_rows<uint16_t>("scatter_vnchwconv_b16", dst, src,
                                            {false, false, repeat, dstStride, srcStride}, where);
}
inline void scatter_vnchwconv_b32(ub_addr8_t dst, ub_addr8_t src, uint8_t repeat, uint16_t dstStride,
                                  uint16_t srcStride,
                                  const ascendc_host::Where& where = ascendc_host::Where()) {
    AscendC::detail::scatter_rows<uint32_t>("scatter_vnchwconv_b32", dst, src,
                                            {false, false, repeat, dstStride, srcStride}, where);
}

#endif

#endif  // ASCENDC_HOST_INTERNAL_INSTRUCTION_COPIES_H
