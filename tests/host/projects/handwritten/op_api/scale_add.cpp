#include "scale_add.h"

#include "opdev/make_op_executor.h"
#include "opdev/op_def.h"
#include "opdev/op_dfx.h"
#include "opdev/op_log.h"

namespace l0op {
OP_TYPE_REGISTER(ScaleAdd);
OP_TYPE_REGISTER(Neg);
OP_TYPE_REGISTER(BroadcastTo);

// The operator of this package; the shape comes from its InferShape.
const aclTensor* ScaleAdd(const aclTensor* x, const aclTensor* other, float factor, aclOpExecutor* executor) {
    L0_DFX(ScaleAdd, x, other, factor);
    auto out = executor->AllocTensor(x->GetDataType(), x->GetStorageFormat(), x->GetOriginalFormat());
    auto status = INFER_SHAPE(ScaleAdd, OP_INPUT(x, other), OP_OUTPUT(out), OP_ATTR(factor));
    OP_CHECK(status == ACLNN_SUCCESS, OP_LOGE(ACLNN_ERR_INNER_INFERSHAPE_ERROR, "no shape"), return nullptr);
    status = ADD_TO_LAUNCHER_LIST_AICORE(ScaleAdd, OP_ATTR_NAMES({"factor"}), OP_INPUT(x, other),
                                         OP_OUTPUT(out), OP_ATTR(factor));
    return status == ACLNN_SUCCESS ? out : nullptr;
}

// One that no package has.
const aclTensor* Neg(const aclTensor* x, aclOpExecutor* executor) {
    L0_DFX(Neg, x);
    auto out = executor->AllocTensor(x->GetViewShape(), x->GetDataType());
    return ADD_TO_LAUNCHER_LIST_AICORE(Neg, op::AI_CORE, OP_INPUT(x), OP_OUTPUT(out)) == ACLNN_SUCCESS
               ? out
               : nullptr;
}
// The shape of its result is a value of the second input.
const aclTensor* BroadcastTo(const aclTensor* x, const aclIntArray* shape, aclOpExecutor* executor) {
    L0_DFX(BroadcastTo, x, shape);
    auto out = executor->AllocTensor(x->GetDataType(), x->GetStorageFormat(), x->GetOriginalFormat());
    auto sizes = executor->ConvertToTensor(shape, op::DataType::DT_INT64);
    INFER_SHAPE(BroadcastTo, OP_INPUT(x, sizes), OP_OUTPUT(out));
    return ADD_TO_LAUNCHER_LIST_AICORE(BroadcastTo, OP_INPUT(x, sizes), OP_OUTPUT(out)) == ACLNN_SUCCESS
               ? out
               : nullptr;
}
}  // namespace l0op
