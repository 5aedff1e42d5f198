// ops::OpDef and its parts, for libraries of packages that CANN built: they define their operators when they
// are loaded, and ask the definition for the functions that they gave it.
//
// Only the functions are kept. The rest of a definition (dtypes, formats, processors) is in the package's
// files, whence everything else here reads it.
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#define EXPORTED __attribute__((visibility("default")))

namespace ge {
class AscendString;
class Operator;
enum DataType : int {};
enum Format : int {};
}  // namespace ge

namespace ge {

// What a library says of itself since CANN 9.0 (REGISTER_OP_LIB): the function unpacks the device's binaries
// that it carries, for packages of one library. It is not called here, as it is not where a package has
// directories.
class EXPORTED OpLibRegister {
  public:
    using OpLibInitFunc = uint32_t (*)(AscendString& path);
    explicit OpLibRegister(const char* vendor);
    OpLibRegister(const OpLibRegister&);
    OpLibRegister(OpLibRegister&&) noexcept;
    ~OpLibRegister();
    OpLibRegister& RegOpLibInit(OpLibInitFunc function);

  private:
    void* implementation_ = nullptr;
};
OpLibRegister::OpLibRegister(const char*) {}
OpLibRegister::OpLibRegister(const OpLibRegister&) {}
OpLibRegister::OpLibRegister(OpLibRegister&&) noexcept {}
OpLibRegister::~OpLibRegister() = default;
OpLibRegister& OpLibRegister::RegOpLibInit(OpLibInitFunc) { return *this; }

}  // namespace ge

namespace gert {
class TilingContext;
class InferShapeContext;
class InferShapeRangeContext;
class InferDataTypeContext;
}  // namespace gert

namespace optiling {

using OP_CHECK_FUNC = uint32_t (*)(const ge::Operator&, ge::AscendString&);
using PARAM_GENERALIZE_FUNC = uint32_t (*)(const ge::Operator&, const ge::AscendString&, ge::AscendString&);

// What GE's compiler asks of a kernel before it fuses nodes, which it does not do here.
class EXPORTED OpCheckFuncHelper {
  public:
    OpCheckFuncHelper(const ge::AscendString& kind, const ge::AscendString& op_type, OP_CHECK_FUNC function);
    OpCheckFuncHelper(const ge::AscendString& op_type, PARAM_GENERALIZE_FUNC function);
};
OpCheckFuncHelper::OpCheckFuncHelper(const ge::AscendString&, const ge::AscendString&, OP_CHECK_FUNC) {}
OpCheckFuncHelper::OpCheckFuncHelper(const ge::AscendString&, PARAM_GENERALIZE_FUNC) {}

}  // namespace optiling

namespace ops {

enum Option { IGNORE, OPTIONAL, REQUIRED, DYNAMIC, VIRTUAL };
enum class FollowType : uint32_t { ALL, DTYPE, FORMAT, SHAPE, INVALID_TYPE };

// Each class is one pointer to its implementation, as libraries have it: they make some of them themselves.
class EXPORTED OpParamDef {
  public:
    OpParamDef& ParamType(Option type);
    OpParamDef& DataType(std::vector<ge::DataType> types);
    OpParamDef& DataTypeList(std::vector<ge::DataType> types);
    OpParamDef& Format(std::vector<ge::Format> formats);
    OpParamDef& FormatList(std::vector<ge::Format> formats);
    OpParamDef& UnknownShapeFormat(std::vector<ge::Format> formats);
    OpParamDef& Follow(const char* name);
    OpParamDef& Follow(const char* name, FollowType type);
    OpParamDef& OutputShapeDependOnCompute();
    OpParamDef& ValueDepend(Option depends);
    OpParamDef& IgnoreContiguous();
    OpParamDef& AutoContiguous();

  private:
    void* impl_ = nullptr;
};
OpParamDef& OpParamDef::ParamType(Option) { return *this; }
OpParamDef& OpParamDef::DataType(std::vector<ge::DataType>) { return *this; }
OpParamDef& OpParamDef::DataTypeList(std::vector<ge::DataType>) { return *this; }
OpParamDef& OpParamDef::Format(std::vector<ge::Format>) { return *this; }
OpParamDef& OpParamDef::FormatList(std::vector<ge::Format>) { return *this; }
OpParamDef& OpParamDef::UnknownShapeFormat(std::vector<ge::Format>) { return *this; }
OpParamDef& OpParamDef::Follow(const char*) { return *this; }
OpParamDef& OpParamDef::Follow(const char*, FollowType) { return *this; }
OpParamDef& OpParamDef::OutputShapeDependOnCompute() { return *this; }
OpParamDef& OpParamDef::ValueDepend(Option) { return *this; }
OpParamDef& OpParamDef::IgnoreContiguous() { return *this; }
OpParamDef& OpParamDef::AutoContiguous() { return *this; }

class EXPORTED OpAttrDef {
  public:
    OpAttrDef& AttrType(Option type);
    OpAttrDef& Bool();
    OpAttrDef& Bool(bool value);
    OpAttrDef& Float();
    OpAttrDef& Float(float value);
    OpAttrDef& Int();
    OpAttrDef& Int(int64_t value);
    OpAttrDef& String();
    OpAttrDef& String(const char* value);
    OpAttrDef& ListBool();
    OpAttrDef& ListBool(std::vector<bool> value);
    OpAttrDef& ListFloat();
    OpAttrDef& ListFloat(std::vector<float> value);
    OpAttrDef& ListInt();
    OpAttrDef& ListInt(std::vector<int64_t> value);

  private:
    void* impl_ = nullptr;
};
OpAttrDef& OpAttrDef::AttrType(Option) { return *this; }
OpAttrDef& OpAttrDef::Bool() { return *this; }
OpAttrDef& OpAttrDef::Bool(bool) { return *this; }
OpAttrDef& OpAttrDef::Float() { return *this; }
OpAttrDef& OpAttrDef::Float(float) { return *this; }
OpAttrDef& OpAttrDef::Int() { return *this; }
OpAttrDef& OpAttrDef::Int(int64_t) { return *this; }
OpAttrDef& OpAttrDef::String() { return *this; }
OpAttrDef& OpAttrDef::String(const char*) { return *this; }
OpAttrDef& OpAttrDef::ListBool() { return *this; }
OpAttrDef& OpAttrDef::ListBool(std::vector<bool>) { return *this; }
OpAttrDef& OpAttrDef::ListFloat() { return *this; }
OpAttrDef& OpAttrDef::ListFloat(std::vector<float>) { return *this; }
OpAttrDef& OpAttrDef::ListInt() { return *this; }
OpAttrDef& OpAttrDef::ListInt(std::vector<int64_t>) { return *this; }

class OpAICoreConfigImpl {
  public:
    std::deque<OpParamDef> parameters;
};
class EXPORTED OpAICoreConfig {
  public:
    OpAICoreConfig();
    OpAICoreConfig(const OpAICoreConfig& other);
    ~OpAICoreConfig();
    OpParamDef& Input(const char* name);
    OpParamDef& Output(const char* name);
    OpAICoreConfig& DynamicCompileStaticFlag(bool flag);
    OpAICoreConfig& DynamicFormatFlag(bool flag);
    OpAICoreConfig& DynamicRankSupportFlag(bool flag);
    OpAICoreConfig& DynamicShapeSupportFlag(bool flag);
    OpAICoreConfig& NeedCheckSupportFlag(bool flag);
    OpAICoreConfig& PrecisionReduceFlag(bool flag);
    OpAICoreConfig& ExtendCfgInfo(const char* key, const char* value);

  private:
    std::unique_ptr<OpAICoreConfigImpl> impl_;
};
static_assert(sizeof(OpAICoreConfig) == sizeof(void*));
OpAICoreConfig::OpAICoreConfig() : impl_(std::make_unique<OpAICoreConfigImpl>()) {}
OpAICoreConfig::OpAICoreConfig(const OpAICoreConfig&) : OpAICoreConfig() {}
OpAICoreConfig::~OpAICoreConfig() = default;
OpParamDef& OpAICoreConfig::Input(const char*) { return impl_->parameters.emplace_back(); }
OpParamDef& OpAICoreConfig::Output(const char*) { return impl_->parameters.emplace_back(); }
OpAICoreConfig& OpAICoreConfig::DynamicCompileStaticFlag(bool) { return *this; }
OpAICoreConfig& OpAICoreConfig::DynamicFormatFlag(bool) { return *this; }
OpAICoreConfig& OpAICoreConfig::DynamicRankSupportFlag(bool) { return *this; }
OpAICoreConfig& OpAICoreConfig::DynamicShapeSupportFlag(bool) { return *this; }
OpAICoreConfig& OpAICoreConfig::NeedCheckSupportFlag(bool) { return *this; }
OpAICoreConfig& OpAICoreConfig::PrecisionReduceFlag(bool) { return *this; }
OpAICoreConfig& OpAICoreConfig::ExtendCfgInfo(const char*, const char*) { return *this; }

using TilingFunction = uint32_t (*)(gert::TilingContext*);
using InferShapeFunction = uint32_t (*)(gert::InferShapeContext*);
using InferShapeRangeFunction = uint32_t (*)(gert::InferShapeRangeContext*);
using InferDataTypeFunction = uint32_t (*)(gert::InferDataTypeContext*);

class OpAICoreDefImpl {
  public:
    TilingFunction tiling = nullptr;
    optiling::OP_CHECK_FUNC check_support = nullptr, select_format = nullptr, support_info = nullptr,
                            spec_info = nullptr;
    optiling::PARAM_GENERALIZE_FUNC generalize = nullptr;
};
class EXPORTED OpAICoreDef {
  public:
    OpAICoreDef();
    ~OpAICoreDef();
    OpAICoreDef& SetTiling(TilingFunction function);
    OpAICoreDef& SetCheckSupport(optiling::OP_CHECK_FUNC function);
    OpAICoreDef& SetOpSelectFormat(optiling::OP_CHECK_FUNC function);
    OpAICoreDef& SetOpSupportInfo(optiling::OP_CHECK_FUNC function);
    OpAICoreDef& SetOpSpecInfo(optiling::OP_CHECK_FUNC function);
    OpAICoreDef& SetParamGeneralize(optiling::PARAM_GENERALIZE_FUNC function);
    TilingFunction& GetTiling();
    optiling::OP_CHECK_FUNC& GetCheckSupport();
    optiling::OP_CHECK_FUNC& GetOpSelectFormat();
    optiling::OP_CHECK_FUNC& GetOpSupportInfo();
    optiling::OP_CHECK_FUNC& GetOpSpecInfo();
    optiling::PARAM_GENERALIZE_FUNC& GetParamGeneralize();
    OpAICoreDef& AddConfig(const char* soc);
    OpAICoreDef& AddConfig(const char* soc, OpAICoreConfig& config);

  private:
    std::unique_ptr<OpAICoreDefImpl> impl_;
};
OpAICoreDef::OpAICoreDef() : impl_(std::make_unique<OpAICoreDefImpl>()) {}
OpAICoreDef::~OpAICoreDef() = default;
#define KEPT(type, set, get, member)          \
    OpAICoreDef& OpAICoreDef::set(type one) { \
        impl_->member = one;                  \
        return *this;                         \
    }                                         \
    type& OpAICoreDef::get() { return impl_->member; }
KEPT(TilingFunction, SetTiling, GetTiling, tiling)
KEPT(optiling::OP_CHECK_FUNC, SetCheckSupport, GetCheckSupport, check_support)
KEPT(optiling::OP_CHECK_FUNC, SetOpSelectFormat, GetOpSelectFormat, select_format)
KEPT(optiling::OP_CHECK_FUNC, SetOpSupportInfo, GetOpSupportInfo, support_info)
KEPT(optiling::OP_CHECK_FUNC, SetOpSpecInfo, GetOpSpecInfo, spec_info)
KEPT(optiling::PARAM_GENERALIZE_FUNC, SetParamGeneralize, GetParamGeneralize, generalize)
#undef KEPT
OpAICoreDef& OpAICoreDef::AddConfig(const char*) { return *this; }
OpAICoreDef& OpAICoreDef::AddConfig(const char*, OpAICoreConfig&) { return *this; }

class OpDefImpl {
  public:
    // By name: a definition may name a parameter again, to say more of it.
    std::map<std::string, OpParamDef> inputs, outputs;
    std::map<std::string, OpAttrDef> attrs;
    OpAICoreDef core;
    InferShapeFunction shape = nullptr;
    InferShapeRangeFunction range = nullptr;
    InferDataTypeFunction dtype = nullptr;
};
class EXPORTED OpDef {
  public:
    explicit OpDef(const char* op_type);
    ~OpDef();
    OpParamDef& Input(const char* name);
    OpParamDef& Output(const char* name);
    OpAttrDef& Attr(const char* name);
    OpDef& SetInferShape(InferShapeFunction function);
    OpDef& SetInferShapeRange(InferShapeRangeFunction function);
    OpDef& SetInferDataType(InferDataTypeFunction function);
    InferShapeFunction& GetInferShape();
    InferShapeRangeFunction& GetInferShapeRange();
    InferDataTypeFunction& GetInferDataType();
    OpAICoreDef& AICore();

  private:
    std::unique_ptr<OpDefImpl> impl_;
};
static_assert(sizeof(OpDef) == sizeof(void*));
OpDef::OpDef(const char*) : impl_(std::make_unique<OpDefImpl>()) {}
OpDef::~OpDef() = default;
OpParamDef& OpDef::Input(const char* name) { return impl_->inputs[name]; }
OpParamDef& OpDef::Output(const char* name) { return impl_->outputs[name]; }
OpAttrDef& OpDef::Attr(const char* name) { return impl_->attrs[name]; }
OpDef& OpDef::SetInferShape(InferShapeFunction function) {
    impl_->shape = function;
    return *this;
}
OpDef& OpDef::SetInferShapeRange(InferShapeRangeFunction function) {
    impl_->range = function;
    return *this;
}
OpDef& OpDef::SetInferDataType(InferDataTypeFunction function) {
    impl_->dtype = function;
    return *this;
}
InferShapeFunction& OpDef::GetInferShape() { return impl_->shape; }
InferShapeRangeFunction& OpDef::GetInferShapeRange() { return impl_->range; }
InferDataTypeFunction& OpDef::GetInferDataType() { return impl_->dtype; }
OpAICoreDef& OpDef::AICore() { return impl_->core; }

}  // namespace ops
