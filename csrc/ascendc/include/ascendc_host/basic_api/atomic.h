// Atomic operations of scalars in global memory, which dav-3510 has.
#ifndef ASCENDC_HOST_BASIC_API_ATOMIC_H
#define ASCENDC_HOST_BASIC_API_ATOMIC_H

#include "ascendc_host/basic_api/arithmetic.h"

namespace ascendc_host {

template <size_t bytes>
using BitsOf = std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>;

// *address = f(*address), which no other thread or block comes between; what was there before.
template <typename T, typename F>
T exchange_atomically(volatile T* address, const char* api, const Where& where, const F& f) {
    using Bits = BitsOf<sizeof(T)>;
    static_assert(sizeof(T) == sizeof(Bits) && std::is_trivially_copyable<T>::value, "2, 4 or 8 bytes");
    if (reinterpret_cast<uintptr_t>(address) % sizeof(T) != 0)
        fail(current(), where,
             format("%s: the address %p is not a multiple of %zu", api, const_cast<T*>(address), sizeof(T)));
    auto* const at = reinterpret_cast<volatile Bits*>(address);
    Bits before = __atomic_load_n(at, __ATOMIC_RELAXED), after;
    T value;
    do {
        std::memcpy(static_cast<void*>(&value), &before, sizeof value);
        const T next = f(value);
        std::memcpy(&after, &next, sizeof after);
    } while (!__atomic_compare_exchange_n(at, &before, after, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return value;
}

}  // namespace ascendc_host

#if __NPU_ARCH__ == 3510
namespace AscendC {
namespace detail {

// Other blocks get on meanwhile: a block may ask again and again for what one of them is to write.
template <typename T, typename F>
T change_scalar(__gm__ T* address, const char* api, const Where& where, const F& f) {
    ascendc_host::enter(where);
    ascendc_host::poll();
    return ascendc_host::exchange_atomically(address, api, where, f);
}

}  // namespace detail

// Each returns what was there before.
#define ASCENDC_SCALAR_ATOMIC(Name, types, result)                                               \
    template <typename T>                                                                        \
    T Name(__gm__ T* address, detail::Same<T> value, Where where = Where()) {                    \
        static_assert(types, #Name ": no such type of elements");                                \
        return detail::change_scalar(address, #Name, where, [&](T old) -> T { return result; }); \
    }
ASCENDC_SCALAR_ATOMIC(AtomicAdd, (detail::is_one_of<T, int32_t, uint32_t, int64_t, uint64_t, float>),
                      detail::add_op()(old, value))
ASCENDC_SCALAR_ATOMIC(AtomicMax, (detail::is_one_of<T, int32_t, uint32_t, int64_t, uint64_t, float>),
                      old < value ? value : old)
ASCENDC_SCALAR_ATOMIC(AtomicMin, (detail::is_one_of<T, int32_t, uint32_t, int64_t, uint64_t, float>),
                      value < old ? value : old)
ASCENDC_SCALAR_ATOMIC(AtomicExch, (detail::is_one_of<T, uint32_t, uint64_t>), (static_cast<void>(old), value))
#undef ASCENDC_SCALAR_ATOMIC
// Where it is value1, it becomes value2.
template <typename T>
T AtomicCas(__gm__ T* address, detail::Same<T> value1, detail::Same<T> value2, Where where = Where()) {
    static_assert(detail::is_one_of<T, uint32_t, uint64_t>, "AtomicCas: uint32_t or uint64_t");
    return detail::change_scalar(address, "AtomicCas", where,
                                 [&](T old) { return old == value1 ? value2 : old; });
}

}  // namespace AscendC
#endif

#endif  // ASCENDC_HOST_BASIC_API_ATOMIC_H
