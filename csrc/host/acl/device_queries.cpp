// What programs ask of a device: its state, what it can do, and how it is connected.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "acl/devices.h"
#include "acl/runtime.h"
#include "ascendc_host/internal/processors.h"

using namespace ascend_graph::host;

namespace {

aclError null(const char* function, const char* parameter) {
    return fail_null(ACL_ERROR_INVALID_PARAM, function, parameter);
}

// Pairs of devices between which the access was enabled.
std::mutex peers_mutex;
std::set<std::pair<int32_t, int32_t>> peers;

std::atomic<uint64_t> execution_timeout{0};  // in milliseconds; 0 where nobody set it

// Whether the chip's types differ by the core's generation is what the table says: kernels of one run on the
// other.
bool compatible(const char* soc) {
    const auto* const asked = ascendc_host::find_processor(soc);
    const auto* const own = ascendc_host::processor_of_process();
    return asked != nullptr && own != nullptr && asked->kernels == own->kernels;
}

// aclCannAttr: what each of its members says of an Atlas A2.
constexpr int kAttributes[] = {0, 1, 2};  // INF and NaN, bfloat16, operators in binary form

}  // namespace

ACL_EXPORT aclError aclrtQueryDeviceStatus(int32_t id, int* status) {
    if (status == nullptr) return null("aclrtQueryDeviceStatus", "deviceStatus");
    if (aclError error = check_device("aclrtQueryDeviceStatus", id)) return error;
    *status = 0;  // ACL_RT_DEVICE_STATUS_NORMAL
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtGetDeviceSatMode(int* mode) {
    if (mode == nullptr) return null("aclrtGetDeviceSatMode", "mode");
    *mode = 1;  // ACL_RT_OVERFLOW_MODE_INFNAN
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t) {
    if (aclError error = check_device("aclrtDeviceEnablePeerAccess", peer)) return error;
    const std::lock_guard<std::mutex> lock(peers_mutex);
    peers.emplace(current_device(), peer);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtDeviceDisablePeerAccess(int32_t peer) {
    if (aclError error = check_device("aclrtDeviceDisablePeerAccess", peer)) return error;
    const std::lock_guard<std::mutex> lock(peers_mutex);
    if (peers.erase({current_device(), peer}) != 0) return ACL_SUCCESS;
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtDeviceDisablePeerAccess: the access to device " +
                                                std::to_string(peer) +
                                                " is not enabled; call aclrtDeviceEnablePeerAccess first");
}
ACL_EXPORT aclError aclrtDevicePeerAccessStatus(int32_t id, int32_t peer, int32_t* status) {
    if (status == nullptr) return null("aclrtDevicePeerAccessStatus", "status");
    if (aclError error = check_device("aclrtDevicePeerAccessStatus", id)) return error;
    if (aclError error = check_device("aclrtDevicePeerAccessStatus", peer)) return error;
    const std::lock_guard<std::mutex> lock(peers_mutex);
    *status = peers.count({id, peer}) != 0 ? 1 : 0;
    return ACL_SUCCESS;
}

// The devices of one machine, all connected by HCCS.
ACL_EXPORT aclError aclrtGetDevicesTopo(uint32_t id, uint32_t other, uint64_t* value) {
    if (value == nullptr) return null("aclrtGetDevicesTopo", "value");
    for (const uint32_t one : {id, other}) {
        if (aclError error = check_device("aclrtGetDevicesTopo", static_cast<int32_t>(one))) return error;
    }
    *value = 1;  // ACL_RT_DEVS_TOPOLOGY_HCCS
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtGetUserDevIdByLogicDevId(int32_t logical, int32_t* id) {
    if (id == nullptr) return null("aclrtGetUserDevIdByLogicDevId", "userDevid");
    const auto visible = visible_devices().ids;
    const auto found = std::find(visible.begin(), visible.end(), logical);
    if (found == visible.end()) {
        return fail(ACL_ERROR_INVALID_DEVICE,
                    "aclrtGetUserDevIdByLogicDevId: the process does not see device " +
                        std::to_string(logical) + "; expected one that ASCEND_RT_VISIBLE_DEVICES lists");
    }
    *id = static_cast<int32_t>(found - visible.begin());
    return ACL_SUCCESS;
}

// Neither updates of tasks by the device's own processor nor queues between devices are there.
ACL_EXPORT aclError aclrtGetDeviceCapability(int32_t id, int feature, int32_t* value) {
    if (value == nullptr) return null("aclrtGetDeviceCapability", "value");
    if (aclError error = check_device("aclrtGetDeviceCapability", id)) return error;
    if (feature != 1 && feature != 21) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtGetDeviceCapability: devFeatureType " +
                                                    std::to_string(feature) +
                                                    " is not known; expected 1 or 21");
    }
    *value = 0;  // ACL_DEV_FEATURE_NOT_SUPPORT
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtCheckArchCompatibility(const char* soc, int32_t* is_compatible) {
    if (soc == nullptr || is_compatible == nullptr)
        return null("aclrtCheckArchCompatibility", "socVersion or canCompatible");
    *is_compatible = compatible(soc) ? 1 : 0;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclGetCannAttributeList(const int** attributes, size_t* count) {
    if (attributes == nullptr || count == nullptr)
        return null("aclGetCannAttributeList", "cannAttrList or num");
    *attributes = kAttributes;
    *count = std::size(kAttributes);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclGetCannAttribute(int attribute, int32_t* value) {
    if (value == nullptr) return null("aclGetCannAttribute", "value");
    if (attribute < 0 || attribute >= static_cast<int>(std::size(kAttributes))) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclGetCannAttribute: cannAttr is " + std::to_string(attribute) +
                                                 "; it must be 0, 1 or 2");
    }
    *value = 1;
    return ACL_SUCCESS;
}

// Faults of the hardware are not there; a kernel's is an error of the program's, without a detail to repair.
ACL_EXPORT aclError aclrtGetErrorVerbose(int32_t id, void* info) {
    struct ErrorInfo {  // aclrtErrorInfo, before what is only there with a detail
        uint8_t can_repair;
        uint8_t has_detail;
        uint8_t reserved[2];
        int type;
    };
    if (info == nullptr) return null("aclrtGetErrorVerbose", "errorInfo");
    if (aclError error = check_device("aclrtGetErrorVerbose", id)) return error;
    const ErrorInfo none{};  // ACL_RT_NO_ERROR
    std::memcpy(info, &none, sizeof(none));
    return ACL_SUCCESS;
}

// The limit of a kernel is ASCEND_GRAPH_KERNEL_TIMEOUT's: what is set here is given back.
ACL_EXPORT aclError aclrtSetOpExecuteTimeOut(uint32_t seconds) {
    execution_timeout = uint64_t{seconds} * 1000;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t milliseconds) {
    execution_timeout = milliseconds;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actual) {
    execution_timeout = timeout / 1000;  // from microseconds
    if (actual != nullptr) *actual = timeout;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtGetOpExecuteTimeout(uint32_t* const milliseconds) {
    if (milliseconds == nullptr) return null("aclrtGetOpExecuteTimeout", "timeoutMs");
    const uint64_t set = execution_timeout.load();
    *milliseconds = static_cast<uint32_t>(set == 0 ? UINT32_MAX : std::min<uint64_t>(set, UINT32_MAX));
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtGetOpTimeOutInterval(uint64_t* microseconds) {
    if (microseconds == nullptr) return null("aclrtGetOpTimeOutInterval", "interval");
    *microseconds = 1;
    return ACL_SUCCESS;
}
// There is one scheduler.
ACL_EXPORT aclError aclrtSetTsDevice(int id) {
    if (id == 0 || id == 1) return ACL_SUCCESS;
    return fail(ACL_ERROR_INVALID_PARAM,
                "aclrtSetTsDevice: tsId is " + std::to_string(id) + "; it must be 0 or 1");
}

// What overflowed is infinite, and no flag says so: as on a device in that mode, the status is 0.
ACL_EXPORT aclError aclrtGetOverflowStatus(void* output, size_t size, aclrtStream stream) {
    constexpr size_t kStatus = 64;
    if (output == nullptr) return null("aclrtGetOverflowStatus", "outputAddr");
    if (size != kStatus) {
        return fail(ACL_ERROR_RT_PARAM_INVALID,
                    "aclrtGetOverflowStatus: outputSize is " + std::to_string(size) + "; it must be 64");
    }
    if (aclError error = check_stream("aclrtGetOverflowStatus", stream)) return error;
    return stream_of(stream).enqueue({"overflow status", [output] {
                                          std::memset(output, 0, kStatus);
                                          return ACL_SUCCESS;
                                      }});
}
ACL_EXPORT aclError aclrtResetOverflowStatus(aclrtStream stream) {
    return check_stream("aclrtResetOverflowStatus", stream);
}
ACL_EXPORT aclError aclrtGetFloatOverflowStatus(void* output, uint64_t size, aclrtStream stream) {
    return aclrtGetOverflowStatus(output, size, stream);
}
ACL_EXPORT aclError aclrtResetFloatOverflowStatus(aclrtStream stream) {
    return check_stream("aclrtResetFloatOverflowStatus", stream);
}
ACL_EXPORT aclError aclrtNpuGetFloatOverFlowStatus(void* output, uint64_t size, uint32_t,
                                                   aclrtStream stream) {
    return aclrtGetOverflowStatus(output, size, stream);
}
ACL_EXPORT aclError aclrtNpuClearFloatOverFlowStatus(uint32_t, aclrtStream stream) {
    return check_stream("aclrtNpuClearFloatOverFlowStatus", stream);
}
