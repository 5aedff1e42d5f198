// What every generated aclnn header includes.
#ifndef ASCEND_GRAPH_ACLNN_ACLNN_BASE_H
#define ASCEND_GRAPH_ACLNN_ACLNN_BASE_H
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "aclnn/acl_meta.h"
#endif  // ASCEND_GRAPH_ACLNN_ACLNN_BASE_H
