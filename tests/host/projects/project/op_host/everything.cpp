// An operator with every kind of input and attr; its tiling function looks at all of them.
#include <cstring>

#include "everything_tiling.h"
#include "graph/utils/type_utils.h"
#include "register/op_def_registry.h"

namespace optiling {
struct CompileInfo {
    uint32_t cores = 0;
};

static ge::graphStatus Prepare(gert::TilingParseContext* context) {
    auto* info = context->GetCompiledInfo<CompileInfo>();
    info->cores = platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAiv();
    return ge::GRAPH_SUCCESS;
}

static void Keep(TilingDef& tiling, gert::TilingData* raw) {
    tiling.SaveToBuffer(raw->GetData(), raw->GetCapacity());
    raw->SetDataSize(tiling.GetDataSize());
}

static ge::graphStatus Tile(gert::TilingContext* context) {
    EverythingTiling tiling;
    const auto& shape = context->GetInputShape(0)->GetStorageShape();
    tiling.set_total(static_cast<uint32_t>(shape.GetShapeSize()));

    const auto* attrs = context->GetAttrs();
    const auto* axes = attrs->GetListInt(3);
    const auto* factors = attrs->GetAttrPointer<gert::TypedContinuousVector<float>>(4);
    float weights[3] = {*attrs->GetFloat(1), static_cast<float>(*attrs->GetAttrPointer<int64_t>(0)),
                        static_cast<float>(strlen(attrs->GetStr(2)))};
    for (size_t i = 0; i < axes->GetSize(); ++i) weights[2] += static_cast<float>(axes->GetData()[i]);
    for (size_t i = 0; i < factors->GetSize(); ++i) weights[1] += factors->GetData()[i];
    tiling.weights.set_values(weights);
    tiling.weights.set_shift(-3);
    tiling.cube.set_M(1000);
    tiling.set_flag(*attrs->GetBool(5));
    // The optional input is number 1 of the definition, the list number 2.
    if (context->GetOptionalInputShape(1) != nullptr) tiling.weights.set_shift(3);
    tiling.set_lists(context->GetIrInputInstanceInfo(2)->GetInstanceNum());

    uint32_t size = 0;
    ge::TypeUtils::GetDataTypeLength(context->GetInputDesc(0)->GetDataType(), size);
    context->SetTilingKey(size);
    context->SetBlockDim(context->GetCompileInfo<CompileInfo>()->cores == 48 ? 2 : 1);
    const size_t of_system =
        platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetLibApiWorkSpaceSize();
    context->GetWorkspaceSizes(1)[0] = of_system + sizeof(float) * tiling.get_total();
    gert::TilingData* raw = context->GetRawTilingData();
    if (size == sizeof(float)) {
        Keep(tiling, raw);
    } else {
        // Field by field, where the kernel will find them.
        EverythingTiling direct;
        direct.SetDataPtr(raw->GetData());
        direct.set_total(tiling.get_total());
        direct.weights.set_values(weights);
        direct.weights.set_shift(tiling.weights.get_shift());
        direct.cube.set_M(1000);
        direct.set_flag(tiling.get_flag());
        direct.set_lists(tiling.get_lists());
        EverythingTiling other;  // is another structure, and not written there
        other.set_total(0);
        raw->SetDataSize(tiling.GetDataSize());
    }
    // The attrs of no definition come after the others.
    const bool are_there = attrs->GetAttrNum() == 10 && *attrs->GetInt(6) == 7 &&
                           strcmp(attrs->GetStr(7), "text") == 0 &&
                           attrs->GetListInt(8)->GetData()[1] == -2 && attrs->GetInt(9) == nullptr;
    return are_there ? ge::SUCCESS : ge::FAILED;
}
}  // namespace optiling

IMPL_OP(Everything)
    .PrivateAttr("_first", int64_t{7})
    .PrivateAttr("_second", "text")
    .PrivateAttr("_third", std::vector<int64_t>{1, -2})
    .PrivateAttr("_absent");

namespace ge {
static graphStatus InferShape(gert::InferShapeContext* context) {
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    *context->GetOutputShape(1) = {*context->GetAttrs()->GetInt(0), 2};
    return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class Everything : public OpDef {
  public:
    explicit Everything(const char* name) : OpDef(name) {
        const std::vector<ge::DataType> types = {ge::DT_FLOAT16, ge::DT_FLOAT};
        this->Input("x").ParamType(REQUIRED).DataType(types).FormatList({ge::FORMAT_ND});
        this->Input("scale").ParamType(OPTIONAL).DataTypeList({ge::DT_FLOAT}).FormatList({ge::FORMAT_ND});
        this->Input("more").ParamType(DYNAMIC).Follow("x", FollowType::DTYPE).FormatList({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).Follow("x", FollowType::DTYPE).FormatList({ge::FORMAT_ND});
        this->Output("facts").ParamType(REQUIRED).DataType({ge::DT_FLOAT, ge::DT_FLOAT});
        this->Output("facts").InitValue({ScalarType::FLOAT32, 2.5});
        this->Attr("n").Int();
        this->Attr("alpha").AttrType(OPTIONAL).Float(0.1f);
        this->Attr("mode").AttrType(OPTIONAL).String("abc");
        this->Attr("axes").AttrType(OPTIONAL).ListInt({10, -20});
        this->Attr("factors").AttrType(OPTIONAL).ListFloat({0.5f});
        this->Attr("flag").AttrType(OPTIONAL).Bool(true);
        this->SetInferShape(ge::InferShape);
        this->AICore().SetTiling(optiling::Tile).SetTilingParse(optiling::Prepare).AddConfig("ascend910b");
    }
};
OP_ADD(Everything, optiling::NotDeclaredHere);
}  // namespace ops
