// GE's data types and formats as C has them: headers of tiling keys name them, which tiling functions and
// kernels include.
#ifndef INC_EXTERNAL_GRAPH_C_TYPES_H_
#define INC_EXTERNAL_GRAPH_C_TYPES_H_

#include "dtype_table.h"

enum C_DataType {
#define ASCEND_GRAPH_ENUMERATOR(name, number, bits, torch) C_DT_##name = number,
    ASCEND_GRAPH_DTYPES(ASCEND_GRAPH_ENUMERATOR)
#undef ASCEND_GRAPH_ENUMERATOR
};
enum C_Format {
    C_FORMAT_NCHW = 0,
    C_FORMAT_NHWC = 1,
    C_FORMAT_ND = 2,
    C_FORMAT_NC1HWC0 = 3,
    C_FORMAT_FRACTAL_NZ = 29
};

#endif  // INC_EXTERNAL_GRAPH_C_TYPES_H_
