// Callbacks of streams, which run on the thread that is subscribed to the stream when it processes reports.
#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "acl/runtime.h"

namespace ascend_graph::host {
namespace {

struct Report {
    void (*fn)(void*);
    void* data;
    bool blocks;
    bool done = false;
};

// Never destroyed: threads of a program may process reports until the process ends.
struct Subscriptions {
    std::mutex mutex;
    std::condition_variable arrived;
    std::map<const Stream*, uint64_t> threads;
    std::map<uint64_t, std::deque<std::shared_ptr<Report>>> reports;
    // Of those that hold a stream.
    int queued = 0;
    int running = 0;
};
auto& subscriptions = *new Subscriptions;

std::shared_ptr<Report> post(uint64_t thread, void (*fn)(void*), void* data, bool blocks) {
    auto report = std::make_shared<Report>(Report{fn, data, blocks});
    std::lock_guard<std::mutex> lock(subscriptions.mutex);
    subscriptions.reports[thread].push_back(report);
    subscriptions.queued += blocks;
    subscriptions.arrived.notify_all();
    return report;
}

bool is_done(const Report& report) {
    std::lock_guard<std::mutex> lock(subscriptions.mutex);
    return report.done;
}

bool subscribed(uint64_t thread) {
    for (const auto& [stream, id] : subscriptions.threads) {
        if (id == thread) return true;
    }
    return false;
}

uint64_t this_thread() { return static_cast<uint64_t>(pthread_self()); }

// Runs one callback; the streams that it held go on afterwards, on this thread.
void run(const std::shared_ptr<Report>& report) {
    report->fn(report->data);
    {
        std::lock_guard<std::mutex> lock(subscriptions.mutex);
        report->done = true;
        subscriptions.running -= report->blocks;
    }
    if (report->blocks) resume_waiting_streams();
}

}  // namespace

Callbacks unfinished_callbacks() {
    std::lock_guard<std::mutex> lock(subscriptions.mutex);
    if (subscriptions.running != 0) return Callbacks::kRun;
    return subscriptions.queued != 0 ? Callbacks::kQueued : Callbacks::kNone;
}

}  // namespace ascend_graph::host

using namespace ascend_graph::host;

ACL_EXPORT aclError aclrtSubscribeReport(uint64_t thread, aclrtStream handle) {
    std::lock_guard<std::mutex> lock(subscriptions.mutex);
    if (subscriptions.threads.emplace(&stream_of(handle), thread).second) return ACL_SUCCESS;
    return fail(
        ACL_ERROR_RT_STREAM_SUBSCRIBE,
        "aclrtSubscribeReport: a thread is subscribed to the stream; call aclrtUnSubscribeReport first");
}

ACL_EXPORT aclError aclrtUnSubscribeReport(uint64_t thread, aclrtStream handle) {
    std::lock_guard<std::mutex> lock(subscriptions.mutex);
    const auto found = subscriptions.threads.find(&stream_of(handle));
    if (found == subscriptions.threads.end() || found->second != thread) {
        return fail(ACL_ERROR_RT_THREAD_SUBSCRIBE,
                    "aclrtUnSubscribeReport: thread " + std::to_string(thread) +
                        " is not subscribed to the stream; call aclrtSubscribeReport first");
    }
    subscriptions.threads.erase(found);
    subscriptions.arrived.notify_all();
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtLaunchCallback(void (*fn)(void*), void* data, int block_type, aclrtStream handle) {
    if (fn == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtLaunchCallback", "fn");
    if (block_type != 0 && block_type != 1) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtLaunchCallback: blockType is " +
                                                 std::to_string(block_type) +
                                                 "; it must be 0 (does not hold the stream) or 1 (does)");
    }
    Stream& stream = stream_of(handle);
    uint64_t thread = 0;
    {
        std::lock_guard<std::mutex> lock(subscriptions.mutex);
        const auto found = subscriptions.threads.find(&stream);
        if (found == subscriptions.threads.end()) {
            return fail(
                ACL_ERROR_RT_STREAM_NO_CB_REG,
                "aclrtLaunchCallback: no thread is subscribed to the stream; call aclrtSubscribeReport "
                "first");
        }
        thread = found->second;
    }
    // Posted each time that the task begins: a captured one runs at every replay.
    auto posted = std::make_shared<std::shared_ptr<Report>>();
    return stream.enqueue({"callback", [=] {
                               if (*posted == nullptr) *posted = post(thread, fn, data, block_type == 1);
                               if (block_type == 1 && !is_done(**posted)) return kWaits;
                               posted->reset();
                               return ACL_SUCCESS;
                           }});
}

ACL_EXPORT aclError aclrtProcessReport(int32_t timeout) {
    if (timeout < -1 || timeout == 0) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtProcessReport: timeout is " + std::to_string(timeout) +
                                                 "; it must be -1 (no limit) or positive milliseconds");
    }
    const uint64_t thread = this_thread();
    std::unique_lock<std::mutex> lock(subscriptions.mutex);
    if (!subscribed(thread) && subscriptions.reports[thread].empty())
        return fail(ACL_ERROR_RT_THREAD_SUBSCRIBE,
                    "aclrtProcessReport: this thread is not subscribed to a stream; call "
                    "aclrtSubscribeReport with it first");
    const auto ready = [&] { return !subscriptions.reports[thread].empty() || !subscribed(thread); };
    if (timeout == -1) {
        subscriptions.arrived.wait(lock, ready);
    } else {
        subscriptions.arrived.wait_for(lock, std::chrono::milliseconds(timeout), ready);
    }
    auto& mine = subscriptions.reports[thread];
    if (mine.empty()) {
        return fail(ACL_ERROR_RT_REPORT_TIMEOUT,
                    "aclrtProcessReport: no callback within " + std::to_string(timeout) +
                        " ms; launch one with aclrtLaunchCallback, or give a longer timeout");
    }
    while (!mine.empty()) {
        const auto report = mine.front();
        mine.pop_front();
        subscriptions.queued -= report->blocks;
        subscriptions.running += report->blocks;
        lock.unlock();
        run(report);
        lock.lock();
    }
    return ACL_SUCCESS;
}
