// The aclnn objects' contents, private to libopapi.so.
#pragma once

#include <cstdint>
#include <vector>

struct aclTensor {
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
    int32_t dtype;
    int64_t offset;
    int32_t format;
    std::vector<int64_t> storage_sizes;
    void* storage;
};
struct aclScalar {
    int32_t dtype;
    alignas(16) unsigned char value[16];
};
struct aclIntArray {
    std::vector<int64_t> values;
};
struct aclFloatArray {
    std::vector<float> values;
};
struct aclBoolArray {
    std::vector<unsigned char> values;
};
struct aclTensorList {
    std::vector<const aclTensor*> tensors;
};
struct aclScalarList {
    std::vector<const aclScalar*> scalars;
};
