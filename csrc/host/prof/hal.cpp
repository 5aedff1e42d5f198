// The driver's library, of which torch_npu asks for the device's clock: a version before there was one to ask
// for, so that times are those of the host's own clock. Before it uses a device, it asks for their number,
// too.
#include <cstdint>

#include "acl/abi.h"
#include "acl/devices.h"

ACL_EXPORT int halGetAPIVersion(int* version) {
    constexpr int kInvalidValue = 3;
    if (version == nullptr) return kInvalidValue;
    *version = 0;
    return 0;
}
ACL_EXPORT int halGetDeviceInfo(uint32_t, int32_t, int32_t, int64_t*) {
    constexpr int kNotSupported = 0xfffe;
    return kNotSupported;
}
ACL_EXPORT int drvGetDevNum(uint32_t* count) {
    constexpr int kInvalidValue = 3;
    if (count == nullptr) return kInvalidValue;
    *count = static_cast<uint32_t>(ascend_graph::host::machine_devices());
    return 0;
}
