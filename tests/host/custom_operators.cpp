// Operators that execute their nodes themselves, as authors write them with GE's header for custom operators.
#include <cstring>
#include <stdexcept>

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
    graphStatus InferShape(gert::InferShapeContext*) override { return GRAPH_FAILED; }
    graphStatus InferDataType(gert::InferDataTypeContext*) override { return GRAPH_FAILED; }
};
REG_AUTO_MAPPING_OP(WeightedSum);

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
