// One function for each subject of ACL's runtime; the program says which line fails.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <thread>

#include "acl/acl.h"

#define CHECK(e)                                                                   \
    do {                                                                           \
        if (!(e)) {                                                                \
            const char* m = aclGetRecentErrMsg();                                  \
            std::printf("line %d: %s: %s\n", __LINE__, #e, m == nullptr ? "" : m); \
            return false;                                                          \
        }                                                                          \
    } while (0)

static bool notifies() {
    aclrtStream one = nullptr, other = nullptr;
    CHECK(aclrtCreateStream(&one) == 0 && aclrtCreateStream(&other) == 0);
    aclrtNotify notify = nullptr;
    uint32_t id = 99, *word = nullptr, value = 0;
    CHECK(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT) == 0 && aclrtGetNotifyId(notify, &id) == 0 &&
          id != 99);
    CHECK(aclrtMalloc(reinterpret_cast<void**>(&word), 64, ACL_MEM_MALLOC_HUGE_FIRST) == 0);
    // The second stream's work waits until the first records.
    CHECK(aclrtMemset(word, 4, 0, 4) == 0 && aclrtWaitAndResetNotify(notify, other, 0) == 0);
    CHECK(aclrtMemsetD32Async(word, 4, 7, 1, other) == 0 && *word == 0);
    CHECK(aclrtRecordNotify(notify, one) == 0 && aclrtSynchronizeStream(other) == 0 && *word == 7);
    // It was reset, by the wait and by a batch.
    CHECK(aclrtRecordNotify(notify, one) == 0 && aclrtNotifyBatchReset(&notify, 1) == 0);
    CHECK(aclrtWaitAndResetNotify(notify, other, 0) == 0);
    aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
    CHECK(aclrtStreamQuery(other, &status) == 0 && status == ACL_STREAM_STATUS_NOT_READY);
    CHECK(aclrtStreamAbort(other) == 0 && aclrtSynchronizeStream(other) == 0);
    CHECK(aclrtDestroyNotify(notify) == 0 && aclrtDestroyNotify(notify) == 107000);
    CHECK(aclrtRecordNotify(notify, one) == 107000 && aclrtCreateNotify(nullptr, 0) == 100000);

    aclrtCntNotify counter = nullptr;
    CHECK(aclrtCntNotifyCreate(&counter, 0) == 0);
    aclrtCntNotifyRecordInfo add = {ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, 2};
    aclrtCntNotifyWaitInfo four = {ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE, 4, 0, 1, {}};
    CHECK(aclrtCntNotifyWaitWithTimeout(counter, other, &four) == 0);
    CHECK(aclrtMemsetD32Async(word, 4, 9, 1, other) == 0);
    CHECK(aclrtCntNotifyRecord(counter, one, &add) == 0 && *word == 7);
    CHECK(aclrtCntNotifyRecord(counter, one, &add) == 0 && aclrtSynchronizeStream(other) == 0 && *word == 9);
    add.mode = static_cast<aclrtCntNotifyRecordMode>(3);
    CHECK(aclrtCntNotifyRecord(counter, one, &add) == 107000 && aclrtCntNotifyDestroy(counter) == 0);
    CHECK(aclrtMemcpy(&value, 4, word, 4, ACL_MEMCPY_DEVICE_TO_HOST) == 0 && aclrtFree(word) == 0);
    CHECK(aclrtDestroyStream(one) == 0 && aclrtDestroyStream(other) == 0);
    CHECK(aclrtRecordNotify(notify, one) != 0 && aclrtStreamAbort(one) == 200005);
    return true;
}

static std::atomic<pthread_t> ran_on{};
static void note_thread(void* count) {
    ran_on = pthread_self();
    ++*static_cast<std::atomic<int>*>(count);
}

static bool host_functions() {
    aclrtStream stream = nullptr;
    CHECK(aclrtCreateStream(&stream) == 0);
    std::atomic<int> count{0};
    std::atomic<bool> goes_on{true};
    CHECK(aclrtLaunchHostFunc(stream, note_thread, &count) == 0 && aclrtSynchronizeStream(stream) == 0);
    CHECK(count == 1);
    std::thread processor([&] {
        while (goes_on) aclrtProcessHostFunc(10);
    });
    const auto id = static_cast<uint64_t>(processor.native_handle());
    CHECK(aclrtSubscribeHostFunc(id, stream) == 0 && aclrtSubscribeHostFunc(id, stream) == 107011);
    CHECK(aclrtLaunchHostFunc(stream, note_thread, &count) == 0 && aclrtSynchronizeStream(stream) == 0);
    CHECK(count == 2 && pthread_equal(ran_on.load(), processor.native_handle()) != 0);
    CHECK(aclrtUnSubscribeHostFunc(id + 1, stream) == 107012 && aclrtUnSubscribeHostFunc(id, stream) == 0);
    goes_on = false;
    processor.join();
    CHECK(aclrtProcessHostFunc(0) == 100000 && aclrtDestroyStream(stream) == 0);
    return true;
}

static bool streams_and_events() {
    aclrtStreamConfigHandle* config = aclrtCreateStreamConfigHandle();
    uint32_t priority = 3, number = 0;
    size_t flags = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_PERSISTENT;
    CHECK(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &priority, sizeof(priority)) == 0);
    CHECK(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &flags, sizeof(flags)) == 0);
    CHECK(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &flags, 2) == 107000);
    aclrtStream stream = nullptr;
    CHECK(aclrtCreateStreamV2(&stream, config) == 0 && aclrtDestroyStreamConfigHandle(config) == 0);
    CHECK(aclrtCreateStreamV2(&stream, config) == 107000);
    CHECK(aclrtStreamGetPriority(stream, &number) == 0 && number == 3);
    CHECK(aclrtStreamGetFlags(stream, &number) == 0 && number == 5);
    aclrtStreamAttrValue value = {};
    value.failureMode = 1;
    CHECK(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &value) == 0);
    value.failureMode = 0;
    CHECK(aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &value) == 0 &&
          value.failureMode == 1);
    CHECK(aclrtGetStreamAttribute(stream, static_cast<aclrtStreamAttr>(9), &value) == 107000);
    uint32_t before = 0, after = 0;
    aclrtStream another = nullptr;
    CHECK(aclrtGetStreamAvailableNum(&before) == 0 && aclrtCreateStream(&another) == 0);
    CHECK(aclrtGetStreamAvailableNum(&after) == 0 && after + 1 == before);
    aclrtEvent event = nullptr;
    CHECK(aclrtCreateEvent(&event) == 0 && aclrtGetEventId(event, &number) == 0);
    CHECK(aclrtRecordEvent(event, another) == 0 && aclrtSynchronizeEventWithTimeout(event, 100) == 0);
    CHECK(aclrtStreamWaitEventWithTimeout(stream, event, 1) == 0);
    CHECK(aclrtSynchronizeEventWithTimeout(event, 0) == 107000 && aclrtGetEventAvailNum(&number) == 0);
    CHECK(aclrtStreamStop(nullptr) == 107000 && aclrtStreamStop(another) == 0);
    CHECK(aclrtDestroyEvent(event) == 0 && aclrtDestroyStream(another) == 0 &&
          aclrtDestroyStream(stream) == 0);
    return true;
}

// A stream that waits: a call ends after the time that it is given, and not before.
static bool timeouts() {
    using clock = std::chrono::steady_clock;
    aclrtStream stream = nullptr, other = nullptr;
    aclrtNotify notify = nullptr;
    CHECK(aclrtCreateStream(&stream) == 0 && aclrtCreateStream(&other) == 0);
    CHECK(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT) == 0);
    CHECK(aclrtWaitAndResetNotify(notify, stream, 0) == 0);
    for (const bool of_device : {false, true}) {
        const auto begin = clock::now();
        const aclError error = of_device ? aclrtSynchronizeDeviceWithTimeout(100)
                                         : aclrtSynchronizeStreamWithTimeout(stream, 100);
        const auto lasted = clock::now() - begin;
        CHECK(error == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
        CHECK(lasted > std::chrono::milliseconds(90) && lasted < std::chrono::milliseconds(1500));
    }
    CHECK(aclrtSynchronizeStreamWithTimeout(stream, 0) == 107000);
    CHECK(aclrtSynchronizeDeviceWithTimeout(-2) == 107000);
    std::thread late([&] {
        aclrtSetDevice(0);
        std::this_thread::sleep_for(std::chrono::milliseconds(2500));
        aclrtRecordNotify(notify, other);
    });
    const aclError error = aclrtSynchronizeStreamWithTimeout(stream, 20000);
    late.join();
    CHECK(error == 0);
    CHECK(aclrtDestroyNotify(notify) == 0 && aclrtDestroyStream(stream) == 0 &&
          aclrtDestroyStream(other) == 0);
    return true;
}

static bool memory() {
    aclrtStream stream = nullptr;
    CHECK(aclrtCreateStream(&stream) == 0);
    float *a = nullptr, *b = nullptr;
    CHECK(aclrtMalloc(reinterpret_cast<void**>(&a), 64, ACL_MEM_MALLOC_HUGE_FIRST) == 0);
    CHECK(aclrtMallocHost(reinterpret_cast<void**>(&b), 64) == 0);
    for (int i = 0; i < 16; ++i) a[i] = static_cast<float>(i), b[i] = 2;
    CHECK(aclrtReduceAsync(a, b, 64, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, stream, nullptr) == 0);
    CHECK(aclrtSynchronizeStream(stream) == 0 && a[0] == 2 && a[15] == 17);
    CHECK(aclrtReduceAsync(a, b, 64, ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN, ACL_FLOAT, stream, nullptr) == 0);
    CHECK(aclrtSynchronizeStream(stream) == 0 && a[0] == 2 && a[15] == 2);
    int32_t most[2] = {INT32_MAX, 5}, by[2] = {1, -7};
    CHECK(aclrtReduceAsync(most, by, 8, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, stream, nullptr) == 0);
    CHECK(most[0] == INT32_MIN && most[1] == -2);  // of the host's memory, when the call returns
    uint16_t half[2] = {aclFloatToFloat16(1.5F), aclFloatToFloat16(-3)}, one[2] = {aclFloatToFloat16(1), 0};
    CHECK(aclrtReduceAsync(half, one, 4, ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX, ACL_FLOAT16, stream, nullptr) ==
          0);
    CHECK(aclFloat16ToFloat(half[0]) == 1.5F && half[1] == 0);
    CHECK(aclrtReduceAsync(a, b, 64, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_DOUBLE, stream, nullptr) ==
          107000);
    CHECK(aclrtReduceAsync(a, b, 63, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, stream, nullptr) == 107000);
    void* base = nullptr;
    size_t size = 0;
    CHECK(aclrtMemGetAddressRange(a + 3, &base, &size) == 0 && base == a && size >= 64);
    uint32_t is_device = 0;
    void* both[] = {a, b};
    CHECK(aclrtCheckMemType(both, 1, ACL_RT_MEM_TYPE_DEV, &is_device, 0) == 0 && is_device == 1);
    CHECK(aclrtCheckMemType(both, 2, ACL_RT_MEM_TYPE_DEV, &is_device, 0) == 0 && is_device == 0);
    // Copies by a descriptor, and from where an address in memory says.
    size_t bytes = 0;
    void* descriptor = nullptr;
    CHECK(aclrtGetMemcpyDescSize(ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, &bytes) == 0);
    CHECK(aclrtMalloc(&descriptor, bytes, ACL_MEM_MALLOC_HUGE_FIRST) == 0);
    CHECK(aclrtMemset(descriptor, bytes, 0, bytes) == 0);
    CHECK(aclrtMemcpyAsyncWithDesc(descriptor, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, stream) == 107000);
    CHECK(aclrtSetMemcpyDesc(descriptor, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, b, a + 8, 4, nullptr) == 0);
    b[0] = 40;
    CHECK(aclrtMemcpyAsyncWithDesc(descriptor, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, stream) == 0);
    CHECK(aclrtSynchronizeStream(stream) == 0 && a[8] == 40);
    void* to = a;
    const void* from = b;
    CHECK(aclrtMemcpyAsyncWithOffset(&to, 64, 4, &from, 4, 0, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, stream) ==
          0);
    CHECK(aclrtSynchronizeStream(stream) == 0 && a[1] == 40 && aclrtFreeWithDevSync(descriptor) == 0);
    CHECK(aclrtFreeWithDevSync(a) == 0 && aclrtFreeWithDevSync(a) == 100000 &&
          aclrtFreeHostWithDevSync(b) == 0);
    void* managed = nullptr;
    CHECK(aclrtMemAllocManaged(&managed, 10, 0) == 107000);
    CHECK(aclrtMemAllocManaged(&managed, 10, ACL_RT_MEM_ATTACH_GLOBAL) == 0);
    const aclrtMemManagedLocation here = {ACL_MEM_LOCATIONTYPE_DEVICE, 0};
    CHECK(aclrtMemManagedPrefetchAsync(managed, 2 << 20, here, 0, stream) == 0);
    CHECK(aclrtMemManagedAdvise(managed, 4 << 20, ACL_MEM_ADVISE_SET_ACCESSED_BY, here) == 107000);
    CHECK(aclrtFree(managed) == 0 && aclrtDestroyStream(stream) == 0);
    return true;
}

static bool pools() {
    aclrtStream stream = nullptr, waits = nullptr;
    aclrtNotify notify = nullptr;
    CHECK(aclrtCreateStream(&stream) == 0 && aclrtCreateStream(&waits) == 0 &&
          aclrtCreateNotify(&notify, 0) == 0);
    aclrtMemPoolProps properties = {};
    properties.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
    properties.maxSize = 4096;
    aclrtMemPool pool = nullptr;
    CHECK(aclrtMemPoolCreate(&pool, &properties) == 0);
    void *a = nullptr, *b = nullptr;
    uint64_t value = 0;
    CHECK(aclrtMemPoolMallocAsync(&a, 1024, pool, stream) == 0);
    CHECK(aclrtMemPoolMallocAsync(&b, 4096, pool, stream) == 207001);
    // It is the pool's again when the stream comes to it.
    CHECK(aclrtWaitAndResetNotify(notify, waits, 0) == 0 && aclrtMemPoolFreeAsync(a, waits) == 0);
    CHECK(aclrtMemPoolGetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT, &value) == 0 && value == 1024);
    CHECK(aclrtRecordNotify(notify, stream) == 0 && aclrtSynchronizeStream(waits) == 0);
    CHECK(aclrtMemPoolGetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT, &value) == 0 && value == 0);
    CHECK(aclrtMemPoolGetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, &value) == 0 && value == 1024);
    CHECK(aclrtMemPoolMallocAsync(&b, 512, pool, stream) == 0 && b == a);
    CHECK(aclrtMemPoolFreeAsync(b, stream) == 0 && aclrtMemPoolFreeAsync(b, stream) == 107000);
    CHECK(aclrtMemPoolTrimTo(pool, 0) == 0);
    CHECK(aclrtMemPoolGetAttr(pool, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT, &value) == 0 && value == 0);
    aclmdlRI model = nullptr;
    CHECK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) == 0);
    CHECK(aclrtMemPoolMallocAsync(&b, 512, pool, stream) == 107030);
    CHECK(aclmdlRICaptureEnd(stream, &model) == 0 && aclmdlRIDestroy(model) == 0);
    CHECK(aclrtMemPoolDestroy(pool) == 0 && aclrtMemPoolDestroy(pool) == 107000);
    CHECK(aclrtMemPoolMallocAsync(&b, 512, pool, stream) == 107000 && aclrtDestroyNotify(notify) == 0);
    CHECK(aclrtDestroyStream(stream) == 0 && aclrtDestroyStream(waits) == 0);
    return true;
}

// A model whose first stream goes to one of two others by a number in memory, and jumps by a label.
static bool built_models() {
    aclrtStream head = nullptr, branch = nullptr, plain = nullptr;
    CHECK(aclrtCreateStreamWithConfig(&head, 0, ACL_STREAM_PERSISTENT) == 0);
    CHECK(aclrtCreateStreamWithConfig(&branch, 0, ACL_STREAM_PERSISTENT) == 0 &&
          aclrtCreateStream(&plain) == 0);
    int32_t* words = nullptr;  // the number, what it is compared with, and three results
    uint32_t* index = nullptr;
    CHECK(aclrtMalloc(reinterpret_cast<void**>(&words), 64, ACL_MEM_MALLOC_HUGE_FIRST) == 0);
    CHECK(aclrtMalloc(reinterpret_cast<void**>(&index), 64, ACL_MEM_MALLOC_HUGE_FIRST) == 0);
    const auto put = [&](int place, uint32_t value, aclrtStream stream) {
        return aclrtMemsetD32Async(words + place, 4, value, 1, stream);
    };
    aclmdlRI model = nullptr;
    aclrtLabel labels[2] = {};
    aclrtLabelList list = nullptr;
    CHECK(aclmdlRIBuildBegin(&model, 0) == 0 && aclmdlRIBindStream(model, plain, 0) == 107000);
    CHECK(aclmdlRIBindStream(model, head, ACL_MODEL_STREAM_FLAG_HEAD) == 0);
    CHECK(aclmdlRIBindStream(model, branch, ACL_MODEL_STREAM_FLAG_DEFAULT) == 0);
    CHECK(aclmdlRIBuildEnd(model, nullptr) == 107000);  // no stream has an end
    CHECK(aclrtCreateLabel(&labels[0]) == 0 && aclrtCreateLabel(&labels[1]) == 0);
    CHECK(aclrtCreateLabelList(labels, 2, &list) == 0 && aclrtSetLabel(labels[0], plain) == 107000);
    CHECK(put(2, 1, head) == 0);
    CHECK(aclrtSwitchStream(words, ACL_RT_EQUAL, words + 1, ACL_RT_SWITCH_INT32, branch, nullptr, head) == 0);
    CHECK(put(2, 2, head) == 0 && aclrtActiveStream(branch, head) == 0);
    CHECK(aclrtSwitchLabelByIndex(index, 2, list, branch) == 0 && aclrtSetLabel(labels[0], branch) == 0);
    CHECK(put(3, 5, branch) == 0 && aclrtSetLabel(labels[1], branch) == 0 && put(4, 6, branch) == 0);
    CHECK(aclmdlRIExecuteAsync(model, plain) != 0);  // not complete
    CHECK(aclmdlRIEndTask(model, branch) == 0 && aclmdlRIBuildEnd(model, nullptr) == 0);
    const auto execute = [&](int32_t number, uint32_t label) {
        const int32_t given[5] = {number, 1, 0, 0, 0};
        return aclrtMemcpy(words, 64, given, sizeof(given), ACL_MEMCPY_HOST_TO_DEVICE) == 0 &&
               aclrtMemcpy(index, 4, &label, 4, ACL_MEMCPY_HOST_TO_DEVICE) == 0 &&
               aclmdlRIExecuteAsync(model, plain) == 0 && aclrtSynchronizeStream(plain) == 0;
    };
    CHECK(execute(1, 0) && words[2] == 1 && words[3] == 5 && words[4] == 6);
    CHECK(execute(0, 1) && words[2] == 2 && words[3] == 0 && words[4] == 6);
    CHECK(execute(0, 9) && words[2] == 2 && words[3] == 0 && words[4] == 6);  // beyond: the last label
    CHECK(aclmdlRIExecute(model, -1) == 0 && aclmdlRIExecute(model, 0) == 107000);
    char name[8] = "?";
    CHECK(aclmdlRIGetName(model, 8, name) == 0 && name[0] == 0);
    CHECK(aclmdlRISetName(model, "two ways") == 0 && aclmdlRIGetName(model, 8, name) == 0);
    CHECK(std::strcmp(name, "two way") == 0);
    std::atomic<int> ended{0};
    CHECK(aclmdlRIDestroyRegisterCallback(model, note_thread, &ended) == 0);
    CHECK(aclmdlRIUnbindStream(model, head) == 0 && aclmdlRIUnbindStream(model, head) == 107000);
    CHECK(aclmdlRIUnbindStream(model, branch) == 0 && aclmdlRIDestroy(model) == 0 && ended == 1);
    CHECK(aclmdlRIExecute(model, -1) == 200005 && aclmdlRIBindStream(model, head, 0) == 200005);
    CHECK(aclrtDestroyLabelList(list) == 0 && aclrtDestroyLabelList(list) == 107000);
    CHECK(aclrtDestroyLabel(labels[0]) == 0 && aclrtDestroyLabel(labels[0]) == 107000);
    // The streams are as any other again.
    CHECK(put(0, 3, head) == 0 && aclrtSynchronizeStream(head) == 0 && words[0] == 3);
    CHECK(aclrtFree(words) == 0 && aclrtFree(index) == 0 && aclrtDestroyStream(head) == 0);
    CHECK(aclrtDestroyStream(branch) == 0 && aclrtDestroyStream(plain) == 0);
    return true;
}

static bool descriptions() {
    const int64_t dims[] = {2, -1}, stored[] = {2, 16};
    int64_t ranges[][2] = {{2, 2}, {1, 8}}, range[2] = {};
    aclTensorDesc* desc = aclCreateTensorDesc(ACL_FLOAT, 2, dims, ACL_FORMAT_ND);
    CHECK(aclGetTensorDescDim(desc, 0) == 2 && aclGetTensorDescDim(desc, 2) == -1);
    CHECK(aclSetTensorShapeRange(desc, 2, ranges) == 0);
    CHECK(aclGetTensorDescDimRange(desc, 1, 2, range) == 0 && range[0] == 1 && range[1] == 8);
    CHECK(aclGetTensorDescDimRange(desc, 2, 2, range) == 100000);
    CHECK(aclSetTensorStorageShape(desc, 2, stored) == 0 &&
          aclSetTensorStorageFormat(desc, ACL_FORMAT_ND) == 0);
    CHECK(aclSetTensorOriginShape(desc, 2, stored) == 0 && aclGetTensorDescDim(desc, 1) == 16);
    aclDestroyTensorDesc(desc);
    return true;
}

static bool device() {
    aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_ABNORMAL;
    CHECK(aclrtQueryDeviceStatus(0, &status) == 0 && status == ACL_RT_DEVICE_STATUS_NORMAL);
    CHECK(aclrtQueryDeviceStatus(9, &status) == 200002 && aclrtQueryDeviceStatus(0, nullptr) == 100000);
    int32_t is_enabled = 9;
    CHECK(aclrtDevicePeerAccessStatus(0, 1, &is_enabled) == 0 && is_enabled == 0);
    CHECK(aclrtDeviceDisablePeerAccess(1) == 107000 && aclrtDeviceEnablePeerAccess(1, 0) == 0);
    CHECK(aclrtDevicePeerAccessStatus(0, 1, &is_enabled) == 0 && is_enabled == 1);
    CHECK(aclrtDeviceDisablePeerAccess(1) == 0);
    aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
    CHECK(aclrtGetDeviceSatMode(&mode) == 0 && mode == ACL_RT_OVERFLOW_MODE_INFNAN);
    uint32_t cores = 0, fewer = 0;
    CHECK(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, &cores) == 0 && cores > 2);
    CHECK(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 2) == 0);
    CHECK(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, &fewer) == 0 && fewer == 2);
    CHECK(aclrtGetStreamResLimit(nullptr, ACL_RT_DEV_RES_CUBE_CORE, &fewer) == 0 && fewer == 2);
    CHECK(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, cores + 1) == 100000);
    CHECK(aclrtResetDeviceResLimit(0) == 0);
    CHECK(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, &fewer) == 0 && fewer == cores);
    void* overflow = nullptr;
    CHECK(aclrtMalloc(&overflow, 64, ACL_MEM_MALLOC_HUGE_FIRST) == 0);
    CHECK(aclrtGetOverflowStatus(overflow, 8, nullptr) == 107000);
    CHECK(aclrtGetOverflowStatus(overflow, 64, nullptr) == 0 && *static_cast<int*>(overflow) == 0);
    CHECK(aclrtResetOverflowStatus(nullptr) == 0 && aclrtFree(overflow) == 0);
    // What the host runtime cannot do it names.
    uint32_t id = 0;
    CHECK(aclmdlLoadFromFile("model.om", &id) == 200001);
    CHECK(std::strstr(aclGetRecentErrMsg(), "aclmdlLoadFromFile is not implemented") != nullptr);
    CHECK(aclmdlCreateDesc() == nullptr && aclmdlGetNumInputs(nullptr) == 0);
    return true;
}

static int calls = 0;
static aclError initialized(const char*, size_t, void* data) {
    ++*static_cast<int*>(data);
    return ACL_SUCCESS;
}
static aclError finalized(void* data) {
    *static_cast<int*>(data) += 10;
    return ACL_SUCCESS;
}

int main() {
    const auto begun = [] {
        CHECK(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, initialized, &calls) == 0 && calls == 0);
        CHECK(aclInit(nullptr) == 0 && calls == 1 && aclInit(nullptr) == 100002 && calls == 1);
        CHECK(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, initialized, &calls) == 0 && calls == 2);
        CHECK(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, finalized, &calls) == 0 &&
              aclrtSetDevice(0) == 0);
        return true;
    };
    const auto ended = [] {
        uint64_t left = 9;
        CHECK(aclFinalizeReference(&left) == 0 && left == 1 && calls == 2);
        CHECK(aclFinalizeReference(nullptr) == 0 && calls == 12);
        CHECK(aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, finalized) == 0);
        CHECK(aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, finalized) == 100000);
        return true;
    };
    const bool all = begun() && notifies() && timeouts() && host_functions() && streams_and_events() &&
                     memory() && pools() && built_models() && descriptions() && device() && ended();
    if (all) std::puts("ok");
    return all ? 0 : 1;
}
