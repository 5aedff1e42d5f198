// CANN's runtime below ACL, as far as sources of operators name it: types, and what it says of the processor.
#ifndef ASCENDC_HOST_RUNTIME_KERNEL_H
#define ASCENDC_HOST_RUNTIME_KERNEL_H

#include <cstdint>

using rtError_t = int32_t;
using rtStream_t = void*;
using rtContext_t = void*;
using rtNotify_t = void*;
using rtEvent_t = void*;
constexpr rtError_t RT_ERROR_NONE = 0;

// Of the label "version" SoC_version, Short_SoC_version and NpuArch; RT_ERROR_NONE, or an error.
extern "C" rtError_t rtGetSocSpec(const char* label, const char* key, char* value, uint32_t size);
// The name of the processor.
extern "C" rtError_t rtGetSocVersion(char* version, uint32_t maxLen);

#endif  // ASCENDC_HOST_RUNTIME_KERNEL_H
