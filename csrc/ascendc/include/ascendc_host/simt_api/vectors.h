// Short vectors of threads: two, three or four elements side by side, aligned as a load of all of them asks;
// values as bits.
#ifndef ASCENDC_HOST_SIMT_API_VECTORS_H
#define ASCENDC_HOST_SIMT_API_VECTORS_H

#include "ascendc_host/internal/numbers.h"

#define ASCENDC_VECTORS(T, name)                                          \
    struct alignas(2 * sizeof(T)) name##2 { T x, y; };                    \
    struct alignas(4 * sizeof(T)) name##3 { T x, y, z; };                 \
    struct alignas(4 * sizeof(T)) name##4 { T x, y, z, w; };              \
    constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }         \
    constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
    constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
ASCENDC_VECTORS(signed char, char)
ASCENDC_VECTORS(unsigned char, uchar)
ASCENDC_VECTORS(int16_t, short)
ASCENDC_VECTORS(uint16_t, ushort)
ASCENDC_VECTORS(int32_t, int)
ASCENDC_VECTORS(uint32_t, uint)
ASCENDC_VECTORS(int32_t, long)
ASCENDC_VECTORS(uint32_t, ulong)
ASCENDC_VECTORS(int64_t, longlong)
ASCENDC_VECTORS(uint64_t, ulonglong)
ASCENDC_VECTORS(float, float)
#undef ASCENDC_VECTORS

struct alignas(4) half2 {
    half x, y;
};
struct alignas(4) bfloat16x2_t {
    bfloat16_t x, y;
};

namespace ascendc_host {

// A value as the lowest bits of a word, and back.
template <typename T>
uint64_t as_bits(T value) {
    static_assert(sizeof(T) <= sizeof(uint64_t) && std::is_trivially_copyable<T>::value, "at most 64 bits");
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}
template <typename T>
T from_bits(uint64_t bits) {
    T value;
    std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
    return value;
}

template <typename T, typename... Ts>
constexpr bool is_one_of = (std::is_same<T, Ts>::value || ...);

}  // namespace ascendc_host

#endif  // ASCENDC_HOST_SIMT_API_VECTORS_H
