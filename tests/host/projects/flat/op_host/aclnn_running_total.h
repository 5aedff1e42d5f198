#ifndef ACLNN_RUNNING_TOTAL_H_
#define ACLNN_RUNNING_TOTAL_H_
#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif
aclnnStatus aclnnRunningTotalGetWorkspaceSize(const aclTensor* self, int64_t behind, aclTensor* out,
                                              uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnRunningTotal(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                              aclrtStream stream);
#ifdef __cplusplus
}
#endif
#endif
