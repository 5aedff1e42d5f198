// ArithProgression, or Arange: numbers that are one distance apart.
#ifndef ASCENDC_HOST_ADV_API_INDEX_ARITHPROGRESSION_H
#define ASCENDC_HOST_ADV_API_INDEX_ARITHPROGRESSION_H

#include "ascendc_host/basic_api/arithmetic.h"

namespace AscendC {

// firstValue + i * diffValue
template <typename T>
void ArithProgression(const LocalTensor<T>& dst, const detail::Same<T> firstValue,
                      const detail::Same<T> diffValue, int32_t count, Where where = Where()) {
    ASCENDC_NUMBERS(ArithProgression, T);
    ascendc_host::enter(where);
    const uint64_t bytes = uint64_t(count) * sizeof(T);
#if __NPU_ARCH__ == 3510
    constexpr bool by_scalars = false;
#else
    const bool by_scalars = bytes <= 32;  // the scalar unit writes a block's elements, wherever they lie
#endif
    T* to = detail::vector_operand(dst, bytes, "ArithProgression", "dst", where, by_scalars ? sizeof(T) : 32);
    for (int32_t i = 0; i < count; ++i) {
        to[i] = static_cast<T>(static_cast<detail::Wide<T>>(firstValue) +
                               static_cast<detail::Wide<T>>(diffValue) * static_cast<detail::Wide<T>>(i));
    }
}
template <typename T>
void Arange(const LocalTensor<T>& dst, const detail::Same<T> firstValue, const detail::Same<T> diffValue,
            int32_t count, Where where = Where()) {
    ArithProgression(dst, firstValue, diffValue, count, where);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_INDEX_ARITHPROGRESSION_H
