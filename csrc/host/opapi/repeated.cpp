// Executors that run more than once, with tensors at other addresses: aclSetAclOpExecutorRepeatable.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "acl/abi.h"
#include "opapi/executor.h"

using namespace ascend_graph::host;

extern "C" int aclSetRawTensorAddr(aclTensor* tensor, void* address);

namespace {

constexpr int kNullInside = 561103;  // ACLNN_ERR_INNER_NULLPTR
constexpr int kInner = 561000;       // ACLNN_ERR_INNER

// Whose count an index is: of all tensors of the first phase, or of its outputs, which are the last of them.
enum class Among { kAll, kOutputs };

// An aclTensor of the first phase: how many stand before it, without and with the absent ones and the
// numbers.
struct Place {
    size_t least;
    size_t most;
    Source* source;
};

Source* source_of(const aclOpExecutor& executor, const Tensor& copy) {
    Source* source = executor.sources;
    while (source != nullptr && source->copy != &copy) source = source->next;
    return source;
}

// In the order of the parameters; a list counts as one tensor where `lists_are_one`.
std::vector<Place> places(const aclOpExecutor& executor, const aclTensor& tensor, bool lists_are_one) {
    std::vector<Place> found;
    size_t least = 0, most = 0;
    for (const Value* value = executor.values; value != executor.values + executor.count; ++value) {
        const bool has_tensors = value->kind == ValueKind::kTensor || value->kind == ValueKind::kTensorList;
        if (!has_tensors && value->kind != ValueKind::kAbsent) continue;
        const size_t before = most;
        for (size_t n = 0; has_tensors && n < value->count; ++n) {
            Source* const source = source_of(executor, value->tensors[n]);
            if (source != nullptr && source->tensor == &tensor) found.push_back({least, most, source});
            if (lists_are_one && n + 1 < value->count) continue;
            least += source != nullptr;
            ++most;
        }
        if (most == before) ++most;
    }
    return found;
}

bool fits(const OutputsFrom& outputs, const Place& place, size_t index, Among among) {
    if (among == Among::kAll) return place.least <= index && index <= place.most;
    return index <= place.most && place.most - index >= outputs.least && place.least <= index + outputs.most;
}

int other_index(const std::string& call, size_t index, const Place& place, Among among) {
    const bool is_output = among == Among::kOutputs;
    const std::string where =
        std::to_string(place.least) + (place.most == place.least ? "" : " to " + std::to_string(place.most));
    return ascendgraphFail(
        kParamInvalid,
        (call + ": the index is " + std::to_string(index) + ", but this aclTensor has the index " + where +
         (is_output ? " of all tensors, which does not agree with the outputs that were set before" : "") +
         "; pass the aclTensor that the index means: a package on a device moves the tensor at the index, "
         "whichever is given")
            .c_str());
}

int set_address(const char* function, aclOpExecutor* executor, size_t index, Among among, aclTensor* tensor,
                void* address, bool is_of_list = false) {
    if (executor == nullptr || tensor == nullptr)
        return fail_null(kNullInside, function, "executor or tensor");
    const std::string call = std::string(function) + ": executor of aclnn" + executor->op_type;
    if (!executor->is_repeatable()) {
        return ascendgraphFail(kParamInvalid,
                               (call + " runs once; call aclSetAclOpExecutorRepeatable first").c_str());
    }
    const std::vector<Place> found = places(*executor, *tensor, is_of_list);
    if (found.empty()) {
        return ascendgraphFail(kParamInvalid, (call +
                                               " does not have this aclTensor; expected one that was given "
                                               "to aclnn" +
                                               executor->op_type + "GetWorkspaceSize")
                                                  .c_str());
    }
    bool moved = false;
    OutputsFrom& outputs = is_of_list ? executor->output_lists_from : executor->outputs_from;
    for (const Place& place : found) {
        const bool is_meant = fits(outputs, place, index, among);
        // CANN's own functions know an aclTensor that was given twice by its object, packages by its index.
        if (!is_meant && !executor->is_function) continue;
        place.source->move(address);
        moved |= is_meant;
        if (is_meant && among == Among::kOutputs)
            outputs.narrow(place.least > index ? place.least - index : 0, place.most - index);
    }
    if (!moved) return other_index(call, index, found.front(), among);
    return aclSetRawTensorAddr(tensor, address);
}

int set_address(const char* function, aclOpExecutor* executor, size_t ir_index, size_t index, Among among,
                aclTensorList* list, void* address) {
    if (executor == nullptr || list == nullptr)
        return fail_null(kNullInside, function, "executor or tensors");
    if (index >= list->tensors.size()) {
        return ascendgraphFail(kParamInvalid,
                               (std::string(function) + ": relativeIndex is " + std::to_string(index) +
                                "; expected less than " + std::to_string(list->tensors.size()))
                                   .c_str());
    }
    return set_address(function, executor, ir_index, among, const_cast<aclTensor*>(list->tensors[index]),
                       address, true);
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

ACL_EXPORT int aclSetTensorAddr(aclOpExecutor* executor, size_t index, aclTensor* tensor, void* address) {
    return set_address("aclSetTensorAddr", executor, index, Among::kAll, tensor, address);
}
ACL_EXPORT int aclSetInputTensorAddr(aclOpExecutor* executor, size_t index, aclTensor* tensor,
                                     void* address) {
    return set_address("aclSetInputTensorAddr", executor, index, Among::kAll, tensor, address);
}
ACL_EXPORT int aclSetOutputTensorAddr(aclOpExecutor* executor, size_t index, aclTensor* tensor,
                                      void* address) {
    return set_address("aclSetOutputTensorAddr", executor, index, Among::kOutputs, tensor, address);
}
ACL_EXPORT int aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t ir_index, size_t index,
                                       aclTensorList* list, void* address) {
    return set_address("aclSetDynamicTensorAddr", executor, ir_index, index, Among::kAll, list, address);
}
ACL_EXPORT int aclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t ir_index, size_t index,
                                            aclTensorList* list, void* address) {
    return set_address("aclSetDynamicInputTensorAddr", executor, ir_index, index, Among::kAll, list, address);
}
ACL_EXPORT int aclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t ir_index, size_t index,
                                             aclTensorList* list, void* address) {
    return set_address("aclSetDynamicOutputTensorAddr", executor, ir_index, index, Among::kOutputs, list,
                       address);
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
