// Memory for the length of one call of an operator: numbers as tensors, packed copies, other formats.
#ifndef ASCEND_GRAPH_CALL_MEMORY_H
#define ASCEND_GRAPH_CALL_MEMORY_H

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "acl/host_acl.h"
#include "ascend_graph/elements.h"
#include "ascend_graph/host_kernel.h"

namespace ascend_graph::host {

// aclnn's error codes.
inline constexpr int kInferShapeFailed = 561001;
inline constexpr int kTilingFailed = 561002;
inline constexpr int kNoKernel = 561003;

struct OperatorFailure : std::runtime_error {
    OperatorFailure(int code, const std::string& text) : std::runtime_error(text), code(code) {}
    int code;
};

// Device memory for the length of a call.
class DeviceBuffer {
  public:
    explicit DeviceBuffer(size_t bytes) {
        if (bytes != 0 && aclrtMalloc(&data_, bytes, ACL_MEM_MALLOC_NORMAL_ONLY) != 0) throw std::bad_alloc();
    }
    DeviceBuffer(DeviceBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
    DeviceBuffer& operator=(DeviceBuffer&&) = delete;
    ~DeviceBuffer() {
        if (data_ != nullptr) aclrtFree(data_);
    }
    void* data() const { return data_; }

  private:
    void* data_ = nullptr;
};

// Every element of a strided tensor, in row-major order, to or from packed memory.
inline void copy_elements(const Tensor& tensor, size_t item, char* packed, bool to_packed) {
    const int64_t count = tensor.numel();
    for (int64_t i = 0; i < count; ++i) {
        char* element = tensor.as<char>() + tensor.offset(i) * static_cast<int64_t>(item);
        if (to_packed)
            std::memcpy(packed + i * item, element, item);
        else
            std::memcpy(element, packed + i * item, item);
    }
}

inline size_t item_size(const Tensor& tensor) {
    const int size = ge::GetSizeByDataType(static_cast<ge::DataType>(tensor.dtype));
    if (size <= 0 || size > ge::kDataTypeSizeBitOffset) {
        throw OperatorFailure(
            kNoKernel, "a tensor of ge::DataType " + std::to_string(tensor.dtype) + " has no whole bytes");
    }
    return static_cast<size_t>(size);
}

// Numbers that an aclnn function was given for an input, as the kernel sees them: in device memory, of the
// definition's dtype.
class NumberTensor {
  public:
    NumberTensor(const Tensor& given, ge::DataType dtype)
        : dims_(given.sizes, given.sizes + given.rank),
          memory_(static_cast<size_t>(given.numel()) *
                  item_size(Tensor{nullptr, static_cast<int32_t>(dtype)})) {
        dims_.resize(2 * dims_.size());
        int64_t stride = 1;
        for (int32_t axis = given.rank; axis-- > 0; stride *= dims_[axis]) dims_[given.rank + axis] = stride;
        tensor = {memory_.data(), dtype, given.rank, dims_.data(), dims_.data() + given.rank};
        const size_t from = item_size(given), to = item_size(tensor);
        for (int64_t i = 0; i < given.numel(); ++i) {
            const char* element = given.as<char>() + given.offset(i) * static_cast<int64_t>(from);
            if (store_element(tensor.as<char>() + i * static_cast<int64_t>(to), dtype, element, given.dtype))
                continue;
            throw OperatorFailure(kNoKernel, "numbers cannot be converted to ge::DataType " +
                                                 std::to_string(static_cast<int>(dtype)));
        }
    }
    NumberTensor(const NumberTensor&) = delete;
    NumberTensor& operator=(const NumberTensor&) = delete;

    Tensor tensor;

  private:
    std::vector<int64_t> dims_;
    DeviceBuffer memory_;
};

// A tensor in FRACTAL_NZ, of one in the order of its sizes: rows and columns in blocks of 16 rows of 32
// bytes.
class MatrixBlocks {
  public:
    explicit MatrixBlocks(const Tensor& plain) : kept_(kept_sizes(plain)), memory_(bytes(plain, kept_)) {
        tensor = plain;
        tensor.data = memory_.data();
        tensor.format = ge::FORMAT_FRACTAL_NZ;
        tensor.kept_rank = static_cast<int32_t>(kept_.size());
        tensor.kept = kept_.data();
        if (tensor.data != nullptr) std::memset(tensor.data, 0, bytes(plain, kept_));
        const auto item = static_cast<int64_t>(item_size(plain));
        const int64_t rows = plain.sizes[plain.rank - 2], columns = plain.sizes[plain.rank - 1];
        const int64_t *const last = kept_.data() + kept_.size() - 4, width = last[3];
        for (int64_t i = 0; i < plain.numel(); ++i) {
            const int64_t matrix = i / (rows * columns), row = i / columns % rows, column = i % columns;
            const int64_t block = (matrix * last[0] + column / width) * last[1] + row / kRows;
            const int64_t place = (block * kRows + row % kRows) * width + column % width;
            std::memcpy(tensor.as<char>() + place * item, plain.as<char>() + plain.offset(i) * item,
                        static_cast<size_t>(item));
        }
        // The order of its own sizes has no gaps any more.
        strides_.assign(plain.sizes, plain.sizes + plain.rank);
        int64_t stride = 1;
        for (size_t d = strides_.size(); d-- > 0;) stride *= std::exchange(strides_[d], stride);
        tensor.strides = strides_.data();
    }
    MatrixBlocks(const MatrixBlocks&) = delete;
    MatrixBlocks& operator=(const MatrixBlocks&) = delete;

    Tensor tensor;

  private:
    static constexpr int64_t kRows = 16, kBytes = 32;

    static std::vector<int64_t> kept_sizes(const Tensor& plain) {
        if (plain.rank < 2)
            throw OperatorFailure(kNoKernel,
                                  "a tensor of " + std::to_string(plain.rank) +
                                      " dimensions cannot be kept in FRACTAL_NZ; it has no matrices");
        const int64_t width = std::max<int64_t>(kBytes / static_cast<int64_t>(item_size(plain)), kRows);
        std::vector<int64_t> kept(plain.sizes, plain.sizes + plain.rank - 2);
        const int64_t rows = plain.sizes[plain.rank - 2], columns = plain.sizes[plain.rank - 1];
        kept.insert(kept.end(), {(columns + width - 1) / width, (rows + kRows - 1) / kRows, kRows, width});
        return kept;
    }
    static size_t bytes(const Tensor& plain, const std::vector<int64_t>& kept) {
        size_t count = item_size(plain);
        for (int64_t size : kept) count *= static_cast<size_t>(size);
        return count;
    }

    std::vector<int64_t> kept_, strides_;
    DeviceBuffer memory_;
};

}  // namespace ascend_graph::host

#endif  // ASCEND_GRAPH_CALL_MEMORY_H
