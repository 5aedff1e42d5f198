// Which devices there are, and which of them the process sees.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "acl/abi.h"

namespace ascend_graph::host {

// The devices of the machine, as its driver counts them: ASCEND_GRAPH_HOST_DEVICES, or one.
inline int32_t machine_devices() {
    static const int32_t count = [] {
        const char* text = std::getenv("ASCEND_GRAPH_HOST_DEVICES");
        if (text == nullptr || *text == '\0') return 1;
        char* end = nullptr;
        const long value = std::strtol(text, &end, 10);
        return *end == '\0' && value > 0 && value < INT32_MAX ? static_cast<int32_t>(value) : 1;
    }();
    return count;
}

// The machine's numbers of the devices that the process sees, in the order of its own numbers. Where a list
// is not what CANN takes, `complaint` says so.
struct VisibleDevices {
    std::vector<int32_t> ids;
    std::string complaint;
};

// Reads a list as CANN does: null shows all of `count` devices; otherwise ids in ascending order, up to the
// first that is not there, and none where the order is another.
VisibleDevices visible_devices(const char* list, int32_t count);

// Those of the process by ASCEND_RT_VISIBLE_DEVICES: read anew until settle_devices, from then on as they
// were.
VisibleDevices visible_devices();
void settle_devices();

// An error that names `function` in a process whose parent had used a device before it was forked. Otherwise
// the process counts as one that has used it.
aclError enter_device(const char* function);

}  // namespace ascend_graph::host
