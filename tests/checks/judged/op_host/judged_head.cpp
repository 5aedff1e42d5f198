// JudgedHead: the first rows of x, as many as the value of size says.
#include "judged_tiling.h"
#include "register/op_def_registry.h"

namespace optiling {
static ge::graphStatus HeadTiling(gert::TilingContext* context) {
    JudgedHeadTilingData tiling;
    tiling.set_total(static_cast<uint32_t>(context->GetOutputShape(0)->GetStorageShape().GetShapeSize()));
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    context->SetBlockDim(1);
    context->GetWorkspaceSizes(1)[0] = 0;
    return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
static graphStatus InferHead(gert::InferShapeContext* context) {
    const gert::Shape* x = context->GetInputShape(0);
    const gert::Tensor* size = context->GetInputTensor(1);
    if (x->GetDimNum() == 0 || size->GetShapeSize() != 1) return GRAPH_FAILED;
    const int64_t rows = size->GetData<int64_t>()[0];
    if (rows < 0 || rows > x->GetDim(0)) return GRAPH_FAILED;
    *context->GetOutputShape(0) = *x;
    context->GetOutputShape(0)->SetDim(0, rows);
    return GRAPH_SUCCESS;
}
static graphStatus InferHeadType(gert::InferDataTypeContext* context) {
    return context->SetOutputDataType(0, context->GetInputDataType(0));
}
}  // namespace ge

namespace ops {
class JudgedHead : public OpDef {
  public:
    explicit JudgedHead(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Input("size")
            .ParamType(REQUIRED)
            .DataType({ge::DT_INT64})
            .Format({ge::FORMAT_ND})
            .ValueDepend(REQUIRED);
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->SetInferShape(ge::InferHead).SetInferDataType(ge::InferHeadType);
        this->AICore().SetTiling(optiling::HeadTiling);
        this->AICore().AddConfig("ascend910b");
    }
};
OP_ADD(JudgedHead);
}  // namespace ops
