// Scalar helpers, memory filling, and registers that code sets without needing them here.
#ifndef ASCENDC_HOST_BASIC_API_SCALAR_H
#define ASCENDC_HOST_BASIC_API_SCALAR_H

#include "ascendc_host/basic_api/copy.h"

namespace AscendC {

// Bits of `value` that equal `bit`, the first such bit from below (-1 for none), leading zeros.
template <int bit>
int64_t ScalarGetCountOfValue(uint64_t value) {
    return __builtin_popcountll(bit == 0 ? ~value : value);
}
template <int bit>
int64_t GetBitCount(uint64_t value) {
    return ScalarGetCountOfValue<bit>(value);
}
template <int bit>
int64_t ScalarGetSFFValue(uint64_t value) {
    const uint64_t searched = bit == 0 ? ~value : value;
    return searched == 0 ? -1 : __builtin_ctzll(searched);
}
template <int bit>
int64_t GetSFFValue(uint64_t value) {
    return ScalarGetSFFValue<bit>(value);
}
inline int64_t ScalarCountLeadingZero(uint64_t value) { return value == 0 ? 64 : __builtin_clzll(value); }
inline int64_t CountLeadingZero(uint64_t value) { return ScalarCountLeadingZero(value); }
// Bits below the sign that equal it.
inline int64_t CountBitsCntSameAsSignBit(int64_t value) { return __builtin_clrsbll(value); }
// The bits of a value as a number, from the lowest on; the others are 0.
template <typename T, typename U>
U GetScalarBitcodeValue(T value) {
    U bits{};
    std::memcpy(&bits, &value, std::min(sizeof(T), sizeof(U)));
    return bits;
}
template <typename T>
uint64_t GetScalarBitcodeValue(T value) {
    return GetScalarBitcodeValue<T, uint64_t>(value);
}

// Fills `size` elements of global memory.
template <typename T>
void InitOutput(GlobalTensor<T> tensor, uint32_t size, T value = T(0), Where where = Where()) {
    ascendc_host::require_whole_bytes<T>();
    ascendc_host::enter(where);
    auto* to = reinterpret_cast<T*>(
        tensor.use_bytes(0, uint64_t(size) * sizeof(T), "InitOutput", "the tensor", where));
    std::fill_n(to, size, value);
}
template <typename T>
void InitGlobalMemory(GlobalTensor<T>& tensor, const uint64_t size, const T value, Where where = Where()) {
    InitOutput<T>(tensor, static_cast<uint32_t>(size), value, where);
}
template <typename T>
void Fill(GlobalTensor<T>& tensor, const uint64_t size, const T value, Where where = Where()) {
    InitOutput<T>(tensor, static_cast<uint32_t>(size), value, where);
}

// A control register as bits, kept and given back; no bit of it changes what is computed here.
template <int8_t first, int8_t last>
void SetCtrlSpr(int64_t value) {
    const uint64_t bits = (last - first == 63 ? ~uint64_t{0} : (uint64_t{1} << (last - first + 1)) - 1)
                          << first;
    auto& control = ascendc_host::current().control;
    control = static_cast<int64_t>((static_cast<uint64_t>(control) & ~bits) |
                                   ((static_cast<uint64_t>(value) << first) & bits));
}
template <int8_t first, int8_t last>
int64_t GetCtrlSpr() {
    const uint64_t mask = last - first == 63 ? ~uint64_t{0} : (uint64_t{1} << (last - first + 1)) - 1;
    return static_cast<int64_t>((static_cast<uint64_t>(ascendc_host::current().control) >> first) & mask);
}
template <int8_t first, int8_t last>
void ResetCtrlSpr() {
    SetCtrlSpr<first, last>(0);
}

}  // namespace AscendC

// The same bits as the device's compiler names their counts.
inline int64_t bcnt0(uint64_t value) { return AscendC::ScalarGetCountOfValue<0>(value); }
inline int64_t bcnt1(uint64_t value) { return AscendC::ScalarGetCountOfValue<1>(value); }
inline int64_t sff0(uint64_t value) { return AscendC::ScalarGetSFFValue<0>(value); }
inline int64_t sff1(uint64_t value) { return AscendC::ScalarGetSFFValue<1>(value); }
inline int64_t clz(uint64_t value) { return AscendC::ScalarCountLeadingZero(value); }
inline int64_t sflbits(int64_t value) { return AscendC::CountBitsCntSameAsSignBit(value); }

// The device compiler knows these for scalars of any two types, without a namespace. The empty pack makes
// them worse than a kernel's own functions of the same form, as the compiler's are.
template <typename T, typename U, typename... None, typename = std::enable_if_t<sizeof...(None) == 0>>
constexpr std::common_type_t<T, U> min(T a, U b, None...) {
    return b < a ? static_cast<std::common_type_t<T, U>>(b) : static_cast<std::common_type_t<T, U>>(a);
}
template <typename T, typename U, typename... None, typename = std::enable_if_t<sizeof...(None) == 0>>
constexpr std::common_type_t<T, U> max(T a, U b, None...) {
    return a < b ? static_cast<std::common_type_t<T, U>>(b) : static_cast<std::common_type_t<T, U>>(a);
}

#endif  // ASCENDC_HOST_BASIC_API_SCALAR_H
