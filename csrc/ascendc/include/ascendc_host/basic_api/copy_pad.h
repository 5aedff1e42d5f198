// DataCopyPad: rows of any number of bytes between global memory and the unified buffer; and, on dav-3510,
// the loops around such a copy that SetLoopModePara asks for.
#ifndef ASCENDC_HOST_BASIC_API_COPY_PAD_H
#define ASCENDC_HOST_BASIC_API_COPY_PAD_H

#include "ascendc_host/basic_api/copy.h"

namespace AscendC {

// Whether each row fills whole units of 32 bytes of local memory, or rows follow one another and the last one
// is filled up: the latter is of dav-3510.
enum class PaddingMode : uint8_t { Normal, Compact };

#if __NPU_ARCH__ == 3510
// What a copy repeats: `loop1Size` times in each of `loop2Size` times, with strides in bytes.
struct LoopModeParams {
    uint32_t loop1Size = 0;
    uint32_t loop2Size = 0;
    uint64_t loop1SrcStride = 0;
    uint64_t loop1DstStride = 0;
    uint64_t loop2SrcStride = 0;
    uint64_t loop2DstStride = 0;
};
enum class DataCopyMVType : uint8_t { UB_TO_OUT, OUT_TO_UB };

// Until ResetLoopModePara, of the copies in one direction.
inline void SetLoopModePara(const LoopModeParams& loopParams, DataCopyMVType type, Where where = Where()) {
    constexpr const char* api = "SetLoopModePara";
    constexpr uint64_t most_local = uint64_t{1} << 21, most_global = uint64_t{1} << 40;
    auto& block = ascendc_host::enter(where);
    const bool to_local = type == DataCopyMVType::OUT_TO_UB;
    const auto check = [&](uint64_t stride, bool is_local, const char* name) {
        if (stride < (is_local ? most_local : most_global) && (!is_local || stride % ONE_BLK_SIZE == 0))
            return;
        ascendc_host::fail(
            block, where,
            ascendc_host::format("%s: %s %llu; valid: %s", api, name, static_cast<unsigned long long>(stride),
                                 is_local ? "multiples of 32 below 2^21 in the unified buffer"
                                          : "less than 2^40 in global memory"));
    };
    check(loopParams.loop1SrcStride, !to_local, "loop1SrcStride");
    check(loopParams.loop2SrcStride, !to_local, "loop2SrcStride");
    check(loopParams.loop1DstStride, to_local, "loop1DstStride");
    check(loopParams.loop2DstStride, to_local, "loop2DstStride");
    if (loopParams.loop1Size >= most_local || loopParams.loop2Size >= most_local) {
        ascendc_host::fail(block, where,
                           ascendc_host::format("%s: %u and %u times; valid: less than 2^21", api,
                                                loopParams.loop1Size, loopParams.loop2Size));
    }
    block.copy_loops[static_cast<size_t>(type)] = {true,
                                                   loopParams.loop1Size,
                                                   loopParams.loop2Size,
                                                   loopParams.loop1SrcStride,
                                                   loopParams.loop1DstStride,
                                                   loopParams.loop2SrcStride,
                                                   loopParams.loop2DstStride};
}
inline void ResetLoopModePara(DataCopyMVType type) {
    ascendc_host::current().copy_loops[static_cast<size_t>(type)] = {};
}
#endif

namespace detail {

template <PaddingMode mode>
struct Compact {
    static_assert(mode == PaddingMode::Normal || ascendc_host::npu_architecture == 3510,
                  "DataCopyPad: PaddingMode::Compact is of dav-3510");
    static constexpr bool value = mode == PaddingMode::Compact;
};
template <PaddingMode mode>
constexpr bool is_compact = Compact<mode>::value;

// A block of `length` bytes fills whole units of 32 bytes of local memory, behind `left` and before `right`
// elements.
// The loops around a copy in one direction, without any it is done once: f(offset in src, offset in dst) in
// bytes. `src` and `dst` are the bytes that one copy takes up.
template <typename F>
void in_loops(bool to_local, const F& f) {
    const auto& loops = ascendc_host::current().copy_loops[to_local ? 1 : 0];
    if (!loops.set) return f(0, 0);
    for (uint64_t outer = 0; outer < loops.outer; ++outer) {
        for (uint64_t inner = 0; inner < loops.inner; ++inner) {
            f(outer * loops.outer_source + inner * loops.inner_source,
              outer * loops.outer_target + inner * loops.inner_target);
        }
    }
}
inline uint64_t last_of_loops(bool to_local, bool target) {
    const auto& loops = ascendc_host::current().copy_loops[to_local ? 1 : 0];
    if (!loops.set || loops.outer == 0 || loops.inner == 0) return 0;
    return (loops.outer - 1) * (target ? loops.outer_target : loops.outer_source) +
           (loops.inner - 1) * (target ? loops.inner_target : loops.inner_source);
}

template <typename T>
void require_whole_elements(const DataCopyExtParams& params, const char* api, const Where& where) {
    if (params.blockLen % sizeof(T) != 0)
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("%s: blockLen %u; it counts bytes and must be a multiple of the "
                                 "element's %zu, or ReinterpretCast<int8_t>() both tensors",
                                 api, params.blockLen, sizeof(T)));
}
template <typename T>
void pad_in(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& params, bool pad,
            uint32_t left, uint32_t right, T value, bool compact, const Where& where) {
    constexpr const char* api = "DataCopyPad";
    check_blocks(params.blockCount, params.blockLen, api, where);
    require_whole_elements<T>(params, api, where);
    constexpr uint8_t zeros[sizeof(T)] = {};
    if (pad && sizeof(T) == 8 && std::memcmp(&value, zeros, sizeof(T)) != 0)
        ascendc_host::fail(
            ascendc_host::current(), where,
            "DataCopyPad: elements of 8 bytes have the paddingValue 0 alone; write the others with "
            "Duplicate, before the copy");
    if (ascendc_host::is_packed<T> && (pad || left != 0 || right != 0)) {
        ascendc_host::fail(ascendc_host::current(), where,
                           "DataCopyPad: padding of int4b_t, of which elements share bytes; valid: isPad "
                           "false, leftPadding and rightPadding 0, or ReinterpretCast<int8_t>()");
    }
    const bool is_bare = left == 0 && right == 0;
    if (compact) left = right = 0;
    if (std::max(left, right) * sizeof(T) > ONE_BLK_SIZE) {
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format(
                "DataCopyPad: padding of %u elements on the left and %u on the right; at most 32 bytes each",
                left, right));
    }
    if (params.blockCount == 0 || params.blockLen == 0) return;
    require_local(dst, {ascendc_host::Memory::ub, ascendc_host::Memory::l1}, api, "dst", where);
    const auto& block = ascendc_host::current();
    const uint64_t used = (uint64_t(left) + right) * sizeof(T) + params.blockLen;
    const uint64_t whole = compact ? used : (used + 31) / 32 * 32;
    const Rows to{params.blockCount, whole,
                  whole + (compact ? 0 : uint64_t(params.dstStride) * ONE_BLK_SIZE)};
    const Rows from{params.blockCount, params.blockLen, uint64_t(params.blockLen) + params.srcStride};
    const uint64_t end = compact ? (to.extent() + 31) / 32 * 32 : to.extent();
    OnPipe pipe(Pipe::mte2);
    if (last_of_loops(true, true) == 0) pipe.rows(to.bytes, to.stride);
    uint8_t* local = dst.use_bytes(end + last_of_loops(true, true), api, "dst", where);
    check_aligned(local, 32, api, "dst", where);
    pipe.rows(from.bytes, from.stride);
    const uint8_t* global = src.use_bytes(0, from.extent() + last_of_loops(true, false), api, "src", where);
    // The padding, and what is left of a block's last unit, have the copy's value or that of SetPadValue, and
    // without either what was there; where there is no padding, the block's first element is repeated.
    const void* with = pad ? static_cast<const void*>(&value) : block.pad_set ? &block.pad_bits : nullptr;
    const auto fill = [&](uint8_t* at, const uint8_t* until, const void* element) {
        for (; at + sizeof(T) <= until; at += sizeof(T)) std::memcpy(at, element, sizeof(T));
    };
    in_loops(true, [&](uint64_t source, uint64_t target) {
        for (uint64_t row = 0; row < to.count; ++row) {
            uint8_t* at = local + target + row * to.stride;
            uint8_t* const begin = at;
            const uint8_t* const first = global + source + row * from.stride;
            if (with != nullptr) fill(at, at + left * sizeof(T), with);
            at += left * sizeof(T);
            std::memcpy(at, first, from.bytes);
            at += from.bytes;
            if (compact) continue;
            const void* const rest = is_bare && (pad || !block.pad_set) ? first : with;
            if (rest != nullptr) fill(at, begin + whole, rest);
        }
        uint8_t* const last = local + target + to.extent();
        if (compact && with != nullptr) fill(last, local + target + end, with);
    });
}
template <typename T>
void pad_out(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyExtParams& params,
             bool compact, const Where& where) {
    constexpr const char* api = "DataCopyPad";
    check_blocks(params.blockCount, params.blockLen, api, where);
    require_whole_elements<T>(params, api, where);
    if (params.blockCount == 0 || params.blockLen == 0) return;
    const uint64_t whole = (uint64_t(params.blockLen) + 31) / 32 * 32;
    const Rows from{params.blockCount, params.blockLen,
                    compact ? params.blockLen : whole + uint64_t(params.srcStride) * ONE_BLK_SIZE};
    const Rows to{params.blockCount, params.blockLen, uint64_t(params.blockLen) + params.dstStride};
    require_local(src, {ascendc_host::Memory::ub, ascendc_host::Memory::l1}, api, "src", where);
    OnPipe pipe(Pipe::mte3);
    if (last_of_loops(false, false) == 0) pipe.rows(from.bytes, from.stride);
    const uint8_t* local = src.use_bytes(from.extent() + last_of_loops(false, false), api, "src", where);
    check_aligned(local, 32, api, "src", where);
    pipe.rows(to.bytes, to.stride);
    uint8_t* global = dst.use_bytes(0, to.extent() + last_of_loops(false, true), api, "dst", where);
    const Block& block = ascendc_host::current();
    in_loops(false, [&](uint64_t source, uint64_t target) {
        for (uint64_t row = 0; row < to.count; ++row)
            store<T>(block, local + source + row * from.stride, global + target + row * to.stride, to.bytes);
    });
}
inline DataCopyExtParams extended(const DataCopyParams& params) {
    return {params.blockCount, params.blockLen, params.srcStride, params.dstStride, 0};
}

}  // namespace detail

// What fills the rest of a row's last 32 bytes in a DataCopyPad whose isPad is false.
template <typename T, TPosition pos = TPosition::MAX>
void SetPadValue(T paddingValue) {
    auto& block = ascendc_host::current();
    block.pad_set = true;
    block.pad_bits = 0;
    std::memcpy(&block.pad_bits, &paddingValue, sizeof(T));
}
template <typename T, PaddingMode mode = PaddingMode::Normal>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& params,
                 const DataCopyPadExtParams<T>& pad, Where where = Where()) {
    ascendc_host::enter(where);
    detail::pad_in(dst, src, params, pad.isPad, pad.leftPadding, pad.rightPadding, pad.paddingValue,
                   detail::is_compact<mode>, where);
}
template <typename T>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& params,
                 const DataCopyPadParams& pad, Where where = Where()) {
    ascendc_host::enter(where);
    T value;
    std::memcpy(&value, &pad.paddingValue, sizeof(T));
    detail::pad_in(dst, src, detail::extended(params), pad.isPad, pad.leftPadding, pad.rightPadding, value,
                   false, where);
}
template <typename T, PaddingMode mode = PaddingMode::Normal>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyExtParams& params,
                 Where where = Where()) {
    ascendc_host::enter(where);
    detail::pad_out(dst, src, params, detail::is_compact<mode>, where);
}
template <typename T>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params,
                 Where where = Where()) {
    ascendc_host::enter(where);
    detail::pad_out(dst, src, detail::extended(params), false, where);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_COPY_PAD_H
