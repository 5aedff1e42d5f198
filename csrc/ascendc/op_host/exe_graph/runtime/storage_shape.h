// gert::StorageShape: a tensor's shape as the network sees it and as its memory is laid out. On the host both
// are one.
#ifndef ASCEND_GRAPH_GERT_STORAGE_SHAPE_H
#define ASCEND_GRAPH_GERT_STORAGE_SHAPE_H

#include "exe_graph/runtime/shape.h"

namespace gert {

class StorageShape {
  public:
    StorageShape() = default;
    StorageShape(const std::initializer_list<int64_t>& origin, const std::initializer_list<int64_t>& storage)
        : origin_(origin), storage_(storage) {}

    const Shape& GetOriginShape() const { return origin_; }
    const Shape& GetShape() const { return origin_; }
    const Shape& GetStorageShape() const { return storage_; }
    Shape& MutableOriginShape() { return origin_; }
    Shape& MutableStorageShape() { return storage_; }

    bool operator==(const StorageShape& other) const {
        return origin_ == other.origin_ && storage_ == other.storage_;
    }
    bool operator!=(const StorageShape& other) const { return !(*this == other); }

  private:
    Shape origin_;
    Shape storage_;
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_STORAGE_SHAPE_H
