// What functions in SIMT form use other than threads themselves, which kernel_operator.h has.
#ifndef ASCENDC_HOST_SIMT_API_SIMT_API_H
#define ASCENDC_HOST_SIMT_API_SIMT_API_H

#include "../../kernel_operator.h"

#if __NPU_ARCH__ != 3510
#error "simt_api: threads are of dav-3510; compile with --npu-arch=dav-3510"
#endif

#include "ascendc_host/simt_api/constants.h"
#include "ascendc_host/simt_api/conversions.h"
#include "ascendc_host/simt_api/functions.h"
#include "ascendc_host/simt_api/memory.h"
#include "ascendc_host/simt_api/warps.h"

#endif  // ASCENDC_HOST_SIMT_API_SIMT_API_H
