// CANN's runtime below ACL, as far as sources of operators name it: types.
#ifndef ASCENDC_HOST_RUNTIME_KERNEL_H
#define ASCENDC_HOST_RUNTIME_KERNEL_H

#include <cstdint>

using rtError_t = int32_t;
using rtStream_t = void*;
using rtContext_t = void*;
using rtNotify_t = void*;
using rtEvent_t = void*;
constexpr rtError_t RT_ERROR_NONE = 0;

#endif  // ASCENDC_HOST_RUNTIME_KERNEL_H
