// Executors of aclnn calls and the table of kernels that operator packages bring.
#include "opapi/executor.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "acl/abi.h"

using namespace ascend_graph::host;

extern "C" float aclFloat16ToFloat(uint16_t value);  // libascendcl.so

namespace {

struct Kernels {
    std::mutex mutex;
    std::unordered_map<std::string, KernelEntry> entries;
};
Kernels& kernels() {
    static Kernels& instance = *new Kernels;  // outlives the static objects of operator packages
    return instance;
}

ascendgraphPythonCaller python_caller = nullptr;
ascendgraphFunctionPreparer function_preparer = nullptr;

int needs_pytorch(const char* op_type) {
    return ascendgraphFail(
        ACL_ERROR_API_NOT_SUPPORT,
        (std::string(op_type) + ": its kernel is a Python function, which needs a process with PyTorch")
            .c_str());
}

int run(void* state) {
    const auto* executor = static_cast<aclOpExecutor*>(state);
    const ascendgraphPrepared& prepared = executor->prepared;
    if (prepared.run != nullptr)
        return prepared.run(prepared.state, executor->workspace, executor->workspace_size);
    return executor->entry(executor->values, executor->count);
}

// The next call that is equal may have it, or it is gone.
void done(std::unique_ptr<aclOpExecutor> executor) {
    if (KeptCall* const place = std::exchange(executor->place, nullptr)) keep(place, std::move(executor));
}

}  // namespace

ACL_EXPORT aclOpExecutor* ascendgraphCreateExecutor(const char* op_type, KernelEntry entry) {
    return new aclOpExecutor(op_type, entry);
}

ACL_EXPORT aclOpExecutor* ascendgraphCreatePrepared(const char* name, const ascendgraphPrepared* prepared) {
    auto* executor = new aclOpExecutor(name, nullptr);
    executor->never_keep();
    executor->prepared = *prepared;
    return executor;
}

ACL_EXPORT void ascendgraphDestroyExecutor(aclOpExecutor* executor) { delete executor; }
ACL_EXPORT int aclDestroyAclOpExecutor(aclOpExecutor* executor) {
    delete executor;
    return 0;
}

ACL_EXPORT int ascendgraphAddTensor(aclOpExecutor* executor, const aclTensor* tensor,
                                    const char* required_name) {
    if (tensor == nullptr) {
        if (required_name != nullptr) return executor->missing(required_name);
        executor->add(ValueKind::kAbsent);
        return 0;
    }
    auto* copied = executor->arena.allocate<Tensor>(1);
    executor->copy(*tensor, *copied);
    executor->add(ValueKind::kTensor, 1).tensors = copied;
    return 0;
}

ACL_EXPORT int ascendgraphAddTensorList(aclOpExecutor* executor, const aclTensorList* list,
                                        const char* required_name) {
    if (list == nullptr) {
        if (required_name != nullptr) return executor->missing(required_name);
        executor->add(ValueKind::kAbsent);
        return 0;
    }
    const size_t count = list->tensors.size();
    auto* copied = executor->arena.allocate<Tensor>(count);
    for (size_t n = 0; n < count; ++n) {
        if (list->tensors[n] == nullptr)
            return executor->missing(required_name != nullptr ? required_name : "tensor list element");
        executor->copy(*list->tensors[n], copied[n]);
    }
    executor->add(ValueKind::kTensorList, count).tensors = copied;
    return 0;
}

ACL_EXPORT int ascendgraphAddScalar(aclOpExecutor* executor, const aclScalar* scalar) {
    if (scalar == nullptr) {
        executor->add(ValueKind::kAbsent);
        return 0;
    }
    const auto as = [&](auto zero) {
        std::memcpy(&zero, scalar->value, sizeof zero);
        return zero;
    };
    switch (scalar->dtype) {
        case 0:
            return ascendgraphAddFloat(executor, as(float{}));
        case 1:
            return ascendgraphAddFloat(executor, aclFloat16ToFloat(as(uint16_t{})));
        case 2:
            return ascendgraphAddInt(executor, as(int8_t{}));
        case 3:
            return ascendgraphAddInt(executor, as(int32_t{}));
        case 4:
            return ascendgraphAddInt(executor, as(uint8_t{}));
        case 6:
            return ascendgraphAddInt(executor, as(int16_t{}));
        case 9:
            return ascendgraphAddInt(executor, as(int64_t{}));
        case 11:
            return ascendgraphAddFloat(executor, as(double{}));
        case 12:
            return ascendgraphAddBool(executor, as(uint8_t{}) != 0);
        default:
            return ascendgraphFail(
                kParamInvalid, (std::string("aclnn") + executor->op_type + ": an aclScalar of aclDataType " +
                                std::to_string(scalar->dtype) + " is not supported")
                                   .c_str());
    }
}
ACL_EXPORT int ascendgraphAddInt(aclOpExecutor* executor, int64_t value) {
    executor->add(ValueKind::kInt).i = value;
    return 0;
}
ACL_EXPORT int ascendgraphAddFloat(aclOpExecutor* executor, double value) {
    executor->add(ValueKind::kFloat).f = value;
    return 0;
}
ACL_EXPORT int ascendgraphAddBool(aclOpExecutor* executor, bool value) {
    executor->add(ValueKind::kBool).b = value;
    return 0;
}
ACL_EXPORT int ascendgraphAddString(aclOpExecutor* executor, const char* value) {
    if (value == nullptr) {
        executor->add(ValueKind::kAbsent);
        return 0;
    }
    executor->add(ValueKind::kString).s = executor->arena.copy(value, std::strlen(value) + 1);
    return 0;
}
ACL_EXPORT int ascendgraphAddIntArray(aclOpExecutor* executor, const aclIntArray* array) {
    if (Value* value = executor->add_array(ValueKind::kIntList, array))
        value->ints = executor->arena.copy(array->values.data(), value->count);
    return 0;
}
ACL_EXPORT int ascendgraphAddFloatArray(aclOpExecutor* executor, const aclFloatArray* array) {
    if (Value* value = executor->add_array(ValueKind::kFloatList, array))
        value->floats = executor->arena.copy(array->values.data(), value->count);
    return 0;
}
ACL_EXPORT int ascendgraphAddBoolArray(aclOpExecutor* executor, const aclBoolArray* array) {
    if (Value* value = executor->add_array(ValueKind::kBoolList, array))
        value->bools =
            reinterpret_cast<const bool*>(executor->arena.copy(array->values.data(), value->count));
    return 0;
}

ACL_EXPORT int ascendgraphRunExecutor(aclOpExecutor* executor, void* stream) {
    if (executor == nullptr) return ascendgraphFail(kParamNullptr, "aclnn: the executor is null");
    std::unique_ptr<aclOpExecutor> owned(executor);
    if (ascendgraphDeferral(stream) == nullptr) {
        const int status = run(executor);
        if (status == 0) done(std::move(owned));
        return status;
    }
    return ascendgraphEnqueue(stream, executor->op_type, run, owned.release(), [](void* state) {
        done(std::unique_ptr<aclOpExecutor>(static_cast<aclOpExecutor*>(state)));
    });
}

ACL_EXPORT int ascendgraphPrepareExecutor(aclOpExecutor* executor, ascendgraphPrepare prepare,
                                          uint64_t* workspace_size) {
    executor->never_keep();
    const int error = prepare(executor->values, executor->count, &executor->prepared);
    if (error == 0) *workspace_size = executor->prepared.workspace_size;
    return error;
}

ACL_EXPORT int ascendgraphPrepareFunction(aclOpExecutor** executor) {
    aclOpExecutor* created = *executor;
    created->never_keep();
    const int error =
        function_preparer == nullptr
            ? needs_pytorch((std::string("aclnn") + created->op_type).c_str())
            : function_preparer(created->op_type, created->values, created->count, &created->prepared);
    if (error != 0) {
        delete created;
        *executor = nullptr;
    }
    return error;
}
ACL_EXPORT void ascendgraphSetFunctionPreparer(ascendgraphFunctionPreparer preparer) {
    function_preparer = preparer;
}

ACL_EXPORT int ascendgraphRunPrepared(aclOpExecutor* executor, void* workspace, uint64_t workspace_size,
                                      void* stream) {
    if (executor != nullptr) {
        executor->workspace = workspace;
        executor->workspace_size = workspace_size;
    }
    return ascendgraphRunExecutor(executor, stream);
}

ACL_EXPORT void ascendgraphRegisterKernel(const char* op_type, KernelEntry entry) {
    std::lock_guard<std::mutex> lock(kernels().mutex);
    kernels().entries.emplace(op_type, entry);
}

ACL_EXPORT KernelEntry ascendgraphFindKernel(const char* op_type) {
    std::lock_guard<std::mutex> lock(kernels().mutex);
    auto found = kernels().entries.find(op_type);
    return found == kernels().entries.end() ? nullptr : found->second;
}

ACL_EXPORT void ascendgraphSetPythonCaller(ascendgraphPythonCaller caller) { python_caller = caller; }

ACL_EXPORT int ascendgraphCallPython(const char* package_dir, const char* op_type, const Value* values,
                                     size_t count) {
    if (python_caller == nullptr) return needs_pytorch(op_type);
    return python_caller(package_dir, op_type, values, count);
}
