// Executors of aclnn calls and the table of kernels that operator packages bring.
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "acl/abi.h"
#include "ascend_graph/aclnn_adapter.h"
#include "opapi/dtype.h"
#include "opapi/meta.h"

using namespace ascend_graph::host;

// Owns a copy of every argument. Lists keep addresses while arguments are added, and cost nothing while
// empty.
struct aclOpExecutor {
    std::string op_type;
    KernelEntry entry;
    std::vector<Value> values;
    std::list<std::vector<int64_t>> ints;
    std::list<std::vector<float>> floats;
    std::list<std::vector<unsigned char>> bools;
    std::list<std::string> strings;
    std::list<std::vector<Tensor>> tensors;
    ascendgraphPrepared prepared{};
    void* workspace = nullptr;
    uint64_t workspace_size = 0;

    explicit aclOpExecutor(const char* type, KernelEntry kernel) : op_type(type), entry(kernel) {}
    aclOpExecutor(const aclOpExecutor&) = delete;
    aclOpExecutor& operator=(const aclOpExecutor&) = delete;
    ~aclOpExecutor() {
        if (prepared.destroy != nullptr) prepared.destroy(prepared.state);
    }

    Tensor copy(const aclTensor& source) {
        ints.push_back(source.sizes);
        const int64_t* sizes = ints.back().data();
        ints.push_back(source.strides);
        char* data = static_cast<char*>(source.storage);
        if (data != nullptr) data += source.offset * static_cast<int64_t>(item_size(source.dtype));
        return {data, source.dtype, static_cast<int32_t>(source.sizes.size()), sizes, ints.back().data()};
    }

    Value& add(ValueKind kind, uint64_t count = 0) {
        values.emplace_back();
        values.back().kind = kind;
        values.back().count = count;
        return values.back();
    }

    int missing(const char* name) const {
        return ascendgraphFail(kParamNullptr,
                               ("aclnn" + op_type + ": required parameter '" + name + "' is null").c_str());
    }
};

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

int run(void* state) {
    const auto* executor = static_cast<aclOpExecutor*>(state);
    const ascendgraphPrepared& prepared = executor->prepared;
    if (prepared.run != nullptr)
        return prepared.run(prepared.state, executor->workspace, executor->workspace_size);
    return executor->entry(executor->values.data(), executor->values.size());
}

}  // namespace

ACL_EXPORT aclOpExecutor* ascendgraphCreateExecutor(const char* op_type, KernelEntry entry) {
    return new aclOpExecutor(op_type, entry);
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
    executor->tensors.push_back({executor->copy(*tensor)});
    executor->add(ValueKind::kTensor, 1).tensors = executor->tensors.back().data();
    return 0;
}

ACL_EXPORT int ascendgraphAddTensorList(aclOpExecutor* executor, const aclTensorList* list,
                                        const char* required_name) {
    if (list == nullptr) {
        if (required_name != nullptr) return executor->missing(required_name);
        executor->add(ValueKind::kAbsent);
        return 0;
    }
    std::vector<Tensor> copies;
    for (const aclTensor* tensor : list->tensors) {
        if (tensor == nullptr)
            return executor->missing(required_name != nullptr ? required_name : "tensor list element");
        copies.push_back(executor->copy(*tensor));
    }
    executor->tensors.push_back(std::move(copies));
    const auto& kept = executor->tensors.back();
    executor->add(ValueKind::kTensorList, kept.size()).tensors = kept.data();
    return 0;
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
    executor->strings.emplace_back(value);
    executor->add(ValueKind::kString).s = executor->strings.back().c_str();
    return 0;
}
ACL_EXPORT int ascendgraphAddIntArray(aclOpExecutor* executor, const aclIntArray* array) {
    if (array == nullptr) {
        executor->add(ValueKind::kAbsent);
        return 0;
    }
    executor->ints.push_back(array->values);
    executor->add(ValueKind::kIntList, array->values.size()).ints = executor->ints.back().data();
    return 0;
}
ACL_EXPORT int ascendgraphAddFloatArray(aclOpExecutor* executor, const aclFloatArray* array) {
    if (array == nullptr) {
        executor->add(ValueKind::kAbsent);
        return 0;
    }
    executor->floats.push_back(array->values);
    executor->add(ValueKind::kFloatList, array->values.size()).floats = executor->floats.back().data();
    return 0;
}
ACL_EXPORT int ascendgraphAddBoolArray(aclOpExecutor* executor, const aclBoolArray* array) {
    if (array == nullptr) {
        executor->add(ValueKind::kAbsent);
        return 0;
    }
    executor->bools.push_back(array->values);
    executor->add(ValueKind::kBoolList, array->values.size()).bools =
        reinterpret_cast<const bool*>(executor->bools.back().data());
    return 0;
}

ACL_EXPORT int ascendgraphRunExecutor(aclOpExecutor* executor, void* stream) {
    if (executor == nullptr) return ascendgraphFail(kParamNullptr, "aclnn: the executor is null");
    if (!ascendgraphIsCapturing(stream)) {
        const std::unique_ptr<aclOpExecutor> owned(executor);
        return run(executor);
    }
    return ascendgraphEnqueue(stream, executor->op_type.c_str(), run, executor,
                              [](void* state) { delete static_cast<aclOpExecutor*>(state); });
}

ACL_EXPORT int ascendgraphPrepareExecutor(aclOpExecutor* executor, ascendgraphPrepare prepare,
                                          uint64_t* workspace_size) {
    const int error = prepare(executor->values.data(), executor->values.size(), &executor->prepared);
    if (error == 0) *workspace_size = executor->prepared.workspace_size;
    return error;
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
    if (python_caller == nullptr) {
        return ascendgraphFail(
            ACL_ERROR_API_NOT_SUPPORT,
            (std::string(op_type) + ": its kernel is a Python function, which needs a process with PyTorch")
                .c_str());
    }
    return python_caller(package_dir, op_type, values, count);
}
