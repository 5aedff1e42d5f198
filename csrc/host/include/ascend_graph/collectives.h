// What libhccl asks of the bridge to PyTorch: groups of processes, and collectives among them.
#ifndef ASCEND_GRAPH_COLLECTIVES_H
#define ASCEND_GRAPH_COLLECTIVES_H

#include <cstddef>
#include <cstdint>

namespace ascend_graph::host {

enum class Collective : int32_t {
    kAllReduce,
    kReduce,
    kBroadcast,
    kAllGather,
    kReduceScatter,
    kScatter,
    kAllGatherV,
    kReduceScatterV,
    kBarrier,
    kExchange,  // sends and receives, all at once
};

// Part of a buffer, and the rank that it goes to or comes from.
struct Piece {
    void* data;
    uint64_t bytes;
    uint32_t rank;
};

// One collective as a rank takes part in it. `dtype` and `reduction` are HcclDataType's and HcclReduceOp's
// numbers; `count` is of elements: of `send`, but where the result is smaller (reduce-scatter, scatter) of
// `recv`. A broadcast has `recv` alone.
struct CollectiveCall {
    Collective kind;
    int32_t dtype;
    int32_t reduction;
    uint32_t root;
    void* send;
    void* recv;
    uint64_t count;
    const Piece* sends;
    size_t send_count;
    const Piece* receives;
    size_t receive_count;
};

// A rank of a communicator: its process, and the descriptor there of the memory that it shares.
struct Member {
    int64_t process;
    int32_t window;
};

// The processes of a communicator. Every function returns an ACL error code and leaves a failure's text with
// ascendgraphFail.
struct Transport {
    // Where the ranks of a communicator to be find each other, as a text of at most `size` bytes.
    int (*serve)(char* address, size_t size);
    // Returns when all `ranks` are there. `timeout` in seconds is that of the later calls of `run`, 0 for
    // none. `members` are as many as ranks: the window of this rank is given, the rest is written.
    int (*connect)(const char* address, uint32_t ranks, uint32_t rank, int32_t device, uint32_t timeout,
                   Member* members, void** group);
    // Takes part in a collective, to its end; one call at a time. After a failure the group is of no use.
    int (*run)(void* group, const char* name, const CollectiveCall& call);
    // Takes leave; the others' collectives with this rank fail from now on.
    void (*close)(void* group);
};

}  // namespace ascend_graph::host

// Called by the bridge when it is loaded.
extern "C" void ascendgraphSetTransport(ascend_graph::host::Transport transport);

#endif  // ASCEND_GRAPH_COLLECTIVES_H
