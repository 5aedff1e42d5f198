// REG_OP among the sources of op_host: the definition (OpDef) says the same, so a prototype here says nothing
// new.
#ifndef ASCEND_GRAPH_GRAPH_OPERATOR_REG_H
#define ASCEND_GRAPH_GRAPH_OPERATOR_REG_H

#include "graph/operator.h"
#include "graph/types.h"

namespace ascend_graph::host {

struct Prototype {
    const Prototype& part() const { return *this; }
};

}  // namespace ascend_graph::host

#define REG_OP(type)                                                                              \
    [[maybe_unused]] static const ::ascend_graph::host::Prototype ascend_graph_prototype_##type = \
        ::ascend_graph::host::Prototype()
#define INPUT(...) part()
#define OPTIONAL_INPUT(...) part()
#define DYNAMIC_INPUT(...) part()
#define OUTPUT(...) part()
#define DYNAMIC_OUTPUT(...) part()
#define ATTR(...) part()
#define REQUIRED_ATTR(...) part()
#define DATATYPE(...) part()
#define OP_END_FACTORY_REG(...) part();

#endif  // ASCEND_GRAPH_GRAPH_OPERATOR_REG_H
