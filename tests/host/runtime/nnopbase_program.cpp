// An aclnn function as CANN's generator writes them, and the kernel that another package registers.
#include <cstring>

#include "ascend_graph/aclnn_types.h"
#include "ascend_graph/host_kernel.h"

using namespace ascend_graph::host;

extern "C" {
aclnnStatus NnopbaseCreateExecutorSpace(void** space);
void* NnopbaseGetExecutor(void*, const char*, char*, uint32_t, char*, uint32_t, char*, uint32_t);
aclnnStatus NnopbaseAddInput(void*, const aclTensor*, const uint32_t);
aclnnStatus NnopbaseAddDynamicInput(void*, const aclTensorList*, const uint32_t);
aclnnStatus NnopbaseAddOutput(void*, const aclTensor*, const uint32_t);
aclnnStatus NnopbaseAddAttrWithDtype(void*, void*, size_t, const size_t, uint32_t);
aclnnStatus NnopbaseAddIntArrayAttr(void*, const aclIntArray*, const size_t);
aclnnStatus NnopbaseAddTilingId(void*, void*);
aclnnStatus NnopbaseAddSupportList(void*, void*, uint32_t*, size_t);
aclnnStatus NnopbaseRunForWorkspace(void*, uint64_t*);
aclnnStatus NnopbaseRunWithWorkspace(void*, void*, void*, uint64_t);
}

namespace {

struct Desc {
    int32_t dtype, format;
};
struct Info {
    Desc* inputs;
    size_t input_count;
    Desc* outputs;
    size_t output_count;
};
struct Soc {
    Info* infos;
    size_t count;
};
struct List {
    Soc* socs;
    size_t count;
};
Desc inputs[] = {{0, 2}, {0, 2}}, outputs[] = {{0, 2}};
Info infos[] = {{inputs, 2, outputs, 1}};
Soc socs[] = {{infos, 1}, {infos, 1}};
List supported = {socs, 2};

// y = x * scale + bias + the sum of the ints, or -1 where the text is "negative".
int run(const Value* values, size_t count) {
    if (count != 7) return 1;
    const Tensor &x = *values[0].tensors, &y = *values[6].tensors;
    const bool has_bias = values[1].kind == ValueKind::kTensor;
    float sum = 0;
    for (size_t n = 0; n < values[4].count; ++n) sum += values[4].ints[n];
    const bool negative = values[5].kind == ValueKind::kString && std::strcmp(values[5].s, "negative") == 0;
    for (int64_t n = 0; n < x.numel(); ++n) {
        const float bias = has_bias && values[3].b ? values[1].tensors->as<float>()[n] : 0;
        y.as<float>()[n] = negative ? -1 : x.as<float>()[n] * values[2].f + bias + sum;
    }
    return 0;
}

}  // namespace

extern "C" void register_kernel() { ascendgraphRegisterKernel("NnopScale", run); }

extern "C" aclnnStatus scale_workspace(const aclTensor* x, const aclTensor* bias, double scale, bool use_bias,
                                       const aclIntArray* ints, char* mode, const aclTensor* y, uint32_t soc,
                                       uint64_t* workspace_size, void** executor) {
    static void* space = nullptr;
    char input_desc[] = {1, 0}, output_desc[] = {1}, attr_desc[] = {1, 1, 0, 0};
    uint32_t soc_list[] = {99, soc};
    int id = 0;
    float narrow = static_cast<float>(scale);
    aclnnStatus error = space == nullptr ? NnopbaseCreateExecutorSpace(&space) : 0;
    *executor = NnopbaseGetExecutor(space, "NnopScale", input_desc, 2, output_desc, 1, attr_desc, 4);
    const auto then = [&](aclnnStatus next) { error = error != 0 ? error : next; };
    then(NnopbaseAddTilingId(*executor, &id));
    then(NnopbaseAddInput(*executor, x, 0));
    then(NnopbaseAddInput(*executor, bias, 1));
    if (mode != nullptr) then(NnopbaseAddAttrWithDtype(*executor, mode, std::strlen(mode) + 1, 3, 3));
    then(NnopbaseAddAttrWithDtype(*executor, &narrow, sizeof narrow, 0, 1));
    then(NnopbaseAddAttrWithDtype(*executor, &use_bias, sizeof use_bias, 1, 0));
    if (ints != nullptr) then(NnopbaseAddIntArrayAttr(*executor, ints, 2));
    then(NnopbaseAddOutput(*executor, y, 0));
    then(NnopbaseAddSupportList(*executor, &supported, soc_list, 2));
    return error != 0 ? error : NnopbaseRunForWorkspace(*executor, workspace_size);
}

extern "C" aclnnStatus scale_run(void* executor, void* stream) {
    return NnopbaseRunWithWorkspace(executor, stream, nullptr, 0);
}

extern "C" aclnnStatus add_beyond(const aclTensor* x) {
    void* space = nullptr;
    char desc[] = {1};
    NnopbaseCreateExecutorSpace(&space);
    return NnopbaseAddInput(NnopbaseGetExecutor(space, "NnopScale", desc, 1, desc, 1, desc, 0), x, 1);
}

extern "C" aclnnStatus add_attr_of(size_t length, uint32_t type) {
    void* space = nullptr;
    char desc[16] = {};
    NnopbaseCreateExecutorSpace(&space);
    return NnopbaseAddAttrWithDtype(NnopbaseGetExecutor(space, "NnopScale", desc, 0, desc, 0, desc, 1), desc,
                                    length, 0, type);
}

extern "C" aclnnStatus aclnnNnopScaleGetWorkspaceSize(const aclTensor* x, const aclTensor* bias, double scale,
                                                      bool use_bias, const aclIntArray* ints, char* mode,
                                                      const aclTensor* out, uint64_t* workspace_size,
                                                      aclOpExecutor** executor) {
    return scale_workspace(x, bias, scale, use_bias, ints, mode, out, 2, workspace_size,
                           reinterpret_cast<void**>(executor));
}

extern "C" aclnnStatus aclnnNnopScale(void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                                      void* stream) {
    return NnopbaseRunWithWorkspace(executor, stream, workspace, workspace_size);
}
