// The shapes of an operator's results while nothing may be computed.
#pragma once

#include "arguments.h"

namespace ascend_graph::host {

// Calls the operator on meta tensors: its results have the shapes that the CPU kernel gives. Refuses, with
// the reason and `deferral`, where they do not follow from the arguments' shapes. False where only those of
// the operators that it is composed of are known; what the stack then holds instead of the arguments is not
// specified.
bool infer(const Operator& op, Stack& stack, const char* deferral);

}  // namespace ascend_graph::host
