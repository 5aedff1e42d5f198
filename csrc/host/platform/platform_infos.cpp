// fe::PlatFormInfos: the description of a processor, as libraries of packages that CANN built ask for it.
// They have platform_ascendc::PlatformAscendC linked in, which asks here.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "acl/abi.h"
#include "ascendc_host/internal/processors.h"

#define EXPORTED __attribute__((visibility("default")))

ACL_EXPORT const char* aclrtGetSocName();

namespace fe {

enum class LocalMemType { L0_A, L0_B, L0_C, L1, L2, UB, HBM, RESERVED };

class PlatFormInfosImpl {
  public:
    std::map<std::string, std::string> facts;  // by "label/key"
};
class EXPORTED PlatFormInfos {
  public:
    bool GetPlatformResWithLock(const std::string& label, const std::string& key, std::string& value);
    uint32_t GetCoreNum() const;
    void SetCoreNumByCoreType(const std::string& type);
    void GetLocalMemSize(const LocalMemType& type, uint64_t& size);
    void GetLocalMemBw(const LocalMemType& type, uint64_t& bandwidth);
    void describe(const ascendc_host::Processor& processor);

  private:
    uint64_t number(const char* label, const char* key) const;

    uint32_t core_num_ = 0;
    std::shared_ptr<PlatFormInfosImpl> impl_;
};
static_assert(sizeof(PlatFormInfos) == 24);

void PlatFormInfos::describe(const ascendc_host::Processor& processor) {
    const ascendc_host::LocalMemory& local = ascendc_host::local_memory_of(processor.kernels);
    impl_ = std::make_shared<PlatFormInfosImpl>();
    impl_->facts = {
        {"version/SoC_version", processor.name},
        {"version/Short_SoC_version", processor.short_name},
        {"version/AIC_version", processor.cores},
        {"version/NpuArch", std::to_string(processor.npu_arch)},
        {"SoCInfo/ai_core_cnt", std::to_string(processor.cube_cores)},
        {"SoCInfo/cube_core_cnt", std::to_string(processor.cube_cores)},
        {"SoCInfo/vector_core_cnt", std::to_string(processor.vector_cores)},
        {"SoCInfo/l2_size", std::to_string(processor.l2)},
        {"SoCInfo/memory_size", std::to_string(processor.hbm)},
        {"AICoreSpec/l0_a_size", std::to_string(local.l0a)},
        {"AICoreSpec/l0_b_size", std::to_string(local.l0b)},
        {"AICoreSpec/l0_c_size", std::to_string(local.l0c)},
        {"AICoreSpec/l1_size", std::to_string(local.l1)},
        {"AICoreSpec/ub_size", std::to_string(local.ub)},
        {"AICoreMemoryRates/l2_rate", "110"},
        {"AICoreMemoryRates/ddr_rate", "32"},
    };
    for (const auto& fact : ascendc_host::described_facts) {
        if (fact.architecture == processor.npu_arch)
            impl_->facts[std::string(fact.label) + "/" + fact.key] = fact.value;
    }
    SetCoreNumByCoreType(ascendc_host::is_coupled(processor) ? "AiCore" : "VectorCore");
}

// False for facts that are not known here.
bool PlatFormInfos::GetPlatformResWithLock(const std::string& label, const std::string& key,
                                           std::string& value) {
    if (impl_ == nullptr) return false;
    const auto found = impl_->facts.find(label + "/" + key);
    if (found == impl_->facts.end()) return false;
    value = found->second;
    return true;
}

uint64_t PlatFormInfos::number(const char* label, const char* key) const {
    if (impl_ == nullptr) return 0;
    const auto found = impl_->facts.find(std::string(label) + "/" + key);
    return found == impl_->facts.end() ? 0 : std::strtoull(found->second.c_str(), nullptr, 10);
}

uint32_t PlatFormInfos::GetCoreNum() const { return core_num_; }

void PlatFormInfos::SetCoreNumByCoreType(const std::string& type) {
    const bool vector = type == "VectorCore" || type == "AIV";
    core_num_ = static_cast<uint32_t>(number("SoCInfo", vector ? "vector_core_cnt" : "ai_core_cnt"));
}

void PlatFormInfos::GetLocalMemSize(const LocalMemType& type, uint64_t& size) {
    static constexpr const char* keys[] = {"l0_a_size", "l0_b_size", "l0_c_size",
                                           "l1_size",   "l2_size",   "ub_size"};
    if (type == LocalMemType::HBM)
        size = number("SoCInfo", "memory_size");
    else if (type < LocalMemType::HBM)
        size = number(type == LocalMemType::L2 ? "SoCInfo" : "AICoreSpec", keys[static_cast<int>(type)]);
    else
        size = 0;
}

void PlatFormInfos::GetLocalMemBw(const LocalMemType& type, uint64_t& bandwidth) {
    bandwidth = type == LocalMemType::L2    ? number("AICoreMemoryRates", "l2_rate")
                : type == LocalMemType::HBM ? number("AICoreMemoryRates", "ddr_rate")
                                            : 0;
}

class OptionalInfos;  // a caller's, which it passes and does not read

// Statuses are GE's: 0 for success.
class EXPORTED PlatformInfoManager {
  public:
    static PlatformInfoManager& Instance();
    static PlatformInfoManager& GeInstance();
    uint32_t InitRuntimePlatformInfos(const std::string& soc);
    uint32_t GetPlatformInfos(const std::string soc, PlatFormInfos& infos, OptionalInfos& optional);
    uint32_t GetRuntimePlatformInfosByDevice(const uint32_t& device, PlatFormInfos& infos, bool with_lock);
};

namespace {
constexpr uint32_t kFailed = 0xFFFFFFFF;
}

PlatformInfoManager& PlatformInfoManager::Instance() {
    static auto& manager = *new PlatformInfoManager;
    return manager;
}
PlatformInfoManager& PlatformInfoManager::GeInstance() { return Instance(); }

uint32_t PlatformInfoManager::InitRuntimePlatformInfos(const std::string& soc) {
    return ascendc_host::find_processor(soc.c_str()) == nullptr ? kFailed : 0;
}
uint32_t PlatformInfoManager::GetPlatformInfos(const std::string soc, PlatFormInfos& infos, OptionalInfos&) {
    const ascendc_host::Processor* processor = ascendc_host::find_processor(soc.c_str());
    if (processor == nullptr) return kFailed;
    infos.describe(*processor);
    return 0;
}
uint32_t PlatformInfoManager::GetRuntimePlatformInfosByDevice(const uint32_t&, PlatFormInfos& infos, bool) {
    const char* name = aclrtGetSocName();
    const ascendc_host::Processor* processor = name == nullptr ? nullptr : ascendc_host::find_processor(name);
    if (processor == nullptr) return kFailed;
    infos.describe(*processor);
    return 0;
}

}  // namespace fe

// A description of this process's processor, which the calling thread may change until it asks again; null
// without one.
ACL_EXPORT void* ascendgraphPlatformOfThread() {
    static thread_local fe::PlatFormInfos infos;
    return fe::PlatformInfoManager::Instance().GetRuntimePlatformInfosByDevice(0, infos, true) == 0 ? &infos
                                                                                                    : nullptr;
}
