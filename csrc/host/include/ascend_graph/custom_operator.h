// Operators whose authors launch their kernels themselves: a class of C++ executes a node of a graph (GE's
// EagerExecuteOp).
#ifndef ASCEND_GRAPH_CUSTOM_OPERATOR_H
#define ASCEND_GRAPH_CUSTOM_OPERATOR_H

#include <cstddef>
#include <cstdint>

#include "ascend_graph/host_kernel.h"

namespace ascend_graph::host {

// What a node is executed with. Tensors are contiguous.
struct CustomCall {
    // By the prototype's order, an absent input of kind kAbsent.
    const Value* inputs;
    size_t input_count;
    const Value* attrs;
    size_t attr_count;
    void* stream;
    void* context;
    // Memory for an output; null where none can be had.
    void* (*allocate)(void* context, size_t output, int32_t dtype, const int64_t* sizes, size_t rank);
    // Makes the `input`-th tensor of the node an output.
    void (*refer)(void* context, size_t output, size_t input);
    // Memory until the call ends.
    void* (*workspace)(void* context, size_t bytes);
};

struct CustomOperator {
    // REG_OP as its source says it; null where the library has none.
    const char* (*prototype)();
    // An ACL error code; a failure's text is given to ascendgraphFail first.
    int (*execute)(const CustomCall& call);
};

}  // namespace ascend_graph::host

extern "C" {

// Called when a library is loaded. A later one does not replace an earlier one.
void ascendgraphRegisterCustomOperator(const char* op_type, ascend_graph::host::CustomOperator value);
// Whether there is such an operator.
bool ascendgraphFindCustomOperator(const char* op_type, ascend_graph::host::CustomOperator* found);
}

#endif  // ASCEND_GRAPH_CUSTOM_OPERATOR_H
