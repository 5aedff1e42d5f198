// CPU kernels for the fused LSTM and GRU cells, which PyTorch has for accelerators only and asks of every
// accelerator.
#pragma once

#include <torch/library.h>

namespace ascend_graph::host {

void register_fused_cells(torch::Library& cpu);

}  // namespace ascend_graph::host
