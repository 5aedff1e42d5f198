#include <cstdio>
#include <initializer_list>

#include "acl/acl.h"
#define CHECK(e)                                                        \
    do {                                                                \
        if (!(e)) {                                                     \
            const char* m = aclGetRecentErrMsg();                       \
            std::printf("line %d: %s: %s\n", __LINE__, #e, m ? m : ""); \
            return 1;                                                   \
        }                                                               \
    } while (0)
int main(int, char** argv) {
    CHECK(aclInit(nullptr) == 0 && aclrtSetDevice(0) == 0);
    aclrtStream stream = nullptr;
    CHECK(aclrtCreateStream(&stream) == 0);
    aclrtBinHandle binary = nullptr, same = nullptr;
    aclrtFuncHandle kernel = nullptr;
    // A device binary is refused by name, and what is no binary.
    CHECK(aclrtBinaryLoadFromFile(argv[2], nullptr, &binary) == 200001);
    CHECK(aclrtBinaryLoadFromFile(argv[3], nullptr, &binary) == 107000);
    CHECK(aclrtBinaryLoadFromFile(argv[1], nullptr, &binary) == 0);
    CHECK(aclrtBinaryGetFunction(binary, "subtract", &kernel) == 107000);
    CHECK(aclrtBinaryGetFunction(binary, "add_number", &kernel) == 0);
    char name[16];
    size_t count = 0, offset = 0, size = 0;
    CHECK(aclrtGetFunctionName(kernel, sizeof(name), name) == 0 && name[0] == 'a');
    CHECK(aclrtFunctionGetParamCount(kernel, &count) == 0 && count == 4);
    CHECK(aclrtFunctionGetParamInfo(kernel, 3, &offset, &size) == 0 && offset == 24 && size == 4);
    CHECK(aclrtFunctionGetBinary(kernel, &same) == 0 && same == binary);
    float* x = nullptr;
    float* number = nullptr;
    CHECK(aclrtMalloc(reinterpret_cast<void**>(&x), 64, ACL_MEM_MALLOC_HUGE_FIRST) == 0);
    CHECK(aclrtMalloc(reinterpret_cast<void**>(&number), 64, ACL_MEM_MALLOC_HUGE_FIRST) == 0);
    for (int i = 0; i < 8; ++i) x[i] = static_cast<float>(i);
    *number = 10;
    int16_t times = 2;
    float rest = 0.5F;
    void* values[] = {&x, &number, &times, &rest};
    CHECK(aclrtLaunchKernelWithArgsArray(kernel, 8, stream, nullptr, values) == 0);
    CHECK(aclrtSynchronizeStream(stream) == 0 && x[0] == 20.5F && x[7] == 27.5F);
    // A kernel with the name of a function of the C library is the kernel.
    aclrtFuncHandle quotient = nullptr;
    CHECK(aclrtBinaryGetFunction(binary, "div", &quotient) == 0);
    CHECK(aclrtLaunchKernelWithArgsArray(quotient, 8, stream, nullptr, values) == 0);
    CHECK(aclrtSynchronizeStream(stream) == 0 && x[0] == 2.05F && x[7] == 2.75F);
    for (int i = 0; i < 8; ++i) x[i] *= 10;
    // A list, whose second argument is an address of memory that the list holds.
    aclrtArgsHandle list = nullptr;
    aclrtParamHandle parameter = nullptr, placeholder = nullptr;
    float* held = nullptr;
    CHECK(aclrtKernelArgsInit(kernel, &list) == 0);
    CHECK(aclrtKernelArgsAppend(list, &x, sizeof(x), &parameter) == 0);
    CHECK(aclrtKernelArgsAppendPlaceHolder(list, &placeholder) == 0);
    CHECK(aclrtKernelArgsAppend(list, &times, sizeof(times), &parameter) == 0);
    CHECK(aclrtLaunchKernelWithConfig(kernel, 1, stream, nullptr, list, nullptr) == 107000);
    CHECK(aclrtKernelArgsAppend(list, &rest, sizeof(rest), &parameter) == 0);
    CHECK(aclrtKernelArgsGetPlaceHolderBuffer(list, parameter, 64, reinterpret_cast<void**>(&held)) ==
          107000);
    CHECK(aclrtKernelArgsGetPlaceHolderBuffer(list, placeholder, 64, reinterpret_cast<void**>(&held)) == 0);
    *held = 100;
    rest = 0.25F;
    CHECK(aclrtKernelArgsParaUpdate(list, parameter, &rest, sizeof(rest)) == 0 &&
          aclrtKernelArgsFinalize(list) == 0);
    CHECK(aclrtLaunchKernelWithConfig(kernel, 1, stream, nullptr, list, nullptr) == 0);
    CHECK(aclrtSynchronizeStream(stream) == 0 && x[0] == 220.75F && x[7] == 27.5F);
    // Captured, it runs at each replay, and the binary lives as long.
    struct {
        float* x;
        float* number;
        int64_t times;
        float rest;
    } bytes = {x, number, 1, 0};
    aclmdlRI model = nullptr;
    CHECK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) == 0);
    CHECK(aclrtLaunchKernelWithHostArgs(kernel, 1, stream, nullptr, &bytes, sizeof(bytes), nullptr, 0) == 0);
    for (const uint32_t blocks : {0u, 65536u})
        CHECK(aclrtLaunchKernel(kernel, blocks, &bytes, sizeof(bytes), stream) == 107000);
    CHECK(aclmdlRICaptureEnd(stream, &model) == 0 && x[0] == 220.75F && aclrtBinaryUnLoad(binary) == 0);
    for (int i = 0; i < 2; ++i) CHECK(aclmdlRIExecuteAsync(model, stream) == 0);
    CHECK(aclrtSynchronizeStream(stream) == 0 && x[0] == 240.75F && aclmdlRIDestroy(model) == 0);
    CHECK(aclrtBinaryUnLoad(binary) == 107000 &&
          aclrtLaunchKernel(kernel, 1, &bytes, sizeof(bytes), stream) == 107000);
    CHECK(aclrtGetFuncBySymbol(&bytes, &kernel) == 107000);
    std::puts("ok");
}
