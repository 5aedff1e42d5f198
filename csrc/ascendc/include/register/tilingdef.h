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
#include <type_traits>

namespace ascendc_host {

// The class itself is the data: it is written to a buffer as its bytes.
template <typename Tiling>
class TilingBytes {
  public:
    void SaveToBuffer(void* buffer, size_t capacity) const {
        if (buffer != nullptr && capacity >= sizeof(Tiling))
            std::memcpy(buffer, static_cast<const Tiling*>(this), sizeof(Tiling));
    }
    size_t GetDataSize() const { return sizeof(Tiling); }
};

}  // namespace ascendc_host

#define BEGIN_TILING_DATA_DEF(Class)                          \
    class Class : public ::ascendc_host::TilingBytes<Class> { \
      public:
#define TILING_DATA_FIELD_DEF(type, name)         \
  public:                                         \
    type name = 0;                                \
    void set_##name(type value) { name = value; } \
    type get_##name() const { return name; }      \
    static_assert(std::is_arithmetic<type>::value, #name " is a number")
#define TILING_DATA_FIELD_DEF_ARR(type, size, name)                                           \
  public:                                                                                     \
    type name[size] = {};                                                                     \
    void set_##name(const type* values) { std::memcpy(name, values, sizeof(type) * (size)); } \
    const type* get_##name() const { return name; }                                           \
    static_assert(std::is_arithmetic<type>::value, #name " is an array of numbers")
#define TILING_DATA_FIELD_DEF_STRUCT(type, name) \
  public:                                        \
    type name;                                   \
    static_assert(std::is_class<type>::value, #name " is a structure")
#define END_TILING_DATA_DEF }

// Names the structure by its operator type, for the build of an operator package.
#define REGISTER_TILING_DATA_CLASS(OpType, Class) using ascendc_tiling_of_##OpType = Class;

#endif  // ASCENDC_HOST_REGISTER_TILINGDEF_H
