// What the host sources of operators call of CANN's libraries below ACL: of the processor, and of groups of
// ranks.
#include <cstring>
#include <map>

#include "acl/runtime.h"
#include "ascend_graph/kernel_context.h"
#include "ascendc_host/internal/processors.h"
#include "hcom/hcom_topo_info.h"

ACL_EXPORT const char* aclrtGetSocName();

// One of the facts of a processor's description, as a text of at most `size` bytes.
ACL_EXPORT int rtGetSocSpec(const char* label, const char* key, char* value, uint32_t size) {
    constexpr int kInvalid = 107000;  // ACL_ERROR_RT_PARAM_INVALID
    const char* const name = aclrtGetSocName();
    if (label == nullptr || key == nullptr || value == nullptr || name == nullptr)
        return ascend_graph::host::fail_null(kInvalid, "rtGetSocSpec", "label, key or value");
    const ascendc_host::Processor& processor = *ascendc_host::find_processor(name);
    const std::map<std::string, std::string> known{
        {"version/SoC_version", processor.name},
        {"version/Short_SoC_version", processor.short_name},
        {"version/NpuArch", std::to_string(processor.npu_arch)},
    };
    const auto found = known.find(std::string(label) + "/" + key);
    if (found == known.end() || found->second.size() >= size)
        return ascend_graph::host::fail(kInvalid,
                                        std::string("rtGetSocSpec: ") + key + " of " + label +
                                            " is not known, or value has no room for it; known: SoC_version, "
                                            "Short_SoC_version and NpuArch of version");
    std::strcpy(value, found->second.c_str());
    return ACL_SUCCESS;
}

// The processor's name, as scripts ask for it through libruntime.so.
ACL_EXPORT int rtGetSocVersion(char* version, uint32_t size) {
    constexpr int kInvalid = 107000;  // ACL_ERROR_RT_PARAM_INVALID
    const char* const name = aclrtGetSocName();
    if (version == nullptr || name == nullptr || std::strlen(name) >= size)
        return ascend_graph::host::fail(
            kInvalid,
            "rtGetSocVersion: version is null, or has no room for the name; expected the "
            "address of a longer buffer");
    std::strcpy(version, name);
    return ACL_SUCCESS;
}

namespace ge {

#define EXPORTED __attribute__((visibility("default")))

EXPORTED HcomTopoInfo& HcomTopoInfo::Instance() {
    static HcomTopoInfo& instance = *new HcomTopoInfo;
    return instance;
}
EXPORTED bool HcomTopoInfo::TopoInfoHasBeenSet(const char* group) {
    return ascendgraphRanksOf(group, nullptr) != 0;
}
EXPORTED uint32_t HcomTopoInfo::GetGroupRankSize(const char* group, int64_t& rank_size) {
    const uint32_t ranks = ascendgraphRanksOf(group, nullptr);
    if (ranks != 0) rank_size = ranks;
    return ranks == 0;
}
EXPORTED uint32_t HcomTopoInfo::GetGroupLocalWindowSize(const char* group, uint64_t& local_window_size) {
    return ascendgraphRanksOf(group, &local_window_size) == 0;
}
EXPORTED bool HcomTopoInfo::TryGetGroupTopoInfo(const char* group, TopoInfo& info) {
    uint64_t window = 0;
    const uint32_t ranks = ascendgraphRanksOf(group, &window);
    if (ranks == 0) return false;
    // One server.
    info = {ranks, nullptr, {{COMM_MESH, ranks}, {COMM_MESH, 1}, {COMM_MESH, 1}}, window};
    return true;
}
EXPORTED HcomTopoInfo::TopoDescs* HcomTopoInfo::GetGroupTopoDesc(const char* group) {
    TopoInfo info;
    if (!TryGetGroupTopoInfo(group, info)) return nullptr;
    const std::lock_guard<std::mutex> lock(mutex_);
    return &(rank_info_[group] = info).topo_level_descs;
}

}  // namespace ge
