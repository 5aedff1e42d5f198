#include "acl/devices.h"

#include <pthread.h>

#include <cstdio>
#include <cstring>
#include <mutex>

#include "acl/runtime.h"

namespace ascend_graph::host {
namespace {

constexpr const char* kVisible = "ASCEND_RT_VISIBLE_DEVICES";

std::mutex mutex;
std::atomic<int32_t> settled{-1};  // how many are visible, once that is settled
VisibleDevices of_process;

std::atomic<bool> used{false};
std::atomic<bool> forked{false};

std::string expected(int32_t count) {
    return "expected ids of 0.." + std::to_string(count - 1) +
           " in ascending order with commas between, such as " + (count > 1 ? "0,1" : "0") +
           "; ASCEND_GRAPH_HOST_DEVICES says how many devices there are";
}

}  // namespace

VisibleDevices visible_devices(const char* list, int32_t count) {
    VisibleDevices found;
    if (list == nullptr) {
        for (int32_t id = 0; id < count; ++id) found.ids.push_back(id);
        return found;
    }
    const std::string given = std::string(kVisible) + "=" + list + ": ";
    const char* rest = list;
    while (static_cast<int32_t>(found.ids.size()) < count) {
        const size_t digits = std::strspn(rest, "0123456789");
        const int64_t id = digits == 0 || digits > 9 ? count : std::atol(rest);
        if (!found.ids.empty() && digits != 0 && id <= found.ids.back()) {
            return {{}, given + "no device is visible, for the ids do not ascend; " + expected(count)};
        }
        if (id >= count) break;
        found.ids.push_back(static_cast<int32_t>(id));
        rest += digits;
        if (*rest != ',') break;
        ++rest;
    }
    if (*rest != '\0' || found.ids.empty()) {
        const std::string seen = found.ids.empty() ? "no device is visible"
                                                   : "only the first " + std::to_string(found.ids.size()) +
                                                         " of the list are visible";
        const std::string why =
            *rest == '\0' ? "the list is empty" : "'" + std::string(rest) + "' is left out";
        found.complaint = given + seen + ": " + why + "; " + expected(count);
    }
    return found;
}

VisibleDevices visible_devices() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (settled.load() >= 0) return of_process;
    return visible_devices(std::getenv(kVisible), machine_devices());
}

void settle_devices() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (settled.load() >= 0) return;
    of_process = visible_devices(std::getenv(kVisible), machine_devices());
    settled = static_cast<int32_t>(of_process.ids.size());
    // A device's runtime says nothing either, and the number of devices is all that a program sees.
    if (!of_process.complaint.empty())
        std::fprintf(stderr, "ascend_graph: %s\n", of_process.complaint.c_str());
}

int32_t device_count() {
    const int32_t count = settled.load(std::memory_order_relaxed);
    return count >= 0 ? count : static_cast<int32_t>(visible_devices().ids.size());
}

aclError enter_device(const char* function) {
    if (forked.load(std::memory_order_relaxed)) {
        return fail(ACL_ERROR_RT_CONTEXT_NULL,
                    std::string(function) +
                        ": this process was forked from one that had used a device, and what that has of the "
                        "device does not survive a fork; expected a process that was spawned, or forked "
                        "before the first use. Use multiprocessing's 'spawn' start method");
    }
    if (!used.load(std::memory_order_relaxed) && !used.exchange(true))
        pthread_atfork(nullptr, nullptr, [] { forked = true; });
    return ACL_SUCCESS;
}

}  // namespace ascend_graph::host
