// gert::TilingParseContext: what a TilingParse function reads, and the compile information that it fills.
#ifndef ASCEND_GRAPH_GERT_TILING_PARSE_CONTEXT_H
#define ASCEND_GRAPH_GERT_TILING_PARSE_CONTEXT_H

#include "ascend_graph/platform_infos.h"
#include "exe_graph/runtime/extended_kernel_context.h"

namespace gert {

class TilingParseContext : public ExtendedKernelContext {
  public:
    TilingParseContext(ComputeNodeInfo& node, void* compile_info)
        : ExtendedKernelContext(node), compile_info_(compile_info) {}

    template <typename T>
    T* GetCompiledInfo() {
        return static_cast<T*>(compile_info_);
    }
    const char* GetCompiledJson() const { return "{}"; }
    fe::PlatFormInfos* GetPlatformInfo() const { return fe::PlatFormInfos::get(); }

  private:
    void* compile_info_;
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_TILING_PARSE_CONTEXT_H
