// Helpers of tiling functions.
#ifndef ASCEND_GRAPH_OP_HOST_TILING_BASE_UTIL_H
#define ASCEND_GRAPH_OP_HOST_TILING_BASE_UTIL_H

#include "platform/soc_spec.h"
#include "register/op_impl_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace Ops::Base {

// Whether the device's vector unit works on registers.
template <typename Context>
bool is_register_based(const Context* context) {
    const auto architecture = platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCurNpuArch();
    return architecture == NpuArch::DAV_3510 || architecture == NpuArch::DAV_5102;
}
inline bool IsRegbaseSocVersion(const gert::TilingParseContext* context) {
    return is_register_based(context);
}
inline bool IsRegbaseSocVersion(const gert::TilingContext* context) { return is_register_based(context); }

// A scalar's shape as [1], any other as it is. A template, because opbase's header of broadcasts defines a
// function of the same signature.
template <typename Shape>
const Shape& EnsureNotScalar(const Shape& shape) {
    static const Shape one{1};
    return shape.GetDimNum() == 0 ? one : shape;
}

}  // namespace Ops::Base

#endif  // ASCEND_GRAPH_OP_HOST_TILING_BASE_UTIL_H
