// ge::TypeUtils: sizes and names of dtypes and formats.
#ifndef ASCEND_GRAPH_GRAPH_UTILS_TYPE_UTILS_H
#define ASCEND_GRAPH_GRAPH_UTILS_TYPE_UTILS_H

#include <map>
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
        switch (static_cast<int>(type)) {
#define ASCEND_GRAPH_NAME(name, number, bits, torch) \
    case number:                                     \
        return "DT_" #name;
            ASCEND_GRAPH_DTYPES(ASCEND_GRAPH_NAME)
#undef ASCEND_GRAPH_NAME
            default:
                return "DT_UNDEFINED";
        }
    }
    static std::string FormatToSerialString(Format format) {
        static const std::map<int32_t, const char*> names{
            {FORMAT_NCHW, "NCHW"},
            {FORMAT_NHWC, "NHWC"},
            {FORMAT_ND, "ND"},
            {FORMAT_NC1HWC0, "NC1HWC0"},
            {FORMAT_FRACTAL_Z, "FRACTAL_Z"},
            {FORMAT_NC1C0HWPAD, "NC1C0HWPAD"},
            {FORMAT_NHWC1C0, "NHWC1C0"},
            {FORMAT_FSR_NCHW, "FSR_NCHW"},
            {FORMAT_FRACTAL_DECONV, "FRACTAL_DECONV"},
            {FORMAT_C1HWNC0, "C1HWNC0"},
            {FORMAT_FRACTAL_DECONV_TRANSPOSE, "FRACTAL_DECONV_TRANSPOSE"},
            {FORMAT_FRACTAL_DECONV_SP_STRIDE_TRANS, "FRACTAL_DECONV_SP_STRIDE_TRANS"},
            {FORMAT_NC1HWC0_C04, "NC1HWC0_C04"},
            {FORMAT_FRACTAL_Z_C04, "FRACTAL_Z_C04"},
            {FORMAT_CHWN, "CHWN"},
            {FORMAT_FRACTAL_DECONV_SP_STRIDE8_TRANS, "FRACTAL_DECONV_SP_STRIDE8_TRANS"},
            {FORMAT_HWCN, "HWCN"},
            {FORMAT_NC1KHKWHWC0, "NC1KHKWHWC0"},
            {FORMAT_BN_WEIGHT, "BN_WEIGHT"},
            {FORMAT_FILTER_HWCK, "FILTER_HWCK"},
            {FORMAT_HASHTABLE_LOOKUP_LOOKUPS, "HASHTABLE_LOOKUP_LOOKUPS"},
            {FORMAT_HASHTABLE_LOOKUP_KEYS, "HASHTABLE_LOOKUP_KEYS"},
            {FORMAT_HASHTABLE_LOOKUP_VALUE, "HASHTABLE_LOOKUP_VALUE"},
            {FORMAT_HASHTABLE_LOOKUP_OUTPUT, "HASHTABLE_LOOKUP_OUTPUT"},
            {FORMAT_HASHTABLE_LOOKUP_HITS, "HASHTABLE_LOOKUP_HITS"},
            {FORMAT_C1HWNCoC0, "C1HWNCoC0"},
            {FORMAT_MD, "MD"},
            {FORMAT_NDHWC, "NDHWC"},
            {FORMAT_FRACTAL_ZZ, "FRACTAL_ZZ"},
            {FORMAT_FRACTAL_NZ, "FRACTAL_NZ"},
            {FORMAT_NCDHW, "NCDHW"},
            {FORMAT_DHWCN, "DHWCN"},
            {FORMAT_NDC1HWC0, "NDC1HWC0"},
            {FORMAT_FRACTAL_Z_3D, "FRACTAL_Z_3D"},
            {FORMAT_CN, "CN"},
            {FORMAT_NC, "NC"},
            {FORMAT_DHWNC, "DHWNC"},
            {FORMAT_FRACTAL_Z_3D_TRANSPOSE, "FRACTAL_Z_3D_TRANSPOSE"},
            {FORMAT_FRACTAL_ZN_LSTM, "FRACTAL_ZN_LSTM"},
            {FORMAT_FRACTAL_Z_G, "FRACTAL_Z_G"},
            {FORMAT_RESERVED, "RESERVED"},
            {FORMAT_ALL, "ALL"},
            {FORMAT_NULL, "NULL"},
            {FORMAT_ND_RNN_BIAS, "ND_RNN_BIAS"},
            {FORMAT_FRACTAL_ZN_RNN, "FRACTAL_ZN_RNN"},
            {FORMAT_NYUV, "NYUV"},
            {FORMAT_NYUV_A, "NYUV_A"},
            {FORMAT_NCL, "NCL"},
            {FORMAT_FRACTAL_Z_WINO, "FRACTAL_Z_WINO"},
            {FORMAT_C1HWC0, "C1HWC0"},
            {FORMAT_FRACTAL_NZ_C0_16, "FRACTAL_NZ_C0_16"},
            {FORMAT_FRACTAL_NZ_C0_32, "FRACTAL_NZ_C0_32"},
            {FORMAT_FRACTAL_NZ_C0_2, "FRACTAL_NZ_C0_2"},
            {FORMAT_FRACTAL_NZ_C0_4, "FRACTAL_NZ_C0_4"},
            {FORMAT_FRACTAL_NZ_C0_8, "FRACTAL_NZ_C0_8"},
            {FORMAT_MAX, "MAX"},
        };
        const auto found = names.find(GetPrimaryFormat(format));
        return found == names.end() ? "RESERVED" : found->second;
    }
    static AscendString FormatToAscendString(const Format& format) {
        return AscendString(FormatToSerialString(format).c_str());
    }
    static AscendString DataTypeToAscendString(const DataType& type) {
        return AscendString(DataTypeToSerialString(type).c_str());
    }
};

inline const char* GetFormatName(Format format) {
    static thread_local std::string name;
    return (name = TypeUtils::FormatToSerialString(format)).c_str();
}

}  // namespace ge

#endif  // ASCEND_GRAPH_GRAPH_UTILS_TYPE_UTILS_H
