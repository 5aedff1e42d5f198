// gert::ContinuousVector: a borrowed array, the form in which list attrs reach functions of operator
// projects.
#ifndef ASCEND_GRAPH_GERT_CONTINUOUS_VECTOR_H
#define ASCEND_GRAPH_GERT_CONTINUOUS_VECTOR_H

#include <cstddef>
#include <vector>

namespace gert {

class ContinuousVector {
  public:
    ContinuousVector(const void* data, size_t size) : data_(data), size_(size) {}
    const void* GetData() const { return data_; }
    size_t GetSize() const { return size_; }
    size_t GetCapacity() const { return size_; }

  protected:
    const void* data_;
    size_t size_;
};

template <typename T>
class TypedContinuousVector : public ContinuousVector {
  public:
    using ContinuousVector::ContinuousVector;
    const T* GetData() const { return static_cast<const T*>(data_); }
};

// A list of lists.
class ContinuousVectorVector {
  public:
    explicit ContinuousVectorVector(std::vector<ContinuousVector> rows)
        : rows_(static_cast<decltype(rows)&&>(rows)) {}
    const ContinuousVector* Get(size_t index) const { return index < rows_.size() ? &rows_[index] : nullptr; }
    size_t GetSize() const { return rows_.size(); }

  private:
    std::vector<ContinuousVector> rows_;
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_CONTINUOUS_VECTOR_H
