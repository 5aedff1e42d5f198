// Atomic operations of threads, and their loads and stores by a choice of caches, which the host does not
// have.
#ifndef ASCENDC_HOST_SIMT_API_MEMORY_H
#define ASCENDC_HOST_SIMT_API_MEMORY_H

#include "ascendc_host/basic_api/atomic.h"
#include "ascendc_host/simt_api/threads.h"
#include "ascendc_host/simt_api/vectors.h"
#include "ascendc_host/simt_api/warps.h"

namespace ascendc_host {

inline bool in_unified_buffer(const volatile void* address) {
    const auto* const at = static_cast<const volatile uint8_t*>(address);
    const uint8_t* const begin = current().memory(Memory::ub);
    return at >= begin && at < begin + whole_unified_buffer;
}

template <typename T>
constexpr bool is_pair = is_one_of<T, half2, bfloat16x2_t>;
template <typename T>
constexpr bool is_short_float = is_one_of<T, half, bfloat16_t>;
template <typename T>
constexpr bool is_word = std::is_integral<T>::value && (sizeof(T) == 4 || sizeof(T) == 8);

// *address = f(*address), which no other thread or block comes between; what was there before.
template <typename T, typename F>
T change_atomically(volatile T* address, const char* api, const Where& where, const F& f) {
    const Block& block = enter(where);
    thread_number(api, where);
    if (sizeof(T) == 8 && in_unified_buffer(address))
        fail(block, where,
             format("%s: elements of 8 bytes in the unified buffer; they must be in global memory", api));
    return exchange_atomically(address, api, where, f);
}

// What the device returns of 16 bits is not what was there.
template <typename T>
T returned(T before) {
    return is_short_float<T> ? from_bits<T>(0xa5a5) : before;
}
// An operation on an element, or on both of a pair.
template <typename T, typename F>
T on_elements(T a, T b, const F& f) {
    if constexpr (is_pair<T>) {
        return T{f(a.x, b.x), f(a.y, b.y)};
    } else {
        return f(a, b);
    }
}
struct WrappingSum {
    template <typename T>
    T operator()(T a, T b) const {
        using U = Unsigned<T>;
        return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    }
};
struct WrappingDifference {
    template <typename T>
    T operator()(T a, T b) const {
        using U = Unsigned<T>;
        return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
    }
};

// The type of the second argument is that of the first, which alone is deduced.
template <typename T>
struct Same {
    using type = std::remove_cv_t<T>;
};
template <typename T>
using SameAs = typename Same<T>::type;

}  // namespace ascendc_host

// dst = dst op val; what was there before, but for half and bfloat16_t, of which that is not known.
#define ASCENDC_ATOMIC(name, types, result)                                                          \
    template <typename T>                                                                            \
    ascendc_host::SameAs<T> name(T* address, ascendc_host::SameAs<T> val,                            \
                                 ascendc_host::Where where = ascendc_host::Where()) {                \
        using U = ascendc_host::SameAs<T>;                                                           \
        using namespace ascendc_host;                                                                \
        static_assert(types, #name ": no such type of elements");                                    \
        return returned(change_atomically<U>(address, #name, where, [&](U old) { return result; })); \
    }
ASCENDC_ATOMIC(asc_atomic_add, is_word<U> || (is_one_of<U, float, half, bfloat16_t>) || is_pair<U>,
               on_elements(old, val, WrappingSum()))
ASCENDC_ATOMIC(asc_atomic_sub, is_word<U> || (is_one_of<U, float>) || is_pair<U>,
               on_elements(old, val, WrappingDifference()))
ASCENDC_ATOMIC(asc_atomic_max, is_word<U> || (is_one_of<U, float, half, bfloat16_t>) || is_pair<U>,
               on_elements(old, val, [](auto a, auto b) { return a < b ? b : a; }))
ASCENDC_ATOMIC(asc_atomic_min, is_word<U> || (is_one_of<U, float, half, bfloat16_t>) || is_pair<U>,
               on_elements(old, val, [](auto a, auto b) { return b < a ? b : a; }))
ASCENDC_ATOMIC(asc_atomic_exch, is_word<U> || (is_one_of<U, float>) || is_pair<U>,
               (static_cast<void>(old), val))
ASCENDC_ATOMIC(asc_atomic_and, is_word<U>, old& val)
ASCENDC_ATOMIC(asc_atomic_or, is_word<U>, old | val)
ASCENDC_ATOMIC(asc_atomic_xor, is_word<U>, old ^ val)
// Up to val and from 0 again; down to 0 and from val again.
ASCENDC_ATOMIC(asc_atomic_inc, is_word<U>&& std::is_unsigned<U>::value, old >= val ? U(0) : old + 1)
ASCENDC_ATOMIC(asc_atomic_dec, is_word<U>&& std::is_unsigned<U>::value, old == 0 || old > val ? val : old - 1)
#undef ASCENDC_ATOMIC

// Where it is `compare`, it becomes `val`. A thread in vain lets others run, for it may try again until one
// of them has changed it.
template <typename T>
ascendc_host::SameAs<T> asc_atomic_cas(T* address, ascendc_host::SameAs<T> compare,
                                       ascendc_host::SameAs<T> val,
                                       ascendc_host::Where where = ascendc_host::Where()) {
    using U = ascendc_host::SameAs<T>;
    using namespace ascendc_host;
    static_assert(is_word<U> || (is_one_of<U, float>) || is_pair<U>,
                  "asc_atomic_cas: no such type of elements");
    const auto equal = [](U a, U b) {
        if constexpr (is_pair<U>)
            return a.x == b.x && a.y == b.y;
        else
            return a == b;
    };
    const U before = change_atomically<U>(address, "asc_atomic_cas", where,
                                          [&](U old) { return equal(old, compare) ? val : old; });
    if (!equal(before, compare)) yield_thread();
    return before;
}

// The older names of the same.
namespace AscendC {
namespace Simt {

#define ASCENDC_OLD_ATOMIC(Name, name)                                                             \
    template <typename T>                                                                          \
    ascendc_host::SameAs<T> Name(T* address, ascendc_host::SameAs<T> val, Where where = Where()) { \
        return name(address, val, where);                                                          \
    }
ASCENDC_OLD_ATOMIC(AtomicAdd, asc_atomic_add)
ASCENDC_OLD_ATOMIC(AtomicSub, asc_atomic_sub)
ASCENDC_OLD_ATOMIC(AtomicExch, asc_atomic_exch)
ASCENDC_OLD_ATOMIC(AtomicMax, asc_atomic_max)
ASCENDC_OLD_ATOMIC(AtomicMin, asc_atomic_min)
ASCENDC_OLD_ATOMIC(AtomicInc, asc_atomic_inc)
ASCENDC_OLD_ATOMIC(AtomicDec, asc_atomic_dec)
ASCENDC_OLD_ATOMIC(AtomicAnd, asc_atomic_and)
ASCENDC_OLD_ATOMIC(AtomicOr, asc_atomic_or)
ASCENDC_OLD_ATOMIC(AtomicXor, asc_atomic_xor)
#undef ASCENDC_OLD_ATOMIC
template <typename T>
ascendc_host::SameAs<T> AtomicCas(T* address, ascendc_host::SameAs<T> compare, ascendc_host::SameAs<T> val,
                                  Where where = Where()) {
    return asc_atomic_cas(address, compare, val, where);
}

}  // namespace Simt
}  // namespace AscendC

// Through the second level of caches, or the first as well.
#define ASCENDC_LOAD(name)                                                                                   \
    template <typename T>                                                                                    \
    ascendc_host::SameAs<T> name(T* address, ascendc_host::Where where = ascendc_host::Where()) {            \
        if (ascendc_host::in_unified_buffer(address))                                                        \
            ascendc_host::fail(ascendc_host::enter(where), where,                                            \
                               #name ": the address is in the unified buffer; it must be in global memory"); \
        return *const_cast<ascendc_host::SameAs<T>*>(address);                                               \
    }
ASCENDC_LOAD(asc_ldcg)
ASCENDC_LOAD(asc_ldca)
#undef ASCENDC_LOAD
#define ASCENDC_STORE(name)                                                                                  \
    template <typename T>                                                                                    \
    void name(T* address, ascendc_host::SameAs<T> val, ascendc_host::Where where = ascendc_host::Where()) {  \
        if (ascendc_host::in_unified_buffer(address))                                                        \
            ascendc_host::fail(ascendc_host::enter(where), where,                                            \
                               #name ": the address is in the unified buffer; it must be in global memory"); \
        *const_cast<ascendc_host::SameAs<T>*>(address) = val;                                                \
    }
ASCENDC_STORE(asc_stcg)
ASCENDC_STORE(asc_stwt)
#undef ASCENDC_STORE
// Of a cache line, or of all: what other blocks wrote is read. Caches of the host are coherent.
inline void asc_dcci_single(volatile void*) {}
inline void asc_dcci_entire(volatile void*) {}
inline void asc_nop() {}

#endif  // ASCENDC_HOST_SIMT_API_MEMORY_H
