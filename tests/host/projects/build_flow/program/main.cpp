// A program that links an operator library and CANN's by the names that documents give.
#include <cstdint>
#include <cstdio>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnn_scale_custom.h"

int main() {
    const int64_t size = 4;
    void *x = nullptr, *y = nullptr;
    if (aclnnInit(nullptr) != 0 || aclrtSetDevice(0) != 0) return 1;
    aclrtMalloc(&x, size * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&y, size * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST);
    const float values[] = {1, 2, 3, 4};
    aclrtMemcpy(x, sizeof(values), values, sizeof(values), ACL_MEMCPY_HOST_TO_DEVICE);
    aclTensor* in = aclCreateTensor(&size, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &size, 1, x);
    aclTensor* out = aclCreateTensor(&size, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &size, 1, y);
    uint64_t workspace = 0;
    aclOpExecutor* executor = nullptr;
    if (aclnnScaleCustomGetWorkspaceSize(in, out, &workspace, &executor) != 0) return 2;
    if (aclnnScaleCustom(nullptr, workspace, executor, nullptr) != 0 || aclrtSynchronizeDevice() != 0)
        return 3;
    float results[size];
    aclrtMemcpy(results, sizeof(results), y, sizeof(results), ACL_MEMCPY_DEVICE_TO_HOST);
    std::printf("%g %g %g %g\n", results[0], results[1], results[2], results[3]);
    return aclnnFinalize();
}
