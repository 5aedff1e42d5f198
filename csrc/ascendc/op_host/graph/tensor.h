// ge::Shape, which the functions of tiling/tiling_api.h take, and ge::TensorDesc, which SetCheckSupport
// functions read.
#ifndef INC_EXTERNAL_GRAPH_TENSOR_H_
#define INC_EXTERNAL_GRAPH_TENSOR_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "graph/ge_error_codes.h"
#include "graph/types.h"

namespace ge {

class Shape {
  public:
    Shape() = default;
    explicit Shape(std::vector<int64_t> sizes) : sizes_(std::move(sizes)) {}

    size_t GetDimNum() const { return sizes_.size(); }
    int64_t GetDim(size_t index) const { return index < sizes_.size() ? sizes_[index] : 0; }
    graphStatus SetDim(size_t index, int64_t size) {
        if (index >= sizes_.size()) return GRAPH_FAILED;
        sizes_[index] = size;
        return GRAPH_SUCCESS;
    }
    std::vector<int64_t> GetDims() const { return sizes_; }
    int64_t GetShapeSize() const {
        int64_t size = 1;
        for (int64_t one : sizes_) size *= one;
        return size;
    }

  private:
    std::vector<int64_t> sizes_;
};

class TensorDesc {
  public:
    TensorDesc() = default;
    TensorDesc(Shape shape, Format format = FORMAT_ND, DataType dtype = DT_FLOAT)
        : shape_(std::move(shape)), format_(format), dtype_(dtype) {}

    Shape GetShape() const { return shape_; }
    Shape GetOriginShape() const { return shape_; }
    Format GetFormat() const { return format_; }
    Format GetOriginFormat() const { return format_; }
    DataType GetDataType() const { return dtype_; }

  private:
    Shape shape_;
    Format format_ = FORMAT_ND;
    DataType dtype_ = DT_UNDEFINED;
};

}  // namespace ge

#endif  // INC_EXTERNAL_GRAPH_TENSOR_H_
