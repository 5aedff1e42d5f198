// What wheels of torch_npu before 2.7.1.post4, 2.8.0.post4 and 2.9.0.post2 link of libhccl.so besides, so
// that these load.
#include "acl/abi.h"
#include "ascend_graph/host_runtime.h"

// Communicators of all devices in one process, which the host runtime has not: a process is a rank.
ACL_EXPORT int HcclCommInitAll() {
    constexpr int kNotSupported = 5;
    ascendgraphFail(ACL_ERROR_API_NOT_SUPPORT, "HcclCommInitAll is not implemented by the host runtime");
    return kNotSupported;
}
