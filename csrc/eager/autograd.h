// What autograd demands of every operator: an error where it has no gradient, and the contract of in-place
// writes. Header only; the no-C++ kernels and generated libraries register the same two functors.
#ifndef ASCEND_GRAPH_EAGER_AUTOGRAD_H
#define ASCEND_GRAPH_EAGER_AUTOGRAD_H

#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "tangents.h"
#include "versions.h"

namespace ascend_graph::eager {

// The name by which Python recognizes a registration that a gradient may replace
// (ascend_graph/autograd/register.py).
constexpr const char* kNoGradient = "ascend_graph: without gradient";

// The place in a backward graph of an operator that has no gradient: whoever gets there is told.
struct NoGradient : torch::autograd::Node {
    NoGradient(std::string message, torch::autograd::edge_list&& next)
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

inline std::string no_gradient_message(const c10::FunctionSchema& schema) {
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

// For the key Autograd of an operator without a gradient: results, and tensors that it writes, remember in
// the backward graph that they come from it; what may not be written is refused as PyTorch's own in-place
// operators do. An argument with a tangent is refused: the result would have none, which reads as zero.
class AutogradNoGradient : public c10::OperatorKernel {
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
        // Each written tensor has a node: PyTorch rebases a view on one with a single result.
        const auto edges = collect_next_edges(read);
        const auto new_node = [&] {
            return make_node<NoGradient>(no_gradient_message(op.schema()), edge_list(edges));
        };
        {
            const at::AutoDispatchBelowAutograd below_autograd;
            op.redispatchBoxed(below, stack);
        }
        for (const at::Tensor& tensor : written) rebase_history(tensor, new_node());
        const auto node = new_node();
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

inline torch::CppFunction autograd_no_gradient() {
    return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<AutogradNoGradient>())
        .debug(kNoGradient);
}
inline torch::CppFunction bump_versions() {
    return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<BumpVersions>());
}

}  // namespace ascend_graph::eager

#endif  // ASCEND_GRAPH_EAGER_AUTOGRAD_H
