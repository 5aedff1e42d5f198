// JudgedWait: y = 2 x.
#include "judged_tiling.h"
#include "register/op_def_registry.h"

namespace optiling {
static ge::graphStatus WaitTiling(gert::TilingContext* context) {
    JudgedWaitTilingData tiling;
    tiling.set_total(static_cast<uint32_t>(context->GetInputShape(0)->GetStorageShape().GetShapeSize()));
    if (tiling.get_total() == 0) return ge::GRAPH_FAILED;
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    context->SetBlockDim(1);
    context->GetWorkspaceSizes(1)[0] = 0;
    return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ops {
class JudgedWait : public OpDef {
  public:
    explicit JudgedWait(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->AICore().SetTiling(optiling::WaitTiling);
        this->AICore().AddConfig("ascend910b");
    }
};
OP_ADD(JudgedWait);
}  // namespace ops
