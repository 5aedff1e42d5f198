// Copies of memory beyond the plain ones: of rows, of batches, by descriptors and to variables of kernels.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstring>
#include <string>
#include <vector>

#include "acl/runtime.h"
#include "ascend_graph/entering.h"

using namespace ascend_graph::host;

namespace {

struct CopiedRange {
    void* to;
    const void* from;
    size_t size;
    void operator()() const {
        if (size != 0) std::memmove(to, from, size);
    }
};

// aclrtMemLocationType
constexpr int kHost = 0, kDevice = 1, kUnregistered = 2;
struct MemoryLocation {  // aclrtMemLocation
    uint32_t device;
    int type;
};
struct PointerAttributes {  // aclrtPtrAttributes
    MemoryLocation location;
    uint32_t page_size;
    uint32_t reserved[4];
};
struct BatchAttributes {  // aclrtMemcpyBatchAttr
    MemoryLocation to;
    MemoryLocation from;
    uint8_t reserved[16];
};

int location_type(const void* p) {
    switch (location_of(p)) {
        case Location::kNone:
            return kUnregistered;
        case Location::kHost:
            return kHost;
        default:
            return kDevice;
    }
}
}  // namespace

ACL_EXPORT aclError aclrtPointerGetAttributes(const void* p, PointerAttributes* attributes) {
    if (attributes == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtPointerGetAttributes", "attributes");
    *attributes = {};
    attributes->location.type = location_type(p);
    return ACL_SUCCESS;
}

// Copies of a batch, each with the attributes of the last entry of `first` that is not beyond it: all from
// the host to the device, or all back.
namespace {
struct Batch {
    std::vector<CopiedRange> copies;
    bool waits = false;  // memory of the host that is not pinned: done when the call returns
};
aclError read_batch(const char* function, void** to, const size_t* capacities, void** from,
                    const size_t* sizes, size_t count, const BatchAttributes* attributes, const size_t* first,
                    size_t attribute_count, size_t* failed, Batch& batch) {
    const auto refuse = [&](const std::string& why) {
        return fail(ACL_ERROR_INVALID_PARAM, std::string(function) + ": " + why);
    };
    if (failed == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "failIndex");
    *failed = SIZE_MAX;
    if (to == nullptr || capacities == nullptr || from == nullptr || sizes == nullptr ||
        attributes == nullptr || first == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, function,
                         "one of dsts, destMax, srcs, sizes, attrs and attrsIndexes");
    if (count == 0 || attribute_count == 0 || attribute_count > count || first[0] != 0) {
        return refuse(
            std::to_string(attribute_count) + " attributes for " + std::to_string(count) +
            " copies; expected at least one, at most one for each copy, and attrsIndexes that begins "
            "with 0");
    }
    size_t now = 0;
    for (size_t i = 0; i < count; ++i) {
        if (now + 1 < attribute_count && first[now + 1] <= i) {
            if (first[now + 1] != i)
                return refuse("attrsIndexes[" + std::to_string(now + 1) +
                              "] must be greater than the one before it");
            ++now;
        }
        if (aclError error = check_copy(function, to[i], capacities[i], from[i], sizes[i])) return error;
        const int types[] = {attributes[now].from.type, attributes[now].to.type};
        if (types[0] == types[1] || types[0] < kHost || types[0] > kDevice || types[1] < kHost ||
            types[1] > kDevice || types[0] != attributes[0].from.type) {
            *failed = i;
            return refuse("copy " + std::to_string(i) + " is from location " + std::to_string(types[0]) +
                          " to " + std::to_string(types[1]) +
                          "; expected all from the host (0) to the device (1), or all back");
        }
        const void* ends[] = {from[i], to[i]};
        for (int end = 0; end < 2; ++end) {
            const int type = location_type(ends[end]);
            if ((types[end] == kDevice) != (type == kDevice)) {
                *failed = i;
                return refuse("copy " + std::to_string(i) + ": its " + (end == 0 ? "source" : "destination") +
                              " must be memory of the " + (types[end] == kDevice ? "device" : "host") +
                              ", as its attributes say");
            }
            batch.waits = batch.waits || type == kUnregistered;
        }
        batch.copies.push_back({to[i], from[i], sizes[i]});
    }
    if (now + 1 != attribute_count)
        return refuse("the last of attrsIndexes must be less than the number of copies");
    return ACL_SUCCESS;
}
}  // namespace
ACL_EXPORT aclError aclrtMemcpyBatch(void** to, size_t* capacities, void** from, size_t* sizes, size_t count,
                                     BatchAttributes* attributes, size_t* first, size_t attribute_count,
                                     size_t* failed) {
    Batch batch;
    if (aclError error = read_batch("aclrtMemcpyBatch", to, capacities, from, sizes, count, attributes, first,
                                    attribute_count, failed, batch))
        return error;
    const Entering entering("aclrtMemcpyBatch");
    for (const CopiedRange& copy : batch.copies) copy();
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtSynchronizeStream(aclrtStream stream);
ACL_EXPORT aclError aclrtMemcpyBatchAsync(void** to, size_t* capacities, void** from, size_t* sizes,
                                          size_t count, BatchAttributes* attributes, size_t* first,
                                          size_t attribute_count, size_t* failed, aclrtStream stream) {
    Batch batch;
    if (aclError error = read_batch("aclrtMemcpyBatchAsync", to, capacities, from, sizes, count, attributes,
                                    first, attribute_count, failed, batch))
        return error;
    const aclError error = stream_of(stream).enqueue({"memcpyBatch", [copies = std::move(batch.copies)] {
                                                          for (const CopiedRange& copy : copies) copy();
                                                          return ACL_SUCCESS;
                                                      }});
    return error != ACL_SUCCESS || !batch.waits ? error : aclrtSynchronizeStream(stream);
}

// As those above, without the number of the copy that is refused.
ACL_EXPORT aclError aclrtMemcpyBatchV2(void** to, size_t* capacities, void** from, size_t* sizes,
                                       size_t count, BatchAttributes* attributes, size_t* first,
                                       size_t attribute_count) {
    size_t failed = 0;
    return aclrtMemcpyBatch(to, capacities, from, sizes, count, attributes, first, attribute_count, &failed);
}
ACL_EXPORT aclError aclrtMemcpyBatchAsyncV2(void** to, size_t* capacities, void** from, size_t* sizes,
                                            size_t count, BatchAttributes* attributes, size_t* first,
                                            size_t attribute_count, aclrtStream stream) {
    size_t failed = 0;
    return aclrtMemcpyBatchAsync(to, capacities, from, sizes, count, attributes, first, attribute_count,
                                 &failed, stream);
}

// `height` rows of `width` bytes, whose beginnings are `…pitch` bytes apart.
namespace {
aclError copy_rows(const char* function, void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                   size_t width, size_t height, aclrtStream stream) {
    if (dst == nullptr || src == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, function, dst == nullptr ? "dst" : "src");
    if (width == 0 || height == 0 || width > dst_pitch || width > src_pitch) {
        return fail(ACL_ERROR_INVALID_PARAM,
                    std::string(function) + ": " + std::to_string(height) + " rows of " +
                        std::to_string(width) +
                        " bytes do not fit; expected at least one row, and at most the pitches, " +
                        std::to_string(dst_pitch) + " and " + std::to_string(src_pitch));
    }
    return stream_of(stream).enqueue({"memcpy2d", [=] {
                                          for (size_t row = 0; row < height; ++row) {
                                              std::memmove(static_cast<char*>(dst) + row * dst_pitch,
                                                           static_cast<const char*>(src) + row * src_pitch,
                                                           width);
                                          }
                                          return ACL_SUCCESS;
                                      }});
}
}  // namespace
ACL_EXPORT aclError aclrtMemcpy2d(void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                                  size_t width, size_t height, aclrtMemcpyKind) {
    return copy_rows("aclrtMemcpy2d", dst, dst_pitch, src, src_pitch, width, height, nullptr);
}
ACL_EXPORT aclError aclrtMemcpy2dAsync(void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                                       size_t width, size_t height, aclrtMemcpyKind, aclrtStream stream) {
    return copy_rows("aclrtMemcpy2dAsync", dst, dst_pitch, src, src_pitch, width, height, stream);
}

// Within a device, by addresses that the stream reads when it comes to the copy.
namespace {
constexpr int kWithinDevice = 6;  // ACL_MEMCPY_INNER_DEVICE_TO_DEVICE

aclError check_within_device(const char* function, int kind) {
    if (kind == kWithinDevice) return ACL_SUCCESS;
    return fail(ACL_ERROR_RT_PARAM_INVALID, std::string(function) + ": kind is " + std::to_string(kind) +
                                                "; it must be ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, 6");
}

// aclrtMemcpyAsyncWithDesc reads it from the device's memory.
struct Descriptor {
    uint64_t magic;
    void* to;
    const void* from;
    size_t size;
    uint64_t reserved[4];
};
constexpr uint64_t kDescriptor = 0x6d656d637079;
}  // namespace

ACL_EXPORT aclError aclrtMemcpyAsyncWithOffset(void** dst, size_t capacity, size_t dst_offset,
                                               const void** src, size_t count, size_t src_offset, int kind,
                                               aclrtStream stream) {
    constexpr const char* function = "aclrtMemcpyAsyncWithOffset";
    if (aclError error = check_within_device(function, kind)) return error;
    if (aclError error = check_copy(function, dst, capacity, src, count)) return error;
    if (aclError error = check_stream(function, stream)) return error;
    return stream_of(stream).enqueue({"memcpy", [=] {
                                          CopiedRange{static_cast<char*>(*dst) + dst_offset,
                                                      static_cast<const char*>(*src) + src_offset, count}();
                                          return ACL_SUCCESS;
                                      }});
}

ACL_EXPORT aclError aclrtGetMemcpyDescSize(int kind, size_t* size) {
    if (size == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetMemcpyDescSize", "descSize");
    if (aclError error = check_within_device("aclrtGetMemcpyDescSize", kind)) return error;
    *size = sizeof(Descriptor);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtSetMemcpyDesc(void* descriptor, int kind, void* src, void* dst, size_t count,
                                       void*) {
    constexpr const char* function = "aclrtSetMemcpyDesc";
    if (aclError error = check_within_device(function, kind)) return error;
    if (descriptor == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "desc");
    if (aclError error = check_copy(function, dst, count, src, count)) return error;
    const Entering entering(function);
    *static_cast<Descriptor*>(descriptor) = {kDescriptor, dst, src, count, {}};
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtMemcpyAsyncWithDesc(void* descriptor, int kind, aclrtStream stream) {
    constexpr const char* function = "aclrtMemcpyAsyncWithDesc";
    if (aclError error = check_within_device(function, kind)) return error;
    if (descriptor == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "desc");
    if (aclError error = check_stream(function, stream)) return error;
    return stream_of(stream).enqueue({"memcpy", [descriptor] {
                                          const auto& copy = *static_cast<const Descriptor*>(descriptor);
                                          if (copy.magic != kDescriptor)
                                              return fail(ACL_ERROR_RT_PARAM_INVALID,
                                                          "aclrtMemcpyAsyncWithDesc: desc is not set; call "
                                                          "aclrtSetMemcpyDesc first");
                                          CopiedRange{copy.to, copy.from, copy.size}();
                                          return ACL_SUCCESS;
                                      }});
}

// Variables of kernels are the program's own: their address is the device's.
namespace {
// 0 where no library's table of symbols says it.
size_t size_of_variable(const void* symbol) {
    Dl_info info{};
    const ElfW(Sym)* entry = nullptr;
    if (dladdr1(symbol, &info, const_cast<void**>(reinterpret_cast<const void**>(&entry)), RTLD_DL_SYMENT) ==
            0 ||
        entry == nullptr || info.dli_saddr != symbol)
        return 0;
    return entry->st_size;
}

aclError copy_variable(const char* function, void* dst, size_t capacity, const void* src, const void* symbol,
                       size_t offset, size_t count, aclrtStream stream) {
    if (symbol == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "symbol");
    const size_t size = size_of_variable(symbol);
    if (size != 0 && (offset > size || count > size - offset)) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, std::string(function) + ": " + std::to_string(count) +
                                                    " bytes at " + std::to_string(offset) +
                                                    " are beyond the variable; expected at most its size, " +
                                                    std::to_string(size));
    }
    if (aclError error = check_copy(function, dst, capacity, src, count)) return error;
    if (aclError error = check_stream(function, stream)) return error;
    return stream_of(stream).enqueue({"memcpy", [copy = CopiedRange{dst, src, count}] {
                                          copy();
                                          return ACL_SUCCESS;
                                      }});
}

// Where `offset` lies behind a variable's beginning; null stays null.
const char* within(const void* symbol, size_t offset) {
    return symbol == nullptr ? nullptr : static_cast<const char*>(symbol) + offset;
}
}  // namespace

ACL_EXPORT aclError aclrtGetSymbolAddress(const void* symbol, void** address) {
    if (symbol == nullptr || address == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetSymbolAddress", "symbol or devPtr");
    *address = const_cast<void*>(symbol);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtGetSymbolSize(const void* symbol, size_t* size) {
    if (symbol == nullptr || size == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetSymbolSize", "symbol or size");
    *size = size_of_variable(symbol);
    if (*size != 0) return ACL_SUCCESS;
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "aclrtGetSymbolSize: no exported variable begins at symbol; link the program with -rdynamic, "
                "and give the address of a variable that is not static");
}
ACL_EXPORT aclError aclrtMemcpyToSymbolAsync(const void* symbol, const void* src, size_t count, size_t offset,
                                             aclrtMemcpyKind, aclrtStream stream) {
    return copy_variable("aclrtMemcpyToSymbolAsync", const_cast<char*>(within(symbol, offset)), count, src,
                         symbol, offset, count, stream);
}
ACL_EXPORT aclError aclrtMemcpyToSymbol(const void* symbol, const void* src, size_t count, size_t offset,
                                        aclrtMemcpyKind) {
    return copy_variable("aclrtMemcpyToSymbol", const_cast<char*>(within(symbol, offset)), count, src, symbol,
                         offset, count, nullptr);
}
ACL_EXPORT aclError aclrtMemcpyFromSymbolAsync(void* dst, size_t capacity, const void* symbol, size_t count,
                                               size_t offset, aclrtMemcpyKind, aclrtStream stream) {
    return copy_variable("aclrtMemcpyFromSymbolAsync", dst, capacity, within(symbol, offset), symbol, offset,
                         count, stream);
}
ACL_EXPORT aclError aclrtMemcpyFromSymbol(void* dst, size_t capacity, const void* symbol, size_t count,
                                          size_t offset, aclrtMemcpyKind) {
    return copy_variable("aclrtMemcpyFromSymbol", dst, capacity, within(symbol, offset), symbol, offset,
                         count, nullptr);
}
