// gert::InferShapeContext: what an InferShape function reads and writes.
#ifndef ASCEND_GRAPH_GERT_INFER_SHAPE_CONTEXT_H
#define ASCEND_GRAPH_GERT_INFER_SHAPE_CONTEXT_H

#include "exe_graph/runtime/extended_kernel_context.h"

namespace gert {

class InferShapeContext : public ExtendedKernelContext {
  public:
    using ExtendedKernelContext::ExtendedKernelContext;

    const Shape* GetInputShape(size_t index) const { return shape_of(node_.inputs.at(index)); }
    const Shape* GetOptionalInputShape(size_t ir_index) const { return GetDynamicInputShape(ir_index, 0); }
    const Shape* GetRequiredInputShape(size_t ir_index) const { return GetDynamicInputShape(ir_index, 0); }
    const Shape* GetDynamicInputShape(size_t ir_index, size_t relative) const {
        return shape_of(dynamic_input(ir_index, relative));
    }
    const Tensor* GetInputTensor(size_t index) const { return node_.inputs.at(index); }
    const Tensor* GetOptionalInputTensor(size_t ir_index) const { return dynamic_input(ir_index, 0); }
    const Tensor* GetRequiredInputTensor(size_t ir_index) const { return dynamic_input(ir_index, 0); }
    const Tensor* GetDynamicInputTensor(size_t ir_index, size_t relative) const {
        return dynamic_input(ir_index, relative);
    }
    Shape* GetOutputShape(size_t index) {
        Tensor* tensor = node_.outputs.at(index);
        return tensor == nullptr ? nullptr : &tensor->MutableOriginShape();
    }

  private:
    static const Shape* shape_of(const Tensor* tensor) {
        return tensor == nullptr ? nullptr : &tensor->GetOriginShape();
    }
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_INFER_SHAPE_CONTEXT_H
