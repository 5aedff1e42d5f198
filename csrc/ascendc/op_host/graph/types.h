// GE's data types and formats, as functions of operator projects name them. The numbers are GE's.
#ifndef INC_EXTERNAL_GRAPH_TYPES_H_
#define INC_EXTERNAL_GRAPH_TYPES_H_

#include <cstdint>
#include <vector>

#include "../../graph/c_types.h"
#include "../../graph/dtype_table.h"

namespace ge {

using char_t = char;
// Sizes of shapes that are not known: of a dimension, and of how many there are.
constexpr int64_t UNKNOWN_DIM = -1;
constexpr int64_t UNKNOWN_DIM_NUM = -2;
// The shape whose number of dimensions is not known.
const std::vector<int64_t> UNKNOWN_RANK = {UNKNOWN_DIM_NUM};
using float32_t = float;

enum DataType {
#define ASCEND_GRAPH_ENUMERATOR(name, number, bits, torch) DT_##name = number,
    ASCEND_GRAPH_DTYPES(ASCEND_GRAPH_ENUMERATOR)
#undef ASCEND_GRAPH_ENUMERATOR
        DT_MAX = 42
};

enum Format {
    FORMAT_NCHW = 0,
    FORMAT_NHWC = 1,
    FORMAT_ND = 2,
    FORMAT_NC1HWC0 = 3,
    FORMAT_FRACTAL_Z = 4,
    FORMAT_NC1C0HWPAD = 5,
    FORMAT_NHWC1C0 = 6,
    FORMAT_FSR_NCHW = 7,
    FORMAT_FRACTAL_DECONV = 8,
    FORMAT_C1HWNC0 = 9,
    FORMAT_FRACTAL_DECONV_TRANSPOSE = 10,
    FORMAT_FRACTAL_DECONV_SP_STRIDE_TRANS = 11,
    FORMAT_NC1HWC0_C04 = 12,
    FORMAT_FRACTAL_Z_C04 = 13,
    FORMAT_CHWN = 14,
    FORMAT_FRACTAL_DECONV_SP_STRIDE8_TRANS = 15,
    FORMAT_HWCN = 16,
    FORMAT_NC1KHKWHWC0 = 17,
    FORMAT_BN_WEIGHT = 18,
    FORMAT_FILTER_HWCK = 19,
    FORMAT_HASHTABLE_LOOKUP_LOOKUPS = 20,
    FORMAT_HASHTABLE_LOOKUP_KEYS = 21,
    FORMAT_HASHTABLE_LOOKUP_VALUE = 22,
    FORMAT_HASHTABLE_LOOKUP_OUTPUT = 23,
    FORMAT_HASHTABLE_LOOKUP_HITS = 24,
    FORMAT_C1HWNCoC0 = 25,
    FORMAT_MD = 26,
    FORMAT_NDHWC = 27,
    FORMAT_FRACTAL_ZZ = 28,
    FORMAT_FRACTAL_NZ = 29,
    FORMAT_NCDHW = 30,
    FORMAT_DHWCN = 31,
    FORMAT_NDC1HWC0 = 32,
    FORMAT_FRACTAL_Z_3D = 33,
    FORMAT_CN = 34,
    FORMAT_NC = 35,
    FORMAT_DHWNC = 36,
    FORMAT_FRACTAL_Z_3D_TRANSPOSE = 37,
    FORMAT_FRACTAL_ZN_LSTM = 38,
    FORMAT_FRACTAL_Z_G = 39,
    FORMAT_RESERVED = 40,
    FORMAT_ALL = 41,
    FORMAT_NULL = 42,
    FORMAT_ND_RNN_BIAS = 43,
    FORMAT_FRACTAL_ZN_RNN = 44,
    FORMAT_NYUV = 45,
    FORMAT_NYUV_A = 46,
    FORMAT_NCL = 47,
    FORMAT_FRACTAL_Z_WINO = 48,
    FORMAT_C1HWC0 = 49,
    FORMAT_FRACTAL_NZ_C0_16 = 50,
    FORMAT_FRACTAL_NZ_C0_32 = 51,
    FORMAT_FRACTAL_NZ_C0_2 = 52,
    FORMAT_FRACTAL_NZ_C0_4 = 53,
    FORMAT_FRACTAL_NZ_C0_8 = 54,
    FORMAT_END = 55,
    FORMAT_MAX = 0xff
};

// What is added to the number of bits where an element is not a whole number of bytes.
constexpr int kDataTypeSizeBitOffset = 1000;

// The bytes of an element; -1 for a type without a size.
inline int GetSizeByDataType(DataType type) {
    switch (static_cast<int>(type)) {
#define ASCEND_GRAPH_SIZE(name, number, bits, torch) \
    case number:                                     \
        return bits == 0 ? -1 : bits % 8 == 0 ? bits / 8 : kDataTypeSizeBitOffset + bits;
        ASCEND_GRAPH_DTYPES(ASCEND_GRAPH_SIZE)
#undef ASCEND_GRAPH_SIZE
        default:
            return -1;
    }
}

inline int64_t GetSizeInBytes(int64_t elements, DataType type) {
    const int size = GetSizeByDataType(type);
    if (elements < 0 || size < 0) return -1;
    if (size < kDataTypeSizeBitOffset) return elements * size;
    return (elements * (size - kDataTypeSizeBitOffset) + 7) / 8;
}

inline int32_t GetPrimaryFormat(int32_t format) { return format & 0xff; }
inline int32_t GetSubFormat(int32_t format) { return (format & 0xffff00) >> 8; }
inline int32_t GetFormatFromSub(int32_t primary, int32_t sub) {
    return (primary & 0xff) | ((sub & 0xffff) << 8);
}

}  // namespace ge

#endif  // INC_EXTERNAL_GRAPH_TYPES_H_
