// CANN's profiler (acl_prof.h), as torch_npu looks it up: there is no device whose counters could be read.
// What runs is timed by PyTorch's own record functions, which torch_npu's profiler collects
// (csrc/host/bridge/trace.cpp).
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include "acl/abi.h"
#include "ascend_graph/host_runtime.h"

using ascend_graph::host::fail_null;

namespace {

constexpr aclError ACL_ERROR_PROF_ALREADY_RUN = 100042;
constexpr aclError ACL_ERROR_PROF_NOT_RUN = 100043;

aclError fail(aclError code, const std::string& message) { return ascendgraphFail(code, message.c_str()); }

struct Config {
    uint64_t data_types;
};
struct StepInfo {};

bool initialized = false;

aclError check(const char* function, const void* object) {
    if (!initialized)
        return fail(ACL_ERROR_PROF_NOT_RUN,
                    std::string(function) + ": aclprofInit was not called; call it first");
    if (object == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "config");
    return ACL_SUCCESS;
}

}  // namespace

ACL_EXPORT aclError aclprofInit(const char* path, size_t length) {
    if (path == nullptr || length == 0)
        return fail(ACL_ERROR_INVALID_PARAM, "aclprofInit: profilerResultPath is empty; give a directory");
    if (initialized)
        return fail(ACL_ERROR_PROF_ALREADY_RUN,
                    "aclprofInit: it was called before; call aclprofFinalize first");
    initialized = true;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclprofFinalize() {
    if (!initialized)
        return fail(ACL_ERROR_PROF_NOT_RUN, "aclprofFinalize: aclprofInit was not called; call it first");
    initialized = false;
    return ACL_SUCCESS;
}

ACL_EXPORT void* aclprofCreateConfig(uint32_t* devices, uint32_t count, int, const void*, uint64_t types) {
    if (devices == nullptr && count != 0) return nullptr;
    return new (std::nothrow) Config{types};
}
ACL_EXPORT aclError aclprofDestroyConfig(const void* config) {
    if (config == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclprofDestroyConfig", "config");
    delete static_cast<const Config*>(config);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclprofSetConfig(int, const char* value, size_t) {
    if (value == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclprofSetConfig", "config");
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclprofWarmup(const void* config) { return check("aclprofWarmup", config); }
ACL_EXPORT aclError aclprofStart(const void* config) { return check("aclprofStart", config); }
ACL_EXPORT aclError aclprofStop(const void* config) { return check("aclprofStop", config); }

// Of a device's own features there is none.
ACL_EXPORT aclError aclprofGetSupportedFeatures(size_t* count, void** features) {
    if (count == nullptr || features == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclprofGetSupportedFeatures", "a result pointer");
    *count = 0;
    *features = nullptr;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclprofGetSupportedFeaturesV2(size_t* count, void** features) {
    return aclprofGetSupportedFeatures(count, features);
}

ACL_EXPORT aclError aclprofRegisterDeviceCallback() { return ACL_SUCCESS; }
ACL_EXPORT aclError aclprofMarkEx(const char*, size_t, aclrtStream) { return ACL_SUCCESS; }
ACL_EXPORT void* aclprofCreateStepInfo() { return new (std::nothrow) StepInfo; }
ACL_EXPORT void aclprofDestroyStepInfo(void* info) { delete static_cast<StepInfo*>(info); }
ACL_EXPORT aclError aclprofGetStepTimestamp(void*, int, aclrtStream) { return ACL_SUCCESS; }
