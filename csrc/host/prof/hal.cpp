// The driver's library, of which torch_npu asks for the device's clock: a version before there was one to ask
// for, so that times are those of the host's own clock.
#include <cstdint>

#include "acl/abi.h"

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
