// Device memory seen as CPU tensors, and GE's data types seen as PyTorch's.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>

#include <optional>

namespace ascend_graph::host {

// What a tensor has put off: that it is conjugated or negated, or that it is all zeros without memory.
constexpr c10::DispatchKeySet kLazyState{c10::DispatchKey::Conjugate, c10::DispatchKey::Negative,
                                         c10::DispatchKey::ZeroTensor};

// Tensors that are more than memory with sizes and strides: sparse, quantized, nested, MKLDNN.
constexpr c10::DispatchKeySet kForeignLayouts{c10::DispatchKey::Sparse, c10::DispatchKey::SparseCsr,
                                              c10::DispatchKey::Quantized, c10::DispatchKey::NestedTensor,
                                              c10::DispatchKey::MkldnnCPU};

// What a tensor of a foreign layout is called in errors.
const char* layout_of(const at::Tensor& t);

// A CPU tensor over the memory of a device tensor, with its lazy state. It does not own the memory; it may be
// resized, which gives it memory of its own. Memory that lazy clones share is not copied. Of memory that
// holds blocks (formats.h) it is a copy, in order.
at::Tensor alias_on_cpu(const at::Tensor& device_tensor);

// A copy of memory in blocks is written back. Gives whether the tensor is kept so.
bool write_blocks(const at::Tensor& device_tensor, const at::Tensor& alias);

// A device tensor like a CPU tensor, uninitialized. Its strides are kept where they are dense, and where the
// CPU tensor was allocated with gaps or overlaps.
at::Tensor new_device_tensor(const at::Tensor& like, c10::Device device);

// Copies values into a tensor that new_device_tensor made.
void copy_to_device(const at::Tensor& device, const at::Tensor& cpu);

// The device's side of `result`, which is a view of `alias`, which stands for `device`.
at::Tensor view_on_device(const at::Tensor& device, const at::Tensor& alias, const at::Tensor& result);

// A CPU tensor over `data`, which must outlive it.
at::Tensor wrap(void* data, at::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides);
at::Tensor wrap(void* data, at::ScalarType dtype, c10::IntArrayRef sizes);

// ge::DataType's number of a dtype and back; nullopt where the other side has none.
std::optional<at::ScalarType> scalar_type_of(int32_t ge_dtype);
std::optional<int32_t> ge_dtype_of(at::ScalarType dtype);

}  // namespace ascend_graph::host
