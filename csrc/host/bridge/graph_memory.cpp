#include "graph_memory.h"

#include <acl/acl_rt.h>
#include <c10/core/CPUAllocator.h>

#include "ascend_graph/host_runtime.h"

namespace ascend_graph::host {
namespace {

thread_local bool inside_graph = false;

// PyTorch's CPU allocator, with room behind what is allocated for graphs.
class PaddedAllocator final : public c10::Allocator {
  public:
    explicit PaddedAllocator(c10::Allocator* inner) : inner_(inner) {}
    c10::DataPtr allocate(size_t bytes) override {
        return inner_->allocate(inside_graph && bytes != 0 ? bytes + kPadding : bytes);
    }
    c10::DeleterFnPtr raw_deleter() const override { return inner_->raw_deleter(); }
    void copy_data(void* to, const void* from, size_t bytes) const override {
        inner_->copy_data(to, from, bytes);
    }

  private:
    static constexpr size_t kPadding = 64;  // aclrtMalloc: to a multiple of 32, and 32 more
    c10::Allocator* inner_;
};

}  // namespace

InsideGraph::InsideGraph() : outer_(inside_graph) {
    static const bool installed = [] {
        c10::SetCPUAllocator(new PaddedAllocator(c10::GetCPUAllocator()), 1);
        return true;
    }();
    inside_graph = installed;
}
InsideGraph::~InsideGraph() { inside_graph = outer_; }

at::Tensor device_memory(at::IntArrayRef sizes, at::ScalarType dtype) {
    const at::TensorOptions options = at::TensorOptions().dtype(dtype);
    const auto bytes = static_cast<size_t>(c10::multiply_integers(sizes)) * c10::elementSize(dtype);
    if (bytes == 0) return at::empty(sizes, options);
    void* memory = nullptr;
    TORCH_CHECK(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_NORMAL_ONLY) == 0, ascendgraphRecentError());
    return at::from_blob(memory, sizes, [](void* p) { aclrtFree(p); }, options);
}

}  // namespace ascend_graph::host
