// The Ascend C kernel API on the host: what a kernel includes.
#ifndef KERNEL_OPERATOR_H
#define KERNEL_OPERATOR_H

#include "ascendc_host/arithmetic.h"
#include "ascendc_host/copy.h"
#include "ascendc_host/pipe.h"
#include "ascendc_host/sync.h"

#endif  // KERNEL_OPERATOR_H
