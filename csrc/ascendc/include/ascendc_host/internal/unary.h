// Unary functions of the high-level API: the forms that mathematical functions and activations have in
// common.
#ifndef ASCENDC_HOST_INTERNAL_UNARY_H
#define ASCENDC_HOST_INTERNAL_UNARY_H

#include "ascendc_host/basic_api/arithmetic.h"
#include "ascendc_host/basic_api/pipe.h"
#include "ascendc_host/internal/temporary_space.h"

namespace AscendC {

namespace detail {

// `tensor.GetSize()` elements where no count is given.
template <Overlap overlap = Overlap::refused, typename Op, typename T>
void unary_math(const char* api, const Where& where, const LocalTensor<T>& dst, const LocalTensor<T>& src,
                uint64_t count, const Op& op) {
    on_count<overlap>(api, where, static_cast<int64_t>(count), dst, op, src);
}

template <typename T, bool reuses>
uint32_t least_space(const char* api) {
    if (__NPU_ARCH__ == 3510) return 0;
    return ascendc_host::bytes_of_temporary * ascendc_host::temporary_tensors(api, sizeof(T), reuses);
}
// Without a tensor for it a device takes the space that InitBuffer left.
template <typename T, bool reuses>
void require_room(const char* api, uint64_t count, const Where& where) {
    TPipe* const pipe = TPipe::active();
    const uint32_t least = least_space<T, reuses>(api);
    if (pipe == nullptr || count == 0 || least == 0) return;
    const uint32_t rest = pipe->rest<uint8_t, TPosition::VECCALC>().GetSize();
    if (rest < least)
        ascendc_host::fail(ascendc_host::current(), where,
                           ascendc_host::format(
                               "%s: without sharedTmpBuffer it takes %u bytes of the unified buffer or more "
                               "(Get%sMaxMinTmpSize), and InitBuffer left %u",
                               api, least, api, rest));
}
// The temporary space of a function lies apart from its operands, and has the least size that its tiling
// function is told; the host does not use it.
template <typename T, bool reuses>
void require_space(const char* api, const LocalTensor<uint8_t>& space,
                   std::initializer_list<const LocalTensor<T>*> operands, uint64_t count,
                   const Where& where) {
    const uint32_t least = least_space<T, reuses>(api);
    if (count != 0 && space.GetSize() < least)
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("%s: sharedTmpBuffer has %u bytes; it takes %u or more (Get%sMaxMinTmpSize)",
                                 api, static_cast<unsigned>(space.GetSize()), least, api));
    constexpr const char* names[] = {"dst", "src", "src1"};
    size_t i = 0;
    for (const LocalTensor<T>* operand : operands)
        ascendc_host::require_apart(api, {"sharedTmpBuffer", space.bytes(), space.GetSize()},
                                    {names[i++], operand->bytes(), count * sizeof(T)}, where);
}
}  // namespace detail

// Four forms: with or without temporary space, with or without a count; and one for pointers. What follows
// the operation is added to the template; activations call its second parameter highPrecision.
// A page says whether source and destination may overlap.
#define ASCENDC_MATH(Name, overlap, op, ...)                                                           \
    template <typename T, bool isReuseSource = false __VA_ARGS__, typename Count,                      \
              typename = detail::IfPointed<Count, uint32_t>>                                           \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const Count calCount) {            \
        ASCENDC_FLOATS(Name, T);                                                                       \
        detail::require_room<T, isReuseSource>(#Name, calCount, ascendc_host::current().where);        \
        detail::unary_math<detail::Overlap::overlap>(#Name, ascendc_host::current().where, dst, src,   \
                                                     calCount, op);                                    \
    }                                                                                                  \
    template <typename T, bool isReuseSource = false __VA_ARGS__>                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& space, \
              const uint32_t calCount, Where where = Where()) {                                        \
        ASCENDC_FLOATS(Name, T);                                                                       \
        detail::require_space<T, isReuseSource>(#Name, space, {&dst, &src}, calCount, where);          \
        detail::unary_math<detail::Overlap::overlap>(#Name, where, dst, src, calCount, op);            \
    }                                                                                                  \
    template <typename T, bool isReuseSource = false __VA_ARGS__>                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& space, \
              Where where = Where()) {                                                                 \
        ASCENDC_FLOATS(Name, T);                                                                       \
        detail::require_space<T, isReuseSource>(#Name, space, {&dst, &src}, src.GetSize(), where);     \
        detail::unary_math<detail::Overlap::overlap>(#Name, where, dst, src, src.GetSize(), op);       \
    }                                                                                                  \
    template <typename T, bool isReuseSource = false __VA_ARGS__>                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t calCount,           \
              Where where = Where()) {                                                                 \
        ASCENDC_FLOATS(Name, T);                                                                       \
        detail::require_room<T, isReuseSource>(#Name, calCount, where);                                \
        detail::unary_math<detail::Overlap::overlap>(#Name, where, dst, src, calCount, op);            \
    }                                                                                                  \
    template <typename T, bool isReuseSource = false __VA_ARGS__>                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, Where where = Where()) {           \
        ASCENDC_FLOATS(Name, T);                                                                       \
        detail::require_room<T, isReuseSource>(#Name, src.GetSize(), where);                           \
        detail::unary_math<detail::Overlap::overlap>(#Name, where, dst, src, src.GetSize(), op);       \
    }

}  // namespace AscendC

#endif  // ASCENDC_HOST_INTERNAL_UNARY_H
