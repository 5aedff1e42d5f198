// The instructions on vector registers that dav-3510 has: AscendC::Reg, or AscendC::MicroAPI by its older
// name.
#ifndef ASCENDC_HOST_REG_COMPUTE_REG_COMPUTE_H
#define ASCENDC_HOST_REG_COMPUTE_REG_COMPUTE_H

#include "ascendc_host/internal/qualifiers.h"

#if __NPU_ARCH__ == 3510
#include "ascendc_host/reg_compute/calculate.h"
#include "ascendc_host/reg_compute/functions.h"
#include "ascendc_host/reg_compute/load_store.h"
#include "ascendc_host/reg_compute/masks.h"
#include "ascendc_host/reg_compute/rearrange.h"
#include "ascendc_host/reg_compute/scattered.h"
#endif

#endif  // ASCENDC_HOST_REG_COMPUTE_REG_COMPUTE_H
