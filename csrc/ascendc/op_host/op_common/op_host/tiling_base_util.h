// Helpers of tiling functions.
#ifndef ASCEND_GRAPH_OP_HOST_TILING_BASE_UTIL_H
#define ASCEND_GRAPH_OP_HOST_TILING_BASE_UTIL_H

#include "platform/soc_spec.h"
#include "register/op_impl_registry.h"

namespace Ops::Base {

// Whether the device's vector unit works on registers: not the Atlas A2 that the host stands for.
inline bool IsRegbaseSocVersion(const gert::TilingParseContext*) { return false; }
inline bool IsRegbaseSocVersion(const gert::TilingContext*) { return false; }

// A scalar's shape as [1], any other as it is.
inline const gert::Shape& EnsureNotScalar(const gert::Shape& shape) {
    static const gert::Shape one{1};
    return shape.GetDimNum() == 0 ? one : shape;
}

}  // namespace Ops::Base

#endif  // ASCEND_GRAPH_OP_HOST_TILING_BASE_UTIL_H
