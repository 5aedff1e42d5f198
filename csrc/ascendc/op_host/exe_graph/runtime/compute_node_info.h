// What is known of a node before it runs: the dtype and format of its tensors, and how many each parameter
// has.
#ifndef ASCEND_GRAPH_GERT_COMPUTE_NODE_INFO_H
#define ASCEND_GRAPH_GERT_COMPUTE_NODE_INFO_H

#include <deque>
#include <string>
#include <vector>

#include "exe_graph/runtime/runtime_attrs.h"
#include "exe_graph/runtime/tensor.h"

namespace gert {

// How many tensors one parameter of the definition has in this node, and the first of them among all.
class AnchorInstanceInfo {
  public:
    AnchorInstanceInfo() = default;
    AnchorInstanceInfo(size_t start, size_t count) : start_(start), count_(count) {}
    size_t GetInstanceNum() const { return count_; }
    size_t GetInstanceStart() const { return start_; }

  private:
    size_t start_ = 0;
    size_t count_ = 0;
};

class CompileTimeTensorDesc {
  public:
    CompileTimeTensorDesc(ge::DataType dtype, StorageFormat format) : dtype_(dtype), format_(format) {}
    ge::DataType GetDataType() const { return dtype_; }
    const StorageFormat& GetFormat() const { return format_; }
    ge::Format GetOriginFormat() const { return format_.GetOriginFormat(); }
    ge::Format GetStorageFormat() const { return format_.GetStorageFormat(); }

  private:
    ge::DataType dtype_;
    StorageFormat format_;
};

// The tensors of one side of a node, and the parameters they belong to.
struct NodeTensors {
    std::vector<AnchorInstanceInfo> parameters;
    std::deque<Tensor> tensors;
    std::deque<CompileTimeTensorDesc> descriptions;

    void begin_parameter(size_t count) { parameters.emplace_back(tensors.size(), count); }
    void add(Tensor tensor) {
        descriptions.emplace_back(tensor.GetDataType(), tensor.GetFormat());
        tensors.push_back(tensor);
    }
    const Tensor* at(size_t index) const { return index < tensors.size() ? &tensors[index] : nullptr; }
    Tensor* at(size_t index) { return index < tensors.size() ? &tensors[index] : nullptr; }
    const AnchorInstanceInfo* parameter(size_t index) const {
        return index < parameters.size() ? &parameters[index] : nullptr;
    }
    const CompileTimeTensorDesc* description(size_t index) const {
        return index < descriptions.size() ? &descriptions[index] : nullptr;
    }
    // Where the `relative`-th tensor of a parameter is among all; past the end where there is none.
    size_t index_of(size_t parameter, size_t relative) const {
        if (parameter >= parameters.size() || relative >= parameters[parameter].GetInstanceNum())
            return tensors.size();
        return parameters[parameter].GetInstanceStart() + relative;
    }
};

class ComputeNodeInfo {
  public:
    ComputeNodeInfo(std::string type, std::string name) : type_(std::move(type)), name_(std::move(name)) {}

    const char* GetNodeType() const { return type_.c_str(); }
    const char* GetNodeName() const { return name_.c_str(); }
    size_t GetIrInputsNum() const { return inputs.parameters.size(); }
    size_t GetIrOutputsNum() const { return outputs.parameters.size(); }
    size_t GetInputsNum() const { return inputs.tensors.size(); }
    size_t GetOutputsNum() const { return outputs.tensors.size(); }
    const AnchorInstanceInfo* GetInputInstanceInfo(size_t index) const { return inputs.parameter(index); }
    const AnchorInstanceInfo* GetOutputInstanceInfo(size_t index) const { return outputs.parameter(index); }
    const CompileTimeTensorDesc* GetInputTdInfo(size_t index) const { return inputs.description(index); }
    const CompileTimeTensorDesc* GetOutputTdInfo(size_t index) const { return outputs.description(index); }
    const RuntimeAttrs* GetAttrs() const { return &attrs; }

    // Filled by the host runtime.
    NodeTensors inputs;
    NodeTensors outputs;
    RuntimeAttrs attrs;

  private:
    std::string type_;
    std::string name_;
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_COMPUTE_NODE_INFO_H
