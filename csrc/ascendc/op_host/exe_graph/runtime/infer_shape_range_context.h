// gert::InferShapeRangeContext, as far as InferShapeRange functions name it: the host runtime knows every
// shape when it runs a node, and does not call them.
#ifndef ASCEND_GRAPH_GERT_INFER_SHAPE_RANGE_CONTEXT_H
#define ASCEND_GRAPH_GERT_INFER_SHAPE_RANGE_CONTEXT_H

#include "exe_graph/runtime/extended_kernel_context.h"
#include "exe_graph/runtime/range.h"

namespace gert {

class InferShapeRangeContext : public ExtendedKernelContext {
  public:
    using ExtendedKernelContext::ExtendedKernelContext;

    const Range<Shape>* GetInputShapeRange(size_t) const { return nullptr; }
    const Range<Shape>* GetOptionalInputShapeRange(size_t) const { return nullptr; }
    const Range<Shape>* GetDynamicInputShapeRange(size_t, size_t) const { return nullptr; }
    Range<Shape>* GetOutputShapeRange(size_t) { return nullptr; }
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_INFER_SHAPE_RANGE_CONTEXT_H
