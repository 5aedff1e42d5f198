// The boxed kernel of ATen operators on device tensors, for those who run an operator later.
#pragma once

#include <exception>
#include <string>

#include "arguments.h"

namespace ascend_graph::host {

// Gives a CPU kernel's new result its place on the device.
using Placement = std::function<at::Tensor(const at::Tensor& result, c10::Device device)>;

// Runs the operator now, on the memory of its device tensors.
void run(const Operator& op, Stack& stack, const Substitutes& substitutes, const Placement& place);

at::Tensor new_device_tensor(const at::Tensor& like, c10::Device device);

// What an exception says; an operator that is written in Python raises Python's.
std::string text_of(std::exception& error);

}  // namespace ascend_graph::host
