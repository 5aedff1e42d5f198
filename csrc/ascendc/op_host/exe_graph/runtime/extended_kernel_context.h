// gert::ExtendedKernelContext: what every function of an operator project can ask about its node.
//
// Inputs and outputs are numbered as tensors of the node, where absent optional inputs do not count and
// dynamic ones count as often as they occur; the forms with `ir_index` number them as the definition does.
#ifndef ASCEND_GRAPH_GERT_EXTENDED_KERNEL_CONTEXT_H
#define ASCEND_GRAPH_GERT_EXTENDED_KERNEL_CONTEXT_H

#include "exe_graph/runtime/compute_node_info.h"
#include "graph/ge_error_codes.h"

namespace gert {

class ExtendedKernelContext {
  public:
    explicit ExtendedKernelContext(ComputeNodeInfo& node) : node_(node) {}

    const CompileTimeTensorDesc* GetInputDesc(size_t index) const { return node_.inputs.description(index); }
    const CompileTimeTensorDesc* GetOptionalInputDesc(size_t ir_index) const {
        return GetDynamicInputDesc(ir_index, 0);
    }
    const CompileTimeTensorDesc* GetRequiredInputDesc(size_t ir_index) const {
        return GetDynamicInputDesc(ir_index, 0);
    }
    const CompileTimeTensorDesc* GetDynamicInputDesc(size_t ir_index, size_t relative) const {
        return node_.inputs.description(node_.inputs.index_of(ir_index, relative));
    }
    const CompileTimeTensorDesc* GetOutputDesc(size_t index) const {
        return node_.outputs.description(index);
    }
    const AnchorInstanceInfo* GetIrInputInstanceInfo(size_t ir_index) const {
        return node_.inputs.parameter(ir_index);
    }
    const AnchorInstanceInfo* GetIrOutputInstanceInfo(size_t ir_index) const {
        return node_.outputs.parameter(ir_index);
    }
    size_t GetComputeNodeInputNum() const { return node_.GetInputsNum(); }
    size_t GetComputeNodeOutputNum() const { return node_.GetOutputsNum(); }
    const RuntimeAttrs* GetAttrs() const { return &node_.attrs; }
    const char* GetNodeType() const { return node_.GetNodeType(); }
    const char* GetNodeName() const { return node_.GetNodeName(); }
    const ComputeNodeInfo* GetComputeNodeInfo() const { return &node_; }

  protected:
    const Tensor* dynamic_input(size_t ir_index, size_t relative) const {
        return node_.inputs.at(node_.inputs.index_of(ir_index, relative));
    }

    ComputeNodeInfo& node_;
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_EXTENDED_KERNEL_CONTEXT_H
