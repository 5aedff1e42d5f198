#include "aclnn_running_total.h"

#include "opdev/op_dfx.h"
#include "opdev/op_log.h"
#include "running_total_l0.h"

namespace op {
static inline ge::AscendString ToString(const std::int64_t value) {
    return ge::AscendString(std::to_string(value).c_str());
}
}  // namespace op
using namespace op;

extern "C" aclnnStatus aclnnRunningTotalGetWorkspaceSize(const aclTensor* self, int64_t behind,
                                                         aclTensor* out, uint64_t* workspaceSize,
                                                         aclOpExecutor** executor) {
    L2_DFX_PHASE_1(aclnnRunningTotal, DFX_IN(self, behind), DFX_OUT(out));
    OP_CHECK(
        behind >= 0,
        OP_LOGE(ACLNN_ERR_PARAM_INVALID, "behind %s is less than %s of %s", op::ToString(behind).GetString(),
                op::ToString(0).GetString(), op::ToString(self).GetString()),
        return ACLNN_ERR_PARAM_INVALID);
    auto unique = CREATE_EXECUTOR();
    auto y = l0op::RunningTotal(self, behind, unique.get());
    CHECK_RET(y != nullptr, ACLNN_ERR_INNER_NULLPTR);
    CHECK_RET(l0op::ViewCopy(y, out, unique.get()) != nullptr, ACLNN_ERR_INNER_NULLPTR);
    *workspaceSize = unique->GetWorkspaceSize();
    unique.ReleaseTo(executor);
    return ACLNN_SUCCESS;
}
extern "C" aclnnStatus aclnnRunningTotal(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                         aclrtStream stream) {
    L2_DFX_PHASE_2(aclnnRunningTotal);
    return CommonOpExecutorRun(workspace, workspaceSize, executor, stream);
}
