// The Ascend C kernel API on the host: what a kernel includes.
#ifndef KERNEL_OPERATOR_H
#define KERNEL_OPERATOR_H

#include "ascendc_host/arithmetic.h"
#include "ascendc_host/broadcast.h"
#include "ascendc_host/cast.h"
#include "ascendc_host/compare.h"
#include "ascendc_host/copy.h"
#include "ascendc_host/copy_dimensions.h"
#include "ascendc_host/copy_pad.h"
#include "ascendc_host/cube.h"
#include "ascendc_host/debug.h"
#include "ascendc_host/feature_map.h"
#include "ascendc_host/list.h"
#include "ascendc_host/math.h"
#include "ascendc_host/normalization.h"
#include "ascendc_host/patterns.h"
#include "ascendc_host/pipe.h"
#include "ascendc_host/quantization.h"
#include "ascendc_host/reduce.h"
#include "ascendc_host/refused.h"
#include "ascendc_host/registers.h"
#include "ascendc_host/reshape.h"
#include "ascendc_host/scalar.h"
#include "ascendc_host/softmax.h"
#include "ascendc_host/sort.h"
#include "ascendc_host/sync.h"
#include "ascendc_host/tik2.h"
#include "ascendc_host/tiling.h"

#endif  // KERNEL_OPERATOR_H
