// Operators that hand-written aclnn functions are made of, as functions over an executor. Null is a failure.
#ifndef ASCEND_GRAPH_OP_API_KERNELS_H
#define ASCEND_GRAPH_OP_API_KERNELS_H

#include <tuple>

#include "ascend_graph/op_api/executor.h"

namespace l0op {

// The elements without gaps: the tensor itself, or a copy.
const aclTensor* Contiguous(const aclTensor* x, aclOpExecutor* executor);
const aclTensor* PickViewAsContiguous(const aclTensor* x, aclOpExecutor* executor);
// Copies x into y, whatever strides y has; the result is y.
const aclTensor* ViewCopy(const aclTensor* x, const aclTensor* y, aclOpExecutor* executor);
const aclTensor* ReViewToOut(const aclTensor* x, const aclTensor* y, aclOpExecutor* executor);
const aclTensor* Cast(const aclTensor* self, op::DataType dstDtype, aclOpExecutor* executor);
const aclTensor* CastOnlyForConvBackward(const aclTensor* self, op::DataType dstDtype,
                                         aclOpExecutor* executor);
// One size may be -1.
const aclTensor* Reshape(const aclTensor* x, const op::Shape& shape, aclOpExecutor* executor);
const aclTensor* Reshape(const aclTensor* x, const aclIntArray* shape, aclOpExecutor* executor);
const aclTensor* Transpose(const aclTensor* x, const aclIntArray* perm, aclOpExecutor* executor);
const aclTensor* Transpose(const aclTensor* x, const aclTensor* y, const aclTensor* perm,
                           aclOpExecutor* executor);
const aclTensor* Slice(const aclTensor* x, const aclIntArray* offsets, const aclIntArray* size,
                       aclOpExecutor* executor);
const aclTensor* Slice(const aclTensor* x, const aclTensor* y, const aclTensor* offset, const aclTensor* size,
                       aclOpExecutor* executor);
// paddings: [rank, 2], with values that are known.
const aclTensor* Pad(const aclTensor* self, const aclTensor* paddings, aclOpExecutor* executor);
// Values and indices along a dimension; indices are int32 or int64.
const std::tuple<aclTensor*, aclTensor*> Sort(const aclTensor* self, int64_t dim, bool descending,
                                              bool stable, op::DataType indicesType, aclOpExecutor* executor);
// The same memory under another format's name.
const aclTensor* ReFormat(const aclTensor* x, const op::Format& format, aclOpExecutor* executor = nullptr);
// Formats in which elements lie otherwise than the shape says are refused.
const aclTensor* TransData(const aclTensor* x, op::Format dstPrimaryFormat, int64_t groups,
                           aclOpExecutor* executor);
const aclTensor* TransDataSpecial(const aclTensor* x, op::Format dstPrimaryFormat, int64_t groups,
                                  aclOpExecutor* executor);

}  // namespace l0op

#endif  // ASCEND_GRAPH_OP_API_KERNELS_H
