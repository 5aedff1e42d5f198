// ATen operators on `npu` tensors: one boxed kernel that lets PyTorch's CPU kernels work on device memory.
//
// Device memory is host memory, so the CPU kernels can read and write it in place. The boxed kernel shows
// every device tensor among the arguments as a CPU tensor over the same memory, calls the operator again, and
// gives results that are not arguments device memory of their own. It replaces torch_npu's kernels, which
// would ask CANN's operator library for work that nobody here can do; operators in other namespaces (npu::, a
// user's own) are not touched.
#include "aten.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/Exceptions.h>
#include <torch/library.h>

#include <string>
#include <unordered_set>

#include "ascend_graph/host_runtime.h"
#include "capture.h"
#include "fused_cells.h"
#include "random.h"
#include "tensors.h"
#include "torch_npu/csrc/core/npu/NPUStream.h"

namespace ascend_graph::host {
namespace {

void copy_memory(const at::Tensor& device, const at::Tensor& cpu) {
    if (cpu.numel() == 0) return;
    if (device.strides() == cpu.strides() && cpu.is_non_overlapping_and_dense()) {
        std::memcpy(device.data_ptr(), cpu.data_ptr(), cpu.nbytes());
    } else {
        alias_on_cpu(device).copy_(cpu);
    }
}

// An argument that the CPU kernel resized (`out=`): the device tensor gets the same sizes and strides, and
// what was written where it has other memory now. Memory that both still share holds the result as it is.
void settle_written(const Arguments& arguments) {
    for (const Alias& alias : arguments.written()) {
        if (alias.cpu.sizes() == alias.device.sizes() && alias.cpu.strides() == alias.device.strides() &&
            (alias.cpu.numel() == 0 || alias.cpu.data_ptr() == alias.device.data_ptr()))
            continue;
        alias.device.resize_(alias.cpu.sizes());
        if (alias.cpu.is_non_overlapping_and_dense())
            alias.device.unsafeGetTensorImpl()->set_sizes_and_strides(alias.cpu.sizes(), alias.cpu.strides());
        if (alias.cpu.numel() != 0 && alias.cpu.data_ptr() != alias.device.data_ptr())
            copy_memory(alias.device, alias.cpu);
    }
}

// The device has kernels for more dtypes than the CPU: there a narrow one is done in a wide one.
at::Tensor widened(const at::Tensor& t) {
    if (c10::isIntegralType(t.scalar_type(), /*includeBool=*/true)) return t.to(at::kDouble);
    return c10::isReducedFloatingType(t.scalar_type()) ? t.to(at::kFloat) : t;
}

// Its kernels take any strides, which some of the CPU do not.
at::Tensor contiguous(const at::Tensor& t) { return t.contiguous(); }

// Calls the operator on substitutes of its tensors, and gives what it wrote and returned the dtypes it would
// have had; false if every substitute is the tensor itself.
bool call_on_substitutes(const Operator& op, Stack& stack, at::Tensor (*substitute)(const at::Tensor&)) {
    std::vector<std::pair<at::Tensor, at::Tensor>> replaced;
    const auto replace = [&](const at::Tensor& t) -> at::Tensor {
        if (!t.defined()) return t;
        at::Tensor made = substitute(t);
        if (!made.is_same(t)) replaced.emplace_back(t, made);
        return made;
    };
    c10::IValue* arguments = arguments_of(op, stack);
    for (size_t i = 0; i < op.schema().arguments().size(); ++i) map_tensors(arguments[i], replace);
    if (replaced.empty()) return false;
    op.callBoxed(stack);
    for (const auto& [tensor, made] : replaced) {
        if (!made.equal(tensor.to(made.scalar_type()))) tensor.copy_(made);
    }
    map_results(op, stack, [&](const at::Tensor& result) {
        for (const auto& [tensor, made] : replaced) {
            if (made.is_same(result)) return tensor;
        }
        const auto& [tensor, made] = replaced.front();
        return result.defined() && result.scalar_type() == made.scalar_type()
                   ? result.to(tensor.scalar_type())
                   : result;
    });
    return true;
}

void call_on_cpu(const Operator& op, Stack& stack, bool writes) {
    Stack again = stack;
    try {
        op.callBoxed(stack);
    } catch (std::exception& error) {
        stack = std::move(again);
        const bool no_kernel = text_of(error).find("not implemented for '") != std::string::npos;
        // A kernel that does not take the dtype has written nothing; another may have.
        if (!no_kernel && writes) throw;
        if (!call_on_substitutes(op, stack, no_kernel ? widened : contiguous)) throw;
    }
}

}  // namespace

at::Tensor new_device_tensor(const at::Tensor& like, c10::Device device) {
    const auto options = like.options().device(device).pinned_memory(false);
    return like.is_non_overlapping_and_dense() ? at::empty_strided(like.sizes(), like.strides(), options)
                                               : at::empty(like.sizes(), options);
}

std::string text_of(std::exception& error) {
    if (auto* raised = dynamic_cast<python_error*>(&error)) raised->persist();
    if (auto* raised = dynamic_cast<c10::Error*>(&error)) return raised->what_without_backtrace();
    return error.what();
}

void run(const Operator& op, Stack& stack, const Substitutes& substitutes, const Placement& place) {
    const Arguments arguments(op, stack, substitutes);
    call_on_cpu(op, stack, !arguments.written().empty());
    settle_written(arguments);
    if (!arguments.on_device()) return;
    map_results(op, stack, [&](const at::Tensor& result) {
        if (!result.defined() || result.device().type() != c10::kCPU) return result;
        at::Tensor original = arguments.original(result);
        return original.defined() ? original : place(result, arguments.device());
    });
}

namespace {

// A kernel launched before this operator has failed: its results must not be used.
void check_launches() {
    const int error = ascendgraphReportKernelFailure();
    TORCH_CHECK(error == 0, "ACL error ", error, ": ", ascendgraphRecentError());
}

at::Tensor new_tensor(const at::Tensor& result, c10::Device device) {
    at::Tensor placed = new_device_tensor(result, device);
    copy_memory(placed, result);
    return placed;
}

void boxed_kernel(const Operator& op, c10::DispatchKeySet, Stack* stack) {
    static const Substitutes substitutes{
        alias_on_cpu, [](const at::Generator& generator) { return cpu_generator(draw(generator)); }};
    static const Placement place = new_tensor;
    check_launches();
    if (ascendgraphAnyCapture()) {
        void* stream = c10_npu::getCurrentNPUStream().stream(false);
        if (ascendgraphIsCapturing(stream)) {
            record(op, *stack, stream);
            return;
        }
    }
    run(op, *stack, substitutes, place);
}

// For operators that PyTorch composes of others: the composition, whose parts come back to the device one by
// one.
void composed(const Operator& op, c10::DispatchKeySet, Stack* stack) {
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::AutogradCPU), stack);
}

// For operators that draw random numbers without taking a generator: PyTorch's kernel is made of operators
// that take one, and so draw from the device's.
void drawn(const Operator& op, c10::DispatchKeySet, Stack* stack) {
    op.callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd, *stack);
}

// The one such operator whose CPU kernel every device has a kernel of its own for.
std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p,
                                                  std::optional<bool> train) {
    if (!train.value_or(true)) return {input.clone(), at::ones_like(input, at::kBool)};
    at::Tensor mask = at::empty_like(input, at::kBool).bernoulli_(1 - p);
    return {input.mul(mask).mul_(p == 1 ? 0 : 1 / (1 - p)), mask};
}

// For operators that torch_npu differentiates in its own way, with operators of its own: PyTorch's derivative
// instead.
void differentiated(const Operator& op, c10::DispatchKeySet, Stack* stack) {
    op.callBoxedForDispatchKey(c10::DispatchKey::Autograd, *stack);
}

bool is_view(const c10::FunctionSchema& schema) {
    for (const auto& result : schema.returns()) {
        if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) return true;
    }
    return false;
}

// Copies between devices and dtypes. The only operator whose result's device is an argument of its own.
at::Tensor to_copy(const at::Tensor& self, std::optional<at::ScalarType> dtype,
                   std::optional<at::Layout> layout, std::optional<at::Device> device,
                   std::optional<bool> pin_memory, bool non_blocking,
                   std::optional<at::MemoryFormat> memory_format) {
    const auto options = self.options()
                             .dtype(dtype.value_or(self.scalar_type()))
                             .layout(layout.value_or(self.layout()))
                             .device(device.value_or(self.device()))
                             .pinned_memory(pin_memory.value_or(false));
    const auto format = memory_format.value_or(at::MemoryFormat::Preserve);
    const bool keep_strides = format == at::MemoryFormat::Preserve && self.is_non_overlapping_and_dense();
    at::Tensor result =
        keep_strides ? at::empty_strided(self.sizes(), self.strides(), options)
                     : at::empty(self.sizes(), options.memory_format(format == at::MemoryFormat::Preserve
                                                                         ? at::MemoryFormat::Contiguous
                                                                         : format));
    return result.copy_(self, non_blocking);
}

// torch_npu's own kernels for allocation, views of storage and synchronisation are right on the host runtime,
// as are its kernels for operators that PyTorch has no implementation of.
bool is_kept(const std::string& name) {
    static const std::unordered_set<std::string> kept{
        "aten::empty",         "aten::empty_strided",
        "aten::empty_like",    "aten::new_empty_strided",
        "aten::set_",          "aten::is_set_to",
        "aten::resize_",       "aten::_reshape_alias",
        "aten::unfold",        "aten::_local_scalar_dense",
        "aten::is_pinned",     "aten::_pin_memory",
        "aten::record_stream", "aten::_copy_from_and_resize",
    };
    return kept.count(name) != 0;
}

struct Libraries {
    torch::Library cpu{torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__};
    torch::Library backend{torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__};
    torch::Library autograd{torch::Library::IMPL, "aten", c10::DispatchKey::AutogradPrivateUse1, __FILE__,
                            __LINE__};

    Libraries() {
        using c10::DispatchKey;
        register_fused_cells(cpu);
        for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
            if (name.name.rfind("aten::", 0) != 0 || is_kept(name.name)) continue;
            const auto found = c10::Dispatcher::singleton().findSchema(name);
            if (!found.has_value()) continue;
            const Operator& op = *found;
            const std::string full = toString(name);
            if (name.name == "aten::_to_copy" && name.overload_name.empty()) {
                backend.impl(full.c_str(), &to_copy);
                continue;
            }
            if (name.name == "aten::native_dropout" && name.overload_name.empty()) {
                backend.impl(full.c_str(), &native_dropout);
                autograd.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<differentiated>());
                continue;
            }
            const bool cpu_kernel = op.hasKernelForDispatchKey(DispatchKey::CPU);
            const bool on_every_backend =
                op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
                op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional);
            // Composed of other operators on the CPU, and so to be composed of them here.
            const bool composite =
                !cpu_kernel && op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd);
            const bool backend_kernel = op.hasKernelForDispatchKey(DispatchKey::PrivateUse1);
            const bool autograd_kernel = op.hasKernelForDispatchKey(DispatchKey::AutogradPrivateUse1);
            if (composite && (backend_kernel || autograd_kernel)) {
                autograd.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<composed>());
            } else if (autograd_kernel && op.hasKernelForDispatchKey(DispatchKey::Autograd)) {
                autograd.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<differentiated>());
            }
            // Views, also those that change a tensor's own sizes and strides, touch no memory.
            if (is_view(op.schema()) || op.hasTag(at::Tag::inplace_view)) continue;
            if (backend_kernel && !cpu_kernel &&
                op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) &&
                op.hasTag(at::Tag::nondeterministic_seeded)) {
                backend.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<drawn>());
            } else if (composite) {
                if (backend_kernel)
                    backend.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<composed>());
            } else if (cpu_kernel || (backend_kernel && on_every_backend)) {
                backend.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<boxed_kernel>());
            }
        }
    }
};

const Libraries libraries;

}  // namespace
}  // namespace ascend_graph::host
