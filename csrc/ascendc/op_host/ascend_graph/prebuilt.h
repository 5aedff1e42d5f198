// The functions of an operator whose package CANN built: they ask the package's own libraries. Included by
// the definition that the host runtime writes for such an operator.
#ifndef ASCEND_GRAPH_PREBUILT_H
#define ASCEND_GRAPH_PREBUILT_H

#include <dlfcn.h>

#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "ascend_graph/aclnn_objects.h"
#include "ascend_graph/host_runtime.h"
#include "ascend_graph/log.h"
#include "ascend_graph/package_functions.h"
#include "register/op_def_registry.h"

namespace ascend_graph::host {

// A call's values as the host runtime passes them, made of what an author's function would read.
class PrebuiltCall {
  public:
    explicit PrebuiltCall(const gert::ComputeNodeInfo& node) : type_(node.GetNodeType()) {
        inputs_ = node.inputs.parameters.size();
        add_side(node.inputs);
        attrs_ = node.attrs.GetAttrNum();
        for (size_t i = 0; i < attrs_; ++i) add_attr(node.attrs, i);
    }
    void add_outputs(const gert::NodeTensors& outputs) { add_side(outputs); }
    // The words that an InferShape function writes for an output.
    int64_t* add_answer() {
        answers_.emplace_back(kAnswerWords);
        Tensor& tensor = tensors_.emplace_back(1).front();
        tensor.data = answers_.back().data();
        add_value(ValueKind::kTensor, 1).tensors = &tensor;
        return answers_.back().data();
    }

    const char* type() const { return type_.c_str(); }
    size_t inputs() const { return inputs_; }
    size_t attrs() const { return attrs_; }
    const Value* values() const { return values_.data(); }
    size_t count() const { return values_.size(); }

  private:
    static constexpr size_t kAnswerWords = 2 + 25;  // dtype, rank and sizes

    Value& add_value(ValueKind kind, size_t count) {
        Value& value = values_.emplace_back();
        value.kind = kind;
        value.count = count;
        return value;
    }
    void add_side(const gert::NodeTensors& side) {
        for (const gert::AnchorInstanceInfo& parameter : side.parameters) {
            const size_t count = parameter.GetInstanceNum();
            if (count == 0) {
                add_value(ValueKind::kAbsent, 0);
                continue;
            }
            std::vector<Tensor>& made = tensors_.emplace_back(count);
            for (size_t i = 0; i < count; ++i) describe(*side.at(parameter.GetInstanceStart() + i), made[i]);
            add_value(count == 1 ? ValueKind::kTensor : ValueKind::kTensorList, count).tensors = made.data();
        }
    }
    void describe(const gert::Tensor& given, Tensor& tensor) {
        tensor.data = const_cast<void*>(given.GetAddr());
        tensor.dtype = given.GetDataType();
        tensor.format = given.GetStorageFormat();
        tensor.sizes = sizes_of(given.GetOriginShape(), tensor.rank);
        if (in_blocks(tensor.format)) tensor.kept = sizes_of(given.GetStorageShape(), tensor.kept_rank);
    }
    const int64_t* sizes_of(const gert::Shape& shape, int32_t& rank) {
        std::vector<int64_t>& sizes = sizes_.emplace_back();
        for (size_t axis = 0; axis < shape.GetDimNum(); ++axis) sizes.push_back(shape[axis]);
        rank = static_cast<int32_t>(sizes.size());
        return sizes.data();
    }
    void add_attr(const gert::RuntimeAttrs& attrs, size_t i) {
        if (const int64_t* integer = attrs.GetInt(i))
            add_value(ValueKind::kInt, 0).i = *integer;
        else if (const float* number = attrs.GetFloat(i))
            add_value(ValueKind::kFloat, 0).f = *number;
        else if (const bool* flag = attrs.GetBool(i))
            add_value(ValueKind::kBool, 0).b = *flag;
        else if (const char* text = attrs.GetStr(i))
            add_value(ValueKind::kString, 0).s = text;
        else if (const auto* ints = attrs.GetListInt(i))
            add_value(ValueKind::kIntList, ints->GetSize()).ints = ints->GetData();
        else if (const auto* floats = attrs.GetListFloat(i))
            add_value(ValueKind::kFloatList, floats->GetSize()).floats = floats->GetData();
        else if (const auto* bools = attrs.GetListBool(i))
            add_value(ValueKind::kBoolList, bools->GetSize()).bools = bools->GetData();
        else
            add_value(ValueKind::kAbsent, 0);
    }

    std::string type_;
    size_t inputs_ = 0, attrs_ = 0;
    std::vector<Value> values_;
    std::deque<std::vector<Tensor>> tensors_;
    std::deque<std::vector<int64_t>> sizes_, answers_;
};

// A function of libexe_graph.so, which lies next to libopapi.so; null where it does not load.
inline void* prebuilt_entry(const char* name) {
    static void* const library = [] {
        Dl_info info{};
        dladdr(reinterpret_cast<const void*>(&ascendgraphFindKernel), &info);
        const auto path = std::filesystem::canonical(info.dli_fname).parent_path() / "libexe_graph.so";
        return dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    }();
    return library == nullptr ? nullptr : dlsym(library, name);
}

inline ge::graphStatus prebuilt_failure() {
    log_text(DLOG_ERROR, ascendgraphRecentError());
    return ge::GRAPH_FAILED;
}

inline ge::graphStatus tile_prebuilt(gert::TilingContext* context, const char* library) {
    const auto tile =
        reinterpret_cast<decltype(&ascendgraphTilePackage)>(prebuilt_entry("ascendgraphTilePackage"));
    if (tile == nullptr) return prebuilt_failure();
    const gert::ComputeNodeInfo& node = *context->GetComputeNodeInfo();
    PrebuiltCall call(node);
    call.add_outputs(node.outputs);
    PackageTiling tiling;
    tiling.data = context->GetRawTilingData()->GetData();
    tiling.capacity = context->GetRawTilingData()->GetCapacity();
    if (tile(library, call.type(), call.inputs(), call.attrs(), call.values(), call.count(), &tiling) != 0)
        return prebuilt_failure();
    context->GetRawTilingData()->SetDataSize(tiling.size);
    context->SetTilingKey(tiling.key);
    context->SetBlockDim(tiling.blocks);
    context->SetAicpuBlockDim(tiling.aicpu_blocks);
    context->SetScheduleMode(tiling.schedule_mode);
    context->SetLocalMemorySize(tiling.local_memory);
    context->SetTilingCond(tiling.condition);
    context->SetNeedAtomic(tiling.zeroes_outputs);
    size_t* const sizes = context->GetWorkspaceSizes(tiling.workspace_count);
    for (size_t i = 0; i < tiling.workspace_count; ++i) sizes[i] = tiling.workspaces[i];
    return ge::GRAPH_SUCCESS;
}

// Shapes and dtypes of all outputs; each of the two functions takes its own part.
template <typename Take>
ge::graphStatus infer_prebuilt(const gert::ComputeNodeInfo& node, const char* library, Take take) {
    const auto infer =
        reinterpret_cast<decltype(&ascendgraphInferPackage)>(prebuilt_entry("ascendgraphInferPackage"));
    if (infer == nullptr) return prebuilt_failure();
    PrebuiltCall call(node);
    std::vector<const int64_t*> answers;
    for (size_t i = 0; i < node.GetOutputsNum(); ++i) answers.push_back(call.add_answer());
    if (infer(library, call.type(), call.inputs(), call.attrs(), call.values(), call.count()) != 0)
        return prebuilt_failure();
    for (size_t i = 0; i < answers.size(); ++i) take(i, answers[i]);
    return ge::GRAPH_SUCCESS;
}

inline ge::graphStatus infer_shape_prebuilt(gert::InferShapeContext* context, const char* library) {
    return infer_prebuilt(*context->GetComputeNodeInfo(), library, [&](size_t i, const int64_t* answer) {
        gert::Shape& shape = *context->GetOutputShape(i);
        shape = gert::Shape();
        for (int64_t axis = 0; axis < answer[1]; ++axis) shape.AppendDim(answer[2 + axis]);
    });
}

inline ge::graphStatus infer_dtype_prebuilt(gert::InferDataTypeContext* context, const char* library) {
    return infer_prebuilt(*context->GetComputeNodeInfo(), library, [&](size_t i, const int64_t* answer) {
        context->SetOutputDataType(i, static_cast<ge::DataType>(answer[0]));
    });
}

}  // namespace ascend_graph::host

#endif  // ASCEND_GRAPH_PREBUILT_H
