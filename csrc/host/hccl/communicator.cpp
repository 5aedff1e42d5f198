#include "hccl/communicator.h"

#include <optional>

#include "ascend_graph/host_runtime.h"

namespace ascend_graph::host {
namespace {
std::optional<Transport> installed;
}  // namespace

const Transport* transport() { return installed ? &*installed : nullptr; }

// Shared with the thread, which may be in a collective that does not end for a while when the communicator is
// destroyed.
struct Communicator::State {
    void* group;
    const Transport transport;
    std::string name;
    mutable std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::shared_ptr<Job>> jobs;
    bool busy = false;
    bool closing = false;
    std::string failure;

    void finish(Job& job, aclError error, std::string text) {
        job.error = error;
        job.text = std::move(text);
        job.done = true;
        if (job.ended) job.ended(job);
        ascendgraphRemoteEnds();
    }

    void run() {
        std::unique_lock<std::mutex> lock(mutex);
        for (;;) {
            changed.wait(lock, [&] { return closing || !jobs.empty(); });
            if (closing) break;
            const std::shared_ptr<Job> job = std::move(jobs.front());
            jobs.pop_front();
            std::string text = failure;
            aclError error = text.empty() ? ACL_SUCCESS : ACL_ERROR_FAILURE;
            if (text.empty()) {
                busy = true;
                lock.unlock();
                error = transport.run(group, job->call->function, job->call->call);
                if (error != ACL_SUCCESS) text = name + ": " + ascendgraphRecentError();
                lock.lock();
                busy = false;
            }
            if (error != ACL_SUCCESS && failure.empty()) {
                failure = text;
                // Others may wait for this rank, not for the one at fault: they are told, too.
                lock.unlock();
                transport.close(group);
                lock.lock();
                group = nullptr;
            }
            lock.unlock();
            finish(*job, error, std::move(text));
            lock.lock();
        }
        const auto left = std::move(jobs);
        lock.unlock();
        for (const auto& job : left) finish(*job, ACL_ERROR_FAILURE, name + " was destroyed");
        if (group != nullptr) transport.close(group);
    }
};

Communicator::Communicator(std::string name, uint32_t ranks, uint32_t rank, int32_t device, void* group,
                           const Transport& transport, std::unique_ptr<Windows> windows)
    : name(std::move(name)), ranks(ranks), rank(rank), device(device), windows_(std::move(windows)) {
    const std::string text =
        "communicator " + this->name + ", rank " + std::to_string(rank) + " of " + std::to_string(ranks);
    state_ = std::shared_ptr<State>(new State{group, transport, text, {}, {}, {}, false, false, ""});
    std::thread([state = state_] { state->run(); }).detach();
}

Communicator::~Communicator() {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->closing = true;
    state_->changed.notify_all();
}

std::shared_ptr<Job> Communicator::begin(std::shared_ptr<const OwnedCall> call, Job::Ended ended) {
    auto job = std::make_shared<Job>(std::move(call), std::move(ended));
    ascendgraphRemoteBegins();
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->jobs.push_back(job);
    state_->changed.notify_all();
    return job;
}

std::string Communicator::failure() const {
    std::lock_guard<std::mutex> lock(state_->mutex);
    return state_->failure;
}

}  // namespace ascend_graph::host

ACL_EXPORT void ascendgraphSetTransport(ascend_graph::host::Transport transport) {
    ascend_graph::host::installed = transport;
}
