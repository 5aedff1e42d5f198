// y = the sum of blocks of 64 elements of x, which kernels add up in the workspace.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(PartialSumTiling)
TILING_DATA_FIELD_DEF(uint32_t, way);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(PartialSum, PartialSumTiling)

static ge::graphStatus Tile(gert::TilingContext* context) {
    PartialSumTiling tiling;
    tiling.set_way(*context->GetAttrs()->GetInt(0));
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    context->SetBlockDim(context->GetInputShape(0)->GetStorageShape().GetShapeSize() / 64);
    const size_t of_system = 16 * 1024 * 1024;
    const size_t way = tiling.get_way();
    context->GetWorkspaceSizes(1)[0] = way == 3   ? 4096
                                       : way == 4 ? of_system
                                       : way == 5 ? 0
                                       : way == 8 ? of_system + 128
                                                  : of_system + 4096;
    return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ops {
class PartialSum : public OpDef {
  public:
    explicit PartialSum(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
        this->Attr("way").AttrType(OPTIONAL).Int(0);
        this->AICore().SetTiling(optiling::Tile).AddConfig("ascend910b");
    }
};
OP_ADD(PartialSum);
}  // namespace ops
