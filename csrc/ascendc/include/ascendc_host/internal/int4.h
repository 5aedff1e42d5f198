// Integers of 4 bits, two to a byte: the first of them in the byte's lower half.
#ifndef ASCENDC_HOST_INTERNAL_INT4_H
#define ASCENDC_HOST_INTERNAL_INT4_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace AscendC {

// One such integer, -8 to 7: a variable of it has a byte to itself, in tensors it has half of one.
struct int4b_t {
    uint8_t storage = 0;

    int4b_t() = default;
    template <typename T, typename = std::enable_if_t<std::is_integral<T>::value>>
    constexpr int4b_t(T value) : storage(static_cast<uint8_t>(value & 15)) {}
    constexpr operator int8_t() const { return static_cast<int8_t>((storage ^ 8) - 8); }
};

// Integers of 2 bits and of 1, which the host does not have: kernels compare their types with these, and a
// tensor of them does not compile.
struct int2b_t;
struct uint1b_t;

template <typename T>
struct SizeOfBits {
    static constexpr size_t value = sizeof(T) * 8;
};
template <>
struct SizeOfBits<int4b_t> {
    static constexpr size_t value = 4;
};

}  // namespace AscendC

namespace ascendc_host {

// Whether elements of a tensor share bytes.
template <typename T>
constexpr bool is_packed = std::is_same<std::remove_cv_t<T>, AscendC::int4b_t>::value;
// For what works on elements that have bytes of their own.
template <typename T>
constexpr void require_whole_bytes() {
    static_assert(!is_packed<T>,
                  "this is not for int4b_t, which has Cast alone of the vector instructions; "
                  "ReinterpretCast<int8_t>() has two of them in each element");
}
// What `count` elements of a tensor take up, and how many lie in `bytes`.
template <typename T>
constexpr uint64_t bytes_of(uint64_t count) {
    return is_packed<T> ? (count + 1) / 2 : count * sizeof(T);
}
template <typename T>
constexpr uint64_t elements_of(uint64_t bytes) {
    return is_packed<T> ? bytes * 2 : bytes / sizeof(T);
}

// Element `index` of those that begin at `from`, and a new value for it.
template <typename T>
T element(const void* from, uint64_t index) {
    const auto* bytes = static_cast<const uint8_t*>(from);
    if constexpr (is_packed<T>) {
        return T(bytes[index / 2] >> index % 2 * 4);
    } else {
        T value;
        std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
        return value;
    }
}
template <typename T>
void set_element(void* to, uint64_t index, T value) {
    auto* bytes = static_cast<uint8_t*>(to);
    if constexpr (is_packed<T>) {
        const unsigned shift = index % 2 * 4;
        bytes[index / 2] = static_cast<uint8_t>((bytes[index / 2] & ~(15u << shift)) |
                                                unsigned(value.storage & 15) << shift);
    } else {
        std::memcpy(bytes + index * sizeof(T), &value, sizeof(T));
    }
}
// Elements from `first` on, in a type to compute in.
template <typename W>
void unpack(const void* from, uint64_t first, uint64_t count, W* to) {
    for (uint64_t i = 0; i < count; ++i)
        to[i] = static_cast<W>(static_cast<int8_t>(element<AscendC::int4b_t>(from, first + i)));
}

}  // namespace ascendc_host

#endif  // ASCENDC_HOST_INTERNAL_INT4_H
