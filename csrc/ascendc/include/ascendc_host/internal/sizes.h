// Sizes, modes and formats that kernels and tiling functions share.
#ifndef ASCENDC_HOST_INTERNAL_SIZES_H
#define ASCENDC_HOST_INTERNAL_SIZES_H

#include <cstdint>

namespace AscendC {

// Of the types that CANN gives them on either side.
#ifdef __CCE__
constexpr int32_t BLOCK_CUBE = 16;
constexpr uint16_t ONE_BLK_SIZE = 32;
#else
constexpr uint32_t BLOCK_CUBE = 16;
constexpr uint32_t ONE_BLK_SIZE = 32;
#endif

// How TopK lays out its results: rows of whole blocks of 32 bytes, or, of rows of 32 elements, one after the
// other.
enum class TopKMode { TOPK_NORMAL, TOPK_NSMALL };
enum class TopKAlgo { RADIX_SELECT, MERGE_SORT };
enum class TopKOrder { UNSET, LARGEST, SMALLEST };
struct TopKConfig {
    TopKAlgo algo = TopKAlgo::MERGE_SORT;
    TopKOrder order = TopKOrder::UNSET;
    bool sorted = true;
};

// Which dimensions of a matrix stay (A) and which go (R).
enum class ReducePattern : uint32_t { AR = 0, RA = 1, R };

enum class DataFormat : uint8_t { ND = 0, NZ, NCHW, NC1HWC0, NHWC, NCDHW, NDC1HWC0, FRACTAL_Z_3D };
struct TransDataConfig {
    DataFormat srcFormat;
    DataFormat dstFormat;
};

enum class SortType { RADIX_SORT, MERGE_SORT };
struct SortConfig {
    SortType type = SortType::RADIX_SORT;
    bool isDescend = false;
    bool hasSrcIndex = false;
    bool hasDstIndex = false;
};

}  // namespace AscendC

#endif  // ASCENDC_HOST_INTERNAL_SIZES_H
