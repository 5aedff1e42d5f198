#ifndef ACLNN_SCALE_ADD_H_
#define ACLNN_SCALE_ADD_H_
#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif
ACLNN_API aclnnStatus aclnnScaleAddGetWorkspaceSize(const aclTensor* self, const aclTensor* otherOptional,
                                                    const aclScalar* alpha, bool negative,
                                                    const aclIntArray* perm, aclTensor* out,
                                                    uint64_t* workspaceSize, aclOpExecutor** executor);
ACLNN_API aclnnStatus aclnnScaleAdd(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                    aclrtStream stream);
ACLNN_API aclnnStatus aclnnScaleAddRawGetWorkspaceSize(const aclTensor* self, aclTensor* out,
                                                       uint64_t* workspaceSize, aclOpExecutor** executor);
ACLNN_API aclnnStatus aclnnScaleAddRaw(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                       aclrtStream stream);
#ifdef __cplusplus
}
#endif
#endif
