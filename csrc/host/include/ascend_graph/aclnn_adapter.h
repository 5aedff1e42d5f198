// What the aclnn functions of an operator package are made of.
//
// aclnn<Op>GetWorkspaceSize captures its arguments in an executor, aclnn<Op> runs it in stream order. The
// arguments are copied: the caller destroys its aclTensors as soon as the second function returns, and a
// captured graph runs later.
#ifndef ASCEND_GRAPH_ACLNN_ADAPTER_H
#define ASCEND_GRAPH_ACLNN_ADAPTER_H

#include <csignal>
#include <exception>
#include <string>
#include <tuple>
#include <type_traits>

#include "ascend_graph/aclnn_types.h"
#include "ascend_graph/host_kernel.h"
#include "ascend_graph/host_runtime.h"

extern "C" {

// Builds an executor argument by argument; libopapi.so owns the copies.
aclOpExecutor* ascendgraphCreateExecutor(const char* op_type, ascend_graph::host::KernelEntry entry);
int ascendgraphAddTensor(aclOpExecutor* executor, const aclTensor* tensor, const char* required_name);
int ascendgraphAddTensorList(aclOpExecutor* executor, const aclTensorList* tensors,
                             const char* required_name);
// Refuses the last argument if it has a tensor of a dtype whose bit (1 << aclDataType) is not in `listed`.
int ascendgraphCheckDtypes(aclOpExecutor* executor, const char* name, uint64_t listed);
int ascendgraphAddScalar(aclOpExecutor* executor, const aclScalar* value);
int ascendgraphAddInt(aclOpExecutor* executor, int64_t value);
int ascendgraphAddFloat(aclOpExecutor* executor, double value);
int ascendgraphAddBool(aclOpExecutor* executor, bool value);
int ascendgraphAddString(aclOpExecutor* executor, const char* value);
int ascendgraphAddIntArray(aclOpExecutor* executor, const aclIntArray* value);
int ascendgraphAddFloatArray(aclOpExecutor* executor, const aclFloatArray* value);
int ascendgraphAddBoolArray(aclOpExecutor* executor, const aclBoolArray* value);
// Numbers that the kernel sees as a tensor, in host memory and of the dtype that the numbers have.
int ascendgraphAddIntArrayTensor(aclOpExecutor* executor, const aclIntArray* value,
                                 const char* required_name);
int ascendgraphAddFloatArrayTensor(aclOpExecutor* executor, const aclFloatArray* value,
                                   const char* required_name);
int ascendgraphAddBoolArrayTensor(aclOpExecutor* executor, const aclBoolArray* value,
                                  const char* required_name);
int ascendgraphAddScalarTensor(aclOpExecutor* executor, const aclScalar* value, const char* required_name);
int ascendgraphAddScalarListTensor(aclOpExecutor* executor, const aclScalarList* value,
                                   const char* required_name);
void ascendgraphDestroyExecutor(aclOpExecutor* executor);
// Runs the executor in the order of `stream` and destroys it after its last run.
aclnnStatus ascendgraphRunExecutor(aclOpExecutor* executor, void* stream);

using ascendgraphPrepare = int (*)(const ascend_graph::host::Value* values, size_t count,
                                   ascendgraphPrepared* prepared);
// The same for how a call of an operator is prepared as ascendgraphRegisterKernel and ascendgraphFindKernel
// are for how it is run.
void ascendgraphRegisterPreparer(const char* op_type, ascendgraphPrepare prepare);
ascendgraphPrepare ascendgraphFindPreparer(const char* op_type);
// Prepares the executor with its arguments, which stay where they are as long as it lives.
int ascendgraphPrepareExecutor(aclOpExecutor* executor, ascendgraphPrepare prepare, uint64_t* workspace_size);
// An executor of what is prepared already.
aclOpExecutor* ascendgraphCreatePrepared(const char* name, const ascendgraphPrepared* prepared);
// The state that an executor was prepared with, if `run` runs it; null for any other executor.
void* ascendgraphPreparedState(const aclOpExecutor* executor, int (*run)(void*, void*, uint64_t));
// Prepares an executor of one of the host's own aclnn functions, by the name that it was created with. On
// failure the executor is gone, and null.
aclnnStatus ascendgraphPrepareFunction(aclOpExecutor** executor);
// ascendgraphRunExecutor for an executor that was prepared.
aclnnStatus ascendgraphRunPrepared(aclOpExecutor* executor, void* workspace, uint64_t workspace_size,
                                   void* stream);
}

namespace ascend_graph::host {

// One parameter of an aclnn function; `required_name` is null where null is allowed.
template <typename T>
struct Argument {
    const char* required_name;
    T value;
};

// A tensor or a list of them, with the dtypes that its prototype lists: bits by aclDataType.
template <typename T>
struct ListedArgument {
    Argument<T> argument;
    const char* name;
    uint64_t dtypes;
};

// The same of an input of which the function takes the values.
template <typename T>
struct NumbersArgument {
    const char* required_name;
    T value;
};

template <typename T>
int add_argument(aclOpExecutor* executor, const NumbersArgument<T>& a) {
    if constexpr (std::is_same_v<T, const aclIntArray*>)
        return ascendgraphAddIntArrayTensor(executor, a.value, a.required_name);
    else if constexpr (std::is_same_v<T, const aclFloatArray*>)
        return ascendgraphAddFloatArrayTensor(executor, a.value, a.required_name);
    else if constexpr (std::is_same_v<T, const aclBoolArray*>)
        return ascendgraphAddBoolArrayTensor(executor, a.value, a.required_name);
    else if constexpr (std::is_same_v<T, const aclScalar*>)
        return ascendgraphAddScalarTensor(executor, a.value, a.required_name);
    else {
        static_assert(std::is_same_v<T, const aclScalarList*>, "no numbers");
        return ascendgraphAddScalarListTensor(executor, a.value, a.required_name);
    }
}

template <typename T>
int add_argument(aclOpExecutor* executor, const Argument<T>& a) {
    if constexpr (std::is_same_v<T, const aclTensor*>)
        return ascendgraphAddTensor(executor, a.value, a.required_name);
    else if constexpr (std::is_same_v<T, const aclTensorList*>)
        return ascendgraphAddTensorList(executor, a.value, a.required_name);
    else if constexpr (std::is_same_v<T, const aclIntArray*>)
        return ascendgraphAddIntArray(executor, a.value);
    else if constexpr (std::is_same_v<T, const aclFloatArray*>)
        return ascendgraphAddFloatArray(executor, a.value);
    else if constexpr (std::is_same_v<T, const aclBoolArray*>)
        return ascendgraphAddBoolArray(executor, a.value);
    else if constexpr (std::is_same_v<T, char*>)
        return ascendgraphAddString(executor, a.value);
    else if constexpr (std::is_same_v<T, const aclScalar*>)
        return ascendgraphAddScalar(executor, a.value);
    else if constexpr (std::is_same_v<T, bool>)
        return ascendgraphAddBool(executor, a.value);
    else if constexpr (std::is_floating_point_v<T>)
        return ascendgraphAddFloat(executor, a.value);
    else {
        static_assert(std::is_integral_v<T>, "no aclnn parameter type");
        return ascendgraphAddInt(executor, a.value);
    }
}

template <typename T>
int add_argument(aclOpExecutor* executor, const ListedArgument<T>& a) {
    const int error = add_argument(executor, a.argument);
    return error != 0 ? error : ascendgraphCheckDtypes(executor, a.name, a.dtypes);
}

inline constexpr aclnnStatus kParamNullptr = 161001;  // ACLNN_ERR_PARAM_NULLPTR
inline constexpr aclnnStatus kParamInvalid = 161002;  // ACLNN_ERR_PARAM_INVALID

// `prepare` is null where a call needs neither preparation nor workspace.
template <typename... A>
aclnnStatus get_workspace_size(const char* op_type, KernelEntry entry, ascendgraphPrepare prepare,
                               uint64_t* workspace_size, aclOpExecutor** executor, const A&... arguments) {
    if (workspace_size == nullptr || executor == nullptr) {
        return ascendgraphFail(kParamNullptr, "workspaceSize and executor must not be null");
    }
    aclOpExecutor* created = ascendgraphCreateExecutor(op_type, entry);
    int error = 0;
    *workspace_size = 0;
    ((error = error != 0 ? error : add_argument(created, arguments)), ...);
    if (error == 0 && prepare != nullptr)
        error = ascendgraphPrepareExecutor(created, prepare, workspace_size);
    if (error != 0) {
        ascendgraphDestroyExecutor(created);
        return error;
    }
    *executor = created;
    return 0;
}

// Runs a kernel body; what it throws becomes an error of the call, and so does a fault of the processor in it
// or a body that never ends.
template <typename F>
int guarded(const char* op_type, F&& body) {
    constexpr int kInner = 561000;  // ACLNN_ERR_INNER
    struct Run {
        F& body;
        std::string failure;
    } run{body, {}};
    const auto call = [](void* p) {
        auto& run = *static_cast<Run*>(p);
        try {
            run.body();
        } catch (const std::exception& e) {
            run.failure = std::string("failed: ") + e.what();
        } catch (...) {
            run.failure = "threw no std::exception";
        }
    };
    void (*const entry)(void*) = call;
    const int ended = ascendgraphGuard(entry, &run, reinterpret_cast<const void*>(entry), 0);
    if (ended == SIGINT && ascendgraphInterruptIsRaised()) return 0;
    if (ended != 0) run.failure = ascendgraphEndText(ended);
    if (run.failure.empty()) return 0;
    return ascendgraphFail(kInner, (std::string(op_type) + ": the host kernel " + run.failure).c_str());
}

}  // namespace ascend_graph::host

#endif  // ASCEND_GRAPH_ACLNN_ADAPTER_H
