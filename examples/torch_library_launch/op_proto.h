#include "graph/operator_reg.h"

namespace ge {
REG_OP(AddCustom)
    .INPUT(x, TensorType({DT_FLOAT16}))
    .INPUT(y, TensorType({DT_FLOAT16}))
    .OUTPUT(z, TensorType({DT_FLOAT16}))
    .OP_END_FACTORY_REG(AddCustom);
}  // namespace ge
