// Calls of operators that write, with tensors that are lazily conjugated or negated (`x.conj().imag`).
// PyTorch's fallback for them takes an operator's first result for the written argument; of one that returns
// nothing it reads past the end of its stack. ascend_graph/registration/writing/lazy_bits.py does the same in
// Python.
#ifndef ASCEND_GRAPH_EAGER_LAZY_BITS_H
#define ASCEND_GRAPH_EAGER_LAZY_BITS_H

#include <torch/library.h>

#include <vector>

#include "tangents.h"

namespace ascend_graph::eager {

namespace detail {

inline at::Tensor plain(const at::Tensor& tensor) {
    return tensor.defined() ? tensor.resolve_conj().resolve_neg() : tensor;
}

// Tensors, also those of a list, in memory that has their values.
inline c10::IValue plain(const c10::IValue& value) {
    if (value.isTensor()) return plain(value.toTensor());
    if (value.isTensorList()) {
        std::vector<at::Tensor> tensors = value.toTensorVector();
        for (at::Tensor& tensor : tensors) tensor = plain(tensor);
        return tensors;
    }
    if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> tensors = value.toOptionalTensorList().copy();
        for (size_t n = 0; n < tensors.size(); ++n) {
            if (const std::optional<at::Tensor> tensor = tensors.get(n)) tensors.set(n, plain(*tensor));
        }
        return tensors;
    }
    return value;
}

inline std::vector<at::Tensor> tensors_of(const c10::IValue& value) {
    std::vector<at::Tensor> tensors;
    each_tensor(value, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
    return tensors;
}

// For the keys Conjugate and Negative of an operator that writes and returns none of its arguments.
inline void call_with_plain_tensors(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                                    torch::jit::Stack* stack) {
    const auto& arguments = op.schema().arguments();
    std::vector<std::pair<at::Tensor, at::Tensor>> copied;
    for (size_t n = 0; n < arguments.size(); ++n) {
        c10::IValue& value = torch::jit::peek(*stack, n, arguments.size());
        const std::vector<at::Tensor> given = tensors_of(value);
        value = plain(value);
        const std::vector<at::Tensor> made = tensors_of(value);
        for (size_t i = 0; is_written(arguments[n]) && i < given.size(); ++i) {
            if (!given[i].is_same(made[i])) copied.emplace_back(given[i], made[i]);
        }
    }
    op.redispatchBoxed(
        keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Conjugate), stack);
    for (const auto& [tensor, value] : copied) tensor.copy_(value);
}

}  // namespace detail

inline torch::CppFunction with_plain_tensors() {
    return torch::CppFunction::makeFromBoxedFunction<&detail::call_with_plain_tensors>();
}

}  // namespace ascend_graph::eager

#endif  // ASCEND_GRAPH_EAGER_LAZY_BITS_H
