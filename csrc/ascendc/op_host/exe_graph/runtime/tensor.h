// gert::Tensor: shape, dtype and format of an input or output, and its values where they are known on the
// host.
#ifndef ASCEND_GRAPH_GERT_TENSOR_H
#define ASCEND_GRAPH_GERT_TENSOR_H

#include "exe_graph/runtime/storage_format.h"
#include "exe_graph/runtime/storage_shape.h"
#include "graph/types.h"

namespace gert {

enum TensorPlacement { kOnDeviceHbm, kOnHost, kFollowing, kOnDeviceP2p, kTensorPlacementEnd };

// What a placement means: where the data are, and whether they lie behind the tensor's description.
class TensorPlacementUtils {
  public:
    static bool IsOnHost(TensorPlacement placement) {
        return placement == kOnHost || placement == kFollowing;
    }
    static bool IsOnHostNotFollowing(TensorPlacement placement) { return placement == kOnHost; }
    static bool IsOnHostFollowing(TensorPlacement placement) { return placement == kFollowing; }
    static bool IsOnDevice(TensorPlacement placement) {
        return IsOnDeviceHbm(placement) || IsOnDeviceP2p(placement);
    }
    static bool IsOnDeviceHbm(TensorPlacement placement) { return placement == kOnDeviceHbm; }
    static bool IsOnDeviceP2p(TensorPlacement placement) { return placement == kOnDeviceP2p; }
};

class Tensor;
// The tensor whose values an author's function asked for last, and which has none on the host.
inline thread_local const Tensor* asked_without_values = nullptr;

class Tensor {
  public:
    Tensor() = default;
    Tensor(const StorageShape& shape, const StorageFormat& format, ge::DataType dtype)
        : shape_(shape), format_(format), dtype_(dtype) {}
    Tensor(const StorageShape& shape, const StorageFormat& format, TensorPlacement placement,
           ge::DataType dtype, void* data)
        : shape_(shape), format_(format), dtype_(dtype), data_(data), placement_(placement) {}

    int64_t GetShapeSize() const { return shape_.GetStorageShape().GetShapeSize(); }
    size_t GetSize() const {
        const int64_t bytes = ge::GetSizeInBytes(GetShapeSize(), dtype_);
        return bytes < 0 ? 0 : static_cast<size_t>(bytes);
    }
    // Null unless the definition says ValueDepend of the input.
    template <typename T>
    const T* GetData() const {
        return static_cast<const T*>(GetAddr());
    }
    template <typename T>
    T* GetData() {
        return static_cast<T*>(GetAddr());
    }
    const void* GetAddr() const {
        if (data_ == nullptr) asked_without_values = this;
        return data_;
    }
    void* GetAddr() { return const_cast<void*>(static_cast<const Tensor*>(this)->GetAddr()); }
    ge::DataType GetDataType() const { return dtype_; }
    void SetDataType(ge::DataType dtype) { dtype_ = dtype; }

    const StorageShape& GetShape() const { return shape_; }
    StorageShape& GetShape() { return shape_; }
    const Shape& GetStorageShape() const { return shape_.GetStorageShape(); }
    const Shape& GetOriginShape() const { return shape_.GetOriginShape(); }
    Shape& MutableStorageShape() { return shape_.MutableStorageShape(); }
    Shape& MutableOriginShape() { return shape_.MutableOriginShape(); }

    const StorageFormat& GetFormat() const { return format_; }
    ge::Format GetStorageFormat() const { return format_.GetStorageFormat(); }
    ge::Format GetOriginFormat() const { return format_.GetOriginFormat(); }
    // Values that a tiling or shape function may not see are on the device.
    TensorPlacement GetPlacement() const { return data_ == nullptr ? kOnDeviceHbm : placement_; }

  private:
    StorageShape shape_;
    StorageFormat format_;
    ge::DataType dtype_ = ge::DT_UNDEFINED;
    void* data_ = nullptr;
    TensorPlacement placement_ = kOnHost;
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_TENSOR_H
