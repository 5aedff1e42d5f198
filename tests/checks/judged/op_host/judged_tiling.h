#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(JudgedCopyTilingData)
TILING_DATA_FIELD_DEF(uint32_t, total);
TILING_DATA_FIELD_DEF(uint32_t, twice);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(JudgedCopy, JudgedCopyTilingData)

BEGIN_TILING_DATA_DEF(JudgedHalfTilingData)
TILING_DATA_FIELD_DEF(uint32_t, total);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(JudgedHalf, JudgedHalfTilingData)

BEGIN_TILING_DATA_DEF(JudgedHeadTilingData)
TILING_DATA_FIELD_DEF(uint32_t, total);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(JudgedHead, JudgedHeadTilingData)

BEGIN_TILING_DATA_DEF(JudgedWaitTilingData)
TILING_DATA_FIELD_DEF(uint32_t, total);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(JudgedWait, JudgedWaitTilingData)
}  // namespace optiling
