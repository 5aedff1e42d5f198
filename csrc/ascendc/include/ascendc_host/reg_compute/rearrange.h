// What fills registers, converts their elements, moves them between lanes, and reduces them.
#ifndef ASCENDC_HOST_REG_COMPUTE_REARRANGE_H
#define ASCENDC_HOST_REG_COMPUTE_REARRANGE_H

#include "ascendc_host/reg_compute/masks.h"

namespace AscendC {
namespace Reg {

// --- filling
// ------------------------------------------------------------------------------------------------------

template <typename T = DefaultType, typename S, typename U, detail::IfRegisters<U> = 0,
          typename = std::enable_if_t<!detail::IsRegister<S>::value>>
void Duplicate(U& dstReg, S scalarValue, Where = Where()) {
    const auto value = static_cast<detail::Element<U>>(scalarValue);
    for (uint32_t lane = 0; lane < U::lanes; ++lane) dstReg.set(lane, value);
    dstReg.written = true;
}
template <typename T = DefaultType, MaskMergeMode mode = MaskMergeMode::ZEROING, typename S, typename U,
          detail::IfRegisters<U> = 0, typename = std::enable_if_t<!detail::IsRegister<S>::value>>
void Duplicate(U& dstReg, S scalarValue, const MaskReg& mask, Where where = Where()) {
    const auto value = static_cast<detail::Element<U>>(scalarValue);
    detail::Result<U>(dstReg, mask, mode, "Duplicate", where).each([&](uint32_t) { return value; });
}
// The first element of a register.
template <typename T = DefaultType, HighLowPart pos = HighLowPart::LOWEST,
          MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, detail::IfRegisters<U> = 0>
void Duplicate(U& dstReg, U& srcReg, const MaskReg& mask, Where where = Where()) {
    detail::check_read(srcReg, "Duplicate", "srcReg", where);
    const auto value = srcReg.get(pos == HighLowPart::LOWEST ? 0 : U::lanes - 1);
    detail::Result<U>(dstReg, mask, mode, "Duplicate", where).each([&](uint32_t) { return value; });
}
// scalar, scalar + 1, …; decreasing, the scalar is the last of them and the largest comes first.
template <typename T = DefaultType, IndexOrder order = IndexOrder::INCREASE_ORDER, typename S, typename U,
          detail::IfRegisters<U> = 0>
void Arange(U& dstReg, S scalarValue, Where = Where()) {
    using E = detail::Element<U>;
    const auto first = static_cast<detail::Wide<E>>(static_cast<E>(scalarValue));
    for (uint32_t lane = 0; lane < U::lanes; ++lane) {
        const uint32_t steps = order == IndexOrder::INCREASE_ORDER ? lane : U::lanes - 1 - lane;
        dstReg.set(lane,
                   static_cast<E>(AscendC::detail::add_op()(first, static_cast<detail::Wide<E>>(steps))));
    }
    dstReg.written = true;
}
template <typename T = DefaultType, typename U, detail::IfRegisters<U> = 0>
void Move(U& dstReg, U& srcReg, Where where = Where()) {
    detail::check_read(srcReg, "Move", "srcReg", where);
    dstReg = srcReg;
}
template <typename T = DefaultType, MaskMergeMode mode = MaskMergeMode::MERGING, typename U,
          detail::IfRegisters<U> = 0>
void Move(U& dstReg, U& srcReg, const MaskReg& mask, Where where = Where()) {
    static_assert(mode == MaskMergeMode::MERGING, "Move: MERGING alone; Select takes zeros");
    detail::check_read(srcReg, "Move", "srcReg", where);
    detail::Result<U>(dstReg, mask, mode, "Move", where).each([&](uint32_t lane) {
        return srcReg.get(lane);
    });
}
template <typename T = DefaultType, typename U, detail::IfRegisters<U> = 0>
void Copy(U& dstReg, U& srcReg, Where where = Where()) {
    Move(dstReg, srcReg, where);
}
template <typename T = DefaultType, MaskMergeMode mode = MaskMergeMode::MERGING, typename U,
          detail::IfRegisters<U> = 0>
void Copy(U& dstReg, U& srcReg, const MaskReg& mask, Where where = Where()) {
    Move<T, mode>(dstReg, srcReg, mask, where);
}

// --- conversion
// ---------------------------------------------------------------------------------------------------

namespace detail {

// Whether what does not fit becomes the nearest that does: as the instruction says, or the control register
// for all.
template <typename To>
bool saturates(SatMode mode) {
    const auto control = static_cast<uint64_t>(ascendc_host::current().control);
    if ((control >> 60 & 1) != 0) return (control >> (ascendc_host::is_float<To> ? 48 : 59) & 1) == 0;
    return mode == SatMode::SAT;
}
// The lowest bits of an integral value beyond the type's range.
template <typename To>
To lowest_bits(double whole) {
    if (std::isnan(whole)) return 0;
    if (std::isinf(whole)) return whole < 0 ? std::numeric_limits<To>::min() : std::numeric_limits<To>::max();
    if (std::fabs(whole) >= 9223372036854775808.0) return AscendC::detail::saturate<To>(whole);
    return static_cast<To>(static_cast<int64_t>(whole));
}
template <typename To, typename From>
To cast_element(From value, RoundMode round, bool saturate, bool can_wrap) {
    constexpr bool from_float = ascendc_host::is_float<From>, to_float = ascendc_host::is_float<To>;
    if constexpr (to_float && from_float) {
        if (saturate && sizeof(To) < 4) {
            const auto wide = static_cast<float>(value);
            if (std::isnan(wide)) return static_cast<To>(0.0f);
            const float most = std::is_same<To, half>::value ? 65504.0f : 0x1.fep127f;
            if (std::fabs(wide) > most) return static_cast<To>(std::copysign(most, wide));
        }
        return AscendC::detail::convert<To>(value, round);
    } else if constexpr (from_float) {
        if (saturate || !can_wrap) return AscendC::detail::convert<To>(value, round);
        return lowest_bits<To>(
            AscendC::detail::round_to_integer(static_cast<double>(static_cast<Wide<From>>(value)), round));
    } else if constexpr (to_float) {
        return AscendC::detail::convert<To>(value, round);
    } else {
        return saturate || !can_wrap ? AscendC::detail::convert<To>(value, round) : static_cast<To>(value);
    }
}

}  // namespace detail

// Of two sizes, an element of the larger one belongs to the place of several of the smaller one; layoutMode
// says to which of these. The mask is that of the source.
template <typename T = DefaultType, typename S = DefaultType, const CastTrait& trait = castTrait, typename U,
          typename V, detail::IfRegisters<U, V> = 0>
void Cast(U& dstReg, V& srcReg, const MaskReg& mask, Where where = Where()) {
    using To = detail::Element<U>;
    using From = detail::Element<V>;
    static_assert(detail::agrees<T, U> && detail::agrees<S, V>,
                  "Cast: the registers have elements of other sizes");
    constexpr uint32_t to = U::mask_bits, from = V::mask_bits;
    static_assert(to == from || trait.layoutMode != RegLayout::UNKNOWN,
                  "Cast: between elements of two sizes layoutMode says which of the smaller ones is meant");
    constexpr uint32_t ratio = to > from ? to / from : from / to;
    constexpr uint32_t place = ratio == 1 ? 0 : static_cast<uint32_t>(trait.layoutMode);
    static_assert(place < ratio, "Cast: layoutMode is beyond the ratio of the two sizes");
    detail::check_read(srcReg, "Cast", "srcReg", where);
    detail::check_read(mask, "Cast", where);
    // Where a number of the source's size always fits or there is no other way, the device saturates.
    constexpr bool can_wrap = trait.satMode != SatMode::UNKNOWN;
    const bool saturate = detail::saturates<To>(trait.satMode);
    constexpr bool merging = trait.mrgMode == MaskMergeMode::MERGING;
    U result = dstReg;
    if (!merging) std::memset(result.data, 0, U::bytes);
    constexpr uint32_t count = U::lanes < V::lanes ? U::lanes : V::lanes;
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t target = to >= from ? i : i * ratio + place,
                       source = to > from ? i * ratio + place : i;
        if (mask.bit(source * from)) {
            result.set(target, detail::cast_element<To, From>(srcReg.get(source), trait.roundMode, saturate,
                                                              can_wrap));
        }
    }
    result.written = true;
    dstReg = result;
}
// Integral numbers of the same type.
template <typename T = DefaultType, RoundMode roundMode = RoundMode::CAST_NONE,
          MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, detail::IfRegisters<U> = 0>
void Truncate(U& dstReg, U& srcReg, const MaskReg& mask, Where where = Where()) {
    detail::check_read(srcReg, "Truncate", "srcReg", where);
    detail::Result<U>(dstReg, mask, mode, "Truncate", where).each([&](uint32_t lane) {
        return static_cast<float>(
            AscendC::detail::round_to_integer(static_cast<float>(srcReg.get(lane)), roundMode));
    });
}
// half(src * scalar), rounded away from zero where it is half-way.
template <typename T0 = DefaultType, typename T1 = DefaultType, typename S,
          RegLayout layout = RegLayout::ZERO, typename U, typename V, detail::IfRegisters<U, V> = 0>
void MulsCast(U& dstReg, V& srcReg, S scalarValue, const MaskReg& mask, Where where = Where()) {
    static_assert(
        std::is_same<detail::Element<U>, half>::value && std::is_same<detail::Element<V>, float>::value,
        "MulsCast: float to half");
    static constexpr CastTrait trait = {layout, SatMode::NO_SAT, MaskMergeMode::ZEROING,
                                        RoundMode::CAST_ROUND};
    V product = srcReg;
    for (uint32_t lane = 0; lane < V::lanes; ++lane)
        product.set(lane, srcReg.get(lane) * static_cast<float>(scalarValue));
    Cast<DefaultType, DefaultType, trait>(dstReg, product, mask, where);
}

// --- order
// --------------------------------------------------------------------------------------------------------

namespace detail {

template <typename U, typename Order>
void reorder(const char* api, const Where& where, U& dst0, U& dst1, const U& src0, const U& src1,
             const Order& order) {
    check_read(src0, api, "srcReg0", where);
    check_read(src1, api, "srcReg1", where);
    if (&dst0 == &dst1) refuse(api, where, "dstReg0 and dstReg1 are one register");
    const U sources[2] = {src0, src1};
    U* const results[2] = {&dst0, &dst1};
    for (uint32_t lane = 0; lane < 2 * U::lanes; ++lane) {
        const uint32_t from = order(lane, U::lanes);
        results[lane / U::lanes]->set(lane % U::lanes, sources[from / U::lanes].get(from % U::lanes));
    }
    dst0.written = dst1.written = true;
}

}  // namespace detail

template <typename T = DefaultType, typename U, detail::IfRegisters<U> = 0>
void Interleave(U& dstReg0, U& dstReg1, U& srcReg0, U& srcReg1, Where where = Where()) {
    detail::reorder("Interleave", where, dstReg0, dstReg1, srcReg0, srcReg1, detail::interleaved);
}
template <typename T = DefaultType, typename U, detail::IfRegisters<U> = 0>
void DeInterleave(U& dstReg0, U& dstReg1, U& srcReg0, U& srcReg1, Where where = Where()) {
    detail::reorder("DeInterleave", where, dstReg0, dstReg1, srcReg0, srcReg1, detail::deinterleaved);
}
// The low halves of the elements, in one half of the register; the other half is 0.
template <typename T = DefaultType, typename S = DefaultType, HighLowPart part = HighLowPart::LOWEST,
          typename U, typename V, detail::IfRegisters<U, V> = 0>
void Pack(U& dstReg, V& srcReg, Where where = Where()) {
    constexpr uint32_t size = sizeof(detail::Element<U>);
    static_assert(sizeof(detail::Element<V>) == 2 * size, "Pack: to elements of half the size");
    detail::check_read(srcReg, "Pack", "srcReg", where);
    static_assert(V::trait.REG_NUM == 1 || part == HighLowPart::LOWEST,
                  "Pack: of two registers LOWEST alone");
    const V from = srcReg;
    std::memset(dstReg.data, 0, U::bytes);
    const uint32_t begin = part == HighLowPart::LOWEST ? 0 : U::bytes / 2;
    for (uint32_t i = 0; i < std::min(V::lanes, (U::bytes - begin) / size); ++i)
        std::memcpy(dstReg.data + begin + i * size, from.data + i * 2 * size, size);
    dstReg.written = true;
}
// The elements of one half, as numbers of twice the size.
template <typename T = DefaultType, typename S = DefaultType, HighLowPart part = HighLowPart::LOWEST,
          typename U, typename V, detail::IfRegisters<U, V> = 0>
void UnPack(U& dstReg, V& srcReg, Where where = Where()) {
    using To = detail::Element<U>;
    static_assert(sizeof(To) == 2 * sizeof(detail::Element<V>), "UnPack: to elements of twice the size");
    static_assert(U::trait.REG_NUM == 1 || part == HighLowPart::LOWEST,
                  "UnPack: to two registers LOWEST alone");
    detail::check_read(srcReg, "UnPack", "srcReg", where);
    const V from = srcReg;
    const uint32_t begin = part == HighLowPart::LOWEST ? 0 : V::lanes / 2;
    for (uint32_t i = 0; i < std::min(U::lanes, V::lanes - begin); ++i)
        dstReg.set(i, static_cast<To>(from.get(begin + i)));
    dstReg.written = true;
}
// The active elements, side by side; the rest is 0.
template <typename T = DefaultType, GatherMaskMode mode = GatherMaskMode::NO_STORE_REG, typename U,
          detail::IfRegisters<U> = 0>
void Squeeze(U& dstReg, U& srcReg, const MaskReg& mask, Where where = Where()) {
    detail::check_read(srcReg, "Squeeze", "srcReg", where);
    detail::check_read(mask, "Squeeze", where);
    const U from = srcReg;
    std::memset(dstReg.data, 0, U::bytes);
    uint32_t count = 0;
    for (uint32_t lane = 0; lane < U::lanes; ++lane) {
        if (mask.bit(lane * U::mask_bits)) dstReg.set(count++, from.get(lane));
    }
    dstReg.written = true;
    if (mode != GatherMaskMode::STORE_REG) return;
    auto& block = ascendc_host::current();
    if (block.squeezed_waits)
        detail::refuse("Squeeze", where, "with STORE_REG each is followed by its StoreUnAlign");
    block.squeezed_last = count * sizeof(detail::Element<U>);
    block.squeezed += block.squeezed_last;
    block.squeezed_waits = true;
}
template <typename T = DefaultType, GatherMaskMode mode = GatherMaskMode::NO_STORE_REG, typename U,
          detail::IfRegisters<U> = 0>
void GatherMask(U& dstReg, U& srcReg, const MaskReg& mask, Where where = Where()) {
    Squeeze<T, mode>(dstReg, srcReg, mask, where);
}
template <SpecialPurposeReg spr>
void ClearSpr() {
    auto& block = ascendc_host::current();
    block.squeezed = block.squeezed_last = 0;
    block.squeezed_waits = false;
}
// The bytes that Squeeze left since ClearSpr.
template <SpecialPurposeReg spr>
int64_t GetSpr() {
    return static_cast<int64_t>(ascendc_host::current().squeezed);
}
// How many elements before each are active.
template <typename T = DefaultType, typename U, detail::IfRegisters<U> = 0>
void Unsqueeze(U& dstReg, const MaskReg& mask, Where where = Where()) {
    detail::check_read(mask, "Unsqueeze", where);
    uint32_t count = 0;
    for (uint32_t lane = 0; lane < U::lanes; ++lane) {
        dstReg.set(lane, static_cast<detail::Element<U>>(count));
        count += mask.bit(lane * U::mask_bits);
    }
    dstReg.written = true;
}

// --- reductions
// ---------------------------------------------------------------------------------------------------

namespace detail {

// What lanes [begin, end) come to, and the place of the extreme; an empty set has the identity and place 0.
template <ReduceType type, typename U>
auto reduced(const U& src, const MaskReg& mask, uint32_t begin, uint32_t end) {
    using T = Element<U>;
    using W = Wide<T>;
    struct {
        W value;
        uint32_t place;
    } result{};
    if constexpr (type == ReduceType::SUM) {
        // In pairs, as the device adds neighbors first.
        W sums[256];
        uint32_t count = end - begin;
        for (uint32_t i = 0; i < count; ++i)
            sums[i] = mask.bit((begin + i) * U::mask_bits) ? static_cast<W>(src.get(begin + i)) : W(0);
        for (; count > 1; count /= 2) {
            for (uint32_t i = 0; i < count / 2; ++i)
                sums[i] = AscendC::detail::add_op()(sums[2 * i], sums[2 * i + 1]);
        }
        result.value = sums[0];
    } else {
        constexpr bool most = type == ReduceType::MAX;
        using Limits = std::numeric_limits<W>;
        if constexpr (ascendc_host::is_float<T>)
            result.value = most ? -Limits::infinity() : Limits::infinity();
        else
            result.value = most ? Limits::min() : Limits::max();
        bool found = false;
        for (uint32_t lane = begin; lane < end; ++lane) {
            if (!mask.bit(lane * U::mask_bits)) continue;
            const W value = static_cast<W>(src.get(lane));
            const bool better = most ? value > result.value : value < result.value;
            if (!found || better || (value != value && result.value == result.value)) result = {value, lane};
            found = true;
        }
    }
    return result;
}

}  // namespace detail

// The sum in the first element; or the extreme, and in the second element its place.
template <ReduceType type = ReduceType::SUM, typename T = DefaultType, typename S = DefaultType,
          MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, typename V, detail::IfRegisters<U, V> = 0>
void Reduce(U& dstReg, V& srcReg, const MaskReg& mask, Where where = Where()) {
    using To = detail::Element<U>;
    detail::check_read(srcReg, "Reduce", "srcReg", where);
    detail::check_read(mask, "Reduce", where);
    U result;
    std::memset(result.data, 0, U::bytes);
    if constexpr (sizeof(To) > sizeof(detail::Element<V>)) {
        static_assert(type == ReduceType::SUM, "Reduce: only sums are wider than what is added");
        To sum = 0;
        for (uint32_t lane = 0; lane < V::lanes; ++lane) {
            if (mask.bit(lane * V::mask_bits))
                sum = AscendC::detail::add_op()(sum, static_cast<To>(srcReg.get(lane)));
        }
        result.set(0, sum);
    } else {
        static_assert(std::is_same<To, detail::Element<V>>::value,
                      "Reduce: dstReg has elements of another type");
        const auto found = detail::reduced<type>(srcReg, mask, 0, V::lanes);
        result.set(0, static_cast<To>(found.value));
        if constexpr (type != ReduceType::SUM)
            std::memcpy(result.data + sizeof(To), &found.place, std::min(sizeof(To), sizeof found.place));
    }
    result.written = true;
    dstReg = result;
}
#define ASCENDC_REG_REDUCE(Name, type)                                                                       \
    template <typename T = DefaultType, MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, typename V, \
              detail::IfRegisters<U, V> = 0>                                                                 \
    void Name(U& dstReg, V& srcReg, const MaskReg& mask, Where where = Where()) {                            \
        Reduce<type>(dstReg, srcReg, mask, where);                                                           \
    }
ASCENDC_REG_REDUCE(ReduceSum, ReduceType::SUM)
ASCENDC_REG_REDUCE(ReduceMax, ReduceType::MAX)
ASCENDC_REG_REDUCE(ReduceMin, ReduceType::MIN)
#undef ASCENDC_REG_REDUCE

// Each block of 32 bytes, into the first eight elements.
template <ReduceType type = ReduceType::SUM, typename T = DefaultType,
          MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, detail::IfRegisters<U> = 0>
void ReduceDataBlock(U& dstReg, U& srcReg, const MaskReg& mask, Where where = Where()) {
    detail::check_read(srcReg, "ReduceDataBlock", "srcReg", where);
    detail::check_read(mask, "ReduceDataBlock", where);
    const U from = srcReg;
    constexpr uint32_t lanes = 32 / sizeof(detail::Element<U>);
    std::memset(dstReg.data, 0, U::bytes);
    for (uint32_t i = 0; i < 8; ++i) {
        const auto found = detail::reduced<type>(from, mask, i * lanes, (i + 1) * lanes);
        dstReg.set(i, static_cast<detail::Element<U>>(found.value));
    }
    dstReg.written = true;
}
#define ASCENDC_REG_REDUCE_BLOCKS(Name, type)                                                    \
    template <typename T = DefaultType, MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, \
              detail::IfRegisters<U> = 0>                                                        \
    void Name(U& dstReg, U& srcReg, const MaskReg& mask, Where where = Where()) {                \
        ReduceDataBlock<type, T, mode>(dstReg, srcReg, mask, where);                             \
    }
ASCENDC_REG_REDUCE_BLOCKS(ReduceSumWithDataBlock, ReduceType::SUM)
ASCENDC_REG_REDUCE_BLOCKS(ReduceMaxWithDataBlock, ReduceType::MAX)
ASCENDC_REG_REDUCE_BLOCKS(ReduceMinWithDataBlock, ReduceType::MIN)
#undef ASCENDC_REG_REDUCE_BLOCKS
// The sums of neighbors, in the first half.
template <PairReduce type = PairReduce::SUM, typename T = DefaultType,
          MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, detail::IfRegisters<U> = 0>
void PairReduceElem(U& dstReg, U& srcReg, const MaskReg& mask, Where where = Where()) {
    detail::check_read(srcReg, "PairReduceElem", "srcReg", where);
    detail::check_read(mask, "PairReduceElem", where);
    const U from = srcReg;
    std::memset(dstReg.data, 0, U::bytes);
    for (uint32_t i = 0; i < U::lanes / 2; ++i) {
        const auto found = detail::reduced<ReduceType::SUM>(from, mask, 2 * i, 2 * i + 2);
        dstReg.set(i, static_cast<detail::Element<U>>(found.value));
    }
    dstReg.written = true;
}
// How often each byte of one half of their range occurs, or how many are no larger; added to dst.
template <typename T = DefaultType, typename S = DefaultType, HistogramsBinType mode, HistogramsType type,
          typename V, typename U, detail::IfRegisters<U, V> = 0>
void Histograms(U& dstReg, V& srcReg, const MaskReg& mask, Where where = Where()) {
    static_assert(
        std::is_same<detail::Element<V>, uint8_t>::value && std::is_same<detail::Element<U>, uint16_t>::value,
        "Histograms: uint8_t to uint16_t");
    detail::check_read(dstReg, "Histograms", "dstReg", where);
    detail::check_read(srcReg, "Histograms", "srcReg", where);
    detail::check_read(mask, "Histograms", where);
    uint32_t counts[256] = {};
    for (uint32_t lane = 0; lane < V::lanes; ++lane) {
        if (mask.bit(lane)) ++counts[srcReg.get(lane)];
    }
    if (type == HistogramsType::ACCUMULATE) {
        for (uint32_t value = 1; value < 256; ++value) counts[value] += counts[value - 1];
    }
    const uint32_t first = mode == HistogramsBinType::BIN0 ? 0 : 128;
    for (uint32_t lane = 0; lane < U::lanes; ++lane)
        dstReg.set(lane, static_cast<uint16_t>(dstReg.get(lane) + counts[first + lane]));
}

}  // namespace Reg
}  // namespace AscendC

#endif  // ASCENDC_HOST_REG_COMPUTE_REARRANGE_H
