// Device memory seen as CPU tensors, and GE's data types seen as PyTorch's.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>

#include <optional>

namespace ascend_graph::host {

// A CPU tensor over the memory of a device tensor. It does not own the memory; it may be resized, which gives
// it memory of its own.
at::Tensor alias_on_cpu(const at::Tensor& device_tensor);

// A CPU tensor over `data`, which must outlive it.
at::Tensor wrap(void* data, at::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides);
at::Tensor wrap(void* data, at::ScalarType dtype, c10::IntArrayRef sizes);

// ge::DataType's number of a dtype and back; nullopt where the other side has none.
std::optional<at::ScalarType> scalar_type_of(int32_t ge_dtype);
std::optional<int32_t> ge_dtype_of(at::ScalarType dtype);

}  // namespace ascend_graph::host
