// ge::Shape, which the functions of tiling/tiling_api.h take, ge::TensorDesc, which SetCheckSupport functions
// read, and ge::Tensor, which helpers of shape functions take.
#ifndef INC_EXTERNAL_GRAPH_TENSOR_H_
#define INC_EXTERNAL_GRAPH_TENSOR_H_

#include <cstdint>
#include <memory>
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

// A description and bytes, which copies share.
class Tensor {
  public:
    Tensor() = default;
    explicit Tensor(const TensorDesc& description) : description_(description) {}
    Tensor(const TensorDesc& description, const std::vector<uint8_t>& data) : Tensor(description) {
        SetData(data);
    }
    Tensor(const TensorDesc& description, const uint8_t* data, size_t size) : Tensor(description) {
        SetData(data, size);
    }

    TensorDesc GetTensorDesc() const { return description_; }
    graphStatus SetTensorDesc(const TensorDesc& description) {
        description_ = description;
        return GRAPH_SUCCESS;
    }
    Format GetFormat() const { return description_.GetFormat(); }
    DataType GetDataType() const { return description_.GetDataType(); }
    const uint8_t* GetData() const { return data_->data(); }
    uint8_t* GetData() { return data_->data(); }
    size_t GetSize() const { return data_->size(); }
    graphStatus SetData(std::vector<uint8_t> data) {
        *data_ = std::move(data);
        return GRAPH_SUCCESS;
    }
    graphStatus SetData(const uint8_t* data, size_t size) {
        if (data == nullptr && size != 0) return GRAPH_FAILED;
        return SetData(std::vector<uint8_t>(data, data + size));
    }
    Tensor Clone() const { return {description_, *data_}; }

  private:
    TensorDesc description_;
    std::shared_ptr<std::vector<uint8_t>> data_ = std::make_shared<std::vector<uint8_t>>();
};

}  // namespace ge

#endif  // INC_EXTERNAL_GRAPH_TENSOR_H_
