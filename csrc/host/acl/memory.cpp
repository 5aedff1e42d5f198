// Device and pinned memory on the host's heap, with the extent of every allocation known.
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "acl/devices.h"
#include "acl/runtime.h"
#include "acl/strict.h"
#include "ascend_graph/entering.h"

using namespace ascend_graph::host;

namespace {

// Where memory lies, and how it begins there: what the vector and cube units of the 910B ask of global
// memory, and a page of the host, from which torch_npu takes swapped memory without asking for more.
enum class Place { kDevice, kHost };
size_t alignment(Place place) {
    static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return place == Place::kDevice ? 512 : page;
}

class Heap {
  public:
    struct Block {
        size_t size = 0;
        Place place = Place::kDevice;
        // A captured graph works on it for as long as it is replayed; torch_npu's allocator, which keeps it
        // otherwise, is off in a strict runtime.
        bool captured = false;
        // Physical memory that was mapped to an address: what is mapped behind it goes on with it.
        bool mapped = false;
    };

    void* allocate(size_t size, Place place) {
        const size_t unit = alignment(place);
        const size_t rounded = (std::max<size_t>(size, 1) + unit - 1) / unit * unit;
        std::lock_guard<std::mutex> lock(mutex_);
        if (rounded < size) return nullptr;
        if (place == Place::kDevice && rounded > capacity() - std::min(used_, capacity())) return nullptr;
        const bool is_strict = place == Place::kDevice && strict::enabled();
        void* p = is_strict ? strict::allocate(rounded) : std::aligned_alloc(unit, rounded);
        if (p == nullptr) return nullptr;
        blocks_.emplace(static_cast<char*>(p), Block{rounded, place, active_captures.load() != 0});
        if (place == Place::kDevice) take(rounded);
        return p;
    }

    bool release(void* p, Place place) {
        std::lock_guard<std::mutex> lock(mutex_);
        auto found = blocks_.find(static_cast<char*>(p));
        if (found == blocks_.end() || found->second.place != place || found->second.mapped) return false;
        const bool is_strict = place == Place::kDevice && strict::enabled();
        if (is_strict && found->second.captured) return true;
        if (place == Place::kDevice) used_ -= found->second.size;
        blocks_.erase(found);
        ++releases;
        if (is_strict) {
            strict::release(p);
        } else {
            std::free(p);
        }
        return true;
    }

    // The block that contains `p`, and where it begins; size 0 where there is none.
    std::pair<const void*, Block> find(const void* p) {
        std::lock_guard<std::mutex> lock(mutex_);
        auto after = blocks_.upper_bound(static_cast<char*>(const_cast<void*>(p)));
        if (after == blocks_.begin()) return {};
        auto first = std::prev(after);
        if (static_cast<const char*>(p) >= first->first + first->second.size) return {};
        if (!first->second.mapped) return {first->first, first->second};
        const auto goes_on = [](const auto& before, const auto& behind) {
            return behind.second.mapped && before.second.mapped &&
                   before.second.place == behind.second.place &&
                   before.first + before.second.size == behind.first;
        };
        while (first != blocks_.begin() && goes_on(*std::prev(first), *first)) --first;
        auto last = std::prev(after);
        for (; after != blocks_.end() && goes_on(*last, *after); ++after) last = after;
        Block whole = first->second;
        whole.size = static_cast<size_t>(last->first + last->second.size - first->first);
        return {first->first, whole};
    }

    // Memory of others at an address of theirs, and the end of that; it counts as used where it is made.
    void map(void* p, size_t size, bool on_device) {
        std::lock_guard<std::mutex> lock(mutex_);
        blocks_[static_cast<char*>(p)] = {size, on_device ? Place::kDevice : Place::kHost, false, true};
    }
    void unmap(void* p) {
        std::lock_guard<std::mutex> lock(mutex_);
        blocks_.erase(static_cast<char*>(p));
        ++releases;
    }
    bool use(size_t size) {
        std::lock_guard<std::mutex> lock(mutex_);
        if (size > capacity() - std::min(used_, capacity())) return false;
        take(size);
        return true;
    }
    void give_back(size_t size) {
        std::lock_guard<std::mutex> lock(mutex_);
        used_ -= size;
    }

    // The device's memory: the machine's, or ASCEND_GRAPH_HOST_MEMORY bytes.
    static size_t capacity() {
        static const size_t bytes = [] {
            struct sysinfo info{};
            sysinfo(&info);
            return environment_number("ASCEND_GRAPH_HOST_MEMORY", uint64_t{info.totalram} * info.mem_unit);
        }();
        return bytes;
    }

    std::atomic<uint64_t> releases{0};

    size_t used() {
        std::lock_guard<std::mutex> lock(mutex_);
        return used_;
    }

    size_t most_used() {
        std::lock_guard<std::mutex> lock(mutex_);
        return most_used_;
    }

  private:
    void take(size_t size) {
        used_ += size;
        most_used_ = std::max(most_used_, used_);
    }

    std::mutex mutex_;
    std::map<char*, Block> blocks_;
    size_t used_ = 0;  // of the device
    size_t most_used_ = 0;
};

// Never destroyed: allocations are released by static destructors of other libraries.
Heap& heap() {
    static Heap& instance = *new Heap;
    return instance;
}

aclError allocate(const char* function, void** p, size_t size, Place place) {
    if (p == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "the result pointer");
    if (aclError error = enter_device(function)) return error;
    *p = heap().allocate(size, place);
    if (*p != nullptr) return ACL_SUCCESS;
    const std::string asked =
        std::string(function) + ": out of memory: " + std::to_string(size) + " bytes asked for";
    if (place == Place::kHost)
        return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, asked + "; free memory, or allocate less");
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, asked + ", " + std::to_string(heap().used()) + " of " +
                                                    std::to_string(Heap::capacity()) +
                                                    " in use; free memory, or allocate less");
}

aclError release(const char* function, void* p, Place place) {
    if (heap().release(p, place)) return ACL_SUCCESS;
    const auto [begin, block] = heap().find(p);
    const char* other = begin != p || p == nullptr ? ""
                        : place == Place::kDevice  ? "; it is the host's: aclrtFreeHost frees it"
                                                   : "; it is the device's: aclrtFree frees it";
    return fail(ACL_ERROR_INVALID_PARAM,
                std::string(function) +
                    ": expected the address that an allocation of its kind returned, not freed" + other);
}

}  // namespace

namespace ascend_graph::host {
void map_memory(void* p, size_t size, bool on_device) { heap().map(p, size, on_device); }
void unmap_memory(void* p) { heap().unmap(p); }
bool use_memory(size_t size) { return heap().use(size); }
void give_memory_back(size_t size) { heap().give_back(size); }
size_t used_memory() { return heap().used(); }
size_t most_used_memory() { return heap().most_used(); }
Location location_of(const void* p) {
    const auto [begin, block] = heap().find(p);
    if (begin == nullptr) return Location::kNone;
    return block.place == Place::kHost ? Location::kHost : Location::kDevice;
}

aclError check_copy(const char* function, const void* dst, size_t capacity, const void* src, size_t count) {
    if (count > capacity) {
        return fail(ACL_ERROR_INVALID_PARAM, std::string(function) + ": " + std::to_string(count) +
                                                 " bytes do not fit; expected at most " +
                                                 std::to_string(capacity) + ", the size of the destination");
    }
    if (count != 0 && (dst == nullptr || src == nullptr))
        return fail_null(ACL_ERROR_INVALID_PARAM, function, dst == nullptr ? "dst" : "src");
    return enter_device(function);
}
}  // namespace ascend_graph::host

ACL_EXPORT uint64_t ascendgraphReleases() { return heap().releases.load(std::memory_order_relaxed); }

ACL_EXPORT bool ascendgraphAllocationExtent(const void* p, const void** base, size_t* size) {
    const auto [begin, block] = heap().find(p);
    if (begin == nullptr) return false;
    *base = begin;
    *size = block.size;
    return true;
}

ACL_EXPORT aclError aclrtMalloc(void** p, size_t size, int) {
    return allocate("aclrtMalloc", p, size, Place::kDevice);
}
ACL_EXPORT aclError aclrtMallocAlign32(void** p, size_t size, int) {
    return allocate("aclrtMallocAlign32", p, size, Place::kDevice);
}
ACL_EXPORT aclError aclrtMallocWithCfg(void** p, size_t size, int, void*) {
    return allocate("aclrtMallocWithCfg", p, size, Place::kDevice);
}
// The runtime's own name of it, which programs with kernels of their own link: the type of memory and the
// module.
ACL_EXPORT aclError rtMalloc(void** p, uint64_t size, uint32_t, uint16_t) { return aclrtMalloc(p, size, 0); }
ACL_EXPORT aclError aclrtMallocHost(void** p, size_t size) {
    return allocate("aclrtMallocHost", p, size, Place::kHost);
}
ACL_EXPORT aclError aclrtMallocHostWithCfg(void** p, uint64_t size, void*) {
    return allocate("aclrtMallocHostWithCfg", p, size, Place::kHost);
}
// Memory for who schedules tasks, which graphs work on, is the device's.
ACL_EXPORT aclError aclrtMallocForTaskScheduler(void** p, size_t size, int, void*) {
    if (size == 0)
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtMallocForTaskScheduler: size is 0; expected at least 1");
    return allocate("aclrtMallocForTaskScheduler", p, size, Place::kDevice);
}
ACL_EXPORT aclError aclrtFree(void* p) { return release("aclrtFree", p, Place::kDevice); }
ACL_EXPORT aclError aclrtFreeHost(void* p) { return release("aclrtFreeHost", p, Place::kHost); }
// What may still use the memory has ended when the device is synchronized.
ACL_EXPORT aclError aclrtSynchronizeDevice();
ACL_EXPORT aclError aclrtFreeWithDevSync(void* p) {
    if (aclError error = aclrtSynchronizeDevice()) return error;
    return release("aclrtFreeWithDevSync", p, Place::kDevice);
}
ACL_EXPORT aclError aclrtFreeHostWithDevSync(void* p) {
    if (aclError error = aclrtSynchronizeDevice()) return error;
    return release("aclrtFreeHostWithDevSync", p, Place::kHost);
}

ACL_EXPORT aclError aclrtGetMemInfo(int, size_t* free_bytes, size_t* total) {
    if (free_bytes == nullptr || total == nullptr) {
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetMemInfo", "the result pointer");
    }
    *total = Heap::capacity();
    *free_bytes = *total - std::min(*total, heap().used());
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtMemcpy(void* dst, size_t capacity, const void* src, size_t count, aclrtMemcpyKind) {
    if (aclError error = check_copy("aclrtMemcpy", dst, capacity, src, count)) return error;
    const Entering entering("aclrtMemcpy");
    if (count != 0) std::memmove(dst, src, count);
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtMemcpyAsync(void* dst, size_t capacity, const void* src, size_t count,
                                     aclrtMemcpyKind, aclrtStream stream) {
    if (aclError error = check_copy("aclrtMemcpyAsync", dst, capacity, src, count)) return error;
    return stream_of(stream).enqueue({"memcpy", [dst, src, count] {
                                          if (count != 0) std::memmove(dst, src, count);
                                          return ACL_SUCCESS;
                                      }});
}

ACL_EXPORT aclError aclrtMemset(void* dst, size_t capacity, int32_t value, size_t count) {
    if (aclError error = check_copy("aclrtMemset", dst, capacity, dst, count)) return error;
    const Entering entering("aclrtMemset");
    if (count != 0) std::memset(dst, value, count);
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtMemsetAsync(void* dst, size_t capacity, int32_t value, size_t count,
                                     aclrtStream stream) {
    if (aclError error = check_copy("aclrtMemsetAsync", dst, capacity, dst, count)) return error;
    return stream_of(stream).enqueue({"memset", [dst, value, count] {
                                          if (count != 0) std::memset(dst, value, count);
                                          return ACL_SUCCESS;
                                      }});
}

// Of the operations on caches documents have prefetching alone. It changes no value, so there is nothing to
// do but to check it.
ACL_EXPORT aclError aclrtCmoAsync(void* src, size_t size, int kind, aclrtStream stream) {
    constexpr int kPrefetch = 0;
    const void* base = nullptr;
    size_t extent = 0;
    if (kind != kPrefetch) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtCmoAsync: type " + std::to_string(kind) +
                                                 " is not supported; expected ACL_RT_CMO_TYPE_PREFETCH, 0");
    }
    if (!ascendgraphAllocationExtent(src, &base, &extent) ||
        size > extent - (static_cast<const char*>(src) - static_cast<const char*>(base))) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtCmoAsync: " + std::to_string(size) +
                                                 " bytes that are not of one allocation of the device");
    }
    return stream_of(stream).enqueue({"prefetch", [] { return ACL_SUCCESS; }});
}

// Host memory is device memory here: registering it maps it to itself.
namespace {
aclError check_host_range(const char* function, const void* p, uint64_t size) {
    if (p != nullptr && size != 0) return ACL_SUCCESS;
    return fail(ACL_ERROR_INVALID_PARAM,
                std::string(function) +
                    (p == nullptr ? ": p is null; expected an address" : ": size is 0; expected at least 1"));
}
}  // namespace

ACL_EXPORT aclError aclrtHostRegister(void* p, uint64_t size, int, void** device_pointer) {
    if (aclError error = check_host_range("aclrtHostRegister", p, size)) return error;
    if (device_pointer == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtHostRegister", "the result pointer");
    *device_pointer = p;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtHostRegisterV2(void* p, uint64_t size, uint32_t) {
    return check_host_range("aclrtHostRegisterV2", p, size);
}
ACL_EXPORT aclError aclrtHostGetDevicePointer(void* p, void** device_pointer, uint32_t flag) {
    if (p == nullptr || device_pointer == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtHostGetDevicePointer", "pHost or pDevice");
    if (flag != 0) {
        return fail(ACL_ERROR_RT_PARAM_INVALID,
                    "aclrtHostGetDevicePointer: flag is " + std::to_string(flag) + "; it must be 0");
    }
    *device_pointer = p;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtHostMemMapCapabilities(uint32_t id, int, int* capabilities) {
    if (aclError error = check_device("aclrtHostMemMapCapabilities", static_cast<int32_t>(id))) return error;
    if (capabilities == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtHostMemMapCapabilities", "capabilities");
    *capabilities = 1;  // ACL_RT_HOST_MEM_MAP_SUPPORTED
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtHostUnregister(void*) { return ACL_SUCCESS; }

// Memory is had in pages, and mapped in larger ones by choice: aclrtMemGranularityOptions.
ACL_EXPORT aclError aclrtMemGetAllocationGranularity(const void* properties, int option,
                                                     size_t* granularity) {
    if (properties == nullptr || granularity == nullptr) {
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtMemGetAllocationGranularity", "prop or granularity");
    }
    if (option != 0 && option != 1) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtMemGetAllocationGranularity: option " +
                                                 std::to_string(option) +
                                                 "; valid: 0 (minimum), 1 (recommended)");
    }
    *granularity = size_t{2} << 20;
    return ACL_SUCCESS;
}

// A host's caches are coherent.
ACL_EXPORT aclError aclrtMallocCached(void** p, size_t size, int) {
    return allocate("aclrtMallocCached", p, size, Place::kDevice);
}
ACL_EXPORT aclError aclrtMemFlush(void* p, size_t) {
    return p != nullptr ? ACL_SUCCESS : fail_null(ACL_ERROR_INVALID_PARAM, "aclrtMemFlush", "devPtr");
}
ACL_EXPORT aclError aclrtMemInvalidate(void* p, size_t) {
    return p != nullptr ? ACL_SUCCESS : fail_null(ACL_ERROR_INVALID_PARAM, "aclrtMemInvalidate", "devPtr");
}
