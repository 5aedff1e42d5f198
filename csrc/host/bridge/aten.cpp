// ATen operators on `npu` tensors: one boxed kernel that lets PyTorch's CPU kernels work on device memory.
//
// Device memory is host memory, so the CPU kernels can read and write it in place. The boxed kernel shows
// every device tensor among the arguments as a CPU tensor over the same memory, calls the operator again, and
// gives results that are neither arguments nor views of them device memory of their own. Which operators
// have this kernel: registration.cpp.
#include "aten.h"

#include <ATen/TracerMode.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstring>
#include <optional>

#include "adaptation.h"
#include "ascend_graph/entering.h"
#include "ascend_graph/host_runtime.h"
#include "capture.h"
#include "divisions.h"
#include "random.h"
#include "tensors.h"
#include "torch_npu/csrc/core/npu/NPUFunctions.h"
#include "torch_npu/csrc/core/npu/NPUStream.h"

namespace ascend_graph::host {
namespace {

// How many operators on device tensors are under way in this thread, each called by the CPU kernel of the one
// before. A CPU kernel sees no device tensors, so one within another is rare already; without an end the
// stack is exhausted, and the process dies without a word.
class Nested {
  public:
    explicit Nested(const Operator& op) {
        TORCH_CHECK(depth_ < kDeepest, op.operator_name(), ": its CPU kernel called operators on tensors of ",
                    "the device, which called others, ", kDeepest,
                    " times; expected a CPU kernel that works ",
                    "on the CPU tensors it is given. Register such an operator for the device as well (",
                    "dispatch key PrivateUse1), or move what it reads to the CPU");
        ++depth_;
    }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    ~Nested() { --depth_; }

  private:
    static constexpr int kDeepest = 32;
    static thread_local int depth_;
};
thread_local int Nested::depth_ = 0;

// A kernel launched before this operator has failed: its results must not be used.
void check_launches() {
    const int error = ascendgraphReportKernelFailure();
    TORCH_CHECK(error == 0, "ACL error ", error, ": ", ascendgraphRecentError());
}

// An output whose values the CPU kernel wrote elsewhere, in order, and may have resized.
void settle_staged(const Alias& alias) {
    at::Tensor destination = alias.destination;
    if (alias.cpu.sizes() != alias.device.sizes()) {
        alias.device.resize_(alias.cpu.sizes());
        alias.device.unsafeGetTensorImpl()->set_sizes_and_strides(alias.cpu.sizes(), alias.cpu.strides());
        destination = alias_on_cpu(alias.device);
    }
    destination.copy_(alias.cpu);
}

// An argument that the CPU kernel resized (`out=`) has other sizes and strides, and new memory where the old
// was too small; one that it filled with conjugates to come has the bit that says so. So has the device
// tensor.
void settle_written(const Arguments& arguments) {
    for (const Alias& alias : arguments.aliases()) {
        if (!alias.written) continue;
        const at::Tensor &device = alias.device, &cpu = alias.cpu;
        if (write_blocks(device, cpu)) continue;
        if (alias.destination.defined()) {
            settle_staged(alias);
            continue;
        }
        device._set_conj(cpu.is_conj());
        device._set_neg(cpu.is_neg());
        const bool moved = cpu.storage().data() != device.storage().data();
        if (!moved && cpu.sizes() == device.sizes() && cpu.strides() == device.strides()) continue;
        if (moved) {
            const int64_t elements = static_cast<int64_t>(cpu.storage().nbytes() / cpu.itemsize());
            device.resize_({elements - device.storage_offset()});
            std::memcpy(device.storage().mutable_data(), cpu.storage().data(), elements * cpu.itemsize());
        }
        if (cpu.is_contiguous()) device.resize_(cpu.sizes());
        device.unsafeGetTensorImpl()->set_sizes_and_strides(cpu.sizes(), cpu.strides());
    }
}

// The device that all of an operator's device tensors are on, whose stream its work goes to, as in
// torch_npu's kernels; none where it has none or several, as copies between devices have.
std::optional<c10::Device> device_of_arguments(const Operator& op, const Stack& stack) {
    std::optional<c10::Device> found;
    bool one = true;
    const auto see = [&](const at::Tensor& tensor) {
        if (!tensor.defined() || tensor.device().type() != c10::kPrivateUse1) return;
        one = one && (!found || *found == tensor.device());
        found = tensor.device();
    };
    for (const c10::IValue& value : torch::jit::last(stack, op.schema().arguments().size())) {
        if (value.isTensor()) see(value.toTensor());
        if (value.isTensorList()) {
            for (const at::Tensor& tensor : value.toTensorVector()) see(tensor);
        }
    }
    return one ? found : std::nullopt;
}

// What an eager call gives: a view of an argument, or a copy in device memory.
at::Tensor on_device(const at::Tensor& result, const Arguments& arguments) {
    at::Tensor view = arguments.view(result);
    if (view.defined()) return view;
    at::Tensor placed = new_device_tensor(result, arguments.device());
    copy_to_device(placed, result);
    return placed;
}

}  // namespace

void run(const Operator& op, Stack& stack, const Substitutes& substitutes, const Placement& place) {
    const Nested nested(op);
    const Entering entering(op.operator_name().name.c_str());
    const Arguments arguments(op, stack, substitutes);
    survive_divisions();
    const uint64_t divided = divisions_by_zero();
    {
        // Autocast of the CPU is for the caller's CPU tensors, not for these.
        const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
        call_on_cpu(op, stack);
    }
    TORCH_CHECK(divisions_by_zero() == divided, op.operator_name(),
                ": an integer was divided by zero; give divisors other than 0");
    settle_written(arguments);
    if (!arguments.on_device()) return;
    map_results(op, stack, [&](const at::Tensor& result) {
        if (!result.defined() || result.device().type() != c10::kCPU) return result;
        TORCH_CHECK_NOT_IMPLEMENTED(!result.key_set().has_any(kForeignLayouts), op.operator_name(),
                                    " gives a ", layout_of(result),
                                    " tensor; devices of the host runtime hold dense tensors only: call it "
                                    "on the CPU");
        at::Tensor original = arguments.original(result);
        return original.defined() ? original : place(result, arguments);
    });
}

const char* deferral(void** stream) {
    if (!ascendgraphAnyDeferral()) return nullptr;
    void* current = c10_npu::getCurrentNPUStream().stream(false);
    if (stream != nullptr) *stream = current;
    return ascendgraphDeferral(current);
}

void boxed_kernel(const Operator& op, c10::DispatchKeySet, Stack* stack) {
    // `torch.jit.trace` does not record every operator: instead of `convolution` it records the operator that
    // PyTorch's kernel calls. It is off while a recorded operator runs.
    if (at::tracer::impl::is_dispatch_enabled() &&
        op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd)) {
        op.callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd, *stack);
        return;
    }
    static const Substitutes substitutes{
        alias_on_cpu, [](const at::Generator& generator) { return cpu_generator(draw(generator)); }};
    static const Placement place = on_device;
    check_launches();
    c10::OptionalDeviceGuard guard;
    if (c10_npu::device_count() > 1) {
        if (const auto device = device_of_arguments(op, *stack)) guard.reset_device(*device);
    }
    void* stream = nullptr;
    if (const char* why = deferral(&stream)) {
        record(op, *stack, stream, why);
    } else {
        std::optional<Kernel> kernel;
        if (ascendgraphWorkIsObserved())
            kernel.emplace(c10_npu::getCurrentNPUStream().stream(false), op.operator_name().name.c_str());
        run(op, *stack, substitutes, place);
    }
}

void fallback_kernel(const Operator& op, c10::DispatchKeySet keys, Stack* stack) {
    const char* why = deferral();
    TORCH_CHECK(why == nullptr, op.operator_name(),
                " cannot be captured: torch_npu has no kernel of it for the device and computes it on the "
                "CPU, which waits for the stream, and ",
                why, "; call it before or after, or write it with operators of the device");
    boxed_kernel(op, keys, stack);
}

}  // namespace ascend_graph::host
