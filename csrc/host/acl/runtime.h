// Streams, events and captured models of the host runtime.
//
// A stream runs its work at once, on the thread that enqueues it: on a host there is nothing to overlap with,
// and work that is done when the call returns needs no other synchronisation. While a stream captures, work
// is recorded into a model instead of being run, exactly as on a device: an in-place operation must not
// happen during the capture.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "acl/abi.h"
#include "ascend_graph/host_runtime.h"

namespace ascend_graph::host {

struct Task {
    std::string name;
    std::function<aclError()> run;
};

// What a capture records: replayed by aclmdlRIExecuteAsync.
struct Model {
    std::vector<Task> tasks;
    uint32_t id = 0;
    bool capturing = false;

    aclError replay() const;
};

// A range of a model's tasks whose work can be replaced after the capture (aclmdlRICaptureTaskGrp*).
struct TaskGroup {
    std::weak_ptr<Model> model;
    size_t begin = 0;
    size_t end = 0;
};

struct Stream {
    int32_t id = 0;
    int32_t device = 0;
    // The model this stream records into. A stream that joined the capture of another one keeps the pointer
    // after the capture's end, so only `capturing()` tells whether it records.
    std::shared_ptr<Model> capture;
    bool owns_capture = false;
    size_t group_begin = 0;
    bool group_open = false;
    TaskGroup* update = nullptr;
    size_t update_next = 0;

    bool capturing() const { return capture != nullptr && capture->capturing; }
    aclError enqueue(Task task);
};

struct Event {
    std::chrono::steady_clock::time_point time{};
    bool recorded = false;
    std::shared_ptr<Model> capture;
};

Stream& stream_of(aclrtStream handle);
extern std::atomic<int> active_captures;

aclError fail(aclError code, const std::string& message);
int32_t current_device();
int32_t device_count();
// Reads a non-negative integer from the environment; `fallback` where it is unset or no number.
uint64_t environment_number(const char* name, uint64_t fallback);

}  // namespace ascend_graph::host
