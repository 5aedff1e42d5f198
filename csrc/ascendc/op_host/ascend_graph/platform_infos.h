// fe::PlatFormInfos: what tiling functions hand to platform_ascendc::PlatformAscendC, which describes the
// device; and the same facts as it answers them itself.
#ifndef ASCEND_GRAPH_PLATFORM_INFOS_H
#define ASCEND_GRAPH_PLATFORM_INFOS_H

#include <map>
#include <string>

#include "tiling/platform/platform_ascendc.h"

namespace fe {

enum class LocalMemType { L0_A = 0, L0_B = 1, L0_C = 2, L1 = 3, L2 = 4, UB = 5, HBM = 6, RESERVED };

class PlatFormInfos {
  public:
    static PlatFormInfos* get() {
        static PlatFormInfos infos;
        return &infos;
    }

    uint32_t GetCoreNum() const { return platform_ascendc::PlatformAscendC().GetCoreNum(); }
    uint32_t GetCoreNumByType(const std::string& type) const {
        const ascendc_host::Processor& one = platform_ascendc::processor();
        return type == "VectorCore" ? one.vector_cores : one.cube_cores;
    }
    void GetLocalMemSize(const LocalMemType& type, uint64_t& size) const {
        platform_ascendc::PlatformAscendC().GetCoreMemSize(static_cast<platform_ascendc::CoreMemType>(type),
                                                           size);
    }
    // One of the facts of a device's description; false for those that are not known here.
    bool GetPlatformRes(const std::string& label, const std::string& key, std::string& value) const {
        const platform_ascendc::PlatformAscendC platform;
        const std::map<std::string, std::string> known{
            {"version/Short_SoC_version", platform_ascendc::processor().short_name},
            {"version/SoC_version", platform_ascendc::processor().name},
            {"version/NpuArch", std::to_string(static_cast<uint32_t>(platform.GetCurNpuArch()))},
            {"version/AIC_version", platform_ascendc::processor().cores},
            {"SoCInfo/ai_core_cnt", std::to_string(platform.GetCoreNumAic())},
            {"SoCInfo/cube_core_cnt", std::to_string(platform.GetCoreNumAic())},
            {"SoCInfo/vector_core_cnt", std::to_string(GetCoreNumByType("VectorCore"))},
            {"AICoreSpec/ub_size", memory(platform, platform_ascendc::CoreMemType::UB)},
            {"AICoreSpec/l1_size", memory(platform, platform_ascendc::CoreMemType::L1)},
            {"AICoreSpec/l0_a_size", memory(platform, platform_ascendc::CoreMemType::L0_A)},
            {"AICoreSpec/l0_b_size", memory(platform, platform_ascendc::CoreMemType::L0_B)},
            {"AICoreSpec/l0_c_size", memory(platform, platform_ascendc::CoreMemType::L0_C)},
            {"SoCInfo/l2_size", memory(platform, platform_ascendc::CoreMemType::L2)},
        };
        if (const auto found = known.find(label + "/" + key); found != known.end()) {
            value = found->second;
            return true;
        }
        for (const auto& fact : ascendc_host::described_facts) {
            if (fact.architecture == static_cast<int>(platform.GetCurNpuArch()) && label == fact.label &&
                key == fact.key) {
                value = fact.value;
                return true;
            }
        }
        return false;
    }

    bool GetPlatformResWithLock(const std::string& label, const std::string& key, std::string& value) const {
        return GetPlatformRes(label, key, value);
    }

  private:
    static std::string memory(const platform_ascendc::PlatformAscendC& platform,
                              platform_ascendc::CoreMemType type) {
        uint64_t size = 0;
        platform.GetCoreMemSize(type, size);
        return std::to_string(size);
    }
};

// The same facts as structures, as PlatformInfoManager fills them in.
struct StrInfo {
    std::string aic_version;
    std::string short_soc_version;
};
struct SoCInfo {
    uint32_t ai_core_cnt = 0;
    uint32_t vector_core_cnt = 0;
    uint64_t l2_size = 0;
};
struct AiCoreSpec {
    uint64_t l0_a_size = 0;
    uint64_t l0_b_size = 0;
    uint64_t l0_c_size = 0;
    uint64_t l1_size = 0;
    uint64_t ub_size = 0;
};
struct PlatformInfo {
    StrInfo str_info;
    SoCInfo soc_info;
    AiCoreSpec ai_core_spec;
};
struct OptionalInfo {
    std::string soc_version;
    uint32_t ai_core_num = 0;
};

class PlatformInfoManager {
  public:
    static PlatformInfoManager& Instance() {
        static PlatformInfoManager manager;
        return manager;
    }
    // 0, as of functions that succeed: the description of the one device that there is.
    uint32_t GetPlatformInfoWithOutSocVersion(PlatformInfo& info, OptionalInfo& optional) const {
        const platform_ascendc::PlatformAscendC platform;
        using Memory = platform_ascendc::CoreMemType;
        info = {{platform_ascendc::processor().cores, platform_ascendc::processor().short_name},
                {platform.GetCoreNumAic(), platform_ascendc::processor().vector_cores, 0},
                {}};
        platform.GetCoreMemSize(Memory::L2, info.soc_info.l2_size);
        platform.GetCoreMemSize(Memory::L0_A, info.ai_core_spec.l0_a_size);
        platform.GetCoreMemSize(Memory::L0_B, info.ai_core_spec.l0_b_size);
        platform.GetCoreMemSize(Memory::L0_C, info.ai_core_spec.l0_c_size);
        platform.GetCoreMemSize(Memory::L1, info.ai_core_spec.l1_size);
        platform.GetCoreMemSize(Memory::UB, info.ai_core_spec.ub_size);
        optional = {platform_ascendc::processor().name, info.soc_info.ai_core_cnt};
        return 0;
    }
};

}  // namespace fe

#endif  // ASCEND_GRAPH_PLATFORM_INFOS_H
