// What a Matmul object is told at compile time: how the device schedules the work, and tilings that are
// constants.
#ifndef ASCENDC_HOST_ADV_API_MATMUL_CONFIG_H
#define ASCENDC_HOST_ADV_API_MATMUL_CONFIG_H

#include <cstdint>
#include <type_traits>

enum class CubeFormat { ND = 0, NZ, ZN, ZZ, NN, ND_ALIGN, SCALAR, VECTOR };
enum class LayoutMode { NONE = 0, BSNGD, SBNGD, BNGS1S2, NORMAL };
enum class BatchMode { NONE = 0, BATCH_LESS_THAN_L1, BATCH_LARGE_THAN_L1, SINGLE_LARGE_THAN_L1 };
enum BatchOutMode { SINGLE_BATCH = 0, MULTI_BATCH, DYNAMIC };
enum class IterateOrder { ORDER_M = 0, ORDER_N, UNDEF };
enum class ScheduleType { INNER_PRODUCT = 0, OUTER_PRODUCT };
enum IterateMode : uint8_t {
    ITERATE_MODE_NORMAL = 1,
    ITERATE_MODE_ALL = 2,
    ITERATE_MODE_BATCH = 4,
    ITERATE_MODE_N_BATCH = 8,
    ITERATE_MODE_DEFAULT = 255
};

namespace AscendC {

// How the device schedules the work; the result does not depend on it.
struct MatmulConfig {
    bool doNorm = true;
    bool doBasicBlock = false;
    bool doMultiDataLoad = false;
    uint32_t basicM = 0;
    uint32_t basicN = 0;
    uint32_t basicK = 0;
    bool intrinsicsCheck = false;
    bool isNBatch = false;
    bool enVecND2NZ = false;
    bool doSpecialBasicBlock = false;
    uint32_t doMTE2Preload = 0;
    uint32_t singleCoreM = 0;
    uint32_t singleCoreN = 0;
    uint32_t singleCoreK = 0;
    uint32_t stepM = 0;
    uint32_t stepN = 0;
    uint32_t baseMN = 0;
    uint32_t singleCoreMN = 0;
    bool enUnitFlag = true;
    bool isPerTensor = false;
    bool hasAntiQuantOffset = false;
    bool doIBShareNorm = false;
    bool doSpecialMDL = false;
    bool enableInit = true;
    BatchMode batchMode = BatchMode::NONE;
    bool enableEnd = true;
    bool enableGetTensorC = true;
    bool enableSetOrgShape = true;
    bool enableSetBias = true;
    bool enableSetTail = true;
    bool enableQuantVector = true;
    bool enableSetDefineData = true;
    uint8_t iterateMode = ITERATE_MODE_DEFAULT;
    bool enableReuse = true;
    bool enableUBReuse = true;
    bool enableL1CacheUB = false;
    bool intraBlockPartSum = false;
    IterateOrder iterateOrder = IterateOrder::UNDEF;
    ScheduleType scheduleType = ScheduleType::INNER_PRODUCT;
    bool enableDoubleCache = false;
    bool isBiasBatch = true;
    bool enableStaticPadZeros = false;
    bool isPartialOutput = false;
    bool enableMixDualMaster = false;
    bool isA2B2Shared = false;
    bool isEnableChannelSplit = false;
    bool enableKdimReorderLoad = false;
    bool isCO1Shared = false;
    uint32_t sharedCO1BufferSize = 64 * 1024;
    BatchOutMode bmmOutMode = SINGLE_BATCH;
    bool enableL1BankConflictOptimise = false;
    bool enableRelu = false;
};
constexpr MatmulConfig GetNormalConfig(
    bool intrinsicsLimit = false, bool batchLoop = false, bool isVecND2NZ = false,
    BatchMode bmmMode = BatchMode::BATCH_LESS_THAN_L1, bool isMsgReuse = true,
    IterateOrder iterateOrder = IterateOrder::UNDEF, ScheduleType scheduleType = ScheduleType::INNER_PRODUCT,
    bool enUnitFlag = true, bool enableMixDualMaster = false, BatchOutMode bmmOutMode = SINGLE_BATCH) {
    MatmulConfig config;
    config.intrinsicsCheck = intrinsicsLimit;
    config.isNBatch = batchLoop;
    config.enVecND2NZ = isVecND2NZ;
    config.batchMode = bmmMode;
    config.enableReuse = isMsgReuse;
    config.iterateOrder = iterateOrder;
    config.scheduleType = scheduleType;
    config.enUnitFlag = enUnitFlag;
    config.enableMixDualMaster = enableMixDualMaster;
    config.bmmOutMode = bmmOutMode;
    return config;
}
constexpr MatmulConfig GetMDLConfig(bool intrinsicsLimit = false, bool batchLoop = false,
                                    uint32_t doMTE2Preload = 0, bool isVecND2NZ = false,
                                    bool isPerTensor = false, bool hasAntiQuantOffset = false,
                                    bool enUnitFlag = false, bool isMsgReuse = true,
                                    bool enableUBReuse = true, bool enableL1CacheUB = false,
                                    bool enableMixDualMaster = false, bool enableKdimReorderLoad = false,
                                    bool enableL1BankConflictOptimise = false) {
    MatmulConfig config;
    config.doNorm = false;
    config.doMultiDataLoad = true;
    config.intrinsicsCheck = intrinsicsLimit;
    config.isNBatch = batchLoop;
    config.doMTE2Preload = doMTE2Preload;
    config.enVecND2NZ = isVecND2NZ;
    config.isPerTensor = isPerTensor;
    config.hasAntiQuantOffset = hasAntiQuantOffset;
    config.enUnitFlag = enUnitFlag;
    config.enableReuse = isMsgReuse;
    config.enableUBReuse = enableUBReuse;
    config.enableL1CacheUB = enableL1CacheUB;
    config.enableMixDualMaster = enableMixDualMaster;
    config.enableKdimReorderLoad = enableKdimReorderLoad;
    config.enableL1BankConflictOptimise = enableL1BankConflictOptimise;
    return config;
}
constexpr MatmulConfig GetSpecialMDLConfig(bool intrinsicsLimit = false, bool batchLoop = false,
                                           uint32_t doMTE2Preload = 0, bool isVecND2NZ = false,
                                           bool isPerTensor = false, bool hasAntiQuantOffset = false) {
    MatmulConfig config =
        GetMDLConfig(intrinsicsLimit, batchLoop, doMTE2Preload, isVecND2NZ, isPerTensor, hasAntiQuantOffset);
    config.doMultiDataLoad = false;
    config.doSpecialMDL = true;
    return config;
}
constexpr MatmulConfig GetBasicConfig(uint32_t basicM, uint32_t basicN, uint32_t basicK,
                                      bool intrinsicsLimit = false, bool batchLoop = false,
                                      BatchMode bmmMode = BatchMode::BATCH_LESS_THAN_L1) {
    MatmulConfig config = GetNormalConfig(intrinsicsLimit, batchLoop, false, bmmMode);
    config.doNorm = config.enUnitFlag = false;
    config.doBasicBlock = true;
    config.basicM = basicM;
    config.basicN = basicN;
    config.basicK = basicK;
    return config;
}
constexpr MatmulConfig GetIBShareNormConfig(bool intrinsicsLimit = false, bool batchLoop = false,
                                            bool isVecND2NZ = false,
                                            BatchMode bmmMode = BatchMode::BATCH_LESS_THAN_L1,
                                            bool isDoubleCache = false, bool enUnitFlag = true) {
    MatmulConfig config = GetNormalConfig(intrinsicsLimit, batchLoop, isVecND2NZ, bmmMode);
    config.doNorm = false;
    config.doIBShareNorm = true;
    config.enableDoubleCache = isDoubleCache;
    config.enUnitFlag = enUnitFlag;
    return config;
}
constexpr MatmulConfig CFG_NORM = GetNormalConfig();
constexpr MatmulConfig CFG_MDL = GetMDLConfig();
constexpr MatmulConfig MM_CFG_BB = GetBasicConfig(128, 128, 128);
constexpr MatmulConfig CFG_IBSHARE_NORM = GetIBShareNormConfig();

// Parts of a configuration, for GetMMConfig.
struct MatmulShapeParams {
    uint32_t singleCoreM = 0;
    uint32_t singleCoreN = 0;
    uint32_t singleCoreK = 0;
    uint32_t basicM = 0;
    uint32_t basicN = 0;
    uint32_t basicK = 0;
};
struct MatmulQuantParams {
    bool isPerTensor = false;
    bool hasAntiQuantOffset = false;
};
struct MatmulBatchParams {
    bool isNBatch = false;
    BatchMode batchMode = BatchMode::NONE;
    bool isBiasBatch = true;
    BatchOutMode bmmOutMode = SINGLE_BATCH;
};
struct MatmulFuncParams {
    bool intrinsicsCheck = false;
    bool enVecND2NZ = false;
    bool enableDoubleCache = false;
    bool enableL1CacheUB = false;
    uint32_t doMTE2Preload = 0;
    IterateOrder iterateOrder = IterateOrder::UNDEF;
    ScheduleType scheduleType = ScheduleType::INNER_PRODUCT;
    bool enableReuse = true;
    bool enableUBReuse = true;
};
enum class MatmulConfigMode { CONFIG_NORM, CONFIG_MDL, CONFIG_SPECIALMDL, CONFIG_IBSHARE };

namespace detail {
constexpr void set_part(MatmulConfig& config, const MatmulShapeParams& part) {
    config.singleCoreM = part.singleCoreM;
    config.singleCoreN = part.singleCoreN;
    config.singleCoreK = part.singleCoreK;
    config.basicM = part.basicM;
    config.basicN = part.basicN;
    config.basicK = part.basicK;
}
constexpr void set_part(MatmulConfig& config, const MatmulQuantParams& part) {
    config.isPerTensor = part.isPerTensor;
    config.hasAntiQuantOffset = part.hasAntiQuantOffset;
}
constexpr void set_part(MatmulConfig& config, const MatmulBatchParams& part) {
    config.isNBatch = part.isNBatch;
    config.batchMode = part.batchMode;
    config.isBiasBatch = part.isBiasBatch;
    config.bmmOutMode = part.bmmOutMode;
}
constexpr void set_part(MatmulConfig& config, const MatmulFuncParams& part) {
    config.intrinsicsCheck = part.intrinsicsCheck;
    config.enVecND2NZ = part.enVecND2NZ;
    config.enableDoubleCache = part.enableDoubleCache;
    config.enableL1CacheUB = part.enableL1CacheUB;
    config.doMTE2Preload = part.doMTE2Preload;
    config.iterateOrder = part.iterateOrder;
    config.scheduleType = part.scheduleType;
    config.enableReuse = part.enableReuse;
    config.enableUBReuse = part.enableUBReuse;
}
}  // namespace detail

// A configuration with the given parts of it replaced, in any order.
template <MatmulConfigMode configMode, typename... Parts>
constexpr MatmulConfig GetMMConfig(Parts&&... parts) {
    MatmulConfig config = configMode == MatmulConfigMode::CONFIG_NORM         ? GetNormalConfig()
                          : configMode == MatmulConfigMode::CONFIG_MDL        ? GetMDLConfig()
                          : configMode == MatmulConfigMode::CONFIG_SPECIALMDL ? GetSpecialMDLConfig()
                                                                              : GetIBShareNormConfig();
    (detail::set_part(config, parts), ...);
    return config;
}

// Those parts of a tiling that are constants; -1 is what the tiling at run time says.
struct MatmulApiStaticTiling {
    int32_t usedCoreNum = -1;
    int32_t M = -1;
    int32_t N = -1;
    int32_t Ka = -1;
    int32_t Kb = -1;
    int32_t singleCoreM = -1;
    int32_t singleCoreN = -1;
    int32_t singleCoreK = -1;
    int32_t baseM = -1;
    int32_t baseN = -1;
    int32_t baseK = -1;
    int32_t depthA1 = -1;
    int32_t depthB1 = -1;
    int32_t stepM = -1;
    int32_t stepN = -1;
    int32_t stepKa = -1;
    int32_t stepKb = -1;
    int32_t isBias = -1;
    int32_t transLength = -1;
    int32_t iterateOrder = -1;
    int32_t dbL0A = -1;
    int32_t dbL0B = -1;
    int32_t dbL0C = -1;
    int32_t shareMode = -1;
    int32_t shareL1Size = -1;
    int32_t shareL0CSize = -1;
    int32_t shareUbSize = -1;
    int32_t batchM = -1;
    int32_t batchN = -1;
    int32_t singleBatchM = -1;
    int32_t singleBatchN = -1;
    int32_t depthAL1CacheUB = -1;
    int32_t depthBL1CacheUB = -1;
    MatmulConfig cfg = CFG_NORM;
};

// The configuration of either of the two that a Matmul may be told.
constexpr const MatmulConfig& ToMatmulConfig(const MatmulConfig& config) { return config; }
constexpr const MatmulConfig& ToMatmulConfig(const MatmulApiStaticTiling& tiling) { return tiling.cfg; }

// The constants of a configuration. What else the device derives from them (depths, steps) is how it uses its
// buffers.
template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE>
constexpr MatmulApiStaticTiling GetMatmulApiTiling(const MatmulConfig& mmCFG, int32_t = 512 * 1024) {
    constexpr auto constant = [](uint32_t size) { return size == 0 ? -1 : static_cast<int32_t>(size); };
    MatmulApiStaticTiling tiling;
    tiling.singleCoreM = constant(mmCFG.singleCoreM);
    tiling.singleCoreN = constant(mmCFG.singleCoreN);
    tiling.singleCoreK = constant(mmCFG.singleCoreK);
    tiling.baseM = constant(mmCFG.basicM);
    tiling.baseN = constant(mmCFG.basicN);
    tiling.baseK = constant(mmCFG.basicK);
    tiling.cfg = mmCFG;
    return tiling;
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_MATMUL_CONFIG_H
