// The refusal of forward-mode differentiation over an operator without a tangent: its result would have none,
// which reads as zero. Header only, with no more of PyTorch than the dispatcher, whose headers compile
// soonest.
#ifndef ASCEND_GRAPH_EAGER_TANGENTS_H
#define ASCEND_GRAPH_EAGER_TANGENTS_H

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

namespace ascend_graph::eager {

// Calls `visit(tensor)` for the tensors of an argument or result, those of a list too.
template <typename Visit>
void each_tensor(const c10::IValue& value, Visit&& visit) {
    if (value.isTensor()) {
        if (value.toTensor().defined()) visit(value.toTensor());
    } else if (value.isTensorList() || value.isOptionalTensorList()) {
        for (const c10::IValue& element : value.toListRef()) {
            if (element.isTensor() && element.toTensor().defined()) visit(element.toTensor());
        }
    }
}

inline bool is_written(const c10::Argument& argument) {
    return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// The arguments that an operator writes, by name.
inline std::string written_names(const c10::FunctionSchema& schema) {
    std::string written;
    for (const c10::Argument& argument : schema.arguments()) {
        if (is_written(argument)) written += (written.empty() ? "" : ", ") + argument.name();
    }
    return written;
}

inline std::string without_tangent_message(const c10::FunctionSchema& schema) {
    const std::string written = written_names(schema);
    const std::string asked =
        "forward-mode differentiation (torch.func.jvp, jacfwd, torch.autograd.forward_ad) asks for one; ";
    if (written.empty()) {
        return schema.name() + " has no tangent, but " + asked +
               "give it forward= or backward= where it is registered (register_op(…, backward=…), or "
               "backward "
               "= … in operators.ini), or call it on the primal (torch.autograd.forward_ad.unpack_dual)";
    }
    return schema.name() + " writes " + written + " in place and has no tangent, but " + asked +
           "forward= and backward= are for operators that write nothing; call it on the primal "
           "(torch.autograd.forward_ad.unpack_dual)";
}

// Forward-mode differentiation has one level, whose tensors carry tangents; torch.func's levels are wrappers.
inline bool has_tangent(const at::Tensor& tensor) {
    return tensor.defined() && tensor._fw_grad(/*level=*/0).defined();
}

// Integers and flags have no tangents.
inline bool is_differentiable(const at::Tensor& tensor) {
    return c10::isFloatingType(tensor.scalar_type()) || c10::isComplexType(tensor.scalar_type());
}

namespace detail {

inline void refuse_differentiable(const c10::OperatorHandle& op, const c10::IValue& value, bool dual_passes) {
    each_tensor(value, [&](const at::Tensor& tensor) {
        if (!is_differentiable(tensor)) return;
        TORCH_CHECK_NOT_IMPLEMENTED(dual_passes && has_tangent(tensor), without_tangent_message(op.schema()));
    });
}

// Refuses to write what would keep the tangent of its old value, or get none.
inline void refuse_written(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    const auto& arguments = op.schema().arguments();
    for (size_t n = 0; n < arguments.size(); ++n) {
        if (is_written(arguments[n]))
            refuse_differentiable(op, torch::jit::peek(stack, n, arguments.size()), /*dual_passes=*/false);
    }
}

// Of which dtype the results are is known when they are there: integers have no tangents.
inline void refuse_results(const c10::OperatorHandle& op, torch::jit::Stack& stack,
                           bool dual_passes = false) {
    for (const c10::IValue& value : torch::jit::last(stack, op.schema().returns().size()))
        refuse_differentiable(op, value, dual_passes);
}

}  // namespace detail

// For the key ADInplaceOrView of an operator that its author registered, without a tangent. PyTorch's
// fallback, and the kernel of torch.library.custom_op, ask for no tangents: the results would have none,
// which reads as zero. A kernel made of ATen's operators carries tangents on by itself, so results are looked
// at when they are there. `counts` stands for the kernel of custom_op at this key, which counts the versions
// of what is written.
template <bool counts>
void refuse_tangents(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const size_t count = op.schema().arguments().size();
    bool dual = false;
    for (const c10::IValue& value : torch::jit::last(*stack, count))
        each_tensor(value, [&](const at::Tensor& tensor) { dual = dual || has_tangent(tensor); });
    if (dual) detail::refuse_written(op, *stack);
    if constexpr (counts) {
        for (size_t n = 0; n < count; ++n) {
            if (is_written(op.schema().arguments()[n]))
                each_tensor(torch::jit::peek(*stack, n, count), [](const at::Tensor& tensor) {
                    if (!tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
                });
        }
    }
    op.redispatchBoxed(keys & c10::after_ADInplaceOrView_keyset, stack);
    if (dual) detail::refuse_results(op, *stack, /*dual_passes=*/true);
}

}  // namespace ascend_graph::eager

#endif  // ASCEND_GRAPH_EAGER_TANGENTS_H
