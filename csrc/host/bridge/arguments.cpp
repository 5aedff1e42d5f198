#include "arguments.h"

#include "random.h"

namespace ascend_graph::host {
namespace {

bool is_written(const c10::Argument& argument) {
    return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// Whether two tensors share memory without being the same view of it.
bool overlap(const at::Tensor& a, const at::Tensor& b) {
    if (a.numel() == 0 || b.numel() == 0 || a.is_same(b)) return false;
    const auto* first = static_cast<const char*>(a.const_data_ptr());
    const auto* second = static_cast<const char*>(b.const_data_ptr());
    if (first == second && a.sizes() == b.sizes() && a.strides() == b.strides()) return false;
    return first < second + at::detail::computeStorageNbytes(b.sizes(), b.strides(), b.itemsize()) &&
           second < first + at::detail::computeStorageNbytes(a.sizes(), a.strides(), a.itemsize());
}

bool is_generator(const c10::Argument& argument) {
    const auto* optional = argument.type()->castRaw<c10::OptionalType>();
    return optional != nullptr && optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
}

}  // namespace

Arguments::Arguments(const Operator& op, Stack& stack,
                     const std::function<at::Tensor(const at::Tensor&)>& view)
    : view_(view), device_(kDevice, 0) {
    const auto& schema = op.schema();
    auto arguments = torch::jit::last(stack, schema.arguments().size());
    for (size_t i = 0; i < arguments.size(); ++i) {
        if (is_written(schema.arguments()[i])) find_targets(arguments[i]);
    }
    for (size_t i = 0; i < arguments.size(); ++i) {
        auto& value = const_cast<c10::IValue&>(arguments[i]);
        const bool written = is_written(schema.arguments()[i]);
        if (value.isTensor()) {
            value = replace(value.toTensor(), written);
        } else if (value.isTensorList()) {
            auto list = value.toTensorList().copy();
            for (size_t j = 0; j < list.size(); ++j) list.set(j, replace(list.get(j), written));
            value = list;
        } else if (value.isOptionalTensorList()) {
            auto list = value.toOptionalTensorList().copy();
            for (size_t j = 0; j < list.size(); ++j) {
                std::optional<at::Tensor> element = list.get(j);
                if (element.has_value()) list.set(j, std::optional<at::Tensor>(replace(*element, written)));
            }
            value = list;
        } else if (value.isDevice() && value.toDevice().type() == kDevice) {
            device_ = value.toDevice();
            on_device_ = true;
            value = c10::Device(c10::kCPU);
        } else if (value.isGenerator() && value.toGenerator().device().type() == kDevice) {
            value = cpu_generator(value.toGenerator());
        } else if (value.isNone() && is_generator(schema.arguments()[i])) {
            generator_ = &value;
        } else if (value.isBool() && value.toBool() && schema.arguments()[i].name() == "pin_memory") {
            value = false;
        }
    }
    if (generator_ != nullptr && on_device_) {
        *generator_ = cpu_generator(at::globalContext().defaultGenerator(device_));
    }
}

at::Tensor Arguments::original(const at::Tensor& result) const {
    for (const Alias& alias : aliases_) {
        if (alias.cpu.is_same(result)) return alias.device;
    }
    return {};
}

void Arguments::find_targets(const c10::IValue& value) {
    const auto add = [this](const at::Tensor& t) {
        if (t.defined() && t.device().type() == kDevice) targets_.push_back(t);
    };
    if (value.isTensor()) add(value.toTensor());
    if (value.isTensorList()) {
        for (const at::Tensor& t : value.toTensorVector()) add(t);
    }
}

at::Tensor Arguments::replace(const at::Tensor& t, bool written) {
    if (!t.defined() || t.device().type() != kDevice) return t;
    if (!on_device_) device_ = t.device();
    on_device_ = true;
    if (!written) {
        // As on the device, which reads its inputs before it writes: x[1:].sub_(x[:-1]) is well defined.
        for (const at::Tensor& target : targets_) {
            if (overlap(target, t)) return view_(t).clone();
        }
    }
    for (const Alias& alias : aliases_) {
        if (alias.device.is_same(t)) return alias.cpu;
    }
    aliases_.push_back({t, view_(t)});
    if (written) written_.push_back(aliases_.back());
    return aliases_.back().cpu;
}

}  // namespace ascend_graph::host
