// y[i] = x[0] + … + x[i], by blocks that read one another's results in the workspace.
#include <err_msg.h>  // from base, as CANN's headers of logging have it

#include "common/util/error_manager/error_manager.h"
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "runtime/base.h"
#include "runtime2_util.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(RunningTotalTiling)
TILING_DATA_FIELD_DEF(uint32_t, length);
TILING_DATA_FIELD_DEF(uint32_t, behind);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(RunningTotal, RunningTotalTiling)

static ge::graphStatus Tile(gert::TilingContext* context) {
    char version[64] = {};
    if (rtGetSocVersion(version, sizeof version) != RT_ERROR_NONE ||
        std::string(version).rfind("Ascend", 0) != 0) {
        REPORT_CALL_ERROR("E1", "no processor");
        return ge::GRAPH_FAILED;
    }
    const auto& shape = context->GetInputShape(0)->GetStorageShape();
    RunningTotalTiling tiling;
    tiling.set_length(GetPartShapeSize(shape, 0, shape.GetDimNum()));
    tiling.set_behind(*context->GetAttrs()->GetInt(0));
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    context->SetBlockDim(4);
    const size_t of_system =
        platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetLibApiWorkSpaceSize();
    return AddWorkspace(context, of_system + CeilAlign(4 * sizeof(float), 32)) ? ge::GRAPH_SUCCESS
                                                                               : ge::GRAPH_FAILED;
}
}  // namespace optiling

namespace ops {
static ge::graphStatus InferShape(gert::InferShapeContext* context) {
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    return ge::GRAPH_SUCCESS;
}
class RunningTotal : public OpDef {
  public:
    explicit RunningTotal(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
        this->Attr("behind").AttrType(OPTIONAL).Int(0);
        this->SetInferShape(InferShape);
        this->AICore().SetTiling(optiling::Tile).AddConfig("ascend910b");
    }
};
OP_ADD(RunningTotal);
}  // namespace ops
