// The context of a communicator that kernels get: the structure that they read, as each product has it, with
// what the runtime of kernels needs in front of it.
//
// The layouts are those that kernels of operator libraries declare for themselves: there is no public header
// with them.
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "ascend_graph/host_runtime.h"
#include "ascendc_host/internal/processors.h"
#include "hccl/communicator.h"

ACL_EXPORT const char* aclrtGetSocName();

namespace ascend_graph::host {
namespace {

constexpr uint64_t kWorkspaceBytes = 1024 * 1024;

// What all products begin with.
struct Head {
    uint64_t workspace, workspace_bytes;
    uint32_t rank, ranks;
    uint64_t window_bytes;
};

// Atlas A2 (32 ranks) and Ascend 950 (64): windows by rank. Behind them lies what the device's servers and
// its network need, which is zero here.
template <size_t kRanks>
struct ByRank {
    Head head;
    uint64_t windows_in[kRanks], windows_out[kRanks];
    uint8_t rest[8448];
};
static_assert(offsetof(ByRank<32>, windows_in) == 32 && offsetof(ByRank<32>, rest) == 544);

// Atlas A3: this rank's own windows, and at the end addresses of what there is of each rank.
struct Remote {
    uint32_t rank, world_rank;
    uint64_t window_in, window_out, states;
    uint64_t tags[4];
};
struct RemoteAddress {
    uint64_t on_host, on_device;
};
struct Linked {
    Head head;
    uint64_t window_in, window_out;
    char name[128];
    uint64_t state_bytes, states;
    uint32_t remote_start, remote_bytes;
    uint64_t version;
    uint8_t resources[2768];
    uint32_t notify_bytes, remote_count;
    RemoteAddress remote[1];  // as many as ranks
};
static_assert(offsetof(Linked, state_bytes) == 176 && offsetof(Linked, remote_count) == 2980 &&
              offsetof(Linked, remote) == 2984 && sizeof(Remote) == 64);

uint64_t number(const void* address) { return reinterpret_cast<uint64_t>(address); }

void begin_collective(void* communicator, const CollectiveCall& call, void (*ended)(void*, int, const char*),
                      void* state) {
    auto owned = std::make_shared<OwnedCall>();
    owned->function = "a collective of a kernel";
    owned->call = call;
    static_cast<Communicator*>(communicator)->begin(std::move(owned), [ended, state](const Job& job) {
        ended(state, job.error, job.text.c_str());
    });
}

}  // namespace

KernelContext& Communicator::context() {
    const std::lock_guard<std::mutex> lock(context_mutex_);
    if (context_ != nullptr) return *reinterpret_cast<KernelContext*>(context_.get());
    windows_->map(windows_->members);
    const Windows& w = *windows_;
    const char* const soc = aclrtGetSocName();
    const ascendc_host::Processor* processor = soc == nullptr ? nullptr : ascendc_host::find_processor(soc);
    if (processor == nullptr) throw std::runtime_error("kernels communicate on a known processor alone");
    const bool linked = ascendc_host::is_named(processor, "Ascend910_93");
    const uint32_t most = processor->most_kernel_ranks;
    if (most != 0 && ranks > most) {
        throw std::runtime_error("kernels on " + std::string(processor->name) +
                                 " communicate among at most " + std::to_string(most) +
                                 " ranks; this communicator has " + std::to_string(ranks));
    }
    const size_t layout = linked ? sizeof(Linked) + ranks * sizeof(RemoteAddress) : sizeof(ByRank<64>);
    const size_t remote_at = (sizeof(KernelContext) + layout + 63) / 64 * 64;
    const size_t workspace_at = remote_at + ranks * sizeof(Remote);
    context_.reset(new uint8_t[workspace_at + kWorkspaceBytes]());
    uint8_t* const memory = context_.get();

    auto& own = *new (memory) KernelContext{
        KernelContext::kMark, name.c_str(),     ranks, rank,  w.bytes(), w.in.data(),
        w.out.data(),         begin_collective, this,  memory};
    const Head head{number(memory + workspace_at), kWorkspaceBytes, rank, ranks, w.bytes()};
    if (linked) {
        auto& to = *new (own.address()) Linked{};
        to.head = head;
        to.window_in = number(w.in[rank]);
        to.window_out = number(w.out[rank]);
        std::strncpy(to.name, name.c_str(), sizeof to.name - 1);
        to.state_bytes = Windows::kStateBytes;
        to.states = number(w.states[rank]);
        to.remote_start = offsetof(Linked, remote);
        to.remote_bytes = sizeof(RemoteAddress);
        to.notify_bytes = 4;
        to.remote_count = ranks;
        for (uint32_t i = 0; i < ranks; ++i) {
            auto& remote = *new (memory + remote_at + i * sizeof(Remote)) Remote{};
            remote = {i, i, number(w.in[i]), number(w.out[i]), number(w.states[i]), {}};
            auto* address = reinterpret_cast<RemoteAddress*>(own.address() + offsetof(Linked, remote)) + i;
            *address = {number(&remote), number(&remote)};
        }
    } else if (ascendc_host::is_named(processor, "Ascend950")) {
        auto& to = *new (own.address()) ByRank<64>{};
        to.head = head;
        for (uint32_t i = 0; i < ranks; ++i)
            to.windows_in[i] = number(w.in[i]), to.windows_out[i] = number(w.out[i]);
    } else {
        auto& to = *new (own.address()) ByRank<32>{};
        to.head = head;
        for (uint32_t i = 0; i < ranks; ++i)
            to.windows_in[i] = number(w.in[i]), to.windows_out[i] = number(w.out[i]);
    }
    return own;
}

}  // namespace ascend_graph::host
