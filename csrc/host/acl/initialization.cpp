// Initialization and its end, and who is told of them.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "acl/devices.h"
#include "acl/runtime.h"
#include "ascendc_host/internal/processors.h"

using namespace ascend_graph::host;

namespace {

std::mutex mutex;
uint64_t references = 0;  // calls of aclInit that nothing has taken back

// The bridge holds what must be compiled against the installed PyTorch: kernels for ATen operators and the GE
// executor. It is loaded here because initialization is the first thing PyTorch's backend does and happens
// before any kernel runs. A program without Python, of which it is an extension, has no use for it, nor has
// one of Python before it imports PyTorch, whose backend initializes once more.
aclError load_bridge() {
    static std::atomic<bool> loaded{false};
    const char* path = std::getenv("ASCEND_GRAPH_HOST_BRIDGE");
    if (path == nullptr || *path == '\0' || dlsym(RTLD_DEFAULT, "Py_IsInitialized") == nullptr || loaded)
        return ACL_SUCCESS;
    void* const torch = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
    if (torch == nullptr) return ACL_SUCCESS;
    dlclose(torch);
    loaded = true;
    if (void* bridge = dlopen(path, RTLD_NOW | RTLD_GLOBAL)) {
        const auto ready = reinterpret_cast<int (*)()>(dlsym(bridge, "ascendgraphBridgeReady"));
        return ready == nullptr ? ACL_SUCCESS : ready();
    }
    return fail(ACL_ERROR_FAILURE, std::string("aclInit: the host runtime's PyTorch bridge cannot be loaded; "
                                               "start the program with python -m ascend_graph.host: ") +
                                       dlerror());
}

using InitCallback = aclError (*)(const char*, size_t, void*);
using FinalizeCallback = aclError (*)(void*);

// Registered functions, by what they are of.
template <typename F>
struct Registered {
    struct One {
        int type;
        F function;
        void* data;
    };
    std::vector<One> all;

    aclError add(const char* name, int type, F function, void* data) {
        if (function == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, name, "cbFunc");
        const std::lock_guard<std::mutex> lock(mutex);
        all.push_back({type, function, data});
        return ACL_SUCCESS;
    }
    aclError remove(const char* name, int type, F function) {
        const std::lock_guard<std::mutex> lock(mutex);
        for (auto one = all.begin(); one != all.end(); ++one) {
            if (one->type != type || one->function != function) continue;
            all.erase(one);
            return ACL_SUCCESS;
        }
        return fail(
            ACL_ERROR_INVALID_PARAM,
            std::string(name) + ": the function is not registered; expected one that was, by its type");
    }
    std::vector<One> copy() const {
        const std::lock_guard<std::mutex> lock(mutex);
        return all;
    }
};
// Never destroyed: a program may end without aclFinalize.
auto& init_callbacks = *new Registered<InitCallback>;
auto& finalize_callbacks = *new Registered<FinalizeCallback>;
auto& configuration = *new std::string;  // of the first aclInit

std::string read_file(const char* path) {
    if (path == nullptr) return {};
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

aclError initialize(const char* path) {
    settle_devices();
    bool again = false;
    {
        const std::lock_guard<std::mutex> lock(mutex);
        if (++references == 1) configuration = read_file(path);
        again = references > 1;
    }
    aclError error = load_bridge();
    if (again && error == ACL_SUCCESS) return ACL_ERROR_REPEAT_INITIALIZE;
    for (const auto& one : init_callbacks.copy()) {
        if (error == ACL_SUCCESS) error = one.function(configuration.c_str(), configuration.size(), one.data);
    }
    const std::lock_guard<std::mutex> lock(mutex);
    if (error != ACL_SUCCESS) references = 0;
    return error;
}

// Takes back one call of aclInit, or all; what is left of them.
aclError finalize(bool all, uint64_t* left) {
    {
        const std::lock_guard<std::mutex> lock(mutex);
        const bool ends = references == 1 || (all && references > 1);
        references = all || references == 0 ? 0 : references - 1;
        if (left != nullptr) *left = references;
        if (!ends) return ACL_SUCCESS;
    }
    aclError error = ACL_SUCCESS;
    for (const auto& one : finalize_callbacks.copy()) {
        const aclError failed = one.function(one.data);
        if (error == ACL_SUCCESS) error = failed;
    }
    return error;
}

}  // namespace

ACL_EXPORT aclError aclInit(const char* path) {
    if (ascendgraphKernelTimeout() < 0) {
        return fail(ACL_ERROR_INVALID_PARAM, std::string("aclInit: ASCEND_GRAPH_KERNEL_TIMEOUT=") +
                                                 std::getenv("ASCEND_GRAPH_KERNEL_TIMEOUT") +
                                                 ": write seconds, from 0.001 to 1e9; unset it for no limit");
    }
    if (ascendc_host::processor_of_process() == nullptr) {
        std::string known;
        for (const auto& one : ascendc_host::processors)
            known += std::string(known.empty() ? "" : ", ") + one.name;
        return fail(ACL_ERROR_INVALID_PARAM, std::string("aclInit: ASCEND_GRAPH_HOST_SOC=") +
                                                 std::getenv("ASCEND_GRAPH_HOST_SOC") + ": expected one of " +
                                                 known);
    }
    return initialize(path);
}
ACL_EXPORT aclError aclFinalize() { return finalize(true, nullptr); }
ACL_EXPORT aclError aclFinalizeReference(uint64_t* left) { return finalize(false, left); }

ACL_EXPORT aclError aclInitCallbackRegister(int type, InitCallback function, void* data) {
    if (aclError error = init_callbacks.add("aclInitCallbackRegister", type, function, data)) return error;
    bool runs = false;
    {
        const std::lock_guard<std::mutex> lock(mutex);
        runs = references != 0;
    }
    return runs ? function(configuration.c_str(), configuration.size(), data) : ACL_SUCCESS;
}
ACL_EXPORT aclError aclInitCallbackUnRegister(int type, InitCallback function) {
    return init_callbacks.remove("aclInitCallbackUnRegister", type, function);
}
ACL_EXPORT aclError aclFinalizeCallbackRegister(int type, FinalizeCallback function, void* data) {
    return finalize_callbacks.add("aclFinalizeCallbackRegister", type, function, data);
}
ACL_EXPORT aclError aclFinalizeCallbackUnRegister(int type, FinalizeCallback function) {
    return finalize_callbacks.remove("aclFinalizeCallbackUnRegister", type, function);
}
