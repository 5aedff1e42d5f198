// Output and assertions in kernels.
#ifndef ASCENDC_HOST_DEBUG_H
#define ASCENDC_HOST_DEBUG_H

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include "tensor.h"

namespace AscendC {

template <typename... Ts>
void printf(const char* text, Ts... values) {
    if constexpr (sizeof...(Ts) == 0) {
        std::fputs(text, stdout);
    } else {
        // The format is the kernel's own literal, as on the device.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        std::printf(text, values...);
#pragma GCC diagnostic pop
    }
    std::fflush(stdout);
}
template <typename... Ts>
void PRINTF(const char* text, Ts... values) {
    AscendC::printf(text, values...);
}

namespace detail {
template <typename T, typename At>
void dump(uint32_t description, uint32_t count, const At& at) {
    const auto& block = ascendc_host::current();
    std::string line = ascendc_host::format("DumpTensor: desc=%u, block %lld: [", description,
                                            static_cast<long long>(block.block_idx()));
    for (uint32_t i = 0; i < count; ++i)
        line += ascendc_host::format(i == 0 ? "%g" : ", %g", static_cast<double>(at(i)));
    std::puts((line + "]").c_str());
    std::fflush(stdout);
}
}  // namespace detail
template <typename T>
void DumpTensor(const LocalTensor<T>& tensor, uint32_t desc, uint32_t dumpSize, Where where = Where()) {
    ascendc_host::enter(where);
    const T* values = tensor.use(dumpSize, "DumpTensor", "the tensor", where);
    detail::dump<T>(desc, dumpSize, [&](uint32_t i) { return values[i]; });
}
template <typename T>
void DumpTensor(const GlobalTensor<T>& tensor, uint32_t desc, uint32_t dumpSize, Where where = Where()) {
    ascendc_host::enter(where);
    const auto* values = reinterpret_cast<const T*>(
        tensor.use_bytes(0, uint64_t(dumpSize) * sizeof(T), "DumpTensor", "the tensor", where));
    detail::dump<T>(desc, dumpSize, [&](uint32_t i) { return values[i]; });
}

}  // namespace AscendC

// The same of bare addresses.
template <typename T>
void asc_dump(T* input, uint32_t desc, uint32_t dump_size) {
    AscendC::detail::dump<T>(desc, dump_size, [&](uint32_t i) { return input[i]; });
}
template <typename T>
void asc_dump_gm(T* input, uint32_t desc, uint32_t dump_size) {
    AscendC::GlobalTensor<T> tensor;
    tensor.SetGlobalBuffer(input);
    AscendC::DumpTensor(tensor, desc, dump_size);
}
template <typename T>
void asc_dump_ubuf(T* input, uint32_t desc, uint32_t dump_size) {
    asc_dump(input, desc, dump_size);
}
template <typename T>
void asc_dump_l1buf(T* input, uint32_t desc, uint32_t dump_size) {
    asc_dump(input, desc, dump_size);
}
template <typename T>
void asc_dump_cbuf(T* input, uint32_t desc, uint32_t dump_size) {
    asc_dump(input, desc, dump_size);
}

namespace AscendC {

// An assertion that fails ends the block like a broken rule; `message` follows the condition.
template <typename... Ts>
void check_assertion(bool holds, const char* condition, const Where& where, Ts... message) {
    if (holds) return;
    if (!ascendc_host::inside_kernel()) {  // code of the host in the same source
        std::fprintf(stderr, "%s:%d: assertion failed: %s\n", where.file, where.line, condition);
        std::abort();
    }
    std::string text = ascendc_host::format("assertion failed: %s", condition);
    if constexpr (sizeof...(Ts) > 0) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
        text += ": " + ascendc_host::format(message...);
#pragma GCC diagnostic pop
    }
    ascendc_host::fail(ascendc_host::current(), where, text);
}

// Without the device's checks ASSERT is nothing, and so kernels have it behind values too. The plus before it
// is unary in a statement of its own, and checks; behind a value it leaves that as it is.
template <typename... Ts>
struct Assertion {
    bool holds;
    const char* condition;
    Where where;
    std::tuple<Ts...> message;

    void operator+() const {
        std::apply([this](const Ts&... parts) { check_assertion(holds, condition, where, parts...); },
                   message);
    }
    template <typename T>
    friend T operator+(T value, const Assertion&) {
        return value;
    }
};
template <typename... Ts>
Assertion<Ts...> assertion(bool holds, const char* condition, const Where& where, Ts... message) {
    return {holds, condition, where, {message...}};
}

}  // namespace AscendC

#define ascendc_assert(condition, ...) \
    ::AscendC::check_assertion(static_cast<bool>(condition), #condition, ::AscendC::Where(), ##__VA_ARGS__)
#ifndef ASCENDC_HOST_KEEP_ASSERT
// For the same reason kernels that name AscendC everywhere else leave it out there: its names are known.
#define ASSERT(condition, ...)                   \
    +::AscendC::assertion(                       \
        [&] {                                    \
            using namespace ::AscendC;           \
            return static_cast<bool>(condition); \
        }(),                                     \
        #condition, ::AscendC::Where(), ##__VA_ARGS__)
#endif
// In a kernel, a failed assert must not end the process.
#undef assert
#define assert(condition, ...) ascendc_assert(condition, ##__VA_ARGS__)
// The condition, and statements that report it where the device's log is compiled in.
#define ASCENDC_ASSERT(condition, behavior) ascendc_assert(condition)

#endif  // ASCENDC_HOST_DEBUG_H
