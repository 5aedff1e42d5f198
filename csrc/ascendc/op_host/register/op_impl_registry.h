// The functions of an operator: tiling, shapes and dtypes, registered by IMPL_OP_OPTILING, IMPL_OP_INFERSHAPE
// and OP_ADD.
#ifndef ASCEND_GRAPH_REGISTER_OP_IMPL_REGISTRY_H
#define ASCEND_GRAPH_REGISTER_OP_IMPL_REGISTRY_H

// What CANN's header brings along, and sources rely on.
#include <functional>
#include <initializer_list>
#include <iostream>  // sources of InferShape functions take it from here
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "exe_graph/runtime/infer_datatype_context.h"
#include "exe_graph/runtime/infer_shape_context.h"
#include "exe_graph/runtime/infer_shape_range_context.h"
#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"
#include "graph/operator.h"
#include "securec.h"

namespace gert {

class OpImplKernelRegistry {
  public:
    using InferShapeKernelFunc = ge::graphStatus (*)(InferShapeContext*);
    using InferShapeRangeKernelFunc = ge::graphStatus (*)(InferShapeRangeContext*);
    using InferDataTypeKernelFunc = ge::graphStatus (*)(InferDataTypeContext*);
    using TilingKernelFunc = ge::graphStatus (*)(TilingContext*);
    using TilingParseFunc = ge::graphStatus (*)(TilingParseContext*);
};

// Where tiling functions may run; here it is always the host.
enum TilingPlacement { TILING_ON_HOST = 0, TILING_ON_AICPU = 1 };

// What the functions of one operator are.
struct OpFunctions {
    OpImplKernelRegistry::TilingKernelFunc tiling = nullptr;
    OpImplKernelRegistry::TilingParseFunc tiling_parse = nullptr;
    std::shared_ptr<void> (*make_compile_info)() = nullptr;
    OpImplKernelRegistry::InferShapeKernelFunc infer_shape = nullptr;
    OpImplKernelRegistry::InferDataTypeKernelFunc infer_dtype = nullptr;
    size_t tiling_capacity = 0;    // what the registration asked for; 0 if it did not
    std::set<size_t> data_inputs;  // inputs whose values its functions read
    // Attrs that are in no definition; its functions read their values after those of the definition.
    std::vector<std::function<void(RuntimeAttrs&)>> private_attrs;

    // By operator type. One table for the sources of a package.
    static std::map<std::string, OpFunctions>& all() {
        static std::map<std::string, OpFunctions> functions;
        return functions;
    }
};

class OpImplRegisterV2 {
  public:
    explicit OpImplRegisterV2(const char* op_type) : functions_(&OpFunctions::all()[op_type]) {}

    OpImplRegisterV2& Tiling(OpImplKernelRegistry::TilingKernelFunc function,
                             size_t most_tiling_data = 2048) {
        functions_->tiling = function;
        functions_->tiling_capacity = most_tiling_data;
        return *this;
    }
    template <typename CompileInfo>
    OpImplRegisterV2& TilingParse(OpImplKernelRegistry::TilingParseFunc function) {
        functions_->tiling_parse = function;
        functions_->make_compile_info = [] { return std::shared_ptr<void>(std::make_shared<CompileInfo>()); };
        return *this;
    }
    OpImplRegisterV2& InferShape(OpImplKernelRegistry::InferShapeKernelFunc function) {
        functions_->infer_shape = function;
        return *this;
    }
    OpImplRegisterV2& InferShapeRange(OpImplKernelRegistry::InferShapeRangeKernelFunc) { return *this; }
    OpImplRegisterV2& InferDataType(OpImplKernelRegistry::InferDataTypeKernelFunc function) {
        functions_->infer_dtype = function;
        return *this;
    }
    // Every output has the dtype of the first input; of this and InferDataType the last one holds.
    OpImplRegisterV2& InferOutDataTypeSameWithFirstInput() {
        return InferDataType([](InferDataTypeContext* context) -> ge::graphStatus {
            if (context->GetComputeNodeInputNum() == 0) return ge::GRAPH_FAILED;
            const ge::DataType dtype = context->GetInputDataType(0);
            if (dtype == ge::DT_UNDEFINED) return ge::GRAPH_FAILED;
            for (size_t i = 0; i < context->GetComputeNodeOutputNum(); ++i)
                if (context->SetOutputDataType(i, dtype) != ge::GRAPH_SUCCESS) return ge::GRAPH_FAILED;
            return ge::GRAPH_SUCCESS;
        });
    }
    OpImplRegisterV2& InputsDataDependency(std::initializer_list<int32_t> inputs) {
        functions_->data_inputs.insert(inputs.begin(), inputs.end());
        return *this;
    }
    OpImplRegisterV2& TilingInputsDataDependency(std::initializer_list<int32_t> inputs) {
        return InputsDataDependency(inputs);
    }
    OpImplRegisterV2& TilingInputsDataDependency(std::initializer_list<int32_t> inputs,
                                                 std::initializer_list<TilingPlacement>) {
        return InputsDataDependency(inputs);
    }
    OpImplRegisterV2& PrivateAttr(const char*) {
        return private_attr([](RuntimeAttrs& attrs) { attrs.add_absent(); });
    }
    OpImplRegisterV2& PrivateAttr(const char*, int64_t value) { return with_default(value); }
    OpImplRegisterV2& PrivateAttr(const char*, float value) { return with_default(value); }
    OpImplRegisterV2& PrivateAttr(const char*, bool value) { return with_default(value); }
    OpImplRegisterV2& PrivateAttr(const char*, const char* value) { return with_default(std::string(value)); }
    OpImplRegisterV2& PrivateAttr(const char*, const std::vector<int64_t>& value) { return with_list(value); }
    OpImplRegisterV2& PrivateAttr(const char*, const std::vector<float>& value) { return with_list(value); }
    // What the graph engine would ask for instead, or in addition; nothing here does.
    // The name of a kernel that is compiled before it is called; here all are compiled with the package.
    template <typename Function>
    OpImplRegisterV2& GenSimplifiedKey(Function) {
        return *this;
    }
    OpImplRegisterV2& OutputShapeDependOnCompute(std::initializer_list<int32_t>) { return *this; }

  private:
    OpImplRegisterV2& private_attr(std::function<void(RuntimeAttrs&)> add) {
        functions_->private_attrs.push_back(std::move(add));
        return *this;
    }
    template <typename T>
    OpImplRegisterV2& with_default(T value) {
        return private_attr([value](RuntimeAttrs& attrs) { attrs.add(value); });
    }
    template <typename T>
    OpImplRegisterV2& with_list(std::vector<T> values) {
        const auto kept = std::make_shared<const std::vector<T>>(std::move(values));
        return private_attr(
            [kept](RuntimeAttrs& attrs) { attrs.add(TypedContinuousVector<T>(kept->data(), kept->size())); });
    }
    OpFunctions* functions_;
};

}  // namespace gert

#define ASCEND_GRAPH_JOIN_(a, b) a##b
#define ASCEND_GRAPH_JOIN(a, b) ASCEND_GRAPH_JOIN_(a, b)
#define IMPL_OP(op_type)                                                      \
    [[maybe_unused]] static const ::gert::OpImplRegisterV2 ASCEND_GRAPH_JOIN( \
        op_impl_##op_type##_, __COUNTER__) = ::gert::OpImplRegisterV2(#op_type)
#define IMPL_OP_OPTILING(op_type) IMPL_OP(op_type)
#define IMPL_OP_INFERSHAPE(op_type) IMPL_OP(op_type)
#define DEVICE_IMPL_OP_OPTILING(op_type) IMPL_OP(op_type)

#endif  // ASCEND_GRAPH_REGISTER_OP_IMPL_REGISTRY_H
