// How vector functions on registers are written: they run as they stand, in the order of the program.
#ifndef ASCENDC_HOST_REG_COMPUTE_FUNCTIONS_H
#define ASCENDC_HOST_REG_COMPUTE_FUNCTIONS_H

#include "ascendc_host/reg_compute/types.h"
#include "ascendc_host/simt_api/threads.h"

#define __simd_vf__
#define __simd_callee__
#define __no_simd_vf_fusion__
#define __VEC_SCOPE__

namespace AscendC {
namespace Reg {

// The host makes every store visible to what comes after it.
template <MemType before, MemType after>
void LocalMemBar() {}

}  // namespace Reg
}  // namespace AscendC

#endif  // ASCENDC_HOST_REG_COMPUTE_FUNCTIONS_H
