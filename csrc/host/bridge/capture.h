// ATen operators while their stream captures.
#pragma once

#include "arguments.h"

namespace ascend_graph::host {

// While the stream captures nothing may run: the operator's meta kernel gives the results' shapes, and the
// work is recorded.
void record(const Operator& op, Stack& stack, void* stream);

}  // namespace ascend_graph::host
