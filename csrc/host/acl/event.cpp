// Events, and words of device memory that streams write and wait for: torch_npu's external events.
#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include "acl/runtime.h"

namespace ascend_graph::host {
namespace {

struct Event {
    // In a capture, waiting for an external event, recording and resetting it are tasks of the model.
    explicit Event(bool external) : external(external) {}

    const bool external;
    uint32_t id = 0;
    bool recorded = false;
    std::chrono::steady_clock::time_point time{};
    // Records that were asked for, and those that ran: more are asked for while a stream waits.
    uint64_t asked = 0;
    uint64_t done = 0;
    // The capture that recorded it, and which of its tasks come before it.
    std::weak_ptr<Model> capture;
    Progress behind;
};

std::mutex mutex;  // of all events
// Handles come from callers; a stale one must be an error, not a crash.
std::map<void*, std::shared_ptr<Event>> live_events;

std::shared_ptr<Event> event_of(aclrtEvent handle) {
    std::lock_guard<std::mutex> lock(mutex);
    const auto found = live_events.find(handle);
    return found == live_events.end() ? nullptr : found->second;
}

aclError bad_event(const char* function) {
    return fail(
        ACL_ERROR_INVALID_RESOURCE_HANDLE,
        std::string(function) + ": not a live event; expected one that aclrtCreateEvent made, not destroyed");
}

aclError create(aclrtEvent* event, uint32_t flag, const char* function) {
    constexpr uint32_t kExternal = 0x20;  // ACL_EVENT_EXTERNAL
    if (event == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "event");
    auto created = std::make_shared<Event>((flag & kExternal) != 0);
    std::lock_guard<std::mutex> lock(mutex);
    static uint32_t next_id = 0;
    created->id = next_id++;
    *event = created.get();
    live_events.emplace(created.get(), std::move(created));
    return ACL_SUCCESS;
}

bool is_done(const Event& event) {
    std::lock_guard<std::mutex> lock(mutex);
    return event.done >= event.asked;
}

// Waiting for work of a capture makes the waiting stream part of that capture.
aclError join(Stream& stream, const Event& event, const std::shared_ptr<Model>& model) {
    const auto current = stream.capturing();
    if (current != nullptr && current != model) {
        return fail(ACL_ERROR_RT_CAPTURE_DEPENDENCY,
                    "aclrtStreamWaitEvent: the stream and the event belong to two captures; record and wait "
                    "within one");
    }
    std::scoped_lock lock(mutex, stream.state);
    if (current == nullptr) {
        stream.capture = model;
        stream.behind.clear();
    }
    for (const auto& [id, tasks] : event.behind) stream.behind[id] = std::max(stream.behind[id], tasks);
    return ACL_SUCCESS;
}

// The modes of aclrtValueWait.
enum : uint32_t { kNotLess = 0, kEqual = 1, kAnd = 2, kNor = 3, kModes = 4 };

bool holds(uint64_t word, uint64_t value, uint32_t mode) {
    switch (mode) {
        case kNotLess:
            return static_cast<int64_t>(word - value) >= 0;
        case kEqual:
            return word == value;
        case kAnd:
            return (word & value) != 0;
        default:
            return ~(word | value) != 0;
    }
}

aclError check_word(const char* function, const void* address) {
    const void* base = nullptr;
    size_t size = 0;
    if (ascendgraphAllocationExtent(address, &base, &size)) {
        const size_t offset = static_cast<const char*>(address) - static_cast<const char*>(base);
        if (offset + sizeof(uint64_t) <= size && offset % sizeof(uint64_t) == 0) return ACL_SUCCESS;
    }
    return fail(ACL_ERROR_INVALID_PARAM,
                std::string(function) + ": devAddr must be an address in device memory, a multiple of 8");
}

}  // namespace
}  // namespace ascend_graph::host

using namespace ascend_graph::host;

ACL_EXPORT aclError aclrtCreateEvent(aclrtEvent* event) { return create(event, 0, "aclrtCreateEvent"); }
ACL_EXPORT aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
    return create(event, flag, "aclrtCreateEventWithFlag");
}
ACL_EXPORT aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
    return create(event, flag, "aclrtCreateEventExWithFlag");
}

ACL_EXPORT aclError aclrtDestroyEvent(aclrtEvent event) {
    std::lock_guard<std::mutex> lock(mutex);
    return live_events.erase(event) == 0 ? bad_event("aclrtDestroyEvent") : ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtRecordEvent(aclrtEvent handle, aclrtStream stream) {
    const auto event = event_of(handle);
    if (event == nullptr) return bad_event("aclrtRecordEvent");
    if (aclError error = check_stream("aclrtRecordEvent", stream)) return error;
    Stream& s = stream_of(stream);
    const auto model = s.capturing();
    if (model == nullptr) {
        std::lock_guard<std::mutex> lock(mutex);
        ++event->asked;
    }
    auto record = [event] {
        {
            std::lock_guard<std::mutex> lock(mutex);
            event->time = std::chrono::steady_clock::now();
            event->recorded = true;
            event->asked = std::max(event->asked, ++event->done);
        }
        resume_waiting_streams();
        return ACL_SUCCESS;
    };
    if (aclError error = s.mark({"record event", record})) return error;
    if (event->external || is_being_built(s)) return ACL_SUCCESS;
    std::scoped_lock lock(mutex, s.state);
    event->capture = model;
    event->behind = model != nullptr ? s.behind : Progress{};
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtResetEvent(aclrtEvent handle, aclrtStream stream) {
    const auto event = event_of(handle);
    if (event == nullptr) return bad_event("aclrtResetEvent");
    return stream_of(stream).mark({"reset event", [event] {
                                       std::lock_guard<std::mutex> lock(mutex);
                                       event->recorded = false;
                                       return ACL_SUCCESS;
                                   }});
}

ACL_EXPORT aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent handle) {
    const auto event = event_of(handle);
    if (event == nullptr) return bad_event("aclrtStreamWaitEvent");
    if (aclError error = check_stream("aclrtStreamWaitEvent", stream)) return error;
    Stream& s = stream_of(stream);
    // In a model that is built an event is what it says: recorded, until it is reset.
    if (event->external || is_being_built(s)) {
        return s.mark({"wait for event", [event] {
                           std::lock_guard<std::mutex> lock(mutex);
                           return event->recorded ? ACL_SUCCESS : kWaits;
                       }});
    }
    std::unique_lock<std::mutex> lock(mutex);
    const auto model = event->capture.lock();
    const uint64_t asked = event->asked;
    const bool there = event->done >= asked;
    lock.unlock();
    if (model != nullptr && model->capturing()) return join(s, *event, model);
    if (there) return ACL_SUCCESS;
    return s.mark({"wait for event", [event, asked] {
                       std::lock_guard<std::mutex> lock(mutex);
                       return event->done >= asked ? ACL_SUCCESS : kWaits;
                   }});
}

// A wait that fails after some seconds on a device ends here with its synchronization, if nothing records the
// event.
ACL_EXPORT aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t seconds) {
    if (seconds < 0) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtStreamWaitEventWithTimeout: timeout is " +
                                                    std::to_string(seconds) +
                                                    "; it must be 0 (no limit) or positive seconds");
    }
    return aclrtStreamWaitEvent(stream, event);
}

static aclError synchronize(const char* function, aclrtEvent handle, int32_t milliseconds = -1) {
    const auto event = event_of(handle);
    if (event == nullptr) return bad_event(function);
    return await([&] { return is_done(*event); }, function, milliseconds);
}
ACL_EXPORT aclError aclrtSynchronizeEvent(aclrtEvent event) {
    return synchronize("aclrtSynchronizeEvent", event);
}
ACL_EXPORT aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
    return synchronize("aclrtSynchronizeEventWithTimeout", event, timeout);
}

ACL_EXPORT aclError aclrtGetEventId(aclrtEvent handle, uint32_t* id) {
    if (id == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetEventId", "eventId");
    const auto event = event_of(handle);
    if (event == nullptr) return bad_event("aclrtGetEventId");
    *id = event->id;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtGetEventAvailNum(uint32_t* count) {
    constexpr size_t kMost = 65536;  // as many as an Atlas A2 has
    if (count == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetEventAvailNum", "eventCount");
    if (aclError error = check_current("aclrtGetEventAvailNum")) return error;
    std::lock_guard<std::mutex> lock(mutex);
    *count = static_cast<uint32_t>(kMost - std::min(kMost, live_events.size()));
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtQueryEventStatus(aclrtEvent handle, int* status) {
    if (status == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtQueryEventStatus", "status");
    const auto event = event_of(handle);
    if (event == nullptr) return bad_event("aclrtQueryEventStatus");
    *status = is_done(*event) ? 1 : 0;  // ACL_EVENT_RECORDED_STATUS_COMPLETE, …_NOT_READY
    return ACL_SUCCESS;
}

// The earlier form, with the numbers the other way round: ACL_EVENT_STATUS_COMPLETE is 0, …_NOT_READY 1.
ACL_EXPORT aclError aclrtQueryEvent(aclrtEvent handle, int* status) {
    const aclError error = aclrtQueryEventStatus(handle, status);
    if (error == ACL_SUCCESS) *status = 1 - *status;
    return error;
}

ACL_EXPORT aclError aclrtQueryEventWaitStatus(aclrtEvent handle, int* status) {
    if (status == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtQueryEventWaitStatus", "status");
    if (event_of(handle) == nullptr) return bad_event("aclrtQueryEventWaitStatus");
    *status = 0;  // ACL_EVENT_WAIT_STATUS_COMPLETE
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtEventElapsedTime(float* ms, aclrtEvent start, aclrtEvent end) {
    const auto a = event_of(start);
    const auto b = event_of(end);
    if (a == nullptr || b == nullptr) return bad_event("aclrtEventElapsedTime");
    std::lock_guard<std::mutex> lock(mutex);
    if (ms == nullptr || !a->recorded || !b->recorded) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtEventElapsedTime: both events must be recorded first");
    }
    *ms = std::chrono::duration<float, std::milli>(b->time - a->time).count();
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtEventGetTimestamp(aclrtEvent handle, uint64_t* microseconds) {
    const auto event = event_of(handle);
    if (event == nullptr) return bad_event("aclrtEventGetTimestamp");
    std::lock_guard<std::mutex> lock(mutex);
    if (microseconds == nullptr || !event->recorded) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtEventGetTimestamp: the event must be recorded first");
    }
    *microseconds = static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(event->time.time_since_epoch()).count());
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtValueWrite(void* address, uint64_t value, uint32_t flag, aclrtStream stream) {
    if (aclError error = check_word("aclrtValueWrite", address)) return error;
    if (flag != 0) {
        return fail(ACL_ERROR_INVALID_PARAM,
                    "aclrtValueWrite: flag is " + std::to_string(flag) + "; it must be 0");
    }
    return stream_of(stream).mark({"write value", [address, value] {
                                       __atomic_store_n(static_cast<uint64_t*>(address), value,
                                                        __ATOMIC_RELEASE);
                                       resume_waiting_streams();
                                       return ACL_SUCCESS;
                                   }});
}

ACL_EXPORT aclError aclrtValueWait(void* address, uint64_t value, uint32_t mode, aclrtStream stream) {
    if (aclError error = check_word("aclrtValueWait", address)) return error;
    if (mode >= kModes) {
        return fail(ACL_ERROR_INVALID_PARAM,
                    "aclrtValueWait: flag is " + std::to_string(mode) + "; it must be one of 0 to 3");
    }
    return stream_of(stream).mark({"wait for value", [address, value, mode] {
                                       const uint64_t word =
                                           __atomic_load_n(static_cast<uint64_t*>(address), __ATOMIC_ACQUIRE);
                                       return holds(word, value, mode) ? ACL_SUCCESS : kWaits;
                                   }});
}
