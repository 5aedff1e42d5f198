// Which ATen operators the host runtime takes over from torch_npu, whose kernels would ask CANN's operator
// library for work that nobody here can do. Decided by the dispatcher's own tables; operators in other
// namespaces (npu::, a user's own) are not touched.
#include <torch/library.h>

#include <unordered_set>

#include "aten.h"
#include "formats.h"
#include "fused_cells.h"

namespace ascend_graph::host {
namespace {

using c10::DispatchKey;

// The kernel that PyTorch has under an alias key: the operator composed of others, which come back to the
// device one by one, or PyTorch's own derivative.
template <DispatchKey alias>
void call(const Operator& op, c10::DispatchKeySet, Stack* stack) {
    op.callBoxedForDispatchKey(alias, *stack);
}

// An operator that the device has no kernel of, but one composed of others: a capture records those, of which
// torch_npu may compute some on the CPU.
template <DispatchKey alias>
void composed_in_captures(const Operator& op, c10::DispatchKeySet keys, Stack* stack) {
    if (deferral() != nullptr) {
        op.callBoxedForDispatchKey(alias, *stack);
    } else {
        boxed_kernel(op, keys, stack);
    }
}

template <auto kernel>
void implement(torch::Library& library, const Operator& op) {
    library.impl(toString(op.operator_name()).c_str(), torch::CppFunction::makeFromBoxedFunction<kernel>());
}

bool is_view(const c10::FunctionSchema& schema) {
    for (const auto& result : schema.returns()) {
        if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) return true;
    }
    return false;
}

// An operator that makes a tensor on a device of its own argument from one that may lie elsewhere; packing
// takes lengths, and gives batch sizes, that lie on the CPU.
bool goes_between_devices(const c10::FunctionSchema& schema) {
    const auto& arguments = schema.arguments();
    return schema.name() == "aten::_pack_padded_sequence" ||
           schema.argumentIndexWithName("device").has_value() && !arguments.empty() &&
               arguments.front().type()->kind() == c10::TypeKind::TensorType;
}

// torch_npu's own kernels for memory and for reading a value from it are right on the host runtime, as is the
// one that composes a sparse tensor of dense ones; `contiguous` and `dropout_` are above all others.
bool keeps_its_kernel(const std::string& name) {
    static const std::unordered_set<std::string> kept{
        "aten::empty",      "aten::empty_strided", "aten::set_",
        "aten::is_set_to",  "aten::resize_",       "aten::_local_scalar_dense",
        "aten::is_pinned",  "aten::_pin_memory",   "aten::_copy_from_and_resize",
        "aten::contiguous", "aten::dropout_",      "aten::_to_sparse",
    };
    return kept.count(name) != 0;
}

// Weights of the bits of a byte, the first element in the lowest one.
at::Tensor places_of_bits(const at::Tensor& bytes) { return at::arange(8, bytes.options()); }

// A bit for each element, in bytes up to a multiple of 128 bits, as aclnnDropoutGenMaskV2 makes them.
at::Tensor packed(const at::Tensor& mask) {
    const int64_t bytes = (mask.numel() + 127) / 128 * 16;
    const at::Tensor bits = at::zeros({bytes * 8}, mask.options().dtype(at::kByte));
    bits.narrow(0, 0, mask.numel()).copy_(mask.reshape(-1));
    return bits.view({bytes, 8}).bitwise_left_shift(places_of_bits(bits)).sum(1, false, at::kByte);
}

at::Tensor unpacked(const at::Tensor& mask, const at::Tensor& like) {
    const at::Tensor bits = mask.unsqueeze(1).bitwise_right_shift(places_of_bits(mask)).bitwise_and(1);
    return bits.reshape(-1).narrow(0, 0, like.numel()).reshape(like.sizes()).to(like.scalar_type());
}

// The one operator that draws random numbers without taking a generator and has a CPU kernel of its own, as
// every device has: made of one that takes it, and so draws from the device's, and can be captured. Its mask
// is a device's, bits in bytes, which graphs are compiled for; PyTorch's second derivative, which graphs do
// not ask for, takes a mask of the input's shape.
std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p,
                                                  std::optional<bool> train) {
    if (!train.value_or(true)) return {input.clone(), at::ones_like(input, at::kBool)};
    const at::Tensor mask = at::empty_like(input, at::kFloat).uniform_().lt_(1 - p).to(at::kBool);
    const bool whole = p == 0 || p == 1 || at::GradMode::is_enabled();
    return {input.mul(mask).mul_(p == 1 ? 0 : 1 / (1 - p)), whole ? mask : packed(mask)};
}

at::Tensor native_dropout_backward(const at::Tensor& grad, const at::Tensor& mask, double scale) {
    const at::Tensor kept =
        mask.scalar_type() == at::kByte ? unpacked(mask, grad) : mask.to(grad.scalar_type());
    return grad.mul(kept.mul(scale));
}

// As torch_npu composes it: PyTorch's draws other numbers than dropout does, and cannot be captured.
at::Tensor& dropout_(at::Tensor& self, double p, bool train) {
    const bool changes = train && p != 0 && self.numel() != 0;
    return changes ? self.copy_(at::dropout(self, p, train)) : self;
}

// As PyTorch composes it, but for the formats that torch_npu refuses.
at::Tensor contiguous(const at::Tensor& self, at::MemoryFormat format) {
    if (self.is_contiguous(format)) return self;
    TORCH_CHECK(format != at::MemoryFormat::ChannelsLast && format != at::MemoryFormat::ChannelsLast3d,
                "NPU contiguous operator only supported contiguous memory format.");
    TORCH_CHECK(format != at::MemoryFormat::Preserve,
                "preserve memory format is unsupported by the contiguous operator");
    return self.clone(format);
}

// Shares the memory until one of both is written. A capture keeps addresses, and a storage in blocks more
// than memory: they get a copy.
at::Tensor lazy_clone(const at::Tensor& self) {
    if (deferral() != nullptr || blocks_of(self).has_value()) return self.clone();
    static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::_lazy_clone", "");
    Stack stack{self};
    op.callBoxedForDispatchKey(DispatchKey::CompositeExplicitAutograd, stack);
    return stack.back().toTensor();
}

struct Libraries {
    torch::Library cpu{torch::Library::IMPL, "aten", DispatchKey::CPU, __FILE__, __LINE__};
    torch::Library backend{torch::Library::IMPL, "aten", DispatchKey::PrivateUse1, __FILE__, __LINE__};
    torch::Library autograd{torch::Library::IMPL, "aten", DispatchKey::AutogradPrivateUse1, __FILE__,
                            __LINE__};

    Libraries() {
        register_fused_cells(cpu);
        autograd.impl("dropout_", &dropout_);
        backend.impl("dropout_", &dropout_);
        autograd.impl("contiguous", &contiguous);
        backend.impl("contiguous", &contiguous);
        for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
            if (name.name.rfind("aten::", 0) != 0 || keeps_its_kernel(name.name)) continue;
            const auto op = c10::Dispatcher::singleton().findSchema(name);
            if (op.has_value()) take_over(*op);
        }
    }

    void take_over(const Operator& op) {
        const auto has = [&](DispatchKey key) { return op.hasKernelForDispatchKey(key); };
        const bool derivative = has(DispatchKey::Autograd);
        // Composed of others by PyTorch, which has no CPU kernel for such operators unless it has a
        // derivative too: another one is torch_npu's, and would cut autograd off.
        const bool composite =
            has(DispatchKey::CompositeImplicitAutograd) && !(has(DispatchKey::CPU) && derivative);
        const bool overridden = has(DispatchKey::PrivateUse1) || has(DispatchKey::CPU);
        const bool differentiated = has(DispatchKey::AutogradPrivateUse1);
        const bool explicitly = has(DispatchKey::CompositeExplicitAutograd) ||
                                has(DispatchKey::CompositeExplicitAutogradNonFunctional);
        if (composite && (overridden || differentiated)) {
            implement<call<DispatchKey::CompositeImplicitAutograd>>(autograd, op);
        } else if (differentiated && derivative) {
            implement<call<DispatchKey::Autograd>>(autograd, op);
        }
        // Views, also those that change a tensor's own sizes and strides, touch no memory.
        if (is_view(op.schema()) || op.hasTag(at::Tag::inplace_view)) return;
        if (op.operator_name() == c10::OperatorName("aten::native_dropout", "")) {
            backend.impl("native_dropout", &native_dropout);
        } else if (op.operator_name() == c10::OperatorName("aten::native_dropout_backward", "")) {
            backend.impl("native_dropout_backward", &native_dropout_backward);
        } else if (op.operator_name() == c10::OperatorName("aten::_lazy_clone", "")) {
            backend.impl("_lazy_clone", &lazy_clone);
        } else if (composite) {
            if (overridden) implement<call<DispatchKey::CompositeImplicitAutograd>>(backend, op);
        } else if (has(DispatchKey::PrivateUse1) && has(DispatchKey::CompositeExplicitAutograd) &&
                   (goes_between_devices(op.schema()) ||
                    (op.hasTag(at::Tag::nondeterministic_seeded) && !has(DispatchKey::CPU)))) {
            // Those that draw random numbers without a generator are made of some that take the device's.
            implement<call<DispatchKey::CompositeExplicitAutograd>>(backend, op);
        } else if (has(DispatchKey::PrivateUse1)) {
            if (has(DispatchKey::CPU) || explicitly) implement<boxed_kernel>(backend, op);
        } else if (has(DispatchKey::CPU)) {
            take_over_fallback(op);
        }
    }

    // The device has no kernel of it.
    void take_over_fallback(const Operator& op) {
        constexpr auto composed = DispatchKey::CompositeExplicitAutograd;
        constexpr auto of_out = DispatchKey::CompositeExplicitAutogradNonFunctional;
        if (op.hasKernelForDispatchKey(composed)) {
            implement<composed_in_captures<composed>>(backend, op);
        } else if (op.hasKernelForDispatchKey(of_out)) {
            implement<composed_in_captures<of_out>>(backend, op);
        } else {
            implement<fallback_kernel>(backend, op);
        }
    }
};

const Libraries libraries;

}  // namespace
}  // namespace ascend_graph::host
