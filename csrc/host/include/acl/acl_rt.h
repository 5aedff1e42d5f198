// torch_npu's own header where it is on the include path; else the host runtime's.
#ifndef ASCEND_GRAPH_ACL_ACL_RT_H
#define ASCEND_GRAPH_ACL_ACL_RT_H
#if __has_include("third_party/acl/inc/acl/acl_rt.h")
#include "third_party/acl/inc/acl/acl_rt.h"
#else
#include "acl/host_acl_rt.h"
#endif
#endif  // ASCEND_GRAPH_ACL_ACL_RT_H
