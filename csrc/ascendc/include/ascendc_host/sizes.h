// Sizes and modes that kernels and tiling functions share.
#ifndef ASCENDC_HOST_SIZES_H
#define ASCENDC_HOST_SIZES_H

#include <cstdint>

namespace AscendC {

constexpr int32_t BLOCK_CUBE = 16;

// How TopK lays out its results: rows of whole blocks of 32 bytes, or, of rows of 32 elements, one after the
// other.
enum class TopKMode { TOPK_NORMAL, TOPK_NSMALL };

// Which dimensions of a matrix stay (A) and which go (R).
enum class ReducePattern : uint32_t { AR = 0, RA = 1, R };

}  // namespace AscendC

#endif  // ASCENDC_HOST_SIZES_H
