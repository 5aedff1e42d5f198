// The aclnn objects as libopapi.so has them: their contents alone.
#pragma once

#include <cstdint>
#include <vector>

#include "ascend_graph/aclnn_objects.h"

struct aclTensor : ascend_graph::host::TensorObject {
    using TensorObject::TensorObject;

    static aclTensor* create(uint64_t rank, uint64_t kept_rank) {
        return ascend_graph::host::create_tensor<aclTensor>(rank, kept_rank);
    }
};
struct aclScalar : ascend_graph::host::ScalarObject {};
struct aclIntArray : ascend_graph::host::ArrayObject<int64_t> {};
struct aclFloatArray : ascend_graph::host::ArrayObject<float> {};
struct aclBoolArray : ascend_graph::host::ArrayObject<unsigned char> {};
struct aclTensorList {
    std::vector<const aclTensor*> tensors;
};
struct aclScalarList {
    std::vector<const aclScalar*> scalars;
};
