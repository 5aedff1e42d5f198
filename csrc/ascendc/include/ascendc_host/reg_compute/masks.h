// MaskReg: how masks are made, combined, and matched to elements of other sizes.
#ifndef ASCENDC_HOST_REG_COMPUTE_MASKS_H
#define ASCENDC_HOST_REG_COMPUTE_MASKS_H

#include "ascendc_host/reg_compute/types.h"

namespace AscendC {
namespace Reg {
namespace detail {

template <typename F>
MaskReg mask_of(uint32_t lanes, const F& active) {
    MaskReg mask;
    const uint32_t bits = width / lanes;
    for (uint32_t lane = 0; lane < lanes; ++lane) mask.set(lane * bits, active(lane));
    mask.written = true;
    return mask;
}

constexpr uint32_t lanes_of_pattern(MaskPattern pattern, uint32_t lanes) {
    switch (pattern) {
        case MaskPattern::VL1:
            return 1;
        case MaskPattern::VL2:
            return 2;
        case MaskPattern::VL3:
            return 3;
        case MaskPattern::VL4:
            return 4;
        case MaskPattern::VL8:
            return 8;
        case MaskPattern::VL16:
            return 16;
        case MaskPattern::VL32:
            return 32;
        case MaskPattern::VL64:
            return 64;
        case MaskPattern::VL128:
            return 128;
        case MaskPattern::H:
            return lanes / 2;
        case MaskPattern::Q:
            return lanes / 4;
        case MaskPattern::ALLF:
            return 0;
        default:
            return lanes;
    }
}

// A mask made of others, bit by bit.
template <typename F, typename... Masks>
void combine(const char* api, const Where& where, MaskReg& dst, const F& f, const Masks&... sources) {
    (check_read(sources, api, where), ...);
    MaskReg result;
    for (int i = 0; i < 4; ++i) result.bits[i] = f(sources.bits[i]...);
    result.written = true;
    dst = result;
}

// Bit `to(i)` of the result is bit `from(i)` of the source, for i < count; other bits are 0.
template <typename To, typename From>
void move_bits(MaskReg& result, uint32_t count, const MaskReg& source, const To& to, const From& from) {
    for (uint32_t i = 0; i < count; ++i) result.set(to(i), source.bit(from(i)));
    result.written = true;
}

// What both masks together have, group by group of `bits`, in another order.
template <uint32_t bits, typename Order>
void reorder(const char* api, const Where& where, MaskReg& dst0, MaskReg& dst1, const MaskReg& src0,
             const MaskReg& src1, const Order& order) {
    check_read(src0, api, where);
    check_read(src1, api, where);
    constexpr uint32_t groups = width / bits;
    MaskReg results[2];
    const MaskReg* const sources[2] = {&src0, &src1};
    for (uint32_t group = 0; group < 2 * groups; ++group) {
        const uint32_t from = order(group, groups);
        for (uint32_t bit = 0; bit < bits; ++bit) {
            results[group / groups].set(group % groups * bits + bit,
                                        sources[from / groups]->bit(from % groups * bits + bit));
        }
    }
    results[0].written = results[1].written = true;
    dst0 = results[0];
    dst1 = results[1];
}
constexpr uint32_t interleaved(uint32_t to, uint32_t count) { return to / 2 + (to % 2) * count; }
constexpr uint32_t deinterleaved(uint32_t to, uint32_t count) {
    return to < count ? 2 * to : 2 * (to - count) + 1;
}

}  // namespace detail

template <typename T, MaskPattern mode = MaskPattern::ALL, const RegTrait& regTrait = RegTraitNumOne>
MaskReg CreateMask() {
    constexpr uint32_t lanes = RegTensor<T, regTrait>::lanes;
    constexpr uint32_t first = detail::lanes_of_pattern(mode, lanes);
    constexpr uint32_t step = mode == MaskPattern::M3 ? 3 : mode == MaskPattern::M4 ? 4 : 1;
    return detail::mask_of(lanes, [](uint32_t lane) { return lane < first && lane % step == 0; });
}
// The first `scalarValue` elements; that many are taken from it.
template <typename T, const RegTrait& regTrait = RegTraitNumOne>
MaskReg UpdateMask(uint32_t& scalarValue) {
    constexpr uint32_t lanes = RegTensor<T, regTrait>::lanes;
    const uint32_t count = scalarValue;
    scalarValue = count < lanes ? 0 : count - lanes;
    return detail::mask_of(lanes, [count](uint32_t lane) { return lane < count; });
}
// The mask that SetVectorMask set.
template <typename T>
MaskReg MoveMask() {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "MoveMask: elements of 2 or 4 bytes");
    const auto& block = ascendc_host::current();
    MaskReg mask;
    for (uint32_t bit = 0; bit < detail::width; ++bit) {
        const uint32_t lane = bit / sizeof(T);
        mask.set(bit, ((lane < 64 ? block.mask_low >> lane : block.mask_high >> (lane - 64)) & 1) != 0);
    }
    mask.written = true;
    return mask;
}

// --- logic
// --------------------------------------------------------------------------------------------------------

inline void Not(MaskReg& dst, const MaskReg& src, const MaskReg& mask, Where where = Where()) {
    detail::combine("Not", where, dst, [](uint64_t a, uint64_t m) { return ~a & m; }, src, mask);
}
inline void And(MaskReg& dst, const MaskReg& src0, const MaskReg& src1, const MaskReg& mask,
                Where where = Where()) {
    detail::combine(
        "And", where, dst, [](uint64_t a, uint64_t b, uint64_t m) { return a & b & m; }, src0, src1, mask);
}
inline void Or(MaskReg& dst, const MaskReg& src0, const MaskReg& src1, const MaskReg& mask,
               Where where = Where()) {
    detail::combine(
        "Or", where, dst, [](uint64_t a, uint64_t b, uint64_t m) { return (a | b) & m; }, src0, src1, mask);
}
inline void Xor(MaskReg& dst, const MaskReg& src0, const MaskReg& src1, const MaskReg& mask,
                Where where = Where()) {
    detail::combine(
        "Xor", where, dst, [](uint64_t a, uint64_t b, uint64_t m) { return (a ^ b) & m; }, src0, src1, mask);
}
inline void Move(MaskReg& dst, const MaskReg& src, const MaskReg& mask, Where where = Where()) {
    detail::combine("Move", where, dst, [](uint64_t a, uint64_t m) { return a & m; }, src, mask);
}
inline void Move(MaskReg& dst, const MaskReg& src, Where where = Where()) {
    detail::combine("Move", where, dst, [](uint64_t a) { return a; }, src);
}
inline void Select(MaskReg& dst, const MaskReg& src0, const MaskReg& src1, const MaskReg& mask,
                   Where where = Where()) {
    detail::combine(
        "Select", where, dst, [](uint64_t a, uint64_t b, uint64_t m) { return (a & m) | (b & ~m); }, src0,
        src1, mask);
}

// --- sizes of elements
// --------------------------------------------------------------------------------------------

// The even bits, side by side in one half: a mask for elements of half the size.
template <HighLowPart part = HighLowPart::LOWEST>
void Pack(MaskReg& dst, const MaskReg& src, Where where = Where()) {
    detail::check_read(src, "Pack", where);
    constexpr uint32_t half = detail::width / 2, begin = part == HighLowPart::LOWEST ? 0 : half;
    MaskReg result;
    detail::move_bits(
        result, half, src, [](uint32_t i) { return begin + i; }, [](uint32_t i) { return 2 * i; });
    dst = result;
}
// One half, each bit in the place of two: a mask for elements of twice the size.
template <HighLowPart part = HighLowPart::LOWEST>
void UnPack(MaskReg& dst, const MaskReg& src, Where where = Where()) {
    detail::check_read(src, "UnPack", where);
    constexpr uint32_t half = detail::width / 2, begin = part == HighLowPart::LOWEST ? 0 : half;
    MaskReg result;
    detail::move_bits(
        result, half, src, [](uint32_t i) { return 2 * i; }, [](uint32_t i) { return begin + i; });
    dst = result;
}
template <typename T>
void Interleave(MaskReg& dst0, MaskReg& dst1, const MaskReg& src0, const MaskReg& src1,
                Where where = Where()) {
    detail::reorder<sizeof(T)>("Interleave", where, dst0, dst1, src0, src1, detail::interleaved);
}
template <typename T>
void DeInterleave(MaskReg& dst0, MaskReg& dst1, const MaskReg& src0, const MaskReg& src1,
                  Where where = Where()) {
    detail::reorder<sizeof(T)>("DeInterleave", where, dst0, dst1, src0, src1, detail::deinterleaved);
}
// The mask in 16 or 8 bytes of a register: a bit for each element.
template <typename T = DefaultType, int16_t offset, typename U, detail::IfRegisters<U> = 0>
void MaskGenWithRegTensor(MaskReg& dst, const U& srcReg, Where where = Where()) {
    constexpr uint32_t size = sizeof(detail::Element<U>);
    static_assert(size == 2 || size == 4, "MaskGenWithRegTensor: elements of 2 or 4 bytes");
    static_assert(offset >= 0 && offset < static_cast<int>(8 * size),
                  "MaskGenWithRegTensor: offset 0 to 15 for elements of 2 bytes, 0 to 31 for 4");
    detail::check_read(srcReg, "MaskGenWithRegTensor", "srcReg", where);
    MaskReg result;
    for (uint32_t bit = 0; bit < detail::width; ++bit) {
        const uint32_t lane = bit / size;
        result.set(bit, (srcReg.data[offset * (detail::width / 8 / size) + lane / 8] >> (lane % 8) & 1) != 0);
    }
    result.written = true;
    dst = result;
}

// --- older names
// --------------------------------------------------------------------------------------------------

inline void MaskNot(MaskReg& dst, const MaskReg& src, const MaskReg& mask, Where where = Where()) {
    Not(dst, src, mask, where);
}
inline void MaskAnd(MaskReg& dst, const MaskReg& src0, const MaskReg& src1, const MaskReg& mask,
                    Where where = Where()) {
    And(dst, src0, src1, mask, where);
}
inline void MaskOr(MaskReg& dst, const MaskReg& src0, const MaskReg& src1, const MaskReg& mask,
                   Where where = Where()) {
    Or(dst, src0, src1, mask, where);
}
inline void MaskXor(MaskReg& dst, const MaskReg& src0, const MaskReg& src1, const MaskReg& mask,
                    Where where = Where()) {
    Xor(dst, src0, src1, mask, where);
}
inline void MaskMov(MaskReg& dst, const MaskReg& src, const MaskReg& mask, Where where = Where()) {
    Move(dst, src, mask, where);
}
inline void MaskMov(MaskReg& dst, const MaskReg& src, Where where = Where()) { Move(dst, src, where); }
inline void MaskSel(MaskReg& dst, const MaskReg& src0, const MaskReg& src1, const MaskReg& mask,
                    Where where = Where()) {
    Select(dst, src0, src1, mask, where);
}
template <HighLowPart part = HighLowPart::LOWEST>
void MaskPack(MaskReg& dst, const MaskReg& src, Where where = Where()) {
    Pack<part>(dst, src, where);
}
template <HighLowPart part = HighLowPart::LOWEST>
void MaskUnPack(MaskReg& dst, const MaskReg& src, Where where = Where()) {
    UnPack<part>(dst, src, where);
}
template <typename T>
void MaskInterleave(MaskReg& dst0, MaskReg& dst1, const MaskReg& src0, const MaskReg& src1,
                    Where where = Where()) {
    Interleave<T>(dst0, dst1, src0, src1, where);
}
template <typename T>
void MaskDeInterleave(MaskReg& dst0, MaskReg& dst1, const MaskReg& src0, const MaskReg& src1,
                      Where where = Where()) {
    DeInterleave<T>(dst0, dst1, src0, src1, where);
}

}  // namespace Reg
}  // namespace AscendC

#endif  // ASCENDC_HOST_REG_COMPUTE_MASKS_H
