// ge::TypeUtils: sizes and names of dtypes and formats.
#ifndef ASCEND_GRAPH_GRAPH_UTILS_TYPE_UTILS_H
#define ASCEND_GRAPH_GRAPH_UTILS_TYPE_UTILS_H

#include <string>

#include "graph/ascend_string.h"
#include "graph/types.h"

namespace ge {

class TypeUtils {
  public:
    // The bytes of an element; false for a type without a whole number of them.
    static bool GetDataTypeLength(DataType type, uint32_t& length) {
        const int size = GetSizeByDataType(type);
        if (size <= 0 || size > kDataTypeSizeBitOffset) return false;
        length = static_cast<uint32_t>(size);
        return true;
    }
    static std::string DataTypeToSerialString(DataType type) {
        switch (type) {
            case DT_FLOAT:
                return "DT_FLOAT";
            case DT_FLOAT16:
                return "DT_FLOAT16";
            case DT_INT8:
                return "DT_INT8";
            case DT_INT32:
                return "DT_INT32";
            case DT_UINT8:
                return "DT_UINT8";
            case DT_INT16:
                return "DT_INT16";
            case DT_UINT16:
                return "DT_UINT16";
            case DT_UINT32:
                return "DT_UINT32";
            case DT_INT64:
                return "DT_INT64";
            case DT_UINT64:
                return "DT_UINT64";
            case DT_DOUBLE:
                return "DT_DOUBLE";
            case DT_BOOL:
                return "DT_BOOL";
            case DT_STRING:
                return "DT_STRING";
            case DT_DUAL_SUB_INT8:
                return "DT_DUAL_SUB_INT8";
            case DT_DUAL_SUB_UINT8:
                return "DT_DUAL_SUB_UINT8";
            case DT_COMPLEX64:
                return "DT_COMPLEX64";
            case DT_COMPLEX128:
                return "DT_COMPLEX128";
            case DT_QINT8:
                return "DT_QINT8";
            case DT_QINT16:
                return "DT_QINT16";
            case DT_QINT32:
                return "DT_QINT32";
            case DT_QUINT8:
                return "DT_QUINT8";
            case DT_QUINT16:
                return "DT_QUINT16";
            case DT_RESOURCE:
                return "DT_RESOURCE";
            case DT_STRING_REF:
                return "DT_STRING_REF";
            case DT_DUAL:
                return "DT_DUAL";
            case DT_VARIANT:
                return "DT_VARIANT";
            case DT_BF16:
                return "DT_BF16";
            case DT_INT4:
                return "DT_INT4";
            case DT_UINT1:
                return "DT_UINT1";
            case DT_INT2:
                return "DT_INT2";
            case DT_UINT2:
                return "DT_UINT2";
            case DT_COMPLEX32:
                return "DT_COMPLEX32";
            case DT_HIFLOAT8:
                return "DT_HIFLOAT8";
            case DT_FLOAT8_E5M2:
                return "DT_FLOAT8_E5M2";
            case DT_FLOAT8_E4M3FN:
                return "DT_FLOAT8_E4M3FN";
            case DT_FLOAT8_E8M0:
                return "DT_FLOAT8_E8M0";
            case DT_FLOAT6_E3M2:
                return "DT_FLOAT6_E3M2";
            case DT_FLOAT6_E2M3:
                return "DT_FLOAT6_E2M3";
            case DT_FLOAT4_E2M1:
                return "DT_FLOAT4_E2M1";
            case DT_FLOAT4_E1M2:
                return "DT_FLOAT4_E1M2";
            default:
                return "DT_UNDEFINED";
        }
    }
    static AscendString DataTypeToAscendString(DataType type) {
        return AscendString(DataTypeToSerialString(type).c_str());
    }
};

}  // namespace ge

#endif  // ASCEND_GRAPH_GRAPH_UTILS_TYPE_UTILS_H
