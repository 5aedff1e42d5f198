// The instructions of the cube core by the compiler's names for them, on addresses in L1, L0A, L0B and L0C:
// see instructions.h.
#ifndef ASCENDC_HOST_INTERNAL_CUBE_INSTRUCTIONS_H
#define ASCENDC_HOST_INTERNAL_CUBE_INSTRUCTIONS_H

#include "ascendc_host/basic_api/cube.h"
#include "ascendc_host/basic_api/feature_map.h"
#include "ascendc_host/internal/impl_functions.h"

// --- atomic accumulation: how, and the type

inline void set_atomic_none() { AscendC::SetAtomicNone(); }
inline void set_atomic_add() { ascendc_host::current().atomic = ascendc_host::Block::Atomic::add; }
inline void set_atomic_max() { ascendc_host::current().atomic = ascendc_host::Block::Atomic::max; }
inline void set_atomic_min() { ascendc_host::current().atomic = ascendc_host::Block::Atomic::min; }
inline void set_atomic_bf16() { AscendC::SetAtomicType<bfloat16_t>(); }
inline void set_atomic_f16() { AscendC::SetAtomicType<half>(); }
inline void set_atomic_f32() { AscendC::SetAtomicType<float>(); }
inline void set_atomic_s16() { AscendC::SetAtomicType<int16_t>(); }
inline void set_atomic_s32() { AscendC::SetAtomicType<int32_t>(); }
inline void set_atomic_s8() { AscendC::SetAtomicType<int8_t>(); }

// dav-3510 has other arguments for the rest.
#if __NPU_ARCH__ != 3510

// --- registers

template <typename T>
void set_padding(T value) {
    AscendC::SetLoadDataPaddingValue(value);
}
inline void set_nd_para(uint64_t config) { AscendC::SetNdParaImpl(config); }
inline void set_quant_pre(uint64_t config) { AscendC::SetFixpipePreQuantFlag(config); }

// --- global memory to L1

// Bursts of blocks of 32 bytes; the modes that pad shorter elements are not supported.
inline void copy_gm_to_cbuf(__cbuf__ void* dst, __gm__ void* src, uint8_t, uint16_t bursts, uint16_t length,
                            uint16_t srcGap, uint16_t dstGap, pad_t pad,
                            const ascendc_host::Where& where = ascendc_host::Where()) {
    if (pad != PAD_NONE)
        ascendc_host::fail(ascendc_host::enter(where), where,
                           "copy_gm_to_cbuf: the pad mode must be PAD_NONE on the host");
    AscendC::detail::copy_block_bursts("copy_gm_to_cbuf", dst, src, AscendC::TPosition::A1, true, bursts,
                                       length, srcGap, dstGap, where);
}
inline void copy_cbuf_to_gm(__gm__ void* dst, __cbuf__ void* src, uint8_t, uint16_t bursts, uint16_t length,
                            uint16_t srcGap, uint16_t dstGap,
                            const ascendc_host::Where& where = ascendc_host::Where()) {
    AscendC::detail::copy_block_bursts("copy_cbuf_to_gm", src, dst, AscendC::TPosition::A1, false, bursts,
                                       length, dstGap, srcGap, where);
}
// Matrices from rows to fractals; the sizes and strides are those of Nd2NzParams.
#define ASCENDC_ND_TO_NZ(suffix, bytes)                                                                  \
    template <typename T>                                                                                \
    void copy_gm_to_cbuf_multi_nd2nz_##suffix(                                                           \
        __cbuf__ T* dst, __gm__ AscendC::detail::Same<T>* src, uint8_t, uint16_t ndNum, uint16_t nValue, \
        uint16_t dValue, uint16_t srcNdMatrixStride, uint16_t srcDValue, uint16_t dstNzC0Stride,         \
        uint16_t dstNzNStride, uint16_t dstNzMatrixStride,                                               \
        const ascendc_host::Where& where = ascendc_host::Where()) {                                      \
        static_assert(sizeof(T) == (bytes), "copy_gm_to_cbuf_multi_nd2nz_" #suffix                       \
                                            ": the elements must have the size that the name says");     \
        AscendC::DataCopy(AscendC::detail::local_at(dst, "copy_gm_to_cbuf_multi_nd2nz_" #suffix, "dst",  \
                                                    where, AscendC::TPosition::A1),                      \
                          AscendC::detail::global_at(src),                                               \
                          AscendC::Nd2NzParams(ndNum, nValue, dValue, srcNdMatrixStride, srcDValue,      \
                                               dstNzC0Stride, dstNzNStride, dstNzMatrixStride),          \
                          where);                                                                        \
    }
ASCENDC_ND_TO_NZ(b8, 1)
ASCENDC_ND_TO_NZ(b16, 2)
ASCENDC_ND_TO_NZ(b32s, 4)
#undef ASCENDC_ND_TO_NZ

// --- fractals to L0A and L0B

#define ASCENDC_LOAD(memory, position)                                                                       \
    template <typename T>                                                                                    \
    void load_cbuf_to_##memory(T* dst, AscendC::detail::Same<__cbuf__ T*> src, uint16_t start,               \
                               uint8_t repeat, uint16_t srcStride, uint16_t dstGap, uint8_t sid,             \
                               bool transpose, addr_cal_mode_t mode,                                         \
                               const ascendc_host::Where& where = ascendc_host::Where()) {                   \
        constexpr const char* api = "load_cbuf_to_" #memory;                                                 \
        AscendC::LoadData(AscendC::detail::local_at(dst, api, "dst", where, AscendC::TPosition::position),   \
                          AscendC::detail::local_at(src, api, "src", where, AscendC::TPosition::A1),         \
                          AscendC::LoadData2DParams(start, repeat, srcStride, sid, dstGap, transpose, mode), \
                          where);                                                                            \
    }                                                                                                        \
    template <typename T>                                                                                    \
    void load_gm_to_##memory(T* dst, AscendC::detail::Same<__gm__ T*> src, uint16_t start, uint8_t repeat,   \
                             uint16_t srcStride, uint16_t dstGap, uint8_t sid, addr_cal_mode_t mode,         \
                             const ascendc_host::Where& where = ascendc_host::Where()) {                     \
        AscendC::LoadData(AscendC::detail::local_at(dst, "load_gm_to_" #memory, "dst", where,                \
                                                    AscendC::TPosition::position),                           \
                          AscendC::detail::global_at(src),                                                   \
                          AscendC::LoadData2DParams(start, repeat, srcStride, sid, dstGap, false, mode),     \
                          where);                                                                            \
    }                                                                                                        \
    template <typename T>                                                                                    \
    void load_cbuf_to_##memory##_transpose(T* dst, AscendC::detail::Same<__cbuf__ T*> src, uint16_t start,   \
                                           uint8_t repeat, uint16_t srcStride, uint16_t dstGap, int mode,    \
                                           uint16_t dstFractalGap,                                           \
                                           const ascendc_host::Where& where = ascendc_host::Where()) {       \
        constexpr const char* api = "load_cbuf_to_" #memory "_transpose";                                    \
        AscendC::LoadDataWithTranspose(                                                                      \
            AscendC::detail::local_at(dst, api, "dst", where, AscendC::TPosition::position),                 \
            AscendC::detail::local_at(src, api, "src", where, AscendC::TPosition::A1),                       \
            AscendC::LoadData2dTransposeParams(start, repeat, srcStride, dstGap, dstFractalGap,              \
                                               static_cast<uint8_t>(mode)),                                  \
            where);                                                                                          \
    }
ASCENDC_LOAD(ca, A2)
ASCENDC_LOAD(cb, B2)
#undef ASCENDC_LOAD
template <typename T>
void load_gm_to_cbuf(__cbuf__ T* dst, AscendC::detail::Same<__gm__ T*> src, uint16_t start, uint8_t repeat,
                     uint16_t srcStride, uint16_t dstGap, uint8_t sid, addr_cal_mode_t mode,
                     const ascendc_host::Where& where = ascendc_host::Where()) {
    AscendC::LoadData(AscendC::detail::local_at(dst, "load_gm_to_cbuf", "dst", where, AscendC::TPosition::A1),
                      AscendC::detail::global_at(src),
                      AscendC::LoadData2DParams(start, repeat, srcStride, sid, dstGap, false, mode), where);
}

// --- multiplication, and out of L0C

template <typename T, typename A, typename B>
void mad(__cc__ T* c, __ca__ A* a, __cb__ B* b, uint16_t m, uint16_t k, uint16_t n, uint8_t unitFlag,
         bool kDirectionAlign, bool cmatrixSource, bool cmatrixInitVal,
         const ascendc_host::Where& where = ascendc_host::Where()) {
    using AscendC::TPosition;
    AscendC::MmadParams params(m, n, k, unitFlag, cmatrixSource, cmatrixInitVal);
    params.kDirectionAlign = kDirectionAlign;
    AscendC::Mmad(AscendC::detail::local_at(c, "mad", "c", where, TPosition::CO1),
                  AscendC::detail::local_at(a, "mad", "a", where, TPosition::A2),
                  AscendC::detail::local_at(b, "mad", "b", where, TPosition::B2), params, where);
}
#define ASCENDC_FIXPIPE(memory, target)                                                                  \
    template <typename T, typename U>                                                                    \
    void copy_matrix_cc_to_##memory(T* dst, __cc__ U* src, uint8_t, uint16_t nSize, uint16_t mSize,      \
                                    uint32_t dstStride, uint16_t srcStride, uint8_t unitFlag,            \
                                    uint64_t quantPre, uint8_t reluPre, bool channelSplit, bool nz2nd,   \
                                    const ascendc_host::Where& where = ascendc_host::Where()) {          \
        constexpr const char* api = "copy_matrix_cc_to_" #memory;                                        \
        AscendC::DataCopyCO12DstParams params(nSize, mSize, dstStride, srcStride,                        \
                                              static_cast<QuantMode_t>(quantPre), reluPre, channelSplit, \
                                              nz2nd);                                                    \
        params.unitFlag = unitFlag;                                                                      \
        AscendC::DataCopy(target,                                                                        \
                          AscendC::detail::local_at(src, api, "src", where, AscendC::TPosition::CO1),    \
                          params, where);                                                                \
    }
ASCENDC_FIXPIPE(gm, AscendC::detail::global_at(dst))
ASCENDC_FIXPIPE(cbuf, AscendC::detail::local_at(dst, api, "dst", where, AscendC::TPosition::A1))
#undef ASCENDC_FIXPIPE

#endif

#endif  // ASCENDC_HOST_INTERNAL_CUBE_INSTRUCTIONS_H
