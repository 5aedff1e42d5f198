// A kernel that is compiled for each tiling key, and has a name of its own; key n multiplies by n.
#include "register/op_def_registry.h"

static ge::graphStatus Tile(gert::TilingContext* context) {
    *context->GetTilingData<int64_t>() = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    context->SetTilingKey(static_cast<uint64_t>(*context->GetAttrs()->GetInt(0)));
    context->SetBlockDim(1);
    return ge::GRAPH_SUCCESS;
}

namespace ops {
class Keyed : public OpDef {
  public:
    explicit Keyed(const char* name) : OpDef(name) {
        this->Input("x").DataType({ge::DT_FLOAT, ge::DT_INT32});
        this->Output("y").Follow("x");
        this->Attr("key").Int();
        OpAICoreConfig config;
        config.ExtendCfgInfo("opFile.value", "keyed").ExtendCfgInfo("opInterface.value", "times_key");
        this->AICore().SetTiling(Tile).AddConfig("ascend910b", config);
    }
};
OP_ADD(Keyed);
}  // namespace ops
