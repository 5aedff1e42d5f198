// Which tensors of different devices may meet in one operator.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace ascend_graph::host {

// Refuses arguments on different devices, in PyTorch's words: the host can read any memory, a device cannot.
void check_same_device(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);

}  // namespace ascend_graph::host
