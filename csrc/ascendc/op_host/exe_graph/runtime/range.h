// gert::Range: the least and the most of something.
#ifndef ASCEND_GRAPH_GERT_RANGE_H
#define ASCEND_GRAPH_GERT_RANGE_H

namespace gert {

template <typename T>
class Range {
  public:
    Range() = default;
    Range(T* least, T* most) : least_(least), most_(most) {}
    explicit Range(T* same) : least_(same), most_(same) {}
    const T* GetMin() const { return least_; }
    const T* GetMax() const { return most_; }
    T* GetMin() { return least_; }
    T* GetMax() { return most_; }
    void SetMin(T* least) { least_ = least; }
    void SetMax(T* most) { most_ = most; }

  private:
    T* least_ = nullptr;
    T* most_ = nullptr;
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_RANGE_H
