#ifndef RUNNING_TOTAL_L0_H_
#define RUNNING_TOTAL_L0_H_
#include "aclnn_kernels/contiguous.h"
#include "opdev/op_executor.h"

namespace l0op {
const aclTensor* RunningTotal(const aclTensor* x, int64_t behind, aclOpExecutor* executor);
}  // namespace l0op
#endif
