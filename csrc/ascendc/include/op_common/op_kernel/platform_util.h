// The sizes of the device's units, in bytes.
#ifndef ASCEND_GRAPH_OP_KERNEL_PLATFORM_UTIL_H
#define ASCEND_GRAPH_OP_KERNEL_PLATFORM_UTIL_H

#include "kernel_operator.h"

namespace Ops::Base {

__aicore__ inline constexpr uint32_t GetUbBlockSize() { return 32; }
__aicore__ inline constexpr uint32_t GetVRegSize() { return 256; }

}  // namespace Ops::Base

#endif  // ASCEND_GRAPH_OP_KERNEL_PLATFORM_UTIL_H
