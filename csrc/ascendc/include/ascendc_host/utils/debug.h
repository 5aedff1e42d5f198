// Output and assertions in kernels.
#ifndef ASCENDC_HOST_UTILS_DEBUG_H
#define ASCENDC_HOST_UTILS_DEBUG_H

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include "ascendc_host/basic_api/copy.h"

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
// In brackets for each dimension of the shape; what the shape has more than `count` elements is a dash.
template <typename At>
void dump_shape(uint32_t description, uint32_t count, const ShapeInfo& shape, const Where& where,
                const At& at) {
    const auto& block = ascendc_host::current();
    const uint32_t rank = shape.shapeDim;
    uint64_t size = 1;
    std::string sizes;
    for (uint32_t axis = 0; axis < rank && axis < K_MAX_DIM; ++axis) {
        size *= shape.shape[axis];
        sizes += ascendc_host::format(axis == 0 ? "%u" : ", %u", shape.shape[axis]);
    }
    if (rank == 0 || rank > K_MAX_DIM || size == 0) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format("DumpTensor: a shape of %u dimensions [%s]; valid: 1 to %u, none 0", rank,
                                 sizes.c_str(), unsigned(K_MAX_DIM)));
    }
    std::string text = ascendc_host::format("DumpTensor: desc=%u, block %lld:\n", description,
                                            static_cast<long long>(block.block_idx()));
    if (size != count) {
        text +=
            ascendc_host::format("shape is [%s], dumpSize is %u, %s.\n", sizes.c_str(), count,
                                 size > count ? "data is not enough" : "dumpSize is greater than shapeSize");
    }
    for (uint64_t i = 0; i < size; ++i) {
        // A bracket for each dimension whose first element this is, and whose last.
        uint32_t first = 0, last = 0;
        uint64_t step = 1;
        for (uint32_t axis = rank; axis-- > 0;) {
            step *= shape.shape[axis];
            first += i % step == 0;
            last += (i + 1) % step == 0;
        }
        text.append(first, '[');
        text +=
            i < count ? ascendc_host::format("%g", static_cast<double>(at(static_cast<uint32_t>(i)))) : "-";
        text.append(last, ']');
        if (i + 1 < size) text += last == 0 ? "," : ",\n";
    }
    std::puts(text.c_str());
    std::fflush(stdout);
}
// The elements of a tensor from one of them on, whose address is aligned as its memory wants it.
template <typename T>
auto dumped(const LocalTensor<T>& tensor, uint32_t first, uint32_t count, const char* api,
            const Where& where) {
    const T* values = tensor.use(uint64_t(first) + count, api, "the tensor", where) + first;
    const bool is_l0c = memory_of(tensor.position()) == ascendc_host::Memory::l0c;
    if (first != 0) check_aligned(values, is_l0c ? 64 : 32, api, "countOff", where);
    return [values](uint32_t i) { return values[i]; };
}
template <typename T>
auto dumped(const GlobalTensor<T>& tensor, uint32_t first, uint32_t count, const char* api,
            const Where& where) {
    ascendc_host::require_whole_bytes<T>();
    const auto* values = reinterpret_cast<const T*>(
        tensor.use_bytes(uint64_t(first) * sizeof(T), uint64_t(count) * sizeof(T), api, "the tensor", where));
    return [values](uint32_t i) { return values[i]; };
}
}  // namespace detail

#define ASCENDC_DUMP(Tensor)                                                                               \
    template <typename T>                                                                                  \
    void DumpTensor(const Tensor<T>& tensor, uint32_t desc, uint32_t dumpSize, Where where = Where()) {    \
        ascendc_host::enter(where);                                                                        \
        detail::dump<T>(desc, dumpSize, detail::dumped(tensor, 0, dumpSize, "DumpTensor", where));         \
    }                                                                                                      \
    template <typename T>                                                                                  \
    void DumpTensor(const Tensor<T>& tensor, uint32_t desc, uint32_t dumpSize, const ShapeInfo& shapeInfo, \
                    Where where = Where()) {                                                               \
        ascendc_host::enter(where);                                                                        \
        detail::dump_shape(desc, dumpSize, shapeInfo, where,                                               \
                           detail::dumped(tensor, 0, dumpSize, "DumpTensor", where));                      \
    }                                                                                                      \
    template <typename T>                                                                                  \
    void DumpAccChkPoint(const Tensor<T>& tensor, uint32_t index, uint32_t countOff, uint32_t dumpSize,    \
                         Where where = Where()) {                                                          \
        ascendc_host::enter(where);                                                                        \
        detail::dump<T>(index, dumpSize,                                                                   \
                        detail::dumped(tensor, countOff, dumpSize, "DumpAccChkPoint", where));             \
    }
ASCENDC_DUMP(LocalTensor)
ASCENDC_DUMP(GlobalTensor)
#undef ASCENDC_DUMP

// Bounds of what a profiler of the device measures: the host says nothing of time.
inline void MetricsProfStart() {}
inline void MetricsProfStop() {}
// A range that a kernel may use beside its tensors, for a check that the device makes if it is asked to; the
// host knows what is allocated.
template <typename T>
void OOMCheckAddrRange(__gm__ T*, uint64_t) {}

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
#define ASSERT_MSG(condition, ...) ascendc_assert(condition, ##__VA_ARGS__)
// In a kernel, a failed assert must not end the process.
#undef assert
#define assert(condition, ...) ascendc_assert(condition, ##__VA_ARGS__)
// The condition, and statements that report it where the device's log is compiled in.
#define ASCENDC_ASSERT(condition, behavior) ascendc_assert(condition)

#endif  // ASCENDC_HOST_UTILS_DEBUG_H
