// Operators that prototype libraries of packages register when they are loaded: what REG_OP compiles to.
#include <map>
#include <mutex>
#include <string>

#include "acl/abi.h"
#include "ge/operator_impl.h"

namespace ge {

namespace {

using Create = std::function<Operator(const AscendString&)>;

struct Creators {
    std::mutex mutex;
    std::map<std::string, Create> by_type;
};

// Leaked: libraries may be loaded and asked until the process ends.
Creators& creators() {
    static auto& all = *new Creators;
    return all;
}

void add(std::vector<std::pair<AscendString, AscendString>>& list, const char* name, const char* kind) {
    list.emplace_back(name, kind);
}

}  // namespace

class TensorTypeImpl {
  public:
    std::vector<DataType> types;
};

TensorType::TensorType(const std::initializer_list<DataType>& types)
    : impl_(std::make_shared<TensorTypeImpl>(TensorTypeImpl{types})) {}

Operator::Operator(const AscendString&, const AscendString&) : impl_(std::make_shared<OperatorImpl>()) {}

// The kinds are those of GetRegisteredIrDef.
void Operator::InputRegister(const char* name, const char*) { add(impl_->inputs, name, "required"); }
void Operator::OptionalInputRegister(const char* name, const char*) { add(impl_->inputs, name, "optional"); }
void Operator::DynamicInputRegister(const char* name, uint32_t count, const char*, bool) {
    // Each call of create_dynamic_input_… adds so many; the declaration adds none.
    if (count == 0) add(impl_->inputs, name, "dynamic");
}
void Operator::OutputRegister(const char* name, const char*) { add(impl_->outputs, name, "required"); }
void Operator::DynamicOutputRegister(const char* name, uint32_t count, const char*, bool) {
    if (count == 0) add(impl_->outputs, name, "dynamic");
}
void Operator::RequiredAttrWithTypeRegister(const char* name, const char* type) {
    add(impl_->attrs, name, type);
}
void Operator::AttrRegister(const char* name, bool) { add(impl_->attrs, name, "VT_BOOL"); }
void Operator::AttrRegister(const char* name, int64_t) { add(impl_->attrs, name, "VT_INT"); }
void Operator::AttrRegister(const char* name, float) { add(impl_->attrs, name, "VT_FLOAT"); }
void Operator::AttrRegister(const char* name, const AscendString&) { add(impl_->attrs, name, "VT_STRING"); }
void Operator::AttrRegister(const char* name, const std::vector<bool>&) {
    add(impl_->attrs, name, "VT_LIST_BOOL");
}
void Operator::AttrRegister(const char* name, const std::vector<int64_t>&) {
    add(impl_->attrs, name, "VT_LIST_INT");
}
void Operator::AttrRegister(const char* name, const std::vector<float>&) {
    add(impl_->attrs, name, "VT_LIST_FLOAT");
}
void Operator::AttrRegister(const char* name, const std::vector<AscendString>&) {
    add(impl_->attrs, name, "VT_LIST_STRING");
}
void Operator::AttrRegister(const char* name, const std::vector<std::vector<int64_t>>&) {
    add(impl_->attrs, name, "VT_LIST_LIST_INT");
}
// Which dtypes a name stands for is in the package's header and in its description of kernels.
void Operator::DataTypeRegister(const char*, const TensorType&) {}

OperatorCreatorRegister::OperatorCreatorRegister(const char* type, const Create& create) {
    if (type == nullptr || !create) return;
    const std::lock_guard<std::mutex> lock(creators().mutex);
    creators().by_type.emplace(type, create);
}

}  // namespace ge

// Tells `sink` the inputs ('i'), outputs ('o') and attrs ('a') of an operator that a library registered;
// false for another operator.
ACL_EXPORT bool ascendgraphDescribeRegistered(const char* op_type, void* context,
                                              void (*sink)(void*, char, const char*, const char*)) {
    ge::Create create;
    {
        const std::lock_guard<std::mutex> lock(ge::creators().mutex);
        const auto found = ge::creators().by_type.find(op_type == nullptr ? "" : op_type);
        if (found == ge::creators().by_type.end()) return false;
        create = found->second;
    }
    const ge::Operator made = create(ge::AscendString(op_type));
    const ge::OperatorImpl* impl = made.description();
    if (impl == nullptr) return false;
    for (const auto& [name, kind] : impl->inputs) sink(context, 'i', name.GetString(), kind.GetString());
    for (const auto& [name, kind] : impl->outputs) sink(context, 'o', name.GetString(), kind.GetString());
    for (const auto& [name, kind] : impl->attrs) sink(context, 'a', name.GetString(), kind.GetString());
    return true;
}
