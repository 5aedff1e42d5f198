#include "capture.h"

#include <string>

#include "ascend_graph/host_runtime.h"
#include "aten.h"

namespace ascend_graph::host {

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

}  // namespace ascend_graph::host
