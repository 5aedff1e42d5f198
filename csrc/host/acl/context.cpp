// Contexts: which device a thread works on. A device has a context of its own, which aclrtSetDevice makes
// current; a program can create further ones. A thread begins without any.
#include <memory>
#include <mutex>
#include <unordered_map>

#include "acl/devices.h"
#include "acl/runtime.h"

using namespace ascend_graph::host;

namespace {

struct Context {
    int32_t device;
    bool of_device;  // not created by the program
};

// Handles come from callers, and one that was destroyed may be current in another thread.
struct Contexts {
    std::mutex mutex;
    std::unordered_map<void*, std::unique_ptr<Context>> live;
    std::unordered_map<int32_t, Context*> of_devices;
};
Contexts& contexts() {
    static Contexts& instance = *new Contexts;  // used until the process ends
    return instance;
}

thread_local void* current = nullptr;
thread_local int32_t current_id = 0;

Context* create(int32_t device, bool of_device) {
    auto created = std::make_unique<Context>(Context{device, of_device});
    Context* context = created.get();
    contexts().live.emplace(context, std::move(created));
    return context;
}

void make_current(Context* context) {
    current = context;
    current_id = context->device;
}

aclError not_a_context(const char* function) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                std::string(function) +
                    ": not a live context; expected one that aclrtCreateContext made, not destroyed");
}

// Whether the thread's context is still there.
bool has_current() {
    if (current == nullptr) return false;
    std::lock_guard<std::mutex> lock(contexts().mutex);
    if (contexts().live.count(current) != 0) return true;
    current = nullptr;
    return false;
}

}  // namespace

int32_t ascend_graph::host::current_device() { return current == nullptr ? 0 : current_id; }

aclError ascend_graph::host::check_current(const char* function) {
    if (has_current()) return ACL_SUCCESS;
    return fail(
        ACL_ERROR_RT_CONTEXT_NULL,
        std::string(function) + ": the thread has set no device and no context; call aclrtSetDevice first");
}

ACL_EXPORT aclError aclrtSetDevice(int32_t id) {
    if (aclError error = check_device("aclrtSetDevice", id)) return error;
    if (aclError error = enter_device("aclrtSetDevice")) return error;
    std::lock_guard<std::mutex> lock(contexts().mutex);
    Context*& context = contexts().of_devices[id];
    if (context == nullptr) context = create(id, true);
    make_current(context);
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtResetDevice(int32_t id) {
    if (aclError error = check_device("aclrtResetDevice", id)) return error;
    if (current != nullptr && current_id == id) current = nullptr;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtResetDeviceForce(int32_t id) { return aclrtResetDevice(id); }

ACL_EXPORT aclError aclrtGetDevice(int32_t* id) {
    if (id == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetDevice", "deviceId");
    if (!has_current())
        return ACL_ERROR_RT_CONTEXT_NULL;  // torch_npu asks to find out: not worth an error text
    *id = current_id;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtCreateContext(aclrtContext* context, int32_t id) {
    if (context == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtCreateContext", "context");
    if (aclError error = check_device("aclrtCreateContext", id)) return error;
    if (aclError error = enter_device("aclrtCreateContext")) return error;
    std::lock_guard<std::mutex> lock(contexts().mutex);
    Context* created = create(id, false);
    make_current(created);
    *context = created;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtDestroyContext(aclrtContext handle) {
    if (handle == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtDestroyContext", "context");
    std::lock_guard<std::mutex> lock(contexts().mutex);
    auto found = contexts().live.find(handle);
    if (found == contexts().live.end()) return not_a_context("aclrtDestroyContext");
    if (found->second->of_device) {
        return fail(ACL_ERROR_RT_PARAM_INVALID,
                    "aclrtDestroyContext: the device's own context cannot be destroyed; call "
                    "aclrtResetDevice instead");
    }
    contexts().live.erase(found);
    if (current == handle) current = nullptr;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtGetCurrentContext(aclrtContext* context) {
    if (context == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetCurrentContext", "context");
    if (aclError error = check_current("aclrtGetCurrentContext")) return error;
    *context = current;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtSetCurrentContext(aclrtContext handle) {
    if (handle == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtSetCurrentContext", "context");
    std::lock_guard<std::mutex> lock(contexts().mutex);
    auto found = contexts().live.find(handle);
    if (found == contexts().live.end()) return not_a_context("aclrtSetCurrentContext");
    make_current(found->second.get());
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) {
    if (stream == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtCtxGetCurrentDefaultStream", "stream");
    if (aclError error = check_current("aclrtCtxGetCurrentDefaultStream")) return error;
    *stream = &stream_of(nullptr);
    return ACL_SUCCESS;
}
