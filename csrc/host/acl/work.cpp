// Who is told of kernels that ran, and when: CANN's profiling interface (csrc/host/prof/activity.cpp).
#include <atomic>
#include <chrono>

#include "acl/runtime.h"

namespace {

std::atomic<void (*)(const AscendgraphWork*)> observer{nullptr};
thread_local void* place = nullptr;
// Kernels may call others; who asks what a device does is told of the outermost.
thread_local bool within = false;

int64_t nanoseconds() {
    using std::chrono::nanoseconds;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<nanoseconds>(now).count();
}

}  // namespace

const void* ascend_graph::host::work_place() { return place; }

ACL_EXPORT void ascendgraphObserveWork(void (*ran)(const AscendgraphWork*)) { observer.store(ran); }

ACL_EXPORT bool ascendgraphWorkIsObserved() { return observer.load(std::memory_order_relaxed) != nullptr; }

ACL_EXPORT void* ascendgraphWorkOn(void* stream) {
    void* const before = place;
    place = stream;
    return before;
}

ACL_EXPORT int64_t ascendgraphWorkBegins() {
    if (within || !ascendgraphWorkIsObserved()) return 0;
    within = true;
    return nanoseconds();
}

ACL_EXPORT void ascendgraphWorkEnds(int64_t began, const char* name) {
    if (began == 0) return;
    within = false;
    auto* const ran = observer.load();
    if (ran == nullptr) return;  // it stopped listening meanwhile
    const auto& stream = ascend_graph::host::stream_of(place);
    const AscendgraphWork work{name, stream.device, stream.id, began, nanoseconds()};
    ran(&work);
}
