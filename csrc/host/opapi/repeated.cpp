// Executors that run more than once, with tensors at other addresses: aclSetAclOpExecutorRepeatable.
#include <memory>
#include <string>
#include <utility>

#include "acl/abi.h"
#include "opapi/executor.h"

using namespace ascend_graph::host;

extern "C" int aclSetRawTensorAddr(aclTensor* tensor, void* address);

namespace {

constexpr int kNullInside = 561103;  // ACLNN_ERR_INNER_NULLPTR
constexpr int kInner = 561000;       // ACLNN_ERR_INNER

int set_address(const char* function, aclOpExecutor* executor, aclTensor* tensor, void* address) {
    if (executor == nullptr || tensor == nullptr)
        return fail_null(kNullInside, function, "executor or tensor");
    const std::string call = std::string(function) + ": executor of aclnn" + executor->op_type;
    if (!executor->is_repeatable()) {
        return ascendgraphFail(kParamInvalid,
                               (call + " runs once; call aclSetAclOpExecutorRepeatable first").c_str());
    }
    if (!executor->move(*tensor, address)) {
        return ascendgraphFail(kParamInvalid, (call +
                                               " does not have this aclTensor; expected one that was given "
                                               "to aclnn" +
                                               executor->op_type + "GetWorkspaceSize")
                                                  .c_str());
    }
    return aclSetRawTensorAddr(tensor, address);
}

int set_address(const char* function, aclOpExecutor* executor, aclTensorList* list, size_t index,
                void* address) {
    if (executor == nullptr || list == nullptr)
        return fail_null(kNullInside, function, "executor or tensors");
    if (index >= list->tensors.size()) {
        return ascendgraphFail(kParamInvalid,
                               (std::string(function) + ": relativeIndex is " + std::to_string(index) +
                                "; expected less than " + std::to_string(list->tensors.size()))
                                   .c_str());
    }
    return set_address(function, executor, const_cast<aclTensor*>(list->tensors[index]), address);
}

}  // namespace

ACL_EXPORT int aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
    if (executor == nullptr) return fail_null(kNullInside, "aclSetAclOpExecutorRepeatable", "executor");
    if (executor->is_repeatable()) return 0;
    if (executor->prepared.run != nullptr && executor->prepare == nullptr && !executor->is_function) {
        return ascendgraphFail(
            kInner, (std::string("aclSetAclOpExecutorRepeatable: an executor of ") + executor->op_type +
                     ", whose first phase asked a package's code, runs once on the host; call "
                     "its GetWorkspaceSize function before each run")
                        .c_str());
    }
    executor->never_keep();
    executor->kept.reset(executor);
    return 0;
}

// The index says nothing new: the tensor is the one that the first phase had.
ACL_EXPORT int aclSetTensorAddr(aclOpExecutor* executor, size_t, aclTensor* tensor, void* address) {
    return set_address("aclSetTensorAddr", executor, tensor, address);
}
ACL_EXPORT int aclSetInputTensorAddr(aclOpExecutor* executor, size_t, aclTensor* tensor, void* address) {
    return set_address("aclSetInputTensorAddr", executor, tensor, address);
}
ACL_EXPORT int aclSetOutputTensorAddr(aclOpExecutor* executor, size_t, aclTensor* tensor, void* address) {
    return set_address("aclSetOutputTensorAddr", executor, tensor, address);
}
ACL_EXPORT int aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t, size_t index, aclTensorList* list,
                                       void* address) {
    return set_address("aclSetDynamicTensorAddr", executor, list, index, address);
}
ACL_EXPORT int aclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t, size_t index,
                                            aclTensorList* list, void* address) {
    return set_address("aclSetDynamicInputTensorAddr", executor, list, index, address);
}
ACL_EXPORT int aclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t, size_t index,
                                             aclTensorList* list, void* address) {
    return set_address("aclSetDynamicOutputTensorAddr", executor, list, index, address);
}

// The same functions under the names that earlier versions of CANN have.
#define ALIAS(name, original, ...) ACL_EXPORT int name(__VA_ARGS__) __attribute__((alias(#original)))
ALIAS(AclSetTensorAddr, aclSetTensorAddr, aclOpExecutor*, size_t, aclTensor*, void*);
ALIAS(AclSetInputTensorAddr, aclSetInputTensorAddr, aclOpExecutor*, size_t, aclTensor*, void*);
ALIAS(AclSetOutputTensorAddr, aclSetOutputTensorAddr, aclOpExecutor*, size_t, aclTensor*, void*);
ALIAS(AclSetDynamicTensorAddr, aclSetDynamicTensorAddr, aclOpExecutor*, size_t, size_t, aclTensorList*,
      void*);
ALIAS(AclSetDynamicInputTensorAddr, aclSetDynamicInputTensorAddr, aclOpExecutor*, size_t, size_t,
      aclTensorList*, void*);
ALIAS(AclSetDynamicOutputTensorAddr, aclSetDynamicOutputTensorAddr, aclOpExecutor*, size_t, size_t,
      aclTensorList*, void*);
#undef ALIAS

namespace ascend_graph::host {

bool Executor::move(const aclTensor& tensor, void* address) {
    bool found = false;
    for (Source* source = sources; source != nullptr; source = source->next) {
        if (source->tensor != &tensor) continue;
        source->copy->data = address == nullptr ? nullptr : static_cast<char*>(address) + source->byte_offset;
        found = true;
    }
    return found;
}

int one_run(aclOpExecutor*& executor) {
    const aclOpExecutor& kept = *executor;
    auto run = std::make_unique<aclOpExecutor>(kept.op_type, kept.entry);
    run->never_keep();
    run->kept = kept.kept;  // has what the values below point to
    run->workspace = kept.workspace;
    run->workspace_size = kept.workspace_size;
    for (const Value* value = kept.values; value != kept.values + kept.count; ++value) {
        Value& added = run->add(value->kind) = *value;
        if (value->kind == ValueKind::kTensor || value->kind == ValueKind::kTensorList)
            added.tensors = run->arena.copy(value->tensors, value->count);
    }
    executor = run.release();
    uint64_t size = 0;
    int error = 0;
    if (kept.is_function) return ascendgraphPrepareFunction(&executor);
    if (kept.prepare != nullptr) error = ascendgraphPrepareExecutor(executor, kept.prepare, &size);
    if (error != 0) delete std::exchange(executor, nullptr);
    return error;
}

}  // namespace ascend_graph::host
