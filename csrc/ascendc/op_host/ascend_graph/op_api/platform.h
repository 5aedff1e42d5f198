// The device as hand-written aclnn functions ask about it: see platform_ascendc.h.
#ifndef ASCEND_GRAPH_OP_API_PLATFORM_H
#define ASCEND_GRAPH_OP_API_PLATFORM_H

#include <string>

#include "ascend_graph/platform_infos.h"
#include "graph/ascend_string.h"

namespace op {

enum class SocVersion {
    ASCEND910 = 0,
    ASCEND910B,
    ASCEND910_93,
    ASCEND910_95,
    ASCEND950 = ASCEND910_95,
    ASCEND910E,
    ASCEND310,
    ASCEND310P,
    ASCEND310B,
    ASCEND310C,
    ASCEND610LITE,
    KIRINX90,
    KIRIN9030,
    ASCEND350,
    RESERVED_VERSION = 99999
};

class PlatformInfo {
  public:
    SocVersion GetSocVersion() const {
        return platform_ascendc::version_of<SocVersion>(platform_ascendc::processor());
    }
    const std::string& GetSocLongVersion() const {
        static const std::string name = platform_ascendc::processor().name;
        return name;
    }
    NpuArch GetCurNpuArch() const { return platform_ascendc::PlatformAscendC().GetCurNpuArch(); }
    int32_t GetDeviceId() const { return 0; }
    int64_t GetBlockSize() const { return 32; }
    uint32_t GetCubeCoreNum() const { return platform_ascendc::PlatformAscendC().GetCoreNumAic(); }
    uint32_t GetVectorCoreNum() const { return platform_ascendc::processor().vector_cores; }
    bool Valid() const { return true; }
    fe::PlatFormInfos* GetPlatformInfos() const;
};
inline const PlatformInfo& GetCurrentPlatformInfo() {
    static const PlatformInfo info;
    return info;
}
ge::AscendString ToString(SocVersion version);

#ifndef ASCEND_GRAPH_LIBNNOPBASE  // there it is the class of libplatform.so
inline fe::PlatFormInfos* PlatformInfo::GetPlatformInfos() const { return fe::PlatFormInfos::get(); }
#endif

}  // namespace op

#endif  // ASCEND_GRAPH_OP_API_PLATFORM_H
