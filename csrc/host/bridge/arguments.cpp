#include "arguments.h"

#include <ATen/MemoryOverlap.h>

#include <algorithm>

#include "devices.h"
#include "random.h"
#include "tensors.h"

namespace ascend_graph::host {
namespace {

// Whether both lie in one allocation: a capture's snapshots of it are storages of their own.
bool share_memory(const at::Tensor& a, const at::Tensor& b) {
    return a.storage().data() == b.storage().data() && a.storage().data() != nullptr;
}

// Whether two tensors share memory without being the same view of it, and PyTorch does not notice: kernels
// refuse dense tensors that overlap.
bool overlap(const at::Tensor& a, const at::Tensor& b, bool reads_first) {
    if (a.is_same(b) || !share_memory(a, b) || a.numel() == 0 || b.numel() == 0) return false;
    if (!reads_first && a.is_non_overlapping_and_dense() && b.is_non_overlapping_and_dense()) return false;
    const auto* first = static_cast<const char*>(a.const_data_ptr());
    const auto* second = static_cast<const char*>(b.const_data_ptr());
    if (first == second && a.sizes() == b.sizes() && a.strides() == b.strides()) return false;
    return first < second + at::detail::computeStorageNbytes(b.sizes(), b.strides(), b.itemsize()) &&
           second < first + at::detail::computeStorageNbytes(a.sizes(), a.strides(), a.itemsize());
}

// Whether a copy between two views of one memory moves every element to where it is: dimensions of one
// element are no matter, of which PyTorch's CPU kernel compares the strides and refuses x[:1] = x[0].
bool same_elements(const at::Tensor& a, const at::Tensor& b) {
    if (!share_memory(a, b) || a.const_data_ptr() != b.const_data_ptr() || a.dtype() != b.dtype())
        return false;
    const auto extents = [](const at::Tensor& t) {
        c10::SmallVector<std::pair<int64_t, int64_t>, 6> kept;
        for (int64_t d = 0; d < t.dim(); ++d) {
            if (t.size(d) != 1) kept.emplace_back(t.size(d), t.stride(d));
        }
        return kept;
    };
    return extents(a) == extents(b);
}

// npugraph_ex rebuilds the inputs of a captured graph as tensors of its backend, wherever their memory is.
// The operators of a graph that read memory of the CPU ran once, at the capture: no replay can be right.
void check_backend(const Operator& op, const at::Tensor& t) {
    TORCH_CHECK(!t.key_set().has_backend(c10::BackendComponent::PrivateUse1Bit), op.schema().name(), ": a ",
                t.scalar_type(), " tensor of shape ", t.sizes(),
                " is the npu backend's, but lies in the memory of ", t.device(),
                "; a captured graph takes tensors of the device alone: move every input of the compiled "
                "function to it first, with .npu()",
                t.dim() != 0
                    ? ""
                    : ". A Python float that is not the same in every call becomes such a tensor, too: set "
                      "torch._dynamo.config.specialize_float = True for a capture of each value");
}

// A storage that was resized to nothing (FSDP2 frees parameters so) under a tensor that still has elements: a
// device would read or write address 0.
void check_memory(const Operator& op, const c10::Argument& argument, const at::Tensor& t) {
    TORCH_CHECK(t.numel() == 0 || t._is_zerotensor() || !t.has_storage() || t.storage().nbytes() != 0,
                op.operator_name(), ": argument '", argument.name(), "' is a ", t.scalar_type(),
                " tensor of shape ", t.sizes(),
                " whose memory was freed (its storage has 0 bytes); resize the storage, or gather the "
                "parameter, before it is used");
}

// Whether the kernel may write to the argument. Schemas do not say so of a batch norm's statistics.
bool may_be_written(const c10::Argument& argument) {
    return is_written(argument) || argument.name() == "running_mean" || argument.name() == "running_var";
}

// Memory that lazy clones share becomes the tensor's own.
void own_memory(const c10::IValue& value) {
    for_each_tensor(value, [](const at::Tensor& t) {
        if (t.device().type() == kDevice && t.has_storage()) t.storage().mutable_data();
    });
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
    : substitutes_(substitutes), device_(kDevice, 0) {
    const auto& schema = op.schema();
    c10::IValue* arguments = arguments_of(op, stack);
    check_same_device(op, c10::ArrayRef<c10::IValue>(arguments, schema.arguments().size()));
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
        if (may_be_written(schema.arguments()[i])) own_memory(arguments[i]);
        if (is_written(schema.arguments()[i])) find_targets(arguments[i]);
    }
    c10::IValue* generator = nullptr;
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
        c10::IValue& value = arguments[i];
        map_tensors(value, [&](const at::Tensor& t) { return replace(t, op, i); });
        if (value.isDevice() && value.toDevice().type() == kDevice) {
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
    value = substitutes_.generator(value.isNone() ? default_generator(device_) : value.toGenerator());
}

at::Tensor Arguments::original(const at::Tensor& result) const {
    for (const Alias& alias : aliases_) {
        if (alias.cpu.is_same(result)) return alias.device;
    }
    return {};
}

at::Tensor Arguments::view(const at::Tensor& result) const {
    if (!result.has_storage()) return {};
    for (const Alias& alias : aliases_) {
        if (alias.cpu.storage().is_alias_of(result.storage())) {
            return view_on_device(alias.device, alias.cpu, result);
        }
    }
    return {};
}

void Arguments::find_targets(const c10::IValue& value) {
    for_each_tensor(value, [this](const at::Tensor& t) {
        if (t.device().type() == kDevice) targets_.push_back(t);
    });
}

// Whether the CPU kernel writes a contiguous tensor in the place of this output: some (softmax, pooling,
// gelu) write any output as if it were contiguous. Overlaps that PyTorch refuses are left to the kernel.
bool Arguments::staged(const at::Tensor& out) const {
    if (out.is_contiguous() || out.key_set().has_any(kLazyState) ||
        at::has_internal_overlap(out) == at::MemOverlap::Yes)
        return false;
    return std::none_of(aliases_.begin(), aliases_.end(), [&out](const Alias& alias) {
        return at::get_overlap_status(alias.device, out) == at::MemOverlapStatus::Partial;
    });
}

at::Tensor Arguments::replace(const at::Tensor& t, const Operator& op, size_t position) {
    if (!t.defined()) return t;
    if (t.device().type() != kDevice) {
        check_backend(op, t);
        return t;
    }
    const c10::Argument& argument = op.schema().arguments()[position];
    TORCH_CHECK_NOT_IMPLEMENTED(!t.key_set().has_any(kForeignLayouts), op.operator_name(), ": argument '",
                                argument.name(), "' is a ", layout_of(t),
                                " tensor; on devices of the host runtime the operator takes dense tensors "
                                "only: call it on the CPU, or on a dense tensor");
    check_memory(op, argument, t);
    if (!on_device_) device_ = t.device();
    on_device_ = true;
    const bool written = is_written(argument);
    if (!written) {
        // As on the device, which reads its inputs before it writes: x[:, 1:].sub_(x[:, :-1]) is well
        // defined.
        const bool copies = op.operator_name().name == "aten::copy_";
        for (const at::Tensor& target : targets_) {
            if (overlap(target, t, substitutes_.reads_first) ||
                (copies && !target.is_same(t) && same_elements(target, t)))
                return substitutes_.tensor(t).clone();
        }
    }
    const bool in_order = written && argument.kwarg_only() && staged(t);
    const at::Tensor* sibling = nullptr;
    for (Alias& alias : aliases_) {
        if (alias.device.is_same(t) && !in_order) {
            alias.written = alias.written || written;
            return alias.cpu;
        }
        if (share_memory(alias.device, t)) sibling = &alias.cpu;
    }
    at::Tensor made = substitutes_.tensor(t);
    if (in_order && made.device().is_cpu()) {
        at::Tensor contiguous = made.contiguous();
        aliases_.push_back({t, std::move(contiguous), written, std::move(made)});
        return aliases_.back().cpu;
    }
    if (sibling != nullptr && made.device().is_cpu()) {
        // One memory, so that PyTorch sees which arguments overlap.
        made.unsafeGetTensorImpl()->set_storage_keep_dtype(sibling->storage());
    }
    aliases_.push_back({t, std::move(made), written, {}});
    return aliases_.back().cpu;
}

}  // namespace ascend_graph::host
