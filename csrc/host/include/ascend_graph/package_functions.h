// Functions of libraries that CANN built for an operator package: what their tiling and shape functions
// answer for one call. libexe_graph.so builds the contexts in CANN's layout.
#ifndef ASCEND_GRAPH_PACKAGE_FUNCTIONS_H
#define ASCEND_GRAPH_PACKAGE_FUNCTIONS_H

#include <cstddef>
#include <cstdint>

#include "ascend_graph/host_kernel.h"

namespace ascend_graph::host {

// What a tiling function decides. `data` has room for `capacity` bytes and gets `size` of them.
struct PackageTiling {
    static constexpr size_t kMostWorkspaces = 16;

    void* data = nullptr;
    size_t capacity = 0;
    size_t size = 0;
    uint64_t key = 0;
    uint32_t blocks = 0, aicpu_blocks = 0, schedule_mode = 0, local_memory = 0;
    int32_t condition = 0;
    bool zeroes_outputs = false;
    size_t workspaces[kMostWorkspaces] = {};
    size_t workspace_count = 0;
};

}  // namespace ascend_graph::host

extern "C" {

// Calls the tiling function that a library registers for an operator. `values` has `inputs` inputs, `attrs`
// attrs, and the outputs. An input with data is one whose values the function may read. The function is not
// guarded: the caller is (ascendgraphGuard).
int ascendgraphTilePackage(const char* library, const char* op_type, size_t inputs, size_t attrs,
                           const ascend_graph::host::Value* values, size_t count,
                           ascend_graph::host::PackageTiling* tiling);

// The same of the InferShape and InferDataType functions, guarded. Dtype, rank and sizes of each output are
// written into a tensor of int64 words after inputs and attrs; a dtype that no function says is undefined.
int ascendgraphInferPackage(const char* library, const char* op_type, size_t inputs, size_t attrs,
                            const ascend_graph::host::Value* values, size_t count);
}

#endif  // ASCEND_GRAPH_PACKAGE_FUNCTIONS_H
