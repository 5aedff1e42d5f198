// Memory in stream order: pools from which streams take, and to which they give back; and managed memory,
// which host and device share.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "acl/handles.h"
#include "acl/runtime.h"

using namespace ascend_graph::host;

extern "C" aclError aclrtMalloc(void** p, size_t size, int policy);
extern "C" aclError aclrtFree(void* p);

namespace {

struct Properties {  // aclrtMemPoolProps
    int allocation_type;
    int handle_type;
    uint32_t location_id;
    int location;  // 0 host, 1 device
    size_t most;
    unsigned char reserved[32];
};

// aclrtMemPoolAttr.
enum : int {
    kReuseEvents = 1,
    kReuseInternal = 3,
    kThreshold = 4,
    kReserved = 5,
    kMostReserved = 6,
    kUsed = 7,
    kMostUsed = 8,
};

// What a pool was given back it keeps until it is trimmed or destroyed: a device gives back what is above the
// threshold when it is synchronized.
struct Pool {
    explicit Pool(size_t most) : most(most) {}
    ~Pool() {
        for (const auto& [size, p] : free) aclrtFree(p);
    }
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    const size_t most;  // 0 for no limit
    std::mutex mutex{};
    std::multimap<size_t, void*> free{};
    std::map<void*, size_t> used{};
    std::map<int, uint64_t> attributes{{kReuseEvents, 1}, {2, 1}, {kReuseInternal, 1}};

    // With the mutex held.
    void count(int now, int most_of_all, int64_t bytes) {
        attributes[now] += static_cast<uint64_t>(bytes);
        attributes[most_of_all] = std::max(attributes[most_of_all], attributes[now]);
    }
    void trim(size_t keep) {
        while (!free.empty() && attributes[kReserved] > keep) {
            const auto last = std::prev(free.end());
            count(kReserved, kMostReserved, -static_cast<int64_t>(last->first));
            aclrtFree(last->second);
            free.erase(last);
        }
    }
};
auto& pools = *new Handles<Pool>("aclrtMemPoolCreate");
std::mutex owners_mutex;
auto& owners = *new std::map<void*, std::shared_ptr<Pool>>;  // of memory that is in use

aclError invalid(const char* function, const std::string& why) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, std::string(function) + ": " + why);
}

aclError take(const char* function, Pool& pool, size_t size, void** p) {
    constexpr size_t kUnit = 512;
    const size_t rounded = (size + kUnit - 1) / kUnit * kUnit;
    const std::lock_guard<std::mutex> lock(pool.mutex);
    const auto found = pool.free.lower_bound(rounded);
    if (found != pool.free.end()) {
        const auto [bytes, memory] = *found;
        pool.free.erase(found);
        pool.used.emplace(memory, bytes);
        pool.count(kUsed, kMostUsed, static_cast<int64_t>(bytes));
        *p = memory;
        return ACL_SUCCESS;
    }
    if (pool.most != 0) pool.trim(pool.most > rounded ? pool.most - rounded : 0);
    if (rounded < size || (pool.most != 0 && pool.attributes[kReserved] + rounded > pool.most)) {
        return fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                    std::string(function) + ": the pool has no " + std::to_string(size) + " bytes of its " +
                        std::to_string(pool.most) + " left; free memory, or make a larger pool");
    }
    if (aclError error = aclrtMalloc(p, rounded, 0)) return error;
    pool.used.emplace(*p, rounded);
    pool.count(kReserved, kMostReserved, static_cast<int64_t>(rounded));
    pool.count(kUsed, kMostUsed, static_cast<int64_t>(rounded));
    return ACL_SUCCESS;
}

void give_back(Pool& pool, void* p) {
    const std::lock_guard<std::mutex> lock(pool.mutex);
    const auto found = pool.used.find(p);
    const size_t size = found->second;
    pool.used.erase(found);
    pool.count(kUsed, kMostUsed, -static_cast<int64_t>(size));
    pool.free.emplace(size, p);
}

aclError refuse_capture(const char* function, Stream& stream) {
    if (stream.capturing() == nullptr) return ACL_SUCCESS;
    return fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG,
                std::string(function) + ": the stream is capturing a model; allocate before the capture");
}

}  // namespace

ACL_EXPORT aclError aclrtMemPoolCreate(void** pool, const Properties* properties) {
    constexpr const char* function = "aclrtMemPoolCreate";
    if (pool == nullptr || properties == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, function, "memPool or poolProps");
    if (properties->location != 1)
        return invalid(function, "location.type is " + std::to_string(properties->location) +
                                     "; it must be ACL_MEM_LOCATION_TYPE_DEVICE, 1");
    if (aclError error = check_device(function, static_cast<int32_t>(properties->location_id))) return error;
    *pool = pools.add(std::make_shared<Pool>(properties->most));
    return ACL_SUCCESS;
}
// Memory of it that is in use stays, and with it the pool.
ACL_EXPORT aclError aclrtMemPoolDestroy(void* pool) {
    return pools.take(pool) != nullptr ? ACL_SUCCESS : pools.not_live("aclrtMemPoolDestroy", "memPool");
}

ACL_EXPORT aclError aclrtMemPoolMallocAsync(void** p, size_t size, void* handle, aclrtStream stream) {
    constexpr const char* function = "aclrtMemPoolMallocAsync";
    if (p == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "ptr");
    if (size == 0) return invalid(function, "size is 0; expected at least 1");
    const auto pool = pools.find(handle);
    if (pool == nullptr) return pools.not_live(function, "memPool");
    if (aclError error = check_stream(function, stream)) return error;
    if (aclError error = refuse_capture(function, stream_of(stream))) return error;
    if (aclError error = take(function, *pool, size, p)) return error;
    const std::lock_guard<std::mutex> lock(owners_mutex);
    owners.emplace(*p, pool);
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtMemPoolFreeAsync(void* p, aclrtStream stream) {
    constexpr const char* function = "aclrtMemPoolFreeAsync";
    if (aclError error = check_stream(function, stream)) return error;
    if (aclError error = refuse_capture(function, stream_of(stream))) return error;
    std::shared_ptr<Pool> pool;
    {
        const std::lock_guard<std::mutex> lock(owners_mutex);
        const auto found = owners.find(p);
        if (found == owners.end())
            return invalid(function, "ptr is not live; expected what aclrtMemPoolMallocAsync returned");
        pool = std::move(found->second);
        owners.erase(found);
    }
    return stream_of(stream).mark({"free", [pool, p] {
                                       give_back(*pool, p);
                                       return ACL_SUCCESS;
                                   }});
}

ACL_EXPORT aclError aclrtMemPoolTrimTo(void* handle, size_t keep) {
    const auto pool = pools.find(handle);
    if (pool == nullptr) return pools.not_live("aclrtMemPoolTrimTo", "memPool");
    const std::lock_guard<std::mutex> lock(pool->mutex);
    pool->trim(keep);
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtMemPoolSetAttr(void* handle, int attribute, const void* value) {
    constexpr const char* function = "aclrtMemPoolSetAttr";
    const auto pool = pools.find(handle);
    if (pool == nullptr) return pools.not_live(function, "memPool");
    if (value == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "value");
    if (attribute < kReuseEvents || attribute > kMostUsed || attribute == kReserved || attribute == kUsed)
        return invalid(function, "attr is " + std::to_string(attribute) +
                                     "; it must be one of 1 to 4, 6 and 8, which can be set");
    uint64_t given = 0;
    std::memcpy(&given, value, attribute <= kReuseInternal ? sizeof(uint32_t) : sizeof(uint64_t));
    if (attribute <= kReuseInternal && given > 1)
        return invalid(function, "the value is " + std::to_string(given) + "; it must be 0 or 1");
    if (attribute > kThreshold && given != 0)
        return invalid(function, "the value is " + std::to_string(given) + "; a peak must be 0");
    const std::lock_guard<std::mutex> lock(pool->mutex);
    pool->attributes[attribute] = attribute > kThreshold ? pool->attributes[attribute - 1] : given;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtMemPoolGetAttr(void* handle, int attribute, void* value) {
    constexpr const char* function = "aclrtMemPoolGetAttr";
    const auto pool = pools.find(handle);
    if (pool == nullptr) return pools.not_live(function, "memPool");
    if (value == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "value");
    if (attribute < kReuseEvents || attribute > kMostUsed)
        return invalid(function, "attr is " + std::to_string(attribute) + "; it must be one of 1 to 8");
    const std::lock_guard<std::mutex> lock(pool->mutex);
    const uint64_t kept = pool->attributes[attribute];
    std::memcpy(value, &kept, attribute <= kReuseInternal ? sizeof(uint32_t) : sizeof(uint64_t));
    return ACL_SUCCESS;
}

// Host and device share all memory here: managed memory is the device's, and where its pages should lie
// changes no value.
namespace {
struct ManagedLocation {  // aclrtMemManagedLocation
    int type;
    int32_t id;
};

aclError check_managed(const char* function, const void* p, uint64_t size, const ManagedLocation& location) {
    const void* base = nullptr;
    size_t extent = 0;
    if (!ascendgraphAllocationExtent(p, &base, &extent) || size == 0 ||
        size > extent - static_cast<size_t>(static_cast<const char*>(p) - static_cast<const char*>(base)))
        return invalid(function, std::to_string(size) +
                                     " bytes that are not of one allocation; expected memory of "
                                     "aclrtMemAllocManaged");
    if (location.type < 1 || location.type > 4)
        return invalid(function,
                       "location.type is " + std::to_string(location.type) + "; it must be one of 1 to 4");
    return location.type == 1 ? check_device(function, location.id) : ACL_SUCCESS;
}
}  // namespace

ACL_EXPORT aclError aclrtMemAllocManaged(void** p, uint64_t size, uint32_t flag) {
    constexpr const char* function = "aclrtMemAllocManaged";
    constexpr uint64_t kUnit = uint64_t{2} << 20;
    if (flag != 1)
        return invalid(function,
                       "flag is " + std::to_string(flag) + "; it must be ACL_RT_MEM_ATTACH_GLOBAL, 1");
    if (size == 0 || size > UINT64_MAX - kUnit)
        return invalid(function, "size is " + std::to_string(size) + "; expected 1 byte to 3 TB");
    return aclrtMalloc(p, (size + kUnit - 1) / kUnit * kUnit, 0);
}
ACL_EXPORT aclError aclrtMemManagedAdvise(const void* p, uint64_t size, int advice,
                                          ManagedLocation location) {
    if (advice < 0 || advice > 5)
        return invalid("aclrtMemManagedAdvise",
                       "advise is " + std::to_string(advice) + "; it must be one of 0 to 5");
    // Advice about reading asks for no place.
    if (advice <= 1) location = {2, 0};
    return check_managed("aclrtMemManagedAdvise", p, size, location);
}
ACL_EXPORT aclError aclrtMemManagedPrefetchAsync(const void* p, size_t size, ManagedLocation location,
                                                 uint32_t, aclrtStream stream) {
    constexpr const char* function = "aclrtMemManagedPrefetchAsync";
    if (aclError error = check_managed(function, p, size, location)) return error;
    if (aclError error = check_stream(function, stream)) return error;
    return stream_of(stream).enqueue({"prefetch", [] { return ACL_SUCCESS; }});
}
