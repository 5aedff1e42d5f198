// Compare and Select: bits from elements, and elements by bits or by the elements of a mask.
#ifndef ASCENDC_HOST_BASIC_API_COMPARE_H
#define ASCENDC_HOST_BASIC_API_COMPARE_H

#include "ascendc_host/basic_api/arithmetic.h"
#include "ascendc_host/basic_api/pipe.h"

namespace AscendC {
namespace detail {

template <typename T>
bool compare(CMPMODE mode, T a, T b) {
    switch (mode) {
        case CMPMODE::LT:
            return a < b;
        case CMPMODE::GT:
            return a > b;
        case CMPMODE::EQ:
            return a == b;
        case CMPMODE::LE:
            return a <= b;
        case CMPMODE::GE:
            return a >= b;
        default:
            return a != b;
    }
}
inline void set_bit(uint8_t* bits, uint64_t at, bool value) {
    const uint8_t one = static_cast<uint8_t>(1u << (at % 8));
    bits[at / 8] = static_cast<uint8_t>(value ? bits[at / 8] | one : bits[at / 8] & ~one);
}
inline bool get_bit(const uint8_t* bits, uint64_t at) { return ((bits[at / 8] >> (at % 8)) & 1) != 0; }

// How many bits of dst a comparison of the first `count` elements writes. dav-3510 compares register by
// register and writes the bits of the last as a whole, 0 beyond count; elsewhere count has to fill whole
// repeats.
template <typename T>
uint64_t compared_bits(uint64_t count, const char* api, const Where& where) {
#if __NPU_ARCH__ == 3510
    constexpr uint64_t at_once = sizeof(T) == 8 ? 64 : ONE_REPEAT_BYTE_SIZE / sizeof(T);
    (void)api, (void)where;
    return (count + at_once - 1) / at_once * at_once;
#else
    const uint64_t bytes = count * sizeof(T);
    if (bytes % ONE_REPEAT_BYTE_SIZE != 0) {
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("%s: count covers %llu bytes; it must cover a multiple of 256", api,
                                 static_cast<unsigned long long>(bytes)));
    }
    return count;
#endif
}
// Of the first `count` elements; `right` gives what each is compared with.
// int32_t can be asked for equality alone on dav-2201, and half and float for all.
template <typename T>
void require_comparable(const char* api, CMPMODE mode, const Where& where) {
    static_assert(__NPU_ARCH__ == 3510 || is_one_of<T, half, float, int32_t>,
                  "Compare is for half, float, int32_t on this SoC: use Cast or ReinterpretCast");
    if (__NPU_ARCH__ != 3510 && std::is_same<T, int32_t>::value && mode != CMPMODE::EQ)
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("%s: int32_t with a mode that is not CMPMODE::EQ, which this SoC does not "
                                 "have; Cast to float first",
                                 api));
}
template <typename T, typename U, typename Right>
void compare_count(const LocalTensor<U>& dst, const T* left, const Right& right, CMPMODE mode, uint32_t count,
                   const char* api, const Where& where) {
    require_comparable<T>(api, mode, where);
    const uint64_t written = compared_bits<T>(count, api, where);
    uint8_t* bits = reinterpret_cast<uint8_t*>(vector_operand(dst, written / 8, api, "dst", where));
    constexpr uint32_t lanes = lanes_of<T>();
    const uint32_t repeats = (count + lanes - 1) / lanes;
    ascendc_host::require_order(api, {"dst", bits, lanes / 8}, {"src0", left, lanes * sizeof(T)}, repeats,
                                where);
    for (uint32_t at = 0; at < count; at += lanes) {
        const uint32_t n = std::min(lanes, count - at);
        bool results[lanes];
        for (uint32_t i = 0; i < n; ++i) results[i] = compare<T>(mode, left[at + i], right(at + i));
        for (uint32_t i = 0; i < n; ++i) set_bit(bits, at + i, results[i]);
    }
    for (uint64_t i = count; i < written; ++i) set_bit(bits, i, false);
}

// The bits of one repeat follow those of the one before.
template <typename T, typename U, typename Right>
void compare_repeats(const LocalTensor<U>& dst, const Operand<T>& left, const Right& right, CMPMODE mode,
                     const Mask& mask, uint32_t repeats, const char* api, const Where& where) {
    require_comparable<T>(api, mode, where);
    constexpr uint32_t lanes = lanes_of<T>();
    uint8_t* bits =
        reinterpret_cast<uint8_t*>(vector_operand(dst, uint64_t(repeats) * lanes / 8, api, "dst", where));
    require_order(api, {"dst", bits, lanes / 8}, left, mask, repeats, lanes, where);
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        const uint32_t end = mask.end(repeat, lanes);
        bool results[lanes];
        for (uint32_t lane = 0; lane < end; ++lane)
            results[lane] = compare<T>(mode, left.at(repeat, lane), right(repeat, lane));
        for (uint32_t lane = 0; lane < end; ++lane) {
            if (mask.active(repeat, lane, lanes))
                set_bit(bits, uint64_t(repeat) * lanes + lane, results[lane]);
        }
    }
}
template <typename T, typename U, typename MaskArgument>
void compare_tensors(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                     CMPMODE mode, const MaskArgument& argument, uint32_t repeats,
                     const BinaryRepeatParams& p, const Where& where) {
    constexpr uint32_t lanes = lanes_of<T>();
    const Mask& mask = argument;
    repeats = mask.repeats(repeats, lanes);
    const Operand<T> left(src0, {p.src0BlkStride, p.src0RepStride}, mask, repeats, lanes, "Compare", "src0",
                          where);
    const Operand<T> right(src1, {p.src1BlkStride, p.src1RepStride}, mask, repeats, lanes, "Compare", "src1",
                           where);
    require_order("Compare", {"dst", dst.bytes(), lanes / 8}, right, mask, repeats, lanes, where);
    compare_repeats(
        dst, left, [&](uint32_t repeat, uint32_t lane) { return right.at(repeat, lane); }, mode, mask,
        repeats, "Compare", where);
}
template <typename T, typename U>
void compare_scalar(const char* api, const LocalTensor<U>& dst, const LocalTensor<T>& src0, T scalar,
                    CMPMODE mode, const Mask& mask, uint32_t repeats, const UnaryRepeatParams& p,
                    const Where& where) {
    constexpr uint32_t lanes = lanes_of<T>();
    repeats = mask.repeats(repeats, lanes);
    const Operand<T> left(src0, {p.srcBlkStride, p.srcRepStride}, mask, repeats, lanes, api, "src0", where);
    compare_repeats(dst, left, [&](uint32_t, uint32_t) { return scalar; }, mode, mask, repeats, api, where);
}
template <typename T, typename U>
void compare_scalar_count(const char* api, const LocalTensor<U>& dst, const LocalTensor<T>& src0, T scalar,
                          CMPMODE mode, uint32_t count, const Where& where) {
    ascendc_host::enter(where);
    const T* from = vector_operand(src0, uint64_t(count) * sizeof(T), api, "src0", where);
    compare_count(dst, from, [&](uint32_t) { return scalar; }, mode, count, api, where);
}

}  // namespace detail

// Bit i of dst = src0[i] <mode> src1[i].
template <typename T, typename U>
void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
             CMPMODE cmpMode, uint32_t count, Where where = Where()) {
    ascendc_host::enter(where);
    const T* a = detail::vector_operand(src0, uint64_t(count) * sizeof(T), "Compare", "src0", where);
    const T* b = detail::vector_operand(src1, uint64_t(count) * sizeof(T), "Compare", "src1", where);
    constexpr uint32_t lanes = detail::lanes_of<T>();
    ascendc_host::require_order("Compare", {"dst", dst.bytes(), lanes / 8}, {"src1", b, lanes * sizeof(T)},
                                (count + lanes - 1) / lanes, where);
    detail::compare_count(dst, a, [&](uint32_t i) { return b[i]; }, cmpMode, count, "Compare", where);
}

// dst = src0 < src1 and its like, over all elements of the sources.
#define ASCENDC_WHOLE_COMPARE(symbol, mode)                                                           \
    template <typename T>                                                                             \
    detail::WholeCompare<T> operator symbol(const LocalTensor<T>& src0, const LocalTensor<T>& src1) { \
        return {src0, src1, CMPMODE::mode};                                                           \
    }
namespace detail {
template <typename T>
struct WholeCompare : WholeTensorOperation {
    const LocalTensor<T>&src0, &src1;
    CMPMODE mode;
    WholeCompare(const LocalTensor<T>& a, const LocalTensor<T>& b, CMPMODE m) : src0(a), src1(b), mode(m) {}
    template <typename U>
    void store(const LocalTensor<U>& dst) const {
        Compare(dst, src0, src1, mode, src0.GetSize());
    }
};
}  // namespace detail
ASCENDC_WHOLE_COMPARE(<, LT)
ASCENDC_WHOLE_COMPARE(>, GT)
ASCENDC_WHOLE_COMPARE(<=, LE)
ASCENDC_WHOLE_COMPARE(>=, GE)
ASCENDC_WHOLE_COMPARE(==, EQ)
ASCENDC_WHOLE_COMPARE(!=, NE)
#undef ASCENDC_WHOLE_COMPARE

template <typename T, typename U, bool isSetMask = true, typename Lanes>
void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
             CMPMODE cmpMode, Lanes mask, uint8_t repeatTime, const BinaryRepeatParams& repeatParams,
             Where where = Where()) {
    ascendc_host::enter(where);
    detail::compare_tensors(dst, src0, src1, cmpMode,
                            detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "Compare", where),
                            repeatTime, repeatParams, where);
}
// Into the compare mask register: one repeat.
template <typename T, bool isSetMask = true>
void Compare(const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode, uint64_t mask,
             const BinaryRepeatParams& p, Where where = Where()) {
    auto& block = ascendc_host::enter(where);
    detail::require_comparable<T>("Compare", cmpMode, where);
    constexpr uint32_t lanes = detail::lanes_of<T>();
    const auto active = detail::make_mask<isSetMask>(mask, lanes, "Compare", where);
    const detail::Operand<T> left(src0, {p.src0BlkStride, p.src0RepStride}, active, 1, lanes, "Compare",
                                  "src0", where);
    const detail::Operand<T> right(src1, {p.src1BlkStride, p.src1RepStride}, active, 1, lanes, "Compare",
                                   "src1", where);
    for (uint32_t lane = 0; lane < active.end(0, lanes); ++lane) {
        if (!active.active(0, lane, lanes)) continue;
        detail::set_bit(reinterpret_cast<uint8_t*>(block.compare_mask), lane,
                        detail::compare<T>(cmpMode, left.at(0, lane), right.at(0, lane)));
    }
}
template <typename T>
void GetCmpMask(const LocalTensor<T>& dst, Where where = Where()) {
    const auto& block = ascendc_host::enter(where);
    std::memcpy(detail::vector_operand(dst, 16, "GetCmpMask", "dst", where), block.compare_mask, 16);
}
template <typename T>
void SetCmpMask(const LocalTensor<T>& src, Where where = Where()) {
    auto& block = ascendc_host::enter(where);
    std::memcpy(block.compare_mask, detail::vector_operand(src, 16, "SetCmpMask", "src", where), 16);
}

// Bit i of dst = src0[i] <mode> scalar; both names mean the same.
#define ASCENDC_COMPARE_SCALAR(Name)                                                                       \
    template <typename T, typename U>                                                                      \
    void Name(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const detail::Same<T> src1Scalar,     \
              CMPMODE cmpMode, uint32_t count, Where where = Where()) {                                    \
        detail::compare_scalar_count<T>(#Name, dst, src0, src1Scalar, cmpMode, count, where);              \
    }                                                                                                      \
    template <typename T, typename U, bool isSetMask = true, typename Lanes>                               \
    void Name(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const detail::Same<T> src1Scalar,     \
              CMPMODE cmpMode, Lanes mask, uint8_t repeatTime, const UnaryRepeatParams& repeatParams,      \
              Where where = Where()) {                                                                     \
        ascendc_host::enter(where);                                                                        \
        detail::compare_scalar<T>(#Name, dst, src0, src1Scalar, cmpMode,                                   \
                                  detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), #Name, where), \
                                  repeatTime, repeatParams, where);                                        \
    }
ASCENDC_COMPARE_SCALAR(CompareScalar)
ASCENDC_COMPARE_SCALAR(Compares)
#undef ASCENDC_COMPARE_SCALAR

namespace detail {

// Where the bits for a repeat start: the same ones for every repeat, or one after the other.
inline uint64_t first_bit(SELMODE mode, uint32_t repeat, uint32_t lanes) {
    return mode == SELMODE::VSEL_CMPMASK_SPR ? 0 : uint64_t(repeat) * lanes;
}
template <typename T, typename Right>
void select_repeats(const Operand<T>& to, const uint8_t* bits, const Operand<T>& left, const Right& right,
                    SELMODE mode, const Mask& mask, uint32_t repeats, const Where& where) {
    ASCENDC_FLOATS(Select, T);
    constexpr uint32_t lanes = lanes_of<T>();
    require_order("Select", to, left, mask, repeats, lanes, where);
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        for (uint32_t lane = 0; lane < mask.end(repeat, lanes); ++lane) {
            if (!mask.active(repeat, lane, lanes)) continue;
            to.at(repeat, lane) = get_bit(bits, first_bit(mode, repeat, lanes) + lane) ? left.at(repeat, lane)
                                                                                       : right(repeat, lane);
        }
    }
}
template <typename T, typename U>
const uint8_t* select_bits(const LocalTensor<U>& selMask, SELMODE mode, uint32_t repeats,
                           const Where& where) {
    constexpr uint32_t lanes = lanes_of<T>();
    const uint64_t bits = mode == SELMODE::VSEL_CMPMASK_SPR ? lanes : uint64_t(repeats) * lanes;
    return selMask.use_bytes(bits / 8, "Select", "selMask", where);
}
template <typename T, typename U>
void select_tensors(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                    const LocalTensor<T>& src1, SELMODE mode, const Mask& mask, uint32_t repeats,
                    const BinaryRepeatParams& p, const Where& where) {
    constexpr uint32_t lanes = lanes_of<T>();
    repeats = mask.repeats(repeats, lanes);
    if (mode == SELMODE::VSEL_TENSOR_TENSOR_MODE) {
        const uint8_t* ub = ascendc_host::current().memory(ascendc_host::Memory::ub);
        use_reserved_space("Select", static_cast<uint32_t>(selMask.bytes() - ub), 32 * sizeof(uint32_t));
    }
    const Operand<T> to(dst, {p.dstBlkStride, p.dstRepStride}, mask, repeats, lanes, "Select", "dst", where);
    const Operand<T> left(src0, {p.src0BlkStride, p.src0RepStride}, mask, repeats, lanes, "Select", "src0",
                          where);
    const Operand<T> right(src1, {p.src1BlkStride, p.src1RepStride}, mask, repeats, lanes, "Select", "src1",
                           where);
    require_order("Select", to, right, mask, repeats, lanes, where);
    select_repeats(
        to, select_bits<T>(selMask, mode, repeats, where), left,
        [&](uint32_t repeat, uint32_t lane) { return right.at(repeat, lane); }, mode, mask, repeats, where);
}
template <typename T, typename U>
void select_scalar(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                   T src1, SELMODE mode, const Mask& mask, uint32_t repeats, const BinaryRepeatParams& p,
                   const Where& where) {
    constexpr uint32_t lanes = lanes_of<T>();
    repeats = mask.repeats(repeats, lanes);
    use_reserved_space("Select", src1, 32 * sizeof(T));
    const Operand<T> to(dst, {p.dstBlkStride, p.dstRepStride}, mask, repeats, lanes, "Select", "dst", where);
    const Operand<T> left(src0, {p.src0BlkStride, p.src0RepStride}, mask, repeats, lanes, "Select", "src0",
                          where);
    select_repeats(
        to, select_bits<T>(selMask, mode, repeats, where), left, [&](uint32_t, uint32_t) { return src1; },
        mode, mask, repeats, where);
}

}  // namespace detail

// dst[i] = bit i of selMask ? src0[i] : src1[i].
template <typename T, typename U>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
            const LocalTensor<T>& src1, SELMODE selMode, uint32_t count, Where where = Where()) {
    detail::leave_masks(ascendc_host::enter(where));
    detail::select_tensors(dst, selMask, src0, src1, selMode, {true, count, 0, 0}, 0, {}, where);
}
template <typename T, typename U>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
            const detail::Same<T> src1, SELMODE selMode, uint32_t count, Where where = Where()) {
    detail::leave_masks(ascendc_host::enter(where));
    detail::select_scalar<T>(dst, selMask, src0, src1, selMode, {true, count, 0, 0}, 0, {}, where);
}
template <typename T, typename U, bool isSetMask = true, typename Lanes>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
            const LocalTensor<T>& src1, SELMODE selMode, Lanes mask, uint8_t repeatTime,
            const BinaryRepeatParams& repeatParams, Where where = Where()) {
    ascendc_host::enter(where);
    detail::select_tensors(dst, selMask, src0, src1, selMode,
                           detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "Select", where),
                           repeatTime, repeatParams, where);
}
template <typename T, typename U, bool isSetMask = true, typename Lanes>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
            const detail::Same<T> src1, SELMODE selMode, Lanes mask, uint8_t repeatTime,
            const BinaryRepeatParams& repeatParams, Where where = Where()) {
    ascendc_host::enter(where);
    detail::select_scalar<T>(dst, selMask, src0, src1, selMode,
                             detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "Select", where),
                             repeatTime, repeatParams, where);
}
// By the compare mask register.
template <typename T, SELMODE selMode>
void Select(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
            uint8_t repeatTime, const BinaryRepeatParams& p, Where where = Where()) {
    const auto& block = ascendc_host::enter(where);
    constexpr uint32_t lanes = detail::lanes_of<T>();
    const auto mask = detail::register_mask();
    const uint32_t repeats = mask.repeats(repeatTime, lanes);
    const detail::Operand<T> to(dst, {p.dstBlkStride, p.dstRepStride}, mask, repeats, lanes, "Select", "dst",
                                where);
    const detail::Operand<T> left(src0, {p.src0BlkStride, p.src0RepStride}, mask, repeats, lanes, "Select",
                                  "src0", where);
    const detail::Operand<T> right(src1, {p.src1BlkStride, p.src1RepStride}, mask, repeats, lanes, "Select",
                                   "src1", where);
    detail::require_order("Select", to, right, mask, repeats, lanes, where);
    detail::select_repeats(
        to, reinterpret_cast<const uint8_t*>(block.compare_mask), left,
        [&](uint32_t repeat, uint32_t lane) { return right.at(repeat, lane); }, SELMODE::VSEL_CMPMASK_SPR,
        mask, repeats, where);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_COMPARE_H
