// What functions in SIMT form use beside threads themselves, which kernel_operator.h has.
#ifndef ASCENDC_HOST_SIMT_H
#define ASCENDC_HOST_SIMT_H

#include "../kernel_operator.h"

#if __NPU_ARCH__ != 3510
#error "simt_api: threads are of dav-3510; compile with --npu-arch=dav-3510"
#endif

#include "simt/conversions.h"
#include "simt/memory.h"
#include "simt/warps.h"

#endif  // ASCENDC_HOST_SIMT_H
