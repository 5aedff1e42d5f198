// A tiling function that asks CANN's bank of tuned tilings first, as those of matrix products do.
#include "platform/platform_infos_def.h"  // brings string, vector and map
#include "register/op_def_registry.h"
#include "register/tuning_bank_key_registry.h"
#include "register/tuning_tiling_registry.h"

// Repositories declare this function of CANN's themselves.
namespace RuntimeKb {
uint32_t QueryBank(const void* key, size_t size, const string& op_type, const string& soc, uint32_t cores,
                   tuningtiling::TuningTilingDefPtr& tiling);
}

namespace tuningtiling {

struct TunedKey {
    int64_t elements;
    ge::DataType dtype;
};

BEGIN_TUNING_TILING_DEF(TunedTiling)
TUNING_TILING_DATA_FIELD_DEF(uint32_t, blocks);
TUNING_TILING_DATA_FIELD_DEF(float, share);
END_TUNING_TILING_DEF

DECLARE_SCHEMA(TunedTiling, FIELD(TunedTiling, blocks), FIELD(TunedTiling, share));

static bool KeyOf(const gert::TilingContext* context, std::shared_ptr<void>& key, size_t& size) {
    auto made = std::make_shared<TunedKey>();
    made->elements = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    made->dtype = context->GetInputDesc(0)->GetDataType();
    key = made;
    size = sizeof(TunedKey);
    return true;
}

REGISTER_TUNING_TILING_CLASS(Tuned, TunedTiling)
DECLARE_STRUCT_RELATE_WITH_OP_V2(Tuned, TunedKey, elements, dtype)
REGISTER_OP_BANK_KEY_CONVERT_FUN_V2(Tuned, KeyOf);

}  // namespace tuningtiling

// Sums of a constant's elements: published helpers take it as ge::Tensor.
template <typename T>
static int32_t SumOf(const ge::Tensor& constant) {
    int32_t sum = constant.GetTensorDesc().GetDataType() == ge::DT_INT32 ? 0 : 1000;
    const T* elements = reinterpret_cast<const T*>(constant.GetData());
    for (size_t i = 0; i < constant.GetSize() / sizeof(T); ++i) sum += elements[i];
    return sum;
}

static int32_t ConstantFact() {
    const int32_t elements[] = {3, 4};
    ge::Tensor constant(ge::TensorDesc(ge::Shape({2}), ge::FORMAT_ND, ge::DT_INT32),
                        reinterpret_cast<const uint8_t*>(elements), sizeof elements);
    const ge::Tensor shares = constant, apart = constant.Clone();
    constant.GetData()[0] = 5;
    return 100 * SumOf<int32_t>(shares) + SumOf<int32_t>(apart);
}

static ge::graphStatus Tile(gert::TilingContext* context) {
    using namespace tuningtiling;
    std::shared_ptr<void> key;
    size_t size = 0;
    const auto& functions = OpBankKeyFuncRegistryV2::RegisteredOpFuncInfoV2().at("Tuned");
    if (!functions.GetBankKeyConvertFuncV2()(context, key, size)) return ge::GRAPH_FAILED;
    TuningTilingDefPtr tiling = TuningTilingClassFactory::CreateTilingDataInstance("Tuned");
    const vector<TilingItem> fields = tiling->GetItemInfo();
    const bool is_described = tiling->GetClassName() == "TunedTiling" && fields.size() == 2 &&
                              fields[0].dtype_ == "uint32_t" && fields[1].name_ == "share";
    int32_t visited = 0;
    ForEachField(static_cast<TunedTiling&>(*tiling), [&](const std::string& name, const auto&) {
        visited += name == "blocks" || name == "share";
    });

    const uint32_t answer = RuntimeKb::QueryBank(key.get(), size, "Tuned", "Ascend910B2", 24, tiling);
    if (answer == 0 && tiling != nullptr) return ge::GRAPH_FAILED;  // there are no records to find
    int32_t* facts = context->GetTilingData<int32_t>();
    facts[0] = static_cast<int32_t>(answer);
    facts[1] = tiling == nullptr;
    facts[2] = static_cast<int32_t>(static_cast<TunedKey*>(key.get())->elements);
    facts[3] = is_described;
    facts[4] = visited;
    facts[5] = TuningTilingClassFactory::CreateTilingDataInstance("Other") == nullptr;
    facts[6] = ConstantFact();
    context->GetRawTilingData()->SetDataSize(7 * sizeof(int32_t));
    context->SetBlockDim(1);
    return ge::GRAPH_SUCCESS;
}

// What graph engines ask before they choose a kernel.
static ge::graphStatus IsSupported(const ge::Operator& op, ge::AscendString& reason) {
    const ge::TensorDesc x = op.GetInputDescByName("x");
    int64_t axis = 0;
    if (op.GetAttr("axis", axis) == ge::GRAPH_SUCCESS &&
        axis >= static_cast<int64_t>(op.GetInputDesc("x").GetShape().GetDimNum()))  // the name as a string
        return ge::GRAPH_FAILED;
    reason = x.GetDataType() == ge::DT_FLOAT ? "" : "not for this dtype";
    return ge::GRAPH_SUCCESS;
}

namespace ops {
class Tuned : public OpDef {
  public:
    explicit Tuned(const char* name) : OpDef(name) {
        this->Input("x").DataType({ge::DT_FLOAT});
        this->Output("facts").DataType({ge::DT_INT32});
        this->AICore().SetTiling(Tile).SetCheckSupport(IsSupported).AddConfig("ascend910b");
    }
};
OP_ADD(Tuned);
}  // namespace ops
