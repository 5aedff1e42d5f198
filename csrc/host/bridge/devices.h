// Which tensors of different devices may meet in one operator.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace ascend_graph::host {

// Refuses arguments on different devices, in PyTorch's words: the host can read any memory, a device cannot.
void check_same_device(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);

// Applies `f` to every defined tensor of an argument: a tensor, a list, or a list of optional tensors.
template <typename F>
void for_each_tensor(const c10::IValue& value, F f) {
    if (value.isTensor()) {
        if (value.toTensor().defined()) f(value.toTensor());
    } else if (value.isTensorList() || value.isOptionalTensorList()) {
        for (const c10::IValue& element : value.toListRef()) {
            if (element.isTensor() && element.toTensor().defined()) f(element.toTensor());
        }
    }
}

}  // namespace ascend_graph::host
