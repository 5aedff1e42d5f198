// Work on memory that is no copy: values that fill it, reductions, caches; and what memory is where.
#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "acl/runtime.h"
#include "ascend_graph/entering.h"

using namespace ascend_graph::host;

extern "C" float aclFloat16ToFloat(uint16_t value);
extern "C" uint16_t aclFloatToFloat16(float value);

namespace {

aclError invalid(const char* function, const std::string& why) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, std::string(function) + ": " + why);
}

aclError check_words(const char* function, const void* p, size_t size, size_t count) {
    if (p == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "ptr");
    if (count > size / sizeof(uint32_t))
        return invalid(function, std::to_string(count) +
                                     " values of 4 bytes do not fit; expected at most memSize, " +
                                     std::to_string(size));
    return ACL_SUCCESS;
}

void fill(void* p, uint32_t value, size_t count) {
    auto* const bytes = static_cast<char*>(p);  // which need not be aligned
    for (size_t i = 0; i < count; ++i) std::memcpy(bytes + i * sizeof(value), &value, sizeof(value));
}

// Types of elements: how each is read and written as what it is computed in.
template <typename T>
struct Plain {
    using Stored = T;
    static T read(T value) { return value; }
    static T write(T value) { return value; }
};
struct Half {
    using Stored = uint16_t;
    static float read(uint16_t value) { return aclFloat16ToFloat(value); }
    static uint16_t write(float value) { return aclFloatToFloat16(value); }
};
struct Brain {
    using Stored = uint16_t;
    static float read(uint16_t value) {
        const uint32_t bits = uint32_t{value} << 16;
        float result = 0;
        std::memcpy(&result, &bits, sizeof(bits));
        return result;
    }
    static uint16_t write(float value) {
        uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof(bits));
        if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);
        return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
    }
};

enum : int { kSum = 10, kMax = 11, kMin = 12 };  // aclrtReduceKind

template <typename T>
T combine(int kind, T a, T b) {
    if constexpr (std::is_same_v<T, int32_t>) {  // wraps
        if (kind == kSum) return static_cast<T>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
    }
    if (kind == kSum) return static_cast<T>(a + b);
    return kind == kMax ? std::max(a, b) : std::min(a, b);
}

template <typename Type>
void reduce(int kind, void* dst, const void* src, size_t bytes) {
    using Stored = typename Type::Stored;
    auto* const to = static_cast<Stored*>(dst);
    const auto* const from = static_cast<const Stored*>(src);
    for (size_t i = 0; i < bytes / sizeof(Stored); ++i)
        to[i] = Type::write(combine(kind, Type::read(to[i]), Type::read(from[i])));
}

// Null where a device has no reduction of the type.
using Reduction = void (*)(int kind, void* dst, const void* src, size_t bytes);
struct ReducedType {
    Reduction run = nullptr;
    size_t size = 0;
};
ReducedType reduction_of(int type) {
    switch (type) {
        case 0:
            return {reduce<Plain<float>>, 4};
        case 1:
            return {reduce<Half>, 2};
        case 2:
            return {reduce<Plain<int8_t>>, 1};
        case 3:
            return {reduce<Plain<int32_t>>, 4};
        case 6:
            return {reduce<Plain<int16_t>>, 2};
        case 27:
            return {reduce<Brain>, 2};
        default:
            return {};
    }
}

struct CacheRange {  // what aclrtCmoSetDesc writes into the device's memory
    void* begin;
    size_t size;
    uint64_t reserved[6];
};

}  // namespace

// The memory of a host is set when the call returns, as is a device's by the first of the two.
ACL_EXPORT aclError aclrtMemsetD32(void* p, size_t size, uint32_t value, size_t count) {
    if (aclError error = check_words("aclrtMemsetD32", p, size, count)) return error;
    const Entering entering("aclrtMemsetD32");
    fill(p, value, count);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtMemsetD32Async(void* p, size_t size, uint32_t value, size_t count,
                                        aclrtStream stream) {
    if (aclError error = check_words("aclrtMemsetD32Async", p, size, count)) return error;
    if (location_of(p) != Location::kDevice) return aclrtMemsetD32(p, size, value, count);
    if (aclError error = check_stream("aclrtMemsetD32Async", stream)) return error;
    return stream_of(stream).enqueue({"memset", [=] {
                                          fill(p, value, count);
                                          return ACL_SUCCESS;
                                      }});
}

ACL_EXPORT aclError aclrtReduceAsync(void* dst, const void* src, uint64_t bytes, int kind, int type,
                                     aclrtStream stream, void*) {
    constexpr const char* function = "aclrtReduceAsync";
    if (dst == nullptr || src == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "dst or src");
    if (kind < kSum || kind > kMin)
        return invalid(function, "kind is " + std::to_string(kind) +
                                     "; it must be 10 (sum), 11 (maximum) and 12 (minimum)");
    const ReducedType reduced = reduction_of(type);
    if (reduced.run == nullptr)
        return invalid(function, "type is " + std::to_string(type) +
                                     "; expected ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_INT8, ACL_INT16 or "
                                     "ACL_INT32");
    if (bytes % reduced.size != 0)
        return invalid(function, "count is " + std::to_string(bytes) + " bytes; expected a multiple of " +
                                     std::to_string(reduced.size) + ", the size of the type");
    if (aclError error = check_stream(function, stream)) return error;
    return stream_of(stream).enqueue({"reduce", [=] {
                                          reduced.run(kind, dst, src, bytes);
                                          return ACL_SUCCESS;
                                      }});
}

ACL_EXPORT aclError aclrtCmoAsync(void* src, size_t size, int kind, aclrtStream stream);
ACL_EXPORT aclError aclrtCmoGetDescSize(size_t* size) {
    if (size == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtCmoGetDescSize", "size");
    *size = sizeof(CacheRange);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtCmoSetDesc(void* descriptor, void* src, size_t size) {
    if (descriptor == nullptr || src == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtCmoSetDesc", "cmoDesc or src");
    const Entering entering("aclrtCmoSetDesc");
    *static_cast<CacheRange*>(descriptor) = {src, size, {}};
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtCmoAsyncWithDesc(void* descriptor, int kind, aclrtStream stream, const void*) {
    if (descriptor == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtCmoAsyncWithDesc", "cmoDesc");
    if (aclError error = check_stream("aclrtCmoAsyncWithDesc", stream)) return error;
    const auto range = *static_cast<const CacheRange*>(descriptor);
    return aclrtCmoAsync(range.begin, range.size, kind, stream);
}

ACL_EXPORT aclError aclrtMemGetAddressRange(void* p, void** base, size_t* size) {
    const void* begin = nullptr;
    size_t extent = 0;
    if (!ascendgraphAllocationExtent(p, &begin, &extent))
        return invalid("aclrtMemGetAddressRange",
                       "ptr is in no live memory; expected an address within what an allocation returned");
    if (base != nullptr) *base = const_cast<void*>(begin);
    if (size != nullptr) *size = extent;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtCheckMemType(void** addresses, uint32_t count, uint32_t type, uint32_t* result,
                                      uint32_t reserve) {
    constexpr const char* function = "aclrtCheckMemType";
    constexpr uint32_t kDevice = 0x2, kKnown = 0x2 | 0x8 | 0x10;  // ACL_RT_MEM_TYPE_…
    if (addresses == nullptr || result == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, function, "addrList or checkResult");
    if (count == 0 || reserve != 0 || type == 0 || (type & ~kKnown) != 0)
        return invalid(function,
                       "expected at least one address, memType of 0x2, 0x8 and 0x10, and reserve 0");
    const auto is_device = [](const void* p) { return location_of(p) == Location::kDevice; };
    *result = (type & kDevice) != 0 && std::all_of(addresses, addresses + count, is_device) ? 1 : 0;
    return ACL_SUCCESS;
}

// One component has the memory: the program.
ACL_EXPORT aclError aclrtGetMemUsageInfo(int32_t id, void* infos, size_t count, size_t* found) {
    struct Usage {  // aclrtMemUsageInfo
        char name[32];
        uint64_t now;
        uint64_t most;
        size_t reserved[8];
    };
    constexpr const char* function = "aclrtGetMemUsageInfo";
    if (infos == nullptr || found == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, function, "memUsageInfo or outputNum");
    if (aclError error = check_device(function, id)) return error;
    if (count == 0) return invalid(function, "inputNum is 0; expected at least 1");
    const Usage app{"APP", used_memory(), most_used_memory(), {}};
    std::memcpy(infos, &app, sizeof(app));
    *found = 1;
    return ACL_SUCCESS;
}
