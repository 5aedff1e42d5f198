// Sizes of ge::DataType's elements.
#pragma once

#include <cstddef>

namespace ascend_graph::host {

// Bytes of one element; sub-byte types are stored one in a byte by PyTorch's backend.
inline size_t item_size(int dtype) {
    switch (dtype) {
        case 0:
        case 3:
        case 8:
        case 20:
        case 33:
            return 4;  // float32, int32, uint32, qint32, complex32
        case 1:
        case 6:
        case 7:
        case 19:
        case 22:
        case 27:
            return 2;  // float16, int16, uint16, qint16, quint16, bfloat16
        case 9:
        case 10:
        case 11:
        case 16:
            return 8;  // int64, uint64, float64, complex64
        case 17:
            return 16;  // complex128
        default:
            return 1;
    }
}

}  // namespace ascend_graph::host
