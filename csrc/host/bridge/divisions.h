// Integer divisions for which an x86 processor ends the process: by zero, and of the smallest number by -1.
//
// Other processors and devices give a number. Some of PyTorch's CPU kernels do not look first
// (torch.div(INT_MIN, -1, rounding_mode="trunc")), and what a tensor holds must not end a process.
#pragma once

#include <cstdint>

namespace ascend_graph::host {

// Sees to it that such divisions give numbers from now on: the smallest number divided by -1 is itself, and
// any number divided by zero is zero. Called before kernels run, for others take the signal over, too.
void survive_divisions();

// How many integers were divided by zero in this process.
uint64_t divisions_by_zero();

}  // namespace ascend_graph::host
