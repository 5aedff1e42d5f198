// Shapes of elementwise operators: every output is like the first input.
#ifndef ASCEND_GRAPH_OP_HOST_INFERSHAPE_ELEWISE_UTIL_H
#define ASCEND_GRAPH_OP_HOST_INFERSHAPE_ELEWISE_UTIL_H

#include "exe_graph/runtime/infer_shape_context.h"
#include "op_common/log/log.h"

namespace Ops::Base {

inline ge::graphStatus InferShape4Elewise(gert::InferShapeContext* context) {
    const gert::Shape* input = context->GetInputShape(0);
    gert::Shape* output = context->GetOutputShape(0);
    OP_CHECK_NULL_WITH_CONTEXT(context, input);
    OP_CHECK_NULL_WITH_CONTEXT(context, output);
    *output = *input;
    return ge::GRAPH_SUCCESS;
}

}  // namespace Ops::Base

#endif  // ASCEND_GRAPH_OP_HOST_INFERSHAPE_ELEWISE_UTIL_H
