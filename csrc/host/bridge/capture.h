// ATen operators while their stream keeps work: while it captures, or waits for an event.
#pragma once

#include "arguments.h"

namespace ascend_graph::host {

// Nothing may run: the operator's meta kernel gives the results' shapes, and the work is left to the stream.
// `why` is what ascendgraphDeferral says of it.
void record(const Operator& op, Stack& stack, void* stream, const char* why);

}  // namespace ascend_graph::host
