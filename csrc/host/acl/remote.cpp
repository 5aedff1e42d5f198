// What other processes have to answer: collectives under way, and threads that wait for them.
#include <chrono>
#include <condition_variable>

#include "acl/runtime.h"
#include "acl/strict.h"

namespace ascend_graph::host {
namespace {

std::atomic<int> under_way{0};
std::mutex mutex;
std::condition_variable changed;
std::atomic<uint64_t> progress{0};

}  // namespace

bool remote_is_under_way() { return under_way.load() != 0 || others_resume_streams(); }

void announce_progress() {
    {
        std::lock_guard<std::mutex> lock(mutex);
        ++progress;
    }
    changed.notify_all();
}

bool await_remote(const std::function<bool()>& ended) {
    for (;;) {
        const uint64_t seen = progress.load();
        if (ended()) return true;
        if (!remote_is_under_way()) return ended();
        std::unique_lock<std::mutex> lock(mutex);
        constexpr std::chrono::milliseconds kInterval{100};  // between two looks for Ctrl-C
        while (!changed.wait_for(lock, kInterval, [&] { return progress.load() != seen; })) {
            lock.unlock();
            if (ascendgraphInterruptIsRaised()) return false;
            lock.lock();
        }
    }
}

}  // namespace ascend_graph::host

using namespace ascend_graph::host;

ACL_EXPORT void ascendgraphRemoteBegins() {
    strict::let_in();  // threads of the transport work until the end
    ++under_way;
}

ACL_EXPORT void ascendgraphRemoteEnds() {
    resume_waiting_streams();  // first: who sees nothing under way any more finds its streams advanced
    --under_way;
    strict::keep_out();
    announce_progress();
}
