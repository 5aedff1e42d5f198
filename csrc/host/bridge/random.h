// Random numbers of device generators.
#pragma once

#include <ATen/core/Generator.h>

namespace ascend_graph::host {

// The CPU generator that stands for a device generator during a call.
at::Generator cpu_generator(at::Generator device);

}  // namespace ascend_graph::host
