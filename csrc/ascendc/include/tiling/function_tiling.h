// Tilings and temporary space of the functions of the high-level API, on the host.
#ifndef ASCENDC_HOST_FUNCTION_TILING_H
#define ASCENDC_HOST_FUNCTION_TILING_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "../kernel_tiling/kernel_tiling.h"
#include "ascendc_host/internal/algorithms.h"
#include "ascendc_host/internal/sizes.h"
#include "ascendc_host/internal/temporary_space.h"
#include "platform/platform_ascendc.h"
// ge::DataType, whose header kernels do not have on their path.
#if __has_include("graph/types.h")
#include "graph/types.h"
#elif __has_include("../op_host/graph/types.h")
#include "../op_host/graph/types.h"
#else
#include "../../../../include/op_host/graph/types.h"
#endif

namespace AscendC {

using TensorDataType = ge::DataType;

// The shape of a tensor, as the functions below take it.
class TensorShape {
  public:
    TensorShape(std::initializer_list<int64_t> sizes) : sizes_(sizes) {}
    explicit TensorShape(std::vector<int64_t> sizes) : sizes_(std::move(sizes)) {}
    size_t GetDimNum() const { return sizes_.size(); }
    int64_t GetDim(size_t index) const { return sizes_.at(index); }
    int64_t GetShapeSize() const {
        int64_t size = 1;
        for (int64_t one : sizes_) size *= one;
        return size;
    }

  private:
    std::vector<int64_t> sizes_;
};

// Temporary space: of functions in the table what Atlas A2 needs; for others the host needs none, and says
// the least that a buffer can have.
constexpr uint32_t least_temporary_space = 256;
namespace detail {
inline int64_t elements_of(uint32_t count) { return count; }
template <typename Shape>
int64_t elements_of(const Shape& shape) {
    return shape.GetShapeSize();
}
constexpr bool tells_temporary_space(const char* function) {
#if defined(ASCEND_GRAPH_NPU_ARCH) && ASCEND_GRAPH_NPU_ARCH != 2201
    return false;
#else
    for (const auto& one : ascendc_host::temporary_spaces) {
        if (one.function == function) return true;
    }
    return false;
#endif
}
template <typename Shape>
void temporary_space(const char* function, const Shape& shape, uint32_t type_size, bool reuses,
                     uint32_t& most, uint32_t& least) {
    most = least = least_temporary_space;
    if (!tells_temporary_space(function)) return;
    const uint32_t tensors = ascendc_host::temporary_tensors(function, type_size, reuses);
    least = tensors * ascendc_host::bytes_of_temporary;
    most = std::max(least, static_cast<uint32_t>(tensors * elements_of(shape) * type_size));
}
}  // namespace detail
#define ASCENDC_TMP_SIZE(Name)                                                                  \
    template <typename Shape>                                                                   \
    void Get##Name##MaxMinTmpSize(const Shape& srcShape, uint32_t typeSize, bool isReuseSource, \
                                  uint32_t& maxValue, uint32_t& minValue) {                     \
        detail::temporary_space(#Name, srcShape, typeSize, isReuseSource, maxValue, minValue);  \
    }                                                                                           \
    inline void Get##Name##TmpBufferFactorSize(uint32_t typeSize, uint32_t& maxLiveNodeCnt,     \
                                               uint32_t& extraBuf) {                            \
        maxLiveNodeCnt = detail::tells_temporary_space(#Name)                                   \
                             ? ascendc_host::temporary_tensors(#Name, typeSize, false)          \
                             : 1;                                                               \
        extraBuf = 0;                                                                           \
    }
ASCENDC_TMP_SIZE(Sin)
ASCENDC_TMP_SIZE(Cos)
ASCENDC_TMP_SIZE(Tan)
ASCENDC_TMP_SIZE(Asin)
ASCENDC_TMP_SIZE(Acos)
ASCENDC_TMP_SIZE(Atan)
ASCENDC_TMP_SIZE(Sinh)
ASCENDC_TMP_SIZE(Cosh)
ASCENDC_TMP_SIZE(Tanh)
ASCENDC_TMP_SIZE(Asinh)
ASCENDC_TMP_SIZE(Acosh)
ASCENDC_TMP_SIZE(Atanh)
ASCENDC_TMP_SIZE(Log)
ASCENDC_TMP_SIZE(Log2)
ASCENDC_TMP_SIZE(Log10)
ASCENDC_TMP_SIZE(Erf)
ASCENDC_TMP_SIZE(Erfc)
ASCENDC_TMP_SIZE(Lgamma)
ASCENDC_TMP_SIZE(Digamma)
ASCENDC_TMP_SIZE(Floor)
ASCENDC_TMP_SIZE(Ceil)
ASCENDC_TMP_SIZE(Trunc)
ASCENDC_TMP_SIZE(Frac)
ASCENDC_TMP_SIZE(Sign)
ASCENDC_TMP_SIZE(Sigmoid)
ASCENDC_TMP_SIZE(Xor)
ASCENDC_TMP_SIZE(Clamp)
ASCENDC_TMP_SIZE(Fmod)
ASCENDC_TMP_SIZE(Hypot)
ASCENDC_TMP_SIZE(Exp)
ASCENDC_TMP_SIZE(Axpy)
ASCENDC_TMP_SIZE(GeGLU)
ASCENDC_TMP_SIZE(ReGlu)
ASCENDC_TMP_SIZE(Sum)  // with the number of elements for a shape
#undef ASCENDC_TMP_SIZE
// Of functions that are told the device, or how they compute.
#define ASCENDC_TOLD_TMP_SIZE(Name, Told)                                                         \
    template <typename Shape>                                                                     \
    void Get##Name##MaxMinTmpSize(const Told&, const Shape&, uint32_t, bool, uint32_t& maxValue,  \
                                  uint32_t& minValue) {                                           \
        maxValue = minValue = least_temporary_space;                                              \
    }                                                                                             \
    inline void Get##Name##TmpBufferFactorSize(const Told&, uint32_t, uint32_t& maxLiveNodeCount, \
                                               uint32_t& extraBuf) {                              \
        maxLiveNodeCount = 1;                                                                     \
        extraBuf = 0;                                                                             \
    }
ASCENDC_TOLD_TMP_SIZE(Round, platform_ascendc::PlatformAscendC)
ASCENDC_TOLD_TMP_SIZE(Rint, platform_ascendc::PlatformAscendC)
ASCENDC_TOLD_TMP_SIZE(IsNan, platform_ascendc::PlatformAscendC)
ASCENDC_TOLD_TMP_SIZE(IsInf, platform_ascendc::PlatformAscendC)
ASCENDC_TOLD_TMP_SIZE(LogicalAnd, platform_ascendc::PlatformAscendC)
ASCENDC_TOLD_TMP_SIZE(LogicalOr, platform_ascendc::PlatformAscendC)
ASCENDC_TOLD_TMP_SIZE(LogicalXor, platform_ascendc::PlatformAscendC)
ASCENDC_TOLD_TMP_SIZE(LogicalNot, platform_ascendc::PlatformAscendC)
ASCENDC_TOLD_TMP_SIZE(BitwiseAnd, platform_ascendc::PlatformAscendC)
ASCENDC_TOLD_TMP_SIZE(BitwiseOr, platform_ascendc::PlatformAscendC)
ASCENDC_TOLD_TMP_SIZE(BitwiseXor, platform_ascendc::PlatformAscendC)
ASCENDC_TOLD_TMP_SIZE(BitwiseNot, platform_ascendc::PlatformAscendC)
ASCENDC_TOLD_TMP_SIZE(Fma, platform_ascendc::PlatformAscendC)
ASCENDC_TOLD_TMP_SIZE(Sin, SinConfig)
ASCENDC_TOLD_TMP_SIZE(Cos, CosConfig)
#undef ASCENDC_TOLD_TMP_SIZE
inline void GetPowerTmpBufferFactorSize(bool, bool, bool, uint32_t, uint32_t& maxLiveNodeCount,
                                        uint32_t& extraBuffer) {
    maxLiveNodeCount = 1;
    extraBuffer = 0;
}
inline void GetSwiGLUTmpBufferFactorSize(uint32_t, uint32_t& maxLiveNodeCount, uint32_t& extraBuffer) {
    maxLiveNodeCount = 1;
    extraBuffer = 0;
}
inline void GetArangeMaxMinTmpSize(uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
inline void GetArithProgressionMaxMinTmpSize(uint32_t& maxValue, uint32_t& minValue) {
    GetArangeMaxMinTmpSize(maxValue, minValue);
}
template <typename Shape>
void GetSiluTmpSize(const Shape&, uint32_t, bool, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
template <typename Shape>
void GetSwishTmpSize(const Shape&, uint32_t, bool, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
template <typename Shape>
void GetAscendQuantMaxMinTmpSize(const Shape&, uint32_t, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
inline void GetAscendQuantTmpBufferFactorSize(uint32_t& maxLiveNodeCount, uint32_t& extraBuf) {
    maxLiveNodeCount = 1;
    extraBuf = 0;
}
template <typename Shape>
void GetAscendDequantMaxMinTmpSize(const Shape&, uint32_t, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
template <typename Shape>
void GetAscendDequantTmpBufferFactorSize(const Shape&, uint32_t& maxLiveNodeCount, uint32_t& extraBuf) {
    maxLiveNodeCount = 1;
    extraBuf = 0;
}
template <typename Shape>
void GetGeluMaxMinTmpSize(const Shape& srcShape, uint32_t typeSize, uint32_t& maxValue, uint32_t& minValue) {
    // Its temporary results are of float.
    detail::temporary_space("Gelu", srcShape, std::max<uint32_t>(typeSize, sizeof(float)), false, maxValue,
                            minValue);
}
template <typename Shape>
uint32_t GetGeluMaxTmpSize(const Shape& srcShape, uint32_t typeSize) {
    uint32_t most = 0, least = 0;
    GetGeluMaxMinTmpSize(srcShape, typeSize, most, least);
    return most;
}
template <typename Shape>
uint32_t GetGeluMinTmpSize(const Shape& srcShape, uint32_t typeSize) {
    uint32_t most = 0, least = 0;
    GetGeluMaxMinTmpSize(srcShape, typeSize, most, least);
    return least;
}
template <typename Shape>
void GetSwiGLUMaxMinTmpSize(const Shape&, uint32_t, uint32_t& maxValue, uint32_t& minValue, bool) {
    maxValue = minValue = least_temporary_space;
}
template <typename Shape, typename DataType>
void GetAscendAntiQuantMaxMinTmpSize(const Shape&, const Shape&, bool, DataType, DataType, uint32_t& maxValue,
                                     uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
template <typename Shape, typename DataType>
uint32_t GetAscendAntiQuantMaxTmpSize(const Shape&, const Shape&, bool, DataType, DataType) {
    return least_temporary_space;
}
template <typename Shape, typename DataType>
uint32_t GetAscendAntiQuantMinTmpSize(const Shape&, const Shape&, bool, DataType, DataType) {
    return least_temporary_space;
}
template <typename Shape, typename DataType>
void GetAscendAntiQuantTmpBufferFactorSize(const Shape&, const Shape&, bool, DataType, DataType,
                                           uint32_t& maxLiveNodeCount, uint32_t& extraBuf) {
    maxLiveNodeCount = 1;
    extraBuf = 0;
}
template <typename Shape>
void GetDropOutMaxMinTmpSize(const Shape&, uint32_t, bool, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
template <typename Shape>
uint32_t GetDropOutMaxTmpSize(const Shape&, uint32_t, bool) {
    return least_temporary_space;
}
template <typename Shape>
uint32_t GetDropOutMinTmpSize(const Shape&, uint32_t, bool) {
    return least_temporary_space;
}
inline void GetMeanMaxMinTmpSize(uint32_t, uint32_t, uint32_t, bool, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
inline void GetMeanTmpBufferFactorSize(uint32_t, uint32_t& maxLiveNodeCount, uint32_t& extraBuffer) {
    maxLiveNodeCount = 1;
    extraBuffer = 0;
}

template <typename Shape>
void GetPowerMaxMinTmpSize(const Shape&, const Shape&, bool, uint32_t, bool, uint32_t& maxValue,
                           uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
#define ASCENDC_REDUCE_TMP_SIZE(Name)                                                                    \
    template <typename Shape, typename DataType>                                                         \
    void Get##Name##MaxMinTmpSize(const Shape&, DataType, ReducePattern, bool, bool, uint32_t& maxValue, \
                                  uint32_t& minValue) {                                                  \
        maxValue = minValue = least_temporary_space;                                                     \
    }
ASCENDC_REDUCE_TMP_SIZE(ReduceSum)
ASCENDC_REDUCE_TMP_SIZE(ReduceMean)
ASCENDC_REDUCE_TMP_SIZE(ReduceMax)
ASCENDC_REDUCE_TMP_SIZE(ReduceMin)
ASCENDC_REDUCE_TMP_SIZE(ReduceProd)
ASCENDC_REDUCE_TMP_SIZE(ReduceAny)
ASCENDC_REDUCE_TMP_SIZE(ReduceAll)
#undef ASCENDC_REDUCE_TMP_SIZE
template <typename Shape>
void GetBroadCastMaxMinTmpSize(const platform_ascendc::PlatformAscendC&, const Shape&, const Shape&, uint32_t,
                               bool, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}

template <typename Shape>
uint32_t GetSoftMaxMaxTmpSize(const Shape&, uint32_t, bool) {
    return least_temporary_space;
}
template <typename Shape>
uint32_t GetSoftMaxMinTmpSize(const Shape&, uint32_t, bool) {
    return least_temporary_space;
}
template <typename Shape>
uint32_t GetSoftMaxGradMaxTmpSize(const Shape&, uint32_t, bool, bool) {
    return least_temporary_space;
}
template <typename Shape>
uint32_t GetSoftMaxGradMinTmpSize(const Shape&, uint32_t, bool, bool) {
    return least_temporary_space;
}
template <typename Shape>
uint32_t GetSoftMaxFlashV2MaxTmpSize(const Shape&, uint32_t, uint32_t, bool, bool = false, bool = false) {
    return least_temporary_space;
}
template <typename Shape>
uint32_t GetSoftMaxFlashV2MinTmpSize(const Shape&, uint32_t, uint32_t, bool, bool = false, bool = false) {
    return least_temporary_space;
}
template <typename Shape>
uint32_t GetSoftMaxFlashMaxTmpSize(const Shape&, uint32_t, bool, bool) {
    return least_temporary_space;
}
template <typename Shape>
uint32_t GetSoftMaxFlashMinTmpSize(const Shape&, uint32_t, bool, bool) {
    return least_temporary_space;
}
template <typename Shape>
void GetReduceXorSumMaxMinTmpSize(const Shape&, uint32_t, bool, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
// Both names of the function, and the one tensor and the one scalar that it chooses from.
#define ASCENDC_SELECT_TMP_SIZE(Name)                                                                    \
    template <typename Shape>                                                                            \
    uint32_t Get##Name##MaxTmpSize(const Shape&, const Shape&, uint32_t, const Shape&, uint32_t, bool) { \
        return least_temporary_space;                                                                    \
    }                                                                                                    \
    template <typename Shape>                                                                            \
    uint32_t Get##Name##MinTmpSize(const Shape&, const Shape&, uint32_t, const Shape&, uint32_t, bool) { \
        return least_temporary_space;                                                                    \
    }                                                                                                    \
    template <typename Shape>                                                                            \
    void Get##Name##MaxMinTmpSize(const Shape&, const Shape&, uint32_t, const Shape&, uint32_t, bool,    \
                                  uint32_t& maxValue, uint32_t& minValue) {                              \
        maxValue = minValue = least_temporary_space;                                                     \
    }
ASCENDC_SELECT_TMP_SIZE(Select)
ASCENDC_SELECT_TMP_SIZE(SelectWithBytesMask)
#undef ASCENDC_SELECT_TMP_SIZE

// What TopK's documentation says of rows: false of others.
inline bool is_topk(int32_t inner, int32_t outter, uint32_t item_size, TopKMode mode) {
    const bool has_size = mode == TopKMode::TOPK_NSMALL ? inner == 32 : inner > 0 && inner <= 4096;
    return has_size && inner % 32 == 0 && outter > 0 && (item_size == 2 || item_size == 4);
}
inline bool GetTopKMaxMinTmpSize(const platform_ascendc::PlatformAscendC&, const int32_t inner,
                                 const int32_t outter, const bool, const bool, enum TopKMode mode, const bool,
                                 const uint32_t dataTypeSize, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
    return is_topk(inner, outter, dataTypeSize, mode);
}
// What a configuration is for: RADIX_SELECT, which only dav-3510 has.
inline bool GetTopKMaxMinTmpSize(const int32_t inner, const int32_t outter, const int32_t k, const bool,
                                 const bool, enum TopKMode mode, const bool, TensorDataType dataType,
                                 const TopKConfig&, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
    const auto* platform = platform_ascendc::PlatformAscendCManager::GetInstance();
    if (platform == nullptr || platform->GetCurNpuArch() != NpuArch::DAV_3510) return false;
    switch (dataType) {
        case ge::DT_INT8:
        case ge::DT_UINT8:
        case ge::DT_INT16:
        case ge::DT_UINT16:
        case ge::DT_INT32:
        case ge::DT_UINT32:
        case ge::DT_INT64:
        case ge::DT_UINT64:
        case ge::DT_FLOAT:
        case ge::DT_FLOAT16:
        case ge::DT_BF16:
            return is_topk(inner, outter, sizeof(float), mode) && k >= 1 && k <= inner;
        default:
            return false;
    }
}
inline bool TopKTilingFunc(const platform_ascendc::PlatformAscendC&, const int32_t inner,
                           const int32_t outter, const int32_t k, const uint32_t dataTypeSize, const bool,
                           enum TopKMode mode, const bool, optiling::TopkTiling& topKTiling) {
    if (!is_topk(inner, outter, dataTypeSize, mode) || k < 1 || k > inner) return false;
    topKTiling = {};
    topKTiling.tmpLocalSize = least_temporary_space;
    topKTiling.allDataSize = inner * outter;
    topKTiling.innerDataSize = inner;
    return true;
}

// All rows at once: SoftMax needs no division of them on the host.
template <typename Shape>
void SoftMaxTilingFunc(const Shape& shape, uint32_t item_size, uint32_t, optiling::SoftMaxTiling& tiling) {
    const size_t rank = shape.GetDimNum();
    const auto columns = rank == 0 ? 1u : static_cast<uint32_t>(shape.GetDim(rank - 1));
    const auto size = static_cast<uint32_t>(shape.GetShapeSize());
    const uint32_t rows = columns == 0 ? 0 : size / columns;
    const uint32_t per_block = item_size == 0 ? 1 : 32 / item_size;
    tiling = {};
    tiling.srcM = tiling.outMaxM = tiling.splitM = tiling.reduceM = rows;
    tiling.srcK = tiling.splitK = columns;
    tiling.srcSize = tiling.splitSize = size;
    tiling.outMaxK = tiling.reduceK = per_block;
    tiling.outMaxSize = tiling.reduceSize = rows * per_block;
    tiling.rangeM = 1;
}
// Of half and float alone, as the function is; of others nothing is written.
template <typename Shape>
void GetSoftMaxFlashV3MaxMinTmpSize(const Shape&, const uint32_t dataTypeSize1, const uint32_t dataTypeSize2,
                                    uint32_t& maxValue, uint32_t& minValue, const bool, const bool = false) {
    if (dataTypeSize1 == 2 && dataTypeSize2 == 4) maxValue = minValue = least_temporary_space;
}
template <typename Shape>
void SoftMaxFlashV3TilingFunc(const Shape& shape, const uint32_t, const uint32_t dataTypeSize2,
                              const uint32_t space, optiling::SoftMaxTiling& tiling, const bool,
                              const bool = false) {
    SoftMaxTilingFunc(shape, dataTypeSize2, space, tiling);
}
// As much as sorted lists have, 8 bytes for each number, for kernels hand it to Sort without a configuration.
template <typename Shape, typename DataType>
void GetSortMaxMinTmpSize(const Shape& srcShape, DataType, DataType, bool, const SortConfig&,
                          uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = static_cast<uint32_t>((srcShape.GetShapeSize() + 31) / 32 * 32 * 8);
}
inline uint32_t GetSortTmpSize(const platform_ascendc::PlatformAscendC&, const uint32_t elemCount,
                               const uint32_t) {
    return (elemCount + 31) / 32 * 32 * 8;
}
// Concat needs nothing of it: the sorting instructions take the numbers as they lie.
inline uint32_t GetConcatTmpSize(const platform_ascendc::PlatformAscendC&, const uint32_t, const uint32_t) {
    return least_temporary_space;
}
template <typename Shape, typename DataType>
bool GetTransDataMaxMinTmpSize(const platform_ascendc::PlatformAscendC&, const Shape&, const Shape&, DataType,
                               const TransDataConfig& config, uint32_t& maxValue, uint32_t& minValue) {
    const DataFormat blocks = config.srcFormat == DataFormat::NCDHW ? config.dstFormat : config.srcFormat;
    if ((config.srcFormat == DataFormat::NCDHW) == (config.dstFormat == DataFormat::NCDHW) ||
        (blocks != DataFormat::NDC1HWC0 && blocks != DataFormat::FRACTAL_Z_3D)) {
        return false;
    }
    maxValue = minValue = least_temporary_space;
    return true;
}
template <typename Shape>
uint32_t GetLogSoftMaxMaxTmpSize(const Shape&, uint32_t, bool) {
    return least_temporary_space;
}
template <typename Shape>
uint32_t GetLogSoftMaxMinTmpSize(const Shape&, uint32_t, bool) {
    return least_temporary_space;
}
template <typename Shape>
void LogSoftMaxTilingFunc(const Shape& shape, uint32_t item_size, uint32_t space,
                          optiling::LogSoftMaxTiling& tiling) {
    SoftMaxTilingFunc(shape, item_size, space, tiling);
}
template <typename Shape>
void SoftMaxGradTilingFunc(const Shape& shape, uint32_t item_size, uint32_t space,
                           optiling::SoftMaxTiling& tiling, bool = false) {
    SoftMaxTilingFunc(shape, item_size, space, tiling);
}
template <typename Shape>
void SoftMaxFlashTilingFunc(const Shape& shape, uint32_t item_size, uint32_t space,
                            optiling::SoftMaxTiling& tiling, bool = false) {
    SoftMaxTilingFunc(shape, item_size, space, tiling);
}
template <typename Shape>
void SoftMaxFlashV2TilingFunc(const Shape& shape, uint32_t item_size, uint32_t, uint32_t space,
                              optiling::SoftMaxTiling& tiling, bool, bool = false, bool = false) {
    SoftMaxTilingFunc(shape, item_size, space, tiling);
}

template <typename Shape>
void GetCumSumMaxMinTmpSize(const Shape&, uint32_t, bool, bool, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}

// Normalizations are of [b, s, h] with rows of whole blocks of 32 bytes; a fourth number says how many
// elements of a row count. False, or a tiling without rows, of other shapes.
template <typename Shape>
bool has_rows(const Shape& shape, uint32_t item_size) {
    const size_t rank = shape.GetDimNum();
    return (rank == 3 || (rank == 4 && shape.GetDim(3) <= shape.GetDim(2))) && shape.GetShapeSize() > 0 &&
           (item_size == 2 || item_size == 4) && shape.GetDim(2) * item_size % 32 == 0;
}
template <typename Shape>
bool is_normalized(const Shape& shape, uint32_t item_size) {
    return shape.GetDimNum() == 3 && has_rows(shape, item_size);
}
template <typename Tiling, typename Shape>
void fill_rows(const Shape& shape, uint32_t counted, Tiling& tiling) {
    tiling = {};
    tiling.bLength = static_cast<uint32_t>(shape.GetDim(0));
    tiling.sLength = static_cast<uint32_t>(shape.GetDim(1));
    tiling.hLength = static_cast<uint32_t>(shape.GetDim(2));
    tiling.originalHLength = counted;
    ascendc_host::tiling_data_written(&tiling, sizeof tiling);
}
template <typename Shape, typename Tiling>
void fill_counted_rows(const Shape& shape, uint32_t item_size, Tiling& tiling) {
    tiling = {};
    if (!has_rows(shape, item_size)) return;
    fill_rows(shape, static_cast<uint32_t>(shape.GetDim(shape.GetDimNum() - 1)), tiling);
}
template <typename Shape>
void GetLayerNormMaxMinTmpSize(const Shape&, uint32_t, bool, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
template <typename Shape>
void GetLayerNormNDTilingInfo(const Shape& shape, uint32_t, uint32_t item_size, bool,
                              optiling::LayerNormTiling& tiling) {
    fill_counted_rows(shape, item_size, tiling);
    tiling.set_inputXSize(tiling.bLength * tiling.sLength * tiling.hLength);
    tiling.set_meanVarSize(tiling.bLength * tiling.sLength);
}
// Of rows [a, r].
template <typename Shape>
void GetLayerNormMaxMinTmpSize(const Shape&, uint32_t, bool, bool, bool, uint32_t& maxValue,
                               uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
template <typename Shape>
void GetLayerNormNDTilingInfo(const Shape& shape, uint32_t, uint32_t item_size, bool, bool,
                              optiling::LayerNormSeparateTiling& tiling) {
    tiling = {};
    if (shape.GetDimNum() != 2 || shape.GetShapeSize() <= 0 || (item_size != 2 && item_size != 4)) return;
    tiling.set_aLength(static_cast<uint32_t>(shape.GetDim(0)));
    tiling.set_rLength(static_cast<uint32_t>(shape.GetDim(1)));
}
// As CANN spelt it at first.
template <typename Shape>
void GetLayerNormNDTillingInfo(const Shape& shape, uint32_t space, uint32_t item_size, bool reuse,
                               optiling::LayerNormTiling& tiling) {
    GetLayerNormNDTilingInfo(shape, space, item_size, reuse, tiling);
}
template <typename Shape>
bool GetRmsNormMaxMinTmpSize(const Shape& shape, uint32_t item_size, uint32_t& maxValue, uint32_t& minValue,
                             bool = false) {
    maxValue = minValue = least_temporary_space;
    return is_normalized(shape, item_size);
}
template <typename Shape>
bool GetRmsNormTilingInfo(const Shape& shape, const Shape& original, uint32_t, uint32_t item_size,
                          optiling::RmsNormTiling& tiling, bool = false) {
    if (!is_normalized(shape, item_size) || original.GetDimNum() != 3) return false;
    for (size_t axis = 0; axis < 2; ++axis)
        if (original.GetDim(axis) != shape.GetDim(axis)) return false;
    if (original.GetDim(2) <= 0 || original.GetDim(2) > shape.GetDim(2)) return false;
    fill_rows(shape, static_cast<uint32_t>(original.GetDim(2)), tiling);
    return true;
}

template <typename Shape>
bool GetDeepNormMaxMinTmpSize(const Shape& shape, uint32_t item_size, bool, bool, uint32_t& maxValue,
                              uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
    return is_normalized(shape, item_size);
}
// Of a basic block rows are a multiple of 64 elements, all of which count, and their number is one of 8.
template <typename Shape>
bool GetDeepNormTilingInfo(const Shape& shape, const Shape& original, uint32_t space, uint32_t item_size,
                           bool, bool isBasicBlock, optiling::DeepNormTiling& tiling) {
    constexpr int64_t longest = 2040;
    optiling::RmsNormTiling rows;
    if (!GetRmsNormTilingInfo(shape, original, space, item_size, rows) || rows.hLength > longest)
        return false;
    if (isBasicBlock && (rows.hLength % 64 != 0 || rows.bLength * rows.sLength % 8 != 0 ||
                         rows.originalHLength != rows.hLength)) {
        return false;
    }
    fill_rows(shape, rows.originalHLength, tiling);
    return true;
}

// Of [n, c, h, w]; a tiling without channels of other shapes, and of planes that are not whole blocks of 32
// bytes.
template <typename Shape>
void GetGroupNormMaxMinTmpSize(const Shape&, uint32_t, bool, uint32_t, uint32_t& maxValue,
                               uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
template <typename Shape>
void GetGroupNormNDTilingInfo(const Shape& shape, uint32_t, uint32_t item_size, bool, uint32_t groupNum,
                              optiling::GroupNormTiling& tiling) {
    tiling = {};
    if (shape.GetDimNum() != 4 || shape.GetShapeSize() <= 0 || (item_size != 2 && item_size != 4)) return;
    const int64_t channels = shape.GetDim(1), plane = shape.GetDim(2) * shape.GetDim(3);
    if (groupNum == 0 || channels % groupNum != 0 || plane * item_size % 32 != 0) return;
    tiling.set_n(static_cast<uint32_t>(shape.GetDim(0)));
    tiling.set_c(static_cast<uint32_t>(channels));
    tiling.set_hw(static_cast<uint32_t>(plane));
    tiling.set_g(groupNum);
    tiling.set_d(static_cast<uint32_t>(channels) / groupNum);
    tiling.set_inputXSize(static_cast<uint32_t>(shape.GetShapeSize()));
    tiling.set_meanVarSize(static_cast<uint32_t>(shape.GetDim(0)) * groupNum);
}
// Of [b, s, h], where s * h and b are whole blocks of 32 bytes, and the first originB of b count.
template <typename Shape>
bool is_batch_normalized(const Shape& shape, const Shape& original, uint32_t item_size, bool isBasicBlock) {
    if (shape.GetDimNum() != 3 || original.GetDimNum() != 3 || shape.GetShapeSize() <= 0) return false;
    const int64_t places = shape.GetDim(1) * shape.GetDim(2), counted = original.GetDim(0);
    if ((item_size != 2 && item_size != 4) || places * item_size % 32 != 0 ||
        shape.GetDim(0) * item_size % 32 != 0 || counted <= 0 || counted > shape.GetDim(0) ||
        original.GetDim(1) != shape.GetDim(1) || original.GetDim(2) != shape.GetDim(2)) {
        return false;
    }
    return !isBasicBlock || (counted % 8 == 0 && places % 64 == 0 && places < 2048);
}
template <typename Shape>
bool GetBatchNormMaxMinTmpSize(const Shape& shape, const Shape& original, uint32_t item_size, bool,
                               uint32_t& maxValue, uint32_t& minValue, bool isBasicBlock = false) {
    maxValue = minValue = least_temporary_space;
    return is_batch_normalized(shape, original, item_size, isBasicBlock);
}
template <typename Shape>
bool GetBatchNormNDTilingInfo(const Shape& shape, const Shape& original, uint32_t, uint32_t item_size, bool,
                              optiling::BatchNormTiling& tiling, bool isBasicBlock = false) {
    tiling = {};
    if (!is_batch_normalized(shape, original, item_size, isBasicBlock)) return false;
    tiling.set_originalBLength(static_cast<uint32_t>(original.GetDim(0)));
    tiling.set_meanVarSize(static_cast<uint32_t>(shape.GetDim(1) * shape.GetDim(2)));
    return true;
}
template <typename Shape>
void GetLayerNormGradMaxMinTmpSize(const Shape&, uint32_t, bool, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
template <typename Shape>
void GetLayerNormGradNDTilingInfo(const Shape& shape, uint32_t, uint32_t item_size, bool,
                                  optiling::LayerNormGradTiling& tiling) {
    fill_counted_rows(shape, item_size, tiling);
}
template <typename Shape>
void GetLayerNormGradBetaMaxMinTmpSize(const Shape&, uint32_t, bool, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
template <typename Shape>
void GetLayerNormGradBetaNDTilingInfo(const Shape& shape, uint32_t, uint32_t item_size, bool,
                                      optiling::LayerNormGradBetaTiling& tiling) {
    fill_counted_rows(shape, item_size, tiling);
}
template <typename Shape>
void GetWelfordUpdateMaxMinTmpSize(const Shape&, uint32_t, uint32_t, bool, bool, uint32_t& maxValue,
                                   uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
template <typename Shape>
void GetWelfordFinalizeMaxMinTmpSize(const Shape&, uint32_t, bool, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
template <typename Shape>
void GetNormalizeMaxMinTmpSize(const Shape&, uint32_t, uint32_t, bool, bool, bool, uint32_t& maxValue,
                               uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}

// [b, n, s, h] of types 1 to 6, a matrix of type 7, in fractals of 16 x 16; a tiling of no type of other
// shapes. How the device fills fractals of fewer is not documented.
#define ASCENDC_TRANSPOSE_TILING(Name)                                                          \
    template <typename Shape>                                                                   \
    void Get##Name##MaxMinTmpSize(const Shape&, uint32_t, uint32_t, uint32_t& maxValue,         \
                                  uint32_t& minValue) {                                         \
        maxValue = minValue = least_temporary_space;                                            \
    }                                                                                           \
    template <typename Shape>                                                                   \
    void Get##Name##TilingInfo(const Shape& shape, uint32_t, uint32_t item_size, uint32_t type, \
                               optiling::ConfusionTransposeTiling& tiling) {                    \
        transpose_tiling(shape, item_size, type, tiling);                                       \
    }
template <typename Shape>
void transpose_tiling(const Shape& shape, uint32_t item_size, uint32_t type,
                      optiling::ConfusionTransposeTiling& tiling) {
    tiling = {};
    const size_t rank = shape.GetDimNum();
    if (type < 1 || type > 7 || rank != (type == 7 ? 2 : 4) || shape.GetShapeSize() <= 0 ||
        (item_size != 2 && item_size != 4)) {
        return;
    }
    const bool turns_fractals = type == 2;  // their rows are the n of another matrix
    if (shape.GetDim(rank - 1) % 16 != 0 || shape.GetDim(rank - 2) % 16 != 0 ||
        (turns_fractals && shape.GetDim(1) % 16 != 0)) {
        return;
    }
    tiling.set_param0(type);
    tiling.set_param1(type == 7 ? 1 : static_cast<uint32_t>(shape.GetDim(0)));
    tiling.set_param2(type == 7 ? 1 : static_cast<uint32_t>(shape.GetDim(1)));
    tiling.set_param3(static_cast<uint32_t>(shape.GetDim(rank - 2)));
    tiling.set_param4(static_cast<uint32_t>(shape.GetDim(rank - 1)));
}
ASCENDC_TRANSPOSE_TILING(Transpose)
ASCENDC_TRANSPOSE_TILING(ConfusionTranspose)  // as they were called at first
#undef ASCENDC_TRANSPOSE_TILING
template <typename Shape>
void GetConfusionTransposeOnlyTilingInfo(const Shape& shape, uint32_t, uint32_t item_size,
                                         optiling::ConfusionTransposeTiling& tiling) {
    transpose_tiling(shape, item_size, 7, tiling);
}

// Matrices [height, width] whose rows are padded to whole blocks of 32 bytes, or cut.
template <typename Shape>
void GetPadMaxMinTmpSize(const Shape&, uint32_t, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
template <typename Shape>
void PadTilingFunc(const Shape& shape, const Shape& original, uint32_t, uint32_t,
                   optiling::PadTiling& tiling) {
    tiling = {};
    if (shape.GetDimNum() != 2 || original.GetDimNum() != 2) return;
    tiling.set_srcHeight(static_cast<uint32_t>(shape.GetDim(0)));
    tiling.set_srcWidth(static_cast<uint32_t>(shape.GetDim(1)));
    tiling.set_srcOriWidth(static_cast<uint32_t>(original.GetDim(1)));
}
template <typename Shape>
void GetUnPadMaxMinTmpSize(const platform_ascendc::PlatformAscendC&, const Shape&, uint32_t,
                           uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
template <typename Shape>
void UnPadTilingFunc(const Shape& shape, uint32_t, uint32_t, optiling::UnPadTiling& tiling) {
    tiling = {};
    if (shape.GetDimNum() != 2) return;
    tiling.set_srcHeight(static_cast<uint32_t>(shape.GetDim(0)));
    tiling.set_srcWidth(static_cast<uint32_t>(shape.GetDim(1)));
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_FUNCTION_TILING_H
