// The elements that functions take on dav-2201, as their pages list them. The device's compiler has no
// instruction for others. dav-3510 takes more, and they are not checked there. int4b_t has a rule of its own.
#ifndef ASCENDC_HOST_INTERNAL_ELEMENT_TYPES_H
#define ASCENDC_HOST_INTERNAL_ELEMENT_TYPES_H

#include <type_traits>

#include "ascendc_host/internal/int4.h"

namespace AscendC {
namespace detail {

template <typename T, typename... Allowed>
constexpr bool is_one_of = (std::is_same<T, Allowed>::value || ...);

}  // namespace detail
}  // namespace AscendC

#define ASCENDC_ELEMENTS(Name, T, ...)                                                                    \
    static_assert(                                                                                        \
        __NPU_ARCH__ == 3510 || ascendc_host::is_packed<T> || AscendC::detail::is_one_of<T, __VA_ARGS__>, \
        #Name " is for " #__VA_ARGS__ " on this SoC: use Cast or ReinterpretCast")
// For functions that a device's compiler takes of all elements, and that do not do them there. A kernel may
// hold such a call in a branch that it never takes.
#define ASCENDC_ELEMENTS_OF_CALL(Name, T, where, ...)                                                      \
    do {                                                                                                   \
        if constexpr (__NPU_ARCH__ != 3510 && !ascendc_host::is_packed<T> &&                               \
                      !AscendC::detail::is_one_of<T, __VA_ARGS__>)                                         \
            ascendc_host::fail(ascendc_host::current(), where,                                             \
                               #Name " is for " #__VA_ARGS__ " on this SoC: use Cast or ReinterpretCast"); \
    } while (false)
// A function that dav-2201 does not have.
#define ASCENDC_ONLY_DAV3510(Name, T, instead) \
    static_assert(sizeof(T) != 0 && __NPU_ARCH__ == 3510, #Name ": this SoC does not have it; " instead)

#define ASCENDC_FLOATS(Name, T) ASCENDC_ELEMENTS(Name, T, half, float)
#define ASCENDC_NUMBERS(Name, T) ASCENDC_ELEMENTS(Name, T, half, float, int16_t, int32_t)
#define ASCENDC_SHORTS(Name, T) ASCENDC_ELEMENTS(Name, T, half, float, int16_t)
#define ASCENDC_RELU(Name, T) ASCENDC_ELEMENTS(Name, T, half, float, int32_t)
#define ASCENDC_BITS(Name, T) ASCENDC_ELEMENTS(Name, T, int16_t, uint16_t)
#define ASCENDC_INTEGERS(Name, T) ASCENDC_ELEMENTS(Name, T, int16_t, uint16_t, int32_t, uint32_t)
#define ASCENDC_WORDS(Name, T) \
    ASCENDC_ELEMENTS(Name, T, half, bfloat16_t, int16_t, uint16_t, int32_t, uint32_t, float)
#define ASCENDC_WORDS_OF_CALL(Name, T, where) \
    ASCENDC_ELEMENTS_OF_CALL(Name, T, where, half, bfloat16_t, int16_t, uint16_t, int32_t, uint32_t, float)
#define ASCENDC_ATOMIC(Name, T)                                                                       \
    ASCENDC_ELEMENTS_OF_CALL(Name, T, ascendc_host::current().where, half, float, bfloat16_t, int8_t, \
                             int16_t, int32_t)
#define ASCENDC_NEG(Name, T) ASCENDC_ONLY_DAV3510(Name, T, "use Muls by -1")
#define ASCENDC_SUBS(Name, T) ASCENDC_ONLY_DAV3510(Name, T, "use Adds of the negative scalar")
#define ASCENDC_DIVS(Name, T) ASCENDC_ONLY_DAV3510(Name, T, "use Duplicate and Div")
#define ASCENDC_BITS_OF_SCALAR(Name, T) \
    ASCENDC_ONLY_DAV3510(Name, T, "use Duplicate and the form with two tensors")

#endif  // ASCENDC_HOST_INTERNAL_ELEMENT_TYPES_H
