// myops::my_op: forward through aclnnAddCustom, backward, autograd and Meta.
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "function.h"
#include "op_plugin/include/npu_cpp_extension.h"

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

at::Tensor my_op_impl_npu(const at::Tensor& self, const at::Tensor& other) {
    at::Tensor result = at::empty_like(self);
    EXEC_NPU_CMD_EXT(aclnnAddCustom, self, other, result);
    return result;
}

std::tuple<at::Tensor, at::Tensor> my_op_backward_impl_npu(const at::Tensor& self) {
    return {self.clone(), self.clone()};
}

at::Tensor my_op_impl_meta(const at::Tensor& self, const at::Tensor& other) { return at::empty_like(self); }

std::tuple<at::Tensor, at::Tensor> my_op_backward_impl_meta(const at::Tensor& self) {
    return {at::empty_like(self), at::empty_like(self)};
}

at::Tensor my_op_impl(const at::Tensor& self, const at::Tensor& other) {
    static auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow("myops::my_op", "").typed<decltype(my_op_impl)>();
    return op.call(self, other);
}

std::tuple<at::Tensor, at::Tensor> my_op_backward_impl(const at::Tensor& self) {
    static auto op = c10::Dispatcher::singleton()
                         .findSchemaOrThrow("myops::my_op_backward", "")
                         .typed<decltype(my_op_backward_impl)>();
    return op.call(self);
}

class MyAddFunction : public torch::autograd::Function<MyAddFunction> {
  public:
    static at::Tensor forward(AutogradContext* ctx, at::Tensor self, at::Tensor other) {
        at::AutoDispatchBelowADInplaceOrView guard;
        return my_op_impl(self, other);
    }

    static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
        auto result = my_op_backward_impl(grad_outputs[0]);
        return {std::get<0>(result), std::get<1>(result)};
    }
};

at::Tensor my_op_impl_autograd(const at::Tensor& self, const at::Tensor& other) {
    return MyAddFunction::apply(self, other);
}

TORCH_LIBRARY_IMPL(myops, PrivateUse1, m) {
    m.impl("my_op", &my_op_impl_npu);
    m.impl("my_op_backward", &my_op_backward_impl_npu);
}

TORCH_LIBRARY_IMPL(myops, AutogradPrivateUse1, m) { m.impl("my_op", &my_op_impl_autograd); }

TORCH_LIBRARY_IMPL(myops, Meta, m) {
    m.impl("my_op", &my_op_impl_meta);
    m.impl("my_op_backward", &my_op_backward_impl_meta);
}
