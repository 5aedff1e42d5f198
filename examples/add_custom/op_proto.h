#include "graph/operator_reg.h"

namespace ge {

// z = x + y, elementwise, for tensors of one shape.
REG_OP(AddCustom)
    .INPUT(x, TensorType({DT_FLOAT16, DT_FLOAT, DT_INT32}))
    .INPUT(y, TensorType({DT_FLOAT16, DT_FLOAT, DT_INT32}))
    .OUTPUT(z, TensorType({DT_FLOAT16, DT_FLOAT, DT_INT32}))
    .OP_END_FACTORY_REG(AddCustom)

}  // namespace ge
