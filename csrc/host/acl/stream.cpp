// Streams and events.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_set>

#include "acl/runtime.h"

namespace ascend_graph::host {

std::atomic<int> active_captures{0};

namespace {

std::atomic<int32_t> next_stream_id{1};
// Handles come from callers; a stale one must be an error, not a crash.
std::mutex handles_mutex;
std::unordered_set<void*> live_streams;
std::unordered_set<void*> live_events;

std::mutex events_mutex;  // of what events hold

bool alive(const std::unordered_set<void*>& handles, void* handle) {
    std::lock_guard<std::mutex> lock(handles_mutex);
    return handles.count(handle) != 0;
}

aclError create_stream(aclrtStream* stream) {
    if (stream == nullptr) return fail(ACL_ERROR_INVALID_PARAM, "aclrtCreateStream: stream is null");
    auto created = std::make_unique<Stream>();
    created->id = next_stream_id++;
    created->device = current_device();
    std::lock_guard<std::mutex> lock(handles_mutex);
    live_streams.insert(created.get());
    *stream = created.release();
    return ACL_SUCCESS;
}

aclError create_event(aclrtEvent* event) {
    if (event == nullptr) return fail(ACL_ERROR_INVALID_PARAM, "aclrtCreateEvent: event is null");
    auto created = std::make_unique<Event>();
    std::lock_guard<std::mutex> lock(handles_mutex);
    live_events.insert(created.get());
    *event = created.release();
    return ACL_SUCCESS;
}

Event* event_of(aclrtEvent handle) {
    return alive(live_events, handle) ? static_cast<Event*>(handle) : nullptr;
}

aclError bad_event(const char* function) {
    return fail(ACL_ERROR_INVALID_RESOURCE_HANDLE, std::string(function) + ": not a live event");
}

}  // namespace

Stream& stream_of(aclrtStream handle) {
    static Stream default_stream;
    return handle == nullptr ? default_stream : *static_cast<Stream*>(handle);
}

std::shared_ptr<Model> Stream::capturing() {
    if (active_captures.load(std::memory_order_relaxed) == 0) return nullptr;
    std::lock_guard<std::mutex> lock(state);
    auto model = capture.lock();
    return model != nullptr && model->capturing() ? model : nullptr;
}

aclError Stream::enqueue(Task task) {
    if (update != nullptr) {
        if (update_next >= update->end) {
            return fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG,
                        "task group update: more work (" + task.name + ") than the group recorded");
        }
        auto model = update->model.lock();
        if (model == nullptr) {
            return fail(ACL_ERROR_INVALID_RESOURCE_HANDLE,
                        "task group update: the group's model was destroyed");
        }
        model->tasks[update_next++] = std::move(task);
        return ACL_SUCCESS;
    }
    auto model = capturing();
    if (model == nullptr) return task.run();
    std::scoped_lock lock(model->recording, state);
    model->tasks.push_back(std::move(task));
    behind[id] = ++model->recorded[id];
    return ACL_SUCCESS;
}

aclError Stream::mark(Task task) {
    if (update != nullptr) return enqueue(std::move(task));
    auto model = capturing();
    if (model == nullptr) return task.run();
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
    return stream_of(stream).enqueue({name, [run, owned] { return run(owned.get()); }});
}

ACL_EXPORT bool ascendgraphIsCapturing(void* stream) {
    if (active_captures.load(std::memory_order_relaxed) == 0) return false;
    Stream& s = stream_of(stream);
    return s.capturing() != nullptr || s.update != nullptr;
}

ACL_EXPORT bool ascendgraphAnyCapture() { return active_captures.load(std::memory_order_relaxed) != 0; }

ACL_EXPORT aclError aclrtCreateStream(aclrtStream* stream) { return create_stream(stream); }

ACL_EXPORT aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t, uint32_t) {
    return create_stream(stream);
}

ACL_EXPORT aclError aclrtDestroyStream(aclrtStream stream) {
    std::lock_guard<std::mutex> lock(handles_mutex);
    if (live_streams.erase(stream) == 0) {
        return fail(ACL_ERROR_INVALID_RESOURCE_HANDLE, "aclrtDestroyStream: not a live stream");
    }
    delete static_cast<Stream*>(stream);
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtDestroyStreamForce(aclrtStream stream) { return aclrtDestroyStream(stream); }

ACL_EXPORT aclError aclrtStreamGetId(aclrtStream stream, int32_t* id) {
    if (id == nullptr) return fail(ACL_ERROR_INVALID_PARAM, "aclrtStreamGetId: streamId is null");
    *id = stream_of(stream).id;
    return ACL_SUCCESS;
}

// Waiting for a capturing stream would wait for work that has not run: as on a device, an error.
static aclError synchronize(Stream& stream, const char* function) {
    if (stream.capturing() == nullptr) return ascendgraphReportKernelFailure();
    return fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG,
                std::string(function) + ": the stream is capturing a model");
}

ACL_EXPORT aclError aclrtSynchronizeStream(aclrtStream stream) {
    return synchronize(stream_of(stream), "aclrtSynchronizeStream");
}

ACL_EXPORT aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t) {
    return synchronize(stream_of(stream), "aclrtSynchronizeStreamWithTimeout");
}

ACL_EXPORT aclError aclrtStreamQuery(aclrtStream stream, int* status) {
    if (status == nullptr) return fail(ACL_ERROR_INVALID_PARAM, "aclrtStreamQuery: status is null");
    if (aclError error = synchronize(stream_of(stream), "aclrtStreamQuery")) return error;
    *status = 0;  // ACL_STREAM_STATUS_COMPLETE
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtCreateEvent(aclrtEvent* event) { return create_event(event); }
ACL_EXPORT aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t) { return create_event(event); }
ACL_EXPORT aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t) { return create_event(event); }

ACL_EXPORT aclError aclrtDestroyEvent(aclrtEvent event) {
    std::lock_guard<std::mutex> lock(handles_mutex);
    if (live_events.erase(event) == 0) return bad_event("aclrtDestroyEvent");
    delete static_cast<Event*>(event);
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtRecordEvent(aclrtEvent handle, aclrtStream stream) {
    Event* event = event_of(handle);
    if (event == nullptr) return bad_event("aclrtRecordEvent");
    Stream& s = stream_of(stream);
    auto record = [event, handle] {
        if (!alive(live_events, handle)) return ACL_SUCCESS;  // destroyed between capture and replay
        std::lock_guard<std::mutex> lock(events_mutex);
        event->time = std::chrono::steady_clock::now();
        event->recorded = true;
        return ACL_SUCCESS;
    };
    if (aclError error = s.mark({"record event", record})) return error;
    const auto model = s.capturing();
    std::scoped_lock lock(events_mutex, s.state);
    event->capture = model;
    event->behind = model != nullptr ? s.behind : Progress{};
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtResetEvent(aclrtEvent handle, aclrtStream) {
    Event* event = event_of(handle);
    if (event == nullptr) return bad_event("aclrtResetEvent");
    std::lock_guard<std::mutex> lock(events_mutex);
    *event = Event{};
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent handle) {
    Event* event = event_of(handle);
    if (event == nullptr) return bad_event("aclrtStreamWaitEvent");
    Stream& s = stream_of(stream);
    const auto current = s.capturing();
    std::scoped_lock lock(events_mutex, s.state);
    const auto model = event->capture.lock();
    if (model == nullptr || !model->capturing()) return ACL_SUCCESS;
    if (current != nullptr && current != model) {
        return fail(ACL_ERROR_RT_CAPTURE_DEPENDENCY,
                    "aclrtStreamWaitEvent: the stream and the event belong to two captures");
    }
    // Waiting for work of a capture makes the waiting stream part of that capture.
    if (current == nullptr) {
        s.capture = model;
        s.behind.clear();
    }
    for (const auto& [id, tasks] : event->behind) s.behind[id] = std::max(s.behind[id], tasks);
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtSynchronizeEvent(aclrtEvent handle) {
    return event_of(handle) == nullptr ? bad_event("aclrtSynchronizeEvent")
                                       : ascendgraphReportKernelFailure();
}

ACL_EXPORT aclError aclrtQueryEventStatus(aclrtEvent handle, int* status) {
    if (status == nullptr) return fail(ACL_ERROR_INVALID_PARAM, "aclrtQueryEventStatus: status is null");
    if (event_of(handle) == nullptr) return bad_event("aclrtQueryEventStatus");
    *status = 1;  // ACL_EVENT_RECORDED_STATUS_COMPLETE
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtQueryEventWaitStatus(aclrtEvent handle, int* status) {
    if (status == nullptr) return fail(ACL_ERROR_INVALID_PARAM, "aclrtQueryEventWaitStatus: status is null");
    if (event_of(handle) == nullptr) return bad_event("aclrtQueryEventWaitStatus");
    *status = 0;  // ACL_EVENT_WAIT_STATUS_COMPLETE
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtEventElapsedTime(float* ms, aclrtEvent start, aclrtEvent end) {
    Event* a = event_of(start);
    Event* b = event_of(end);
    if (a == nullptr || b == nullptr) return bad_event("aclrtEventElapsedTime");
    std::lock_guard<std::mutex> lock(events_mutex);
    if (ms == nullptr || !a->recorded || !b->recorded) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtEventElapsedTime: both events must be recorded first");
    }
    *ms = std::chrono::duration<float, std::milli>(b->time - a->time).count();
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtEventGetTimestamp(aclrtEvent handle, uint64_t* microseconds) {
    Event* event = event_of(handle);
    if (event == nullptr) return bad_event("aclrtEventGetTimestamp");
    std::lock_guard<std::mutex> lock(events_mutex);
    if (microseconds == nullptr || !event->recorded) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtEventGetTimestamp: the event must be recorded first");
    }
    *microseconds = static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(event->time.time_since_epoch()).count());
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtLaunchCallback(void (*fn)(void*), void* user_data, int, aclrtStream stream) {
    if (fn == nullptr) return fail(ACL_ERROR_INVALID_PARAM, "aclrtLaunchCallback: fn is null");
    return stream_of(stream).enqueue({"callback", [fn, user_data] {
                                          fn(user_data);
                                          return ACL_SUCCESS;
                                      }});
}

ACL_EXPORT aclError aclrtLaunchHostFunc(aclrtStream stream, void (*fn)(void*), void* args) {
    return aclrtLaunchCallback(fn, args, 0, stream);
}

// Callbacks run when they are enqueued: a report thread has nothing to process.
ACL_EXPORT aclError aclrtSubscribeReport(uint64_t, aclrtStream) { return ACL_SUCCESS; }
ACL_EXPORT aclError aclrtUnSubscribeReport(uint64_t, aclrtStream) { return ACL_SUCCESS; }
ACL_EXPORT aclError aclrtProcessReport(int32_t) { return ACL_SUCCESS; }

// A kernel that fails is reported as on a device: its launch succeeds, since most launches have no result to
// look at, and the next synchronisation returns the error.
namespace {
std::mutex failure_mutex;
std::atomic<aclError> failure_code{ACL_SUCCESS};
std::string failure_message;
}  // namespace

ACL_EXPORT int ascendgraphReportKernelFailure() {
    if (failure_code.load(std::memory_order_relaxed) == ACL_SUCCESS) return ACL_SUCCESS;
    std::lock_guard<std::mutex> lock(failure_mutex);
    return fail(failure_code.exchange(ACL_SUCCESS), failure_message);
}

ACL_EXPORT void ascendgraphSetError(int code, const char* message) {
    std::lock_guard<std::mutex> lock(failure_mutex);
    if (failure_code != ACL_SUCCESS) return;  // what follows a failure is often its consequence
    failure_code = code;
    failure_message = message;
}

ACL_EXPORT int ascendgraphLaunchHost(void* stream, void (*fn)(void*), void* arg, size_t arg_size,
                                     const char* name) {
    std::shared_ptr<char[]> copy(new char[std::max<size_t>(arg_size, 1)]);
    if (arg_size != 0) std::memcpy(copy.get(), arg, arg_size);
    return stream_of(stream).enqueue({name, [fn, copy] {
                                          fn(copy.get());
                                          return ACL_SUCCESS;
                                      }});
}
