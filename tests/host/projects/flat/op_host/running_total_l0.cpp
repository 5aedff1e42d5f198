#include "running_total_l0.h"

#include "opdev/make_op_executor.h"
#include "opdev/op_def.h"
#include "opdev/op_dfx.h"

namespace l0op {
OP_TYPE_REGISTER(RunningTotal);

const aclTensor* RunningTotal(const aclTensor* x, int64_t behind, aclOpExecutor* executor) {
    L0_DFX(RunningTotal, x, behind);
    auto out = executor->AllocTensor(x->GetViewShape(), x->GetDataType());
    const auto status =
        ADD_TO_LAUNCHER_LIST_AICORE(RunningTotal, OP_INPUT(x), OP_OUTPUT(out), OP_ATTR(behind));
    return status == ACLNN_SUCCESS ? out : nullptr;
}
}  // namespace l0op
