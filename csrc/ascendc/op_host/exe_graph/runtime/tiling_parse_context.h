// gert::TilingParseContext: what a TilingParse function reads, and the compile information that it fills.
#ifndef ASCEND_GRAPH_GERT_TILING_PARSE_CONTEXT_H
#define ASCEND_GRAPH_GERT_TILING_PARSE_CONTEXT_H

#include <memory>

#include "ascend_graph/platform_infos.h"
#include "exe_graph/runtime/extended_kernel_context.h"

namespace gert {

class TilingParseContext : public ExtendedKernelContext {
  public:
    TilingParseContext(ComputeNodeInfo& node, std::shared_ptr<void>& compile_info)
        : ExtendedKernelContext(node), compile_info_(compile_info) {}

    // The compile information; made at first use where the registration of the function did not say its type.
    template <typename T>
    T* GetCompiledInfo() {
        if (compile_info_ == nullptr) compile_info_ = std::make_shared<T>();
        return static_cast<T*>(compile_info_.get());
    }
    const char* GetCompiledJson() const { return "{}"; }
    fe::PlatFormInfos* GetPlatformInfo() const { return fe::PlatFormInfos::get(); }

  private:
    std::shared_ptr<void>& compile_info_;
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_TILING_PARSE_CONTEXT_H
