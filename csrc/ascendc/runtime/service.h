// What serves the communicators of a launch: it takes the kernel's tasks in their order, and begins each turn
// of one when the kernel has committed it and all that comes before it has begun.
//
// On a device this is the AI CPU, or a unit of the network. Everything here happens under the lock of the
// launch. A turn works on copies, made when it begins and written back when it ends: a launch that fails
// leaves collectives behind that no longer touch its memory.
#ifndef ASCENDC_RUNTIME_SERVICE_H
#define ASCENDC_RUNTIME_SERVICE_H

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ascend_graph/kernel_context.h"
#include "ascendc_host/adv_api/hccl/hccl.h"
#include "ascendc_host/adv_api/hccl/hccl_tiling.h"

namespace ascendc_host {

using ascend_graph::host::KernelContext;

// A task with copies of what its call pointed at.
struct ServedTask {
    CommunicationTask call;
    std::vector<uint64_t> send_counts, send_offsets, receive_counts, receive_offsets;
    bool skips_own_part = false;
    uint32_t step = 0;   // of a task in steps: how many slices a turn has
    uint32_t turns = 1;  // in all
    // A task of another communicator that comes before; null for none.
    const ServedTask* behind = nullptr;
    uint32_t committed = 0, begun = 0, ended = 0;

    bool is_done() const { return ended == turns; }
};

// One communicator's.
class Service {
  public:
    explicit Service(KernelContext& context) : context(context) {}

    KernelContext& context;
    // The tasks of one Hccl object after another: the next session begins when the last is finalized.
    std::vector<std::vector<std::unique_ptr<ServedTask>>> sessions{1};
    // The block and its object that give the tasks of the last session.
    std::pair<int64_t, const void*> giver{0, nullptr};
    const ServedTask* behind = nullptr;
    uint32_t prepared = 0;
    std::string failure;

    // Null where the session has no such task yet.
    ServedTask* task(uint32_t session, size_t number) {
        if (session >= sessions.size() || number >= sessions[session].size()) return nullptr;
        return sessions[session][number].get();
    }
};

class Services : public std::enable_shared_from_this<Services> {
  public:
    // `change` runs a function under the lock of the launch and wakes who waits.
    using Change = std::function<void(const std::function<void()>&)>;
    explicit Services(Change change) : change_(std::move(change)) {}

    Service& of(KernelContext& context);
    // Begins what may begin.
    void pump();
    // Whether a turn is under way.
    bool busy() const { return under_way_ != 0; }
    bool begun() const { return begun_; }
    // Why the launch cannot end well; empty if it can.
    std::string unfinished() const;
    // The launch is over: what is under way no longer tells it.
    void leave();

    // How many Hccl objects of a block have finalized a communicator.
    std::map<std::pair<int64_t, const KernelContext*>, uint32_t> finalized;

  private:
    struct Turn;
    void pump(Service& service);
    void begin(Service& service, ServedTask& task);
    static void ended(void* turn, int error, const char* text);

    Change change_;
    std::mutex alive_;  // taken before the lock of the launch
    bool left_ = false;
    std::map<const KernelContext*, std::unique_ptr<Service>> services_;
    size_t under_way_ = 0;
    bool begun_ = false;
};

// What a turn reads and writes: byte places and sizes for each rank, own memory only.
struct Extent {
    const void* data;
    uint64_t bytes;
    uint32_t rank;
};
size_t dtype_bytes(int32_t dtype);
std::vector<Extent> sends_of(const ServedTask& task, uint32_t turn, const KernelContext& context);
std::vector<Extent> receives_of(const ServedTask& task, uint32_t turn, const KernelContext& context);

// The bytes from `p` to the end of the windows of a rank, SIZE_MAX where it lies in none.
size_t window_rest(const Contexts& contexts, const void* p);

// The services of the launch that this thread runs a block of.
Services& services_of_launch();
// Runs under its lock.
void in_launch(const std::function<void()>& function);
// Waits under its lock until `ready`; others may be asked by it.
void wait_in_launch(const std::function<bool()>& ready, const char* what, const Where& where);

}  // namespace ascendc_host

#endif  // ASCENDC_RUNTIME_SERVICE_H
