// Sizes of ge::DataType's elements, and where they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "graph/dtype_table.h"

namespace ascend_graph::host {

// Bytes of one element; sub-byte types are stored one in a byte by PyTorch's backend.
inline size_t item_size(int dtype) {
    switch (dtype) {
#define ASCEND_GRAPH_SIZE(name, number, bits, torch) \
    case number:                                     \
        return bits >= 8 ? bits / 8 : 1;
        ASCEND_GRAPH_DTYPES(ASCEND_GRAPH_SIZE)
#undef ASCEND_GRAPH_SIZE
        default:
            return 1;
    }
}

// The name in a prototype, without DT_; the number of a dtype without one.
inline std::string dtype_name(int dtype) {
    switch (dtype) {
#define ASCEND_GRAPH_NAME(name, number, bits, torch) \
    case number:                                     \
        return #name;
        ASCEND_GRAPH_DTYPES(ASCEND_GRAPH_NAME)
#undef ASCEND_GRAPH_NAME
        default:
            return std::to_string(dtype);
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
