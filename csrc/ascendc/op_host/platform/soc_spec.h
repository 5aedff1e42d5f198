// The architectures of NPUs, by their numbers.
#ifndef ASCEND_GRAPH_PLATFORM_SOC_SPEC_H
#define ASCEND_GRAPH_PLATFORM_SOC_SPEC_H

#include "tiling/platform/platform_ascendc.h"

#endif  // ASCEND_GRAPH_PLATFORM_SOC_SPEC_H
