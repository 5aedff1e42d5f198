// Streams, and the failures of what they run.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_set>

#include "acl/devices.h"
#include "acl/runtime.h"
#include "ascend_graph/entering.h"

namespace ascend_graph::host {

std::atomic<int> active_captures{0};

namespace {

constexpr const char* kCapturing = "the stream is capturing a model";
constexpr const char* kWaiting = "the stream waits for an event that nothing has recorded yet";

std::atomic<int> waiting_streams{0};
std::atomic<int32_t> next_stream_id{1};
// Handles come from callers; a stale one must be an error, not a crash.
std::mutex handles_mutex;
std::unordered_set<Stream*> live_streams;
// Never destroyed: what waits at the process's end may own tensors of an allocator that is gone by then.
auto& default_stream = *new Stream;

constexpr uint32_t kLeastPriority = 7;
constexpr uint32_t kFlags = 0x3F;

thread_local uint32_t last_task = 0;
thread_local uint32_t task_that_runs = 0;

}  // namespace

aclError create_stream(const char* function, aclrtStream* stream, uint32_t priority, uint32_t flags) {
    if (stream == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "stream");
    auto created = std::make_unique<Stream>();
    created->id = next_stream_id++;
    created->device = current_device();
    std::lock_guard<std::mutex> lock(handles_mutex);
    live_streams.insert(created.get());
    created->priority = std::min(priority, kLeastPriority);
    created->flags = flags & kFlags;
    *stream = created.release();
    return ACL_SUCCESS;
}

size_t live_stream_count() {
    std::lock_guard<std::mutex> lock(handles_mutex);
    return live_streams.size();
}

uint32_t running_task() { return task_that_runs; }

namespace {

// `force` gives up what the stream has still to do.
aclError destroy_stream(aclrtStream handle, bool force) {
    std::unique_ptr<Stream> stream(static_cast<Stream*>(handle));  // dies outside the lock
    std::lock_guard<std::mutex> lock(handles_mutex);
    if (live_streams.count(stream.get()) == 0) {
        stream.release();
        return fail(ACL_ERROR_INVALID_RESOURCE_HANDLE,
                    "aclrtDestroyStream: not a live stream; expected one that aclrtCreateStream made");
    }
    if (stream->waits() && !force) {
        stream.release();
        return fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                    std::string("aclrtDestroyStream: ") + kWaiting + "; record it first");
    }
    if (stream->waits()) --waiting_streams;
    live_streams.erase(stream.get());
    return ACL_SUCCESS;
}

std::vector<Stream*> every_stream() {
    std::lock_guard<std::mutex> lock(handles_mutex);
    std::vector<Stream*> streams(live_streams.begin(), live_streams.end());
    streams.push_back(&default_stream);
    return streams;
}

// Waiting for a capturing stream would wait for work that has not run: as on a device, an error.
aclError synchronize(Stream& stream, const char* function, int32_t milliseconds = -1) {
    if (stream.capturing() != nullptr) {
        return fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG,
                    std::string(function) + ": " + kCapturing + "; end the capture first");
    }
    return await([&] { return !stream.waits(); }, function, milliseconds);
}

// Set once, by the bridge.
std::atomic<void* (*)(const char*)> begin_range{nullptr};
std::atomic<void (*)(void*)> end_range{nullptr};

}  // namespace

aclError Task::run(Stream& stream) const {
    const Entering entering(name.c_str());
    const WorkOn here(&stream);
    task_that_runs = id;
    auto* const begin = begin_range.load(std::memory_order_acquire);
    void* range = begin == nullptr || mark ? nullptr : begin(name.c_str());
    const int64_t began = kernel ? ascendgraphWorkBegins() : 0;
    const aclError error = body();
    ascendgraphWorkEnds(began, name.c_str());
    if (range != nullptr) end_range.load()(range);
    return error;
}

aclError await(const std::function<bool()>& ended, const char* function, int32_t milliseconds) {
    if (milliseconds < -1 || milliseconds == 0)
        return fail(ACL_ERROR_RT_PARAM_INVALID, std::string(function) + ": timeout is " +
                                                    std::to_string(milliseconds) +
                                                    "; it must be -1 (no limit) or positive milliseconds");
    constexpr std::chrono::seconds kPatience{2};
    const auto begin = std::chrono::steady_clock::now();
    auto deadline = begin + kPatience;
    while (!ended()) {
        if (remote_is_under_way()) {
            if (await_remote(ended)) break;
            if (remote_is_under_way()) {
                return fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                            std::string(function) +
                                ": interrupted while it waits for other processes; check that all ranks call "
                                "the same collectives");
            }
            deadline = std::chrono::steady_clock::now() + kPatience;
        }
        const Callbacks callbacks = unfinished_callbacks();
        if (callbacks == Callbacks::kRun) deadline = std::chrono::steady_clock::now() + kPatience;
        const auto now = std::chrono::steady_clock::now();
        if (milliseconds > 0) deadline = now + kPatience;  // the caller's limit holds, and no other
        if (milliseconds > 0 && now - begin > std::chrono::milliseconds(milliseconds))
            return fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                        std::string(function) + ": " + kWaiting + " for " + std::to_string(milliseconds) +
                            " ms, the timeout of the call; record it from another thread before that");
        if (now > deadline) {
            if (callbacks == Callbacks::kQueued) {
                return fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                            std::string(function) +
                                ": the stream waits for a callback, and the thread that is subscribed to it "
                                "must call aclrtProcessReport (aclrtProcessHostFunc); on a device this call "
                                "would not return");
            }
            return fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                        std::string(function) + ": " + kWaiting +
                            ", and on a device this call would not return; record the event first (a replay "
                            "of a captured graph with updated operators goes on after NPUGraph.update)");
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        resume_waiting_streams();  // a word in memory may have been written by any means
    }
    return ascendgraphReportKernelFailure();
}

Stream& stream_of(aclrtStream handle) {
    return handle == nullptr ? default_stream : *static_cast<Stream*>(handle);
}

aclError check_stream(const char* function, aclrtStream handle) {
    if (handle == nullptr || handle == &default_stream) return ACL_SUCCESS;
    std::lock_guard<std::mutex> lock(handles_mutex);
    if (live_streams.count(static_cast<Stream*>(handle)) != 0) return ACL_SUCCESS;
    return fail(ACL_ERROR_INVALID_RESOURCE_HANDLE,
                std::string(function) +
                    ": stream is not live; expected one that aclrtCreateStream made, not destroyed");
}

std::shared_ptr<Model> Stream::capturing() {
    if (active_captures.load(std::memory_order_relaxed) == 0) return nullptr;
    std::lock_guard<std::mutex> lock(state);
    auto model = capture.lock();
    return model != nullptr && model->capturing() ? model : nullptr;
}

bool Stream::waits() {
    if (waiting_streams.load() == 0) return false;
    std::lock_guard<std::mutex> lock(state);
    return !waiting_.empty();
}

const char* Stream::deferral() {
    if (update != nullptr || capturing() != nullptr) return kCapturing;
    await_collectives();
    return waits() ? kWaiting : nullptr;
}

void Stream::await_collectives() {
    if (waits() && remote_is_under_way()) await_remote([this] { return !waits(); });
}

aclError Stream::run(Task task) {
    if (waiting_streams.load() != 0) {
        std::lock_guard<std::mutex> lock(state);
        if (!waiting_.empty()) {
            waiting_.push_back(std::move(task));
            return ACL_SUCCESS;
        }
    }
    const aclError error = task.run(*this);
    if (error != kWaits) return error;
    {
        std::lock_guard<std::mutex> lock(state);
        if (waiting_.empty()) ++waiting_streams;
        waiting_.push_back(std::move(task));
    }
    resume_waiting_streams();  // the event may have been recorded meanwhile
    return ACL_SUCCESS;
}

void Stream::abort() {
    std::deque<Task> given_up;  // what the tasks own is released outside the lock
    std::lock_guard<std::mutex> lock(state);
    if (waiting_.empty()) return;
    given_up.swap(waiting_);
    --waiting_streams;
}

void Stream::advance() {
    std::unique_lock<std::mutex> lock(state);
    while (!waiting_.empty()) {
        Task& next = waiting_.front();  // stays where it is: others only add behind it
        lock.unlock();
        const aclError error = next.run(*this);
        if (error == kWaits) return;
        if (error != ACL_SUCCESS) {
            const WorkOn here(this);
            ascendgraphSetError(error, ascendgraphRecentError());
        }
        lock.lock();
        const Task done = std::move(waiting_.front());
        waiting_.pop_front();
        if (waiting_.empty()) --waiting_streams;
        lock.unlock();  // what a task owns is released outside the lock
        lock.lock();
    }
}

namespace {
std::atomic<std::thread::id> resuming{};
}  // namespace

bool others_resume_streams() {
    const std::thread::id thread = resuming.load();
    return thread != std::thread::id{} && thread != std::this_thread::get_id();
}

void resume_waiting_streams() {
    static std::mutex mutex;
    static uint64_t asked = 0;
    if (waiting_streams.load() == 0) return;
    std::unique_lock<std::mutex> lock(mutex);
    ++asked;
    // Who resumes looks again: another thread, or a caller of this one.
    if (resuming.load() != std::thread::id{}) return;
    resuming = std::this_thread::get_id();
    for (uint64_t seen = 0; seen != asked;) {
        seen = asked;
        lock.unlock();
        for (Stream* stream : every_stream()) stream->advance();
        lock.lock();
    }
    resuming = std::thread::id{};
    lock.unlock();
    announce_progress();
}

aclError Stream::record(Model& model, Task task) {
    std::scoped_lock lock(model.recording, state);
    model.tasks.push_back(std::move(task));
    behind[id] = ++model.recorded[id];
    return ACL_SUCCESS;
}

aclError Stream::enqueue(Task task) {
    if (aclError error = enter_device(task.name.c_str())) return error;
    task.id = last_task = next_task_++;
    if (update != nullptr) {
        if (update_next >= update->end) {
            return fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG,
                        "task group update: more work (" + task.name +
                            ") than the group recorded; expected as many operators as were captured");
        }
        auto model = update->model.lock();
        if (model == nullptr) {
            return fail(ACL_ERROR_INVALID_RESOURCE_HANDLE,
                        "aclmdlRICaptureTaskUpdateBegin: the model of the task group was destroyed; capture "
                        "it again");
        }
        model->replace(update_next++, std::move(task));
        return ACL_SUCCESS;
    }
    auto model = capturing();
    if (model != nullptr) return record(*model, std::move(task));
    await_collectives();
    return run(std::move(task));
}

aclError Stream::communicate(Task task) {
    if (update != nullptr) return enqueue(std::move(task));
    auto model = capturing();
    return model != nullptr ? record(*model, std::move(task)) : run(std::move(task));
}

aclError Stream::mark(Task task) {
    task.mark = true;
    if (update != nullptr) return enqueue(std::move(task));
    auto model = capturing();
    if (model == nullptr) return run(std::move(task));
    std::lock_guard<std::mutex> lock(model->recording);
    model->tasks.push_back(std::move(task));
    return ACL_SUCCESS;
}

}  // namespace ascend_graph::host

using namespace ascend_graph::host;

ACL_EXPORT int ascendgraphEnqueue(void* stream, const char* name, int (*run)(void*), void* state,
                                  void (*destroy)(void*)) {
    std::shared_ptr<void> owned(state, [destroy](void* p) {
        if (destroy != nullptr) destroy(p);
    });
    return stream_of(stream).enqueue({name, [run, owned] { return run(owned.get()); }, true});
}

ACL_EXPORT int ascendgraphCommunicate(void* stream, const char* name, int (*run)(void*), void* state,
                                      void (*destroy)(void*)) {
    std::shared_ptr<void> owned(state, destroy);
    return stream_of(stream).communicate({name, [run, owned] { return run(owned.get()); }});
}

ACL_EXPORT void ascendgraphSetTracer(void* (*begin)(const char*), void (*end)(void*)) {
    end_range.store(end);
    begin_range.store(begin, std::memory_order_release);
}

ACL_EXPORT const char* ascendgraphDeferral(void* stream) { return stream_of(stream).deferral(); }

ACL_EXPORT bool ascendgraphAnyDeferral() {
    return active_captures.load(std::memory_order_relaxed) != 0 ||
           waiting_streams.load(std::memory_order_relaxed) != 0;
}

ACL_EXPORT aclError aclrtCreateStream(aclrtStream* stream) {
    return create_stream("aclrtCreateStream", stream, 0, 0);
}

ACL_EXPORT aclError aclrtDestroyStream(aclrtStream stream) { return destroy_stream(stream, false); }
ACL_EXPORT aclError aclrtDestroyStreamForce(aclrtStream stream) { return destroy_stream(stream, true); }

ACL_EXPORT aclError aclrtStreamGetId(aclrtStream stream, int32_t* id) {
    if (id == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtStreamGetId", "streamId");
    *id = stream_of(stream).id;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtSynchronizeStream(aclrtStream stream) {
    return synchronize(stream_of(stream), "aclrtSynchronizeStream");
}

ACL_EXPORT aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
    return synchronize(stream_of(stream), "aclrtSynchronizeStreamWithTimeout", timeout);
}

ACL_EXPORT aclError aclrtGetThreadLastTaskId(uint32_t* id) {
    if (id == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetThreadLastTaskId", "taskId");
    *id = last_task;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtStreamQuery(aclrtStream handle, int* status) {
    if (status == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtStreamQuery", "status");
    Stream& stream = stream_of(handle);
    const bool waits = stream.waits();
    *status = waits ? 1 : 0;  // ACL_STREAM_STATUS_NOT_READY, ACL_STREAM_STATUS_COMPLETE
    return waits ? ACL_SUCCESS : synchronize(stream, "aclrtStreamQuery");
}

static aclError synchronize_device(const char* function, int32_t milliseconds) {
    if (active_captures.load() != 0)
        return fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG,
                    std::string(function) + ": a stream is capturing a model; end the capture first");
    return await([] { return waiting_streams.load() == 0; }, function, milliseconds);
}
ACL_EXPORT aclError aclrtSynchronizeDevice() { return synchronize_device("aclrtSynchronizeDevice", -1); }
ACL_EXPORT aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
    return synchronize_device("aclrtSynchronizeDeviceWithTimeout", timeout);
}

ACL_EXPORT int ascendgraphLaunchHost(void* stream, void (*fn)(void*), void* arg, size_t arg_size,
                                     const char* name) {
    std::shared_ptr<char[]> copy(new char[std::max<size_t>(arg_size, 1)]);
    if (arg_size != 0) std::memcpy(copy.get(), arg, arg_size);
    auto body = [fn, copy] {
        fn(copy.get());
        return ACL_SUCCESS;
    };
    return stream_of(stream).enqueue({name, body, true});
}
