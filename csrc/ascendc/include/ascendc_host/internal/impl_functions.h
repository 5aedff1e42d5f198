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
#include "ascendc_host/basic_api/feature_map.h"
#include "ascendc_host/basic_api/reduce.h"
#include "ascendc_host/basic_api/reshape.h"
#include "ascendc_host/basic_api/sync.h"

namespace AscendC {
namespace detail {
// The tensor from an address on. Addresses are those of tensors, or bytes from the memory's begin, as on the
// device: `reinterpret_cast<__ubuf__ float*>(uintptr_t(1024))`. No address of the host is that small.
template <typename T>
LocalTensor<T> local_at(T* address, const char* api, const char* name, const Where& where,
                        TPosition position = TPosition::VECCALC) {
    ascendc_host::Block& block = ascendc_host::enter(where);
    const ascendc_host::Memory memory = memory_of(position);
    const uint64_t size = ascendc_host::memory_bytes(memory);
    const auto number = reinterpret_cast<uint64_t>(address);
    const uint64_t at = number < size ? number : number - reinterpret_cast<uint64_t>(block.memory(memory));
    if (at >= size) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format("%s: %s is not in the %s of %llu bytes", api, name,
                                 ascendc_host::memory_name(memory), static_cast<unsigned long long>(size)));
    }
    return LocalTensor<T>(position, static_cast<uint32_t>(at), static_cast<uint32_t>((size - at) / sizeof(T)),
                          where);
}
template <typename T>
GlobalTensor<T> global_at(__gm__ T* address) {
    GlobalTensor<T> tensor;
    tensor.SetGlobalBuffer(address);
    return tensor;
}
// Bursts of `length` blocks between a local and global memory, with gaps of blocks.
inline void copy_block_bursts(const char* api, void* local, void* global, TPosition position, bool to_local,
                              uint16_t bursts, uint16_t length, uint16_t global_gap, uint16_t local_gap,
                              const Where& where) {
    const auto near = local_at(static_cast<uint8_t*>(local), api, to_local ? "dst" : "src", where, position);
    const auto far = global_at(static_cast<uint8_t*>(global));
    check_blocks(bursts, length, api, where);
    const DataCopyParams params{bursts, length, global_gap, local_gap};
    const Rows here = rows_of(params, local_gap, 32), there = rows_of(params, global_gap, 32);
    if (to_local) {
        copy_in(near, far, here, there, api, where);
    } else {
        copy_out(far, near, there, here, api, where);
    }
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

// Lists of the addresses of 16 rows.
template <typename T>
void TransDataTo5HDImpl(uint64_t dstList[NCHW_CONV_ADDR_LIST_SIZE],
                        uint64_t srcList[NCHW_CONV_ADDR_LIST_SIZE], const TransDataTo5HDParams& params,
                        Where where = Where()) {
    TransDataTo5HD<T>(dstList, srcList, params, where);
}
template <typename T>
void TransDataTo5HDImpl(__ubuf__ T* dstList[NCHW_CONV_ADDR_LIST_SIZE],
                        __ubuf__ T* srcList[NCHW_CONV_ADDR_LIST_SIZE], const TransDataTo5HDParams& params,
                        Where where = Where()) {
    uint64_t dst[NCHW_CONV_ADDR_LIST_SIZE], src[NCHW_CONV_ADDR_LIST_SIZE];
    for (int32_t i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; ++i) {
        dst[i] = detail::local_at(dstList[i], "TransDataTo5HD", "dstList", where).GetPhyAddr();
        src[i] = detail::local_at(srcList[i], "TransDataTo5HD", "srcList", where).GetPhyAddr();
    }
    TransDataTo5HD<T>(dst, src, params, where);
}

template <typename T>
void DuplicateImpl(__ubuf__ T* dst, const T& scalarValue, const int32_t& count, Where where = Where()) {
    Duplicate(detail::local_at(dst, "Duplicate", "dst", where), scalarValue, count, where);
}

// Of tensors.
template <typename T, typename U, typename S>
void MmadImpl(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<S>& filter,
              const MmadParams& params, Where where = Where()) {
    Mmad(dst, fm, filter, params, where);
}
template <typename T, typename Params>
void LoadDataImpl(const LocalTensor<T>& dst, const LocalTensor<T>& src, const Params& params,
                  Where where = Where()) {
    LoadData(dst, src, params, where);
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

inline int64_t get_rsvd_cnt() { return AscendC::AscendCUtils::GetRsvdCnt(); }
// An address in the unified buffer, as a number.
inline int64_t get_imm(int64_t offset) {
    return reinterpret_cast<int64_t>(ascendc_host::current().memory(ascendc_host::Memory::ub)) + offset;
}
// Bursts of blocks of 32 bytes with gaps of whole blocks.
inline void copy_gm_to_ubuf(__ubuf__ void* dst, __gm__ void* src, uint8_t, uint16_t bursts, uint16_t length,
                            uint16_t srcGap, uint16_t dstGap,
                            const ascendc_host::Where& where = ascendc_host::Where()) {
    AscendC::detail::copy_block_bursts("copy_gm_to_ubuf", dst, src, AscendC::TPosition::VECCALC, true, bursts,
                                       length, srcGap, dstGap, where);
}
inline void copy_ubuf_to_gm(__gm__ void* dst, __ubuf__ void* src, uint8_t, uint16_t bursts, uint16_t length,
                            uint16_t srcGap, uint16_t dstGap,
                            const ascendc_host::Where& where = ascendc_host::Where()) {
    AscendC::detail::copy_block_bursts("copy_ubuf_to_gm", src, dst, AscendC::TPosition::VECCALC, false,
                                       bursts, length, dstGap, srcGap, where);
}

#endif  // ASCENDC_HOST_INTERNAL_IMPL_FUNCTIONS_H
