// An aclnn function that its author wrote against opbase's classes: Doubled of Doubled, in the order of
// launches.
#include <cstdlib>

#include "opbase.h"

namespace {

const ge::OpLibRegister kLibrary =
    ge::OpLibRegister("vendor").RegOpLibInit([](ge::AscendString&) -> uint32_t { std::abort(); });
const op::Resources<std::map<ge::AscendString, op::Binaries>> kSocs;
const uint32_t kId = op::GenOpTypeId("Doubled", op::Resources<op::Binaries>());

op::OpArg of(const aclTensor* tensor) {
    op::OpArg made{op::OpArgType::kTensor, {}};
    made.value.pointer = tensor;
    return made;
}
op::OpArg number(int64_t value, op::OpArgType type = op::OpArgType::kInt) {
    op::OpArg made{type, {}};
    made.value.i = value;
    return made;
}

// mode 2: an argument of a kind that no operator takes; mode 3: an operator that was not named.
const aclTensor* doubled(const aclTensor* x, int64_t mode, aclOpExecutor* executor) {
    if (op::GenOpTypeId("Doubled") != kId) return nullptr;
    const uint32_t id = mode == 3 ? 999 : op::GenOpTypeId("Doubled", kSocs);
    aclTensor* out = executor->AllocTensor(x->GetDataType(), ge::FORMAT_ND, ge::FORMAT_ND);
    if (out == nullptr) return nullptr;
    const op::OpArg attr = number(0, mode == 2 ? op::OpArgType::kMemsetWorkspace : op::OpArgType::kInt);
    op::OpArgContext* inferred = op::arguments({of(x)}, {of(out)}, {number(0)});
    const aclnnStatus status = InferShape(id, inferred->lists[0], inferred->lists[1], inferred->lists[2]);
    op::DestroyOpArgContext(inferred);
    if (status != 0) return nullptr;
    op::OpArgContext* launched = op::arguments({of(x)}, {of(out)}, {attr});
    return CreatAiCoreKernelLauncher("Doubled", id, executor, launched) == 0 ? out : nullptr;
}

}  // namespace

extern "C" aclnnStatus aclnnQuadrupledGetWorkspaceSize(const aclTensor* self, const aclIntArray* sizes,
                                                       int64_t mode, aclTensor* out, uint64_t* size,
                                                       aclOpExecutor** executor) {
    if (op::CheckPhase1Params(executor, size) != 0) return 161001;
    InitL2Phase1Context("aclnnQuadrupled", executor);
    op::internal::InitExecutorCacheThreadLocal();
    op::internal::AddParamToBuf(self);
    std::memcpy(op::internal::g_hashBuf + op::internal::g_hashOffset, &mode, sizeof mode);
    op::internal::g_hashOffset += sizeof mode;
    if (op::internal::CheckCacheable() && op::internal::GetFromCache(executor, size)) return 0;
    UniqueExecutor unique(__func__);
    if (mode == 1) {
        ReportErrorMessageInner("EZ1001", "mode of %s with %s must not be %d", ToString(self).GetString(),
                                ToString(sizes).GetString(), 1);
        return 161002;
    }
    const aclTensor* x = l0op::Contiguous(self, unique.get());
    if (x == nullptr || sizes->Size() != self->GetViewShape().rank || !op::IsContiguous(x)) return 161002;
    for (size_t axis = 0; axis < sizes->Size(); ++axis) {
        if (sizes->GetData()[axis] != x->GetViewShape().sizes[axis]) return 161002;
    }
    const aclTensor* once = doubled(x, mode, unique.get());
    const aclTensor* twice = once == nullptr ? nullptr : doubled(once, mode, unique.get());
    if (twice == nullptr || l0op::ViewCopy(twice, out, unique.get()) == nullptr) return 561103;
    *size = unique.get()->GetWorkspaceSize();
    unique.ReleaseTo(executor);
    return 0;
}
extern "C" aclnnStatus aclnnQuadrupled(void* workspace, uint64_t size, aclOpExecutor* executor,
                                       void* stream) {
    return CommonOpExecutorRun(workspace, size, executor, stream);
}
