// Virtual memory: addresses that are reserved, physical memory that is mapped to them, as torch_npu's
// expandable segments have it. Physical memory is a file without a name, so that several addresses may show
// it.
#include <sys/mman.h>
#include <unistd.h>

#include <iterator>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "acl/runtime.h"

using namespace ascend_graph::host;

namespace {

// What aclrtMemGetAllocationGranularity says; CANN's documents ask for multiples of it.
constexpr size_t kUnit = size_t{2} << 20;

struct PhysicalProperties {  // aclrtPhysicalMemProp
    int handle_type;
    int allocation_type;
    int attribute;
    uint32_t location_id;
    int location;  // 0 host, 1 device
    uint64_t reserved;
};

struct Physical {
    int file = -1;
    size_t size = 0;
    bool on_device = true;
    PhysicalProperties properties{};
    // Handles of it that were given out, by aclrtMallocPhysical and aclrtMemRetainAllocationHandle.
    int handles = 1;
};

struct Mapping {
    size_t size = 0;
    Physical* memory = nullptr;
    // What each place may do with it: aclrtMemAccessFlags, by the place's type and number.
    std::map<std::pair<int, uint32_t>, int> access{};
};

struct Addresses {
    std::mutex mutex;
    std::map<char*, size_t> reserved;
    std::map<char*, Mapping> mapped;
    std::unordered_map<Physical*, int> live;  // with the number of mappings
};
// Never destroyed: memory is released by static destructors of other libraries.
Addresses& addresses() {
    static Addresses& instance = *new Addresses;
    return instance;
}

aclError invalid(const std::string& text) { return fail(ACL_ERROR_INVALID_PARAM, text); }

// The first of a map's ranges that ends behind `p`.
template <typename Ranges>
auto around(Ranges& ranges, char* p) {
    auto found = ranges.upper_bound(p);
    return found == ranges.begin() ? ranges.end() : std::prev(found);
}

// Nothing shows it any more.
void forget(Physical* memory) {
    close(memory->file);
    delete memory;
}

}  // namespace

ACL_EXPORT aclError aclrtReserveMemAddress(void** address, size_t size, size_t alignment, void* expected,
                                           uint64_t flags) {
    const std::string name = "aclrtReserveMemAddress: ";
    if (address == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtReserveMemAddress", "virPtr");
    if (size == 0) return invalid(name + "size is 0; expected at least 1");
    if (alignment != 0 || expected != nullptr) {
        return invalid(name + "alignment and expectPtr are reserved: they must be 0 and null");
    }
    if (flags > 1) return invalid(name + "flags " + std::to_string(flags) + "; valid: 0, 1 (huge pages)");
    const size_t whole = (size + kUnit - 1) / kUnit * kUnit;
    if (whole < size || whole + kUnit < whole)
        return fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                    name + "size " + std::to_string(size) + " is too large; reserve less");
    // One unit more, so that the beginning can be a multiple of it.
    void* const p =
        mmap(nullptr, whole + kUnit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        return fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                    name + "the system has no " + std::to_string(size) + " bytes of addresses; reserve less");
    }
    char* const start = static_cast<char*>(p);
    char* const begin =
        reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(start) + kUnit - 1) / kUnit * kUnit);
    if (begin != start) munmap(start, static_cast<size_t>(begin - start));
    munmap(begin + whole, static_cast<size_t>(start + kUnit - begin));
    auto& all = addresses();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.reserved.emplace(begin, whole);
    *address = begin;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtReleaseMemAddress(void* address) {
    auto& all = addresses();
    std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.reserved.find(static_cast<char*>(address));
    if (found == all.reserved.end())
        return invalid("aclrtReleaseMemAddress: expected the address that aclrtReserveMemAddress returned");
    const auto mapped = all.mapped.lower_bound(found->first);
    if (mapped != all.mapped.end() && mapped->first < found->first + found->second)
        return invalid("aclrtReleaseMemAddress: memory is mapped to it; call aclrtUnmapMem first");
    munmap(found->first, found->second);
    all.reserved.erase(found);
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtMallocPhysical(void** handle, size_t size, const PhysicalProperties* properties,
                                        uint64_t flags) {
    const std::string name = "aclrtMallocPhysical: ";
    if (handle == nullptr || properties == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtMallocPhysical", "handle or prop");
    if (flags != 0) return invalid(name + "flags is reserved: it must be 0");
    if (size == 0 || size % kUnit != 0) {
        return invalid(name + "size " + std::to_string(size) + " must be a positive multiple of " +
                       std::to_string(kUnit) + ", the granularity");
    }
    if (properties->location != 0 && properties->location != 1)
        return invalid(name + "location " + std::to_string(properties->location) +
                       "; valid: 0 (host), 1 (device)");
    const bool on_device = properties->location == 1;
    if (on_device && !use_memory(size))
        return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, name + "out of memory: " + std::to_string(size) +
                                                        " bytes asked for; free memory, or allocate less");
    const int file = memfd_create("ascend_graph", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) {
        if (file >= 0) close(file);
        if (on_device) give_memory_back(size);
        return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, name + "the system has no " + std::to_string(size) +
                                                        " bytes; free memory, or allocate less");
    }
    auto* const memory = new Physical{file, size, on_device, *properties};
    auto& all = addresses();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.live.emplace(memory, 0);
    *handle = memory;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtFreePhysical(void* handle) {
    auto& all = addresses();
    std::lock_guard<std::mutex> lock(all.mutex);
    auto* const memory = static_cast<Physical*>(handle);
    const auto found = all.live.find(memory);
    if (found == all.live.end())
        return invalid("aclrtFreePhysical: not a live handle; expected one that aclrtMallocPhysical made");
    if (memory->handles > 1) {
        --memory->handles;
        return ACL_SUCCESS;
    }
    if (found->second != 0)
        return invalid("aclrtFreePhysical: it is mapped to an address; call aclrtUnmapMem first");
    all.live.erase(found);
    if (memory->on_device) give_memory_back(memory->size);
    forget(memory);
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtMapMem(void* address, size_t size, size_t offset, void* handle, uint64_t flags) {
    const std::string name = "aclrtMapMem: ";
    auto* const begin = static_cast<char*>(address);
    auto* const memory = static_cast<Physical*>(handle);
    if (offset != 0 || flags != 0) return invalid(name + "offset and flags are reserved: they must be 0");
    auto& all = addresses();
    std::lock_guard<std::mutex> lock(all.mutex);
    const auto live = all.live.find(memory);
    if (live == all.live.end())
        return invalid(name + "not a live handle; expected one that aclrtMallocPhysical made");
    if (size != memory->size) {
        return invalid(name + "size " + std::to_string(size) + " must be the size of the physical memory, " +
                       std::to_string(memory->size));
    }
    const auto range = around(all.reserved, begin);
    if (range == all.reserved.end() || begin + size > range->first + range->second)
        return invalid(name + "the address range must be within one that aclrtReserveMemAddress reserved");
    if (reinterpret_cast<uintptr_t>(begin) % kUnit != 0)
        return invalid(name + "the address must be a multiple of " + std::to_string(kUnit) +
                       ", the granularity");
    const auto before = around(all.mapped, begin);
    const auto behind = all.mapped.lower_bound(begin);
    if ((before != all.mapped.end() && before->first + before->second.size > begin) ||
        (behind != all.mapped.end() && behind->first < begin + size))
        return invalid(name + "memory is mapped to the address range already; call aclrtUnmapMem first");
    if (mmap(begin, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory->file, 0) == MAP_FAILED)
        return fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                    name + "the system refuses to map it; free memory, or map less");
    ++live->second;
    all.mapped.emplace(begin, Mapping{size, memory, {}});
    map_memory(begin, size, memory->on_device);
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtUnmapMem(void* address) {
    auto& all = addresses();
    std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.mapped.find(static_cast<char*>(address));
    if (found == all.mapped.end())
        return invalid("aclrtUnmapMem: expected the address that was given to aclrtMapMem");
    const auto [begin, mapping] = *found;
    unmap_memory(begin);
    // The addresses stay reserved, and are nobody's to touch.
    mmap(begin, mapping.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    --all.live.at(mapping.memory);
    all.mapped.erase(found);
    return ACL_SUCCESS;
}

// Access is kept and given back: every thread of the process may touch all of it.
namespace {
constexpr int kReadAndWrite = 3;
struct MemoryLocation {  // aclrtMemLocation
    uint32_t id;
    int type;
};
struct AccessDescription {  // aclrtMemAccessDesc
    int flags;
    MemoryLocation location;
    uint8_t reserved[12];
};

// The mapping that begins at an address; null where none does.
Mapping* mapping_at(Addresses& all, void* address) {
    const auto found = all.mapped.find(static_cast<char*>(address));
    return found == all.mapped.end() ? nullptr : &found->second;
}
aclError not_mapped(const char* function) {
    return invalid(std::string(function) + ": expected the address that was given to aclrtMapMem");
}
}  // namespace

ACL_EXPORT aclError aclrtMemSetAccess(void* address, size_t size, const AccessDescription* given,
                                      size_t count) {
    const std::string name = "aclrtMemSetAccess: ";
    if (given == nullptr || count == 0) return invalid(name + "expected at least one description");
    for (size_t i = 0; i < count; ++i) {
        if (given[i].flags != 0 && given[i].flags != 1 && given[i].flags != kReadAndWrite)
            return invalid(name + "flags " + std::to_string(given[i].flags) + "; valid: 0, 1, 3");
        if (given[i].location.type != 0 && given[i].location.type != 1)
            return invalid(name + "location " + std::to_string(given[i].location.type) +
                           "; valid: 0 (host), 1 (device)");
    }
    auto& all = addresses();
    std::lock_guard<std::mutex> lock(all.mutex);
    Mapping* const mapping = mapping_at(all, address);
    if (mapping == nullptr) return not_mapped("aclrtMemSetAccess");
    if (size != mapping->size)
        return invalid(name + "size " + std::to_string(size) + " must be the mapping's, " +
                       std::to_string(mapping->size));
    // Where the memory lies nothing keeps a program from it: what a device would refuse is not promised.
    const int own = mapping->memory->on_device ? 1 : 0;
    for (size_t i = 0; i < count; ++i) {
        if (given[i].location.type == own && given[i].flags != kReadAndWrite)
            return fail(
                ACL_ERROR_API_NOT_SUPPORT,
                name + "flags " + std::to_string(given[i].flags) +
                    ": the host runtime protects no memory; give ACL_RT_MEM_ACCESS_FLAGS_READWRITE, 3");
    }
    for (size_t i = 0; i < count; ++i)
        mapping->access[{given[i].location.type, given[i].location.id}] = given[i].flags;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtMemGetAccess(void* address, const MemoryLocation* location, uint64_t* flag) {
    if (location == nullptr || flag == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtMemGetAccess", "location or flag");
    auto& all = addresses();
    std::lock_guard<std::mutex> lock(all.mutex);
    const Mapping* const mapping = mapping_at(all, address);
    if (mapping == nullptr) return not_mapped("aclrtMemGetAccess");
    const auto found = mapping->access.find({location->type, location->id});
    // A device may use its own memory from the mapping on.
    const bool own = location->type == (mapping->memory->on_device ? 1 : 0);
    *flag = static_cast<uint64_t>(found != mapping->access.end() ? found->second : own ? kReadAndWrite : 0);
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtMemRetainAllocationHandle(void* address, void** handle) {
    if (handle == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtMemRetainAllocationHandle", "handle");
    auto& all = addresses();
    std::lock_guard<std::mutex> lock(all.mutex);
    const Mapping* const mapping = mapping_at(all, address);
    if (mapping == nullptr) return not_mapped("aclrtMemRetainAllocationHandle");
    ++mapping->memory->handles;
    *handle = mapping->memory;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtMemGetAllocationPropertiesFromHandle(void* handle, PhysicalProperties* properties) {
    constexpr const char* function = "aclrtMemGetAllocationPropertiesFromHandle";
    if (properties == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "prop");
    auto& all = addresses();
    std::lock_guard<std::mutex> lock(all.mutex);
    if (all.live.count(static_cast<Physical*>(handle)) == 0)
        return invalid(std::string(function) +
                       ": not a live handle; expected one that aclrtMallocPhysical made");
    *properties = static_cast<Physical*>(handle)->properties;
    return ACL_SUCCESS;
}
