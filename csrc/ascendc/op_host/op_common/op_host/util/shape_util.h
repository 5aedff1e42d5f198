// Shapes that are not known yet: one dimension (-1), or how many there are (-2).
#ifndef ASCEND_GRAPH_OP_HOST_SHAPE_UTIL_H
#define ASCEND_GRAPH_OP_HOST_SHAPE_UTIL_H

#include "exe_graph/runtime/shape.h"
#include "util/opbase_export.h"

namespace Ops::Base {

// Whether an axis, which may count from the end, is one of `dimNum`; a scalar has axis 0.
template <typename Number, typename Axis>
bool CheckAxisBounds(const Number dimNum, const Axis axis) {
    const auto rank = static_cast<int64_t>(dimNum), number = static_cast<int64_t>(axis);
    return rank == 0 ? number == 0 : -rank <= number && number < rank;
}

inline void SetUnknownRank(gert::Shape& shape) {
    shape.SetDimNum(1);
    shape.SetDim(0, -2);
}
inline bool IsUnknownRank(const gert::Shape& shape) {
    return shape.GetDimNum() == 1 && shape.GetDim(0) == -2;
}
inline void SetUnknownShape(int64_t rank, gert::Shape& shape) {
    shape.SetDimNum(static_cast<size_t>(rank));
    for (size_t i = 0; i < shape.GetDimNum(); ++i) shape.SetDim(i, -1);
}
inline bool IsUnknownShape(const gert::Shape& shape) {
    for (size_t i = 0; i < shape.GetDimNum(); ++i) {
        if (shape.GetDim(i) < 0) return true;
    }
    return false;
}

}  // namespace Ops::Base

#endif  // ASCEND_GRAPH_OP_HOST_SHAPE_UTIL_H
