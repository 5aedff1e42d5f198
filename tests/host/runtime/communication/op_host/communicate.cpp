#include <cstring>

#include "../op_kernel/communicate_tiling.h"
#include "register/op_def_registry.h"
#include "tiling/tiling_api.h"

namespace optiling {
static ge::graphStatus Tile(gert::TilingContext* context) {
    auto* tiling = context->GetTilingData<CommunicateTiling>();
    const auto* attrs = context->GetAttrs();
    const char* group = attrs->GetAttrPointer<char>(0);
    const char* second = attrs->GetAttrPointer<char>(1);
    tiling->way = static_cast<int32_t>(*attrs->GetInt(2));
    tiling->size = static_cast<uint32_t>(context->GetInputShape(0)->GetStorageShape().GetShapeSize());

    AscendC::Mc2CcTilingConfig config(group, 2, "AllReduce=level0:doublering", 0);
    config.SetQueueNum(2);
    if (tiling->way == SILENT) config.SetDebugMode(1);
    if (config.GetTiling(tiling->init) != 0 || config.GetTiling(tiling->reduce) != 0) return ge::GRAPH_FAILED;
    config.SetOpType(6);
    config.GetTiling(tiling->gather);
    config.SetOpType(7);
    config.GetTiling(tiling->scatter);
    config.SetOpType(10);
    config.GetTiling(tiling->exchange);
    config.SetOpType(8);
    config.GetTiling(tiling->exchange_v);
    if (tiling->way != OTHER_ALGORITHM) config.SetAlgConfig("AlltoAll=level0:fullmesh;level1:pairwise");
    config.SetStepSize(1);
    config.GetTiling(tiling->steps);
    config.SetStepSize(0);
    config.SetOpType(20);
    config.GetTiling(tiling->half);
    config.SetOpType(18);
    config.GetTiling(tiling->write);
    if (config.SetOpType(3) == 0 || config.SetSkipLocalRankCopy(2) == 0 || config.SetDebugMode(5) == 0 ||
        config.SetGroupName(std::string(128, 'x')) == 0)
        return ge::GRAPH_FAILED;  // there is no such operation, nor such a group
    config.SetGroupName(std::strlen(second) != 0 ? second : "nobody");
    config.SetOpType(2);
    if (config.GetTiling(tiling->other) != 0) return ge::GRAPH_FAILED;

    context->SetBlockDim(4);
    context->SetTilingKey(tiling->way);
    const auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    context->GetWorkspaceSizes(1)[0] = platform.GetLibApiWorkSpaceSize() + 16 * 1024 * 1024;
    return ge::GRAPH_SUCCESS;
}
static ge::graphStatus InferShape(gert::InferShapeContext* context) {
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ops {
class Communicate : public OpDef {
  public:
    explicit Communicate(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Attr("group").AttrType(REQUIRED).String();
        this->Attr("second").AttrType(REQUIRED).String();
        this->Attr("way").AttrType(REQUIRED).Int();
        this->SetInferShape(optiling::InferShape);
        this->AICore()
            .SetTiling(optiling::Tile)
            .AddConfig("ascend910b")
            .AddConfig("ascend910_93")
            .AddConfig("ascend950");
        this->MC2().HcclGroup({"group", "second"});
        this->MC2().HcclServerType(HcclServerType::AICPU);
    }
};
OP_ADD(Communicate);
}  // namespace ops
