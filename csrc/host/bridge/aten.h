// The boxed kernel of ATen operators on device tensors, for those who run an operator later.
#pragma once

#include "arguments.h"

namespace ascend_graph::host {

// Gives a CPU kernel's result that is not one of its arguments its place on the device.
using Placement = std::function<at::Tensor(const at::Tensor& result, const Arguments& arguments)>;

// Runs the operator now, on the memory of its device tensors.
void run(const Operator& op, Stack& stack, const Substitutes& substitutes, const Placement& place);

// The kernel of an operator on device tensors: runs it, or records it while the current stream captures.
void boxed_kernel(const Operator& op, c10::DispatchKeySet keys, Stack* stack);

// The same for an operator that torch_npu computes on the CPU: it cannot be captured.
void fallback_kernel(const Operator& op, c10::DispatchKeySet keys, Stack* stack);

// Why the current stream keeps its work, and which it is; null if it runs it.
const char* deferral(void** stream = nullptr);

}  // namespace ascend_graph::host
