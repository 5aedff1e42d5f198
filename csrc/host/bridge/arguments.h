// The arguments of an ATen operator on device tensors, as its CPU kernel takes them.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>

namespace ascend_graph::host {

constexpr auto kDevice = c10::DeviceType::PrivateUse1;
using Operator = c10::OperatorHandle;
using Stack = torch::jit::Stack;

// A device tensor and the CPU tensor that stands for it during a call.
struct Alias {
    at::Tensor device;
    at::Tensor cpu;
};
using Aliases = c10::SmallVector<Alias, 8>;

class Arguments {
  public:
    // Replaces device tensors, devices and generators in the operator's arguments by their CPU counterparts.
    Arguments(const Operator& op, Stack& stack, const std::function<at::Tensor(const at::Tensor&)>& view);

    bool on_device() const { return on_device_; }
    c10::Device device() const { return device_; }
    const Aliases& written() const { return written_; }

    // The device tensor that `result` stands for; undefined where it is a new tensor.
    at::Tensor original(const at::Tensor& result) const;

  private:
    void find_targets(const c10::IValue& value);
    at::Tensor replace(const at::Tensor& t, bool written);

    const std::function<at::Tensor(const at::Tensor&)>& view_;
    c10::SmallVector<at::Tensor, 2> targets_;
    Aliases aliases_;
    Aliases written_;
    c10::Device device_;
    bool on_device_ = false;
    c10::IValue* generator_ = nullptr;
};

// Applies `f` to every tensor among the operator's results.
template <typename F>
void map_results(const Operator& op, Stack& stack, F f) {
    const size_t count = op.schema().returns().size();
    for (auto& result : torch::jit::last(stack, count)) {
        auto& value = const_cast<c10::IValue&>(result);
        if (value.isTensor()) {
            value = f(value.toTensor());
        } else if (value.isTensorList()) {
            auto list = value.toTensorList();
            for (size_t i = 0; i < list.size(); ++i) list.set(i, f(list.get(i)));
        }
    }
}

}  // namespace ascend_graph::host
