// Operator definitions: classes derived from ops::OpDef, registered by OP_ADD.
//
// A definition says what an operator takes and gives and which functions belong to it. It is kept as plain
// data, which the package's build reads (ascend_graph/describe.cpp) and its functions work by
// (ascend_graph/package.h).
#ifndef ASCEND_GRAPH_REGISTER_OP_DEF_REGISTRY_H
#define ASCEND_GRAPH_REGISTER_OP_DEF_REGISTRY_H

#include <cstdint>
#include <deque>
#include <iostream>
#include <list>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "graph/operator.h"
#include "register/op_impl_registry.h"
#include "register/scalar_var.h"
#include "register/tilingdata_base.h"

namespace ge {
using std::vector;  // as CANN's header of REG_OP has it, which its header of definitions includes
}

namespace optiling {

#define FUNC_CHECK_SUPPORTED "check_supported"
#define FUNC_OP_SELECT_FORMAT "op_select_format"
#define FUNC_GET_OP_SUPPORT_INFO "get_op_support_info"
#define FUNC_GET_SPECIFIC_INFO "get_op_specific_info"

using OP_CHECK_FUNC = int32_t (*)(const ge::Operator& op, ge::AscendString& result);

// A function that only a compilation for the device asks, registered by the author; null for an operator that
// has none.
class OpCheckFuncHelper {
  public:
    template <typename Function>
    OpCheckFuncHelper(const ge::AscendString& check_type, const ge::AscendString& op_type, Function) {
        static_cast<void>(check_type);
        static_cast<void>(op_type);
    }
};

}  // namespace optiling

namespace ops {

enum Option { IGNORE = 0, OPTIONAL = 1, REQUIRED = 2, DYNAMIC = 3, VIRTUAL = 4 };
enum class DependScope { ALL = 0, TILING };
enum class FollowType { ALL = 0, DTYPE, FORMAT, SHAPE };
enum class FormatCheckOption { DEFAULT = 0, STRICT };

// What the aclnn function takes for an input, for the host runtime.
enum class PassedAs { TENSOR, VALUES, SCALAR, SCALAR_LIST };

class OpParamDef {
  public:
    explicit OpParamDef(const char* name) : name(name) {}

    OpParamDef& ParamType(Option option) { return kind = option, *this; }
    OpParamDef& DataType(std::vector<ge::DataType> types) { return dtypes = std::move(types), *this; }
    // Every dtype of the list with every combination of the other parameters.
    OpParamDef& DataTypeList(std::vector<ge::DataType> types) {
        return any_dtype = true, DataType(std::move(types));
    }
    OpParamDef& Format(std::vector<ge::Format> values) { return formats = std::move(values), *this; }
    // Every format of the list with every combination of the other parameters.
    OpParamDef& FormatList(std::vector<ge::Format> values) {
        return any_format = true, Format(std::move(values));
    }
    OpParamDef& UnknownShapeFormat(std::vector<ge::Format>) { return *this; }
    OpParamDef& DataTypeForBinQuery(std::vector<ge::DataType>) { return *this; }
    OpParamDef& FormatForBinQuery(std::vector<ge::Format>) { return *this; }
    OpParamDef& ValueDepend(Option option, DependScope = DependScope::ALL) {
        if (option == REQUIRED || option == OPTIONAL) passed_as = PassedAs::VALUES;
        return *this;
    }
    OpParamDef& IgnoreContiguous() { return ignore_contiguous = true, *this; }
    OpParamDef& AutoContiguous() { return *this; }
    OpParamDef& Scalar() { return passed_as = PassedAs::SCALAR, *this; }
    OpParamDef& ScalarList() { return passed_as = PassedAs::SCALAR_LIST, *this; }
    // What the numbers become for the kernel: of a dtype, or of that of another parameter.
    OpParamDef& To(ge::DataType type) { return to_dtype = type, *this; }
    OpParamDef& To(const char* other) { return to_dtype_of = other, *this; }
    OpParamDef& Version(uint32_t) { return *this; }
    // All bytes 0: CANN takes no other number without its type, and such a definition is refused.
    OpParamDef& InitValue(uint64_t value) {
        return InitValue(ScalarVar(value == 0 ? ScalarType::UINT64 : ScalarType::INVALID_DTYPE, value));
    }
    OpParamDef& InitValue(const ScalarVar& value) { return initial = {value}, *this; }
    // One for each entry of DataType.
    OpParamDef& InitValue(const std::vector<ScalarVar>& values) { return initial = values, *this; }
    OpParamDef& OutputShapeDependOnCompute() { return shape_by_kernel = true, *this; }
    OpParamDef& Follow(const char* other, FollowType type = FollowType::ALL) {
        if (type == FollowType::ALL || type == FollowType::DTYPE) follows = other;
        if (type == FollowType::ALL || type == FollowType::FORMAT) follows_format = other;
        return *this;
    }
    OpParamDef& Comment(const char*) { return *this; }

    // What was said, for the host runtime.
    std::string name;
    Option kind = REQUIRED;
    std::vector<ge::DataType> dtypes;  // one for each combination, or with any_dtype each one allowed
    bool any_dtype = false;
    std::vector<ge::Format> formats;  // as dtypes, with any_format
    bool any_format = false;
    PassedAs passed_as = PassedAs::TENSOR;
    bool ignore_contiguous = false;
    std::optional<ge::DataType> to_dtype;
    std::string to_dtype_of;
    std::vector<ScalarVar>
        initial;  // the output's elements before the kernel starts: one, or one for each dtype
    bool shape_by_kernel = false;
    std::string follows, follows_format;
};

using AttrValue = std::variant<int64_t, float, bool, std::string, std::vector<int64_t>, std::vector<float>,
                               std::vector<bool>, std::vector<std::vector<int64_t>>>;

class OpAttrDef {
  public:
    explicit OpAttrDef(const char* name) : name(name) {}

    OpAttrDef& AttrType(Option option) { return kind = option, *this; }
    OpAttrDef& Int(int64_t value = 0) { return set("Int", value); }
    OpAttrDef& Float(float value = 0) { return set("Float", value); }
    OpAttrDef& Bool(bool value = false) { return set("Bool", value); }
    OpAttrDef& String(const char* value = "") { return set("String", std::string(value)); }
    OpAttrDef& ListInt(std::vector<int64_t> value = {}) { return set("ListInt", std::move(value)); }
    OpAttrDef& ListFloat(std::vector<float> value = {}) { return set("ListFloat", std::move(value)); }
    OpAttrDef& ListBool(std::vector<bool> value = {}) { return set("ListBool", std::move(value)); }
    OpAttrDef& ListListInt(std::vector<std::vector<int64_t>> value = {}) {
        return set("ListListInt", std::move(value));
    }
    OpAttrDef& Version(uint32_t) { return *this; }
    OpAttrDef& Comment(const char*) { return *this; }

    std::string name;
    Option kind = REQUIRED;
    std::string type = "Int";
    AttrValue value = int64_t{0};

  private:
    template <typename T>
    OpAttrDef& set(const char* its_type, T its_value) {
        type = its_type;
        value.emplace<T>(std::move(its_value));
        return *this;
    }
};

// Inputs or outputs by name, in the order of their first mention; references to them stay good.
class OpParamDefs {
  public:
    OpParamDef& operator[](const std::string& name) {
        for (OpParamDef& one : all) {
            if (one.name == name) return one;
        }
        return all.emplace_back(name.c_str());
    }
    std::list<OpParamDef> all;
};

// What one kind of device has in place of the definition's own parameters, and flags that only concern the
// device.
class OpAICoreConfig {
  public:
    OpAICoreConfig() = default;
    explicit OpAICoreConfig(const char*) {}

    OpParamDef& Input(const char* name) { return inputs[name]; }
    OpParamDef& Output(const char* name) { return outputs[name]; }
    OpAICoreConfig& AsyncFlag(bool) { return *this; }
    OpAICoreConfig& DynamicCompileStaticFlag(bool) { return *this; }
    OpAICoreConfig& DynamicFormatFlag(bool) { return *this; }
    OpAICoreConfig& DynamicRankSupportFlag(bool) { return *this; }
    OpAICoreConfig& DynamicShapeSupportFlag(bool) { return *this; }
    OpAICoreConfig& NeedCheckSupportFlag(bool) { return *this; }
    OpAICoreConfig& PrecisionReduceFlag(bool) { return *this; }
    OpAICoreConfig& RangeLimitValue(const char*) { return *this; }
    OpAICoreConfig& HeavyOpFlag(bool) { return *this; }
    OpAICoreConfig& ExtendCfgInfo(const char* key, const char* value) {
        if (key != nullptr && value != nullptr) extended[key] = value;
        return *this;
    }

    OpParamDefs inputs;
    OpParamDefs outputs;
    std::map<std::string, std::string> extended;
};

class OpAICoreDef {
  public:
    OpAICoreDef& SetTiling(gert::OpImplKernelRegistry::TilingKernelFunc function) {
        return tiling = function, *this;
    }
    OpAICoreDef& SetTilingParse(gert::OpImplKernelRegistry::TilingParseFunc function) {
        return tiling_parse = function, *this;
    }
    // Functions that only a compilation for the device asks; they return int32_t or ge::graphStatus.
    template <typename Status>
    using Check = Status (*)(const ge::Operator&, ge::AscendString&);
    template <typename Status>
    OpAICoreDef& SetCheckSupport(Check<Status>) {
        return *this;
    }
    // As nothing asks them, none is kept.
    optiling::OP_CHECK_FUNC GetCheckSupport() const { return nullptr; }
    template <typename Status>
    OpAICoreDef& SetOpSelectFormat(Check<Status>) {
        return *this;
    }
    template <typename Status>
    OpAICoreDef& SetOpSupportInfo(Check<Status>) {
        return *this;
    }
    template <typename Status>
    OpAICoreDef& SetOpSpecInfo(Check<Status>) {
        return *this;
    }
    template <typename Function>
    OpAICoreDef& SetParamGeneralize(Function) {
        return *this;
    }
    OpAICoreDef& AddConfig(const char* soc) { return AddConfig(soc, OpAICoreConfig()); }
    OpAICoreDef& AddConfig(const char* soc, const OpAICoreConfig& config) {
        if (soc == nullptr) return *this;
        configs.erase(soc);
        return configs.emplace(soc, config), *this;
    }

    gert::OpImplKernelRegistry::TilingKernelFunc tiling = nullptr;
    gert::OpImplKernelRegistry::TilingParseFunc tiling_parse = nullptr;
    std::map<std::string, OpAICoreConfig> configs;
};

// What serves the communicators of an operator's kernels; on the host the same for all.
enum HcclServerType : uint32_t { AICPU = 0, AICORE, CCU, MAX };

// An operator whose kernels communicate: which of its attrs name the communicators, in the order of
// GetHcclContext's.
class OpMC2Def {
  public:
    OpMC2Def& HcclGroup(const char* attr) { return groups.assign(1, attr), *this; }
    OpMC2Def& HcclGroup(std::vector<const char*> attrs) {
        return groups.assign(attrs.begin(), attrs.end()), *this;
    }
    void HcclServerType(enum HcclServerType, const char* = nullptr) {}
    std::vector<std::string> groups;
};

class OpDef {
  public:
    explicit OpDef(const char* type) : type(type) {}

    OpParamDef& Input(const char* name) { return inputs[name]; }
    OpParamDef& Output(const char* name) { return outputs[name]; }
    OpAttrDef& Attr(const char* name) {
        for (OpAttrDef& attr : attrs) {
            if (attr.name == name) return attr;
        }
        return attrs.emplace_back(name);
    }
    OpDef& SetInferShape(gert::OpImplKernelRegistry::InferShapeKernelFunc function) {
        return infer_shape = function, *this;
    }
    OpDef& SetInferShapeRange(gert::OpImplKernelRegistry::InferShapeRangeKernelFunc) { return *this; }
    OpDef& SetInferDataType(gert::OpImplKernelRegistry::InferDataTypeKernelFunc function) {
        return infer_dtype = function, *this;
    }
    template <typename Option>
    OpDef& FormatMatchMode(Option) {
        return *this;
    }
    OpDef& EnableFallBack() { return *this; }
    template <typename Category>
    OpDef& Comment(Category, const char*) {
        return *this;
    }
    OpAICoreDef& AICore() { return ai_core; }
    OpMC2Def& MC2() { return mc2; }

    std::string type;
    OpParamDefs inputs;
    OpParamDefs outputs;
    std::deque<OpAttrDef> attrs;
    gert::OpImplKernelRegistry::InferShapeKernelFunc infer_shape = nullptr;
    gert::OpImplKernelRegistry::InferDataTypeKernelFunc infer_dtype = nullptr;
    OpAICoreDef ai_core;
    OpMC2Def mc2;

    // Every definition of the package's sources, by operator type. They live as long as the library: copies
    // of them, and their ends, would be the larger part of the code of a source.
    static std::map<std::string, const OpDef*>& all() {
        static std::map<std::string, const OpDef*> definitions;
        return definitions;
    }
};

// OP_ADD(Type): keeps the definition, and its functions where the functions of any operator are.
template <typename Definition>
bool add_definition(const char* type) {
    const OpDef& kept = *(OpDef::all()[type] = new Definition(type));
    gert::OpFunctions& functions = gert::OpFunctions::all()[type];
    if (kept.ai_core.tiling != nullptr) functions.tiling = kept.ai_core.tiling;
    if (kept.infer_shape != nullptr) functions.infer_shape = kept.infer_shape;
    if (kept.infer_dtype != nullptr) functions.infer_dtype = kept.infer_dtype;
    if (kept.ai_core.tiling_parse != nullptr) functions.tiling_parse = kept.ai_core.tiling_parse;
    return true;
}

}  // namespace ops

// What follows the type, as in OP_ADD(Type, optiling::CompileInfo), is not looked at: as with CANN it may
// name what this source does not declare.
#define OP_ADD(OpType, ...) \
    [[maybe_unused]] static const bool ascend_graph_added_##OpType = ::ops::add_definition<OpType>(#OpType)

#endif  // ASCEND_GRAPH_REGISTER_OP_DEF_REGISTRY_H
