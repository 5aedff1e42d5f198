// optiling::TilingDef: the structure of tiling data that tiling functions of packages that CANN built fill.
//
// The members stand where the header has them that such libraries were compiled with: its accessors are
// inline.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "acl/abi.h"

#define EXPORTED __attribute__((visibility("default")))

ACL_EXPORT void DlogRecord(int32_t module, int32_t level, const char* format, ...);

namespace optiling {

constexpr int32_t kErrorLevel = 3;

struct FieldInfo {
    const char *dtype, *name;
    size_t length;
    const char* structure;
    size_t structure_size;
    const char* kind;  // "0" for a number, "1" for an array, "2" for a structure
};

class EXPORTED TilingDef {
  public:
    void SaveToBuffer(void* buffer, size_t capacity);
    size_t GetDataSize() const;
    void SetDataPtr(void* data);
    void CheckAlignAndGenPlaceHolder(const char* name, size_t size);
    void InitData();
    void GeLogError(const std::string& text) const;

    const std::vector<FieldInfo>& fields() const { return fields_; }
    const char* class_name() const { return class_name_ == nullptr ? "" : class_name_; }

  private:
    void place_structures();

    std::vector<FieldInfo> fields_;
    uint8_t* data_ = nullptr;
    size_t size_ = 0;
    const char* class_name_ = nullptr;
    std::vector<std::pair<void*, size_t>> structures_;  // a TilingDef and its offset
    size_t structure_size_ = 0;
    bool is_elsewhere_ = false;
    uint32_t features_ = 0;
    uint8_t reserved_[128] = {};
};
static_assert(sizeof(TilingDef) == 24 + 3 * 8 + 24 + 8 + 8 + 128);

size_t TilingDef::GetDataSize() const { return size_; }

void TilingDef::GeLogError(const std::string& text) const { DlogRecord(0, kErrorLevel, "%s", text.c_str()); }

// Makes the next field begin at a multiple of its size.
void TilingDef::CheckAlignAndGenPlaceHolder(const char* name, size_t size) {
    if (size == 0 || size_ % size == 0) return;
    const size_t padding = size - size_ % size;
    fields_.push_back({"uint8_t", name, padding, nullptr, 0, "1"});
    size_ += padding;
}

void TilingDef::InitData() {
    data_ = new uint8_t[size_]();
    place_structures();
}

void TilingDef::SetDataPtr(void* data) {
    if (!is_elsewhere_) delete[] data_;
    is_elsewhere_ = true;
    data_ = static_cast<uint8_t*>(data);
    place_structures();
}

void TilingDef::place_structures() {
    for (const auto& [structure, offset] : structures_)
        static_cast<TilingDef*>(structure)->SetDataPtr(data_ + offset);
}

// Data that are elsewhere are where they belong already.
void TilingDef::SaveToBuffer(void* buffer, size_t capacity) {
    if (is_elsewhere_) return;
    if (buffer == nullptr || capacity < size_) {
        GeLogError(std::string(class_name_ == nullptr ? "TilingDef" : class_name_) +
                   ": SaveToBuffer has room for " + std::to_string(capacity) + " bytes; expected at least " +
                   std::to_string(size_));
        return;
    }
    std::memcpy(buffer, data_, size_);
}

using TilingDataConstructor = std::shared_ptr<TilingDef> (*)();

class EXPORTED CTilingDataClassFactory {
  public:
    static CTilingDataClassFactory& GetInstance();
    void RegisterTilingData(const char* op_type, TilingDataConstructor create);
    std::shared_ptr<TilingDef> CreateTilingDataInstance(const char* op_type);
    std::vector<std::string> op_types();

  private:
    std::mutex mutex_;
    std::map<std::string, TilingDataConstructor> by_type_;
};

CTilingDataClassFactory& CTilingDataClassFactory::GetInstance() {
    static auto& factory = *new CTilingDataClassFactory;
    return factory;
}

void CTilingDataClassFactory::RegisterTilingData(const char* op_type, TilingDataConstructor create) {
    if (op_type == nullptr) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    by_type_[op_type] = create;
}

std::shared_ptr<TilingDef> CTilingDataClassFactory::CreateTilingDataInstance(const char* op_type) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_type_.find(op_type == nullptr ? "" : op_type);
    return found == by_type_.end() || found->second == nullptr ? nullptr : found->second();
}

std::vector<std::string> CTilingDataClassFactory::op_types() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::string> types;
    for (const auto& [op_type, create] : by_type_) types.push_back(op_type);
    return types;
}

}  // namespace optiling

// Tells `sink` each field of the structures that loaded libraries registered: op type, structure, the
// structure's size, the field's kind, type, name and length. A structure without fields has one of no kind.
ACL_EXPORT void ascendgraphTilingStructures(void* context,
                                            void (*sink)(void*, const char*, const char*, size_t, const char*,
                                                         const char*, const char*, size_t)) {
    optiling::CTilingDataClassFactory& factory = optiling::CTilingDataClassFactory::GetInstance();
    for (const std::string& op_type : factory.op_types()) {
        const std::shared_ptr<optiling::TilingDef> one = factory.CreateTilingDataInstance(op_type.c_str());
        if (one == nullptr) continue;
        const auto tell = [&](const char* kind, const char* type, const char* name, size_t length) {
            sink(context, op_type.c_str(), one->class_name(), one->GetDataSize(), kind, type, name, length);
        };
        if (one->fields().empty()) tell("", "", "", 0);
        for (const optiling::FieldInfo& field : one->fields())
            tell(field.kind, *field.kind == '2' ? field.structure : field.dtype, field.name, field.length);
    }
}
