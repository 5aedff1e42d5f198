// torch_npu's own header where it is on the include path; else the host runtime's.
#ifndef ASCEND_GRAPH_ACL_ACL_RT_ALLOCATOR_H
#define ASCEND_GRAPH_ACL_ACL_RT_ALLOCATOR_H
#if __has_include("third_party/acl/inc/acl/acl_rt_allocator.h")
#include "third_party/acl/inc/acl/acl_rt_allocator.h"
#else
#include "acl/host_acl_rt.h"
#endif
#endif  // ASCEND_GRAPH_ACL_ACL_RT_ALLOCATOR_H
