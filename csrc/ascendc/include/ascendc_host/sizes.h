// Sizes that kernels and tiling functions share.
#ifndef ASCENDC_HOST_SIZES_H
#define ASCENDC_HOST_SIZES_H

#include <cstdint>

namespace AscendC {

constexpr int32_t BLOCK_CUBE = 16;

}  // namespace AscendC

#endif  // ASCENDC_HOST_SIZES_H
