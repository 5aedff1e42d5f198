// Failures of kernels: when they are reported, who is told of them, and what is left unread.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "acl/devices.h"
#include "acl/runtime.h"

using namespace ascend_graph::host;

// What a program that asked for it is told of a kernel that failed: where it ran, and what it returned.
struct Exception {  // rtExceptionInfo
    uint32_t task;
    uint32_t stream;
    uint32_t thread;
    uint32_t device;
    uint32_t code;
};

namespace {
std::atomic<void (*)(Exception*)> exception_callback{nullptr};

int32_t device_of(const Stream* stream) {
    return stream == nullptr || stream == &stream_of(nullptr) ? current_device() : stream->device;
}

void tell_exception(int code, const Stream* stream, int32_t device) {
    auto* const callback = exception_callback.load();
    if (callback == nullptr) return;
    Exception exception{running_task(), static_cast<uint32_t>(stream == nullptr ? 0 : stream->id),
                        static_cast<uint32_t>(gettid()), static_cast<uint32_t>(device),
                        static_cast<uint32_t>(code)};
    callback(&exception);
}

constexpr uint32_t kNoException = 0xFFFFFFFF;
}  // namespace

ACL_EXPORT aclError aclrtSetExceptionInfoCallback(void (*callback)(Exception*)) {
    exception_callback = callback;
    return ACL_SUCCESS;
}
ACL_EXPORT uint32_t aclrtGetTaskIdFromExceptionInfo(const Exception* info) {
    return info == nullptr ? kNoException : info->task;
}
ACL_EXPORT uint32_t aclrtGetStreamIdFromExceptionInfo(const Exception* info) {
    return info == nullptr ? kNoException : info->stream;
}
ACL_EXPORT uint32_t aclrtGetThreadIdFromExceptionInfo(const Exception* info) {
    return info == nullptr ? kNoException : info->thread;
}
ACL_EXPORT uint32_t aclrtGetDeviceIdFromExceptionInfo(const Exception* info) {
    return info == nullptr ? kNoException : info->device;
}
ACL_EXPORT uint32_t aclrtGetErrorCodeFromExceptionInfo(const Exception* info) {
    return info == nullptr ? kNoException : info->code;
}

// A kernel that fails is reported as on a device: its launch succeeds, since most launches have no result to
// look at, and the next synchronization with its device returns the error.
namespace {
std::mutex failures_mutex;
std::atomic<size_t> failed_devices{0};
std::map<int32_t, std::pair<aclError, std::string>> failures;

// Failures of which the program has not read the message: it would end as if the kernels had run, or with a
// number alone.
struct Unread {
    std::mutex mutex;
    std::set<std::string> texts;
    pid_t process = 0;
};
Unread& unread() {
    static auto& failures = *new Unread;  // not destroyed: it is read at exit
    return failures;
}
void tell_unread() {
    const auto& [mutex, texts, process] = unread();
    if (process != getpid()) return;  // its parent tells
    for (const auto& text : texts)
        std::fprintf(
            stderr, "ascend_graph: %s (the program has not read this error; aclGetRecentErrMsg returns it)\n",
            text.c_str());
}
void keep_unread(const char* text) {
    constexpr size_t most = 16;
    auto& [mutex, texts, process] = unread();
    std::lock_guard<std::mutex> lock(mutex);
    static const int registered = std::atexit(tell_unread);
    if (process != getpid()) texts.clear();
    process = getpid();
    if (registered == 0 && texts.size() < most) texts.insert(text);
}
}  // namespace

void ascend_graph::host::has_been_read(const std::string& text) {
    auto& [mutex, texts, process] = unread();
    std::lock_guard<std::mutex> lock(mutex);
    texts.erase(text);
}

ACL_EXPORT int ascendgraphReportKernelFailure() {
    if (aclError error = enter_device("the device")) return error;
    if (failed_devices.load(std::memory_order_relaxed) == 0) return ACL_SUCCESS;
    std::lock_guard<std::mutex> lock(failures_mutex);
    const auto found = failures.find(current_device());
    if (found == failures.end()) return ACL_SUCCESS;
    const auto [code, message] = std::move(found->second);
    failures.erase(found);
    --failed_devices;
    return fail(code, message);
}

ACL_EXPORT void ascendgraphSetError(int code, const char* message) {
    // That of the stream whose work this is, where a thread of the runtime's own does it.
    const auto* stream = static_cast<const Stream*>(work_place());
    const int32_t device = device_of(stream);
    tell_exception(code, stream, device);
    std::lock_guard<std::mutex> lock(failures_mutex);
    // What follows a failure is often its consequence: the first is kept.
    if (!failures.try_emplace(device, code, message).second) return;
    ++failed_devices;
    keep_unread(message);
}
