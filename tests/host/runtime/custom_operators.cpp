// Operators that execute their nodes themselves, as authors write them with GE's header for custom operators.
#include <cstring>
#include <stdexcept>
#include <string>

#include "graph/custom_op.h"
#include "graph/operator_reg.h"

namespace ge {

// y = scale * (the sum of the tensors) + shifts[0], and of offset where it is there.
REG_OP(WeightedSum)
    .DYNAMIC_INPUT(x, TensorType({DT_FLOAT}))
    .OPTIONAL_INPUT(offset, TensorType({DT_FLOAT}))
    .REQUIRED_ATTR(N, Int)
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .ATTR(scale, Float, 2.0)
    .ATTR(shifts, ListInt, {10, 20})
    .ATTR(mode, String, "plain")
    .OP_END_FACTORY_REG(WeightedSum);

class WeightedSum : public EagerExecuteOp, public ShapeInferOp {
  public:
    graphStatus Execute(gert::EagerOpExecutionContext* context) override {
        const gert::Tensor* first = context->GetDynamicInputTensor(0, 0);
        if (first == nullptr || first->GetDataType() != DT_FLOAT) return GRAPH_FAILED;
        const size_t count = first->GetShapeSize();
        auto* sum = static_cast<float*>(context->MallocWorkSpace(first->GetSize()));
        std::memset(sum, 0, first->GetSize());
        for (size_t i = 0; const gert::Tensor* x = context->GetDynamicInputTensor(0, i); ++i)
            for (size_t j = 0; j < count; ++j) sum[j] += static_cast<const float*>(x->GetAddr())[j];
        const gert::Tensor* offset = context->GetOptionalInputTensor(1);
        gert::Tensor* y =
            context->MallocOutputTensor(0, first->GetShape(), first->GetFormat(), first->GetDataType());
        if (y == nullptr || context->GetOutputTensor(0) != y) return GRAPH_FAILED;
        const auto* attrs = context->GetAttrs();
        if (std::strcmp(attrs->GetStr(3), "plain") != 0) throw std::invalid_argument("mode must be plain");
        const auto& shifts = *attrs->GetListInt(2);
        for (size_t j = 0; j < count; ++j) {
            const float added = offset == nullptr ? 0 : static_cast<const float*>(offset->GetAddr())[j];
            static_cast<float*>(y->GetAddr())[j] =
                *attrs->GetFloat(1) * sum[j] + static_cast<float>(shifts.GetData()[0]) + added;
        }
        return GRAPH_SUCCESS;
    }
    graphStatus InferShape(gert::InferShapeContext* context) override {
        *context->GetOutputShape(0) = *context->GetDynamicInputShape(0, 0);
        return GRAPH_SUCCESS;
    }
    graphStatus InferDataType(gert::InferDataTypeContext* context) override {
        return context->SetOutputDataType(0, context->GetDynamicInputDataType(0, 0));
    }
};
REG_AUTO_MAPPING_OP(WeightedSum);

// Infers by `what`, and executes as `x -> y` of x's shape and dtype.
REG_OP(Mistaken)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .ATTR(what, String, "")
    .OP_END_FACTORY_REG(Mistaken);

class Mistaken : public EagerExecuteOp, public ShapeInferOp {
  public:
    graphStatus Execute(gert::EagerOpExecutionContext* context) override {
        const gert::Tensor* x = context->GetInputTensor(0);
        gert::Tensor* y = context->MallocOutputTensor(0, x->GetShape(), x->GetFormat(), x->GetDataType());
        std::memcpy(const_cast<void*>(y->GetAddr()), x->GetAddr(), x->GetSize());
        return GRAPH_SUCCESS;
    }
    graphStatus InferShape(gert::InferShapeContext* context) override {
        const std::string what = context->GetAttrs()->GetStr(0);
        if (what == "fails") return GRAPH_FAILED;
        gert::Shape* y = context->GetOutputShape(0);
        *y = *context->GetInputShape(0);
        if (what == "sizes") y->SetDim(0, 7);
        if (what == "rank") y->AppendDim(1);
        if (what == "unknown sizes") y->SetDim(0, UNKNOWN_DIM);
        if (what == "unknown rank") *y = gert::Shape({UNKNOWN_DIM_NUM});
        return GRAPH_SUCCESS;
    }
    graphStatus InferDataType(gert::InferDataTypeContext* context) override {
        const std::string what = context->GetAttrs()->GetStr(0);
        if (what == "no dtype") return GRAPH_SUCCESS;
        return context->SetOutputDataType(0, what == "dtype" ? DT_FLOAT16 : context->GetInputDataType(0));
    }
};
REG_AUTO_MAPPING_OP(Mistaken);

// Adds 1 to what it is given.
REG_OP(CountUp)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(x, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(CountUp);

class CountUp : public EagerExecuteOp {
  public:
    graphStatus Execute(gert::EagerOpExecutionContext* context) override {
        const gert::Tensor* x = context->GetInputTensor(0);
        auto* numbers = static_cast<float*>(const_cast<void*>(x->GetAddr()));
        for (int64_t i = 0; i < x->GetShapeSize(); ++i) numbers[i] += 1;
        return context->MakeOutputRefInput(0, 0) == nullptr ? GRAPH_FAILED : GRAPH_SUCCESS;
    }
};
REG_AUTO_MAPPING_OP(CountUp);

REG_OP(Forgetful)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .OUTPUT(z, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(Forgetful);

class Forgetful : public EagerExecuteOp {
  public:
    graphStatus Execute(gert::EagerOpExecutionContext* context) override {
        const gert::Tensor* x = context->GetInputTensor(0);
        if (context->GetInputTensor(1) != nullptr || context->MakeOutputRefInput(1, 1) != nullptr)
            return GRAPH_FAILED;
        if (x->GetShapeSize() == 3) return GRAPH_PARAM_INVALID;
        context->MallocOutputTensor(1, x->GetShape(), x->GetFormat(), x->GetDataType());
        return GRAPH_SUCCESS;
    }
};
REG_AUTO_MAPPING_OP(Forgetful);

}  // namespace ge
