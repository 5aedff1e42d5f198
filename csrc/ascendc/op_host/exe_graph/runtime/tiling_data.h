// gert::TilingData: the buffer that a tiling function writes for its kernel.
#ifndef ASCEND_GRAPH_GERT_TILING_DATA_H
#define ASCEND_GRAPH_GERT_TILING_DATA_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <vector>

#include "graph/ge_error_codes.h"

namespace gert {

class TilingData {
  public:
    explicit TilingData(size_t capacity)
        : bytes_(capacity / sizeof(std::max_align_t) + 1), capacity_(capacity) {}

    void* GetData() { return bytes_.data(); }
    const void* GetData() const { return bytes_.data(); }
    size_t GetCapacity() const { return capacity_; }
    size_t GetDataSize() const { return size_; }
    void SetDataSize(size_t size) { size_ = size; }

    template <typename T>
    ge::graphStatus Append(const T& value) {
        return Append(&value, 1);
    }
    template <typename T>
    ge::graphStatus Append(const T* values, size_t count) {
        static_assert(std::is_trivially_copyable_v<T>, "tiling data is copied as bytes");
        if (size_ > capacity_ || count > (capacity_ - size_) / sizeof(T)) return ge::GRAPH_FAILED;
        std::memcpy(reinterpret_cast<uint8_t*>(bytes_.data()) + size_, values, count * sizeof(T));
        size_ += count * sizeof(T);
        return ge::GRAPH_SUCCESS;
    }

  private:
    std::vector<std::max_align_t> bytes_;
    size_t capacity_;
    size_t size_ = 0;
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_TILING_DATA_H
