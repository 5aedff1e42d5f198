// gert::Stride: the distance between neighbors along each axis of a tensor, in elements.
#ifndef ASCEND_GRAPH_GERT_STRIDE_H
#define ASCEND_GRAPH_GERT_STRIDE_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace gert {

class Stride {
  public:
    static constexpr size_t kMaxDimNum = 25;
    static constexpr int64_t kInvalidStrideValue = std::numeric_limits<int64_t>::min();

    Stride() = default;
    Stride(const std::initializer_list<int64_t>& strides) {
        for (int64_t stride : strides) AppendStride(stride);
    }

    size_t GetDimNum() const { return rank_; }
    void SetDimNum(size_t rank) { rank_ = rank < kMaxDimNum ? rank : kMaxDimNum; }
    int64_t GetStride(size_t axis) const { return axis < kMaxDimNum ? strides_[axis] : kInvalidStrideValue; }
    void SetStride(size_t axis, int64_t stride) {
        if (axis < kMaxDimNum) strides_[axis] = stride;
    }
    Stride& AppendStride(int64_t stride) {
        if (rank_ < kMaxDimNum) strides_[rank_++] = stride;
        return *this;
    }
    const int64_t& operator[](size_t axis) const { return strides_[axis]; }
    int64_t& operator[](size_t axis) { return strides_[axis]; }

    bool operator==(const Stride& other) const {
        if (rank_ != other.rank_) return false;
        for (size_t axis = 0; axis < rank_; ++axis) {
            if (strides_[axis] != other.strides_[axis]) return false;
        }
        return true;
    }
    bool operator!=(const Stride& other) const { return !(*this == other); }

  private:
    size_t rank_ = 0;
    std::array<int64_t, kMaxDimNum> strides_{};
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_STRIDE_H
