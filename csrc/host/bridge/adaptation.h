// What kernels of accelerators take and PyTorch's CPU kernels do not.
#pragma once

#include "arguments.h"

namespace ascend_graph::host {

// Calls the operator on CPU tensors; where its kernel lacks a dtype or strides that accelerators' kernels
// take, on tensors that it takes, with results as if it took them. Never after a failed attempt: what the
// kernel refuses is refused, and nothing is written twice.
void call_on_cpu(const Operator& op, Stack& stack);

// Whether the operator's results are contiguous whatever its arguments are: those of a capture, too.
bool has_results_in_order(const Operator& op);

}  // namespace ascend_graph::host
