// Notifies: a bit, or a number, that one stream sets and another waits for.
#include <atomic>
#include <string>

#include "acl/handles.h"
#include "acl/runtime.h"

namespace ascend_graph::host {
namespace {

struct Notify {
    uint32_t id = 0;
    std::atomic<uint32_t> value{0};
};
std::atomic<uint32_t> next_id{0};

// Never destroyed, as streams are not.
auto& notifies = *new Handles<Notify>("aclrtCreateNotify");
auto& counters = *new Handles<Notify>("aclrtCntNotifyCreate");

aclError create(const char* function, Handles<Notify>& made, void** notify) {
    if (notify == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "notify");
    if (aclError error = check_current(function)) return error;
    auto created = std::make_shared<Notify>();
    created->id = next_id++;
    *notify = made.add(std::move(created));
    return ACL_SUCCESS;
}

aclError destroy(const char* function, Handles<Notify>& made, void* notify) {
    return made.take(notify) == nullptr ? made.not_live(function, "notify") : ACL_SUCCESS;
}

aclError read_id(const char* function, const Handles<Notify>& made, void* notify, uint32_t* id) {
    if (id == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "notifyId");
    const auto found = made.find(notify);
    if (found == nullptr) return made.not_live(function, "notify");
    *id = found->id;
    return ACL_SUCCESS;
}

// A task that marks a place of the stream: `body` is told the notify.
template <typename Body>
aclError mark(const char* function, const char* name, const Handles<Notify>& made, void* notify,
              aclrtStream stream, Body body) {
    const auto found = made.find(notify);
    if (found == nullptr) return made.not_live(function, "notify");
    if (aclError error = check_stream(function, stream)) return error;
    return stream_of(stream).mark({name, [found, body] { return body(*found); }});
}

aclError set(Notify& notify, uint32_t value) {
    notify.value = value;
    resume_waiting_streams();
    return ACL_SUCCESS;
}

struct RecordInfo {  // aclrtCntNotifyRecordInfo
    int mode;
    uint32_t value;
};
struct WaitInfo {  // aclrtCntNotifyWaitInfo
    int mode;
    uint32_t value;
    uint32_t timeout;
    uint8_t clears;
    uint8_t reserved[3];
};

// aclrtCntNotifyRecordMode: there is no 3.
bool is_record_mode(int mode) { return mode >= 0 && mode <= 4 && mode != 3; }

uint32_t recorded(const RecordInfo& info, uint32_t now) {
    switch (info.mode) {
        case 0:
            return info.value;
        case 1:
            return now + info.value;
        case 2:
            return now | info.value;
        default:
            return now & info.value;
    }
}

// aclrtCntNotifyWaitMode.
bool holds(const WaitInfo& info, uint32_t now) {
    switch (info.mode) {
        case 0:
            return now < info.value;
        case 1:
            return now == info.value;
        case 2:
            return now > info.value;
        case 3:
            return now >= info.value;
        default:
            return (now & info.value) == info.value;
    }
}

aclError bad_mode(const char* function, int mode, const char* valid) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, std::string(function) + ": info.mode is " + std::to_string(mode) +
                                                "; it must be one of " + valid);
}

}  // namespace
}  // namespace ascend_graph::host

using namespace ascend_graph::host;

ACL_EXPORT aclError aclrtCreateNotify(void** notify, uint64_t flag) {
    if (flag > 1) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtCreateNotify: flag is " + std::to_string(flag) +
                                                    "; it must be 0 (ACL_NOTIFY_DEFAULT) or 1 "
                                                    "(ACL_NOTIFY_DEVICE_USE_ONLY)");
    }
    return create("aclrtCreateNotify", notifies, notify);
}
ACL_EXPORT aclError aclrtDestroyNotify(void* notify) {
    return destroy("aclrtDestroyNotify", notifies, notify);
}
ACL_EXPORT aclError aclrtGetNotifyId(void* notify, uint32_t* id) {
    return read_id("aclrtGetNotifyId", notifies, notify, id);
}
ACL_EXPORT aclError aclrtRecordNotify(void* notify, aclrtStream stream) {
    return mark("aclrtRecordNotify", "record notify", notifies, notify, stream,
                [](Notify& n) { return set(n, 1); });
}
// Seconds until the wait fails do not pass here: a stream that waits for nothing ends with its
// synchronization.
ACL_EXPORT aclError aclrtWaitAndResetNotify(void* notify, aclrtStream stream, uint32_t) {
    return mark("aclrtWaitAndResetNotify", "wait for notify", notifies, notify, stream, [](Notify& n) {
        uint32_t one = 1;
        return n.value.compare_exchange_strong(one, 0) ? ACL_SUCCESS : kWaits;
    });
}
ACL_EXPORT aclError aclrtNotifyBatchReset(void** all, size_t count) {
    if (all == nullptr || count == 0)
        return fail(ACL_ERROR_RT_PARAM_INVALID,
                    "aclrtNotifyBatchReset: no notifies; expected an array and its length, at least 1");
    for (size_t i = 0; i < count; ++i) {
        if (notifies.find(all[i]) == nullptr) return notifies.not_live("aclrtNotifyBatchReset", "a notify");
    }
    for (size_t i = 0; i < count; ++i) notifies.find(all[i])->value = 0;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtCntNotifyCreate(void** notify, uint64_t flag) {
    if (flag != 0) {
        return fail(ACL_ERROR_RT_PARAM_INVALID,
                    "aclrtCntNotifyCreate: flag is " + std::to_string(flag) + "; it must be 0");
    }
    return create("aclrtCntNotifyCreate", counters, notify);
}
ACL_EXPORT aclError aclrtCntNotifyDestroy(void* notify) {
    return destroy("aclrtCntNotifyDestroy", counters, notify);
}
ACL_EXPORT aclError aclrtCntNotifyGetId(void* notify, uint32_t* id) {
    return read_id("aclrtCntNotifyGetId", counters, notify, id);
}
ACL_EXPORT aclError aclrtCntNotifyReset(void* notify, aclrtStream stream) {
    return mark("aclrtCntNotifyReset", "reset notify", counters, notify, stream,
                [](Notify& n) { return set(n, 0); });
}
ACL_EXPORT aclError aclrtCntNotifyRecord(void* notify, aclrtStream stream, const RecordInfo* info) {
    if (info == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtCntNotifyRecord", "info");
    if (!is_record_mode(info->mode)) return bad_mode("aclrtCntNotifyRecord", info->mode, "0, 1, 2 and 4");
    return mark("aclrtCntNotifyRecord", "record notify", counters, notify, stream,
                [given = *info](Notify& n) { return set(n, recorded(given, n.value)); });
}
ACL_EXPORT aclError aclrtCntNotifyWaitWithTimeout(void* notify, aclrtStream stream, const WaitInfo* info) {
    if (info == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtCntNotifyWaitWithTimeout", "info");
    if (info->mode < 0 || info->mode > 4)
        return bad_mode("aclrtCntNotifyWaitWithTimeout", info->mode, "0 to 4");
    return mark("aclrtCntNotifyWaitWithTimeout", "wait for notify", counters, notify, stream,
                [given = *info](Notify& n) {
                    if (!holds(given, n.value)) return kWaits;
                    if (given.clears != 0) n.value = 0;
                    return ACL_SUCCESS;
                });
}
