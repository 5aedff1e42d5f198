// A stand-in for the host runtime: runs every launch at once and keeps the last error.
#include <cstring>
#include <string>
#include <vector>

#include "acl/strict.h"
#include "ascend_graph/entering.h"
#include "ascendc_host_launch.h"

// No strict runtime here: everybody is let in.
extern "C" const char* ascendgraphEnter(const char*) { return nullptr; }
extern "C" void ascendgraphLeave(const char*) {}
namespace ascend_graph::host::strict {
bool enabled() { return false; }
bool explain(const void*, char*, size_t) { return false; }
}  // namespace ascend_graph::host::strict

namespace {
int last_code = 0;
std::string last_message;
const void* allocation = nullptr;
size_t allocation_size = 0;
}  // namespace

extern "C" {

aclError ascendgraphLaunchHost(aclrtStream, void (*fn)(void*), void* arg, size_t arg_size, const char*) {
    std::vector<std::max_align_t> copy(arg_size / sizeof(std::max_align_t) + 1);
    std::memcpy(copy.data(), arg, arg_size);
    last_code = 0;
    last_message.clear();
    fn(copy.data());
    return last_code;
}
void ascendgraphSetError(int code, const char* message) {
    last_code = code;
    last_message = message;
}
bool ascendgraphAllocationExtent(const void* p, const void** base, size_t* size) {
    const auto* begin = static_cast<const char*>(allocation);
    if (begin == nullptr || p < begin || p >= begin + allocation_size) return false;
    *base = allocation;
    *size = allocation_size;
    return true;
}

// For the tests.
const char* seam_message() { return last_message.c_str(); }
void seam_clear() {
    last_code = 0;
    last_message.clear();
}
void seam_allocation(const void* p, size_t size) {
    allocation = p;
    allocation_size = size;
}
}
