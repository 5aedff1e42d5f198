// Helpers of tiling functions that repositories of operators have in a file of this name, for projects that
// were taken out of one: a repository's own file comes first.
#ifndef ASCEND_GRAPH_OP_HOST_RUNTIME2_UTIL_H
#define ASCEND_GRAPH_OP_HOST_RUNTIME2_UTIL_H

#include <cstddef>
#include <cstdint>
#if __has_include(<nlohmann/json.hpp>)
#include <memory>
#include <nlohmann/json.hpp>
#endif

#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"
#include "register/op_impl_registry.h"

namespace optiling {

template <typename T>
T* MutableCompileInfo(gert::TilingParseContext* context) {
    return context->GetCompiledInfo<T>();
}
#if __has_include(<nlohmann/json.hpp>)
inline std::unique_ptr<nlohmann::json> GetJsonObj(gert::TilingParseContext* context) {
    const char* text = context->GetCompiledJson();
    return text == nullptr ? nullptr : std::make_unique<nlohmann::json>(nlohmann::json::parse(text));
}
#endif
inline bool AddWorkspace(gert::TilingContext* context, const size_t workspace) {
    size_t* size = context->GetWorkspaceSizes(1);
    if (size == nullptr) return false;
    *size = workspace;
    return true;
}
// The product of dimensions [begin, end).
inline int64_t GetPartShapeSize(const gert::Shape& shape, size_t begin, size_t end) {
    int64_t size = 1;
    for (size_t i = begin; i < end; ++i) size *= shape.GetDim(i);
    return size;
}
// A divisor of 0 leaves the value as it is.
inline int64_t CeilAlign(int64_t value, int64_t divisor) {
    return divisor == 0 ? value : (value + divisor - 1) / divisor * divisor;
}
inline int64_t GetRemainder(int64_t value, int64_t divisor) { return divisor == 0 ? value : value % divisor; }

}  // namespace optiling

#endif  // ASCEND_GRAPH_OP_HOST_RUNTIME2_UTIL_H
