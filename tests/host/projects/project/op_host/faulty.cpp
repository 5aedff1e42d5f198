// An operator that goes wrong in the way its attr says. Its functions are registered apart from its
// definition.
#include "register/op_def_registry.h"
#include "toolchain/slog.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(FaultyTiling)
TILING_DATA_FIELD_DEF(uint32_t, way);
TILING_DATA_FIELD_DEF(int32_t, zero);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Faulty, FaultyTiling)

static ge::graphStatus Tile(gert::TilingContext* context) {
    const std::string way = context->GetAttrs()->GetStr(0);
    FaultyTiling tiling;
    const int64_t columns = context->GetInputShape(0)->GetStorageShape().GetDim(0);
    if (way == "status") {
        DlogSub(OP, "OP_TILING", DLOG_ERROR, "way %s of %d", way.c_str(), 2);
        Dlog(OP, DLOG_INFO, "not an error");
        return ge::GRAPH_FAILED;
    }
    if (way == "throws") throw std::runtime_error("thrown by the author");
    if (way == "null") tiling.set_way(context->GetInputShape(7)->GetStorageShape().GetDimNum());
    if (way == "values") tiling.set_way(*context->GetInputTensor(0)->GetData<float>());
    if (way == "wrong attr") tiling.set_way(*context->GetAttrs()->GetInt(0));
    if (way == "zero") tiling.set_way(100 / static_cast<int>(columns - 2));
    if (way != "no blocks") context->SetBlockDim(1);
    if (way == "key") context->SetTilingKey(7);
    if (way == "unaligned") tiling.set_way(1);
    if (way == "beyond") tiling.set_way(2);
    context->GetWorkspaceSizes(1)[0] = way == "workspace" ? 4096 : 0;
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    size_t size = tiling.GetDataSize();
    if (way == "too much") size = 100;
    if (way == "too little") size = 4;
    context->GetRawTilingData()->SetDataSize(size);
    return ge::GRAPH_SUCCESS;
}
IMPL_OP_OPTILING(Faulty).Tiling(Tile, 8);
}  // namespace optiling

static ge::graphStatus Accumulate(gert::TilingContext* context) {
    context->SetBlockDim(1);
    *context->GetTilingData<uint32_t>() = context->GetInputShape(0)->GetOriginShape().GetShapeSize();
    return context->GetInputTensor(0)->GetData<float>() == nullptr &&
                   context->GetInputTensor(1)->GetData<float>()[0] >= 0
               ? ge::GRAPH_SUCCESS
               : ge::GRAPH_FAILED;
}

namespace ops {
class Faulty : public OpDef {
  public:
    explicit Faulty(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
        this->Attr("way").String();
        this->AICore().AddConfig("ascend910b");
    }
};
OP_ADD(Faulty);

// In place, with an input whose values the tiling function reads.
class AccumulateCustom : public OpDef {
  public:
    explicit AccumulateCustom(const char* name) : OpDef(name) {
        this->Input("acc").DataType({ge::DT_FLOAT});
        this->Input("x").DataType({ge::DT_FLOAT}).ValueDepend(OPTIONAL);
        this->Output("acc").DataType({ge::DT_FLOAT});
        this->AICore().SetTiling(Accumulate).AddConfig("ascend910b");
    }
};
OP_ADD(AccumulateCustom);

class Untiled : public OpDef {
  public:
    explicit Untiled(const char* name) : OpDef(name) {
        this->Input("x").DataType({ge::DT_FLOAT});
        this->Output("y").DataType({ge::DT_FLOAT});
        this->AICore().AddConfig("ascend910b");
    }
};
OP_ADD(Untiled);
}  // namespace ops
