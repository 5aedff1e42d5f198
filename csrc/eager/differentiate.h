// The Autograd kernel of an operator with a gradient: backward, forward mode, and the transforms of
// torch.func. Header only, for generated libraries; ascend_graph/autograd/kernel.py is the same
// for Python.
#ifndef ASCEND_GRAPH_EAGER_DIFFERENTIATE_H
#define ASCEND_GRAPH_EAGER_DIFFERENTIATE_H

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/python_headers.h>

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd.h"
#include "versions.h"

namespace ascend_graph::eager {
namespace detail {

using NodePointer = decltype(torch::autograd::Edge::function);
using torch::autograd::variable_list;

// An argument without its tangent; what is not a tensor is handed on.
inline at::Tensor primal(const at::Tensor& tensor) {
    return tensor.defined() ? std::get<0>(at::_unpack_dual(tensor, /*level=*/0)) : tensor;
}
inline std::optional<at::Tensor> primal(const std::optional<at::Tensor>& tensor) {
    return tensor ? std::make_optional(primal(*tensor)) : std::nullopt;
}
template <typename T>
const T& primal(const T& value) {
    return value;
}

inline variable_list listed(const at::Tensor& output) { return {output}; }
inline variable_list listed(const variable_list& outputs) { return outputs; }

// Records a call as Function::apply does. That refuses the transforms of torch.func; here the dispatcher
// comes back for each of them, as it does for ATen's operators. `node` has what the gradient needs, also
// where no argument requires one if `keep` is set.
template <typename T, typename... Args>
auto record(NodePointer& node, bool keep, Args&&... args) -> torch::autograd::forward_t<T, Args...> {
    using namespace torch::autograd;
    node = make_node<CppNode<T>>();
    auto& made = static_cast<CppNode<T>&>(*node);
    variable_list inputs;
    extract_vars(made.is_variable_input_, inputs, args...);
    const bool executable = at::GradMode::is_enabled() && any_variable_requires_grad(inputs);
    made.set_ctx_grad_fn(node);
    made.set_next_edges(executable ? collect_next_edges(inputs) : edge_list());
    made.clear_input_metadata();
    for (const at::Tensor& input : inputs) made.input_info_.emplace_back(input);
    // Differentiation is not switched off: the transforms that come next may ask for it.
    auto outputs = T::forward(&made.ctx_, std::forward<Args>(args)...);
    const auto view_as_self = [](const at::Tensor& x) { return x.view_as(x); };
    const auto no_tangents = [](const variable_list&, const variable_list&) { return variable_list(); };
    // Tangents are added later, with what is saved for the gradient.
    std::optional<c10::AutoFwGradMode> later;
    if (std::any_of(inputs.begin(), inputs.end(), has_tangent)) later.emplace(false);
    auto wrapped =
        _wrap_outputs(inputs, made.ctx_.get_non_differentiable(), made.ctx_.get_and_bump_dirty(),
                      to_optional(outputs), executable ? node : NodePointer(), no_tangents, {}, view_as_self,
                      /*pure_view=*/false);
    later.reset();
    for (const auto& output : wrapped) {
        if (executable) made.output_info_.emplace_back(output.value());
    }
    if (executable || keep) made.save_variables_to_ctx();
    return to_output_type<decltype(outputs)>(wrapped);
}

// A gradient in the shape and dtype of its argument, as autograd's engine makes it.
inline at::Tensor like(at::Tensor gradient, const at::Tensor& tangent) {
    if (gradient.sym_sizes() != tangent.sym_sizes())
        gradient = at::sum_to(std::move(gradient), tangent.sym_sizes());
    return gradient.scalar_type() == tangent.scalar_type() ? gradient : gradient.to(tangent.scalar_type());
}

[[noreturn]] inline void no_tangent(const char* op, const std::string& why) {
    C10_THROW_ERROR(
        NotImplementedError,
        std::string(op) +
            ": forward-mode differentiation asks for a tangent, which is derived by differentiating "
            "the gradient, and that cannot be: " +
            why);
}

// Autograd's engine may have to run Python in other threads. Whoever traces a call holds the interpreter's
// lock.
class WithoutInterpreterLock {
  public:
    WithoutInterpreterLock() {
        if (Py_IsInitialized() && PyGILState_Check()) state_ = PyEval_SaveThread();
    }
    ~WithoutInterpreterLock() {
        if (state_ != nullptr) PyEval_RestoreThread(state_);
    }
    WithoutInterpreterLock(const WithoutInterpreterLock&) = delete;
    WithoutInterpreterLock& operator=(const WithoutInterpreterLock&) = delete;

  private:
    PyThreadState* state_ = nullptr;
};

constexpr const char* kDetached = "a gradient that it returns does not depend on those that it is given";

inline variable_list directions_of(const variable_list& inputs) {
    variable_list directions;
    for (const at::Tensor& input : inputs)
        directions.push_back(input.defined() ? input._fw_grad(/*level=*/0) : at::Tensor());
    return directions;
}

// The tangents of the outputs that are there, given those of the inputs. The gradient is linear in the
// gradients of the outputs, and its derivative by them is the tangent: torch.autograd.functional.jvp finds it
// so.
template <typename T>
variable_list tangents_of(const char* op, torch::autograd::CppNode<T>& node, const variable_list& given,
                          const variable_list& outputs) {
    using namespace torch::autograd;
    const bool in_transform =
        c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerBackMode);
    // A transform records by itself where that is asked of a backward function.
    const bool create_graph = at::GradMode::is_enabled() || in_transform;
    const auto& constant = node.ctx_.get_non_differentiable();
    variable_list grads, wanted, gradients, directions;
    {
        const at::AutoGradMode enabled(true);
        for (const at::Tensor& output : outputs) {
            grads.push_back(at::zeros_like(output));
            if (!isDifferentiableType(output.scalar_type()) || constant.count(output.unsafeGetTensorImpl()))
                continue;
            grads.back().set_requires_grad(true);
            wanted.push_back(grads.back());
        }
        const variable_list made = T::backward(&node.ctx_, grads);
        for (size_t n = 0, input = 0; n < node.is_variable_input_.size(); ++n) {
            if (!node.is_variable_input_[n]) continue;
            const at::Tensor& direction = given[input++];
            if (!made[n].defined() || !direction.defined()) continue;
            if (!made[n].requires_grad()) no_tangent(op, kDetached);
            directions.push_back(direction);
            gradients.push_back(like(made[n], directions.back()));
        }
    }
    variable_list found(outputs.size());
    if (gradients.empty() || wanted.empty()) return found;
    variable_list derivatives;
    try {
        const WithoutInterpreterLock unlocked;
        derivatives = torch::autograd::grad(gradients, wanted, directions, std::nullopt, create_graph,
                                            /*allow_unused=*/true);
    } catch (const c10::Error& error) {
        no_tangent(op, error.what_without_backtrace());
    }
    const auto depends = [](const at::Tensor& derivative) { return derivative.defined(); };
    if (std::none_of(derivatives.begin(), derivatives.end(), depends)) no_tangent(op, kDetached);
    for (size_t n = 0, next = 0; n < outputs.size(); ++n) {
        if (grads[n].requires_grad()) found[n] = derivatives[next++];
    }
    return found;
}

inline at::Tensor with_tangent(const at::Tensor& output, const at::Tensor& tangent) {
    return tangent.defined() ? at::_make_dual(output, tangent, /*level=*/0) : output;
}
inline at::Tensor with_tangents(const at::Tensor& output, const variable_list& tangents) {
    return with_tangent(output, tangents[0]);
}
inline variable_list with_tangents(const variable_list& outputs, const variable_list& tangents) {
    variable_list made;
    for (size_t n = 0; n < outputs.size(); ++n) made.push_back(with_tangent(outputs[n], tangents[n]));
    return made;
}

// Gives the outputs of a recorded call their tangents in place, and what it saved of them, too: so the
// backward pass can be differentiated in forward mode. The tangents themselves are computed from arguments
// without any.
template <typename T>
void add_tangents(const char* op, const NodePointer& node, const variable_list& inputs,
                  const variable_list& outputs) {
    auto& made = static_cast<torch::autograd::CppNode<T>&>(*node);
    const auto save = [&](variable_list tensors) {
        made.ctx_.save_for_backward(std::move(tensors));
        made.save_variables_to_ctx();
    };
    variable_list saved = made.ctx_.get_saved_variables();
    variable_list primals;
    for (const at::Tensor& tensor : saved) primals.push_back(primal(tensor));
    save(std::move(primals));
    const variable_list tangents = tangents_of<T>(op, made, directions_of(inputs), outputs);
    for (size_t n = 0; n < outputs.size(); ++n) {
        if (tangents[n].defined()) outputs[n]._set_fw_grad(tangents[n], /*level=*/0, /*is_inplace_op=*/false);
    }
    for (at::Tensor& tensor : saved) {
        if (tensor.defined() && tensor.grad_fn() == node) tensor = outputs[tensor.output_nr()];
    }
    save(std::move(saved));
}

}  // namespace detail

// The results of T::forward with their history, and with tangents where arguments have some. T is a
// torch::autograd::Function that returns the outputs that are there.
template <typename T, typename... Args>
auto differentiate(const char* op, Args&&... args) -> torch::autograd::forward_t<T, Args...> {
    using namespace torch::autograd;
    std::vector<bool> is_variable;
    variable_list inputs;
    extract_vars(is_variable, inputs, args...);
    detail::NodePointer node;
    if (std::none_of(inputs.begin(), inputs.end(), has_tangent))
        return detail::record<T>(node, /*keep=*/false, std::forward<Args>(args)...);
    if (!at::GradMode::is_enabled() || !any_variable_requires_grad(inputs)) {
        const auto outputs = detail::record<T>(node, /*keep=*/true, detail::primal(args)...);
        const auto tangents = detail::tangents_of<T>(op, static_cast<CppNode<T>&>(*node),
                                                     detail::directions_of(inputs), detail::listed(outputs));
        return detail::with_tangents(outputs, tangents);
    }
    const auto outputs = detail::record<T>(node, /*keep=*/true, std::forward<Args>(args)...);
    detail::add_tangents<T>(op, node, inputs, detail::listed(outputs));
    return outputs;
}

}  // namespace ascend_graph::eager

#endif  // ASCEND_GRAPH_EAGER_DIFFERENTIATE_H
