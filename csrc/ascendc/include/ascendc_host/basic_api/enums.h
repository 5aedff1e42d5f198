// The enumerations and constants of the Ascend C API.
#ifndef ASCENDC_HOST_BASIC_API_ENUMS_H
#define ASCENDC_HOST_BASIC_API_ENUMS_H

#include <cstdint>

#include "ascendc_host/internal/compiler_names.h"
#include "ascendc_host/internal/float8.h"
#include "ascendc_host/internal/int4.h"
#include "ascendc_host/internal/numbers.h"
#include "ascendc_host/internal/qualifiers.h"
#include "ascendc_host/internal/runtime.h"
#include "ascendc_host/internal/sizes.h"

enum KernelMetaType {
    KERNEL_TYPE_AIV_ONLY,
    KERNEL_TYPE_AIC_ONLY,
    KERNEL_TYPE_MIX_AIV_1_0,
    KERNEL_TYPE_MIX_AIC_1_0,
    KERNEL_TYPE_MIX_AIC_1_1,
    KERNEL_TYPE_MIX_AIC_1_2,
    KERNEL_TYPE_AICORE,
    KERNEL_TYPE_VECTORCORE,
    KERNEL_TYPE_MIX_AICORE,
    KERNEL_TYPE_MIX_VECTOR_CORE,
    KERNEL_TYPE_MAX
};

namespace AscendC {

enum class TPosition : uint8_t {
    GM,
    A1,
    A2,
    B1,
    B2,
    C1,
    C2,
    CO1,
    CO2,
    VECIN,
    VECOUT,
    VECCALC,
    LCM = VECCALC,
    SPM,
    SHM = SPM,
    TSCM,
    C2PIPE2GM,
    C2PIPE2LOCAL,
    MAX
};
using QuePosition = TPosition;

enum class Hardware : uint8_t { GM, UB, L1, L0A, L0B, L0C, BIAS, FIXBUF, MAX };

enum class HardEvent : uint8_t {
    MTE2_MTE1,
    MTE1_MTE2,
    MTE1_M,
    M_MTE1,
    MTE2_V,
    V_MTE2,
    MTE3_V,
    V_MTE3,
    M_V,
    V_M,
    V_V,
    MTE3_MTE1,
    MTE1_MTE3,
    MTE1_V,
    MTE2_M,
    M_MTE2,
    V_MTE1,
    M_FIX,
    FIX_M,
    MTE3_MTE2,
    MTE2_MTE3,
    S_V,
    V_S,
    S_MTE2,
    MTE2_S,
    S_MTE3,
    MTE3_S,
    MTE2_FIX,
    FIX_MTE2,
    FIX_S,
    M_S,
    FIX_MTE3,
    MTE1_FIX,
    FIX_MTE1,
    FIX_FIX,
    FIX_V,
    V_FIX,
    MAX
};
using TEventID = int32_t;
constexpr TEventID INVALID_TEVENTID = -1;

enum class MemoryT : uint8_t { L1 = 0, L0A, L0B, L0C, UB, BIAS };
enum class MemDsbT : uint8_t { ALL = 0, DDR, UB, SEQ };
enum class MaskMode : uint8_t { NORMAL = 0, COUNTER };
enum class RoundMode : uint8_t {
    CAST_NONE = 0,
    CAST_RINT,
    CAST_FLOOR,
    CAST_CEIL,
    CAST_ROUND,
    CAST_TRUNC,
    CAST_ODD,
    CAST_HYBRID,
    CAST_EVEN,
    CAST_ZERO,
    UNKNOWN = 0xFF
};
enum class CMPMODE : uint8_t { LT = 0, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR = 0, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class BlockMode : uint8_t {
    BLOCK_MODE_NORMAL = 0,
    BLOCK_MODE_MATRIX,
    BLOCK_MODE_VECTOR,
    BLOCK_MODE_SMALL_CHANNEL,
    BLOCK_MODE_DEPTHWISE
};
enum class DeqScale : uint8_t { DEQ_NONE = 0, DEQ, VDEQ, DEQ8, VDEQ8, DEQ16, VDEQ16 };
enum class ReduceMode : uint8_t { REDUCE_MAX = 0, REDUCE_MIN, REDUCE_SUM };
enum class ReduceType : uint8_t { SUM = 0, MAX, MIN };
enum class ReduceOrder : uint8_t {
    ORDER_VALUE_INDEX = 0,
    ORDER_INDEX_VALUE,
    ORDER_ONLY_VALUE,
    ORDER_ONLY_INDEX
};
enum class GatherMaskMode : uint8_t { VERSION_V1 = 0, VERSION_V2 = 1 };
enum class CacheMode : uint8_t {
    CACHE_MODE_DISABLE = 0,
    CACHE_MODE_NORMAL = 1,
    CACHE_MODE_LAST = 2,
    CACHE_MODE_PERSISTENT = 4
};
enum class CacheRwMode : uint8_t { READ = 1, WRITE = 2, RW = 3 };
enum class CacheLine : uint64_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE };
enum class DcciDst : uint64_t { CACHELINE_ALL = 0, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum class AtomicDtype {
    ATOMIC_NONE = 0,
    ATOMIC_F32,
    ATOMIC_F16,
    ATOMIC_S16,
    ATOMIC_S32,
    ATOMIC_S8,
    ATOMIC_BF16
};
enum class AtomicOp { ATOMIC_SUM = 0 };
enum KernelCore { AIC = 1, AIV = 2, MIX = 3 };

enum class TBufState : uint8_t { FREE = 0, OCCUPIED, ENQUE, DEQUE };
using TTagType = int32_t;

// MASK_PLACEHOLDER stands where a mask was set with SetVectorMask.
constexpr uint64_t MASK_PLACEHOLDER = 0;
static const uint64_t MASK_PLACEHOLDER_LIST[2] = {0, 0};

constexpr int32_t ONE_BLOCK_SIZE = 32;
constexpr uint32_t CACHE_LINE_SIZE = 64;
constexpr int32_t ONE_REPEAT_BYTE_SIZE = 256;
constexpr int32_t DEFAULT_BLOCK_SIZE = 256;
constexpr int32_t ONE_BYTE_BIT_SIZE = 8;
constexpr int32_t DEFAULT_C0_SIZE = 32;
constexpr int32_t DEFAULT_BLK_NUM = 8;
constexpr int32_t DEFAULT_BLK_STRIDE = 1;
constexpr int32_t DEFAULT_REPEAT_STRIDE = 8;
constexpr int32_t HALF_DEFAULT_REPEAT_STRIDE = 4;
constexpr int32_t ONE_FOURTH_DEFAULT_REPEAT_STRIDE = 2;
constexpr int32_t MIN_REPEAT_TIMES = 0;
constexpr int32_t MAX_REPEAT_TIMES = 255;
constexpr uint8_t DEFAULT_DATA_COPY_NBURST = 1;
constexpr uint8_t DEFAULT_DATA_COPY_STRIDE = 0;
constexpr uint64_t FULL_MASK = ~uint64_t{0};
constexpr int32_t FULL_MASK_LEN = 128;
constexpr int32_t BYTE_PER_FRACTAL = 512;
// Sizes of elements in bytes, and how many of them a block of 32 bytes and a repeat of 256 have.
constexpr uint8_t B8_BYTE_SIZE = 1;
constexpr uint8_t B16_BYTE_SIZE = 2;
constexpr uint8_t B32_BYTE_SIZE = 4;
constexpr uint8_t B64_BYTE_SIZE = 8;
constexpr uint8_t B16_DATA_NUM_PER_BLOCK = 16;
constexpr uint8_t B32_DATA_NUM_PER_BLOCK = 8;
constexpr int32_t B16_DATA_NUM_PER_REPEAT = 128;
constexpr int32_t B32_DATA_NUM_PER_REPEAT = 64;
constexpr uint32_t ONE_BLK_HALF_NUM = 16;
constexpr uint32_t ONE_BLK_FLOAT_NUM = 8;
constexpr uint32_t HALF_REPEAT_SIZE = 128;
constexpr uint32_t FLOAT_REPEAT_SIZE = 64;
constexpr uint32_t ONE_REPEAT_HALF_SIZE = 128;
constexpr uint32_t ONE_REPEAT_FLOAT_SIZE = 64;
constexpr uint32_t MAX_REPEAT_HALF_SIZE = ONE_REPEAT_HALF_SIZE * MAX_REPEAT_TIMES;
constexpr uint32_t MAX_REPEAT_FLOAT_SIZE = ONE_REPEAT_FLOAT_SIZE * MAX_REPEAT_TIMES;
constexpr uint32_t BRCB_BROADCAST_NUMBER = 8;
// Bits of a float.
constexpr uint32_t F32_INF = 0x7f800000;
constexpr uint32_t F32_NEG_INF = 0xff800000;
constexpr uint32_t F32_NAN = 0x7fc00000;
constexpr int32_t CUBE_MAX_SIZE = 256;
constexpr int32_t TOTAL_UB_SIZE = ascendc_host::memory_bytes(ascendc_host::Memory::ub);
constexpr int32_t TOTAL_VEC_LOCAL_SIZE = TOTAL_UB_SIZE - 8 * 1024;
constexpr int32_t TOTAL_L1_SIZE = 512 * 1024;
constexpr int32_t TOTAL_L0A_SIZE = 64 * 1024;
constexpr int32_t TOTAL_L0B_SIZE = 64 * 1024;
constexpr int32_t TOTAL_L0C_SIZE = ascendc_host::memory_bytes(ascendc_host::Memory::l0c);
// A macro, which sources may define before: 0 keeps no shapes in tensors.
#ifndef K_MAX_SHAPE_DIM
#define K_MAX_SHAPE_DIM 8
#endif
constexpr int32_t K_MAX_DIM = 8;
constexpr int32_t NCHW_CONV_ADDR_LIST_SIZE = 16;
constexpr int32_t MRG_SORT_ELEMENT_LEN = 4;
constexpr int32_t VDEQ_TENSOR_SIZE = 16;
constexpr int32_t PAD_SIZE = 4;
constexpr uint64_t RESERVED_WORKSPACE = 16 * 1024 * 1024;

// One element of the type T; the traits of tensors are the type itself.
template <typename T>
using PrimT = T;
template <bool condition>
struct BoolInst {
    using Type = BoolInst<condition>;
    static constexpr bool value = condition;
};
using TrueType = BoolInst<true>;
using FalseType = BoolInst<false>;
template <typename T, typename U>
struct IsSameType : BoolInst<std::is_same<T, U>::value> {};
template <bool condition, typename T, typename F>
using Conditional = std::conditional<condition, T, F>;
namespace Std = ::std;
template <typename T, typename... Others>
constexpr bool SupportType() {
    return (std::is_same<T, Others>::value || ...);
}

// Of scalars, and not templates, as CANN's: a kernel's own functions of these names are preferred to them.
constexpr uint32_t DivCeil(uint32_t a, uint32_t b) { return b == 0 ? 0 : (a + b - 1) / b; }
constexpr uint32_t AlignUp(uint32_t a, uint32_t b) { return DivCeil(a, b) * b; }
constexpr uint32_t ConstCeil(uint32_t a, uint32_t b) { return DivCeil(a, b); }
inline uint32_t Ceil(uint32_t a, uint32_t b) { return DivCeil(a, b); }
constexpr int32_t CeilDivision(int32_t a, int32_t b) { return b == 0 ? 0 : (a + b - 1) / b; }

// The physical memory behind a position. CO2 is the unified buffer, where unified cores keep results of the
// cube.
constexpr ascendc_host::Memory memory_of(TPosition position) {
    using ascendc_host::Memory;
    switch (position) {
        case TPosition::A1:
        case TPosition::B1:
        case TPosition::C1:
        case TPosition::TSCM:
            return Memory::l1;
        case TPosition::A2:
            return Memory::l0a;
        case TPosition::B2:
            return Memory::l0b;
        case TPosition::C2:
            return Memory::bias;
        case TPosition::CO1:
            return Memory::l0c;
        case TPosition::C2PIPE2GM:
        case TPosition::C2PIPE2LOCAL:
            return Memory::fixpipe;
        case TPosition::GM:
        case TPosition::MAX:
            return Memory::count;
        default:
            return Memory::ub;
    }
}
constexpr const char* position_name(TPosition position) {
    constexpr const char* names[] = {"GM",  "A1",   "A2",        "B1",           "B2",     "C1",
                                     "C2",  "CO1",  "CO2",       "VECIN",        "VECOUT", "VECCALC",
                                     "SPM", "TSCM", "C2PIPE2GM", "C2PIPE2LOCAL", "MAX"};
    return names[static_cast<size_t>(position)];
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_ENUMS_H
