#include "../op_kernel/pick_tiling_key.h"
#include "register/op_def_registry.h"

static ge::graphStatus PickInstance(gert::TilingContext* context) {
    *context->GetTilingData<uint64_t>() = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    context->SetBlockDim(1);
    const int64_t factor = *context->GetAttrs()->GetInt(0);
    return ASCENDC_TPL_SEL_PARAM(context, context->GetInputDesc(0)->GetDataType(),
                                 factor < 0 ? -factor : factor, factor < 0);
}

namespace ops {
class Pick : public OpDef {
  public:
    explicit Pick(const char* name) : OpDef(name) {
        this->Input("x").DataType({ge::DT_FLOAT16, ge::DT_FLOAT});
        this->Output("y").DataType({ge::DT_FLOAT16, ge::DT_FLOAT});
        this->Attr("factor").Int();
        this->AICore().SetTiling(PickInstance).AddConfig("ascend910b");
    }
};
OP_ADD(Pick);
}  // namespace ops
