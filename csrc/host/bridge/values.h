// The tensors within a value that an operator takes or gives, whatever its type: alone, in lists, tuples and
// dicts. A list is recognized by its elements: TorchScript's have other element types than those that
// Python's arguments become (a `Tensor[]` of its own where the operator declares `Tensor?[]`).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace ascend_graph::host {

// Lists of numbers, the most frequent ones, need no look at their elements.
inline bool is_list_of_numbers(const c10::IValue& value) {
    return value.isIntList() || value.isDoubleList() || value.isBoolList();
}

// Applies `f` to every defined tensor of `value`.
template <typename F>
void for_each_tensor(const c10::IValue& value, const F& f) {
    if (value.isTensor()) {
        if (value.toTensor().defined()) f(value.toTensor());
    } else if (value.isList()) {
        if (is_list_of_numbers(value)) return;
        for (const c10::IValue& element : value.toListRef()) for_each_tensor(element, f);
    } else if (value.isTuple()) {
        for (const c10::IValue& element : value.toTupleRef().elements()) for_each_tensor(element, f);
    } else if (value.isGenericDict()) {
        for (const auto& entry : value.toGenericDict()) {
            for_each_tensor(entry.key(), f);
            for_each_tensor(entry.value(), f);
        }
    }
}

// Replaces every tensor of `value`, the undefined ones too, by the result of `f`. Lists, tuples and dicts are
// copied first: they may be the caller's.
template <typename F>
void map_tensors(c10::IValue& value, const F& f) {
    if (value.isTensor()) {
        value = f(value.toTensor());
    } else if (value.isList()) {
        if (is_list_of_numbers(value)) return;
        auto list = value.toList().copy();
        for (size_t i = 0; i < list.size(); ++i) {
            c10::IValue element = list.get(i);
            map_tensors(element, f);
            list.set(i, std::move(element));
        }
        value = std::move(list);
    } else if (value.isTuple()) {
        std::vector<c10::IValue> elements = value.toTupleRef().elements().vec();
        for (c10::IValue& element : elements) map_tensors(element, f);
        value = c10::ivalue::Tuple::create(std::move(elements));
    } else if (value.isGenericDict()) {
        const auto dict = value.toGenericDict();
        c10::impl::GenericDict made(dict.keyType(), dict.valueType());
        for (const auto& entry : dict) {
            c10::IValue key = entry.key(), element = entry.value();
            map_tensors(key, f);
            map_tensors(element, f);
            made.insert(std::move(key), std::move(element));
        }
        value = std::move(made);
    }
}

}  // namespace ascend_graph::host
