#pragma once
#include "register/tilingdata_base.h"
#include "tiling/tiling_api.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(Weights)
TILING_DATA_FIELD_DEF_ARR(float, 3, values);
TILING_DATA_FIELD_DEF(int8_t, shift);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(EverythingWeights, Weights)

BEGIN_TILING_DATA_DEF(EverythingTiling)
TILING_DATA_FIELD_DEF(uint8_t, flag);
TILING_DATA_FIELD_DEF(uint32_t, total);
TILING_DATA_FIELD_DEF_STRUCT(Weights, weights);
TILING_DATA_FIELD_DEF_STRUCT(TCubeTiling, cube);
TILING_DATA_FIELD_DEF(uint64_t, lists);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Another, EverythingTiling)
REGISTER_TILING_DATA_CLASS(Everything, EverythingTiling)
}  // namespace optiling
