// The arguments of an ATen operator on device tensors, as its CPU kernel takes them.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <string>

#include "values.h"

namespace ascend_graph::host {

constexpr auto kDevice = c10::DeviceType::PrivateUse1;
using Operator = c10::OperatorHandle;
using Stack = torch::jit::Stack;

// A device tensor and the CPU tensor that stands for it during a call.
struct Alias {
    at::Tensor device;
    at::Tensor cpu;
    bool written = false;
    // Where the CPU tensor's values go after the call, of an output that is written in order
    // (Arguments::staged).
    at::Tensor destination;
};
using Aliases = c10::SmallVector<Alias, 8>;

// What an operator is shown in the place of device tensors and of the device generator it draws from.
struct Substitutes {
    std::function<at::Tensor(const at::Tensor&)> tensor;
    std::function<c10::IValue(const at::Generator&)> generator;
    // Whether inputs are read before memory that they share is written also where PyTorch would refuse the
    // call: npugraph_ex rewrites x[1:] - x[:-1] in place.
    bool reads_first = false;
};

// Whether the operator's schema says that it writes this argument.
bool is_written(const c10::Argument& argument);

class Arguments {
  public:
    // Replaces device tensors, devices and generators in the operator's arguments by their substitutes.
    Arguments(const Operator& op, Stack& stack, const Substitutes& substitutes);

    bool on_device() const { return on_device_; }
    c10::Device device() const { return device_; }
    const Aliases& aliases() const { return aliases_; }

    // The device tensor that `result` stands for; undefined where it is another.
    at::Tensor original(const at::Tensor& result) const;
    // The device's side of a result that is a view of an argument; undefined where its memory is new.
    at::Tensor view(const at::Tensor& result) const;

  private:
    void find_targets(const c10::IValue& value);
    bool staged(const at::Tensor& out) const;
    at::Tensor replace(const at::Tensor& t, const Operator& op, size_t position);
    void replace_generator(c10::IValue& value) const;

    const Substitutes& substitutes_;
    c10::SmallVector<at::Tensor, 2> targets_;
    Aliases aliases_;
    c10::Device device_;
    bool on_device_ = false;
};

inline std::string name_of(const Operator& op) { return toString(op.operator_name()); }

// The operator's arguments at the top of its stack, to be changed in place.
inline c10::IValue* arguments_of(const Operator& op, Stack& stack) {
    return stack.data() + stack.size() - op.schema().arguments().size();
}

// Applies `f` to every tensor among the operator's results.
template <typename F>
void map_results(const Operator& op, Stack& stack, F f) {
    const size_t count = op.schema().returns().size();
    for (size_t i = stack.size() - count; i < stack.size(); ++i) map_tensors(stack[i], f);
}

}  // namespace ascend_graph::host
