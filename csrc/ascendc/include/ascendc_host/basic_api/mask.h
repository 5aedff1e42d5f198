// How vector instructions walk over memory: contiguous runs of `count` elements, or repeats of 256 bytes made
// of eight blocks of 32 bytes with strides and a mask.
#ifndef ASCENDC_HOST_BASIC_API_MASK_H
#define ASCENDC_HOST_BASIC_API_MASK_H

#include <array>
#include <ctime>
#include <tuple>

#include "ascendc_host/basic_api/tensor.h"
#include "ascendc_host/internal/element_types.h"
#include "ascendc_host/internal/overlap.h"

namespace AscendC {

struct UnaryRepeatParams {
    UnaryRepeatParams() = default;
    UnaryRepeatParams(uint16_t dst_block, uint16_t src_block, uint8_t dst_repeat, uint8_t src_repeat,
                      bool half_block = false)
        : dstBlkStride(dst_block),
          srcBlkStride(src_block),
          dstRepStride(dst_repeat),
          srcRepStride(src_repeat),
          halfBlock(half_block) {}
    uint32_t blockNumber = DEFAULT_BLK_NUM;
    uint16_t dstBlkStride = DEFAULT_BLK_STRIDE;
    uint16_t srcBlkStride = DEFAULT_BLK_STRIDE;
    uint8_t dstRepStride = DEFAULT_REPEAT_STRIDE;
    uint8_t srcRepStride = DEFAULT_REPEAT_STRIDE;
    bool repeatStrideMode = false;
    bool strideSizeMode = false;
    bool halfBlock = false;
};
struct BinaryRepeatParams {
    BinaryRepeatParams() = default;
    BinaryRepeatParams(uint8_t dst_block, uint8_t src0_block, uint8_t src1_block, uint8_t dst_repeat,
                       uint8_t src0_repeat, uint8_t src1_repeat)
        : dstBlkStride(dst_block),
          src0BlkStride(src0_block),
          src1BlkStride(src1_block),
          dstRepStride(dst_repeat),
          src0RepStride(src0_repeat),
          src1RepStride(src1_repeat) {}
    uint32_t blockNumber = DEFAULT_BLK_NUM;
    uint8_t dstBlkStride = DEFAULT_BLK_STRIDE;
    uint8_t src0BlkStride = DEFAULT_BLK_STRIDE;
    uint8_t src1BlkStride = DEFAULT_BLK_STRIDE;
    uint8_t dstRepStride = DEFAULT_REPEAT_STRIDE;
    uint8_t src0RepStride = DEFAULT_REPEAT_STRIDE;
    uint8_t src1RepStride = DEFAULT_REPEAT_STRIDE;
    bool repeatStrideMode = false;
    bool strideSizeMode = false;
};
struct CopyRepeatParams {
    CopyRepeatParams() = default;
    CopyRepeatParams(uint16_t dst_stride, uint16_t src_stride, uint16_t dst_repeat, uint16_t src_repeat)
        : dstStride(dst_stride),
          srcStride(src_stride),
          dstRepeatSize(dst_repeat),
          srcRepeatSize(src_repeat) {}
    uint16_t dstStride = DEFAULT_BLK_STRIDE;
    uint16_t srcStride = DEFAULT_BLK_STRIDE;
    uint16_t dstRepeatSize = DEFAULT_REPEAT_STRIDE;
    uint16_t srcRepeatSize = DEFAULT_REPEAT_STRIDE;
};

// --- the mask registers
// ----------------------------------------------------------------------------------------------

// The mask of the instructions called with isSetMask = false. In counter mode it is the number of elements.
template <typename T, MaskMode mode = MaskMode::NORMAL>
void SetVectorMask(uint64_t high, uint64_t low) {
    auto& block = ascendc_host::current();
    block.mask_high = high;
    block.mask_low = low;
}
template <typename T, MaskMode mode = MaskMode::NORMAL>
void SetVectorMask(int32_t count) {
    auto& block = ascendc_host::current();
    const auto bits = [](int32_t n) { return n >= 64 ? ~uint64_t{0} : n <= 0 ? 0 : (uint64_t{1} << n) - 1; };
    const bool counter = mode == MaskMode::COUNTER;
    block.mask_low = counter ? static_cast<uint64_t>(count) : bits(count);
    block.mask_high = counter ? 0 : bits(count - 64);
}
inline void ResetMask() {
    auto& block = ascendc_host::current();
    block.mask_high = block.mask_low = ~uint64_t{0};
}
namespace detail {
// A function by a count sets mode and mask itself and leaves them as a core has them at first, as documented.
// Those of dav-3510 work on other registers.
inline void leave_masks(ascendc_host::Block& block) {
    if (__NPU_ARCH__ == 3510) return;
    block.counter_mode = false;
    block.mask_high = block.mask_low = ~uint64_t{0};
}
}  // namespace detail
inline void SetMaskCount() { ascendc_host::current().counter_mode = true; }
inline void SetMaskNorm() { ascendc_host::current().counter_mode = false; }

// The same as members, and sizes, by which older sources call them.
class AscendCUtils {
  public:
    template <typename T, bool isSetMask = true>
    static void SetMask(uint64_t maskHigh, uint64_t maskLow) {
        if (isSetMask) SetVectorMask<T>(maskHigh, maskLow);
    }
    template <typename T, bool isSetMask = true>
    static void SetMask(int32_t len) {
        if (isSetMask) SetVectorMask<T>(len);
    }
    template <typename T>
    static void SetMaskCount() {
        AscendC::SetMaskCount();
    }
    template <typename T>
    static void SetMaskNorm() {
        AscendC::SetMaskNorm();
    }
    template <bool isSetMask = true>
    static void ResetMask() {
        if (isSetMask) AscendC::ResetMask();
    }
    // 1: what does not fit a float is infinite, a NaN stays one, as everything computes here. 0 is
    // saturation.
    static void SetOverflow(uint64_t ctrlValue, Where where = Where()) {
        ascendc_host::Block& block = ascendc_host::enter(where);
        if (ctrlValue != 1) {
            ascendc_host::fail(block, where,
                               ascendc_host::format("AscendCUtils::SetOverflow: %llu asks for floats that "
                                                    "saturate, which the host does not have; "
                                                    "write SetOverflow(1), infinities and NaN as they come",
                                                    static_cast<unsigned long long>(ctrlValue)));
        }
        block.control |= int64_t{1} << 48;
    }
    // What GatherMask has taken.
    static int64_t GetRsvdCnt() { return static_cast<int64_t>(ascendc_host::current().gathered); }
    static int32_t GetBitSize(int32_t byteSize) { return byteSize * 8; }
    static int32_t GetC0Size() { return 32; }
    static int32_t GetC0Count(int32_t dtypeSize) { return GetC0Size() / dtypeSize; }
};

namespace detail {

using ascendc_host::Block;
using ascendc_host::Wide;

// An operand of a vector instruction must lie in the unified buffer and start at a multiple of 32 bytes.
template <bool packs = false, typename T>
T* vector_operand(const LocalTensor<T>& tensor, uint64_t bytes, const char* api, const char* name,
                  const Where& where, uint64_t alignment = 32) {
    if constexpr (!packs) ascendc_host::require_whole_bytes<T>();
    uint8_t* data = tensor.use_bytes(bytes, api, name, where);
    if (__builtin_expect(memory_of(tensor.position()) != ascendc_host::Memory::ub, 0)) {
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("%s: %s lies in %s; vector instructions work on the unified buffer", api,
                                 name, position_name(tensor.position())));
    }
    if (__builtin_expect(reinterpret_cast<uint64_t>(data) % alignment != 0, 0)) {
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format(
                "%s: %s is unaligned: it starts at an address that is not a multiple of %llu bytes", api,
                name, static_cast<unsigned long long>(alignment)));
    }
    return reinterpret_cast<T*>(data);
}

// --- contiguous
// ------------------------------------------------------------------------------------------------------

constexpr size_t chunk = 256;

// A chunk of a source in the type it is computed in: in place, or widened into a buffer.
template <typename T, bool same = std::is_same<Wide<T>, T>::value>
struct In {
    const T* load(const T* from, size_t) { return from; }
};
template <typename T>
struct In<T, false> {
    Wide<T> values[chunk];
    const Wide<T>* load(const T* from, size_t count) {
        ascendc_host::widen(from, values, count);
        return values;
    }
};
template <typename T, bool same = std::is_same<Wide<T>, T>::value>
struct Out {
    T* begin(T* to) { return to; }
    void end(T*, size_t) {}
};
template <typename T>
struct Out<T, false> {
    Wide<T> values[chunk];
    Wide<T>* begin(T*) { return values; }
    void end(T* to, size_t count) { ascendc_host::narrow(values, to, count); }
};

// A constant number of iterations without dependences between them: compilers vectorize this at -O2. A source
// may be the destination itself.
template <typename D, typename F, typename... S>
inline void whole_chunk(D* to, const F& f, const S*... from) {
#pragma GCC ivdep
    for (size_t i = 0; i < chunk; ++i) to[i] = static_cast<D>(f(from[i]...));
}

// Whether the runtime library has an operation on arrays of halfs.
template <typename F, typename = void>
struct OnHalfs : std::false_type {};
template <typename F>
struct OnHalfs<F, std::void_t<decltype(F::on_halfs)>> : std::true_type {};

// to[i] = f(from[i]...) for i < count, computed in the wide types.
template <typename D, typename F, typename... S>
void contiguous(D* to, size_t count, const F& f, const S*... from) {
    if constexpr (OnHalfs<F>::value && std::is_same<D, half>::value && sizeof...(S) == 2 &&
                  (std::is_same<S, half>::value && ...)) {
        return ascendc_host::combine(F::on_halfs, from..., to, count);
    }
    std::tuple<In<S>...> sources;
    Out<D> result;
    for (size_t at = 0; at < count; at += chunk) {
        const size_t n = std::min(chunk, count - at);
        Wide<D>* out = result.begin(to + at);
        std::apply(
            [&](auto&... source) {
                if (n == chunk) {
                    whole_chunk(out, f, source.load(from + at, n)...);
                } else {
                    const auto pointers = std::make_tuple(source.load(from + at, n)...);
                    for (size_t i = 0; i < n; ++i) {
                        out[i] =
                            std::apply([&](auto... p) { return static_cast<Wide<D>>(f(p[i]...)); }, pointers);
                    }
                }
            },
            sources);
        result.end(to + at, n);
    }
}

// --- repeats
// ---------------------------------------------------------------------------------------------------------

constexpr uint32_t most_lanes = 256;

// Which lanes of which repeats are active.
struct Mask {
    bool counter;
    uint64_t count;      // in counter mode: elements in all repeats
    uint64_t low, high;  // otherwise: a bit for each of the first 128 lanes

    uint32_t repeats(uint32_t given, uint32_t lanes) const {
        return counter ? static_cast<uint32_t>((count + lanes - 1) / lanes) : given;
    }
    bool active(uint32_t repeat, uint32_t lane, uint32_t lanes) const {
        if (counter) return uint64_t(repeat) * lanes + lane < count;
        return lane >= 128 || ((lane < 64 ? low >> lane : high >> (lane - 64)) & 1) != 0;
    }
    // One more than the last active lane of a repeat.
    uint32_t end(uint32_t repeat, uint32_t lanes) const {
        if (counter)
            return static_cast<uint32_t>(
                std::min<uint64_t>(lanes, count - std::min<uint64_t>(count, uint64_t(repeat) * lanes)));
        if (lanes > 128) return lanes;
        if (lanes > 64 && high != 0) return 128 - static_cast<uint32_t>(__builtin_clzll(high));
        const uint64_t bits = lanes >= 64 ? low : low & ((uint64_t{1} << lanes) - 1);
        return bits == 0 ? 0 : 64 - static_cast<uint32_t>(__builtin_clzll(bits));
    }
    bool whole(uint32_t lanes) const {
        const uint64_t wanted = lanes >= 64 ? ~uint64_t{0} : (uint64_t{1} << lanes) - 1;
        return !counter && (low & wanted) == wanted && (lanes <= 64 || high == ~uint64_t{0});
    }
};

// Instructions count repeats in 8 bits: of a larger number, which functions take as int32_t, a device runs
// the rest of a division by 256.
inline void require_repeats(const char* api, int64_t repeats, const Where& where) {
    if (__builtin_expect(repeats < 0 || repeats > 255, 0))
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("%s: repeatTime %lld; valid: 0 to 255; call it for 255 repeats at a time",
                                 api, static_cast<long long>(repeats)));
}

inline Mask register_mask() {
    const Block& block = ascendc_host::current();
    return {block.counter_mode, block.mask_low, block.mask_low, block.mask_high};
}
// No lane of any repeat: nothing is computed.
constexpr Mask no_lanes = {true, 0, 0, 0};
inline Mask keep_mask(Block& block, const Mask& mask, uint64_t low, uint64_t high) {
    if (__NPU_ARCH__ != 3510) {
        block.mask_low = low;
        block.mask_high = high;
    }
    return mask;
}
// Instructions take a mask in two forms, as a number or as bits; their template argument `Lanes` is either.
// The mask argument as a number: the first `mask` lanes, or the number of elements in counter mode. More
// lanes than a repeat has are all of them, and with none nothing happens, as documented. The registers keep
// it for functions that are called with isSetMask = false.
template <bool set>
Mask make_mask(uint64_t mask, uint32_t lanes, const char* api, const Where&) {
    if (!set) return register_mask();
    Block& block = ascendc_host::current();
    if (block.counter_mode) return keep_mask(block, {true, mask, 0, 0}, mask, 0);
    if (mask == 0) return keep_mask(block, no_lanes, 0, 0);
    if (__builtin_expect(mask > lanes, 0)) {
        ascendc_host::warn_once(ascendc_host::format(
            "kernel %s: %s: mask %llu is taken as %u, which are all elements of a repeat", block.kernel, api,
            static_cast<unsigned long long>(mask), lanes));
        mask = lanes;
    }
    const auto bits = [](uint64_t n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; };
    const uint64_t low = bits(mask), high = mask > 64 ? bits(mask - 64) : 0;
    return keep_mask(block, {false, 0, low, high}, low, high);
}
// The mask argument as bits.
template <bool set>
Mask make_mask(const uint64_t mask[], uint32_t lanes, const char*, const Where&) {
    if (!set) return register_mask();
    Block& block = ascendc_host::current();
    if (block.counter_mode) return keep_mask(block, {true, mask[0], 0, 0}, mask[0], 0);
    const uint64_t high = lanes > 64 ? mask[1] : 0;
    if (mask[0] == 0 && high == 0) return keep_mask(block, no_lanes, 0, 0);
    return keep_mask(block, {false, 0, mask[0], high}, mask[0], high);
}

// How an operand is walked: distances between blocks and between repeats, in blocks of 32 bytes.
struct Stride {
    uint32_t block;
    uint32_t repeat;
};

// An operand of a strided instruction: from lanes to memory and back.
template <typename T>
class Operand {
  public:
    static constexpr uint32_t per_block = ascendc_host::elements_of<T>(ONE_BLK_SIZE);

    Operand(const LocalTensor<T>& tensor, Stride stride, const Mask& mask, uint32_t repeats, uint32_t lanes,
            const char* api, const char* name, const Where& where)
        : name_(name), stride_(stride) {
        uint64_t bytes = 0;
        for (uint32_t repeat = repeats > 1 ? repeats - 2 : 0; repeat < repeats; ++repeat) {
            const uint32_t end = mask.end(repeat, lanes);
            if (end != 0) bytes = std::max(bytes, offset(repeat, end - 1) + sizeof(T));
        }
        ascendc_host::OnPipe pipe(ascendc_host::Pipe::vector);
        if (const uint32_t end = mask.end(0, lanes)) pipe.rows(offset(0, end - 1) + sizeof(T), offset(1, 0));
        data_ = reinterpret_cast<uint8_t*>(vector_operand<true>(tensor, bytes, api, name, where));
    }
    bool packed() const {
        return stride_.block == 1 && stride_.repeat * ONE_BLK_SIZE == ONE_REPEAT_BYTE_SIZE;
    }
    T* data() const {
        ascendc_host::require_whole_bytes<T>();
        return reinterpret_cast<T*>(data_);
    }
    ascendc_host::Walk walk() const {
        return {name_, data_, stride_.block, stride_.repeat, SizeOfBits<T>::value};
    }
    T get(uint32_t repeat, uint32_t lane) const {
        return ascendc_host::element<T>(data_ + offset(repeat, lane), within_byte(lane));
    }
    void set(uint32_t repeat, uint32_t lane, T value) const {
        ascendc_host::set_element(data_ + offset(repeat, lane), within_byte(lane), value);
    }
    T& at(uint32_t repeat, uint32_t lane) const {
        ascendc_host::require_whole_bytes<T>();
        return *reinterpret_cast<T*>(data_ + offset(repeat, lane));
    }

    void load(uint32_t repeat, uint32_t end, Wide<T>* to) const {
        for (uint32_t lane = 0; lane < end; lane += per_block) {
            const T* from = &at(repeat, lane);
            const uint32_t n = std::min(per_block, end - lane);
            if constexpr (std::is_same<Wide<T>, T>::value) {
                std::memcpy(to + lane, from, n * sizeof(T));
            } else {
                ascendc_host::widen(from, to + lane, n);
            }
        }
    }
    void store(uint32_t repeat, uint32_t end, uint32_t lanes, const Mask& mask, const Wide<T>* from) const {
        T block[per_block];
        for (uint32_t lane = 0; lane < end; lane += per_block) {
            const uint32_t n = std::min(per_block, end - lane);
            if constexpr (std::is_same<Wide<T>, T>::value) {
                std::memcpy(block, from + lane, n * sizeof(T));
            } else {
                ascendc_host::narrow(from + lane, block, n);
            }
            T* to = &at(repeat, lane);
            for (uint32_t i = 0; i < n; ++i) {
                if (mask.active(repeat, lane + i, lanes)) to[i] = block[i];
            }
        }
    }

  private:
    uint64_t offset(uint32_t repeat, uint32_t lane) const {
        return (uint64_t(repeat) * stride_.repeat + uint64_t(lane / per_block) * stride_.block) *
                   ONE_BLK_SIZE +
               uint64_t(lane % per_block) * SizeOfBits<T>::value / 8;
    }
    static uint64_t within_byte(uint32_t lane) { return ascendc_host::is_packed<T> ? lane % 2 : 0; }
    uint8_t* data_;
    const char* name_;
    Stride stride_;
};

template <typename... T>
constexpr uint32_t lanes_of() {
    return static_cast<uint32_t>(ONE_REPEAT_BYTE_SIZE / std::max({sizeof(T)...}));
}

// Raises where the memory of an operand and that of the destination overlap as an instruction cannot take it.
template <typename D, typename S>
void require_order(const char* api, const Operand<D>& dst, const Operand<S>& src, const Mask& mask,
                   uint32_t repeats, uint32_t lanes, const Where& where, bool accumulates = false) {
    ascendc_host::require_order(api, dst.walk(), src.walk(),
                                {repeats, lanes, mask.counter, mask.count, mask.low, mask.high}, accumulates,
                                where);
}
// The same where the results of repeats lie one after the other.
template <typename S>
void require_order(const char* api, const ascendc_host::Run& dst, const Operand<S>& src, const Mask& mask,
                   uint32_t repeats, uint32_t lanes, const Where& where) {
    ascendc_host::require_order(api, dst, src.walk(),
                                {repeats, lanes, mask.counter, mask.count, mask.low, mask.high}, where);
}
// The same for `count` elements one after the other.
template <typename D, typename S>
void require_order(const char* api, const D* dst, const char* name, const S* src, uint64_t count,
                   const Where& where) {
    constexpr uint32_t lanes = lanes_of<D, S>();
    const ascendc_host::Span written{"dst", dst, ascendc_host::bytes_of<D>(count)};
    const ascendc_host::Span read{name, src, ascendc_host::bytes_of<S>(count)};
    if (__builtin_expect(!written.meets(read), 1)) return;
    const auto walk = [](const auto& span, uint32_t bits) {
        return ascendc_host::Walk{span.name, span.data, 1, lanes * bits / 8 / ONE_BLK_SIZE, bits};
    };
    ascendc_host::require_order(
        api, walk(written, SizeOfBits<D>::value), walk(read, SizeOfBits<S>::value),
        {static_cast<uint32_t>((count + lanes - 1) / lanes), lanes, true, count, 0, 0}, false, where);
}

// dst = f(src...) lane by lane, repeat after repeat: a later repeat sees what an earlier one stored.
template <typename D, typename F, typename... S>
void repeated(const Operand<D>& dst, const Mask& mask, uint32_t repeats, const F& f,
              const Operand<S>&... src) {
    constexpr uint32_t lanes = lanes_of<D, S...>();
    constexpr bool one_size = ((sizeof(S) == sizeof(D)) && ...);
    if (one_size && mask.whole(lanes) && dst.packed() && (src.packed() && ...)) {
        return contiguous(dst.data(), size_t(repeats) * lanes, f, src.data()...);
    }
    if (one_size && mask.counter && dst.packed() && (src.packed() && ...)) {
        return contiguous(dst.data(), mask.count, f, src.data()...);
    }
    Wide<D> results[most_lanes];
    std::tuple<std::array<Wide<S>, most_lanes>...> sources;
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        const uint32_t end = mask.end(repeat, lanes);
        std::apply(
            [&](auto&... values) {
                (src.load(repeat, end, values.data()), ...);
                for (uint32_t lane = 0; lane < end; ++lane)
                    results[lane] = static_cast<Wide<D>>(f(values[lane]...));
            },
            sources);
        dst.store(repeat, end, lanes, mask, results);
    }
}

}  // namespace detail
}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_MASK_H
