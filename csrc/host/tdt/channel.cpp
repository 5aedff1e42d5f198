// libacl_tdt_channel.so: the channel by which a device prints. Nothing is printed from a device here, so none
// can be opened.
#include "acl/runtime.h"

namespace {
template <typename T>
T unavailable(T result) {
    ascendgraphFail(ACL_ERROR_API_NOT_SUPPORT,
                    "tensor channels (acltdt*) are not implemented by the host runtime");
    return result;
}
}  // namespace

ACL_EXPORT void* acltdtCreateChannelWithCapacity(uint32_t, const char*, size_t) {
    return unavailable<void*>(nullptr);
}
ACL_EXPORT aclError acltdtDestroyChannel(void*) { return unavailable(ACL_ERROR_API_NOT_SUPPORT); }
ACL_EXPORT void* acltdtCreateDataset() { return unavailable<void*>(nullptr); }
ACL_EXPORT aclError acltdtDestroyDataset(void*) { return unavailable(ACL_ERROR_API_NOT_SUPPORT); }
ACL_EXPORT aclError acltdtReceiveTensor(const void*, void*, int32_t) {
    return unavailable(ACL_ERROR_API_NOT_SUPPORT);
}
ACL_EXPORT size_t acltdtGetDatasetSize(const void*) { return unavailable<size_t>(0); }
ACL_EXPORT void* acltdtGetDataItem(const void*, size_t) { return unavailable<void*>(nullptr); }
ACL_EXPORT void* acltdtGetDataAddrFromItem(const void*) { return unavailable<void*>(nullptr); }
ACL_EXPORT size_t acltdtGetDataSizeFromItem(const void*) { return unavailable<size_t>(0); }
ACL_EXPORT int acltdtGetDataTypeFromItem(const void*) { return unavailable(-1); }
ACL_EXPORT size_t acltdtGetDimNumFromItem(const void*) { return unavailable<size_t>(0); }
ACL_EXPORT aclError acltdtGetDimsFromItem(const void*, int64_t*, size_t) {
    return unavailable(ACL_ERROR_API_NOT_SUPPORT);
}
