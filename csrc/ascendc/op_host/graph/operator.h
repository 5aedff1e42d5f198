// ge::Operator, as far as the signature of a SetCheckSupport function names it: those functions are not
// called.
#ifndef INC_EXTERNAL_GRAPH_OPERATOR_H_
#define INC_EXTERNAL_GRAPH_OPERATOR_H_

#include "graph/ascend_string.h"
#include "graph/ge_error_codes.h"
#include "graph/tensor.h"

namespace ge {

class Operator {};

}  // namespace ge

#endif  // INC_EXTERNAL_GRAPH_OPERATOR_H_
