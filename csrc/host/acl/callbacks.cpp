// Callbacks and host functions of streams, which run on the thread that is subscribed to the stream when it
// processes them.
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

// Who processes which stream's functions. Never destroyed: threads of a program may process them until the
// process ends.
struct Subscriptions {
    // The functions that begin and end a subscription, and the one that processes.
    const char* begins;
    const char* ends;
    const char* processes;
    std::mutex mutex{};
    std::condition_variable arrived{};
    std::map<const Stream*, uint64_t> threads{};
    std::map<uint64_t, std::deque<std::shared_ptr<Report>>> reports{};
    // Of those that hold a stream.
    int queued = 0;
    int running = 0;

    // 0 where no thread is.
    uint64_t thread_of(const Stream& stream) {
        std::lock_guard<std::mutex> lock(mutex);
        const auto found = threads.find(&stream);
        return found == threads.end() ? 0 : found->second;
    }
    // With the mutex held.
    bool has(uint64_t thread) const {
        for (const auto& [stream, id] : threads) {
            if (id == thread) return true;
        }
        return false;
    }
    std::shared_ptr<Report> post(uint64_t thread, void (*fn)(void*), void* data, bool blocks) {
        auto report = std::make_shared<Report>(Report{fn, data, blocks});
        std::lock_guard<std::mutex> lock(mutex);
        reports[thread].push_back(report);
        queued += blocks;
        arrived.notify_all();
        return report;
    }
    bool is_done(const Report& report) {
        std::lock_guard<std::mutex> lock(mutex);
        return report.done;
    }
    // Runs one function; the streams that it held go on afterwards, on this thread.
    void run(const std::shared_ptr<Report>& report) {
        report->fn(report->data);
        {
            std::lock_guard<std::mutex> lock(mutex);
            report->done = true;
            running -= report->blocks;
        }
        if (report->blocks) resume_waiting_streams();
    }
};
auto& callbacks = *new Subscriptions{"aclrtSubscribeReport", "aclrtUnSubscribeReport", "aclrtProcessReport"};
auto& host_functions =
    *new Subscriptions{"aclrtSubscribeHostFunc", "aclrtUnSubscribeHostFunc", "aclrtProcessHostFunc"};

aclError subscribe(Subscriptions& all, uint64_t thread, aclrtStream handle) {
    if (aclError error = check_stream(all.begins, handle)) return error;
    std::lock_guard<std::mutex> lock(all.mutex);
    if (all.threads.emplace(&stream_of(handle), thread).second) return ACL_SUCCESS;
    return fail(
        ACL_ERROR_RT_STREAM_SUBSCRIBE,
        std::string(all.begins) + ": a thread is subscribed to the stream; call " + all.ends + " first");
}

aclError unsubscribe(Subscriptions& all, uint64_t thread, aclrtStream handle) {
    std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.threads.find(&stream_of(handle));
    if (found == all.threads.end() || found->second != thread) {
        return fail(ACL_ERROR_RT_THREAD_SUBSCRIBE,
                    std::string(all.ends) + ": thread " + std::to_string(thread) +
                        " is not subscribed to the stream; call " + all.begins + " first");
    }
    all.threads.erase(found);
    all.arrived.notify_all();
    return ACL_SUCCESS;
}

aclError process(Subscriptions& all, int32_t timeout) {
    const std::string name = all.processes;
    if (timeout < -1 || timeout == 0) {
        return fail(ACL_ERROR_INVALID_PARAM, name + ": timeout is " + std::to_string(timeout) +
                                                 "; it must be -1 (no limit) or positive milliseconds");
    }
    const auto thread = static_cast<uint64_t>(pthread_self());
    std::unique_lock<std::mutex> lock(all.mutex);
    if (!all.has(thread) && all.reports[thread].empty())
        return fail(
            ACL_ERROR_RT_THREAD_SUBSCRIBE,
            name + ": this thread is not subscribed to a stream; call " + all.begins + " with it first");
    const auto ready = [&] { return !all.reports[thread].empty() || !all.has(thread); };
    if (timeout == -1) {
        all.arrived.wait(lock, ready);
    } else {
        all.arrived.wait_for(lock, std::chrono::milliseconds(timeout), ready);
    }
    auto& mine = all.reports[thread];
    if (mine.empty()) {
        return fail(ACL_ERROR_RT_REPORT_TIMEOUT, name + ": nothing to run within " + std::to_string(timeout) +
                                                     " ms; launch a function on the stream, or give a longer "
                                                     "timeout");
    }
    while (!mine.empty()) {
        const auto report = mine.front();
        mine.pop_front();
        all.queued -= report->blocks;
        all.running += report->blocks;
        lock.unlock();
        all.run(report);
        lock.lock();
    }
    return ACL_SUCCESS;
}

// Posted each time that the task begins: a captured one runs at every replay.
aclError enqueue(Subscriptions& all, uint64_t thread, const char* name, Stream& stream, void (*fn)(void*),
                 void* data, bool blocks) {
    auto posted = std::make_shared<std::shared_ptr<Report>>();
    return stream.enqueue({name, [&all, thread, fn, data, blocks, posted] {
                               if (*posted == nullptr) *posted = all.post(thread, fn, data, blocks);
                               if (blocks && !all.is_done(**posted)) return kWaits;
                               posted->reset();
                               return ACL_SUCCESS;
                           }});
}

}  // namespace

Callbacks unfinished_callbacks() {
    bool waits = false;
    for (Subscriptions* all : {&callbacks, &host_functions}) {
        std::lock_guard<std::mutex> lock(all->mutex);
        if (all->running != 0) return Callbacks::kRun;
        waits = waits || all->queued != 0;
    }
    return waits ? Callbacks::kQueued : Callbacks::kNone;
}

}  // namespace ascend_graph::host

using namespace ascend_graph::host;

ACL_EXPORT aclError aclrtSubscribeReport(uint64_t thread, aclrtStream stream) {
    return subscribe(callbacks, thread, stream);
}
ACL_EXPORT aclError aclrtUnSubscribeReport(uint64_t thread, aclrtStream stream) {
    return unsubscribe(callbacks, thread, stream);
}
ACL_EXPORT aclError aclrtProcessReport(int32_t timeout) { return process(callbacks, timeout); }

ACL_EXPORT aclError aclrtLaunchCallback(void (*fn)(void*), void* data, int block_type, aclrtStream handle) {
    if (fn == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtLaunchCallback", "fn");
    if (block_type != 0 && block_type != 1) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtLaunchCallback: blockType is " +
                                                 std::to_string(block_type) +
                                                 "; it must be 0 (does not hold the stream) or 1 (does)");
    }
    if (aclError error = check_stream("aclrtLaunchCallback", handle)) return error;
    Stream& stream = stream_of(handle);
    const uint64_t thread = callbacks.thread_of(stream);
    if (thread == 0)
        return fail(ACL_ERROR_RT_STREAM_NO_CB_REG,
                    "aclrtLaunchCallback: no thread is subscribed to the stream; call aclrtSubscribeReport "
                    "first");
    return enqueue(callbacks, thread, "callback", stream, fn, data, block_type == 1);
}

ACL_EXPORT aclError aclrtSubscribeHostFunc(uint64_t thread, aclrtStream stream) {
    return subscribe(host_functions, thread, stream);
}
ACL_EXPORT aclError aclrtUnSubscribeHostFunc(uint64_t thread, aclrtStream stream) {
    return unsubscribe(host_functions, thread, stream);
}
ACL_EXPORT aclError aclrtProcessHostFunc(int32_t timeout) { return process(host_functions, timeout); }

// Runs on a thread of the runtime's own where no thread of the program's is subscribed to the stream: here on
// the one that runs the stream.
ACL_EXPORT aclError aclrtLaunchHostFunc(aclrtStream handle, void (*fn)(void*), void* args) {
    if (fn == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtLaunchHostFunc", "fn");
    if (aclError error = check_stream("aclrtLaunchHostFunc", handle)) return error;
    Stream& stream = stream_of(handle);
    const uint64_t thread = host_functions.thread_of(stream);
    if (thread != 0) return enqueue(host_functions, thread, "host function", stream, fn, args, true);
    return stream.enqueue({"host function", [fn, args] {
                               fn(args);
                               return ACL_SUCCESS;
                           }});
}
