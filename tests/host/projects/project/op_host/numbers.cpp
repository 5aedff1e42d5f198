// Inputs of which the aclnn function takes the values.
#include "register/op_def_registry.h"
#include "register/op_impl_registry.h"

namespace optiling {
struct NumbersTiling {
    uint32_t count, weights, step;
};

static ge::graphStatus TileNumbers(gert::TilingContext* context) {
    const gert::Tensor* steps =
        context->GetRequiredInputTensor(4);  // by its place in the definition: shift may be absent
    NumbersTiling& tiling = *context->GetTilingData<NumbersTiling>();
    tiling.count = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    tiling.weights = context->GetInputShape(2)->GetStorageShape().GetShapeSize();
    tiling.step = steps->GetData<int64_t>()[steps->GetShapeSize() - 1];
    context->SetBlockDim(1);
    return ge::GRAPH_SUCCESS;
}
IMPL_OP_OPTILING(NumbersCustom).Tiling(TileNumbers);
}  // namespace optiling

namespace ge {
static graphStatus InferShapeNumbers(gert::InferShapeContext* context) {
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    return GRAPH_SUCCESS;
}
static graphStatus InferDataTypeNumbers(gert::InferDataTypeContext* context) {
    // For float16 it says nothing: the kernel's dtype is taken.
    if (context->GetInputDataType(0) == DT_FLOAT) context->SetOutputDataType(0, DT_FLOAT);
    return GRAPH_SUCCESS;
}
IMPL_OP_INFERSHAPE(NumbersCustom).InferShape(InferShapeNumbers).InferDataType(InferDataTypeNumbers);
}  // namespace ge

namespace ops {
class NumbersCustom : public OpDef {
  public:
    explicit NumbersCustom(const char* name) : OpDef(name) {
        this->Input("x").DataType({ge::DT_FLOAT, ge::DT_FLOAT16});
        this->Input("scale").Scalar().DataType({ge::DT_FLOAT, ge::DT_FLOAT16});
        this->Input("weights").ScalarList().DataType({ge::DT_FLOAT, ge::DT_FLOAT16}).To(ge::DT_FLOAT);
        this->Input("shift").ParamType(OPTIONAL).Scalar().DataType({ge::DT_FLOAT, ge::DT_FLOAT}).To("x");
        this->Input("steps").DataType({ge::DT_INT64, ge::DT_INT64}).ValueDepend(REQUIRED);
        this->Output("y").DataType({ge::DT_FLOAT, ge::DT_FLOAT16});
        this->AICore().AddConfig("ascend910b");
    }
};
OP_ADD(NumbersCustom);
}  // namespace ops
