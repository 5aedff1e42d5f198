// Any real dtype, any strides, a single number for the second: what the operator cannot do alone. Other
// shapes that broadcast are refused.
#include "aclnn_scale_add.h"

#include "aclnnInner_scale_add.h"
#include "aclnn_kernels/cast.h"
#include "aclnn_kernels/common/op_error_check.h"
#include "aclnn_kernels/contiguous.h"
#include "aclnn_kernels/transpose.h"
#include "opdev/data_type_utils.h"
#include "opdev/op_dfx.h"
#include "opdev/op_log.h"
#include "opdev/platform.h"
#include "opdev/shape_utils.h"
#include "scale_add.h"

using namespace op;

static const std::initializer_list<DataType> SUPPORTED = {DataType::DT_FLOAT, DataType::DT_FLOAT16,
                                                          DataType::DT_INT32, DataType::DT_BF16};

extern "C" aclnnStatus aclnnScaleAddGetWorkspaceSize(const aclTensor* self, const aclTensor* otherOptional,
                                                     const aclScalar* alpha, bool negative,
                                                     const aclIntArray* perm, aclTensor* out,
                                                     uint64_t* workspaceSize, aclOpExecutor** executor) {
    L2_DFX_PHASE_1(aclnnScaleAdd, DFX_IN(self, otherOptional, alpha, negative), DFX_OUT(out));
    auto unique = CREATE_EXECUTOR();
    CHECK_RET(unique.get() != nullptr, ACLNN_ERR_INNER_CREATE_EXECUTOR);
    OP_CHECK_NULL(self, return ACLNN_ERR_PARAM_NULLPTR)
    OP_CHECK_NULL(out, return ACLNN_ERR_PARAM_NULLPTR);
    OP_CHECK_MAX_DIM(self, 8, return ACLNN_ERR_PARAM_INVALID);
    OP_CHECK_DTYPE_NOT_SUPPORT(self, SUPPORTED, return ACLNN_ERR_PARAM_INVALID);
    OP_CHECK_RESULT_DTYPE_CAST_FAILED(DataType::DT_FLOAT, out->GetDataType(), return ACLNN_ERR_PARAM_INVALID);
    OP_CHECK(GetCurrentPlatformInfo().GetSocVersion() == SocVersion::ASCEND910B,
             OP_LOGE(ACLNN_ERR_PARAM_INVALID, "another device"), return ACLNN_ERR_PARAM_INVALID);
    if (self->IsEmpty()) {
        *workspaceSize = 0;
        unique.ReleaseTo(executor);
        return ACLNN_SUCCESS;
    }
    auto x = l0op::Contiguous(self, unique.get());
    CHECK_RET(x != nullptr, ACLNN_ERR_INNER_NULLPTR);
    x = l0op::Cast(x, DataType::DT_FLOAT, unique.get());
    CHECK_RET(x != nullptr, ACLNN_ERR_INNER_NULLPTR);
    const aclTensor* other = nullptr;
    if (otherOptional != nullptr) {
        other = l0op::Cast(l0op::Contiguous(otherOptional, unique.get()), DataType::DT_FLOAT, unique.get());
        if (otherOptional->Numel() == 1) {
            const auto sizes = ToShapeVector(self->GetViewShape());
            other = l0op::BroadcastTo(other, unique->AllocIntArray(sizes.data(), sizes.size()), unique.get());
        } else {
            OP_CHECK_SHAPE_NOT_EQUAL(otherOptional, self, return ACLNN_ERR_PARAM_INVALID);
        }
    }
    auto y = l0op::ScaleAdd(x, other, alpha->ToFloat(), unique.get());
    CHECK_RET(y != nullptr, ACLNN_ERR_INNER_TILING_ERROR);
    if (negative) y = l0op::Neg(y, unique.get());
    if (perm != nullptr && perm->Size() != 0) y = l0op::Transpose(y, perm, unique.get());
    CHECK_RET(y != nullptr, ACLNN_ERR_INNER_NULLPTR);
    y = l0op::Cast(y, out->GetDataType(), unique.get());
    CHECK_RET(l0op::ViewCopy(y, out, unique.get()) != nullptr, ACLNN_ERR_INNER_NULLPTR);
    *workspaceSize = unique->GetWorkspaceSize();
    unique.ReleaseTo(executor);
    return ACLNN_SUCCESS;
}

extern "C" aclnnStatus aclnnScaleAdd(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                     aclrtStream stream) {
    L2_DFX_PHASE_2(aclnnScaleAdd);
    return CommonOpExecutorRun(workspace, workspaceSize, executor, stream);
}

// Forgets l0op::Contiguous, and calls the function that CANN generates.
extern "C" aclnnStatus aclnnInnerScaleAdd(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                          aclrtStream stream);
extern "C" aclnnStatus aclnnScaleAddRawGetWorkspaceSize(const aclTensor* self, aclTensor* out,
                                                        uint64_t* workspaceSize, aclOpExecutor** executor) {
    L2_DFX_PHASE_1(aclnnScaleAddRaw, DFX_IN(self), DFX_OUT(out));
    if (self->GetViewShape().GetDimNum() == 1)
        return aclnnInnerScaleAddGetWorkspaceSize(self, nullptr, 3.0, out, workspaceSize, executor);
    auto unique = CREATE_EXECUTOR();
    CHECK_RET(l0op::ScaleAdd(self, nullptr, 1.0f, unique.get()) != nullptr, ACLNN_ERR_PARAM_INVALID);
    return ACLNN_ERR_INNER;
}
extern "C" aclnnStatus aclnnScaleAddRaw(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                        aclrtStream stream) {
    L2_DFX_PHASE_2(aclnnScaleAddRaw);
    return aclnnInnerScaleAdd(workspace, workspaceSize, executor, stream);
}
