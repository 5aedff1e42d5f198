// gert::InferDataTypeContext: what an InferDataType function reads and writes.
#ifndef ASCEND_GRAPH_GERT_INFER_DATATYPE_CONTEXT_H
#define ASCEND_GRAPH_GERT_INFER_DATATYPE_CONTEXT_H

#include "exe_graph/runtime/extended_kernel_context.h"

namespace gert {

class InferDataTypeContext : public ExtendedKernelContext {
  public:
    using ExtendedKernelContext::ExtendedKernelContext;

    ge::DataType GetInputDataType(size_t index) const { return dtype_of(node_.inputs.at(index)); }
    ge::DataType GetOptionalInputDataType(size_t ir_index) const {
        return GetDynamicInputDataType(ir_index, 0);
    }
    ge::DataType GetRequiredInputDataType(size_t ir_index) const {
        return GetDynamicInputDataType(ir_index, 0);
    }
    ge::DataType GetDynamicInputDataType(size_t ir_index, size_t relative) const {
        return dtype_of(dynamic_input(ir_index, relative));
    }
    ge::DataType GetOutputDataType(size_t index) const { return dtype_of(node_.outputs.at(index)); }
    ge::graphStatus SetOutputDataType(size_t index, ge::DataType dtype) {
        Tensor* tensor = node_.outputs.at(index);
        if (tensor == nullptr) return ge::GRAPH_FAILED;
        tensor->SetDataType(dtype);
        return ge::GRAPH_SUCCESS;
    }

  private:
    static ge::DataType dtype_of(const Tensor* tensor) {
        return tensor == nullptr ? ge::DT_UNDEFINED : tensor->GetDataType();
    }
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_INFER_DATATYPE_CONTEXT_H
