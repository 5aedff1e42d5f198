// The interface of the kernel library: a matmul templated over the dtypes of its inputs and its output.
#pragma once
#include <acl/acl.h>

#include <cstdint>

namespace AscendCT {

struct KernelInfo {
    aclDataType inputDataType;
    aclDataType outputDataType;
    uint32_t m;
    uint32_t n;
    uint32_t k;
    const void* inputAddr[2];
    void* outputAddr;
};

// C[m, n] = A[m, k] * B[k, n], by rows, on `blockNum` cores. False where there is no kernel for the dtypes:
// float16, bfloat16 and float32 are multiplied into their own dtype or into float32.
bool BasicMatmul(uint32_t blockNum, aclrtStream stream, const KernelInfo& info);

}  // namespace AscendCT
