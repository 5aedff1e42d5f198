// Cast: conversion between element types with a rounding mode.
#ifndef ASCENDC_HOST_BASIC_API_CAST_H
#define ASCENDC_HOST_BASIC_API_CAST_H

#include "ascendc_host/basic_api/arithmetic.h"

namespace AscendC {
namespace detail {

// Of conversions with int4b_t those that the architecture has, in their modes.
template <typename To, typename From>
constexpr bool has_packed =
    ascendc_host::is_packed<To>
        ? is_one_of<From, half> || (ascendc_host::npu_architecture == 3510 && is_one_of<From, int16_t>)
        : is_one_of<To, half> ||
              (ascendc_host::npu_architecture == 3510 && is_one_of<To, int16_t, bfloat16_t>);
template <typename To, typename From>
constexpr bool packs = ascendc_host::is_packed<To> || ascendc_host::is_packed<From>;
template <typename To, typename From>
void check_packed(RoundMode mode, const char* unit, uint64_t count, bool whole_bytes, const Where& where) {
    static_assert(has_packed<To, From>,
                  "Cast: int4b_t from half and to half, on dav-3510 from int16_t and to int16_t and "
                  "bfloat16_t");
    constexpr bool rounds = ascendc_host::is_packed<To> && !std::is_integral<From>::value;
    const bool none = mode == RoundMode::CAST_NONE;
    const bool is_mode =
        rounds ? (none ? ascendc_host::npu_architecture != 3510 : mode < RoundMode::CAST_ODD) : none;
    if (!is_mode) {
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("Cast: mode %d %s int4b_t; valid: %s", int(mode),
                                 ascendc_host::is_packed<To> ? "to" : "from",
                                 !rounds ? "CAST_NONE"
                                 : ascendc_host::npu_architecture == 3510
                                     ? "CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND and CAST_TRUNC"
                                     : "all but CAST_ODD"));
    }
    if (!whole_bytes) {
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("Cast: %s %llu with int4b_t, two of which share a byte; valid: even "
                                 "numbers, and masks whose bits 2i and 2i + 1 are the same",
                                 unit, static_cast<unsigned long long>(count)));
    }
}
// The rounding modes of a conversion on dav-2201, as CANN's page lists them, a bit for each; 0 without such a
// conversion.
constexpr unsigned bit_of(RoundMode mode) { return 1u << static_cast<unsigned>(mode); }
template <typename To, typename From>
constexpr unsigned cast_modes() {
    constexpr unsigned exact = bit_of(RoundMode::CAST_NONE), odd = bit_of(RoundMode::CAST_ODD);
    constexpr unsigned rounded = bit_of(RoundMode::CAST_RINT) | bit_of(RoundMode::CAST_FLOOR) |
                                 bit_of(RoundMode::CAST_CEIL) | bit_of(RoundMode::CAST_ROUND) |
                                 bit_of(RoundMode::CAST_TRUNC);
    if constexpr (std::is_same<To, half>::value) {
        if (is_one_of<From, int4b_t, int8_t, uint8_t>) return exact;
        if (is_one_of<From, float, int32_t>) return rounded | exact | odd;
        return is_one_of<From, int16_t> ? rounded | exact : 0;
    } else if constexpr (std::is_same<To, float>::value) {
        if (is_one_of<From, int16_t, half, bfloat16_t>) return exact;
        if (is_one_of<From, int32_t>) return rounded | exact;
        return is_one_of<From, float, int64_t> ? rounded : 0;
    } else if constexpr (std::is_same<From, half>::value) {
        if (is_one_of<To, int4b_t, int8_t, uint8_t>) return rounded | exact;
        return is_one_of<To, int16_t, int32_t> ? rounded : 0;
    } else if constexpr (std::is_same<From, float>::value) {
        return is_one_of<To, int16_t, bfloat16_t, int32_t, int64_t> ? rounded : 0;
    } else if constexpr (std::is_same<From, int32_t>::value) {
        return is_one_of<To, int16_t, int64_t> ? exact : 0;
    } else if constexpr (std::is_same<From, int64_t>::value) {
        return is_one_of<To, int32_t> ? exact : 0;
    } else {
        return std::is_same<From, bfloat16_t>::value && is_one_of<To, int32_t> ? rounded : 0;
    }
}
// A device leaves dst as it is where its conversion does not have the mode.
template <typename To, typename From>
void require_conversion(RoundMode mode, const Where& where) {
    if constexpr (__NPU_ARCH__ != 3510 && !packs<To, From>) {
        constexpr unsigned valid = cast_modes<To, From>();
        static_assert(valid != 0,
                      "Cast: this SoC does not have this conversion; Cast to half or float first");
        if ((valid & bit_of(mode)) != 0) return;
        static constexpr const char* names[] = {"CAST_NONE",  "CAST_RINT",  "CAST_FLOOR", "CAST_CEIL",
                                                "CAST_ROUND", "CAST_TRUNC", "CAST_ODD"};
        std::string list;
        for (unsigned i = 0; i < std::size(names); ++i) {
            if ((valid >> i & 1) != 0) list += (list.empty() ? "" : ", ") + std::string(names[i]);
        }
        ascendc_host::fail(ascendc_host::current(), where,
                           ascendc_host::format("Cast: %s between these elements, with which this SoC leaves "
                                                "dst as it is; valid: %s",
                                                names[static_cast<unsigned>(mode)], list.c_str()));
    }
}
inline bool has_pairs(const Mask& mask) {
    constexpr uint64_t first = 0x5555555555555555;
    if (mask.counter) return mask.count % 2 == 0;
    return (((mask.low ^ mask.low >> 1) | (mask.high ^ mask.high >> 1)) & first) == 0;
}

[[noreturn]] inline void refuse_mode(RoundMode mode, const Where& where = Where()) {
    ascendc_host::fail(
        ascendc_host::current(), where,
        mode == RoundMode::CAST_HYBRID
            ? "CAST_HYBRID is for conversions to hifloat8_t, which the host does not have; write CAST_RINT"
            : "Cast: CAST_EVEN and CAST_ZERO are modes of Simt::Cast; write CAST_RINT or CAST_TRUNC");
}
inline void check_mode(RoundMode mode, const Where& where) {
    if (mode > RoundMode::CAST_ODD) refuse_mode(mode, where);
}

// An integer near `value`, by the rounding mode. CAST_NONE rounds to nearest even where it must round.
inline double round_to_integer(double value, RoundMode mode) {
    switch (mode) {
        case RoundMode::CAST_FLOOR:
            return std::floor(value);
        case RoundMode::CAST_CEIL:
            return std::ceil(value);
        case RoundMode::CAST_ROUND:
            return std::round(value);
        case RoundMode::CAST_TRUNC:
            return std::trunc(value);
        case RoundMode::CAST_ODD: {
            const double whole = std::trunc(value);
            return whole == value || std::fmod(whole, 2) != 0 ? whole : whole + std::copysign(1.0, value);
        }
        case RoundMode::CAST_HYBRID:
        case RoundMode::CAST_EVEN:
        case RoundMode::CAST_ZERO:
            refuse_mode(mode);
        default:
            return std::nearbyint(value);
    }
}

// A number of 16 bits (half or bfloat16_t) near `value`: found as the nearest one, then moved to its
// neighbor where the mode asks for the other side. Neighbors of one sign are consecutive as integers.
template <typename T>
T round_to_short(double value, RoundMode mode) {
    const T nearest = static_cast<T>(static_cast<float>(value));
    if (mode == RoundMode::CAST_NONE || mode == RoundMode::CAST_RINT || std::isnan(value) ||
        std::isinf(value))
        return nearest;
    uint16_t bits;
    std::memcpy(&bits, &nearest, sizeof bits);
    const double at = static_cast<double>(static_cast<float>(nearest));
    if (at == value) return nearest;
    if (mode > RoundMode::CAST_ODD) refuse_mode(mode);
    // Toward zero first: `bits` becomes the one whose magnitude is below that of the value.
    const bool negative = value < 0;
    if (std::fabs(at) > std::fabs(value)) --bits;
    const bool up = [&] {
        switch (mode) {
            case RoundMode::CAST_FLOOR:
                return negative;
            case RoundMode::CAST_CEIL:
                return !negative;
            case RoundMode::CAST_ODD:
                return bits % 2 == 0;
            case RoundMode::CAST_ROUND: {
                T below, above;
                const uint16_t next = static_cast<uint16_t>(bits + 1);
                std::memcpy(&below, &bits, sizeof bits);
                std::memcpy(&above, &next, sizeof next);
                const double low = std::fabs(static_cast<double>(static_cast<float>(below)));
                const double high = std::isinf(static_cast<float>(above))
                                        ? 2 * low
                                        : std::fabs(static_cast<double>(static_cast<float>(above)));
                return std::fabs(value) - low >= high - std::fabs(value);
            }
            default:
                return false;
        }
    }();
    if (up) ++bits;
    T result;
    std::memcpy(&result, &bits, sizeof bits);
    return result;
}

template <typename To>
To saturate(double value) {
    if (std::isnan(value)) return 0;
    constexpr double low = static_cast<double>(std::numeric_limits<To>::min());
    constexpr double high = static_cast<double>(std::numeric_limits<To>::max());
    if (value <= low) return std::numeric_limits<To>::min();
    if (value >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
}

template <typename To, typename From>
To convert(From value, RoundMode mode) {
    if constexpr (ascendc_host::is_packed<From>) {
        return convert<To>(static_cast<int8_t>(value), mode);
    } else if constexpr (ascendc_host::is_packed<To>) {
        return To(std::clamp<int8_t>(convert<int8_t>(value, mode), -8, 7));
    } else if constexpr (std::is_integral<From>::value && std::is_integral<To>::value) {
        using Common = std::common_type_t<int64_t, From>;
        const Common low = static_cast<Common>(std::numeric_limits<To>::min());
        const Common high = static_cast<Common>(std::numeric_limits<To>::max());
        if (sizeof(To) >= sizeof(From) && std::is_signed<To>::value == std::is_signed<From>::value)
            return static_cast<To>(value);
        return static_cast<To>(std::clamp<Common>(static_cast<Common>(value), low, high));
    } else if constexpr (std::is_integral<To>::value) {
        return saturate<To>(round_to_integer(static_cast<double>(static_cast<Wide<From>>(value)), mode));
    } else if constexpr (std::is_same<Wide<To>, To>::value) {  // float, double
        const double wide = static_cast<double>(static_cast<Wide<From>>(value));
        // float to float rounds to an integral value; every mode but CAST_NONE asks for that.
        if (std::is_same<To, From>::value && mode != RoundMode::CAST_NONE)
            return static_cast<To>(round_to_integer(wide, mode));
        return static_cast<To>(wide);
    } else if constexpr (std::is_same<To, From>::value) {
        return static_cast<To>(static_cast<float>(round_to_integer(static_cast<float>(value), mode)));
    } else {
        return round_to_short<To>(static_cast<double>(static_cast<Wide<From>>(value)), mode);
    }
}

// Whether float does as an intermediate: then the bulk conversions serve.
template <typename To, typename From>
constexpr bool widens = std::is_same<To, float>::value && !std::is_same<Wide<From>, From>::value;
template <typename To, typename From>
constexpr bool narrows = !std::is_same<Wide<To>, To>::value && std::is_same<From, float>::value;

// A run of elements to memory that lies apart from it.
template <typename To, typename From>
void convert_run(const From* from, To* to, size_t count, RoundMode mode) {
    const bool nearest = mode == RoundMode::CAST_NONE || mode == RoundMode::CAST_RINT;
    if constexpr (widens<To, From>) return ascendc_host::widen(from, to, count);
    if constexpr (narrows<To, From>) {
        if (nearest) return ascendc_host::narrow(from, to, count);
    }
    for (size_t i = 0; i < count; ++i) to[i] = convert<To>(from[i], mode);
}

// To half from int32_t is a product with the scale of SetDeqScale(half), rounded to nearest even whatever the
// mode.
template <typename To, typename From>
constexpr bool takes_scale = std::is_same<To, half>::value && std::is_same<From, int32_t>::value;
inline float scale_of_register(const char* api, const Where& where) {
    using Kind = ascendc_host::Block::Dequantizer::Kind;
    const Block& block = ascendc_host::enter(where);
    if (block.deq.kind == Kind::none) {
        ascendc_host::warn_once(
            ascendc_host::format("kernel %s: %s of int32_t to half multiplies by the scale of "
                                 "SetDeqScale(half), which the kernel does not "
                                 "set: 1 is taken, a device takes what the kernel before it left. Write "
                                 "SetDeqScale((half)1.0f) before it [%s:%d]",
                                 block.kernel, api, where.file, where.line));
    } else if (block.deq.kind != Kind::half) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format("%s of int32_t to half: SetDeqScale set the parameters of 8 bits; write "
                                 "SetDeqScale(half) before it",
                                 api));
    }
    return block.deq.scale;
}
inline auto scaled_by(float scale) {
    return [scale](int32_t value) { return static_cast<float>(value) * scale; };
}

template <typename T, typename U>
void cast_repeats(const LocalTensor<T>& dst, const LocalTensor<U>& src, RoundMode mode, const Mask& mask,
                  uint32_t repeats, const UnaryRepeatParams& p, const Where& where) {
    if constexpr (takes_scale<T, U>) {
        return on_repeats("Cast", where, mask, repeats, p, dst, scaled_by(scale_of_register("Cast", where)),
                          src);
    }
    if constexpr (packs<T, U>)
        check_packed<T, U>(mode, "a mask", mask.counter ? mask.count : mask.low, has_pairs(mask), where);
    constexpr uint32_t lanes = lanes_of<T, U>();
    repeats = mask.repeats(repeats, lanes);
    const Operand<T> to(dst, {p.dstBlkStride, p.dstRepStride}, mask, repeats, lanes, "Cast", "dst", where);
    const Operand<U> from(src, {p.srcBlkStride, p.srcRepStride}, mask, repeats, lanes, "Cast", "src", where);
    require_order("Cast", to, from, mask, repeats, lanes, where);
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        T results[most_lanes];
        const uint32_t end = mask.end(repeat, lanes);
        for (uint32_t lane = 0; lane < end; ++lane) results[lane] = convert<T>(from.get(repeat, lane), mode);
        for (uint32_t lane = 0; lane < end; ++lane) {
            if (mask.active(repeat, lane, lanes)) to.set(repeat, lane, results[lane]);
        }
    }
}

}  // namespace detail

template <typename T, typename U>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode,
          const uint32_t count, Where where = Where()) {
    ascendc_host::enter(where);
    detail::check_mode(roundMode, where);
    detail::require_conversion<T, U>(roundMode, where);
    if constexpr (detail::takes_scale<T, U>) {
        return detail::on_count("Cast", where, count, dst,
                                detail::scaled_by(detail::scale_of_register("Cast", where)), src);
    }
    if constexpr (detail::packs<T, U>)
        detail::check_packed<T, U>(roundMode, "count", count, count % 2 == 0, where);
    detail::leave_masks(ascendc_host::current());
    const uint64_t taken = ascendc_host::bytes_of<U>(count), given = ascendc_host::bytes_of<T>(count);
    const U* from = detail::vector_operand<true>(src, taken, "Cast", "src", where);
    T* to = detail::vector_operand<true>(dst, given, "Cast", "dst", where);
    if constexpr (!detail::packs<T, U>) {
        const bool apart = reinterpret_cast<const uint8_t*>(from) + taken <= reinterpret_cast<uint8_t*>(to) ||
                           reinterpret_cast<uint8_t*>(to) + given <= reinterpret_cast<const uint8_t*>(from);
        if (apart) return detail::convert_run(from, to, count, roundMode);
    }
    // In one memory, repeat after repeat: each is read as a whole before it is written. So a tensor may be
    // cast in place to a type of its size or a smaller one, and from the end of a buffer to all of it.
    detail::require_order("Cast", to, "src", from, count, where);
    constexpr uint32_t lanes = detail::lanes_of<T, U>();
    T results[lanes];
    for (uint32_t at = 0; at < count; at += lanes) {
        const uint32_t n = std::min(lanes, count - at);
        for (uint32_t i = 0; i < n; ++i)
            results[i] = detail::convert<T>(ascendc_host::element<U>(from, at + i), roundMode);
        for (uint32_t i = 0; i < n; ++i) ascendc_host::set_element(to, at + i, results[i]);
    }
}
template <typename T, typename U, bool isSetMask = true, typename Lanes>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode, Lanes mask,
          uint8_t repeatTime, const UnaryRepeatParams& repeatParams, Where where = Where()) {
    ascendc_host::enter(where);
    detail::check_mode(roundMode, where);
    detail::require_conversion<T, U>(roundMode, where);
    detail::cast_repeats(dst, src, roundMode,
                         detail::make_mask<isSetMask>(mask, detail::lanes_of<T, U>(), "Cast", where),
                         repeatTime, repeatParams, where);
}
// Rounds floats to integral floats.
template <typename T, RoundMode roundMode>
void Truncate(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count,
              Where where = Where()) {
    Cast(dst, src, roundMode, count, where);
}

// --- scalars
// ---------------------------------------------------------------------------------------------------------

template <typename T, typename U, RoundMode roundMode>
U ScalarCast(T value) {
    return detail::convert<U>(value, roundMode);
}
template <typename T, typename U, RoundMode roundMode>
U Cast(T value) {
    return detail::convert<U>(value, roundMode);
}
inline float ToFloat(const bfloat16_t& value) { return value; }
inline float ToFloat(const half& value) { return value; }
inline bfloat16_t ToBfloat16(const float& value) { return bfloat16_t(value); }
template <typename T>
float Cast(const T& value) {
    return static_cast<float>(value);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_CAST_H
