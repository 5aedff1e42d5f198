// gert::Shape: the sizes of a tensor.
#ifndef ASCEND_GRAPH_GERT_SHAPE_H
#define ASCEND_GRAPH_GERT_SHAPE_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace gert {

class Shape {
  public:
    static constexpr size_t kMaxDimNum = 25;
    static constexpr int64_t kInvalidDimValue = std::numeric_limits<int64_t>::min();

    Shape() = default;
    Shape(const std::initializer_list<int64_t>& sizes) {
        for (int64_t size : sizes) AppendDim(size);
    }

    size_t GetDimNum() const { return rank_; }
    // New dimensions have the size 0.
    void SetDimNum(size_t rank) {
        rank = rank < kMaxDimNum ? rank : kMaxDimNum;
        for (size_t axis = rank_; axis < rank; ++axis) sizes_[axis] = 0;
        rank_ = rank;
    }
    int64_t GetDim(size_t axis) const { return axis < kMaxDimNum ? sizes_[axis] : kInvalidDimValue; }
    void SetDim(size_t axis, int64_t size) {
        if (axis < kMaxDimNum) sizes_[axis] = size;
    }
    // A dimension beyond the most there can be is dropped, as on a device.
    Shape& AppendDim(int64_t size) {
        if (rank_ < kMaxDimNum) sizes_[rank_++] = size;
        return *this;
    }
    const int64_t& operator[](size_t axis) const { return sizes_[axis]; }
    int64_t& operator[](size_t axis) { return sizes_[axis]; }

    bool IsScalar() const { return rank_ == 0; }
    void SetScalar() { rank_ = 0; }
    // The number of elements.
    int64_t GetShapeSize() const {
        int64_t size = 1;
        for (size_t axis = 0; axis < rank_; ++axis) size *= sizes_[axis];
        return size;
    }

    bool operator==(const Shape& other) const {
        if (rank_ != other.rank_) return false;
        for (size_t axis = 0; axis < rank_; ++axis) {
            if (sizes_[axis] != other.sizes_[axis]) return false;
        }
        return true;
    }
    bool operator!=(const Shape& other) const { return !(*this == other); }

  private:
    size_t rank_ = 0;
    std::array<int64_t, kMaxDimNum> sizes_{};
    uint8_t reserved_[40] = {};  // CANN's layout
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_SHAPE_H
