// What hand-written aclnn functions ask about dtypes, formats and shapes.
#ifndef ASCEND_GRAPH_OP_API_DTYPES_H
#define ASCEND_GRAPH_OP_API_DTYPES_H

#include <stddef.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "acl/host_acl.h"
#include "ascend_graph/op_api/small_vector.h"
#include "exe_graph/runtime/shape.h"
#include "exe_graph/runtime/storage_shape.h"
#include "graph/ascend_string.h"
#include "graph/types.h"
#include "op_common/op_host/util/bfloat16.h"
#include "op_common/op_host/util/fp16.h"

namespace op {

constexpr uint64_t MAX_DIM_NUM = 25;
using Strides = FVector<int64_t, MAX_DIM_NUM>;
using ShapeVector = FVector<int64_t, MAX_DIM_NUM>;
using Shape = gert::Shape;
using StorageShape = gert::StorageShape;
using Format = ge::Format;
using DataType = ge::DataType;
using fp16_t = Ops::Base::fp16_t;
using bfloat16 = Ops::Base::bfloat16;

// --- dtypes
// ----------------------------------------------------------------------------------------------------------

inline bool CheckType(DataType type, const std::initializer_list<DataType>& among) {
    return std::find(among.begin(), among.end(), type) != among.end();
}
template <typename Types>
bool CheckType(DataType type, const Types& among) {
    return std::find(among.begin(), among.end(), type) != among.end();
}
inline bool IsComplexType(DataType type) {
    return CheckType(type, {ge::DT_COMPLEX32, ge::DT_COMPLEX64, ge::DT_COMPLEX128});
}
inline bool IsFloatingType(DataType type) {
    return CheckType(type, {ge::DT_DOUBLE, ge::DT_FLOAT, ge::DT_BF16, ge::DT_FLOAT16, ge::DT_HIFLOAT8,
                            ge::DT_FLOAT8_E5M2, ge::DT_FLOAT8_E4M3FN, ge::DT_FLOAT8_E8M0, ge::DT_FLOAT6_E3M2,
                            ge::DT_FLOAT6_E2M3, ge::DT_FLOAT4_E2M1, ge::DT_FLOAT4_E1M2});
}
inline bool IsIntegralType(DataType type) {
    return CheckType(type, {ge::DT_INT8, ge::DT_INT16, ge::DT_INT32, ge::DT_INT64, ge::DT_UINT8,
                            ge::DT_UINT16, ge::DT_UINT32, ge::DT_UINT64});
}
inline bool IsIntegralType(DataType type, bool include_bool) {
    return IsIntegralType(type) || (include_bool && type == ge::DT_BOOL);
}
inline bool IsRealNumberType(DataType type) { return IsFloatingType(type) || IsIntegralType(type); }
inline bool IsNumberType(DataType type) {
    return IsRealNumberType(type) ||
           CheckType(type, {ge::DT_COMPLEX64, ge::DT_COMPLEX128, ge::DT_QINT8, ge::DT_QUINT8, ge::DT_QINT32});
}
inline bool IsBasicType(DataType type) {
    return CheckType(type, {ge::DT_QINT16, ge::DT_QUINT16}) ||
           (IsNumberType(type) && !(IsFloatingType(type) && static_cast<int>(type) > ge::DT_BF16));
}
// Of a value of one dtype that is to be stored as another: nothing but precision and range may be lost.
inline bool CanCast(DataType from, DataType to) {
    if (IsComplexType(from) && !IsComplexType(to)) return false;
    if (IsFloatingType(from) && IsIntegralType(to)) return false;
    return from == ge::DT_BOOL || to != ge::DT_BOOL;
}
// PyTorch's rule for two tensors; DT_UNDEFINED where PyTorch has none.
DataType PromoteType(DataType a, DataType b);
inline size_t TypeSize(DataType type) {
    const int size = ge::GetSizeByDataType(type);
    return size > 0 ? static_cast<size_t>(size) : 16;
}
int64_t CalcShapeBytes(int64_t count, DataType type, bool ceil = false);
constexpr DataType ToOpDataType(int type) {
    return type < 0 ? ge::DT_UNDEFINED : static_cast<DataType>(type);
}
inline aclDataType ToAclDataType(DataType type) {
    return type == ge::DT_UNDEFINED ? ACL_DT_UNDEFINED : static_cast<aclDataType>(type);
}
ge::AscendString ToString(DataType type);
ge::AscendString ToString(const std::initializer_list<DataType>& types);
ge::AscendString ToString(const std::vector<DataType>& types);

// --- formats
// ---------------------------------------------------------------------------------------------------------

inline int32_t GetPrimaryFormat(int32_t format) { return format & 0xff; }
inline Format GetPrimaryFormat(Format format) {
    return static_cast<Format>(GetPrimaryFormat(static_cast<int32_t>(format)));
}
inline int32_t GetSubFormat(int32_t format) { return (format & 0xffff00) >> 8; }
inline int32_t GetSubFormat(Format format) { return GetSubFormat(static_cast<int32_t>(format)); }
// Those in which the elements lie otherwise than the shape says.
bool IsPrivateFormat(Format format);
inline Format ToOpFormat(int format) { return format < 0 ? ge::FORMAT_MAX : static_cast<Format>(format); }
inline aclFormat ToAclFormat(Format format) { return static_cast<aclFormat>(format); }
ge::AscendString ToString(Format format);

// --- shapes
// ----------------------------------------------------------------------------------------------------------

ge::AscendString ToString(const Shape& shape);
ge::AscendString ToString(const Strides& strides);
void ToShape(const int64_t* sizes, uint64_t rank, Shape& shape);
void ToShape(const ShapeVector& sizes, Shape& shape);
ShapeVector ToShapeVector(const Shape& shape);
void ToContiguousStrides(const Shape& shape, Strides& strides);
bool CheckBroadcastShape(const Shape& a, const Shape& b);
// False where the shapes do not broadcast to one.
bool BroadcastInferShape(const Shape& a, const Shape& b, Shape& result);

}  // namespace op

#endif  // ASCEND_GRAPH_OP_API_DTYPES_H
