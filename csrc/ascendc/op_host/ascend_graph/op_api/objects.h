// aclTensor, aclScalar and the arrays as hand-written aclnn functions see them: the objects of libopapi.so,
// with the methods that CANN's have.
//
// A tensor has three shapes: the caller's view, the memory's, and the one that the memory had before its
// format changed. What a function sets of them is kept next to the tensor, and gone with it.
#ifndef ASCEND_GRAPH_OP_API_OBJECTS_H
#define ASCEND_GRAPH_OP_API_OBJECTS_H

#include <complex>
#include <cstring>
#include <memory>
#include <type_traits>

#include "aclnn/acl_meta.h"
#include "ascend_graph/aclnn_objects.h"
#include "ascend_graph/elements.h"
#include "ascend_graph/op_api/dtypes.h"
#include "ascend_graph/op_api/log.h"
#include "exe_graph/runtime/tensor.h"
#include "graph/ge_error_codes.h"

namespace ascend_graph::host {

// Memory that tensors lie in: the caller's, or a part of the call's workspace, with what is copied there
// first.
struct Block {
    void* address = nullptr;
    bool in_workspace = false;
    uint64_t workspace_offset = 0;
    std::vector<char> values;

    // What can be read while the call is prepared.
    void* known() { return values.empty() ? address : values.data(); }
};

struct TensorView {
    op::Shape view, storage, original;
    op::Strides strides;
    op::Format view_format, storage_format, original_format;
    int64_t storage_offset = 0;
    std::shared_ptr<Block> block;
    gert::Tensor tensor;  // what GetTensor returned
};

// The dtype of a C++ type.
template <typename T>
constexpr op::DataType dtype_of() {
    if constexpr (std::is_same_v<T, float>) return ge::DT_FLOAT;
    if constexpr (std::is_same_v<T, double>) return ge::DT_DOUBLE;
    if constexpr (std::is_same_v<T, op::fp16_t>) return ge::DT_FLOAT16;
    if constexpr (std::is_same_v<T, op::bfloat16>) return ge::DT_BF16;
    if constexpr (std::is_same_v<T, bool>) return ge::DT_BOOL;
    if constexpr (std::is_integral_v<T> && sizeof(T) == 1)
        return std::is_signed_v<T> ? ge::DT_INT8 : ge::DT_UINT8;
    if constexpr (std::is_integral_v<T> && sizeof(T) == 2)
        return std::is_signed_v<T> ? ge::DT_INT16 : ge::DT_UINT16;
    if constexpr (std::is_integral_v<T> && sizeof(T) == 4)
        return std::is_signed_v<T> ? ge::DT_INT32 : ge::DT_UINT32;
    if constexpr (std::is_integral_v<T> && sizeof(T) == 8)
        return std::is_signed_v<T> ? ge::DT_INT64 : ge::DT_UINT64;
    return ge::DT_UNDEFINED;
}

}  // namespace ascend_graph::host

struct aclTensor : ascend_graph::host::TensorObject {
    using TensorObject::TensorObject;

    const op::Shape& GetViewShape() const { return look().view; }
    const op::Shape& GetStorageShape() const { return look().storage; }
    const op::Shape& GetOriginalShape() const { return look().original; }
    const op::Strides& GetViewStrides() const { return look().strides; }
    void SetViewShape(const op::Shape& shape);
    void SetStorageShape(const op::Shape& shape) const { look().storage = shape; }
    void SetOriginalShape(const op::Shape& shape) const { look().original = shape; }
    void SetViewStrides(const op::Strides& strides) { look().strides = strides; }
    op::Format GetViewFormat() const { return look().view_format; }
    op::Format GetStorageFormat() const { return look().storage_format; }
    op::Format GetOriginalFormat() const { return look().original_format; }
    void SetViewFormat(op::Format format) { look().view_format = format; }
    void SetStorageFormat(op::Format format) { look().storage_format = format; }
    void SetOriginalFormat(op::Format format) { look().original_format = format; }

    op::DataType GetDataType() const { return static_cast<op::DataType>(dtype); }
    void SetDataType(op::DataType type) { dtype = type; }
    int64_t GetViewOffset() const { return offset; }
    void SetViewOffset(int64_t elements) const { const_cast<aclTensor*>(this)->offset = elements; }
    int64_t GetStorageOffset() const { return look().storage_offset; }
    void SetStorageOffset(int64_t elements) { look().storage_offset = elements; }
    int64_t Numel() const { return GetViewShape().GetShapeSize(); }
    int64_t Size() const { return Numel(); }
    bool IsEmpty() const { return Numel() == 0; }

    // The storage: its shape, formats, dtype and address, as they are now.
    gert::Tensor* GetTensor() const {
        auto& own = look();
        gert::StorageShape shape;
        shape.MutableOriginShape() = own.original;
        shape.MutableStorageShape() = own.storage;
        own.tensor = gert::Tensor(shape, {own.original_format, own.storage_format}, gert::kOnDeviceHbm,
                                  GetDataType(), GetStorageAddr());
        return &own.tensor;
    }
    void* GetStorageAddr() const { return look().block->known(); }
    void SetStorageAddr(void* address) const;
    void* GetData() const;
    bool IsFromWorkspace() const { return look().block->in_workspace; }
    void SetFromWorkspace(bool is) const { look().block->in_workspace = is; }
    uint64_t GetWorkspaceOffset() const { return look().block->workspace_offset; }
    void SetWorkspaceOffset(uint64_t bytes) const { look().block->workspace_offset = bytes; }
    ge::AscendString ToString() const;

    ascend_graph::host::TensorView& look() const;
};

struct aclScalar : ascend_graph::host::ScalarObject {
    op::DataType GetDataType() const { return static_cast<op::DataType>(dtype); }
    const void* GetData() const { return value; }
    uint64_t Size() const { return op::TypeSize(GetDataType()); }
    template <typename T>
    T To() const {
        return ascend_graph::host::convert_element<T>(value, dtype);
    }
    float ToFloat() const { return To<float>(); }
    double ToDouble() const { return To<double>(); }
    bool ToBool() const { return To<double>() != 0; }
    int8_t ToInt8() const { return To<int8_t>(); }
    int16_t ToInt16() const { return To<int16_t>(); }
    int32_t ToInt32() const { return To<int32_t>(); }
    int64_t ToInt64() const { return To<int64_t>(); }
    uint8_t ToUint8() const { return To<uint8_t>(); }
    uint16_t ToUint16() const { return To<uint16_t>(); }
    uint32_t ToUint32() const { return To<uint32_t>(); }
    uint64_t ToUint64() const { return To<uint64_t>(); }
    op::fp16_t ToFp16() const { return op::fp16_t(ToFloat()); }
    op::bfloat16 ToBf16() const { return op::bfloat16(ToFloat()); }
    std::complex<float> ToComplex64() const { return std::complex<float>(ToComplex128()); }
    std::complex<double> ToComplex128() const;
    // Whether the value is beyond the range of a type; what is rounded is not.
    template <typename T>
    bool CheckOverflows() const;
    ge::AscendString ToString() const;
};

template <typename T>
struct aclArray
    : ascend_graph::host::ArrayObject<std::conditional_t<std::is_same_v<T, bool>, unsigned char, T>> {
    const T& operator[](uint64_t i) const { return GetData()[i]; }
    T& operator[](uint64_t i) { return const_cast<T*>(GetData())[i]; }
    uint64_t Size() const { return this->values.size(); }
    const T* GetData() const { return reinterpret_cast<const T*>(this->values.data()); }
    ge::AscendString ToString() const {
        std::string text;
        for (const auto value : this->values) text += (text.empty() ? "" : ", ") + std::to_string(value);
        return ("[" + text + "]").c_str();
    }
};

struct aclIntArray : aclArray<int64_t> {};
struct aclFloatArray : aclArray<float> {};
struct aclBoolArray : aclArray<bool> {};

struct aclTensorList {
    std::vector<const aclTensor*> tensors;

    const aclTensor* operator[](uint64_t i) const { return tensors[i]; }
    aclTensor*& operator[](uint64_t i) { return const_cast<aclTensor*&>(tensors[i]); }
    uint64_t Size() const { return tensors.size(); }
    const aclTensor* const* GetData() const { return tensors.data(); }
};
struct aclScalarList {
    std::vector<const aclScalar*> scalars;

    const aclScalar* operator[](uint64_t i) const { return scalars[i]; }
    uint64_t Size() const { return scalars.size(); }
    const aclScalar* const* GetData() const { return scalars.data(); }
};

template <typename T>
bool aclScalar::CheckOverflows() const {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, double>) {
        return false;
    } else if constexpr (std::is_integral_v<T>) {
        if (op::IsIntegralType(GetDataType(), true) && dtype != ge::DT_UINT64) {
            const int64_t number = ToInt64();
            return static_cast<int64_t>(static_cast<T>(number)) != number ||
                   (std::is_unsigned_v<T> && number < 0);
        }
        const double number = ToDouble();
        return number < static_cast<double>(std::numeric_limits<T>::lowest()) ||
               number > static_cast<double>(std::numeric_limits<T>::max());
    } else {
        const double number = ToDouble();
        const double most = std::is_same_v<T, op::fp16_t> ? 65504.0 : 3.4028234663852886e38;
        return number - number == 0 && (number > most || number < -most);
    }
}

namespace op {

namespace detail {
ge::AscendString text_of_object(const aclTensor* tensor);
ge::AscendString text_of_object(const aclTensorList* tensors);
}  // namespace detail
// By the pointer's own type, so that a 0 is a number: authors add a ToString(int64_t).
template <typename T, std::enable_if_t<std::is_same_v<std::remove_const_t<T>, aclTensor> ||
                                           std::is_same_v<std::remove_const_t<T>, aclTensorList>,
                                       int> = 0>
ge::AscendString ToString(T* object) {
    return detail::text_of_object(object);
}
bool IsContiguous(const aclTensor* tensor);
// Whether the view has a stride for every dimension, and none is negative.
inline bool Validate(const aclTensor* tensor) {
    if (tensor == nullptr || tensor->GetViewStrides().size() != tensor->GetViewShape().GetDimNum())
        return false;
    const Strides& strides = tensor->GetViewStrides();
    return std::none_of(strides.begin(), strides.end(), [](int64_t one) { return one < 0; });
}
// Whether the elements lie without gaps from the view's offset on.
inline bool CanPickViewAsContiguous(const aclTensor* tensor) { return IsContiguous(tensor); }
inline bool CanPickViewAsContiguous(std::initializer_list<const aclTensor*> tensors) {
    return std::all_of(tensors.begin(), tensors.end(),
                       [](const aclTensor* one) { return IsContiguous(one); });
}

}  // namespace op

#endif  // ASCEND_GRAPH_OP_API_OBJECTS_H
