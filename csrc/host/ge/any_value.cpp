// ge::AnyValue, ge::GetTypeId and ge::RealPath, as libraries of operator packages that CANN built call them.
#include <limits.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "ge/abi.h"

namespace ge {

// A value of any type that a word holds, or points to. Its functions but these two are in the header that the
// caller was compiled with; the operations are the caller's, too.
class GE_EXPORT AnyValue {
  public:
    AnyValue(AnyValue&& other) noexcept;
    AnyValue& operator=(const AnyValue& other);

  private:
    enum class Operation : uint32_t { kClear, kAddress, kClone, kMove, kType };

    void* word_ = nullptr;
    void (*operate_)(Operation operation, const AnyValue* value, void* result) = nullptr;
};
static_assert(sizeof(AnyValue) == 2 * sizeof(void*));

AnyValue::AnyValue(AnyValue&& other) noexcept {
    if (other.operate_ == nullptr) return;
    other.operate_(Operation::kMove, &other, this);
    other.operate_ = nullptr;
}

AnyValue& AnyValue::operator=(const AnyValue& other) {
    if (&other == this) return *this;
    if (operate_ != nullptr) operate_(Operation::kClear, nullptr, this);
    if (other.operate_ != nullptr) other.operate_(Operation::kClone, &other, this);
    return *this;
}

// Numbers for types; libraries compare them, and each of them asks here.
template <typename T>
GE_EXPORT void* GetTypeId();

#define TYPE_ID(type, number)                              \
    template <>                                            \
    GE_EXPORT void* GetTypeId<type>() {                    \
        return reinterpret_cast<void*>(uintptr_t{number}); \
    }
TYPE_ID(bool, 1)
TYPE_ID(std::string, 2)
TYPE_ID(float, 3)
TYPE_ID(int64_t, 4)
TYPE_ID(std::vector<float>, 14)
TYPE_ID(std::vector<int64_t>, 16)
#undef TYPE_ID

size_t AscendString::Hash() const { return std::hash<std::string>()(GetString()); }

// The path without links, "" for one that does not exist.
GE_EXPORT std::string RealPath(const char* path) {
    char found[PATH_MAX];
    return path == nullptr || realpath(path, found) == nullptr ? std::string() : std::string(found);
}

}  // namespace ge
