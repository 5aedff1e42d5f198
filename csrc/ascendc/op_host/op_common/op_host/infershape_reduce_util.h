// Shapes of operators that reduce over axes.
#ifndef ASCEND_GRAPH_OP_HOST_INFERSHAPE_REDUCE_UTIL_H
#define ASCEND_GRAPH_OP_HOST_INFERSHAPE_REDUCE_UTIL_H

#include <vector>

#include "exe_graph/runtime/infer_shape_context.h"
#include "op_common/log/log.h"
#include "util/shape_util.h"

namespace Ops::Base {

// `output` may hold a copy of `input` already; it is written as a whole.
template <typename T>
ge::graphStatus ReduceDims(const gert::Shape* input, const T* axes, int32_t count, bool keep,
                           gert::Shape* output) {
    if (IsUnknownRank(*input)) return SetUnknownRank(*output), ge::GRAPH_SUCCESS;
    const auto rank = static_cast<int64_t>(input->GetDimNum());
    std::vector<bool> reduced(input->GetDimNum(), false);
    for (int32_t i = 0; i < count; ++i) {
        const auto axis = static_cast<int64_t>(axes[i]);
        if (!CheckAxisBounds(rank, axis)) {
            OP_LOGE("reduce", "axis %ld is out of range for %ld dimensions", static_cast<long>(axis),
                    static_cast<long>(rank));
            return ge::GRAPH_FAILED;
        }
        if (rank != 0) reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
    }
    gert::Shape result;
    result.SetDimNum(0);
    for (size_t i = 0; i < reduced.size(); ++i) {
        if (!reduced[i])
            result.AppendDim(input->GetDim(i));
        else if (keep)
            result.AppendDim(1);
    }
    *output = result;
    return ge::GRAPH_SUCCESS;
}
template <typename T>
ge::graphStatus ReduceDimsWithKeepDims(const gert::Shape* input, const T* axes, int32_t count,
                                       gert::Shape* output) {
    return ReduceDims(input, axes, count, true, output);
}
template <typename T>
ge::graphStatus ReduceDimsWithoutKeepDims(const gert::Shape* input, const T* axes, int32_t count,
                                          gert::Shape* output) {
    return ReduceDims(input, axes, count, false, output);
}
template <typename T>
ge::graphStatus ReduceDims(const gert::Shape* input, const gert::Tensor* axes, int32_t count, const bool keep,
                           gert::Shape* output) {
    return ReduceDims(input, axes->GetData<T>(), count, keep, output);
}

// Input 0 over the axes that input 1 has; attr 0 says whether they stay as 1.
inline ge::graphStatus InferShape4Reduce(gert::InferShapeContext* context) {
    const gert::Shape* input = context->GetInputShape(0);
    const gert::Tensor* axes = context->GetInputTensor(1);
    gert::Shape* output = context->GetOutputShape(0);
    const bool* keep = context->GetAttrs()->GetAttrPointer<bool>(0);
    OP_CHECK_NULL_WITH_CONTEXT(context, input);
    OP_CHECK_NULL_WITH_CONTEXT(context, axes);
    OP_CHECK_NULL_WITH_CONTEXT(context, output);
    OP_CHECK_NULL_WITH_CONTEXT(context, keep);
    const auto count = static_cast<int32_t>(axes->GetShapeSize());
    if (axes->GetDataType() == ge::DT_INT32) return ReduceDims<int32_t>(input, axes, count, *keep, output);
    if (axes->GetDataType() == ge::DT_INT64) return ReduceDims<int64_t>(input, axes, count, *keep, output);
    OP_LOGE(context, "axes are %s, not int32 or int64", ToString(axes->GetDataType()).c_str());
    return ge::GRAPH_FAILED;
}

}  // namespace Ops::Base

#endif  // ASCEND_GRAPH_OP_HOST_INFERSHAPE_REDUCE_UTIL_H
