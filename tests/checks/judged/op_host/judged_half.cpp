// JudgedHalf: the sums of neighbors: y[..., i] = x[..., 2 i] + x[..., 2 i + 1], half as many as x has.
#include "judged_tiling.h"
#include "register/op_def_registry.h"

namespace optiling {
static ge::graphStatus HalfTiling(gert::TilingContext* context) {
    JudgedHalfTilingData tiling;
    tiling.set_total(static_cast<uint32_t>(context->GetInputShape(0)->GetStorageShape().GetShapeSize() / 2));
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    context->SetBlockDim(1);
    context->GetWorkspaceSizes(1)[0] = 0;
    return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
static graphStatus InferHalf(gert::InferShapeContext* context) {
    const gert::Shape* x = context->GetInputShape(0);
    gert::Shape* y = context->GetOutputShape(0);
    const size_t last = x->GetDimNum() - 1;
    if (x->GetDimNum() == 0 || x->GetDim(last) % 2 != 0) return GRAPH_FAILED;
    *y = *x;
    y->SetDim(last, x->GetDim(last) / 2);
    return GRAPH_SUCCESS;
}
static graphStatus InferHalfType(gert::InferDataTypeContext* context) {
    return context->SetOutputDataType(0, context->GetInputDataType(0));
}
}  // namespace ge

namespace ops {
class JudgedHalf : public OpDef {
  public:
    explicit JudgedHalf(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->SetInferShape(ge::InferHalf).SetInferDataType(ge::InferHalfType);
        this->AICore().SetTiling(optiling::HalfTiling);
        this->AICore().AddConfig("ascend910b");
    }
};
OP_ADD(JudgedHalf);
}  // namespace ops
