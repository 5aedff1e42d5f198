// torch_npu's own header where it is on the include path; else the host runtime's.
#ifndef ASCEND_GRAPH_ACL_ACL_TDT_H
#define ASCEND_GRAPH_ACL_ACL_TDT_H
#if __has_include("third_party/acl/inc/acl/acl_tdt.h")
#include "third_party/acl/inc/acl/acl_tdt.h"
#else
#include "acl/host_acl_tdt.h"
#endif
#endif  // ASCEND_GRAPH_ACL_ACL_TDT_H
