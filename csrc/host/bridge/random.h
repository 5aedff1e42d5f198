// Random numbers of device generators.
//
// A device generator's whole state is a seed and an offset, which torch_npu keeps: seeding, saving and
// restoring it, and what a captured graph adds to it, are torch_npu's. A call draws its numbers from a CPU
// generator made of that pair alone, so the pair is all there is to restore.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace ascend_graph::host {

// Where a call's random numbers start. In a capture the seed and the generator's offset are not known before
// a replay, which leaves them in two device tensors; `offset` counts from there.
struct Draw {
    uint64_t seed = 0;
    uint64_t offset = 0;
    at::Tensor replayed_seed;
    at::Tensor replayed_offset;
};

// Refuses an operator whose kernel of torch_npu takes seed and offset from the host while its stream
// captures.
void check_captured(const c10::OperatorHandle& op);

// A device's own generator. Not PyTorch's hook for it, which torch_npu overrides from 2.13 on only.
const at::Generator& default_generator(c10::Device device);

// Takes the numbers of one call from a device generator, which moves on.
Draw draw(const at::Generator& device);

// A CPU generator of the numbers that `draw` stands for: equal for equal seeds and offsets, and independent
// of every other.
at::Generator cpu_generator(const Draw& draw);

}  // namespace ascend_graph::host
