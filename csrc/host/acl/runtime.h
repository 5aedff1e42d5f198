// Streams, events and captured models of the host runtime.
//
// A stream runs its work at once, on the thread that enqueues it: on a host there is nothing to overlap with,
// and work that is done when the call returns needs no other synchronization. There are two exceptions. While
// a stream captures, work is recorded into a model instead of being run, exactly as on a device: an in-place
// operation must not happen during the capture. And work behind an event that is not recorded yet waits for
// it: a replay may be started before the arguments of its tasks are updated.
//
// Collectives are the third: what other processes have to answer is under way when the call returns, and its
// stream waits for it (remote.cpp). What a stream does behind them without computing, records and waits of
// events and more collectives, is kept and goes on by itself. Whoever gives such a stream something to
// compute waits on the spot: nothing computes on a thread that the program does not know of.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "acl/abi.h"
#include "ascend_graph/host_runtime.h"

namespace ascend_graph::host {

// What a task returns that cannot run before an event is recorded.
inline constexpr aclError kWaits = -1;

class Stream;
class Model;

struct Task {
    std::string name;
    std::function<aclError()> body;
    // A kernel, of which profilers are told; not a copy, an event or a replay.
    bool kernel = false;
    // Marks a place and does no work. Who traces is not told: some record events themselves, at each range.
    bool mark = false;
    // Counts the tasks of its stream.
    uint32_t id = 0;

    // Runs the body as work of the stream, and tells who traces.
    aclError run(Stream& stream) const;
};

// Waits on this thread until `ended`, or until nothing is under way that other processes answer; whether it
// has ended.
bool await_remote(const std::function<bool()>& ended);
// Whether work of this process waits for other processes.
bool remote_is_under_way();

// For each stream of a capture, by its id, how many of its tasks are meant.
using Progress = std::map<int32_t, size_t>;

// How many captures and updates of task groups are open in the process.
extern std::atomic<int> active_captures;

// How far one execution of a model is, which may wait in between.
struct Execution {
    // Of a captured model, the next task; of one that was built, of each stream that runs, and whether it has
    // begun and ended.
    size_t next = 0;
    std::map<Model*, size_t> streams{};
    bool begun = false;
    bool ended = false;
};

// What a capture records: replayed by aclmdlRIExecuteAsync. A model that is destroyed ends its capture.
class Model {
  public:
    std::vector<Task> tasks;
    Progress recorded;
    uint32_t id = 0;
    std::string name;
    std::mutex recording;  // of tasks: the streams of one capture may be those of several threads
    // Called when the model is destroyed.
    std::vector<std::pair<void (*)(void*), void*>> at_end;

    Model() = default;
    virtual ~Model() { end_capture(); }
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;

    bool capturing() const { return capturing_; }
    void begin_capture() {
        if (!capturing_.exchange(true)) ++active_captures;
    }
    void end_capture() {
        if (capturing_.exchange(false)) --active_captures;
    }
    // Goes on with an execution, one at a time; it is as before its beginning when it has ended.
    virtual aclError replay(Execution& execution, Stream& stream);
    // Puts another task in the place of one, between two tasks of a replay.
    void replace(size_t place, Task task);

  protected:
    std::recursive_mutex running_;

  private:
    std::atomic<bool> capturing_{false};
};

// A model among those that are live: it gets an id. Null where a handle is not one of them.
void add_model(const std::shared_ptr<Model>& model);
std::shared_ptr<Model> model_of(aclmdlRI handle);
aclError not_a_model(const char* function);
// Whether the stream is of a model that is being built: what it records and waits for is of that model.
bool is_being_built(Stream& stream);

// A range of a model's tasks whose work can be replaced after the capture (aclmdlRICaptureTaskGrp*).
struct TaskGroup {
    std::weak_ptr<Model> model;
    size_t begin = 0;
    size_t end = 0;
};

class Stream {
  public:
    int32_t id = 0;
    int32_t device = 0;
    // As it was created, and what aclrtSetStreamAttribute says of it: kept and given back.
    uint32_t priority = 0;
    uint32_t flags = 0;
    std::map<int, uint64_t> attributes;
    std::mutex state;  // of what follows
    // The model this stream records into, which the list of live models owns: a stream that joined the
    // capture of another one is not told of its end.
    std::weak_ptr<Model> capture;
    bool owns_capture = false;
    // The tasks of the capture that come before this stream's next one.
    Progress behind;
    size_t group_begin = 0;
    bool group_open = false;
    TaskGroup* update = nullptr;
    size_t update_next = 0;

    // The model this stream records into now; null if it captures nothing.
    std::shared_ptr<Model> capturing();
    // Whether the stream waits for an event.
    bool waits();
    // Why work is kept instead of being run at once; null if it is run.
    const char* deferral();
    // Runs a task, or keeps it: in the model that the stream captures, or behind the event it waits for.
    aclError enqueue(Task task);
    // As enqueue, for a task that marks a place and does no work: nothing has to be joined on its account.
    aclError mark(Task task);
    // As enqueue, for a task that other processes answer: it returns kWaits until they have.
    aclError communicate(Task task);
    // Runs what waits, up to the next event that is not recorded.
    void advance();
    // Gives up what waits.
    void abort();

  private:
    aclError run(Task task);
    aclError record(Model& model, Task task);
    // Waits for the collectives that the stream is behind.
    void await_collectives();

    std::deque<Task> waiting_;  // begins with the task that waits
    std::atomic<uint32_t> next_task_{0};
};

// Physical memory that is mapped to an address counts among the allocations (memory.cpp) as long as it is;
// what it takes of the device, as long as it lives.
void map_memory(void* p, size_t size, bool on_device);
void unmap_memory(void* p);
bool use_memory(size_t size);
void give_memory_back(size_t size);

// Where memory lies that the library gave out, or a program registered.
enum class Location { kNone, kDevice, kHost };
Location location_of(const void* p);
size_t used_memory();
size_t most_used_memory();
// An error where `count` bytes do not fit the destination's `capacity`, or an address is null.
aclError check_copy(const char* function, const void* dst, size_t capacity, const void* src, size_t count);

// To be called after an event is recorded: streams that waited for it go on.
void resume_waiting_streams();
// Whether another thread is at it.
bool others_resume_streams();
// The program has read this error: if it is a kernel's, it is not told at the process's end.
void has_been_read(const std::string& text);
// To be called when streams have gone on: those who wait for that look again.
void announce_progress();
// Waits until `ended`, for as long as another thread may take to record an event; then an error, for on a
// device the call would not return. Reports what failed before.
aclError await(const std::function<bool()>& ended, const char* function, int32_t milliseconds = -1);

// Callbacks that a stream waits for (callbacks.cpp): whether one runs, or waits for its thread.
enum class Callbacks { kNone, kQueued, kRun };
Callbacks unfinished_callbacks();

Stream& stream_of(aclrtStream handle);
// An error that names `function` where the handle is neither null, the default stream, nor a live stream.
aclError check_stream(const char* function, aclrtStream handle);
aclError create_stream(const char* function, aclrtStream* stream, uint32_t priority, uint32_t flags);
size_t live_stream_count();
// Forgets what a stream of a model that is being built has recorded.
aclError clean_built_tasks(Stream& stream);
// The task that this thread runs, or ran last, as its stream counts it.
uint32_t running_task();
// The stream that this thread's work is of; null where none is known.
const void* work_place();

aclError fail(aclError code, const std::string& message);
// Of the thread's current context; 0 where it has none.
int32_t current_device();
// An error that names `function` where the thread has no context.
aclError check_current(const char* function);
// An error that names `function` where the device is not there.
aclError check_device(const char* function, int32_t id);
int32_t device_count();
// Reads a non-negative integer from the environment; `fallback` where it is unset or no number.
uint64_t environment_number(const char* name, uint64_t fallback);

}  // namespace ascend_graph::host
