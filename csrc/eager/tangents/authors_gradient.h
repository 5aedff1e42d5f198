// The refusal of reverse-mode differentiation over an author's operator without a gradient. PyTorch warns
// once in a process, and in a graph not at all: the gradient would be zero.
#ifndef ASCEND_GRAPH_EAGER_AUTHORS_GRADIENT_H
#define ASCEND_GRAPH_EAGER_AUTHORS_GRADIENT_H

#include <optional>
#include <vector>

#include "../autograd.h"

namespace ascend_graph::eager {

// A tensor that an author's operator writes, with the node that computed it before: that of its base, for a
// view has another one after each write.
struct WrittenByAuthor {
    explicit WrittenByAuthor(const at::Tensor& written)
        : tensor(written), base(written.is_view() ? written._base() : written), before(base.grad_fn()) {}

    at::Tensor tensor, base;
    decltype(torch::autograd::Edge::function) before;  // held as this torch holds nodes
};

// Returns the tensors with a gradient that an operator writes, but for leaves and their views: parameters are
// written in place where nobody asks for a gradient. What has none, as a cache, stays without.
inline std::vector<WrittenByAuthor> written_with_gradient(const c10::OperatorHandle& op,
                                                          const torch::jit::Stack& stack) {
    const size_t count = op.schema().arguments().size();
    std::vector<WrittenByAuthor> found;
    for (size_t n = 0; n < count; ++n) {
        if (!is_written(op.schema().arguments()[n])) continue;
        each_tensor(torch::jit::peek(stack, n, count), [&](const at::Tensor& tensor) {
            const bool tracked = tensor.grad_fn() && !(tensor.is_view() && tensor._base().is_leaf());
            if (!tracked || !torch::autograd::isDifferentiableType(tensor.scalar_type())) return;
            torch::autograd::check_inplace(tensor, /*requires_grad=*/true);
            found.emplace_back(tensor);
        });
    }
    return found;
}

// For the key Autograd of an operator that its author registered, without a gradient. What a kernel made of
// ATen's operators returns or writes has the gradient of its parts; other results, and what is written,
// remember in the backward graph that they come from this operator.
inline void remember_author(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                            torch::jit::Stack* stack) {
    using namespace torch::autograd;
    const auto below = keys & c10::after_autograd_keyset;
    const size_t count = op.schema().arguments().size();
    bool differentiable = false, traced = false;
    variable_list read;
    if (at::GradMode::is_enabled()) {
        for (const c10::IValue& value : torch::jit::last(*stack, count)) {
            each_tensor(value, [&](const at::Tensor& tensor) {
                differentiable = differentiable || tensor.requires_grad();
                traced = traced || tensor.key_set().has(c10::DispatchKey::Python);
                read.push_back(tensor);
            });
        }
    }
    if (!differentiable) {
        op.redispatchBoxed(below, stack);
        return;
    }
    const std::vector<WrittenByAuthor> written = written_with_gradient(op, *stack);
    {
        // What is within tensors of Python, as those of a compiler, may need gradients, too: results would
        // seem to have one.
        std::optional<at::AutoDispatchBelowAutograd> below_autograd;
        if (traced) below_autograd.emplace();
        op.redispatchBoxed(below, stack);
    }
    // Written views have a node each: PyTorch rebases a view on a node with one result.
    const auto node_of = [&] {
        return make_node<NoGradient>(no_gradient_message(op.schema()), collect_next_edges(read));
    };
    for (const WrittenByAuthor& one : written)
        if (one.base.grad_fn() == one.before) rebase_history(one.tensor, node_of());
    decltype(node_of()) node;
    for (const c10::IValue& value : torch::jit::last(*stack, op.schema().returns().size())) {
        each_tensor(value, [&](const at::Tensor& made) {
            const bool handed_on = std::any_of(read.begin(), read.end(),
                                               [&](const at::Tensor& given) { return given.is_same(made); });
            if (handed_on || made.requires_grad() || !isDifferentiableType(made.scalar_type())) return;
            if (!node) node = node_of();
            set_history(made, node);
        });
    }
}

}  // namespace ascend_graph::eager

#endif  // ASCEND_GRAPH_EAGER_AUTHORS_GRADIENT_H
