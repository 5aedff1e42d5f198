// y = factor * x + blocks; what builds it alone knows: a source and a directory next to op_host, a macro, an
// option of the kernel.
#include "../shared/blocks.h"
#include "register/op_def_registry.h"

namespace {
ge::graphStatus Tile(gert::TilingContext* context) {
    const uint32_t elements =
        static_cast<uint32_t>(context->GetInputShape(0)->GetStorageShape().GetShapeSize());
    *context->GetTilingData<uint32_t>() = elements;
    context->GetRawTilingData()->SetDataSize(sizeof(uint32_t));
    context->SetBlockDim(BlocksFor(elements));
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferShape(gert::InferShapeContext* context) {
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDataType(gert::InferDataTypeContext* context) {
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return ge::GRAPH_SUCCESS;
}
}  // namespace

namespace ops {
class ScaleCustom : public OpDef {
  public:
    explicit ScaleCustom(const char* name) : OpDef(name) {
        this->Input("x").DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("y").DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->SetInferShape(InferShape).SetInferDataType(InferDataType);
        this->AICore().SetTiling(Tile).AddConfig("ascend910b");
    }
};
OP_ADD(ScaleCustom);
}  // namespace ops
