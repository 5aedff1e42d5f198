// What memory holds of a matrix, number by number: of one that may be in either format, and of one in
// FRACTAL_NZ.
#include "register/op_def_registry.h"

namespace {
ge::graphStatus Tile(gert::TilingContext* context) {
    const auto* shape = context->GetInputShape(0);
    auto* data = context->GetTilingData<uint32_t>();
    data[0] = static_cast<uint32_t>(shape->GetStorageShape().GetShapeSize());
    data[1] = static_cast<uint32_t>(shape->GetOriginShape().GetDimNum());
    data[2] = static_cast<uint32_t>(context->GetInputDesc(0)->GetStorageFormat());
    context->GetRawTilingData()->SetDataSize(3 * sizeof(uint32_t));
    context->SetBlockDim(1);
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferShape(gert::InferShapeContext* context) {
    gert::Shape* shape = context->GetOutputShape(0);
    shape->SetDimNum(0);
    shape->AppendDim(context->GetInputShape(0)->GetShapeSize() + 3);
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDataType(gert::InferDataTypeContext* context) {
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return ge::GRAPH_SUCCESS;
}
}  // namespace

namespace ops {
class Kept : public OpDef {
  public:
    explicit Kept(const char* name) : OpDef(name) {
        this->Input("w")
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT16})
            .Format({ge::FORMAT_ND, ge::FORMAT_FRACTAL_NZ});
        this->Output("y").DataType({ge::DT_FLOAT16, ge::DT_FLOAT16}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
        this->SetInferShape(InferShape).SetInferDataType(InferDataType);
        this->AICore().SetTiling(Tile).AddConfig("ascend910b");
    }
};
OP_ADD(Kept);

class KeptNz : public OpDef {
  public:
    explicit KeptNz(const char* name) : OpDef(name) {
        this->Input("w").DataType({ge::DT_FLOAT16}).FormatList({ge::FORMAT_FRACTAL_NZ});
        this->Output("y").DataType({ge::DT_FLOAT16}).FormatList({ge::FORMAT_ND});
        this->SetInferShape(InferShape).SetInferDataType(InferDataType);
        this->AICore().SetTiling(Tile).AddConfig("ascend910b");
    }
};
OP_ADD(KeptNz);
}  // namespace ops
