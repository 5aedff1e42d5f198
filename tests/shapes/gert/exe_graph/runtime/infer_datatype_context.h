#pragma once

#include "exe_graph/runtime/infer_shape_context.h"

namespace gert {

class InferDataTypeContext : public Context {
  public:
    ge::DataType GetInputDataType(size_t n) const { return input_types[n]; }
    ge::DataType GetOptionalInputDataType(size_t n) const {
        return present[n] ? input_types[n] : ge::DT_UNDEFINED;
    }
    ge::graphStatus SetOutputDataType(size_t n, ge::DataType type) {
        output_types[n] = type;
        return ge::GRAPH_SUCCESS;
    }
};

}  // namespace gert
