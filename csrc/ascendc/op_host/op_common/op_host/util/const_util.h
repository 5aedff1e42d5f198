// Values of inputs that tiling and shape functions read: an integer, or the sizes of a shape.
#ifndef ASCEND_GRAPH_OP_HOST_CONST_UTIL_H
#define ASCEND_GRAPH_OP_HOST_CONST_UTIL_H

#include "exe_graph/runtime/infer_shape_context.h"
#include "exe_graph/runtime/tiling_context.h"
#include "op_common/log/log.h"

namespace Ops::Base {

namespace detail {

// Calls `each` with every element of a tensor of integers; false where its values are not known or no
// integers.
template <typename Each>
bool for_each_integer(const gert::Tensor* tensor, Each&& each) {
    const auto read = [&](auto of_type) {
        const auto* values = tensor->GetData<decltype(of_type)>();
        if (values == nullptr) return false;
        for (int64_t i = 0; i < tensor->GetShapeSize(); ++i) each(values[i]);
        return true;
    };
    if (tensor == nullptr) return false;
    switch (tensor->GetDataType()) {
        case ge::DT_INT32:
            return read(int32_t{});
        case ge::DT_INT64:
            return read(int64_t{});
        case ge::DT_UINT32:
            return read(uint32_t{});
        case ge::DT_UINT64:
            return read(uint64_t{});
        default:
            return false;
    }
}

}  // namespace detail

// The first element of an input of integers; false where it has none or its values are not known.
template <typename Context, typename T>
bool GetConstInt(const Context* context, int64_t index, T& value) {
    if (context == nullptr) return false;
    bool found = false;
    const bool known =
        detail::for_each_integer(context->GetInputTensor(static_cast<size_t>(index)), [&](auto element) {
            if (!found) value = static_cast<T>(element);
            found = true;
        });
    if (!known || !found) OP_LOGE(context, "the value of input %ld is not known", static_cast<long>(index));
    return known && found;
}

// A tensor's elements as sizes.
template <typename T>
bool GetValueToShape(const gert::Tensor* tensor, gert::Shape& shape) {
    const T* values = tensor == nullptr ? nullptr : tensor->GetData<T>();
    if (values == nullptr) return false;
    shape.SetDimNum(0);
    for (int64_t i = 0; i < tensor->GetShapeSize(); ++i) shape.AppendDim(static_cast<int64_t>(values[i]));
    return true;
}

template <typename Context>
bool GetConstIntToShape(const Context* context, int64_t index, gert::Shape& shape) {
    if (context == nullptr) return false;
    gert::Shape read;
    read.SetDimNum(0);
    const bool known =
        detail::for_each_integer(context->GetInputTensor(static_cast<size_t>(index)),
                                 [&](auto element) { read.AppendDim(static_cast<int64_t>(element)); });
    if (known) shape = read;
    return known;
}

}  // namespace Ops::Base

#endif  // ASCEND_GRAPH_OP_HOST_CONST_UTIL_H
