// Communicators: this process's part in a group of processes, and the thread that does it.
//
// The transport is gloo, as PyTorch ships it: it is in every installed PyTorch, and what a program computes
// with backend="hccl" is to the last bit what it computes with "gloo" on the CPU. PyTorch's headers give no
// way to it from C++, for they do not come with gloo's: the bridge, an extension of Python, makes the process
// group there and calls it through c10d::Backend. A communicator's ranks find each other through a TCPStore
// that the process of its root serves for all communicators it is the root of: HcclRootInfo holds the
// address.
//
// A collective blocks the thread that takes part in it. Each communicator has one, so that collectives of one
// communicator follow each other and those of two do not wait for one another, as streams of a device.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ascend_graph/collectives.h"
#include "ascend_graph/kernel_context.h"
#include "hccl/abi.h"
#include "hccl/windows.h"

namespace ascend_graph::host {

// A collective call with what it points at.
struct OwnedCall {
    const char* function;
    CollectiveCall call{};
    std::vector<Piece> sends, receives;
};

// A collective under way. `ended` is called when it is done, by any thread.
struct Job {
    using Ended = std::function<void(const Job&)>;
    Job(std::shared_ptr<const OwnedCall> call, Ended ended)
        : call(std::move(call)), ended(std::move(ended)) {}
    const std::shared_ptr<const OwnedCall> call;
    const Ended ended;
    std::atomic<bool> done{false};
    aclError error = ACL_SUCCESS;
    std::string text;
};

class Communicator {
  public:
    const std::string name;
    const uint32_t ranks, rank;
    const int32_t device;

    Communicator(std::string name, uint32_t ranks, uint32_t rank, int32_t device, void* group,
                 const Transport& transport, std::unique_ptr<Windows> windows);
    // Collectives that have begun fail, here or at the others.
    ~Communicator();

    // Begins a collective; it is announced as remote work until it is done.
    std::shared_ptr<Job> begin(std::shared_ptr<const OwnedCall> call, Job::Ended ended = nullptr);
    // Why the communicator is of no use any more; "" as long as it is.
    std::string failure() const;
    // What its kernels have of it; it fails where the windows of a rank cannot be reached.
    KernelContext& context();
    uint64_t window_bytes() const { return windows_->bytes(); }

  private:
    struct State;
    std::shared_ptr<State> state_;
    std::mutex context_mutex_;
    std::unique_ptr<Windows> windows_;
    std::unique_ptr<uint8_t[]> context_;
};

// The transport that the bridge supplied; null in a process without it.
const Transport* transport();
// Between the ranks of one process.
const Transport& local_transport();

}  // namespace ascend_graph::host
