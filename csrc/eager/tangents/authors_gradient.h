// The refusal of reverse-mode differentiation over an author's operator without a gradient. PyTorch warns
// once in a process, and in a graph not at all: the gradient would be zero.
#ifndef ASCEND_GRAPH_EAGER_AUTHORS_GRADIENT_H
#define ASCEND_GRAPH_EAGER_AUTHORS_GRADIENT_H

#include "../autograd.h"

namespace ascend_graph::eager {

// For the key Autograd of an operator that its author registered, without a gradient. What a kernel made of
// ATen's operators returns has the gradient of its parts; other results remember in the backward graph that
// they come from this operator. Arguments that are written stay as they are: PyTorch's own kernel of
// custom_op asks for nothing there, and caches are written where parameters require grad.
inline void remember_author(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                            torch::jit::Stack* stack) {
    using namespace torch::autograd;
    const size_t count = op.schema().arguments().size();
    bool differentiable = false;
    if (at::GradMode::is_enabled()) {
        for (const c10::IValue& value : torch::jit::last(*stack, count)) {
            each_tensor(value, [&](const at::Tensor& tensor) {
                differentiable = differentiable || tensor.requires_grad();
            });
        }
    }
    if (!differentiable) {
        op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
        return;
    }
    variable_list read;
    for (const c10::IValue& value : torch::jit::last(*stack, count))
        each_tensor(value, [&](const at::Tensor& tensor) { read.push_back(tensor); });
    op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
    decltype(make_node<NoGradient>(std::string(), edge_list())) node;
    for (const c10::IValue& value : torch::jit::last(*stack, op.schema().returns().size())) {
        each_tensor(value, [&](const at::Tensor& made) {
            const bool handed_on = std::any_of(read.begin(), read.end(),
                                               [&](const at::Tensor& given) { return given.is_same(made); });
            if (handed_on || made.requires_grad() || !isDifferentiableType(made.scalar_type())) return;
            if (!node)
                node = make_node<NoGradient>(no_gradient_message(op.schema()), collect_next_edges(read));
            set_history(made, node);
        });
    }
}

}  // namespace ascend_graph::eager

#endif  // ASCEND_GRAPH_EAGER_AUTHORS_GRADIENT_H
