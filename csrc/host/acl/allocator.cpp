// Allocators that programs register for a stream. Nothing of the host runtime asks one for memory: what is
// registered is given back.
#include <map>
#include <memory>
#include <mutex>

#include "acl/handles.h"
#include "acl/runtime.h"

using namespace ascend_graph::host;

namespace {

using Allocate = void* (*)(void* allocator, size_t size);
using Free = void (*)(void* allocator, void* block);
using AllocateAdvised = void* (*)(void* allocator, size_t size, void* address);
using AddressOf = void* (*)(void* block);

struct Description {
    void* allocator = nullptr;
    Allocate allocate = nullptr;
    Free free = nullptr;
    AllocateAdvised allocate_advised = nullptr;
    AddressOf address_of = nullptr;
};
auto& descriptions = *new Handles<Description>("aclrtAllocatorCreateDesc");

struct Registered {
    void* handle;
    Description description;
};
std::mutex mutex;
auto& of_streams = *new std::map<aclrtStream, Registered>;

template <typename Member, typename Value>
aclError set(const char* function, void* handle, Member member, Value value) {
    const auto description = descriptions.find(handle);
    if (description == nullptr) return descriptions.not_live(function, "allocatorDesc");
    if (value == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "the second argument");
    description.get()->*member = value;
    return ACL_SUCCESS;
}

}  // namespace

ACL_EXPORT void* aclrtAllocatorCreateDesc() { return descriptions.add(std::make_shared<Description>()); }
ACL_EXPORT aclError aclrtAllocatorDestroyDesc(void* handle) {
    return descriptions.take(handle) != nullptr
               ? ACL_SUCCESS
               : descriptions.not_live("aclrtAllocatorDestroyDesc", "allocatorDesc");
}
ACL_EXPORT aclError aclrtAllocatorSetObjToDesc(void* handle, void* allocator) {
    return set("aclrtAllocatorSetObjToDesc", handle, &Description::allocator, allocator);
}
ACL_EXPORT aclError aclrtAllocatorSetAllocFuncToDesc(void* handle, Allocate function) {
    return set("aclrtAllocatorSetAllocFuncToDesc", handle, &Description::allocate, function);
}
ACL_EXPORT aclError aclrtAllocatorSetFreeFuncToDesc(void* handle, Free function) {
    return set("aclrtAllocatorSetFreeFuncToDesc", handle, &Description::free, function);
}
ACL_EXPORT aclError aclrtAllocatorSetAllocAdviseFuncToDesc(void* handle, AllocateAdvised function) {
    return set("aclrtAllocatorSetAllocAdviseFuncToDesc", handle, &Description::allocate_advised, function);
}
ACL_EXPORT aclError aclrtAllocatorSetGetAddrFromBlockFuncToDesc(void* handle, AddressOf function) {
    return set("aclrtAllocatorSetGetAddrFromBlockFuncToDesc", handle, &Description::address_of, function);
}

ACL_EXPORT aclError aclrtAllocatorRegister(aclrtStream stream, void* handle) {
    constexpr const char* function = "aclrtAllocatorRegister";
    const auto description = descriptions.find(handle);
    if (description == nullptr) return descriptions.not_live(function, "allocatorDesc");
    if (stream == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "stream");
    if (aclError error = check_stream(function, stream)) return error;
    if (description->allocator == nullptr || description->allocate == nullptr ||
        description->free == nullptr || description->address_of == nullptr)
        return fail(ACL_ERROR_INVALID_PARAM,
                    "aclrtAllocatorRegister: the description is not complete; set its object, and its "
                    "functions that allocate, free and tell a block's address");
    const std::lock_guard<std::mutex> lock(mutex);
    of_streams.insert_or_assign(stream, Registered{handle, *description});
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtAllocatorUnregister(aclrtStream stream) {
    const std::lock_guard<std::mutex> lock(mutex);
    of_streams.erase(stream);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtAllocatorGetByStream(aclrtStream stream, void** handle, void** allocator,
                                              Allocate* allocate, Free* free, AllocateAdvised* advised,
                                              AddressOf* address_of) {
    constexpr const char* function = "aclrtAllocatorGetByStream";
    if (handle == nullptr || allocator == nullptr || allocate == nullptr || free == nullptr ||
        advised == nullptr || address_of == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, function, "a result pointer");
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = of_streams.find(stream);
    if (found == of_streams.end())
        return fail(ACL_ERROR_INVALID_PARAM,
                    "aclrtAllocatorGetByStream: the stream has no allocator; call "
                    "aclrtAllocatorRegister first");
    const Description& registered = found->second.description;
    *handle = found->second.handle;
    *allocator = registered.allocator;
    *allocate = registered.allocate;
    *free = registered.free;
    *advised = registered.allocate_advised;
    *address_of = registered.address_of;
    return ACL_SUCCESS;
}
