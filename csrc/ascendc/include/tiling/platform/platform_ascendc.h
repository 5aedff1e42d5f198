// The device as tiling functions ask about it: the processor of the process, or, where a package is built for
// the kernels of another architecture, the first processor that runs them.
#ifndef ASCENDC_HOST_PLATFORM_ASCENDC_H
#define ASCENDC_HOST_PLATFORM_ASCENDC_H

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>  // as CANN's has it: sources name std::unique_lock
#include <string>
#include <utility>
#include <vector>

#include "ascendc_host/internal/processors.h"

// The architectures of NPUs, by the numbers of their instruction sets.
enum class NpuArch : uint32_t {
    DAV_1001 = 1001,
    DAV_2002 = 2002,
    DAV_2102 = 2102,
    DAV_2103 = 2103,
    DAV_2201 = 2201,
    DAV_3002 = 3002,
    DAV_3003 = 3003,
    DAV_3102 = 3102,
    DAV_3113 = 3113,
    DAV_3505 = 3505,
    DAV_3510 = 3510,
    DAV_5102 = 5102,
    DAV_RESV = 0xFFFFFFFF,
};

#ifndef ASCEND_GRAPH_NPU_ARCH
#define ASCEND_GRAPH_NPU_ARCH 2201
#endif

namespace platform_ascendc {

enum class CoreMemType {
    L0_A = 0,
    L0_B = 1,
    L0_C = 2,
    L1 = 3,
    L2 = 4,
    UB = 5,
    HBM = 6,
    FB = 7,
    BT = 8,
    RESERVED
};
enum class SocVersion {
    ASCEND910 = 0,
    ASCEND910B,
    ASCEND310P,
    ASCEND310B,
    ASCEND910_93,
    ASCEND950,
    ASCEND910_95 = ASCEND950,
    // Processors that sources name and no package here runs on.
    ASCEND910_55,
    AS31XM1,
    ASCEND031,
    ASCEND035,
    ASCEND310,
    ASCEND610,
    ASCEND610Lite,
    BS9SX1A,
    BS9SX2A,
    HI3796CV300CS,
    HI3796CV300ES,
    MC61AM21A,
    MC62,
    SD3403,
    KIRINX90,
    KIRIN9030,
    MC32DM11A,
    ASCEND350,
    RESERVED_VERSION = 99999
};

// The processor that the package runs on.
inline const ascendc_host::Processor& processor() {
    return ascendc_host::processor_for(ASCEND_GRAPH_NPU_ARCH);
}
// An enumeration's value of the processor's short name.
template <typename Version>
Version version_of(const ascendc_host::Processor& processor) {
    const std::pair<const char*, Version> known[] = {{"Ascend910B", Version::ASCEND910B},
                                                     {"Ascend910_93", Version::ASCEND910_93},
                                                     {"Ascend950", Version::ASCEND950},
                                                     {"Ascend310P", Version::ASCEND310P}};
    for (const auto& [name, version] : known) {
        if (ascendc_host::is_named(&processor, name)) return version;
    }
    return Version::RESERVED_VERSION;
}

class PlatformAscendC {
  public:
    // `PlatformAscendC(context->GetPlatformInfo())` in tiling functions; the argument says nothing new here.
    template <typename Info>
    explicit PlatformAscendC(Info*) {}
    PlatformAscendC() = default;

    uint32_t GetCoreNum() const { return GetCoreNumAiv(); }
    uint32_t GetCoreNumAic() const { return processor().cube_cores; }
    uint32_t GetCoreNumAiv() const {
        return ascendc_host::is_coupled(processor()) ? processor().cube_cores : processor().vector_cores;
    }
    uint32_t GetCoreNumVector() const {
        return ascendc_host::is_coupled(processor()) ? processor().vector_cores : 0;
    }
    // The number of blocks to launch for `sliceNum` vector slices on groups of one cube and two vector cores.
    uint32_t CalcTschBlockDim(uint32_t sliceNum, uint32_t aicCoreNum, uint32_t aivCoreNum) const {
        if (aicCoreNum == 0 || aivCoreNum == 0 || aicCoreNum > aivCoreNum) return sliceNum;
        const uint32_t ratio = aivCoreNum / aicCoreNum;
        return (sliceNum + ratio - 1) / ratio;
    }
    uint32_t CalcTschNumBlocks(uint32_t sliceNum, uint32_t aicCoreNum, uint32_t aivCoreNum) const {
        return CalcTschBlockDim(sliceNum, aicCoreNum, aivCoreNum);
    }
    SocVersion GetSocVersion() const { return version_of<SocVersion>(processor()); }
    NpuArch GetCurNpuArch() const { return static_cast<NpuArch>(processor().npu_arch); }
    uint32_t GetLibApiWorkSpaceSize() const { return 16 * 1024 * 1024; }
    void GetCoreMemSize(const CoreMemType& type, uint64_t& size) const {
        constexpr const ascendc_host::LocalMemory& local =
            ascendc_host::local_memory_of(ASCEND_GRAPH_NPU_ARCH);
        switch (type) {
            case CoreMemType::L0_A:
                size = local.l0a;
                break;
            case CoreMemType::L0_B:
                size = local.l0b;
                break;
            case CoreMemType::L0_C:
                size = local.l0c;
                break;
            case CoreMemType::L1:
                size = local.l1;
                break;
            case CoreMemType::L2:
                size = processor().l2;
                break;
            case CoreMemType::UB:
                size = local.ub;
                break;
            case CoreMemType::HBM:
                size = processor().hbm;
                break;
            default:
                size = 0;
        }
    }
    void GetCoreMemBw(const CoreMemType& type, uint64_t& bytes) const {
        bytes = type == CoreMemType::HBM ? 32 : 110;
    }
};

class PlatformAscendCManager {
  public:
    static PlatformAscendC* GetInstance() {
        static PlatformAscendC platform;
        return &platform;
    }
    static PlatformAscendC* GetInstance(const char*) { return GetInstance(); }
};

}  // namespace platform_ascendc

#endif  // ASCENDC_HOST_PLATFORM_ASCENDC_H
