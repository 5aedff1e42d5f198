#include "arguments.h"

namespace ascend_graph::host {
namespace {

// Whether two tensors share memory without being the same view of it.
bool overlap(const at::Tensor& a, const at::Tensor& b) {
    if (a.numel() == 0 || b.numel() == 0 || a.is_same(b)) return false;
    const auto* first = static_cast<const char*>(a.const_data_ptr());
    const auto* second = static_cast<const char*>(b.const_data_ptr());
    if (first == second && a.sizes() == b.sizes() && a.strides() == b.strides()) return false;
    return first < second + at::detail::computeStorageNbytes(b.sizes(), b.strides(), b.itemsize()) &&
           second < first + at::detail::computeStorageNbytes(a.sizes(), a.strides(), a.itemsize());
}

// npugraph_ex rebuilds the inputs of a captured graph as tensors of its backend, wherever their memory is.
// The operators of a graph that read memory of the CPU ran once, at the capture: no replay can be right.
void check_backend(const Operator& op, const at::Tensor& t) {
    TORCH_CHECK(!t.key_set().has_backend(c10::BackendComponent::PrivateUse1Bit), op.schema().name(), ": a ",
                t.scalar_type(), " tensor of shape ", t.sizes(),
                " is the npu backend's, but lies in the memory of ", t.device(),
                "; a captured graph takes tensors of the device alone: move every input of the compiled "
                "function to it first, with .npu()");
}

bool is_generator(const c10::Argument& argument) {
    const auto* optional = argument.type()->castRaw<c10::OptionalType>();
    const auto kind = optional != nullptr ? optional->getElementType()->kind() : argument.type()->kind();
    return kind == c10::TypeKind::GeneratorType;
}

}  // namespace

bool is_written(const c10::Argument& argument) {
    return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

Arguments::Arguments(const Operator& op, Stack& stack, const Substitutes& substitutes)
    : op_(op), substitutes_(substitutes), device_(kDevice, 0) {
    const auto& schema = op.schema();
    c10::IValue* arguments = arguments_of(op, stack);
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
        if (is_written(schema.arguments()[i])) find_targets(arguments[i]);
    }
    c10::IValue* generator = nullptr;
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
        c10::IValue& value = arguments[i];
        const bool written = is_written(schema.arguments()[i]);
        if (value.isTensor() || value.isTensorList() || value.isOptionalTensorList()) {
            map_tensors(value, [&](const at::Tensor& t) { return replace(t, written); });
        } else if (value.isDevice() && value.toDevice().type() == kDevice) {
            device_ = value.toDevice();
            on_device_ = true;
            value = c10::Device(c10::kCPU);
        } else if (is_generator(schema.arguments()[i])) {
            generator = &value;
        } else if (value.isBool() && value.toBool() && schema.arguments()[i].name() == "pin_memory") {
            value = false;
        }
    }
    if (generator != nullptr) replace_generator(*generator);
}

void Arguments::replace_generator(c10::IValue& value) const {
    const bool on_host = !value.isNone() && value.toGenerator().device().type() != kDevice;
    if (!on_device_ && (value.isNone() || on_host)) return;
    // In PyTorch's words.
    TORCH_CHECK(!on_host && on_device_, "Expected a '",
                c10::DeviceTypeName(on_device_ ? kDevice : c10::kCPU, /*lower_case=*/true),
                "' device type for generator but found '", value.toGenerator().device().type(), "'");
    value = substitutes_.generator(value.isNone() ? at::globalContext().defaultGenerator(device_)
                                                  : value.toGenerator());
}

at::Tensor Arguments::original(const at::Tensor& result) const {
    for (const Alias& alias : aliases_) {
        if (alias.cpu.is_same(result)) return alias.device;
    }
    return {};
}

void Arguments::find_targets(c10::IValue value) {
    map_tensors(value, [this](const at::Tensor& t) {
        if (t.defined() && t.device().type() == kDevice) targets_.push_back(t);
        return t;
    });
}

at::Tensor Arguments::replace(const at::Tensor& t, bool written) {
    if (!t.defined()) return t;
    if (t.device().type() != kDevice) {
        check_backend(op_, t);
        return t;
    }
    if (!on_device_) device_ = t.device();
    on_device_ = true;
    if (!written) {
        // As on the device, which reads its inputs before it writes: x[1:].sub_(x[:-1]) is well defined.
        for (const at::Tensor& target : targets_) {
            if (overlap(target, t)) return substitutes_.tensor(t).clone();
        }
    }
    for (const Alias& alias : aliases_) {
        if (alias.device.is_same(t)) return alias.cpu;
    }
    aliases_.push_back({t, substitutes_.tensor(t)});
    if (written) written_.push_back(aliases_.back());
    return aliases_.back().cpu;
}

}  // namespace ascend_graph::host
