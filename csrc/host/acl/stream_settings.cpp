// How streams are created and what is set of them: priorities, flags, attributes, and their cores.
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "acl/handles.h"
#include "acl/runtime.h"
#include "ascendc_host/internal/processors.h"

using namespace ascend_graph::host;

namespace {

constexpr uint32_t kPersistent = 4;  // ACL_STREAM_PERSISTENT
// As many as an Atlas A2 has.
constexpr uint32_t kMostStreams = 1984;

struct Config {  // aclrtStreamConfigHandle
    void* work;
    size_t work_size;
    size_t flags;
    uint32_t priority;
};
auto& configs = *new Handles<Config>("aclrtCreateStreamConfigHandle");

aclError refuse(const char* function, const std::string& why) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, std::string(function) + ": " + why);
}

// aclrtStreamAttr, with the size of each in aclrtStreamAttrValue.
enum : int { kFailureMode = 1, kOverflowSwitch = 2, kTag = 3, kCacheOpInfo = 4, kPriority = 5 };
bool is_attribute(int attribute) { return attribute >= kFailureMode && attribute <= kPriority; }
size_t size_of(int attribute) { return attribute == kFailureMode ? sizeof(uint64_t) : sizeof(uint32_t); }

aclError set_attribute(const char* function, aclrtStream handle, int attribute, uint64_t value) {
    if (aclError error = check_stream(function, handle)) return error;
    Stream& stream = stream_of(handle);
    const std::lock_guard<std::mutex> lock(stream.state);
    if (attribute == kPriority) {
        stream.priority = static_cast<uint32_t>(value);
    } else {
        stream.attributes[attribute] = value;
    }
    return ACL_SUCCESS;
}

aclError get_attribute(const char* function, aclrtStream handle, int attribute, uint64_t* value) {
    if (aclError error = check_stream(function, handle)) return error;
    Stream& stream = stream_of(handle);
    const std::lock_guard<std::mutex> lock(stream.state);
    const auto found = stream.attributes.find(attribute);
    *value = attribute == kPriority ? stream.priority : found == stream.attributes.end() ? 0 : found->second;
    return ACL_SUCCESS;
}

aclError bad_attribute(const char* function, int attribute) {
    return refuse(function, "attribute " + std::to_string(attribute) + " is not known; expected 1 to 5");
}

// How many cores the kernels of a device, or of a stream, may use. There are none here that it could take
// away: the numbers are kept and given back, for programs set what they read.
using Limits = std::array<uint32_t, 2>;  // 0 is the device's own number
std::mutex limits_mutex;
std::map<int32_t, Limits> device_limits;
std::map<aclrtStream, Limits> stream_limits;
thread_local Limits thread_limits{};

// What the chip has: ACL_RT_DEV_RES_CUBE_CORE, ACL_RT_DEV_RES_VECTOR_CORE.
uint32_t cores(int type) {
    const auto* const own = ascendc_host::processor_of_process();
    const auto& processor = own == nullptr ? ascendc_host::processors[0] : *own;
    return static_cast<uint32_t>(type == 0 ? processor.cube_cores : processor.vector_cores);
}

aclError check_type(const char* function, int type) {
    if (type == 0 || type == 1) return ACL_SUCCESS;
    return fail(ACL_ERROR_INVALID_PARAM,
                std::string(function) + ": type is " + std::to_string(type) + "; it must be 0 or 1");
}

aclError check_limit(const char* function, int type, uint32_t value) {
    if (aclError error = check_type(function, type)) return error;
    if (value != 0 && value <= cores(type)) return ACL_SUCCESS;
    return fail(ACL_ERROR_INVALID_PARAM, std::string(function) + ": value is " + std::to_string(value) +
                                             "; it must be 1 to " + std::to_string(cores(type)));
}

uint32_t device_limit(int32_t id, int type) {
    std::lock_guard<std::mutex> lock(limits_mutex);
    const auto found = device_limits.find(id);
    return found == device_limits.end() || found->second[type] == 0 ? cores(type) : found->second[type];
}

aclError read_limit(const char* function, const Limits& limits, int type, uint32_t* value) {
    if (value == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "value");
    if (aclError error = check_type(function, type)) return error;
    *value = limits[type] == 0 ? device_limit(current_device(), type) : limits[type];
    return ACL_SUCCESS;
}

Limits limits_of(aclrtStream stream) {
    std::lock_guard<std::mutex> lock(limits_mutex);
    const auto found = stream_limits.find(stream);
    return found == stream_limits.end() ? Limits{} : found->second;
}

}  // namespace

ACL_EXPORT aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flags) {
    return create_stream("aclrtCreateStreamWithConfig", stream, priority, flags);
}

ACL_EXPORT Config* aclrtCreateStreamConfigHandle() {
    return static_cast<Config*>(configs.add(std::make_shared<Config>()));
}
ACL_EXPORT aclError aclrtDestroyStreamConfigHandle(Config* config) {
    return configs.take(config) != nullptr ? ACL_SUCCESS
                                           : configs.not_live("aclrtDestroyStreamConfigHandle", "handle");
}
ACL_EXPORT aclError aclrtSetStreamConfigOpt(Config* handle, int attribute, const void* value, size_t size) {
    constexpr const char* function = "aclrtSetStreamConfigOpt";
    const auto config = configs.find(handle);
    if (config == nullptr) return configs.not_live(function, "handle");
    if (value == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "attrValue");
    struct Field {
        void* at;
        size_t size;
    };
    const Field fields[] = {{&config->work, sizeof(void*)},
                            {&config->work_size, sizeof(size_t)},
                            {&config->flags, sizeof(size_t)},
                            {&config->priority, sizeof(uint32_t)}};
    if (attribute < 0 || attribute > 3)
        return refuse(function, "attr is " + std::to_string(attribute) + "; it must be one of 0 to 3");
    const Field& field = fields[attribute];
    // Flags are a number of either width.
    if (size != field.size && !(attribute == 2 && size == sizeof(uint32_t)))
        return refuse(function, "valueSize is " + std::to_string(size) + " for attr " +
                                    std::to_string(attribute) + "; it must be " + std::to_string(field.size));
    if (attribute == 2) config->flags = 0;
    std::memcpy(field.at, value, size);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtCreateStreamV2(aclrtStream* stream, const Config* handle) {
    const auto config = configs.find(handle);
    if (config == nullptr) return configs.not_live("aclrtCreateStreamV2", "handle");
    return create_stream("aclrtCreateStreamV2", stream, config->priority,
                         static_cast<uint32_t>(config->flags));
}

ACL_EXPORT aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority) {
    if (priority == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtStreamGetPriority", "priority");
    if (aclError error = check_stream("aclrtStreamGetPriority", stream)) return error;
    *priority = stream_of(stream).priority;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags) {
    if (flags == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtStreamGetFlags", "flags");
    if (aclError error = check_stream("aclrtStreamGetFlags", stream)) return error;
    *flags = stream_of(stream).flags;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtGetStreamAvailableNum(uint32_t* count) {
    if (count == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetStreamAvailableNum", "streamCount");
    if (aclError error = check_current("aclrtGetStreamAvailableNum")) return error;
    const auto live = static_cast<uint32_t>(live_stream_count());
    *count = live < kMostStreams ? kMostStreams - live : 0;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtSetStreamAttribute(aclrtStream stream, int attribute, const void* value) {
    constexpr const char* function = "aclrtSetStreamAttribute";
    if (value == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "value");
    if (!is_attribute(attribute)) return bad_attribute(function, attribute);
    uint64_t given = 0;
    std::memcpy(&given, value, size_of(attribute));
    return set_attribute(function, stream, attribute, given);
}
ACL_EXPORT aclError aclrtGetStreamAttribute(aclrtStream stream, int attribute, void* value) {
    constexpr const char* function = "aclrtGetStreamAttribute";
    if (value == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "value");
    if (!is_attribute(attribute)) return bad_attribute(function, attribute);
    uint64_t kept = 0;
    if (aclError error = get_attribute(function, stream, attribute, &kept)) return error;
    std::memcpy(value, &kept, size_of(attribute));
    return ACL_SUCCESS;
}
// Work behind a failure is done here, whatever is asked for: a failed kernel has not changed what it is told
// to.
ACL_EXPORT aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
    if (mode > 1)
        return refuse("aclrtSetStreamFailureMode",
                      "mode is " + std::to_string(mode) + "; it must be 0 (goes on) or 1 (stops)");
    return set_attribute("aclrtSetStreamFailureMode", stream, kFailureMode, mode);
}
ACL_EXPORT aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
    return set_attribute("aclrtSetStreamOverflowSwitch", stream, kOverflowSwitch, flag);
}
ACL_EXPORT aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) {
    if (flag == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetStreamOverflowSwitch", "flag");
    uint64_t kept = 0;
    if (aclError error = get_attribute("aclrtGetStreamOverflowSwitch", stream, kOverflowSwitch, &kept))
        return error;
    *flag = static_cast<uint32_t>(kept);
    return ACL_SUCCESS;
}

// What runs has ended when the call returns: what waits is left to be stopped.
ACL_EXPORT aclError aclrtStreamAbort(aclrtStream stream) {
    if (aclError error = check_stream("aclrtStreamAbort", stream)) return error;
    stream_of(stream).abort();
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtStreamStop(aclrtStream stream) {
    if (stream == nullptr)
        return refuse("aclrtStreamStop", "stream is null; expected one that aclrtCreateStream made");
    return check_stream("aclrtStreamStop", stream);
}
ACL_EXPORT aclError aclrtPersistentTaskClean(aclrtStream stream) {
    constexpr const char* function = "aclrtPersistentTaskClean";
    if (aclError error = check_stream(function, stream)) return error;
    if ((stream_of(stream).flags & kPersistent) == 0)
        return refuse(function,
                      "the stream is not persistent; create it by aclrtCreateStreamWithConfig with "
                      "ACL_STREAM_PERSISTENT");
    return clean_built_tasks(stream_of(stream));
}

ACL_EXPORT aclError aclrtGetDeviceResLimit(int32_t id, int type, uint32_t* value) {
    if (aclError error = check_device("aclrtGetDeviceResLimit", id)) return error;
    if (value == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetDeviceResLimit", "value");
    if (aclError error = check_type("aclrtGetDeviceResLimit", type)) return error;
    *value = device_limit(id, type);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtSetDeviceResLimit(int32_t id, int type, uint32_t value) {
    if (aclError error = check_device("aclrtSetDeviceResLimit", id)) return error;
    if (aclError error = check_limit("aclrtSetDeviceResLimit", type, value)) return error;
    std::lock_guard<std::mutex> lock(limits_mutex);
    device_limits[id][type] = value;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtResetDeviceResLimit(int32_t id) {
    if (aclError error = check_device("aclrtResetDeviceResLimit", id)) return error;
    std::lock_guard<std::mutex> lock(limits_mutex);
    device_limits.erase(id);
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtGetStreamResLimit(aclrtStream stream, int type, uint32_t* value) {
    return read_limit("aclrtGetStreamResLimit", limits_of(stream), type, value);
}
ACL_EXPORT aclError aclrtSetStreamResLimit(aclrtStream stream, int type, uint32_t value) {
    if (aclError error = check_limit("aclrtSetStreamResLimit", type, value)) return error;
    std::lock_guard<std::mutex> lock(limits_mutex);
    stream_limits[stream][type] = value;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtResetStreamResLimit(aclrtStream stream) {
    std::lock_guard<std::mutex> lock(limits_mutex);
    stream_limits.erase(stream);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) {
    thread_limits = limits_of(stream);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtUnuseStreamResInCurrentThread(aclrtStream) {
    thread_limits = Limits{};
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtGetResInCurrentThread(int type, uint32_t* value) {
    return read_limit("aclrtGetResInCurrentThread", thread_limits, type, value);
}
