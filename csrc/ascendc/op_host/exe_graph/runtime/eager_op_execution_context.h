// gert::EagerOpExecutionContext: what a class that executes a node itself is given: inputs, attrs, the
// stream, and memory for outputs.
#ifndef ASCEND_GRAPH_GERT_EAGER_OP_EXECUTION_CONTEXT_H
#define ASCEND_GRAPH_GERT_EAGER_OP_EXECUTION_CONTEXT_H

#include <map>

#include "ascend_graph/custom_operator.h"
#include "exe_graph/runtime/extended_kernel_context.h"

namespace gert {

class EagerOpExecutionContext : public ExtendedKernelContext {
  public:
    EagerOpExecutionContext(ComputeNodeInfo& node, const ascend_graph::host::CustomCall& call)
        : ExtendedKernelContext(node), call_(call) {}

    // Null for an input that is not there.
    const Tensor* GetInputTensor(size_t index) const { return node_.inputs.at(index); }
    const Tensor* GetRequiredInputTensor(size_t ir_index) const { return dynamic_input(ir_index, 0); }
    const Tensor* GetOptionalInputTensor(size_t ir_index) const { return dynamic_input(ir_index, 0); }
    const Tensor* GetDynamicInputTensor(size_t ir_index, size_t relative) const {
        return dynamic_input(ir_index, relative);
    }
    // Null for an output without memory yet.
    const Tensor* GetOutputTensor(size_t index) const {
        const auto found = outputs_.find(index);
        return found == outputs_.end() ? nullptr : &found->second;
    }
    // Null where there is no memory, or no such dtype.
    Tensor* MallocOutputTensor(size_t index, const StorageShape& shape, const StorageFormat& format,
                               ge::DataType dtype) {
        const Shape& sizes = shape.GetStorageShape();
        const int64_t none = 0;
        const int64_t* first = sizes.GetDimNum() == 0 ? &none : &sizes[0];
        void* data = call_.allocate(call_.context, index, dtype, first, sizes.GetDimNum());
        if (data == nullptr && sizes.GetShapeSize() != 0) return nullptr;
        return &(outputs_[index] = Tensor(shape, format, kOnDeviceHbm, dtype, data));
    }
    Tensor* MakeOutputRefInput(size_t output_index, size_t input_index) const {
        const Tensor* input = node_.inputs.at(input_index);
        if (input == nullptr) return nullptr;
        call_.refer(call_.context, output_index, input_index);
        return &(outputs_[output_index] = *input);
    }
    void* MallocWorkSpace(size_t bytes) { return call_.workspace(call_.context, bytes); }
    void* GetStream() const { return call_.stream; }

    // The outputs that have been made so far, by their index.
    const std::map<size_t, Tensor>& outputs() const { return outputs_; }

  private:
    const ascend_graph::host::CustomCall& call_;
    mutable std::map<size_t, Tensor> outputs_;
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_EAGER_OP_EXECUTION_CONTEXT_H
