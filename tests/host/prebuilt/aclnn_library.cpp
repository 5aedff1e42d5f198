// The aclnn function of the package, as CANN's generator writes it.
#include <cstddef>
#include <cstdint>

struct aclTensor;
struct aclOpExecutor;
extern "C" {
int32_t NnopbaseCreateExecutorSpace(void** space);
void* NnopbaseGetExecutor(void*, const char*, char*, uint32_t, char*, uint32_t, char*, uint32_t);
int32_t NnopbaseSetRef(void*, const size_t, const size_t);
int32_t NnopbaseAddInput(void*, const aclTensor*, const uint32_t);
int32_t NnopbaseAddOutput(void*, const aclTensor*, const uint32_t);
int32_t NnopbaseAddAttrWithDtype(void*, void*, size_t, const size_t, uint32_t);
int32_t NnopbaseRunForWorkspace(void*, uint64_t*);
int32_t NnopbaseRunWithWorkspace(void*, void*, void*, uint64_t);
}

extern "C" int32_t aclnnDoubledGetWorkspaceSize(const aclTensor* x, int64_t mode, const aclTensor* out,
                                                uint64_t* size, aclOpExecutor** executor) {
    static void* space = nullptr;
    char one[] = {1};
    if (space == nullptr) NnopbaseCreateExecutorSpace(&space);
    void* call = NnopbaseGetExecutor(space, "Doubled", one, 1, one, 1, one, 1);
    *executor = static_cast<aclOpExecutor*>(call);
    NnopbaseAddInput(call, x, 0);
    NnopbaseAddAttrWithDtype(call, &mode, sizeof mode, 0, 2);
    NnopbaseAddOutput(call, out, 0);
    return NnopbaseRunForWorkspace(call, size);
}
extern "C" int32_t aclnnDoubled(void* workspace, uint64_t size, aclOpExecutor* executor, void* stream) {
    return NnopbaseRunWithWorkspace(executor, stream, workspace, size);
}

// The same for an output that is the input, which the generated function passes for both.
extern "C" int32_t aclnnDoubledInPlaceGetWorkspaceSize(aclTensor* x_ref, int64_t mode, uint64_t* size,
                                                       aclOpExecutor** executor) {
    static void* space = nullptr;
    char one[] = {1};
    if (space == nullptr) NnopbaseCreateExecutorSpace(&space);
    void* call = NnopbaseGetExecutor(space, "DoubledInPlace", one, 1, one, 1, one, 1);
    *executor = static_cast<aclOpExecutor*>(call);
    if (int32_t error = NnopbaseSetRef(call, 0, 0)) return error;
    NnopbaseAddInput(call, x_ref, 0);
    NnopbaseAddAttrWithDtype(call, &mode, sizeof mode, 0, 2);
    NnopbaseAddOutput(call, x_ref, 0);
    return NnopbaseRunForWorkspace(call, size);
}
extern "C" int32_t aclnnDoubledInPlace(void* workspace, uint64_t size, aclOpExecutor* executor,
                                       void* stream) {
    return NnopbaseRunWithWorkspace(executor, stream, workspace, size);
}
