// What a launch function sees and says: shapes and dtypes of the operands, scratch memory, tiling data.
//
// Plain C++ on ACL alone, so that one launch function serves PyTorch's kernels and operators of graphs.
#ifndef ASCEND_GRAPH_EAGER_LAUNCH_H
#define ASCEND_GRAPH_EAGER_LAUNCH_H

#include <acl/acl_base.h>
#include <acl/acl_rt.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ascend_graph::launch {

// An operand without its data. An optional input that is absent has no dtype.
struct Tensor {
    std::vector<int64_t> sizes;
    aclDataType dtype = ACL_DT_UNDEFINED;

    explicit operator bool() const { return dtype != ACL_DT_UNDEFINED; }
    int64_t dim() const { return static_cast<int64_t>(sizes.size()); }
    // The size of a dimension; negative ones count from the end.
    int64_t size(int64_t n) const {
        const int64_t at = n < 0 ? n + dim() : n;
        if (at < 0 || at >= dim()) {
            throw std::out_of_range("dimension " + std::to_string(n) + " of a tensor of " + std::to_string(dim()));
        }
        return sizes[static_cast<size_t>(at)];
    }
    int64_t numel() const {
        int64_t count = 1;
        for (const int64_t size : sizes) count *= size;
        return count;
    }
};

// A size or an attr as the kernel's narrower type; an error where it does not fit.
template <typename T>
T narrow(int64_t value) {
    static_assert(std::is_integral_v<T>);
    const T result = static_cast<T>(value);
    if (static_cast<int64_t>(result) != value || (std::is_unsigned_v<T> && value < 0)) {
        throw std::out_of_range(std::to_string(value) + " does not fit into the kernel's parameter of " +
                                std::to_string(8 * sizeof(T)) + " bits");
    }
    return result;
}

// Global memory that a launch needs for itself.
struct Scratch {
    size_t bytes = 0;
    bool zeroed = false;
};

// Tiling data whose type only the kernel knows.
using Bytes = std::vector<std::byte>;

template <typename T>
Bytes bytes_of(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    return Bytes(first, first + sizeof(T));
}
inline Bytes bytes_of(Bytes bytes) { return bytes; }

// The tiling structure as the kernel declares it.
template <typename T, typename Given>
T as(const Given& given) {
    static_assert(std::is_trivially_copyable_v<T>);
    const Bytes bytes = bytes_of(given);
    if (bytes.size() != sizeof(T)) {
        throw std::invalid_argument("the launch gives " + std::to_string(bytes.size()) +
                                    " bytes of tiling data, the kernel's structure has " + std::to_string(sizeof(T)));
    }
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
}

// An address as whatever pointer a launch function declares.
struct Address {
    const void* value;
    template <typename T>
    operator T*() const {
        return static_cast<T*>(const_cast<void*>(value));
    }
};

namespace detail {

inline void check(aclError error, const char* function) {
    if (error != ACL_SUCCESS) throw std::runtime_error(std::string(function) + " failed with error " + std::to_string(error));
}

// While a graph is captured, a thread may only copy to the device at once in the relaxed mode.
class Relaxed {
  public:
    Relaxed() { check(aclmdlRICaptureThreadExchangeMode(&mode_), "aclmdlRICaptureThreadExchangeMode"); }
    ~Relaxed() { aclmdlRICaptureThreadExchangeMode(&mode_); }
    Relaxed(const Relaxed&) = delete;
    Relaxed& operator=(const Relaxed&) = delete;

  private:
    aclmdlRICaptureMode mode_ = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
};

}  // namespace detail

// The address of these bytes on the current device, for a kernel that reads its tiling from global memory.
//
// They are copied there once per content and kept as long as the process: a captured graph reads them at every
// replay, and nothing has to be copied or waited for when the same shapes come again.
inline void* on_device(const Bytes& bytes) {
    static std::mutex mutex;
    static std::map<std::pair<int32_t, Bytes>, void*> known;
    static std::map<int32_t, std::pair<std::byte*, size_t>> blocks;  // per device: where room is, and how much
    constexpr size_t kBlock = size_t{1} << 16, kAlignment = 64;
    if (bytes.empty()) return nullptr;
    int32_t device = 0;
    detail::check(aclrtGetDevice(&device), "aclrtGetDevice");
    const std::lock_guard<std::mutex> lock(mutex);
    void*& address = known[{device, bytes}];
    if (address != nullptr) return address;
    const detail::Relaxed relaxed;
    const size_t needed = (bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
    auto& [room, size] = blocks[device];
    if (size < needed) {
        const size_t wanted = needed > kBlock ? needed : kBlock;
        void* block = nullptr;
        detail::check(aclrtMalloc(&block, wanted, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
        room = static_cast<std::byte*>(block);
        size = wanted;
    }
    detail::check(aclrtMemcpy(room, bytes.size(), bytes.data(), bytes.size(), ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
    address = room;
    room += needed;
    size -= needed;
    return address;
}

}  // namespace ascend_graph::launch

#endif  // ASCEND_GRAPH_EAGER_LAUNCH_H
