// What autograd demands of every operator: an error where it has no gradient, and the contract of in-place
// writes. Header only; the no-C++ kernels and generated libraries register the same two functors.
#ifndef ASCEND_GRAPH_EAGER_AUTOGRAD_H
#define ASCEND_GRAPH_EAGER_AUTOGRAD_H

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "versions.h"

namespace ascend_graph::eager {

// The name by which Python recognizes a registration that a gradient may replace
// (ascend_graph/autograd/register.py).
constexpr const char* kWithoutGradient = "ascend_graph: without gradient";

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

// The place in a backward graph of an operator that has no gradient: whoever gets there is told.
struct WithoutGradient : torch::autograd::Node {
    WithoutGradient(std::string message, torch::autograd::edge_list&& next)
        : Node(std::move(next)), message_(std::move(message)) {}

    torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
        // A compiler that traces forward and backward at once must not fail where only forward is called:
        // what it traces is an operator that says the same when it runs (ascend_graph/autograd/register.py).
        for (const at::Tensor& grad : grads) {
            if (!grad.defined() || !is_traced(grad)) continue;
            const auto later = c10::Dispatcher::singleton().findSchema({"ascend_graph::no_gradient", ""});
            if (!later) break;
            const auto call =
                later->typed<at::Tensor(const at::Tensor&, c10::SymIntArrayRef, c10::string_view)>();
            torch::autograd::variable_list made(num_outputs());
            for (size_t n = 0; n < made.size(); ++n) {
                const torch::autograd::Edge& edge = next_edge(n);
                if (!edge.is_valid()) continue;
                made[n] = call.call(grad, edge.function->input_metadata(edge.input_nr).shape_as_dim_vector(),
                                    message_);
            }
            return made;
        }
        TORCH_CHECK(false, message_);
    }

  private:
    static bool is_traced(const at::Tensor& tensor) {
        return c10::impl::dispatch_mode_enabled() || tensor.key_set().has(c10::DispatchKey::Python);
    }
    std::string message_;
};

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

inline std::string without_gradient_message(const c10::FunctionSchema& schema) {
    const std::string written = written_names(schema);
    if (written.empty()) {
        return schema.name() +
               " has no gradient, but one is asked for: give it one with backward= where it is registered "
               "(register_op(…, backward=…), or backward = … in operators.ini), or call it under "
               "torch.no_grad()";
    }
    return schema.name() + " writes " + written +
           " in place and has no gradient, but one is asked for: backward= is for operators that write "
           "nothing; "
           "call it under torch.no_grad(), or on detached tensors";
}

// Forward-mode differentiation has one level, whose tensors carry tangents; torch.func's levels are wrappers.
inline bool has_tangent(const at::Tensor& tensor) {
    return tensor.defined() && tensor._fw_grad(/*level=*/0).defined();
}

namespace detail {

inline void refuse_differentiable(const c10::OperatorHandle& op, const c10::IValue& value, bool dual_passes) {
    each_tensor(value, [&](const at::Tensor& tensor) {
        if (!torch::autograd::isDifferentiableType(tensor.scalar_type())) return;
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

// For the key Autograd of an operator without a gradient: results, and tensors that it writes, remember in
// the backward graph that they come from it; what may not be written is refused as PyTorch's own in-place
// operators do. An argument with a tangent is refused: the result would have none, which reads as zero.
class AutogradWithoutGradient : public c10::OperatorKernel {
  public:
    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
        using namespace torch::autograd;
        const auto below = keys & c10::after_autograd_keyset;
        const size_t count = op.schema().arguments().size();
        bool differentiable = false, dual = false;
        for (const c10::IValue& value : torch::jit::last(*stack, count)) {
            each_tensor(value, [&](const at::Tensor& t) {
                differentiable = differentiable || t.requires_grad();
                dual = dual || has_tangent(t);
            });
        }
        if (dual) detail::refuse_written(op, *stack);
        if (!differentiable || !at::GradMode::is_enabled()) {
            op.redispatchBoxed(below, stack);
            if (dual) detail::refuse_results(op, *stack);
            return;
        }
        variable_list read, written;
        for (size_t n = 0; n < count; ++n) {
            const bool writes = is_written(op.schema().arguments()[n]);
            each_tensor(torch::jit::peek(*stack, n, count), [&](const at::Tensor& tensor) {
                read.push_back(tensor);
                if (!writes || !isDifferentiableType(tensor.scalar_type())) return;
                check_inplace(tensor, /*requires_grad=*/true);
                written.push_back(tensor);
            });
        }
        const auto node =
            make_node<WithoutGradient>(without_gradient_message(op.schema()), collect_next_edges(read));
        {
            const at::AutoDispatchBelowAutograd below_autograd;
            op.redispatchBoxed(below, stack);
        }
        rebase_history(written, node);
        for (const c10::IValue& value : torch::jit::last(*stack, op.schema().returns().size())) {
            each_tensor(value, [&](const at::Tensor& made) {
                const bool handed_on = std::any_of(
                    read.begin(), read.end(), [&](const at::Tensor& given) { return given.is_same(made); });
                if (!handed_on && isDifferentiableType(made.scalar_type())) set_history(made, node);
            });
        }
        if (dual) detail::refuse_results(op, *stack);
    }
};

// For the key ADInplaceOrView of an operator that writes: what was saved of the old values is out of date.
class BumpVersions : public c10::OperatorKernel {
  public:
    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
        const size_t count = op.schema().arguments().size();
        torch::autograd::variable_list written;
        for (size_t n = 0; n < count; ++n) {
            if (!is_written(op.schema().arguments()[n])) continue;
            each_tensor(torch::jit::peek(*stack, n, count),
                        [&](const at::Tensor& tensor) { written.push_back(tensor); });
        }
        {
            const at::AutoDispatchBelowADInplaceOrView below;
            op.redispatchBoxed(keys & c10::after_ADInplaceOrView_keyset, stack);
        }
        for (const at::Tensor& tensor : written) torch::autograd::increment_version(tensor);
    }
};

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
                each_tensor(torch::jit::peek(*stack, n, count), torch::autograd::increment_version);
        }
    }
    op.redispatchBoxed(keys & c10::after_ADInplaceOrView_keyset, stack);
    if (dual) detail::refuse_results(op, *stack, /*dual_passes=*/true);
}

inline torch::CppFunction autograd_without_gradient() {
    return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<AutogradWithoutGradient>())
        .debug(kWithoutGradient);
}
inline torch::CppFunction bump_versions() {
    return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<BumpVersions>());
}

}  // namespace ascend_graph::eager

#endif  // ASCEND_GRAPH_EAGER_AUTOGRAD_H
