// CANN's profiling tools interface (libmspti.so, mspti_activity.h): records of the kernels that ran and of
// the calls that launched them, as torch_npu gives them to PyTorch's profiler.
//
// A kernel is what a stream runs, a node of a GE graph, or an operator of PyTorch's; its times are the
// host's. Of the other kinds (copies, communication, API calls, markers) there are no records.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "acl/abi.h"
#include "ascend_graph/host_runtime.h"

namespace {

enum Result : int {
    kSuccess = 0,
    kInvalidParameter = 1,
    kMultipleSubscribers = 2,
    kMaxLimitReached = 3,
    kQueueEmpty = 5,
};

enum Kind : int { kKernel = 2, kExternalCorrelation = 8, kKinds = 13 };

// As mspti_activity.h lays its records out: without gaps, each a multiple of eight bytes long.
#define MSPTI_RECORD __attribute__((packed, aligned(8)))
struct MSPTI_RECORD Activity {
    int32_t kind;
};
struct MSPTI_RECORD KernelRecord {
    int32_t kind;
    uint64_t start;
    uint64_t end;
    uint32_t device;
    uint32_t stream;
    uint64_t correlation;
    const char* type;
    const char* name;
};
struct MSPTI_RECORD ExternalCorrelationRecord {
    int32_t kind;
    int32_t external_kind;
    uint64_t external;
    uint64_t correlation;
};
static_assert(sizeof(KernelRecord) == 56 && sizeof(ExternalCorrelationRecord) == 24);

using RequestBuffer = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using CompleteBuffer = void (*)(uint8_t* buffer, size_t size, size_t valid);

struct Bytes {
    const void* data;
    size_t size;
};

// What was recorded and not delivered yet. Never destroyed: kernels may run while the process ends.
struct Recorder {
    std::mutex mutex;
    std::vector<KernelRecord> kernels;
    std::vector<ExternalCorrelationRecord> correlations;
    std::unordered_set<std::string> names;  // which records point at
    RequestBuffer request = nullptr;
    CompleteBuffer complete = nullptr;
    bool enabled[kKinds] = {};
    bool subscribed = false;
    uint64_t last_correlation = 0;
};
Recorder& recorder() {
    static auto& instance = *new Recorder;
    return instance;
}

// Per kind of external API the calls that this thread is in.
thread_local std::map<int, std::vector<uint64_t>> external;

// As many records as are kept before they are delivered unasked.
constexpr size_t kKept = 1 << 16;

// Fills buffers of the subscriber's until every record was given. What it gives no buffer for is lost, as on
// a device.
void deliver() {
    auto& all = recorder();
    std::vector<KernelRecord> kernels;
    std::vector<ExternalCorrelationRecord> correlations;
    RequestBuffer request;
    CompleteBuffer complete;
    {
        std::lock_guard<std::mutex> lock(all.mutex);
        request = all.request;
        complete = all.complete;
        if (request == nullptr) return;
        kernels.swap(all.kernels);
        correlations.swap(all.correlations);
    }
    std::vector<Bytes> records;
    records.reserve(kernels.size() + correlations.size());
    for (const auto& record : correlations) records.push_back({&record, sizeof(record)});
    for (const auto& record : kernels) records.push_back({&record, sizeof(record)});
    for (size_t next = 0; next < records.size();) {
        uint8_t* buffer = nullptr;
        size_t size = 0, most = 0, used = 0, count = 0;
        request(&buffer, &size, &most);
        if (buffer == nullptr) return;
        while (next < records.size() && used + records[next].size <= size && (most == 0 || count < most)) {
            std::memcpy(buffer + used, records[next].data, records[next].size);
            used += records[next++].size;
            ++count;
        }
        complete(buffer, size, used);
        if (count == 0) return;  // not even one fits
    }
}

void record(const AscendgraphWork* work) {
    auto& all = recorder();
    bool full = false;
    {
        std::lock_guard<std::mutex> lock(all.mutex);
        const uint64_t correlation = ++all.last_correlation;
        const char* name = all.names.insert(work->name).first->c_str();
        all.kernels.push_back({kKernel, static_cast<uint64_t>(work->start), static_cast<uint64_t>(work->end),
                               static_cast<uint32_t>(work->device), static_cast<uint32_t>(work->stream),
                               correlation, "HOST", name});
        if (all.enabled[kExternalCorrelation]) {
            for (const auto& [kind, calls] : external) {
                if (!calls.empty())
                    all.correlations.push_back({kExternalCorrelation, kind, calls.back(), correlation});
            }
        }
        full = all.kernels.size() >= kKept;
    }
    if (full) deliver();
}

bool is_kind(int kind) { return kind > 0 && kind < kKinds; }
// msptiExternalCorrelationKind: unknown, and three of the caller's.
bool is_external(int kind) { return kind >= 1 && kind <= 4; }

Result enable(int kind, bool on) {
    if (!is_kind(kind)) return kInvalidParameter;
    auto& all = recorder();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.enabled[kind] = on;
    if (kind == kKernel) ascendgraphObserveWork(on ? record : nullptr);
    return kSuccess;
}

}  // namespace

ACL_EXPORT int msptiSubscribe(void** subscriber, void*, void*) {
    if (subscriber == nullptr) return kInvalidParameter;
    auto& all = recorder();
    std::lock_guard<std::mutex> lock(all.mutex);
    if (all.subscribed) return kMultipleSubscribers;
    all.subscribed = true;
    *subscriber = &all;
    return kSuccess;
}
ACL_EXPORT int msptiUnsubscribe(void* subscriber) {
    auto& all = recorder();
    std::lock_guard<std::mutex> lock(all.mutex);
    if (subscriber != &all || !all.subscribed) return kInvalidParameter;
    all.subscribed = false;
    return kSuccess;
}

ACL_EXPORT int msptiActivityRegisterCallbacks(RequestBuffer request, CompleteBuffer complete) {
    if (request == nullptr || complete == nullptr) return kInvalidParameter;
    auto& all = recorder();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.request = request;
    all.complete = complete;
    return kSuccess;
}
ACL_EXPORT int msptiActivityEnable(int kind) { return enable(kind, true); }
ACL_EXPORT int msptiActivityDisable(int kind) { return enable(kind, false); }
ACL_EXPORT bool msptiActivityIsEnabled(int kind) {
    auto& all = recorder();
    std::lock_guard<std::mutex> lock(all.mutex);
    return is_kind(kind) && all.enabled[kind];
}
ACL_EXPORT int msptiActivityFlushAll(uint32_t) {
    deliver();
    return kSuccess;
}

// From a null record to the first of a buffer, and from one to the next.
ACL_EXPORT int msptiActivityGetNextRecord(uint8_t* buffer, size_t valid, Activity** record) {
    if (buffer == nullptr || record == nullptr) return kInvalidParameter;
    uint8_t* next = buffer;
    if (*record != nullptr) {
        const size_t size =
            (*record)->kind == kKernel ? sizeof(KernelRecord) : sizeof(ExternalCorrelationRecord);
        next = reinterpret_cast<uint8_t*>(*record) + size;
    }
    if (next < buffer || next >= buffer + valid) return kMaxLimitReached;
    *record = reinterpret_cast<Activity*>(next);
    return kSuccess;
}

ACL_EXPORT int msptiActivityPushExternalCorrelationId(int kind, uint64_t id) {
    if (!is_external(kind)) return kInvalidParameter;
    external[kind].push_back(id);
    return kSuccess;
}
ACL_EXPORT int msptiActivityPopExternalCorrelationId(int kind, uint64_t* last) {
    if (!is_external(kind)) return kInvalidParameter;
    auto& calls = external[kind];
    if (calls.empty()) return kQueueEmpty;
    if (last != nullptr) *last = calls.back();
    calls.pop_back();
    return kSuccess;
}
