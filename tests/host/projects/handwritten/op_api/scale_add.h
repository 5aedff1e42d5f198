#ifndef SCALE_ADD_L0_H_
#define SCALE_ADD_L0_H_
#include "opdev/op_executor.h"

namespace l0op {
const aclTensor* ScaleAdd(const aclTensor* x, const aclTensor* other, float factor, aclOpExecutor* executor);
const aclTensor* Neg(const aclTensor* x, aclOpExecutor* executor);
const aclTensor* BroadcastTo(const aclTensor* x, const aclIntArray* shape, aclOpExecutor* executor);
}  // namespace l0op
#endif
