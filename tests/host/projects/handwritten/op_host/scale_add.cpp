// scale_add(x, other, factor): x * factor + other, in float alone.
#include "register/tilingdata_base.h"

// Tiling structures bring GE's data types with them.
static_assert(ge::DT_FLOAT16 == 1);

#include "register/op_def_registry.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(ScaleAddTiling)
TILING_DATA_FIELD_DEF(uint32_t, length);
TILING_DATA_FIELD_DEF(float, factor);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(ScaleAdd, ScaleAddTiling)

static ge::graphStatus Tile(gert::TilingContext* context) {
    const float factor = *context->GetAttrs()->GetFloat(0);
    if (factor < 0) return ge::GRAPH_FAILED;
    ScaleAddTiling tiling;
    tiling.set_length(context->GetInputShape(0)->GetStorageShape().GetShapeSize());
    tiling.set_factor(factor);
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    context->SetBlockDim(1);
    context->GetWorkspaceSizes(1)[0] = 64;
    return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ops {
static ge::graphStatus InferShape(gert::InferShapeContext* context) {
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    return ge::GRAPH_SUCCESS;
}
class ScaleAdd : public OpDef {
  public:
    explicit ScaleAdd(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
        this->Input("other").ParamType(OPTIONAL).DataType({ge::DT_FLOAT});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
        this->Attr("factor").AttrType(OPTIONAL).Float(1.0);
        this->SetInferShape(InferShape);
        this->AICore().SetTiling(optiling::Tile).AddConfig("ascend910b");
    }
};
OP_ADD(ScaleAdd);
}  // namespace ops
