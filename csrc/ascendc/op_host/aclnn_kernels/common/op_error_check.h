// The checks of hand-written aclnn functions: each logs what is wrong, which is what the caller gets, and
// goes on with the statement that it is given.
#ifndef ASCEND_GRAPH_ACLNN_KERNELS_OP_ERROR_CHECK_H
#define ASCEND_GRAPH_ACLNN_KERNELS_OP_ERROR_CHECK_H

#include <cstdint>

#include "opdev/common_types.h"
#include "opdev/data_type_utils.h"
#include "opdev/op_log.h"
#include "opdev/shape_utils.h"

template <typename T>
bool IsNullptr(const T* value, const char* name) {
    if (value != nullptr) return false;
    OP_LOGE(ACLNN_ERR_PARAM_NULLPTR, "%s is null; it is needed", name);
    return true;
}

// Whether every size fits in 32 bits.
inline bool CheckDims(const aclTensor* tensor) {
    const auto& shape = tensor->GetViewShape();
    for (size_t axis = 0; axis < shape.GetDimNum(); ++axis) {
        if (shape.GetDim(axis) <= INT32_MAX) continue;
        OP_LOGE(ACLNN_ERR_PARAM_INVALID, "a tensor has shape %s; a size can be %d at most",
                op::ToString(shape).GetString(), INT32_MAX);
        return false;
    }
    return true;
}

// Whether a result has the shape that was inferred; a single element may have any rank.
inline bool CheckReduceOutShape(const aclTensor* inferOut, const aclTensor* out) {
    const auto &inferred = inferOut->GetViewShape(), &given = out->GetViewShape();
    if (inferred == given || (inferred.GetShapeSize() == 1 && given.GetShapeSize() == 1)) return true;
    OP_LOGE(ACLNN_ERR_PARAM_INVALID, "out has shape %s, and the result %s", op::ToString(given).GetString(),
            op::ToString(inferred).GetString());
    return false;
}

// Whether two images, NCHW or NHWC, agree in number and channels.
inline bool CheckNCDimValid(const aclTensor* self, const aclTensor* out) {
    const auto format = self->GetStorageFormat();
    if (format != op::Format::FORMAT_NCHW && format != op::Format::FORMAT_NHWC) {
        OP_LOGE(ACLNN_ERR_PARAM_INVALID, "the format is %s; it can be NCHW or NHWC",
                op::ToString(format).GetString());
        return false;
    }
    const size_t channels = format == op::Format::FORMAT_NCHW ? 1 : 3;
    const auto &from = self->GetViewShape(), &to = out->GetViewShape();
    if (from.GetDim(0) == to.GetDim(0) && from.GetDim(channels) == to.GetDim(channels)) return true;
    OP_LOGE(ACLNN_ERR_PARAM_INVALID, "the shapes %s and %s differ in number or channels",
            op::ToString(from).GetString(), op::ToString(to).GetString());
    return false;
}

// Plain conditions: what a caller goes on with can be `continue`, and some leave the semicolon out.
#define ASCEND_GRAPH_REPORT_IF(code, condition, retExpr, ...) \
    if (condition) {                                          \
        OP_LOGE(code, __VA_ARGS__);                           \
        retExpr;                                              \
    }
#define ASCEND_GRAPH_REFUSE_IF(condition, retExpr, ...) \
    ASCEND_GRAPH_REPORT_IF(ACLNN_ERR_PARAM_INVALID, condition, retExpr, __VA_ARGS__)
#define ASCEND_GRAPH_TEXT(value) op::ToString(value).GetString()

#define OP_CHECK_NULL(param, retExpr) \
    if (IsNullptr(param, #param)) {   \
        retExpr;                      \
    }
#define OP_CHECK_COMM_INPUT(workspaceSize, executor)                                \
    if (IsNullptr(workspaceSize, #workspaceSize) || IsNullptr(executor, #executor)) \
        return ACLNN_ERR_PARAM_NULLPTR;

#define OP_CHECK_DTYPE_NOT_SUPPORT(tensor, supportList, retExpr)                                          \
    ASCEND_GRAPH_REFUSE_IF(!op::CheckType((tensor)->GetDataType(), supportList), retExpr,                 \
                           "%s is %s; it can be %s", #tensor, ASCEND_GRAPH_TEXT((tensor)->GetDataType()), \
                           ASCEND_GRAPH_TEXT(supportList))
#define OP_CHECK_DTYPE_NOT_MATCH(tensor, expectedDtype, retExpr)                                           \
    ASCEND_GRAPH_REFUSE_IF((tensor)->GetDataType() != (expectedDtype), retExpr, "%s is %s; it must be %s", \
                           #tensor, ASCEND_GRAPH_TEXT((tensor)->GetDataType()),                            \
                           ASCEND_GRAPH_TEXT(expectedDtype))
#define OP_CHECK_DTYPE_NOT_SAME(tensor1, tensor2, retExpr)                                \
    ASCEND_GRAPH_REFUSE_IF((tensor1)->GetDataType() != (tensor2)->GetDataType(), retExpr, \
                           "%s is %s, and %s is %s; they must have one dtype", #tensor1,  \
                           ASCEND_GRAPH_TEXT((tensor1)->GetDataType()), #tensor2,         \
                           ASCEND_GRAPH_TEXT((tensor2)->GetDataType()))
#define OP_CHECK_RESULT_DTYPE_CAST_FAILED(dtype, desiredDtype, retExpr)                               \
    ASCEND_GRAPH_REFUSE_IF(!op::CanCast(dtype, desiredDtype), retExpr, "a result of %s cannot be %s", \
                           ASCEND_GRAPH_TEXT(dtype), ASCEND_GRAPH_TEXT(desiredDtype))

#define OP_CHECK_BROADCAST_WITH_SHAPE(tensor, shape, retExpr)                                  \
    ASCEND_GRAPH_REFUSE_IF(!op::CheckBroadcastShape((tensor)->GetViewShape(), shape), retExpr, \
                           "%s has shape %s, which does not broadcast with %s", #tensor,       \
                           ASCEND_GRAPH_TEXT((tensor)->GetViewShape()), ASCEND_GRAPH_TEXT(shape))
#define OP_CHECK_BROADCAST(tensor1, tensor2, retExpr) \
    OP_CHECK_BROADCAST_WITH_SHAPE(tensor1, (tensor2)->GetViewShape(), retExpr)
#define OP_CHECK_BROADCAST_AND_INFER_SHAPE(tensor1, tensor2, retShape, retExpr)                            \
    ASCEND_GRAPH_REFUSE_IF(                                                                                \
        !op::BroadcastInferShape((tensor1)->GetViewShape(), (tensor2)->GetViewShape(), retShape), retExpr, \
        "%s has shape %s, which does not broadcast with %s of %s", #tensor1,                               \
        ASCEND_GRAPH_TEXT((tensor1)->GetViewShape()), ASCEND_GRAPH_TEXT((tensor2)->GetViewShape()),        \
        #tensor2)
#define OP_CHECK_SHAPE_NOT_EQUAL_WITH_EXPECTED_SIZE(tensor, shape, retExpr)                                \
    ASCEND_GRAPH_REFUSE_IF((tensor)->GetViewShape() != (shape), retExpr, "%s has shape %s; it must be %s", \
                           #tensor, ASCEND_GRAPH_TEXT((tensor)->GetViewShape()), ASCEND_GRAPH_TEXT(shape))
#define OP_CHECK_SHAPE_NOT_EQUAL(tensor1, tensor2, retExpr) \
    OP_CHECK_SHAPE_NOT_EQUAL_WITH_EXPECTED_SIZE(tensor1, (tensor2)->GetViewShape(), retExpr)
#define ASCEND_GRAPH_REFUSE_RANK(tensor, relation, rank, retExpr, expected)                                  \
    ASCEND_GRAPH_REFUSE_IF((tensor)->GetViewShape().GetDimNum() relation static_cast<size_t>(rank), retExpr, \
                           "%s has shape %s; it must have " expected " %zu dimensions", #tensor,             \
                           ASCEND_GRAPH_TEXT((tensor)->GetViewShape()), static_cast<size_t>(rank))
#define OP_CHECK_WRONG_DIMENSION(tensor, expectedDimNum, retExpr) \
    ASCEND_GRAPH_REFUSE_RANK(tensor, !=, expectedDimNum, retExpr, "exactly")
#define OP_CHECK_MAX_DIM(tensor, maxDim, retExpr) \
    ASCEND_GRAPH_REFUSE_RANK(tensor, >, maxDim, retExpr, "at most")
#define OP_CHECK_MIN_DIM(tensor, minDim, retExpr) \
    ASCEND_GRAPH_REFUSE_RANK(tensor, <, minDim, retExpr, "at least")
#define OP_CHECK_TENSORLIST_SIZE_EQUAL(tensorlist1, tensorlist2, retExpr)                              \
    ASCEND_GRAPH_REFUSE_IF((tensorlist1)->Size() != (tensorlist2)->Size(), retExpr,                    \
                           "%s has %zu tensors, and %s has %zu; they must have as many", #tensorlist1, \
                           static_cast<size_t>((tensorlist1)->Size()), #tensorlist2,                   \
                           static_cast<size_t>((tensorlist2)->Size()))

// What a condition says went wrong, in the caller's own words.
#define OP_CHECK_ADD_TO_LAUNCHER_LIST_AICORE(condition, retExpr, ...) \
    ASCEND_GRAPH_REPORT_IF(ACLNN_ERR_INNER_STATIC_WORKSPACE_INVALID, condition, retExpr, __VA_ARGS__)
#define OP_CHECK_INFERSHAPE(condition, retExpr, ...) \
    ASCEND_GRAPH_REPORT_IF(ACLNN_ERR_INNER_INFERSHAPE_ERROR, condition, retExpr, __VA_ARGS__)

#endif  // ASCEND_GRAPH_ACLNN_KERNELS_OP_ERROR_CHECK_H
