// Devices, errors, versions and the log.
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "acl/devices.h"
#include "acl/runtime.h"
#include "ascendc_host/internal/processors.h"

namespace ascend_graph::host {
namespace {

constexpr const char* kVersion = "8.5.0";  // the CANN release that torch_npu 2.13 is made for

thread_local std::string recent_error;
thread_local std::string reported_error;

// The name in ASCEND_GRAPH_HOST_SOC, that of the default if it is not set, and null if the table has no such
// processor.
const char* soc_name() {
    static const ascendc_host::Processor* const found = ascendc_host::processor_of_process();
    return found == nullptr ? nullptr : found->name;
}

// The processor that the process stands for; the default before aclInit refuses another name.
const ascendc_host::Processor& processor() {
    const char* name = soc_name();
    return name == nullptr ? ascendc_host::processors[0] : *ascendc_host::find_processor(name);
}

}  // namespace

aclError fail(aclError code, const std::string& message) {
    // CANN's own variable: every error is printed, also one that nobody asks for afterwards.
    static const bool print = environment_number("ASCEND_SLOG_PRINT_TO_STDOUT", 0) == 1;
    if (print) std::printf("[ERROR] ACL error %d: %s\n", code, message.c_str());
    recent_error = message;
    return code;
}

aclError check_device(const char* function, int32_t id) {
    if (id >= 0 && id < device_count()) return ACL_SUCCESS;
    const VisibleDevices visible = visible_devices();
    if (visible.ids.empty())
        return fail(ACL_ERROR_RT_NO_DEVICE, std::string(function) + ": " + visible.complaint);
    const auto hidden = machine_devices() - static_cast<int32_t>(visible.ids.size());
    return fail(
        ACL_ERROR_INVALID_DEVICE,
        std::string(function) + ": device " + std::to_string(id) + " is not there; expected 0 to " +
            std::to_string(visible.ids.size() - 1) +
            (hidden == 0 ? "" : "; ASCEND_RT_VISIBLE_DEVICES hides " + std::to_string(hidden) + " more"));
}

uint64_t environment_number(const char* name, uint64_t fallback) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') return fallback;
    char* end = nullptr;
    const unsigned long long value = std::strtoull(text, &end, 10);
    return *end == '\0' ? value : fallback;
}

}  // namespace ascend_graph::host

using namespace ascend_graph::host;

ACL_EXPORT int ascendgraphFail(int code, const char* message) { return fail(code, message); }
ACL_EXPORT const char* ascendgraphKeptError() { return recent_error.c_str(); }
ACL_EXPORT const char* ascendgraphRecentError() {
    has_been_read(recent_error);
    return recent_error.c_str();
}

ACL_EXPORT const char* aclGetRecentErrMsg() {
    if (recent_error.empty()) return nullptr;
    reported_error.swap(recent_error);
    recent_error.clear();
    has_been_read(reported_error);
    return reported_error.c_str();
}

ACL_EXPORT aclError aclrtGetDeviceCount(uint32_t* count) {
    if (count == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetDeviceCount", "count");
    const VisibleDevices visible = visible_devices();
    *count = static_cast<uint32_t>(visible.ids.size());
    if (*count != 0) return ACL_SUCCESS;
    return fail(ACL_ERROR_RT_NO_DEVICE, "aclrtGetDeviceCount: " + visible.complaint);
}

// A program counts the devices that it sees (its "user" numbers); CANN's logical and physical numbers are
// those of the machine, which are the same here.
ACL_EXPORT aclError aclrtGetLogicDevIdByUserDevId(int32_t id, int32_t* logical) {
    if (logical == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetLogicDevIdByUserDevId", "the result pointer");
    if (aclError error = check_device("aclrtGetLogicDevIdByUserDevId", id)) return error;
    *logical = visible_devices().ids[static_cast<size_t>(id)];
    return ACL_SUCCESS;
}

static aclError same_device(const char* function, int32_t id, int32_t* result) {
    if (result == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "the result pointer");
    if (id < 0 || id >= machine_devices()) {
        return fail(ACL_ERROR_INVALID_DEVICE, std::string(function) + ": device " + std::to_string(id) +
                                                  " is not there; expected 0 to " +
                                                  std::to_string(machine_devices() - 1));
    }
    *result = id;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtGetLogicDevIdByPhyDevId(int32_t id, int32_t* logical) {
    return same_device("aclrtGetLogicDevIdByPhyDevId", id, logical);
}
ACL_EXPORT aclError aclrtGetPhyDevIdByLogicDevId(int32_t id, int32_t* physical) {
    return same_device("aclrtGetPhyDevIdByLogicDevId", id, physical);
}

ACL_EXPORT aclError aclrtGetPrimaryCtxState(int32_t id, uint32_t* flags, int32_t* active) {
    if (aclError error = check_device("aclrtGetPrimaryCtxState", id)) return error;
    if (flags != nullptr) *flags = 0;
    if (active != nullptr) *active = 1;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtDeviceCanAccessPeer(int32_t* can, int32_t id, int32_t peer) {
    if (can == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtDeviceCanAccessPeer", "canAccessPeer");
    if (aclError error = check_device("aclrtDeviceCanAccessPeer", id)) return error;
    if (aclError error = check_device("aclrtDeviceCanAccessPeer", peer)) return error;
    *can = id != peer;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtDeviceGetBareTgid(int32_t* pid) {
    if (pid == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtDeviceGetBareTgid", "pid");
    *pid = getpid();
    return ACL_SUCCESS;
}

// A host program next to its device: 1, ACL_HOST.
ACL_EXPORT aclError aclrtGetRunMode(int* mode) {
    if (mode == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetRunMode", "runMode");
    *mode = 1;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtGetVersion(int32_t* major, int32_t* minor, int32_t* patch) {
    if (major == nullptr || minor == nullptr || patch == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetVersion", "a result pointer");
    *major = 1;  // of ACL's interface, not of CANN
    *minor = *patch = 0;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtDeviceGetStreamPriorityRange(int32_t* least, int32_t* greatest) {
    if (least == nullptr || greatest == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtDeviceGetStreamPriorityRange", "a result pointer");
    *least = 7;
    *greatest = 0;
    return ACL_SUCCESS;
}

ACL_EXPORT const char* aclrtGetSocName() { return soc_name(); }

// Where a device keeps the flags of cores that wait for one another. Kernels hand it to SetSyncBaseAddr and
// do not look there.
ACL_EXPORT aclError aclrtGetHardwareSyncAddr(void** address) {
    static uint64_t flags;
    if (address == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetHardwareSyncAddr", "addr");
    *address = &flags;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclGetDeviceCapability(uint32_t, int info, int64_t* value) {
    if (value == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclGetDeviceCapability", "value");
    switch (info) {
        case 0:
            *value = processor().cube_cores;
            return ACL_SUCCESS;  // ACL_DEVICE_INFO_AI_CORE_NUM
        case 1:
            *value = processor().vector_cores;
            return ACL_SUCCESS;  // ACL_DEVICE_INFO_VECTOR_CORE_NUM
        case 2:
            *value = static_cast<int64_t>(processor().l2);
            return ACL_SUCCESS;  // ACL_DEVICE_INFO_L2_SIZE
        default:
            return fail(ACL_ERROR_INVALID_PARAM,
                        "aclGetDeviceCapability: attribute " + std::to_string(info) +
                            " is not known; expected 0 (AI cores), 1 (vector cores) or 2 (L2 size)");
    }
}

ACL_EXPORT aclError aclrtGetDeviceInfo(uint32_t id, int attribute, int64_t* value) {
    if (aclError error = check_device("aclrtGetDeviceInfo", static_cast<int32_t>(id))) return error;
    if (value == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetDeviceInfo", "value");
    switch (attribute) {
        case 101:
        case 102:
            *value = processor().cube_cores;
            return ACL_SUCCESS;
        case 201:
            *value = processor().vector_cores;
            return ACL_SUCCESS;
        case 204:
            *value = ascendc_host::local_memory_of(processor().kernels).ub;
            return ACL_SUCCESS;
        case 302:
            *value = static_cast<int64_t>(processor().l2);
            return ACL_SUCCESS;
        default:
            return fail(ACL_ERROR_API_NOT_SUPPORT,
                        "aclrtGetDeviceInfo: attribute " + std::to_string(attribute) +
                            " has no value on the host runtime; expected 101, 102, 201, 204 or 302");
    }
}

// A name-based identifier: the runtime's name and the device's number.
ACL_EXPORT aclError aclrtDeviceGetUuid(int32_t id, char* uuid) {
    if (aclError error = check_device("aclrtDeviceGetUuid", id)) return error;
    if (uuid == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtDeviceGetUuid", "uuid");
    std::memcpy(uuid, "ascend-graph-host", 15);
    uuid[15] = static_cast<char>(id);
    return ACL_SUCCESS;
}

// Options such as ACL_OPT_DETERMINISTIC: kept and given back; every kernel of a host is deterministic.
// torch_npu sets them with every launch.
namespace {
std::array<std::atomic<int64_t>, 64> system_options{};

bool is_option(int option) { return option >= 0 && static_cast<size_t>(option) < system_options.size(); }

aclError no_option(const char* function, int option) {
    return fail(ACL_ERROR_INVALID_PARAM, std::string(function) + ": option " + std::to_string(option) +
                                             " is out of range; expected 0 to " +
                                             std::to_string(system_options.size() - 1));
}
}  // namespace

ACL_EXPORT aclError aclrtSetSysParamOpt(int option, int64_t value) {
    if (!is_option(option)) return no_option("aclrtSetSysParamOpt", option);
    system_options[option].store(value, std::memory_order_relaxed);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtGetSysParamOpt(int option, int64_t* value) {
    if (value == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetSysParamOpt", "value");
    if (!is_option(option)) return no_option("aclrtGetSysParamOpt", option);
    *value = system_options[option].load(std::memory_order_relaxed);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtCtxSetSysParamOpt(int option, int64_t value) {
    return aclrtSetSysParamOpt(option, value);
}
ACL_EXPORT aclError aclrtCtxGetSysParamOpt(int option, int64_t* value) {
    return aclrtGetSysParamOpt(option, value);
}

// What overflows is infinite (1), as chips have it by themselves since Atlas A2. The other mode (0) changes
// values: torch_npu asks for it and looks at no error, so the user is told.
ACL_EXPORT aclError aclrtSetDeviceSatMode(int mode) {
    if (mode == 1) return ACL_SUCCESS;
    constexpr const char* kNone =
        "the host runtime computes INF and NaN: the saturating arithmetic that INF_NAN_MODE_FORCE_DISABLE=1 "
        "or INF_NAN_MODE_ENABLE=0 asks for is not there, and a float status stays 0; unset the variable";
    static const bool said = std::fprintf(stderr, "ascend_graph: %s\n", kNone) > 0;
    (void)said;
    return fail(ACL_ERROR_API_NOT_SUPPORT, std::string("aclrtSetDeviceSatMode: ") + kNone);
}

// Settings of the hardware's watchdogs, which a host has not.
ACL_EXPORT aclError aclrtSetOpWaitTimeout(uint32_t) { return ACL_SUCCESS; }
// No error outlives the call that returned it.
ACL_EXPORT aclError aclrtGetLastError(int) { return ACL_SUCCESS; }
ACL_EXPORT aclError aclrtPeekAtLastError(int) { return ACL_SUCCESS; }

namespace {
struct PackageVersion {  // aclCANNPackageVersion
    char version[128];
    char major[64];
    char minor[64];
    char release[64];
    char patch[64];
    char reserved[128];
};
}  // namespace

ACL_EXPORT aclError aclsysGetCANNVersion(int, PackageVersion* version) {
    if (version == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclsysGetCANNVersion", "version");
    *version = {};
    std::strcpy(version->version, kVersion);
    std::sscanf(kVersion, "%63[^.].%63[^.].%63s", version->major, version->minor, version->release);
    return ACL_SUCCESS;
}

// The names of packages differ between releases; each has the release's version here.
ACL_EXPORT aclError aclsysGetVersionStr(char* package, char* version) {
    if (package == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclsysGetVersionStr", "pkgName");
    if (version == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclsysGetVersionStr", "versionStr");
    std::strcpy(version, kVersion);
    return ACL_SUCCESS;
}

// A release as one number: 8.5.0 is 80500000.
ACL_EXPORT aclError aclsysGetVersionNum(char* package, int32_t* number) {
    if (package == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclsysGetVersionNum", "pkgName");
    if (number == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclsysGetVersionNum", "versionNum");
    int major = 0, minor = 0, patch = 0;
    std::sscanf(kVersion, "%d.%d.%d", &major, &minor, &patch);
    *number = major * 10000000 + minor * 100000 + patch * 1000;
    return ACL_SUCCESS;
}

// CANN's log: to stderr from the level of ASCEND_GLOBAL_LOG_LEVEL on (0 debug … 3 error, 4 off), as CANN
// reads it, where ASCEND_SLOG_PRINT_TO_STDOUT=1 asks for it.
ACL_EXPORT void aclAppLog(int level, const char* function, const char* file, uint32_t line,
                          const char* format, ...) {
    static const bool print = environment_number("ASCEND_SLOG_PRINT_TO_STDOUT", 0) == 1;
    static const auto threshold = static_cast<int>(environment_number("ASCEND_GLOBAL_LOG_LEVEL", 3));
    if (!print || level < threshold) return;
    static const char* const names[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
    std::fprintf(stderr, "[%s] %s:%u %s: ", names[std::min(std::max(level, 0), 3)], file, line, function);
    va_list arguments;
    va_start(arguments, format);
    std::vfprintf(stderr, format, arguments);
    va_end(arguments);
    std::fputc('\n', stderr);
}

// Huawei's bounds-checked C functions, which CANN's libraries bring along.
ACL_EXPORT int vsnprintf_s(char* buffer, size_t size, size_t count, const char* format, va_list arguments) {
    const int written = std::vsnprintf(buffer, std::min(size, count + 1), format, arguments);
    return written < 0 || static_cast<size_t>(written) > count ? -1 : written;
}
ACL_EXPORT int snprintf_s(char* buffer, size_t size, size_t count, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf_s(buffer, size, count, format, arguments);
    va_end(arguments);
    return written;
}
ACL_EXPORT int strcpy_s(char* destination, size_t size, const char* source) {
    if (destination == nullptr || source == nullptr || std::strlen(source) >= size) return -1;
    std::strcpy(destination, source);
    return 0;
}
