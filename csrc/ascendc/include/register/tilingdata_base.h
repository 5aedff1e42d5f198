#include "../securec.h"
#include "tilingdef.h"

// Headers that kernels share with tiling functions use both whether anything is in them or not.
namespace optiling {}
namespace AscendC {}

// Sources of the host have GE's data types with it.
#if __has_include("graph/types.h")
#include "graph/types.h"
#endif
