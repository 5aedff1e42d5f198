// ATen operators on `npu` tensors: one boxed kernel that lets PyTorch's CPU kernels work on device memory.
//
// Device memory is host memory, so the CPU kernels can read and write it in place. The boxed kernel shows
// every device tensor among the arguments as a CPU tensor over the same memory, calls the operator again, and
// gives results that are not arguments device memory of their own. It replaces torch_npu's kernels, which
// would ask CANN's operator library for work that nobody here can do; operators in other namespaces (npu::, a
// user's own) are not touched.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/Exceptions.h>
#include <torch/library.h>

#include <string>
#include <unordered_set>

#include "ascend_graph/host_runtime.h"
#include "fused_cells.h"
#include "tensors.h"
#include "torch_npu/csrc/core/npu/NPUStream.h"

namespace ascend_graph::host {
namespace {

constexpr auto kDevice = c10::DeviceType::PrivateUse1;
using Operator = c10::OperatorHandle;
using Stack = torch::jit::Stack;

// A device tensor and the CPU tensor that stands for it during a call.
struct Alias {
    at::Tensor device;
    at::Tensor cpu;
};
using Aliases = c10::SmallVector<Alias, 8>;

// Random numbers: a device generator has a seed and a counter; the CPU generator beside it is seeded anew
// whenever the counter is at its start, so that seeding the device generator makes its sequence start again.
at::Generator cpu_generator(at::Generator device) {
    static std::mutex mutex;
    static std::unordered_map<c10::GeneratorImpl*, at::Generator> generators;
    std::lock_guard<std::mutex> lock(mutex);
    std::lock_guard<std::mutex> device_lock(device.mutex());
    auto& generator = generators[device.unsafeGetGeneratorImpl()];
    const uint64_t offset = device.get_offset();
    if (!generator.defined()) generator = at::globalContext().defaultGenerator(c10::kCPU).clone();
    if (offset == 0) generator.set_current_seed(device.current_seed());
    device.set_offset(offset + 4);  // the philox counter counts in steps of four
    return generator;
}

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

class Arguments {
  public:
    // Replaces device tensors, devices and generators in the operator's arguments by their CPU counterparts.
    Arguments(const Operator& op, Stack& stack, const std::function<at::Tensor(const at::Tensor&)>& view)
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
                    if (element.has_value())
                        list.set(j, std::optional<at::Tensor>(replace(*element, written)));
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

    bool on_device() const { return on_device_; }
    c10::Device device() const { return device_; }
    const Aliases& written() const { return written_; }

    // The device tensor that `result` stands for; undefined where it is a new tensor.
    at::Tensor original(const at::Tensor& result) const {
        for (const Alias& alias : aliases_) {
            if (alias.cpu.is_same(result)) return alias.device;
        }
        return {};
    }

  private:
    static bool is_generator(const c10::Argument& argument) {
        const auto* optional = argument.type()->castRaw<c10::OptionalType>();
        return optional != nullptr && optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
    }

    void find_targets(const c10::IValue& value) {
        const auto add = [this](const at::Tensor& t) {
            if (t.defined() && t.device().type() == kDevice) targets_.push_back(t);
        };
        if (value.isTensor()) add(value.toTensor());
        if (value.isTensorList()) {
            for (const at::Tensor& t : value.toTensorVector()) add(t);
        }
    }

    at::Tensor replace(const at::Tensor& t, bool written) {
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

    const std::function<at::Tensor(const at::Tensor&)>& view_;
    c10::SmallVector<at::Tensor, 2> targets_;
    Aliases aliases_;
    Aliases written_;
    c10::Device device_;
    bool on_device_ = false;
    c10::IValue* generator_ = nullptr;
};

at::Tensor new_device_tensor(const at::Tensor& like, c10::Device device) {
    const auto options = like.options().device(device).pinned_memory(false);
    return like.is_non_overlapping_and_dense() ? at::empty_strided(like.sizes(), like.strides(), options)
                                               : at::empty(like.sizes(), options);
}

void copy_memory(const at::Tensor& device, const at::Tensor& cpu) {
    if (cpu.numel() == 0) return;
    if (device.strides() == cpu.strides() && cpu.is_non_overlapping_and_dense()) {
        std::memcpy(device.data_ptr(), cpu.data_ptr(), cpu.nbytes());
    } else {
        alias_on_cpu(device).copy_(cpu);
    }
}

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

// An argument that the CPU kernel resized (`out=`) has new memory: give the device tensor the same shape and
// contents.
void settle_written(const Arguments& arguments) {
    for (const Alias& alias : arguments.written()) {
        const bool moved = alias.cpu.numel() != 0 && alias.device.numel() != 0 &&
                           alias.cpu.data_ptr() != alias.device.data_ptr();
        if (alias.cpu.sizes() == alias.device.sizes() && !moved) continue;
        alias.device.resize_(alias.cpu.sizes());
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
    for (auto& value : torch::jit::last(stack, op.schema().arguments().size())) {
        auto& argument = const_cast<c10::IValue&>(value);
        if (argument.isTensor()) {
            argument = replace(argument.toTensor());
        } else if (argument.isTensorList()) {
            auto list = argument.toTensorList().copy();
            for (size_t i = 0; i < list.size(); ++i) list.set(i, replace(list.get(i)));
            argument = list;
        }
    }
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

// What an exception says; an operator that is written in Python raises Python's.
std::string text_of(std::exception& error) {
    if (auto* raised = dynamic_cast<python_error*>(&error)) raised->persist();
    if (auto* raised = dynamic_cast<c10::Error*>(&error)) return raised->what_without_backtrace();
    return error.what();
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

void run(const Operator& op, Stack& stack) {
    static const std::function<at::Tensor(const at::Tensor&)> view = alias_on_cpu;
    const Arguments arguments(op, stack, view);
    call_on_cpu(op, stack, !arguments.written().empty());
    settle_written(arguments);
    if (!arguments.on_device()) return;
    map_results(op, stack, [&](const at::Tensor& result) {
        if (!result.defined() || result.device().type() != c10::kCPU) return result;
        at::Tensor original = arguments.original(result);
        if (original.defined()) return original;
        at::Tensor placed = new_device_tensor(result, arguments.device());
        copy_memory(placed, result);
        return placed;
    });
}

// While the stream captures nothing may run: the operator's meta kernel gives the results' shapes, and the
// work is recorded.
void record(const Operator& op, Stack& stack, void* stream) {
    static const std::function<at::Tensor(const at::Tensor&)> view = [](const at::Tensor& t) {
        return at::empty_strided(t.sizes(), t.strides(), t.options().device(c10::kMeta));
    };
    Stack work(torch::jit::last(stack, op.schema().arguments().size()).vec());
    const Arguments arguments(op, stack, view);
    for (auto& value : torch::jit::last(stack, op.schema().arguments().size())) {
        if (value.isDevice()) const_cast<c10::IValue&>(value) = c10::Device(c10::kMeta);
    }
    op.callBoxed(stack);
    std::vector<at::Tensor> outputs;
    map_results(op, stack, [&](const at::Tensor& result) {
        at::Tensor original = arguments.original(result);
        if (!original.defined() && result.defined()) original = new_device_tensor(result, arguments.device());
        outputs.push_back(original);
        return original;
    });

    struct Work {
        Operator op;
        Stack arguments;
        std::vector<at::Tensor> outputs;
    };
    auto* state = new Work{op, std::move(work), std::move(outputs)};
    const int error = ascendgraphEnqueue(
        stream, op.operator_name().name.c_str(),
        [](void* p) {
            auto& self = *static_cast<Work*>(p);
            try {
                at::NoGradGuard no_grad;
                Stack stack = self.arguments;
                run(self.op, stack);
                size_t next = 0;
                map_results(self.op, stack, [&](const at::Tensor& result) {
                    const at::Tensor& output = self.outputs[next++];
                    // Statistics that a CPU kernel does not compute (batch norm in evaluation) are empty.
                    const bool computed = output.defined() && (result.numel() != 0 || output.numel() == 0);
                    if (computed && !output.is_same(result)) output.copy_(result);
                    return result;
                });
                return 0;
            } catch (std::exception& e) {
                return ascendgraphFail(500001,
                                       (toString(self.op.operator_name()) + ": " + text_of(e)).c_str());
            }
        },
        state, [](void* p) { delete static_cast<Work*>(p); });
    TORCH_CHECK(error == 0, ascendgraphRecentError());
}

// A kernel launched before this operator has failed: its results must not be used.
void check_launches() {
    const int error = ascendgraphReportKernelFailure();
    TORCH_CHECK(error == 0, "ACL error ", error, ": ", ascendgraphRecentError());
}

void boxed_kernel(const Operator& op, c10::DispatchKeySet, Stack* stack) {
    check_launches();
    if (ascendgraphAnyCapture()) {
        void* stream = c10_npu::getCurrentNPUStream().stream(false);
        if (ascendgraphIsCapturing(stream)) {
            record(op, *stack, stream);
            return;
        }
    }
    run(op, *stack);
}

// For operators that PyTorch composes of others: the composition, whose parts come back to the device one by
// one.
void composed(const Operator& op, c10::DispatchKeySet, Stack* stack) {
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::AutogradCPU), stack);
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
            if (composite) {
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
