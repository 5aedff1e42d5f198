// The instructions on vector registers that dav-3510 has: AscendC::Reg, or AscendC::MicroAPI by its older
// name.
#ifndef ASCENDC_HOST_REGISTERS_H
#define ASCENDC_HOST_REGISTERS_H

#include "qualifiers.h"

#if __NPU_ARCH__ == 3510
#include "reg/calculate.h"
#include "reg/copies.h"
#include "reg/functions.h"
#include "reg/masks.h"
#include "reg/rearrange.h"
#include "reg/scattered.h"
#endif

#endif  // ASCENDC_HOST_REGISTERS_H
