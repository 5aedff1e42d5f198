// The contexts of communicators that kernels get: operator packages ask here, libhccl answers.
#include "ascend_graph/kernel_context.h"

#include "acl/runtime.h"

namespace {
int (*hold)(const char*, ascend_graph::host::KernelContext**, void**) = nullptr;
void (*let_go)(void*) = nullptr;
uint32_t (*ranks_of)(const char*, uint64_t*) = nullptr;
}  // namespace

ACL_EXPORT void ascendgraphSetContexts(int (*holds)(const char*, ascend_graph::host::KernelContext**, void**),
                                       void (*lets_go)(void*), uint32_t (*counts)(const char*, uint64_t*)) {
    hold = holds;
    let_go = lets_go;
    ranks_of = counts;
}

ACL_EXPORT int ascendgraphHoldContext(const char* group, ascend_graph::host::KernelContext** context,
                                      void** held) {
    if (hold == nullptr)
        return ascend_graph::host::fail(
            ACL_ERROR_INVALID_PARAM,
            "no communicator: the process has not loaded libhccl.so; call HcclCommInit… first");
    return hold(group, context, held);
}

ACL_EXPORT void ascendgraphLetGo(void* held) { let_go(held); }

ACL_EXPORT uint32_t ascendgraphRanksOf(const char* group, uint64_t* window_bytes) {
    return ranks_of == nullptr ? 0 : ranks_of(group, window_bytes);
}
