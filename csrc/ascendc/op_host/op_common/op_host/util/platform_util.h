// What tiling functions ask about the device, by their context.
#ifndef ASCEND_GRAPH_OP_HOST_PLATFORM_UTIL_H
#define ASCEND_GRAPH_OP_HOST_PLATFORM_UTIL_H

#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"
#include "op_common/log/log.h"
#include "tiling/platform/platform_ascendc.h"

namespace Ops::Base {

template <typename Context>
uint32_t GetAivCoreNum(const Context* context) {
    return platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAiv();
}
template <typename Context>
uint32_t GetAicCoreNum(const Context* context) {
    return platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAic();
}
template <typename Context>
uint32_t GetUbSize(const Context* context) {
    uint64_t size = 0;
    platform_ascendc::PlatformAscendC(context->GetPlatformInfo())
        .GetCoreMemSize(platform_ascendc::CoreMemType::UB, size);
    return static_cast<uint32_t>(size);
}
template <typename Context>
uint32_t GetWorkspaceSize(const Context* context) {
    return platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetLibApiWorkSpaceSize();
}
// Bytes: of a block of the unified buffer, of a vector register, of a line of the cache.
template <typename Context>
uint32_t GetUbBlockSize(const Context*) {
    return 32;
}
template <typename Context>
uint32_t GetVRegSize(const Context*) {
    return 256;
}
template <typename Context>
uint32_t GetCacheLineSize(const Context*) {
    return 256;
}
// Of the cache of copies in several dimensions, which dav-3510 has.
template <typename Context>
uint32_t GetNddmaDcacheSize(const Context*) {
    return 32 * 1024;
}

}  // namespace Ops::Base

#endif  // ASCEND_GRAPH_OP_HOST_PLATFORM_UTIL_H
