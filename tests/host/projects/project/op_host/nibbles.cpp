// Integers of 4 bits, what they are, and an input that only passes of the graph engine give.
#include "register/op_def_registry.h"

static ge::graphStatus Tile(gert::TilingContext* context) {
    context->SetBlockDim(1);
    *context->GetTilingData<uint32_t>() = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    return ge::GetSizeInBytes(6, context->GetInputDesc(0)->GetDataType()) == 3 ? ge::GRAPH_SUCCESS
                                                                               : ge::GRAPH_FAILED;
}

namespace ops {
class Nibbles : public OpDef {
  public:
    explicit Nibbles(const char* name) : OpDef(name) {
        this->Input("x").DataType({ge::DT_INT4});
        this->Input("made").ParamType(VIRTUAL).DataType({ge::DT_FLOAT});
        this->Output("y").DataType({ge::DT_FLOAT16});
        this->Output("negated").DataType({ge::DT_INT4});
        this->AICore().SetTiling(Tile).AddConfig("ascend910b");
    }
};
OP_ADD(Nibbles);
}  // namespace ops
