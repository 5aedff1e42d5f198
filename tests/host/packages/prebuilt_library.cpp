// A prototype library as CANN's build makes it: it defines its operator with ops::OpDef, registers it, and
// reads contexts in the layout of its own header. The old ABI of std::string, as CANN has it.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <unordered_set>
#include <vector>

namespace ge {
enum DataType : int { DT_FLOAT = 0 };
class AscendString {
  public:
    AscendString(const char* text);
    const char* GetString() const;
    size_t Hash() const;

  private:
    std::shared_ptr<std::string> text_;
};
class OperatorImpl;
class TensorType {
  public:
    TensorType(const std::initializer_list<DataType>& types);

  private:
    std::shared_ptr<void> impl_;
};
class Operator {
  public:
    Operator(const AscendString& name, const AscendString& type);
    virtual ~Operator() = default;
    void InputRegister(const char* name, const char* type);
    void OptionalInputRegister(const char* name, const char* type);
    void OutputRegister(const char* name, const char* type);
    void RequiredAttrWithTypeRegister(const char* name, const char* type);
    void AttrRegister(const char* name, int64_t value);
    void DataTypeRegister(const char* name, const TensorType& types);

  private:
    std::shared_ptr<OperatorImpl> impl_;
};
class OperatorCreatorRegister {
  public:
    OperatorCreatorRegister(const char* type, const std::function<Operator(const AscendString&)>& create);
};
class AnyValue {
  public:
    AnyValue() = default;
    AnyValue(AnyValue&& other) noexcept;
    AnyValue& operator=(const AnyValue& other);
    void* word = nullptr;
    void (*operate)(uint32_t, const AnyValue*, void*) = nullptr;
};
template <typename T>
void* GetTypeId();
}  // namespace ge

namespace gert {
class InferShapeContext;
class InferDataTypeContext;
class TilingContext;
class RuntimeAttrs {
  public:
    const void* GetPointerByIndex(size_t index) const;
};
}  // namespace gert

namespace ops {
class OpParamDef {
  public:
    OpParamDef& DataType(std::vector<ge::DataType> types);
};
class OpAttrDef {
  public:
    OpAttrDef& Int();
};
class OpAICoreDef {
  public:
    OpAICoreDef& SetTiling(uint32_t (*function)(gert::TilingContext*));
    uint32_t (*&GetTiling())(gert::TilingContext*);
    OpAICoreDef& AddConfig(const char* soc);
};
class OpDef {
  public:
    explicit OpDef(const char* type);
    ~OpDef();
    OpParamDef& Input(const char* name);
    OpParamDef& Output(const char* name);
    OpAttrDef& Attr(const char* name);
    OpDef& SetInferShape(uint32_t (*function)(gert::InferShapeContext*));
    OpDef& SetInferDataType(uint32_t (*function)(gert::InferDataTypeContext*));
    uint32_t (*&GetInferShape())(gert::InferShapeContext*);
    uint32_t (*&GetInferDataType())(gert::InferDataTypeContext*);
    OpAICoreDef& AICore();

  private:
    std::unique_ptr<int> impl_;
};
}  // namespace ops

namespace optiling {
class TilingDef {
  public:
    ~TilingDef() {
        if (!elsewhere) delete[] data;
    }
    void SaveToBuffer(void* buffer, size_t capacity);
    size_t GetDataSize() const;
    void CheckAlignAndGenPlaceHolder(const char* name, size_t size);
    void InitData();

    std::vector<const char*> fields;  // of the size of any vector; only the callee adds to it
    uint8_t* data = nullptr;
    size_t bytes = 0;
    const char* name = "Sample";
    std::vector<std::pair<void*, size_t>> structures;
    size_t structure_bytes = 0;
    bool elsewhere = false;
    uint32_t features = 0;
    uint8_t reserved[128] = {};
};
}  // namespace optiling

namespace fe {
enum class LocalMemType { L0_A, L0_B, L0_C, L1, L2, UB, HBM };
class PlatFormInfos {
  public:
    bool GetPlatformResWithLock(const std::string& label, const std::string& key, std::string& value);
    uint32_t GetCoreNum() const;
    void SetCoreNumByCoreType(const std::string& type);
    void GetLocalMemSize(const LocalMemType& type, uint64_t& size);

  private:
    uint32_t cores_ = 0;
    std::shared_ptr<void> impl_;
};
class OptionalInfos {
    std::shared_ptr<void> impl_;
};
class PlatformInfoManager {
  public:
    static PlatformInfoManager& GeInstance();
    uint32_t GetPlatformInfos(std::string soc, PlatFormInfos& infos, OptionalInfos& optional);
};
}  // namespace fe

namespace {

constexpr uint32_t kFailed = 0xFFFFFFFF;

template <typename T>
T& at(void* base, size_t offset) {
    return *reinterpret_cast<T*>(static_cast<char*>(base) + offset);
}

// Context: counts of inputs and outputs, the node, two more words, addresses of words. Node: 80 bytes, 48 for
// each input, 144 for each tensor, attrs. A shape is its rank and 25 sizes.
void* value_of(void* context, size_t index) { return *at<void**>(context, 40 + 8 * index); }

const gert::RuntimeAttrs* attrs_of(void* context) {
    char* node = at<char*>(context, 16);
    const size_t inputs = at<size_t>(node, 16), tensors = at<size_t>(node, 24) + at<size_t>(node, 32);
    return reinterpret_cast<const gert::RuntimeAttrs*>(node + 80 + 48 * inputs + 144 * tensors);
}

// y[n + by, given + sum(list)] for x[n]; the optional input b, as given or not.
uint32_t infer_shape(gert::InferShapeContext* given) {
    void* context = given;
    char* node = at<char*>(context, 16);
    if (std::strcmp(at<const char*>(node, 0), "Sample") != 0) return 7;
    auto* x = static_cast<size_t*>(value_of(context, 0));
    const auto* by = static_cast<const int64_t*>(attrs_of(context)->GetPointerByIndex(0));
    const auto* list = static_cast<const char*>(attrs_of(context)->GetPointerByIndex(1));
    if (attrs_of(context)->GetPointerByIndex(2) != nullptr || x[0] != 1) return kFailed;
    if (*by == 99) return *static_cast<volatile uint32_t*>(nullptr);
    int64_t sum = 0;
    const auto* elements = reinterpret_cast<const int64_t*>(list + 56);
    for (size_t i = 0; i < *reinterpret_cast<const size_t*>(list + 8); ++i) sum += elements[i];
    const bool has_b = at<uint32_t>(node, 80 + 48 + 4) == 1;  // the instances of the second input
    // The dtype of x: of its tensor, and of its description.
    if (at<int32_t>(x, 536 + 96 + 4) != at<int32_t>(node, 80 + 2 * 48)) return 8;
    // The inputs of the call, one more, then the outputs.
    auto* y = static_cast<int64_t*>(value_of(context, (has_b ? 2 : 1) + 1));
    y[0] = 2;
    y[1] = static_cast<int64_t>(x[1]) + *by;
    y[2] = has_b + sum;
    return 0;
}

uint32_t infer_dtype(gert::InferDataTypeContext* given) {
    void* context = given;
    const size_t inputs = at<size_t>(context, 0);
    *at<int32_t*>(context, 40 + 8 * inputs) = *at<int32_t*>(context, 40);
    return 0;
}

uint32_t tile(gert::TilingContext*) { return 0; }

class SampleDefinition : public ops::OpDef {
  public:
    explicit SampleDefinition(const char* type) : OpDef(type) {
        Input("x").DataType({ge::DT_FLOAT});
        Output("y").DataType({ge::DT_FLOAT});
        Attr("by").Int();
        SetInferShape(infer_shape).SetInferDataType(infer_dtype);
        AICore().SetTiling(tile).AddConfig("ascend910b");
    }
};

class SampleOperator : public ge::Operator {
  public:
    explicit SampleOperator(const ge::AscendString& name) : Operator(name, "Sample") {
        InputRegister("x", "T");
        OptionalInputRegister("b", "T");
        OutputRegister("y", "T");
        RequiredAttrWithTypeRegister("by", "VT_INT");
        AttrRegister("scale", int64_t{3});
        DataTypeRegister("T", ge::TensorType({ge::DT_FLOAT}));
    }
};
const ge::OperatorCreatorRegister registered("Sample", [](const ge::AscendString& name) {
    return SampleOperator(name);
});

#ifndef TABLE_VERSION
#define TABLE_VERSION 2
#endif

}  // namespace

struct Entry {
    const char* type;
    void *shape, *range, *dtype, *tiling, *words[3];
    uint64_t capacity, data_inputs;
    std::vector<uint64_t> list;
    std::unordered_set<std::string> names;
    uint64_t words_of_inputs[4];
    uint8_t placements;
    uint64_t outputs;
    void* symbols[2];
    uint32_t bytes, version;
    uint64_t rest[510];
};
static_assert(sizeof(Entry) == 0x10d8, "as in libraries of CANN 8.5");

extern "C" size_t GetRegisteredOpNum() { return 1; }

extern "C" int32_t GetOpImplFunctionsV2(Entry* entries, size_t count) {
    if (count != 1) return -1;
    SampleDefinition definition("Sample");
    entries->type = "Sample";
    entries->shape = reinterpret_cast<void*>(definition.GetInferShape());
    entries->dtype = reinterpret_cast<void*>(definition.GetInferDataType());
    entries->tiling = reinterpret_cast<void*>(definition.AICore().GetTiling());
    entries->data_inputs = 2;
    entries->names.insert("private");
    entries->bytes = sizeof(Entry) - sizeof(void*);
    entries->version = TABLE_VERSION;
    return 0;
}

// A field of one byte, then one of eight; into a buffer of so many bytes.
extern "C" size_t tiling_bytes(uint8_t* buffer, size_t capacity) {
    optiling::TilingDef data;
    data.bytes = 1;
    data.CheckAlignAndGenPlaceHolder("padding", 8);
    data.bytes += 8;
    data.InitData();
    data.data[0] = 5;
    data.data[8] = 6;
    data.SaveToBuffer(buffer, capacity);
    return data.GetDataSize();
}

// The cores as CANN tells tiling functions, and local memory of a processor; false for one that is not known.
extern "C" bool describe(const char* soc, uint32_t* cores, uint64_t* local) {
    fe::PlatFormInfos infos;
    fe::OptionalInfos optional;
    if (fe::PlatformInfoManager::GeInstance().GetPlatformInfos(soc, infos, optional) != 0) return false;
    *cores = infos.GetCoreNum();
    infos.GetLocalMemSize(fe::LocalMemType::UB, *local);
    std::string name, nothing;
    return infos.GetPlatformResWithLock("version", "SoC_version", name) && name == soc &&
           !infos.GetPlatformResWithLock("version", "Nothing", nothing);
}

// A fact that a library asks for before it decides how to compute; empty where it is not known.
extern "C" const char* described(const char* soc, const char* label, const char* key) {
    static std::string found;
    fe::PlatFormInfos infos;
    fe::OptionalInfos optional;
    found.clear();
    if (fe::PlatformInfoManager::GeInstance().GetPlatformInfos(soc, infos, optional) == 0)
        infos.GetPlatformResWithLock(label, key, found);
    return found.c_str();
}

// A value that another one is made of, and moved from.
extern "C" bool values_move() {
    static int alive = 0;
    const auto operate = [](uint32_t operation, const ge::AnyValue* value, void* result) {
        auto* target = static_cast<ge::AnyValue*>(result);
        if (operation == 0) {  // clear
            --alive;
            target->operate = nullptr;
        } else if (operation == 2 || operation == 3) {  // clone, move
            alive += operation == 2;
            target->word = value->word;
            target->operate = value->operate;
        }
    };
    ge::AnyValue first, second;
    first.word = &alive;
    first.operate = operate;
    alive = 1;
    second = first;
    const bool copied = alive == 2 && second.word == &alive && first.operate == operate;
    second = first;  // what was there is cleared
    const ge::AnyValue moved(std::move(second));
    return copied && alive == 2 && second.operate == nullptr && moved.word == &alive &&
           ge::GetTypeId<bool>() != ge::GetTypeId<int64_t>() &&
           ge::AscendString("a").Hash() == ge::AscendString("a").Hash();
}
