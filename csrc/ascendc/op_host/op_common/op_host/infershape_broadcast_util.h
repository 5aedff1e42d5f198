// Shapes of operators that broadcast their inputs.
#ifndef ASCEND_GRAPH_OP_HOST_INFERSHAPE_BROADCAST_UTIL_H
#define ASCEND_GRAPH_OP_HOST_INFERSHAPE_BROADCAST_UTIL_H

#include <algorithm>
#include <vector>

#include "exe_graph/runtime/infer_shape_context.h"
#include "op_common/log/log.h"
#include "util/shape_util.h"

namespace Ops::Base {

// The shape that all broadcast to; false where there is none.
inline bool BroadcastShape(const std::vector<const gert::Shape*>& shapes, gert::Shape* result) {
    size_t rank = 0;
    for (const gert::Shape* shape : shapes) {
        if (shape == nullptr || result == nullptr) return false;
        if (IsUnknownRank(*shape)) return SetUnknownRank(*result), true;
        rank = std::max(rank, shape->GetDimNum());
    }
    gert::Shape broadcast;
    broadcast.SetDimNum(rank);
    for (size_t i = 0; i < rank; ++i) {
        int64_t size = 1;
        for (const gert::Shape* shape : shapes) {
            const size_t missing = rank - shape->GetDimNum();
            const int64_t own = i < missing ? 1 : shape->GetDim(i - missing);
            if (own == 1 || own == size) continue;
            if (size == 1 || size == -1)
                size = own;
            else if (own != -1)
                return false;
        }
        broadcast.SetDim(i, size);
    }
    *result = broadcast;
    return true;
}
inline bool BroadcastShape(const gert::Shape* one, const gert::Shape* other, gert::Shape* result) {
    return BroadcastShape(std::vector<const gert::Shape*>{one, other}, result);
}

inline ge::graphStatus InferShape4Broadcast(gert::InferShapeContext* context, size_t inputs) {
    std::vector<const gert::Shape*> shapes;
    for (size_t i = 0; i < inputs; ++i) shapes.push_back(context->GetInputShape(i));
    if (BroadcastShape(shapes, context->GetOutputShape(0))) return ge::GRAPH_SUCCESS;
    OP_LOGE(context, "the shapes %s do not broadcast", ToString(shapes).c_str());
    return ge::GRAPH_FAILED;
}
inline ge::graphStatus InferShape4Broadcast(gert::InferShapeContext* context) {
    return InferShape4Broadcast(context, 2);
}

}  // namespace Ops::Base

#endif  // ASCEND_GRAPH_OP_HOST_INFERSHAPE_BROADCAST_UTIL_H
