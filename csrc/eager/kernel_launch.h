// Launches of Ascend C kernels on torch_npu's current stream: operands, scratch memory, and the launch
// itself.
//
// A launch goes the way of torch_npu's own operators: through its task queue where that is on, otherwise at
// once. It waits for nothing and holds its tensors until it has been made, so it may be captured into a
// graph.
#ifndef ASCEND_GRAPH_EAGER_KERNEL_LAUNCH_H
#define ASCEND_GRAPH_EAGER_KERNEL_LAUNCH_H

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device.h"
#include "device_bytes.h"
#include "launch.h"

// What torch_npu's op_plugin/utils/op_api_common_base.h and core/npu/NPUFormat.h declare; the former takes
// longer to compile than all the rest.
aclDataType ConvertType(const at::ScalarType dtype);
aclrtStream GetAclStream();
void InitExecSubTheadCtx(aclrtStream stream);
void RunAclCall(const std::string& name, const std::function<int()>& launch);
namespace at_npu::native {
int64_t get_npu_format(const at::Tensor& tensor);
at::Tensor npu_format_cast(const at::Tensor& tensor, int64_t format);
}  // namespace at_npu::native

namespace ascend_graph::eager {

inline launch::Tensor shape_of(const at::Tensor& tensor) {
    if (!tensor.defined()) return {};
    return {tensor.sizes().vec(), ConvertType(tensor.scalar_type())};
}
inline launch::Tensor shape_of(const std::optional<at::Tensor>& tensor) {
    return tensor ? shape_of(*tensor) : launch::Tensor{};
}

inline std::vector<bool> booleans(const c10::List<bool>& values) { return {values.begin(), values.end()}; }

inline void* address_of(const at::Tensor& tensor) { return tensor.defined() ? tensor.data_ptr() : nullptr; }

// One launch. Kernels see plain arrays: operands are contiguous, in the order of their dimensions.
class KernelLaunch {
  public:
    KernelLaunch(const char* op, at::Device device) : op_(op), device_(device) {}

    // An input as the kernel reads it; undefined where it is absent. No dtypes: any.
    at::Tensor input(const char* name, const std::optional<at::Tensor>& tensor,
                     std::initializer_list<at::ScalarType> dtypes) const {
        if (!tensor || !tensor->defined()) return {};
        TORCH_CHECK(tensor->device() == device_, op_, ": ", name, " is on ", tensor->device(),
                    "; expected all tensors on ", device_);
        check_dtype(name, *tensor, dtypes);
        return plain(*tensor).contiguous();
    }
    // What the kernel writes: the output itself where it is contiguous, otherwise a tensor that `run` copies
    // to it; undefined where it is absent.
    at::Tensor output(const char* name, const at::Tensor& tensor,
                      std::initializer_list<at::ScalarType> dtypes) {
        if (!tensor.defined()) return {};
        check_dtype(name, tensor, dtypes);
        empty_ = empty_ && tensor.numel() == 0;
        if (tensor.is_contiguous()) return tensor;
        copies_.emplace_back(tensor, at::empty_like(tensor, at::MemoryFormat::Contiguous));
        return copies_.back().second;
    }
    // An input that the kernel writes over.
    at::Tensor in_place(const char* name, const at::Tensor& tensor,
                        std::initializer_list<at::ScalarType> dtypes) {
        const at::Tensor read = input(name, tensor, dtypes);
        empty_ = empty_ && tensor.numel() == 0;
        if (!read.is_same(tensor)) copies_.emplace_back(tensor, read);
        return read;
    }
    at::Tensor scratch(const launch::Scratch& wanted) const {
        const auto options = at::TensorOptions().dtype(at::kByte).device(device_);
        const auto bytes = static_cast<int64_t>(wanted.bytes);
        return wanted.zeroed ? at::zeros({bytes}, options) : at::empty({bytes}, options);
    }

    // There is nothing to compute: kernels are not launched on tensors without elements.
    bool empty() const { return empty_; }

    // Launches by `launch(stream)`, which returns an ACL error code and holds the tensors that the kernel
    // uses.
    template <typename Launch>
    void run(uint32_t block_dim, Launch launch) {
        TORCH_CHECK(block_dim > 0, op_,
                    ": its launch function says block_dim = 0; a kernel runs on at least one block");
        const aclrtStream stream = GetAclStream();
        RunAclCall(op_, [stream, launch = std::move(launch)] {
            InitExecSubTheadCtx(stream);
            return launch(stream);
        });
        for (const auto& [tensor, written] : copies_) tensor.copy_(written);
    }

  private:
    // Without torch_npu's private layouts; they all come after the plain ones of ACL.
    static at::Tensor plain(const at::Tensor& tensor) {
        const int64_t format = at_npu::native::get_npu_format(tensor);
        const bool is_plain = format == ACL_FORMAT_ND || format == ACL_FORMAT_NCHW ||
                              format == ACL_FORMAT_NHWC || format == ACL_FORMAT_NCDHW;
        return is_plain ? tensor : at_npu::native::npu_format_cast(tensor, ACL_FORMAT_ND);
    }
    void check_dtype(const char* name, const at::Tensor& tensor,
                     std::initializer_list<at::ScalarType> dtypes) const {
        for (const at::ScalarType dtype : dtypes) {
            if (tensor.scalar_type() == dtype) return;
        }
        TORCH_CHECK(dtypes.size() == 0, op_, ": ", name, " has dtype ", tensor.scalar_type(),
                    "; the kernel takes ", std::vector<at::ScalarType>(dtypes));
    }

    const at::AutoDispatchBelowADInplaceOrView below_autograd_;  // copies of operands have no gradient
    const std::string op_;
    const at::Device device_;
    bool empty_ = true;
    std::vector<std::pair<at::Tensor, at::Tensor>> copies_;
};

}  // namespace ascend_graph::eager

#endif  // ASCEND_GRAPH_EAGER_KERNEL_LAUNCH_H
