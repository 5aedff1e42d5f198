// What the graph engine asks of the bridge to PyTorch: compile, run and remove graphs, and describe
// operators.
#ifndef ASCEND_GRAPH_GE_BRIDGE_H
#define ASCEND_GRAPH_GE_BRIDGE_H

#include <cstddef>
#include <cstdint>

namespace ascend_graph::host {

// A graph input or output as it is when a run begins. `dtype` is ge::DataType's number; `data` is null for an
// output the callee must size, otherwise it holds `bytes` bytes.
struct GraphTensor {
    void* data;
    int32_t dtype;
    int32_t rank;
    const int64_t* sizes;
    size_t bytes;
    int32_t format;  // ge::Format's number
};

// Receives what compilation found out.
struct CompileSink {
    void* context;
    // Called once per output in order; a size of -1 is not known before the graph runs.
    void (*output)(void* context, int32_t dtype, const int64_t* sizes, size_t rank);
    void (*is_static)(void* context, bool value);
};

// Gives the memory for output `index`, which came without and whose shape is known now; null when memory
// cannot be had.
struct OutputSink {
    void* context;
    void* (*place)(void* context, size_t index, int32_t dtype, const int64_t* sizes, size_t rank,
                   size_t bytes);
};

// Receives an operator's parameters: `role` is 'i' input, 'o' output or 'a' attr; `kind` is "required",
// "optional" or "dynamic" for inputs and outputs, the attr's type ("VT_INT", …) for attrs.
struct OperatorSink {
    void* context;
    void (*parameter)(void* context, char role, const char* name, const char* kind);
};

// Every function returns an ACL error code and leaves a failure's text with ascendgraphFail.
struct GraphEngine {
    int (*compile)(uint32_t graph_id, const void* model, size_t size, const char* const* option_names,
                   const char* const* option_values, size_t options, CompileSink sink);
    int (*run)(uint32_t graph_id, void* stream, const GraphTensor* inputs, size_t input_count,
               const GraphTensor* outputs, size_t output_count, OutputSink sink);
    int (*remove)(uint32_t graph_id);
    int (*describe)(const char* op_type, OperatorSink sink);
};

}  // namespace ascend_graph::host

// Called by the bridge when it is loaded.
extern "C" void ascendgraphSetGraphEngine(ascend_graph::host::GraphEngine engine);

#endif  // ASCEND_GRAPH_GE_BRIDGE_H
