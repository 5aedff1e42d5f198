// Convolutions as products: LoadData takes the patches of a feature map as a matrix.
#ifndef ASCENDC_HOST_BASIC_API_FEATURE_MAP_H
#define ASCENDC_HOST_BASIC_API_FEATURE_MAP_H

#include <cstring>

#include "ascendc_host/basic_api/cube.h"

namespace AscendC {

template <typename T>
struct LoadData3DParamsV2 {
    LoadData3DParamsV2() = default;
    LoadData3DParamsV2(const uint8_t pads[PAD_SIZE], uint16_t l1_h, uint16_t l1_w, uint16_t channels,
                       uint16_t k_extension, uint16_t m_extension, uint16_t k_start, uint16_t m_start,
                       uint8_t stride_w, uint8_t stride_h, uint8_t filter_w, uint8_t filter_h,
                       uint8_t dilation_w, uint8_t dilation_h, bool transpose, bool small_k, T pad,
                       bool wide_filter = false, bool high_filter = false, bool matrix_control = false)
        : l1H(l1_h),
          l1W(l1_w),
          channelSize(channels),
          kExtension(k_extension),
          mExtension(m_extension),
          kStartPt(k_start),
          mStartPt(m_start),
          strideW(stride_w),
          strideH(stride_h),
          filterW(filter_w),
          filterH(filter_h),
          dilationFilterW(dilation_w),
          dilationFilterH(dilation_h),
          enTranspose(transpose),
          enSmallK(small_k),
          padValue(pad),
          filterSizeW(wide_filter),
          filterSizeH(high_filter),
          fMatrixCtrl(matrix_control) {
        std::copy_n(pads, PAD_SIZE, padList);
    }
    uint8_t padList[PAD_SIZE] = {};  // left, right, top, bottom
    uint16_t l1H = 0;
    uint16_t l1W = 0;
    uint16_t channelSize = 0;
    uint16_t kExtension = 0;
    uint16_t mExtension = 0;
    uint16_t kStartPt = 0;
    uint16_t mStartPt = 0;
    uint8_t strideW = 1;
    uint8_t strideH = 1;
    uint8_t filterW = 1;
    uint8_t filterH = 1;
    uint8_t dilationFilterW = 1;
    uint8_t dilationFilterH = 1;
    bool enTranspose = false;
    bool enSmallK = false;
    T padValue = T(0);
    bool filterSizeW = false;
    bool filterSizeH = false;
    bool fMatrixCtrl = false;
};
// The same with registers for the feature map and its padding, and with its sizes packed into two words.
struct LoadData3DParamsV2Pro {
    LoadData3DParamsV2Pro() = default;
    LoadData3DParamsV2Pro(uint16_t channels, bool transpose, bool small_k, bool wide_filter, bool high_filter,
                          bool matrix_control, uint64_t extension, uint64_t filter)
        : channelSize(channels),
          enTranspose(transpose),
          enSmallK(small_k),
          filterSizeW(wide_filter),
          filterSizeH(high_filter),
          fMatrixCtrl(matrix_control),
          extConfig(extension),
          filterConfig(filter) {}
    uint16_t channelSize = 0;
    bool enTranspose = false;
    bool enSmallK = false;
    bool filterSizeW = false;
    bool filterSizeH = false;
    bool fMatrixCtrl = false;
    uint64_t extConfig = 0;  // of 16 bits, from the lowest: kExtension, mExtension, kStartPt, mStartPt
    uint64_t filterConfig =
        0x010101010101;  // of 8: strideW, strideH, filterW, filterH, dilationFilterW, dilationFilterH
};
struct IsResetLoad3dConfig {
    bool isSetFMatrix = true;
    bool isSetPadding = true;
};
constexpr IsResetLoad3dConfig IS_RESER_LOAD3D_DEFAULT_CONFIG = {true, true};

// Which matrix a feature map is read for; LoadData's parameters say it by fMatrixCtrl.
enum class FmatrixMode : uint8_t { FMATRIX_LEFT = 0, FMATRIX_RIGHT = 1 };

namespace detail {
inline void set_feature_map(ascendc_host::Block::FeatureMap& map, uint16_t height, uint16_t width,
                            const uint8_t* pads) {
    map.height = height;
    map.width = width;
    std::copy_n(pads, PAD_SIZE, map.pads);
}
}  // namespace detail

// The size of the feature map, and how far it is padded on its left, right, top and bottom, for LoadData with
// isSetFMatrix = false.
inline void SetFmatrix(uint16_t l1H, uint16_t l1W, const uint8_t padList[4], const FmatrixMode& fmatrixMode,
                       Where where = Where()) {
    auto& block = ascendc_host::enter(where);
    if (l1H == 0 || l1W == 0 || l1H > 32767 || l1W > 32767) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format("SetFmatrix: a feature map of %u x %u; each can be 1 to 32767", l1H, l1W));
    }
    detail::set_feature_map(block.feature_maps[static_cast<size_t>(fmatrixMode)], l1H, l1W, padList);
}
// The same for the left matrix.
inline void Load3DSetFMatrixCal(uint16_t l1H, uint16_t l1W, const uint8_t padList[4], Where where = Where()) {
    SetFmatrix(l1H, l1W, padList, FmatrixMode::FMATRIX_LEFT, where);
}
// What the padding holds, for LoadData with isSetPadding = false.
template <typename T>
void SetLoadDataPaddingValue(const T padValue) {
    auto& pad = ascendc_host::current().feature_pad;
    if constexpr (sizeof(T) <= sizeof pad) {
        std::memcpy(&pad, &padValue, sizeof padValue);
    } else {
        // No element has this type, but 0 is 0 in every one: kernels that pad nothing write it so.
        if (padValue != T(0)) {
            ascendc_host::fail(
                "SetLoadDataPaddingValue: a value of 8 bytes that is not 0; elements have 4 at "
                "most, convert it to their type");
        }
        pad = 0;
    }
}

#if __NPU_ARCH__ != 3510
// Bytes of L1: what LoadData would read behind them, it reads from the start of L1 on. 0 is all of L1.
inline void SetLoadDataBoundary(uint32_t boundaryValue, Where where = Where()) {
    auto& block = ascendc_host::enter(where);
    if (boundaryValue != 0 && boundaryValue < 1024) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format("SetLoadDataBoundary: %u bytes; valid: 0 (none) and 1024 or more",
                                 boundaryValue));
    }
    block.feature_boundary = boundaryValue;
}

struct LoadDataRepeatParam {
    LoadDataRepeatParam() = default;
    LoadDataRepeatParam(uint16_t stride, uint8_t times, uint8_t mode)
        : repeatStride(stride), repeatTime(times), repeatMode(mode) {}
    uint16_t repeatStride = 0;
    uint8_t repeatTime = 1;
    uint8_t repeatMode = 0;
    static constexpr uint16_t dstStride = 0;
};
#else
struct LoadDataRepeatParam {
    LoadDataRepeatParam() = default;
    LoadDataRepeatParam(uint16_t stride, uint8_t times, uint8_t mode, uint16_t destination)
        : repeatStride(stride), repeatTime(times), repeatMode(mode), dstStride(destination) {}
    uint16_t repeatStride = 0;
    uint8_t repeatTime = 1;
    uint8_t repeatMode = 0;
    uint16_t dstStride = 0;  // fractals from one along k to the next; 0 as many as lie between them
};
using LoadDataRepeatParamWithStride = LoadDataRepeatParam;
#endif
// How often LoadData runs: once, or not at all. Where the results of further repeats go is not documented.
inline void SetLoadDataRepeat(const LoadDataRepeatParam& repeatParams, Where where = Where()) {
    auto& block = ascendc_host::enter(where);
    if (repeatParams.repeatTime > 1 || repeatParams.repeatMode > 1) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format(
                "SetLoadDataRepeat: repeatTime %u, repeatMode %u; valid on the host: repeatTime 0 "
                "and 1, repeatMode 0 and 1; call LoadData for each repeat",
                unsigned(repeatParams.repeatTime), unsigned(repeatParams.repeatMode)));
    }
    block.feature_repeats = repeatParams.repeatTime;
    block.feature_stride = repeatParams.dstStride;
}

// The patches of a feature map [C1, H, W, c0] as a matrix, from row mStartPt and column kStartPt on: as the
// rows of A in L0A, as its columns with enTranspose, and in L0B as B with the patches along k.
template <typename T, const IsResetLoad3dConfig& config = IS_RESER_LOAD3D_DEFAULT_CONFIG>
void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData3DParamsV2<T>& p,
              Where where = Where()) {
    static_assert(detail::cube_has_packed<T>, "LoadData: dav-3510 does not have int4b_t");
    const auto& block = ascendc_host::enter(where);
    detail::require_position(src, ascendc_host::Memory::l1, "LoadData", "src", where);
    detail::require_l0(dst, "LoadData", where);
    if (ascendc_host::is_packed<T>) {
        const uint32_t rest = p.channelSize % 64;
        if (p.channelSize == 0 || (rest != 0 && rest != 8 && rest != 16 && rest != 32)) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format("LoadData: channelSize %u of int4b_t; valid: 8, 16, 32 and 0 more than "
                                     "a multiple of 64",
                                     unsigned(p.channelSize)));
        }
    }
    const bool to_b = memory_of(dst.position()) == ascendc_host::Memory::l0b;
    const bool turned = to_b || p.enTranspose;
    if (turned && sizeof(T) == 1 && ascendc_host::npu_architecture != 3510) {
        ascendc_host::fail(
            block, where,
            "LoadData: with LoadData3DParamsV2, L0B and enTranspose are for elements of 2 and 4 bytes");
    }
    if (block.feature_repeats == 0) return;
    auto& map = ascendc_host::current().feature_maps[p.fMatrixCtrl ? 1 : 0];
    if constexpr (config.isSetFMatrix) detail::set_feature_map(map, p.l1H, p.l1W, p.padList);
    if (map.height == 0 || map.width == 0)
        ascendc_host::fail(block, where,
                           "LoadData: the feature map has no size; set l1H and l1W, or SetFmatrix");
    if constexpr (config.isSetPadding) SetLoadDataPaddingValue(p.padValue);
    T pad;
    std::memcpy(&pad, &block.feature_pad, sizeof pad);
    constexpr uint32_t c0 = ascendc_host::elements_of<T>(32);
    if (p.strideW == 0 || p.strideH == 0 || p.filterW == 0 || p.filterH == 0) {
        ascendc_host::fail(block, where, "LoadData: strides and filter sizes must be above 0");
    }
    const int64_t span_w = int64_t(p.dilationFilterW) * (p.filterW - 1) + 1;
    const int64_t out_w = (map.width + map.pads[0] + map.pads[1] - span_w) / p.strideW + 1;
    if (out_w <= 0)
        ascendc_host::fail(block, where, "LoadData: the filter is wider than the padded feature map");
    const detail::OnPipe pipe(detail::Pipe::mte1);
    const uint64_t boundary = block.feature_boundary;
    uint8_t* const l1 = ascendc_host::current().memory(ascendc_host::Memory::l1);
    const auto begin = static_cast<uint64_t>(src.bytes() - l1);
    if (boundary > memory_bytes(ascendc_host::Memory::l1) || (boundary != 0 && begin >= boundary)) {
        ascendc_host::fail(block, where,
                           ascendc_host::format(
                               "LoadData: src begins at byte %llu of the L1 buffer, which has %u; "
                               "SetLoadDataBoundary set %llu, and src must begin before it",
                               static_cast<unsigned long long>(begin), memory_bytes(ascendc_host::Memory::l1),
                               static_cast<unsigned long long>(boundary)));
    }
    const auto element = [&](uint64_t at) {
        const uint64_t byte = begin + at * SizeOfBits<T>::value / 8;
        if (boundary == 0 || byte < boundary) {
            return ascendc_host::element<T>(
                src.use_bytes(ascendc_host::bytes_of<T>(at + 1), "LoadData", "src", where), at);
        }
        return ascendc_host::element<T>(l1 + byte % boundary, ascendc_host::is_packed<T> ? at % 2 : 0);
    };
    // What becomes of it is a matrix of so many rows and columns of fractals, turned or not.
    const uint32_t rows = ((turned ? p.kExtension : p.mExtension) + 15u) / 16;
    const uint32_t columns = turned ? (p.mExtension + 15u) / 16 * 16 / c0 : (p.kExtension + c0 - 1u) / c0;
    const uint32_t stride = block.feature_stride != 0 ? block.feature_stride : rows;
    for (uint32_t m = 0; m < p.mExtension; ++m) {
        const int64_t place = int64_t(p.mStartPt) + m;
        for (uint32_t k = 0; k < p.kExtension; ++k) {
            const uint32_t index = p.kStartPt + k;
            const uint32_t tap = index / c0;
            const uint32_t kw = tap % p.filterW;
            const uint32_t kh = tap / p.filterW % p.filterH;
            const uint32_t c1 = tap / p.filterW / p.filterH;
            const int64_t h = place / out_w * p.strideH + int64_t(kh) * p.dilationFilterH - map.pads[2];
            const int64_t w = place % out_w * p.strideW + int64_t(kw) * p.dilationFilterW - map.pads[0];
            T value = pad;
            if (h >= 0 && h < map.height && w >= 0 && w < map.width) {
                const uint64_t from = ((uint64_t(c1) * map.height + h) * map.width + w) * c0 + index % c0;
                value = element(from);
            }
            // Turned, c0 rows of the patches make the width of a fractal, and 16 columns its height.
            const uint32_t row = (turned ? k : m) / 16, column = (turned ? m : k) / c0;
            const uint64_t fractal =
                to_b ? uint64_t(column) * stride + row : detail::fractal_of_a(row, column, stride, columns);
            const uint64_t at = fractal * 16 * c0 + (turned ? k % 16 * c0 + m % c0 : m % 16 * c0 + k % c0);
            ascendc_host::set_element(
                dst.use_bytes(ascendc_host::bytes_of<T>(at + 1), "LoadData", "dst", where), at, value);
        }
    }
}
template <typename T>
void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData3DParamsV2Pro& p,
              Where where = Where()) {
    static constexpr IsResetLoad3dConfig by_registers = {false, false};
    const auto sizes = [&p](int at) { return static_cast<uint16_t>(p.extConfig >> 16 * at); };
    const auto filter = [&p](int at) { return static_cast<uint8_t>(p.filterConfig >> 8 * at); };
    const uint8_t pads[PAD_SIZE] = {};
    LoadData<T, by_registers>(
        dst, src,
        LoadData3DParamsV2<T>(pads, 0, 0, p.channelSize, sizes(0), sizes(1), sizes(2), sizes(3), filter(0),
                              filter(1), filter(2), filter(3), filter(4), filter(5), p.enTranspose,
                              p.enSmallK, T(0), p.filterSizeW, p.filterSizeH, p.fMatrixCtrl),
        where);
}

#if __NPU_ARCH__ == 3510
// The same with a distance of fractals along k that must be set.
inline void SetLoadDataRepeatWithStride(const LoadDataRepeatParamWithStride& repeatParams,
                                        Where where = Where()) {
    SetLoadDataRepeat(repeatParams, where);
}
template <typename T, const IsResetLoad3dConfig& config = IS_RESER_LOAD3D_DEFAULT_CONFIG>
void LoadDataWithStride(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData3DParamsV2<T>& p,
                        Where where = Where()) {
    const auto& block = ascendc_host::enter(where);
    if (block.feature_stride == 0)
        ascendc_host::fail(
            block, where, "LoadDataWithStride: dstStride is not set; call SetLoadDataRepeatWithStride first");
    LoadData<T, config>(dst, src, p, where);
}
#endif

}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_FEATURE_MAP_H
