// Tiling structures, as operator projects define them: one class for the host, which sets the fields, and for
// the kernel, which reads them as the members of a plain structure.
//
//   BEGIN_TILING_DATA_DEF(AddCustomTilingData)
//   TILING_DATA_FIELD_DEF(uint32_t, totalLength);
//   END_TILING_DATA_DEF;
//   REGISTER_TILING_DATA_CLASS(AddCustom, AddCustomTilingData)
#ifndef ASCENDC_HOST_REGISTER_TILINGDEF_H
#define ASCENDC_HOST_REGISTER_TILINGDEF_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ascendc_host {

// Structures whose fields are to be written somewhere else too, since SetDataPtr named the place.
struct TilingCopy {
    const char* begin;
    size_t size;
    char* data;
};
inline std::vector<TilingCopy>& tiling_copies() {
    static thread_local std::vector<TilingCopy> copies;
    return copies;
}
// Copies of what lies at an address end there: it has become another structure.
inline void forget_tiling_data(const void* begin) {
    auto& copies = tiling_copies();
    for (size_t i = copies.size(); i-- > 0;) {
        const auto* at = static_cast<const char*>(begin);
        if (at >= copies[i].begin && at < copies[i].begin + copies[i].size)
            copies.erase(copies.begin() + static_cast<std::ptrdiff_t>(i));
    }
}
inline void forget_tiling_data() { tiling_copies().clear(); }
// Part of a structure, or of one inside it, has been written.
inline void tiling_data_written(const void* part, size_t size) {
    const auto* at = static_cast<const char*>(part);
    for (const TilingCopy& one : tiling_copies())
        if (at >= one.begin && at < one.begin + one.size) std::memcpy(one.data + (at - one.begin), at, size);
}

}  // namespace ascendc_host

namespace optiling {

// What a function that takes any tiling structure gets, as TilingDef&: its bytes, and what is done with them.
class TilingDef {
  public:
    TilingDef(void* data, size_t size) : data_(data), size_(size) {}

    void SaveToBuffer(void* buffer, size_t capacity) const {
        if (buffer != nullptr && capacity >= size_) std::memcpy(buffer, data_, size_);
    }
    size_t GetDataSize() const { return size_; }
    // From now on what is set is written to `data` at once.
    void SetDataPtr(void* data) {
        ::ascendc_host::forget_tiling_data(data_);
        if (data != nullptr)
            ::ascendc_host::tiling_copies().push_back(
                {static_cast<const char*>(data_), size_, static_cast<char*>(data)});
    }

  private:
    void* data_;
    size_t size_;
};

}  // namespace optiling

namespace ascendc_host {

// The TilingDef of a structure. No base class of it, for kernels read the structure as it lies in memory.
inline optiling::TilingDef& tiling_view(void* data, size_t size) {
    static thread_local std::map<const void*, optiling::TilingDef> views;
    return views.insert_or_assign(data, optiling::TilingDef(data, size)).first->second;
}

// The class itself is the data: it is written to a buffer as its bytes.
template <typename Tiling>
class TilingBytes {
  public:
    TilingBytes() {
        if (!tiling_copies().empty()) forget_tiling_data(this);
    }
    operator optiling::TilingDef&() { return tiling_view(static_cast<Tiling*>(this), sizeof(Tiling)); }
    void SaveToBuffer(void* buffer, size_t capacity) const { bytes().SaveToBuffer(buffer, capacity); }
    size_t GetDataSize() const { return sizeof(Tiling); }
    void SetDataPtr(void* data) { bytes().SetDataPtr(data); }

  private:
    optiling::TilingDef bytes() const {
        return {const_cast<Tiling*>(static_cast<const Tiling*>(this)), sizeof(Tiling)};
    }
};

template <typename... T>
using IfNumbers = std::enable_if_t<(std::is_arithmetic<T>::value && ...)>;

template <typename Tiling, int... index, typename... T>
void assign_fields(Tiling& tiling, std::integer_sequence<int, index...>, T... values) {
    (tiling.ascendc_assign(std::integral_constant<int, index + 1>(), values), ...);
}

// One field as a kernel declares it; `count` is the length of an array, 0 where there is none.
struct TilingField {
    const char* type = nullptr;
    const char* name = nullptr;
    size_t count = 0;
};

// A number's type by its size, whatever the author called it.
template <typename T>
constexpr const char* number_name() {
    if (std::is_same<T, bool>::value) return "bool";
    if (std::is_floating_point<T>::value) return sizeof(T) == 4 ? "float" : "double";
    const char* const names[] = {"int8_t",  "int16_t",  "int32_t",  "int64_t",
                                 "uint8_t", "uint16_t", "uint32_t", "uint64_t"};
    const int size = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return names[size + (std::is_unsigned<T>::value ? 4 : 0)];
}

// The registered structures, which the build of an operator package declares again for the kernels.
struct TilingClass {
    const char* op_type;
    const char* name;
    size_t size;
    int field_count;
    TilingField (*field)(int index);  // from 1 on; without a name where there is none
    const TilingClass* next;
};
inline const TilingClass*& tiling_classes() {
    static const TilingClass* first = nullptr;
    return first;
}

template <typename Tiling, int... index>
TilingField field_of(int wanted, std::integer_sequence<int, index...>) {
    TilingField found;
    ((index + 1 == wanted ? void(found = Tiling::ascendc_field(std::integral_constant<int, index + 1>()))
                          : void()),
     ...);
    return found;
}

template <typename Tiling>
struct RegisteredTiling {
    TilingClass one;
    RegisteredTiling(const char* op_type, const char* name)
        : one{op_type,
              name,
              sizeof(Tiling),
              Tiling::ascendc_field_count,
              [](int i) {
                  return field_of<Tiling>(i, std::make_integer_sequence<int, Tiling::ascendc_field_count>());
              },
              tiling_classes()} {
        tiling_classes() = &one;
    }
};

}  // namespace ascendc_host

// Fields are numbered by __COUNTER__ from the beginning of their structure. Structures are aligned to 8
// bytes, as on the device.
#define BEGIN_TILING_DATA_DEF(Class)                                                                     \
    class alignas(8) Class : public ::ascendc_host::TilingBytes<Class> {                                 \
        static constexpr int ascendc_first_field = __COUNTER__;                                          \
                                                                                                         \
      public:                                                                                            \
        Class() = default;                                                                               \
        /* The first fields in their order, as kernels fill the structure that they have of it. */       \
        template <typename First, typename Second, typename... More,                                     \
                  typename = ::ascendc_host::IfNumbers<First, Second, More...>>                          \
        Class(First first, Second second, More... more) {                                                \
            ::ascendc_host::assign_fields(*this, std::make_integer_sequence<int, 2 + sizeof...(More)>(), \
                                          first, second, more...);                                       \
        }                                                                                                \
        template <int index>                                                                             \
        static constexpr ::ascendc_host::TilingField ascendc_field(std::integral_constant<int, index>) { \
            return {};                                                                                   \
        }
// `index` is used more than once: it is counted where it is made an argument.
#define ASCENDC_TILING_FIELD_AT(index, type, name, count)                                            \
    static constexpr ::ascendc_host::TilingField ascendc_field(std::integral_constant<int, index>) { \
        return {type, #name, count};                                                                 \
    }                                                                                                \
    template <typename Value>                                                                        \
    void ascendc_assign(std::integral_constant<int, index>, Value value) {                           \
        this->name = value;                                                                          \
    }
#define ASCENDC_TILING_FIELD(type, name, count) \
    ASCENDC_TILING_FIELD_AT(__COUNTER__ - ascendc_first_field, type, name, count)
#define TILING_DATA_FIELD_DEF(type, name)                               \
  public:                                                               \
    type name = 0;                                                      \
    void set_##name(type ascendc_value) {                               \
        this->name = ascendc_value;                                     \
        ::ascendc_host::tiling_data_written(&this->name, sizeof(type)); \
    }                                                                   \
    type get_##name() const { return name; }                            \
    ASCENDC_TILING_FIELD(::ascendc_host::number_name<type>(), name, 0)  \
    static_assert(std::is_arithmetic<type>::value, #name " is a number");
#define TILING_DATA_FIELD_DEF_ARR(type, size, name)                             \
  public:                                                                       \
    type name[size] = {};                                                       \
    void set_##name(const type* ascendc_values) {                               \
        std::memcpy(this->name, ascendc_values, sizeof(type) * (size));         \
        ::ascendc_host::tiling_data_written(this->name, sizeof(type) * (size)); \
    }                                                                           \
    type* get_##name() { return name; }                                         \
    const type* get_##name() const { return name; }                             \
    ASCENDC_TILING_FIELD(::ascendc_host::number_name<type>(), name, size)       \
    static_assert(std::is_arithmetic<type>::value, #name " is an array of numbers");
#define TILING_DATA_FIELD_DEF_STRUCT(type, name) \
  public:                                        \
    type name;                                   \
    ASCENDC_TILING_FIELD(#type, name, 0)         \
    static_assert(std::is_class<type>::value, #name " is a structure");
#define END_TILING_DATA_DEF                                                           \
  public:                                                                             \
    static constexpr int ascendc_field_count = __COUNTER__ - ascendc_first_field - 1; \
    }                                                                                 \
    ;

// Names the structure by its operator type, for the build of an operator package.
#define REGISTER_TILING_DATA_CLASS(OpType, Class)                                                      \
    using ascendc_tiling_of_##OpType = Class;                                                          \
    [[maybe_unused]] static const ::ascendc_host::RegisteredTiling<Class> ascendc_registered_##OpType( \
        #OpType, #Class);

#endif  // ASCENDC_HOST_REGISTER_TILINGDEF_H
