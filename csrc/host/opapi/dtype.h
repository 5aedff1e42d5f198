// Sizes of ge::DataType's elements, and where they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

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

// Whether two elements lie in a byte: int4, float4_e2m1, float4_e1m2.
inline bool is_four_bits(int dtype) { return dtype == 29 || dtype == 40 || dtype == 41; }

// Bytes before an element of a storage; nothing for one that does not begin with a byte.
inline std::optional<int64_t> byte_offset(int dtype, int64_t elements) {
    if (!is_four_bits(dtype)) return elements * static_cast<int64_t>(item_size(dtype));
    if (elements % 2 != 0) return std::nullopt;
    return elements / 2;
}

}  // namespace ascend_graph::host
