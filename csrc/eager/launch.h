// What a launch function sees and says: shapes and dtypes of the operands, scratch memory, tiling data.
//
// Plain C++ but for ACL's dtypes, so that one launch function serves PyTorch's kernels and operators of
// graphs.
#ifndef ASCEND_GRAPH_EAGER_LAUNCH_H
#define ASCEND_GRAPH_EAGER_LAUNCH_H

#include <acl/acl_base.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace ascend_graph::launch {

// An operand without its data. An input or output that is absent has no dtype.
struct Tensor {
    std::vector<int64_t> sizes;
    aclDataType dtype = ACL_DT_UNDEFINED;

    explicit operator bool() const { return dtype != ACL_DT_UNDEFINED; }
    int64_t dim() const { return static_cast<int64_t>(sizes.size()); }
    // The size of a dimension; negative ones count from the end.
    int64_t size(int64_t n) const {
        const int64_t at = n < 0 ? n + dim() : n;
        if (at < 0 || at >= dim()) {
            throw std::out_of_range("dimension " + std::to_string(n) +
                                    " is out of range; expected less than " + std::to_string(dim()) +
                                    ", the dimensions of the tensor");
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
template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
T narrow(int64_t value) {
    const T result = static_cast<T>(value);
    if (static_cast<int64_t>(result) != value || (std::is_unsigned_v<T> && value < 0)) {
        throw std::out_of_range(std::to_string(value) +
                                " does not fit; expected a number that the kernel's parameter holds, of " +
                                std::to_string(8 * sizeof(T)) + " bits");
    }
    return result;
}

template <typename T, std::enable_if_t<std::is_same_v<T, float>, int> = 0>
T narrow(double value) {
    const T result = static_cast<T>(value);
    if (std::isinf(result) && !std::isinf(value)) {
        throw std::out_of_range(
            std::to_string(value) +
            " does not fit; expected a number that the kernel's parameter holds, a float");
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
                                    " bytes of tiling data; expected " + std::to_string(sizeof(T)) +
                                    ", the size of the kernel's structure");
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

}  // namespace ascend_graph::launch

#endif  // ASCEND_GRAPH_EAGER_LAUNCH_H
