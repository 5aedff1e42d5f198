// Functions of CANN's library under aclnn functions that have little to do here: ids, profiles, servers, and
// tensors that are made contiguous before a call.
#include <dlfcn.h>

#include "acl/abi.h"
#include "opapi/executor.h"

using namespace ascend_graph::host;

// The space is CANN's pool of executors; here it only says that it was made.
ACL_EXPORT aclnnStatus NnopbaseCreateExecutorSpace(void** space) {
    static char made;
    if (space == nullptr)
        return ascendgraphFail(kParamNullptr, "NnopbaseCreateExecutorSpace: space must not be null");
    *space = &made;
    return 0;
}

// What hand-written aclnn functions call of CANN's library under the generated ones. There is no profiler's
// record of an API here, and a communicating kernel has one server.
ACL_EXPORT uint64_t NnopbaseMsprofSysTime() { return static_cast<uint64_t>(ascendgraphNow()); }
ACL_EXPORT void NnopbaseReportApiInfo(uint64_t, void*) {}
ACL_EXPORT void NnopbaseSetHcclServerType(void*, uint32_t) {}
// That a kernel communicates is in its source, and in which group in its attrs.
ACL_EXPORT aclnnStatus NnopbaseSetMc2(void*) { return 0; }
ACL_EXPORT aclnnStatus NnopbaseSetHcomGroup(void*, char*) { return 0; }
ACL_EXPORT void NnopbaseSetUserHandle(void* executor, void* handle) {
    if (executor != nullptr) static_cast<aclOpExecutor*>(executor)->user_handle = handle;
}
ACL_EXPORT void* NnopbaseGetUserHandle(void* executor) {
    return executor == nullptr ? nullptr : static_cast<aclOpExecutor*>(executor)->user_handle;
}

// Kernels of the host are given strides, so that no tensors are made contiguous before a call.
ACL_EXPORT aclnnStatus NnopbaseGetUnContiguousTensors(void*, const aclTensorList** tensors) {
    if (tensors != nullptr) *tensors = nullptr;
    return 0;
}
ACL_EXPORT aclnnStatus NnopbaseSetUnContExecutor(void*, aclOpExecutor*, size_t) { return 0; }
ACL_EXPORT aclnnStatus NnopbaseGetUnContExecutor(void*, aclOpExecutor** executor, size_t* workspace_size) {
    if (executor != nullptr) *executor = nullptr;
    if (workspace_size != nullptr) *workspace_size = 0;
    return 0;
}
ACL_EXPORT aclnnStatus NnopbaseGetRefUnContiguousTensors(void*, const aclTensorList** strided,
                                                         const aclTensorList** contiguous) {
    if (strided != nullptr) *strided = nullptr;
    if (contiguous != nullptr) *contiguous = nullptr;
    return 0;
}
ACL_EXPORT aclnnStatus NnopbaseReleaseRefContiguousTensors(void*, const aclTensorList**) { return 0; }
ACL_EXPORT aclnnStatus NnopbaseSetViewCopyExecutor(void*, aclOpExecutor*) { return 0; }
ACL_EXPORT aclnnStatus NnopbaseGetViewCopyExecutor(void*, aclOpExecutor** executor) {
    if (executor != nullptr) *executor = nullptr;
    return 0;
}
// The number of an operator's type, by which CANN finds its binaries.
ACL_EXPORT void NnopbaseAddOpTypeId(void*, uint32_t) {}
// A function of this library by its name; null where it has none.
ACL_EXPORT void* NnopbaseGetApiFunc(const char* name) {
    return name == nullptr ? nullptr : dlsym(RTLD_DEFAULT, name);
}
