// Classes that execute a node of a graph themselves (EagerExecuteOp), registered by REG_AUTO_MAPPING_OP.
//
// TorchAir writes such classes for operators of PyTorch that it has no converter for, and compiles them while
// it converts.
#ifndef ASCEND_GRAPH_GRAPH_CUSTOM_OP_H
#define ASCEND_GRAPH_GRAPH_CUSTOM_OP_H

#include <exception>
#include <memory>
#include <string>

// GE's headers beside this one come first, each before those that need it: torch_npu's wheel has some of
// their names, earlier on TorchAir's command line, and the guards, which are GE's, keep those out.
// clang-format off
#include "types.h"
#include "ascend_string.h"
#include "ge_error_codes.h"
#include "tensor.h"
#include "operator.h"
#include "operator_reg.h"
// clang-format on

#include "ascend_graph/attr_values.h"
#include "ascend_graph/custom_operator.h"
#include "ascend_graph/host_runtime.h"
#include "exe_graph/runtime/eager_op_execution_context.h"
#include "exe_graph/runtime/infer_datatype_context.h"
#include "exe_graph/runtime/infer_shape_context.h"

namespace ge {

class BaseCustomOp {
  public:
    virtual ~BaseCustomOp() = default;
};

class EagerExecuteOp : virtual public BaseCustomOp {
  public:
    virtual graphStatus Execute(gert::EagerOpExecutionContext* context) = 0;
};

// Shapes and dtypes before a node runs. The host learns them from Execute instead: its graphs with such
// operators are dynamic.
class ShapeInferOp : virtual public BaseCustomOp {
  public:
    virtual graphStatus InferShape(gert::InferShapeContext* context) = 0;
    virtual graphStatus InferDataType(gert::InferDataTypeContext* context) = 0;
};

}  // namespace ge

namespace ascend_graph::host {

inline gert::Tensor custom_tensor(const Tensor& tensor) {
    gert::StorageShape shape;
    for (int32_t axis = 0; axis < tensor.rank; ++axis) {
        shape.MutableOriginShape().AppendDim(tensor.sizes[axis]);
        shape.MutableStorageShape().AppendDim(tensor.sizes[axis]);
    }
    return {shape, {}, gert::kOnDeviceHbm, static_cast<ge::DataType>(tensor.dtype), tensor.data};
}

// Runs the class's Execute on a node, of which there is one object for each, as in a graph of GE.
template <typename Class>
int execute_custom(const char* op_type, const CustomCall& call) {
    constexpr int kInner = 561000;  // ACLNN_ERR_INNER
    const auto failed = [&](const std::string& why) {
        return ascendgraphFail(kInner, (std::string(op_type) + ": " + why).c_str());
    };
    try {
        gert::ComputeNodeInfo node(op_type, op_type);
        for (size_t i = 0; i < call.input_count; ++i) {
            const Value& input = call.inputs[i];
            const size_t count = input.kind == ValueKind::kAbsent ? 0 : input.count;
            node.inputs.begin_parameter(count);
            for (size_t j = 0; j < count; ++j) node.inputs.add(custom_tensor(input.tensors[j]));
        }
        for (size_t i = 0; i < call.attr_count; ++i) {
            if (!add_value(node.attrs, call.attrs[i]))
                throw std::invalid_argument("an attr has a value of a kind that functions cannot read");
        }
        gert::EagerOpExecutionContext context(node, call);
        Class object;
        const ge::graphStatus status = static_cast<ge::EagerExecuteOp&>(object).Execute(&context);
        return status == ge::GRAPH_SUCCESS ? 0 : failed("Execute returned " + std::to_string(status));
    } catch (const std::exception& error) {
        return failed(error.what());
    }
}

struct CustomRegistration {
    CustomRegistration(const char* op_type, CustomOperator value) {
        ascendgraphRegisterCustomOperator(op_type, value);
    }
};

}  // namespace ascend_graph::host

#define REG_AUTO_MAPPING_OP(Class)                                                                      \
    [[maybe_unused]] static const ::ascend_graph::host::CustomRegistration ascend_graph_custom_##Class( \
        #Class, {[] { return ::ascend_graph::host::Prototype::find(#Class); },                          \
                 [](const ::ascend_graph::host::CustomCall& call) {                                     \
                     return ::ascend_graph::host::execute_custom<Class>(#Class, call);                  \
                 }})

#endif  // ASCEND_GRAPH_GRAPH_CUSTOM_OP_H
