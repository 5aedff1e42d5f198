// What tiling functions ask about the device: that of the architecture that a package is built for, an Atlas
// A2 or an Ascend950PR.
#ifndef ASCENDC_HOST_PLATFORM_ASCENDC_H
#define ASCENDC_HOST_PLATFORM_ASCENDC_H

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ascendc_host/chips.h"

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
    RESERVED_VERSION = 99999
};

// The chip of an architecture, and what CANN calls both.
struct Chip : ascendc_host::Chip {
    SocVersion version;
    NpuArch architecture;
};
constexpr Chip chip_of(int architecture) {
    const bool is_950 = architecture == 3510;
    return {ascendc_host::chip_of(architecture), is_950 ? SocVersion::ASCEND950 : SocVersion::ASCEND910B,
            is_950 ? NpuArch::DAV_3510 : NpuArch::DAV_2201};
}
constexpr Chip chip = chip_of(ASCEND_GRAPH_NPU_ARCH);
// Atlas A3 has the chip of Atlas A2 by another name; which one it is, the process knows.
inline bool is_atlas_a3() {
    const char* name = std::getenv("ASCEND_GRAPH_HOST_SOC");
    return chip.architecture == NpuArch::DAV_2201 && name != nullptr &&
           std::strncmp(name, "Ascend910_93", 12) == 0;
}
inline const char* chip_name() { return is_atlas_a3() ? "Ascend910_9391" : chip.name; }
inline const char* short_chip_name() { return is_atlas_a3() ? "Ascend910_93" : chip.short_name; }

class PlatformAscendC {
  public:
    // `PlatformAscendC(context->GetPlatformInfo())` in tiling functions; the argument says nothing new here.
    template <typename Info>
    explicit PlatformAscendC(Info*) {}
    PlatformAscendC() = default;

    uint32_t GetCoreNum() const { return GetCoreNumAic(); }
    uint32_t GetCoreNumAic() const { return chip.cube_cores; }
    uint32_t GetCoreNumAiv() const { return chip.vector_cores; }
    uint32_t GetCoreNumVector() const { return 0; }
    // The number of blocks to launch for `sliceNum` vector slices on groups of one cube and two vector cores.
    uint32_t CalcTschBlockDim(uint32_t sliceNum, uint32_t aicCoreNum, uint32_t aivCoreNum) const {
        if (aicCoreNum == 0 || aivCoreNum == 0 || aicCoreNum > aivCoreNum) return sliceNum;
        const uint32_t ratio = aivCoreNum / aicCoreNum;
        return (sliceNum + ratio - 1) / ratio;
    }
    uint32_t CalcTschNumBlocks(uint32_t sliceNum, uint32_t aicCoreNum, uint32_t aivCoreNum) const {
        return CalcTschBlockDim(sliceNum, aicCoreNum, aivCoreNum);
    }
    SocVersion GetSocVersion() const { return is_atlas_a3() ? SocVersion::ASCEND910_93 : chip.version; }
    NpuArch GetCurNpuArch() const { return chip.architecture; }
    uint32_t GetLibApiWorkSpaceSize() const { return 16 * 1024 * 1024; }
    void GetCoreMemSize(const CoreMemType& type, uint64_t& size) const {
        switch (type) {
            case CoreMemType::L0_A:
            case CoreMemType::L0_B:
                size = 64 * 1024;
                break;
            case CoreMemType::L0_C:
                size = chip.l0c;
                break;
            case CoreMemType::L1:
                size = 512 * 1024;
                break;
            case CoreMemType::L2:
                size = chip.l2;
                break;
            case CoreMemType::UB:
                size = chip.ub;
                break;
            case CoreMemType::HBM:
                size = chip.hbm;
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
