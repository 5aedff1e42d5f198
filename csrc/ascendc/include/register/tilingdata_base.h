#include "tilingdef.h"
// Sources of the host have GE's data types with it.
#if __has_include("graph/types.h")
#include "graph/types.h"
#endif
