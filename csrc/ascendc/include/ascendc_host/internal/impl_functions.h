// Functions and instructions on plain addresses, under the API, which operators of CANN and
// tiling headers of the first releases call. An address in the unified buffer becomes the tensor of all bytes
// from there on, under the rules of the function above.
#ifndef ASCENDC_HOST_INTERNAL_IMPL_FUNCTIONS_H
#define ASCENDC_HOST_INTERNAL_IMPL_FUNCTIONS_H

#include "ascendc_host/basic_api/arithmetic.h"
#include "ascendc_host/basic_api/cast.h"
#include "ascendc_host/basic_api/compare.h"
#include "ascendc_host/basic_api/copy.h"
#include "ascendc_host/basic_api/copy_pad.h"
#include "ascendc_host/basic_api/cube.h"
#include "ascendc_host/basic_api/reduce.h"
#include "ascendc_host/basic_api/sync.h"

namespace AscendC {
namespace detail {
template <typename T>
LocalTensor<T> local_at(__ubuf__ T* address, const char* api, const char* name, const Where& where) {
    ascendc_host::Block& block = ascendc_host::enter(where);
    const auto* begin = reinterpret_cast<const T*>(block.memory(ascendc_host::Memory::ub));
    const size_t bytes = ascendc_host::memory_bytes(ascendc_host::Memory::ub);
    if (address < begin || address >= begin + bytes / sizeof(T)) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format("%s: %s is not in the unified buffer of %zu bytes", api, name, bytes));
    }
    const auto at = static_cast<uint32_t>((address - begin) * sizeof(T));
    return LocalTensor<T>(TPosition::VECCALC, at, static_cast<uint32_t>((bytes - at) / sizeof(T)), where);
}
template <typename T>
GlobalTensor<T> global_at(__gm__ T* address) {
    GlobalTensor<T> tensor;
    tensor.SetGlobalBuffer(address);
    return tensor;
}
}  // namespace detail

inline int64_t GetBlockIdxImpl() { return GetBlockIdx(); }
inline int64_t GetSubBlockIdxImpl() { return GetSubBlockIdx(); }

template <typename T>
void DataCopyGM2UBImpl(__ubuf__ T* dst, __gm__ T* src, const DataCopyParams& params, Where where = Where()) {
    DataCopy(detail::local_at(dst, "DataCopy", "dst", where), detail::global_at(src), params, where);
}
template <typename T>
void DataCopyUB2GMImpl(__gm__ T* dst, __ubuf__ T* src, const DataCopyParams& params, Where where = Where()) {
    DataCopy(detail::global_at(dst), detail::local_at(src, "DataCopy", "src", where), params, where);
}
template <typename T>
void DataCopyPadGm2UBImpl(__ubuf__ T* dst, __gm__ T* src, const DataCopyParams& params,
                          const DataCopyPadParams& pad, Where where = Where()) {
    DataCopyPad(detail::local_at(dst, "DataCopyPad", "dst", where), detail::global_at(src), params, pad,
                where);
}
template <typename T>
void DataCopyPadGm2UBImpl(__ubuf__ T* dst, __gm__ T* src, const DataCopyExtParams& params,
                          const DataCopyPadExtParams<T>& pad, Where where = Where()) {
    DataCopyPad(detail::local_at(dst, "DataCopyPad", "dst", where), detail::global_at(src), params, pad,
                where);
}
template <typename T>
void DataCopyPadUB2GMImpl(__gm__ T* dst, __ubuf__ T* src, const DataCopyParams& params,
                          Where where = Where()) {
    DataCopyPad(detail::global_at(dst), detail::local_at(src, "DataCopyPad", "src", where), params, where);
}
template <typename T>
void DataCopyPadUB2GMImpl(__gm__ T* dst, __ubuf__ T* src, const DataCopyExtParams& params,
                          Where where = Where()) {
    DataCopyPad(detail::global_at(dst), detail::local_at(src, "DataCopyPad", "src", where), params, where);
}

template <typename T, typename U>
void CastImpl(__ubuf__ T* dst, __ubuf__ U* src, const RoundMode& roundMode, uint32_t count,
              Where where = Where()) {
    Cast(detail::local_at(dst, "Cast", "dst", where), detail::local_at(src, "Cast", "src", where), roundMode,
         count, where);
}
// The mask is a number or bits.
template <typename T, typename U, bool isSetMask = true, typename Mask>
void CastImpl(__ubuf__ T* dst, __ubuf__ U* src, const RoundMode& roundMode, const Mask& mask,
              uint8_t repeatTime, const UnaryRepeatParams& repeatParams, Where where = Where()) {
    Cast<T, U, isSetMask>(detail::local_at(dst, "Cast", "dst", where),
                          detail::local_at(src, "Cast", "src", where), roundMode, mask, repeatTime,
                          repeatParams, where);
}
template <typename T, typename U, bool isSetMask = true, typename Mask>
void VcmpvImpl(__ubuf__ U* dst, __ubuf__ T* src0, __ubuf__ T* src1, CMPMODE cmpMode, const Mask& mask,
               uint8_t repeatTime, const BinaryRepeatParams& repeatParams, Where where = Where()) {
    Compare<T, U, isSetMask>(
        detail::local_at(dst, "Compare", "dst", where), detail::local_at(src0, "Compare", "src0", where),
        detail::local_at(src1, "Compare", "src1", where), cmpMode, mask, repeatTime, repeatParams, where);
}
template <typename T>
void NotImpl(__ubuf__ T* dst, __ubuf__ T* src, const int32_t& count, Where where = Where()) {
    Not(detail::local_at(dst, "Not", "dst", where), detail::local_at(src, "Not", "src", where), count, where);
}
template <typename T, bool isSetMask = true, typename Mask>
void NotImpl(__ubuf__ T* dst, __ubuf__ T* src, const Mask& mask, uint8_t repeatTime,
             const UnaryRepeatParams& repeatParams, Where where = Where()) {
    Not<T, isSetMask>(detail::local_at(dst, "Not", "dst", where), detail::local_at(src, "Not", "src", where),
                      mask, repeatTime, repeatParams, where);
}

#if __NPU_ARCH__ != 3510
inline void SetMaskNormImpl() { SetMaskNorm(); }
inline void SetMaskCountImpl() { SetMaskCount(); }

// Under the mask that is set.
template <typename T>
void DuplicateIntrinsicsImpl(__ubuf__ T* dst, T scalarValue, uint8_t repeatTime, uint16_t dstBlockStride,
                             uint8_t dstRepeatStride, Where where = Where()) {
    detail::duplicate_repeats<T>(detail::local_at(dst, "Duplicate", "dst", where), scalarValue,
                                 detail::register_mask(), repeatTime, dstBlockStride, dstRepeatStride, where);
}
template <typename T>
void BlockReduceSumIntrinsicsImpl(__ubuf__ T* dst, __ubuf__ T* src, int32_t repeatTime, int32_t dstRepStride,
                                  int32_t srcBlkStride, int32_t srcRepStride, Where where = Where()) {
    BlockReduceSum<T, false>(detail::local_at(dst, "BlockReduceSum", "dst", where),
                             detail::local_at(src, "BlockReduceSum", "src", where), repeatTime, int32_t{0},
                             dstRepStride, srcBlkStride, srcRepStride, where);
}
template <typename T>
void BlockReduceMaxIntrinsicsImpl(__ubuf__ T* dst, __ubuf__ T* src, int32_t repeatTime, int32_t dstRepStride,
                                  int32_t srcBlkStride, int32_t srcRepStride, Where where = Where()) {
    BlockReduceMax<T, false>(detail::local_at(dst, "BlockReduceMax", "dst", where),
                             detail::local_at(src, "BlockReduceMax", "src", where), repeatTime, int32_t{0},
                             dstRepStride, srcBlkStride, srcRepStride, where);
}
template <typename T>
void BlockReduceMinIntrinsicsImpl(__ubuf__ T* dst, __ubuf__ T* src, int32_t repeatTime, int32_t dstRepStride,
                                  int32_t srcBlkStride, int32_t srcRepStride, Where where = Where()) {
    BlockReduceMin<T, false>(detail::local_at(dst, "BlockReduceMin", "dst", where),
                             detail::local_at(src, "BlockReduceMin", "src", where), repeatTime, int32_t{0},
                             dstRepStride, srcBlkStride, srcRepStride, where);
}

// The number of matrices, and the distances between them in L0C and in global memory, 16 bits each.
inline void SetNdParaImpl(uint64_t config) {
    SetFixpipeNz2ndFlag(static_cast<uint16_t>(config), static_cast<uint16_t>(config >> 16),
                        static_cast<uint16_t>(config >> 32));
}
#endif
template <typename T, bool setRelu = false>
void SetFixPipeConfigImpl(const LocalTensor<T>& preData, bool isUnitFlag = false, Where where = Where()) {
    SetFixPipeConfig<T, setRelu>(preData, isUnitFlag, where);
}
template <typename T>
void SetFixPipeConfigImpl(const LocalTensor<T>& reluPre, const LocalTensor<T>& quantPre,
                          bool isUnitFlag = false, Where where = Where()) {
    SetFixPipeConfig(reluPre, quantPre, isUnitFlag, where);
}

}  // namespace AscendC

// The instructions under DataCopy: bursts of 32 byte blocks with gaps of whole blocks.
namespace ascendc_host {
inline void copy_bursts(const char* name, const Where& where, uint8_t* local, uint8_t* global, bool to_local,
                        uint32_t bursts, uint32_t length, uint32_t source_gap, uint32_t target_gap) {
    constexpr size_t block_bytes = 32;
    const Block& block = enter(where);
    const size_t local_gap = to_local ? target_gap : source_gap;
    const size_t global_gap = to_local ? source_gap : target_gap;
    const auto span = [&](size_t gap) {
        return bursts == 0 ? 0 : (bursts * (length + gap) - gap) * block_bytes;
    };
    const uint8_t* begin = block.memory(Memory::ub);
    const size_t at = static_cast<size_t>(local - begin);
    if (local < begin || at + span(local_gap) > memory_bytes(Memory::ub))
        fail(block, where,
             format("%s: beyond the unified buffer of %u bytes", name, memory_bytes(Memory::ub)));
    if (at % block_bytes != 0)
        fail(block, where, format("%s: byte %zu of the unified buffer is not a multiple of 32", name, at));
    if (global == nullptr || allocation_rest(global) < span(global_gap)) {
        fail(block, where,
             format("%s: %zu bytes of global memory, where %zu are allocated", name, span(global_gap),
                    global == nullptr ? size_t{0} : allocation_rest(global)));
    }
    for (size_t i = 0; i < bursts; ++i) {
        uint8_t* near = local + i * (length + local_gap) * block_bytes;
        uint8_t* far = global + i * (length + global_gap) * block_bytes;
        std::memcpy(to_local ? near : far, to_local ? far : near, length * block_bytes);
    }
}
}  // namespace ascendc_host

inline int64_t get_rsvd_cnt() { return AscendC::AscendCUtils::GetRsvdCnt(); }
// An address in the unified buffer, as a number.
inline int64_t get_imm(int64_t offset) {
    return reinterpret_cast<int64_t>(ascendc_host::current().memory(ascendc_host::Memory::ub)) + offset;
}
inline void copy_gm_to_ubuf(__ubuf__ void* target, __gm__ void* source, uint8_t, uint16_t bursts,
                            uint16_t length, uint16_t source_gap, uint16_t target_gap,
                            const ascendc_host::Where& where = ascendc_host::Where()) {
    ascendc_host::copy_bursts("copy_gm_to_ubuf", where, static_cast<uint8_t*>(target),
                              static_cast<uint8_t*>(source), true, bursts, length, source_gap, target_gap);
}
inline void copy_ubuf_to_gm(__gm__ void* target, __ubuf__ void* source, uint8_t, uint16_t bursts,
                            uint16_t length, uint16_t source_gap, uint16_t target_gap,
                            const ascendc_host::Where& where = ascendc_host::Where()) {
    ascendc_host::copy_bursts("copy_ubuf_to_gm", where, static_cast<uint8_t*>(source),
                              static_cast<uint8_t*>(target), false, bursts, length, source_gap, target_gap);
}

#endif  // ASCENDC_HOST_INTERNAL_IMPL_FUNCTIONS_H
