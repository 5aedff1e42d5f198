// What a kernel has of a communicator: the context that GetHcclContext leads to.
//
// It begins with the structure that authors' kernels read (rank, number of ranks, windows), laid out as the
// device has it; this lies in front of it. libhccl makes contexts, operator packages hold them for their
// launches, and the runtime of kernels begins collectives through them.
#ifndef ASCEND_GRAPH_KERNEL_CONTEXT_H
#define ASCEND_GRAPH_KERNEL_CONTEXT_H

#include <cstdint>

#include "ascend_graph/collectives.h"

namespace ascend_graph::host {

struct KernelContext {
    static constexpr uint64_t kMark = 0x7478657463636861;

    uint64_t mark;
    const char* name;
    uint32_t ranks, rank;
    uint64_t window_bytes;  // of each
    // By rank: memory that all ranks have, at an address of this process.
    uint8_t* const* windows_in;
    uint8_t* const* windows_out;
    // Begins a collective. Those of one communicator follow each other in the order in which they begin. What
    // `call` points at stays until `ended` is called, once, by any thread: with 0, or an error and its text.
    void (*begin)(void* communicator, const CollectiveCall& call,
                  void (*ended)(void* state, int error, const char* text), void* state);
    void* communicator;
    const void* start;  // of the memory that holds this, for whoever is given the address behind it

    uint8_t* address() { return reinterpret_cast<uint8_t*>(this + 1); }
    // Null where no context lies in front of the address.
    static KernelContext* at(const void* address) {
        auto* context = reinterpret_cast<KernelContext*>(const_cast<void*>(address)) - 1;
        return context->mark == kMark && context->start == context ? context : nullptr;
    }
};

}  // namespace ascend_graph::host

// The context of the communicator of this name, which lives until it is let go: `held` is what
// ascendgraphLetGo takes. Returns an ACL error code.
extern "C" int ascendgraphHoldContext(const char* group, ascend_graph::host::KernelContext** context,
                                      void** held);
extern "C" void ascendgraphLetGo(void* held);
// Of the communicator of this name: how many ranks it has, 0 where there is none, and the bytes of a window.
extern "C" uint32_t ascendgraphRanksOf(const char* group, uint64_t* window_bytes);
// Called by libhccl when it is loaded.
extern "C" void ascendgraphSetContexts(int (*hold)(const char*, ascend_graph::host::KernelContext**, void**),
                                       void (*let_go)(void*), uint32_t (*ranks_of)(const char*, uint64_t*));

#endif  // ASCEND_GRAPH_KERNEL_CONTEXT_H
