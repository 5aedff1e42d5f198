// Values of attrs, from the host's form to what authors' functions read.
#ifndef ASCEND_GRAPH_OP_HOST_ATTR_VALUES_H
#define ASCEND_GRAPH_OP_HOST_ATTR_VALUES_H

#include <string>

#include "ascend_graph/host_kernel.h"
#include "exe_graph/runtime/runtime_attrs.h"

namespace ascend_graph::host {

// Adds a value; false where it is none that an attr can have.
inline bool add_value(gert::RuntimeAttrs& attrs, const Value& value) {
    switch (value.kind) {
        case ValueKind::kInt:
            return attrs.add(value.i), true;
        case ValueKind::kFloat:
            return attrs.add(static_cast<float>(value.f)), true;
        case ValueKind::kBool:
            return attrs.add(value.b), true;
        case ValueKind::kString:
            return attrs.add(std::string(value.s)), true;
        case ValueKind::kIntList:
            return attrs.add(gert::TypedContinuousVector<int64_t>(value.ints, value.count)), true;
        case ValueKind::kFloatList:
            return attrs.add(gert::TypedContinuousVector<float>(value.floats, value.count)), true;
        case ValueKind::kBoolList:
            return attrs.add(gert::TypedContinuousVector<bool>(value.bools, value.count)), true;
        default:
            return false;
    }
}

}  // namespace ascend_graph::host

#endif
