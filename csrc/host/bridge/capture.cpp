#include "capture.h"

#include <string>
#include <vector>

#include "adaptation.h"
#include "ascend_graph/host_runtime.h"
#include "aten.h"
#include "errors.h"
#include "formats.h"
#include "random.h"
#include "shapes.h"
#include "tensors.h"

namespace ascend_graph::host {
namespace {

// What a capture keeps of a tensor: its address and how the operator saw it. What the caller does to the
// tensor or its storage later (t_, resize_, set_, an assignment to .data) changes neither, as on a device.
// Nor does it keep device memory from its allocator, which gives what a capture let go to later operators
// of it: torch_npu counts on that (backend="npugraphs" compares what is live with what a graph returns).
at::Tensor snapshot(const at::Tensor& t) {
    if (!t.defined() || !t.has_storage()) return t;
    const c10::Storage& storage = t.storage();
    void* data = storage.mutable_data();  // its own, if it shared memory with a lazy clone
    auto* owner = t.is_cpu() ? new c10::Storage(storage) : nullptr;
    c10::DataPtr address(data, owner, [](void* p) { delete static_cast<c10::Storage*>(p); }, t.device());
    c10::Storage fixed;
    if (auto blocks = blocks_of(t)) {
        fixed = c10::Storage(
            c10::make_intrusive<KeptStorage>(storage.nbytes(), std::move(address), std::move(*blocks)));
    } else {
        fixed = c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(address),
                             /*allocator=*/nullptr, /*resizable=*/false);
    }
    auto made = at::detail::make_tensor<c10::TensorImpl>(std::move(fixed), t.key_set(), t.dtype());
    auto* impl = made.unsafeGetTensorImpl();
    impl->set_storage_offset(t.storage_offset());
    impl->set_sizes_and_strides(t.sizes(), t.strides());
    return made;
}

at::Tensor on_meta(const at::Tensor& t) {
    at::Tensor made = at::empty_strided(t.sizes(), t.strides(), t.options().device(c10::kMeta));
    if (t.is_conj()) made._set_conj(true);
    if (t.is_neg()) made._set_neg(true);
    return made;
}

bool is_copy(const Operator& op) { return op.operator_name().name == "aten::copy_"; }

// A copy between host and device that must have ended when the call returns: not while nothing runs.
void check_copy(const Operator& op, const c10::IValue* arguments, const char* why) {
    if (!is_copy(op)) return;
    const at::Tensor &to = arguments[0].toTensor(), &from = arguments[1].toTensor();
    if (to.device().type() == from.device().type() || to.numel() == 0) return;
    TORCH_CHECK(arguments[2].toBool(), name_of(op), " from ", from.device(), " to ", to.device(), ": ", why,
                ", and a copy between host and device waits for the stream; copy before or after, or with "
                "pinned memory and non_blocking=True");
    const at::Tensor& host = to.is_cpu() ? to : from;
    TORCH_CHECK(host.is_pinned(), name_of(op), " from ", from.device(), " to ", to.device(), ": ", why,
                ", and a copy with non_blocking=True of memory that is not pinned waits for the stream all "
                "the same; use Tensor.pin_memory()");
}

// An operator's work in a captured graph.
class Work {
  public:
    Work(const Operator& op, Stack arguments) : op_(op), arguments_(std::move(arguments)) {
        substitutes_.tensor = alias_on_cpu;
        substitutes_.reads_first = true;
        substitutes_.generator = [this](const at::Generator&) { return cpu_generator(draw_); };
        place_ = [this](const at::Tensor& result, const Arguments&) { return place(result); };
    }

    void draw_from(Draw draw) { draw_ = std::move(draw); }
    void add_output(const at::Tensor& output) { outputs_.push_back(output); }

    void run() {
        check_memory();
        at::NoGradGuard no_grad;
        Stack stack = arguments_;
        next_ = 0;
        host::run(op_, stack, substitutes_, place_);
    }

    const Operator& op() const { return op_; }

  private:
    // Refuses what a device would read or write all the same: memory that its allocator has given back. A
    // snapshot of host memory owns it.
    void check_memory() {
        const uint64_t releases = ascendgraphReleases();
        if (releases == checked_) return;
        for (c10::IValue& value : arguments_) {
            map_tensors(value, [this](const at::Tensor& t) { return check_memory(t), t; });
        }
        for (const at::Tensor& t : outputs_) check_memory(t);
        checked_ = releases;
    }

    void check_memory(const at::Tensor& t) const {
        if (!t.defined() || t.is_cpu() || !t.has_storage() || t.storage().nbytes() == 0) return;
        const void* base = nullptr;
        size_t size = 0;
        const auto* data = static_cast<const char*>(t.storage().data());
        TORCH_CHECK(ascendgraphAllocationExtent(data, &base, &size) &&
                        data + t.storage().nbytes() <= static_cast<const char*>(base) + size,
                    "the memory of a tensor of shape ", t.sizes(),
                    " that the captured graph uses was released; ",
                    "keep the graph's inputs alive as long as the graph");
    }

    at::Tensor place(const at::Tensor& result) {
        const at::Tensor& output = outputs_.at(next_++);
        // Statistics that a CPU kernel does not compute (batch norm in evaluation) are empty.
        if (!output.defined() || (result.numel() == 0 && output.numel() != 0)) return result;
        TORCH_CHECK(result.sizes() == output.sizes(), "result ", next_ - 1, " has the shape ", result.sizes(),
                    "; expected ", output.sizes(),
                    ", as the capture recorded. Capture the graph again for other shapes");
        copy_to_device(output, result);
        return output;
    }

    Operator op_;
    Stack arguments_;
    Draw draw_;
    std::vector<at::Tensor> outputs_;  // of the results that are no arguments
    Substitutes substitutes_;
    Placement place_;
    uint64_t checked_ = ascendgraphReleases();  // when the memory of all of these was last known to be there
    size_t next_ = 0;
};

}  // namespace

void record(const Operator& op, Stack& stack, void* stream, const char* why) {
    const size_t count = op.schema().arguments().size();
    c10::IValue* arguments_begin = arguments_of(op, stack);
    check_copy(op, arguments_begin, why);
    Stack recorded(arguments_begin, arguments_begin + count);
    const size_t below = stack.size() - count;

    Draw drawn;
    const Substitutes substitutes{on_meta, [&op, &drawn](const at::Generator& generator) {
                                      check_captured(op);
                                      drawn = draw(generator);
                                      return c10::IValue();
                                  }};
    const Arguments arguments(op, stack, substitutes);
    arguments_begin = arguments_of(op, stack);
    for (size_t i = 0; i < count; ++i) {
        if (arguments_begin[i].isDevice()) arguments_begin[i] = c10::Device(c10::kMeta);
    }
    if (is_copy(op)) {
        // Its result is its first argument, which may be on the host.
        const at::Tensor to = recorded[0].toTensor();
        on_meta(recorded[1].toTensor()).expand(to.sizes());
        torch::jit::drop(stack, count);
        stack.emplace_back(to);
    } else if (!infer(op, stack, why)) {
        stack.resize(below);
        stack.insert(stack.end(), recorded.begin(), recorded.end());
        op.callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd, stack);
        return;
    }
    for (const Alias& alias : arguments.aliases()) {
        if (alias.written && alias.cpu.sizes() != alias.device.sizes())
            alias.device.resize_(alias.cpu.sizes());
    }

    // Snapshots of one tensor are one tensor, too.
    std::vector<std::pair<at::Tensor, at::Tensor>> taken;
    for (c10::IValue& value : recorded) {
        map_tensors(value, [&](const at::Tensor& t) {
            for (const auto& [tensor, made] : taken) {
                if (tensor.is_same(t)) return made;
            }
            // A number in host memory is read when it is recorded.
            const bool number = t.defined() && t.is_cpu() && t.dim() == 0 && !is_copy(op);
            at::Tensor kept = number ? t.clone() : snapshot(t);
            // It decides a result's dtype as Python's numbers do: float32 + 1.0 stays float32.
            if (number && t.unsafeGetTensorImpl()->is_wrapped_number())
                kept.unsafeGetTensorImpl()->set_wrapped_number(true);
            taken.emplace_back(t, std::move(kept));
            return taken.back().second;
        });
    }
    auto work = std::make_unique<Work>(op, std::move(recorded));
    work->draw_from(std::move(drawn));
    const bool in_order = has_results_in_order(op);
    map_results(op, stack, [&](const at::Tensor& result) {
        at::Tensor original = arguments.original(result);
        if (original.defined() || !result.defined()) return original;
        const bool on_host = !result.is_meta();
        at::Tensor output =
            on_host ? result : new_device_tensor(in_order ? result.contiguous() : result, arguments.device());
        work->add_output(on_host ? at::Tensor() : snapshot(output));
        return output;
    });
    const int error = ascendgraphEnqueue(
        stream, op.operator_name().name.c_str(),
        [](void* p) {
            auto& work = *static_cast<Work*>(p);
            try {
                work.run();
                return 0;
            } catch (std::exception& e) {
                return ascendgraphFail(500001, (name_of(work.op()) + ": " + text_of(e)).c_str());
            }
        },
        work.release(), [](void* p) { delete static_cast<Work*>(p); });
    TORCH_CHECK(error == 0, ascendgraphRecentError());
}

}  // namespace ascend_graph::host
