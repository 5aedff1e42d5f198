// Classes that execute a node of a graph themselves (EagerExecuteOp), registered by REG_AUTO_MAPPING_OP.
//
// TorchAir writes such classes for operators of PyTorch that it has no converter for, and compiles them while
// it converts.
#ifndef ASCEND_GRAPH_GRAPH_CUSTOM_OP_H
#define ASCEND_GRAPH_GRAPH_CUSTOM_OP_H

#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

// GE's headers next to this one come first, each before those that need it: torch_npu's wheel has some of
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

// Shapes and dtypes before a node runs. The host's graphs with such operators are dynamic: what is inferred
// is held against what Execute has made.
class ShapeInferOp : virtual public BaseCustomOp {
  public:
    virtual graphStatus InferShape(gert::InferShapeContext* context) = 0;
    virtual graphStatus InferDataType(gert::InferDataTypeContext* context) = 0;
};

}  // namespace ge

namespace ascend_graph::host {

// Whether a shape is of a kind that may have unknown sizes, or an unknown rank.
inline bool is_of(const gert::Shape& actual, const gert::Shape& kind) {
    const size_t rank = kind.GetDimNum();
    if (rank == 1 && kind.GetDim(0) == ge::UNKNOWN_DIM_NUM) return true;
    if (rank != actual.GetDimNum()) return false;
    for (size_t axis = 0; axis < rank; ++axis) {
        if (kind.GetDim(axis) != ge::UNKNOWN_DIM && kind.GetDim(axis) != actual.GetDim(axis)) return false;
    }
    return true;
}

inline std::string text_of(const gert::Shape& shape) {
    std::string text = "[";
    for (size_t axis = 0; axis < shape.GetDimNum(); ++axis)
        text += (axis == 0 ? "" : ", ") + std::to_string(shape.GetDim(axis));
    return text + "]";
}

inline gert::Tensor custom_tensor(const Tensor& tensor) {
    gert::StorageShape shape;
    for (int32_t axis = 0; axis < tensor.rank; ++axis) {
        shape.MutableOriginShape().AppendDim(tensor.sizes[axis]);
        shape.MutableStorageShape().AppendDim(tensor.sizes[axis]);
    }
    return {shape, {}, gert::kOnDeviceHbm, static_cast<ge::DataType>(tensor.dtype), tensor.data};
}

// What the class infers for the outputs that Execute has made; an error where GE would have planned memory
// for another shape or dtype.
inline void confirm_inferred(ge::ShapeInferOp& object, gert::ComputeNodeInfo& node,
                             const std::map<size_t, gert::Tensor>& made) {
    const size_t count = made.empty() ? 0 : made.rbegin()->first + 1;
    for (size_t index = 0; index < count; ++index) {
        node.outputs.begin_parameter(1);
        node.outputs.add({{}, {}, gert::kOnDeviceHbm, ge::DT_UNDEFINED, nullptr});
    }
    gert::InferShapeContext shapes(node);
    gert::InferDataTypeContext dtypes(node);
    const auto succeed = [](const char* function, ge::graphStatus status) {
        if (status == ge::GRAPH_SUCCESS) return;
        throw std::invalid_argument(std::string(function) + " returned " + std::to_string(status));
    };
    succeed("InferShape", object.InferShape(&shapes));
    succeed("InferDataType", object.InferDataType(&dtypes));
    for (const auto& [index, output] : made) {
        const gert::Shape& inferred = *shapes.GetOutputShape(index);
        const gert::Shape& actual = output.GetOriginShape();
        if (!is_of(actual, inferred))
            throw std::invalid_argument("InferShape says " + text_of(inferred) + " for output " +
                                        std::to_string(index) + ", Execute made " + text_of(actual));
        if (dtypes.GetOutputDataType(index) != output.GetDataType())
            throw std::invalid_argument("InferDataType says dtype " +
                                        std::to_string(dtypes.GetOutputDataType(index)) + " for output " +
                                        std::to_string(index) + ", Execute made " +
                                        std::to_string(output.GetDataType()));
    }
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
        if (status != ge::GRAPH_SUCCESS) return failed("Execute returned " + std::to_string(status));
        if constexpr (std::is_base_of_v<ge::ShapeInferOp, Class>)
            confirm_inferred(object, node, context.outputs());
        return 0;
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
