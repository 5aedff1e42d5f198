// The runtime's own functions under ACL, which libraries call that were linked with a kernel launcher of
// CANN's (ascendc_library), and programs that know no other: each is one of ACL. Binaries of a device are
// refused (unimplemented.cpp).
#include <string>

#include "acl/runtime.h"

using namespace ascend_graph::host;

extern "C" {
aclError aclrtSetDevice(int32_t id);
aclError aclrtGetDevice(int32_t* id);
aclError aclrtSynchronizeDevice();
aclError aclrtGetDeviceInfo(uint32_t id, int attribute, int64_t* value);
aclError aclrtFree(void* memory);
aclError aclrtMemcpy(void* to, size_t room, const void* from, size_t size, int kind);
aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream);
aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flags);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtSynchronizeStream(aclrtStream stream);
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t milliseconds);
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);
aclError aclrtCreateEvent(aclrtEvent* event);
aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag);
aclError aclrtDestroyEvent(aclrtEvent event);
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtSynchronizeEvent(aclrtEvent event);
}

ACL_EXPORT aclError rtSetDevice(int32_t id) { return aclrtSetDevice(id); }
ACL_EXPORT aclError rtGetDevice(int32_t* id) { return aclrtGetDevice(id); }
ACL_EXPORT aclError rtDeviceSynchronize() { return aclrtSynchronizeDevice(); }
ACL_EXPORT aclError rtFree(void* memory) { return aclrtFree(memory); }
// The kinds have ACL's numbers.
ACL_EXPORT aclError rtMemcpy(void* to, uint64_t room, const void* from, uint64_t size, int kind) {
    return aclrtMemcpy(to, room, from, size, kind);
}

ACL_EXPORT aclError rtCtxGetCurrentDefaultStream(aclrtStream* stream) {
    return aclrtCtxGetCurrentDefaultStream(stream);
}
ACL_EXPORT aclError rtStreamCreate(aclrtStream* stream, int32_t priority) {
    return aclrtCreateStreamWithConfig(stream, static_cast<uint32_t>(priority), 0);
}
ACL_EXPORT aclError rtStreamCreateWithFlags(aclrtStream* stream, int32_t priority, uint32_t flags) {
    return aclrtCreateStreamWithConfig(stream, static_cast<uint32_t>(priority), flags);
}
ACL_EXPORT aclError rtStreamDestroy(aclrtStream stream) { return aclrtDestroyStream(stream); }
ACL_EXPORT aclError rtStreamSynchronize(aclrtStream stream) { return aclrtSynchronizeStream(stream); }
ACL_EXPORT aclError rtStreamSynchronizeWithTimeout(aclrtStream stream, int32_t milliseconds) {
    return aclrtSynchronizeStreamWithTimeout(stream, milliseconds);
}
ACL_EXPORT aclError rtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
    return aclrtStreamWaitEvent(stream, event);
}

ACL_EXPORT aclError rtEventCreate(aclrtEvent* event) { return aclrtCreateEvent(event); }
// Bits 1 and 4 are two ways for streams to wait, of which ACL has the first; 2 and 8 have ACL's meanings.
ACL_EXPORT aclError rtEventCreateWithFlag(aclrtEvent* event, uint32_t flag) {
    constexpr uint32_t kWaits = 1, kWaitsToo = 4;
    return aclrtCreateEventWithFlag(event, (flag & kWaitsToo) == 0 ? flag : (flag & ~kWaitsToo) | kWaits);
}
ACL_EXPORT aclError rtEventDestroy(aclrtEvent event) { return aclrtDestroyEvent(event); }
ACL_EXPORT aclError rtEventRecord(aclrtEvent event, aclrtStream stream) {
    return aclrtRecordEvent(event, stream);
}
ACL_EXPORT aclError rtEventReset(aclrtEvent event, aclrtStream stream) {
    return aclrtResetEvent(event, stream);
}
ACL_EXPORT aclError rtEventSynchronize(aclrtEvent event) { return aclrtSynchronizeEvent(event); }

// The number of cores of a kind, which is all that launchers ask.
ACL_EXPORT aclError rtGetDeviceInfo(uint32_t id, int32_t module, int32_t what, int64_t* value) {
    constexpr int32_t kCubeCores = 4, kVectorCores = 7, kCount = 3;  // of the driver's enumerations
    constexpr int kCubeCoreCount = 101, kVectorCoreCount = 201;      // ACL_DEV_ATTR_…_CORE_NUM
    if (what == kCount && (module == kCubeCores || module == kVectorCores)) {
        const int attribute = module == kCubeCores ? kCubeCoreCount : kVectorCoreCount;
        return aclrtGetDeviceInfo(id, attribute, value);
    }
    return fail(ACL_ERROR_API_NOT_SUPPORT,
                "rtGetDeviceInfo: information " + std::to_string(what) + " of module " +
                    std::to_string(module) +
                    " has no value on the host runtime; expected 3 (the number of cores) of 4 or 7 (cube and "
                    "vector cores)");
}
