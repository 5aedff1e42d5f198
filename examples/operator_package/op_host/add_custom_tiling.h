#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(AddCustomTilingData)
TILING_DATA_FIELD_DEF(uint32_t, total);  // elements
TILING_DATA_FIELD_DEF(uint32_t, block);  // elements per core
TILING_DATA_FIELD_DEF(uint32_t, tile);   // elements per tile, a multiple of 32 bytes
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(AddCustom, AddCustomTilingData)
}  // namespace optiling
