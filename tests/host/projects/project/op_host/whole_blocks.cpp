// An operator whose kernel writes its results by whole blocks, and the output where its attr says.
#include "register/op_def_registry.h"

static ge::graphStatus Tile(gert::TilingContext* context) {
    context->SetBlockDim(1);
    *context->GetTilingData<uint32_t>() = static_cast<uint32_t>(*context->GetAttrs()->GetInt(0));
    return ge::GRAPH_SUCCESS;
}

static ge::graphStatus InferShape(gert::InferShapeContext* context) {
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    *context->GetOutputShape(1) = *context->GetInputShape(0);
    return ge::GRAPH_SUCCESS;
}

namespace ops {
class WholeBlocks : public OpDef {
  public:
    explicit WholeBlocks(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
        this->Output("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
        this->Attr("place").AttrType(OPTIONAL).Int(0);
        this->SetInferShape(InferShape);
        this->AICore().SetTiling(Tile).AddConfig("ascend910b");
    }
};
OP_ADD(WholeBlocks);
}  // namespace ops
