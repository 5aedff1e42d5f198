// Formats in which devices keep tensors in blocks, padded with zeros: FRACTAL_NZ and its kin.
#pragma once

#include <ATen/ATen.h>

#include <optional>

#include "ascend_graph/aclnn_objects.h"
#include "ascend_graph/host_kernel.h"

namespace ascend_graph::host {

// How a tensor of `sizes` is kept: in which format (aclFormat's number), and the sizes of what memory holds.
struct Blocks {
    int32_t format;
    c10::SmallVector<int64_t, 6> kept;
    c10::SmallVector<int64_t, 5> sizes;
};

// What the format is called.
const char* format_name(int32_t format);

// How a device tensor's memory is kept; nullopt where it is in the order of the tensor's sizes.
std::optional<Blocks> blocks_of(const at::Tensor& t);

// The same of what a kernel is given, whose view is of the whole matrices of the memory, transposed or not.
Blocks blocks_of(const Tensor& t);

// The whole tensor in the order of its sizes, as a CPU tensor of its own, of memory that holds it in blocks.
at::Tensor unblocked(const at::Tensor& kept, const Blocks& blocks);

// Writes a whole tensor into memory that holds it in blocks.
void put_blocks(const at::Tensor& plain, const Blocks& blocks, const at::Tensor& kept);

// Memory as it is kept, of which a capture knows the format.
struct KeptStorage final : c10::StorageImpl {
    KeptStorage(size_t bytes, at::DataPtr memory, Blocks how)
        : StorageImpl(use_byte_size_t(), bytes, std::move(memory), /*allocator=*/nullptr,
                      /*resizable=*/false),
          blocks(std::move(how)) {}
    const Blocks blocks;
};

}  // namespace ascend_graph::host
