#include "graph/operator_reg.h"

namespace ge {
REG_OP(BasicMatmul)
    .INPUT(mat1, TensorType({DT_FLOAT16, DT_BF16, DT_FLOAT}))
    .INPUT(mat2, TensorType({DT_FLOAT16, DT_BF16, DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT16, DT_BF16, DT_FLOAT}))
    .REQUIRED_ATTR(outDType, String)
    .OP_END_FACTORY_REG(BasicMatmul);
}  // namespace ge
