// Memory of the tensors inside GE graphs, which is CPU memory here and the device's there.
#pragma once

#include <ATen/ATen.h>

namespace ascend_graph::host {

// A tensor in device memory, whose extent the kernel API knows, for the result of an operator package's
// kernel.
at::Tensor device_memory(at::IntArrayRef sizes, at::ScalarType dtype);

// While it lives, CPU tensors that its thread makes are followed by the bytes that a device's allocator adds:
// a kernel writes the whole blocks of 32 bytes that its result begins.
class InsideGraph {
  public:
    InsideGraph();
    ~InsideGraph();
    InsideGraph(const InsideGraph&) = delete;
    InsideGraph& operator=(const InsideGraph&) = delete;

  private:
    bool outer_;
};

}  // namespace ascend_graph::host
