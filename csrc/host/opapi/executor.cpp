// Executors of aclnn calls and the table of kernels that operator packages bring.
#include "opapi/executor.h"

#include <dlfcn.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "acl/abi.h"
#include "ascend_graph/entering.h"

using namespace ascend_graph::host;

extern "C" float aclFloat16ToFloat(uint16_t value);  // libascendcl.so

namespace {

// What operator packages register, by the operators' types; the first of a type stays.
template <typename Function>
class Registered {
  public:
    void add(const char* op_type, Function function) {
        const std::lock_guard<std::mutex> lock(mutex_);
        functions_.emplace(op_type, function);
    }
    // Null where there is none.
    Function find(const char* op_type) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = functions_.find(op_type);
        return found == functions_.end() ? nullptr : found->second;
    }
    static Registered& get() {
        static Registered& instance = *new Registered;  // outlives the static objects of operator packages
        return instance;
    }

  private:
    std::mutex mutex_;
    std::unordered_map<std::string, Function> functions_;
};

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

// aclDataType's numbers.
enum : int32_t { kFloat = 0, kFloat16, kInt8, kInt32, kUint8, kInt16 = 6, kInt64 = 9, kDouble = 11, kBool };

// What a scalar holds; nothing for a dtype that no argument has.
std::optional<Value> number_of(const aclScalar& scalar) {
    const auto as = [&](auto zero) {
        std::memcpy(&zero, scalar.value, sizeof zero);
        return zero;
    };
    Value number;
    const auto integer = [&](int64_t value) {
        return number.kind = ValueKind::kInt, number.i = value, number;
    };
    const auto real = [&](double value) { return number.kind = ValueKind::kFloat, number.f = value, number; };
    switch (scalar.dtype) {
        case kFloat:
            return real(as(float{}));
        case kFloat16:
            return real(aclFloat16ToFloat(as(uint16_t{})));
        case kInt8:
            return integer(as(int8_t{}));
        case kInt32:
            return integer(as(int32_t{}));
        case kUint8:
            return integer(as(uint8_t{}));
        case kInt16:
            return integer(as(int16_t{}));
        case kInt64:
            return integer(as(int64_t{}));
        case kDouble:
            return real(as(double{}));
        case kBool:
            return number.kind = ValueKind::kBool, number.b = as(uint8_t{}) != 0, number;
        default:
            return std::nullopt;
    }
}
int no_number(const aclOpExecutor& executor, const aclScalar& scalar) {
    return ascendgraphFail(kParamInvalid, (std::string("aclnn") + executor.op_type +
                                           ": an aclScalar of aclDataType " + std::to_string(scalar.dtype) +
                                           " is not supported; expected a bool, an integer or a float")
                                              .c_str());
}

// The float whose bytes are the low half of a double with nothing above them: a caller that passes a float by
// a pointer to a function of other parameters leaves such a double. No author means a number below 2.2e-314.
std::optional<float> passed_as_float(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if (bits == 0 || bits >> 32 != 0) return std::nullopt;
    const auto low = static_cast<uint32_t>(bits);
    float number;
    std::memcpy(&number, &low, sizeof number);
    return std::isnormal(number) ? std::optional(number) : std::nullopt;
}

// Why the last first phase failed. torch_npu's EXEC_NPU_CMD_EXT does not look at its status, and calls the
// second phase with a null executor, from another thread where there is a task queue.
class LastRefusal {
  public:
    static void set(const char* op_type, const char* why) {
        const std::lock_guard lock(mutex());
        text() = std::string("aclnn") + op_type + "GetWorkspaceSize failed: " + why;
    }
    static std::string take() {
        const std::lock_guard lock(mutex());
        return std::exchange(text(), std::string());
    }

  private:
    static std::mutex& mutex() {
        static auto* const found = new std::mutex;
        return *found;
    }
    static std::string& text() {
        static auto* const found = new std::string;
        return *found;
    }
};

int add_nothing(aclOpExecutor& executor, const char* required_name) {
    if (required_name != nullptr) return executor.missing(required_name);
    executor.add(ValueKind::kAbsent);
    return 0;
}

// Numbers as a tensor of one dimension in the executor's own memory.
template <typename T>
int add_numbers(aclOpExecutor& executor, int32_t dtype, const T* values, size_t count) {
    executor.never_keep();  // no storage of the caller's holds them
    const int64_t dims[] = {static_cast<int64_t>(count), 1};
    const int64_t* const kept = executor.arena.copy(dims, 2);
    auto* tensor = executor.arena.allocate<Tensor>(1);
    *tensor = {executor.arena.copy(values, count), dtype, 1, kept, kept + 1};
    executor.add(ValueKind::kTensor, 1).tensors = tensor;
    return 0;
}
template <typename Array>
int add_array_tensor(aclOpExecutor& executor, int32_t dtype, const Array* array, const char* required_name) {
    if (array == nullptr) return add_nothing(executor, required_name);
    return add_numbers(executor, dtype, array->values.data(), array->values.size());
}
// Integers as int64; where one of them is none, all as double.
int add_scalars(aclOpExecutor& executor, const aclScalar* const* scalars, size_t count) {
    std::vector<int64_t> integers;
    std::vector<double> reals;
    bool whole = true;
    for (size_t n = 0; n < count; ++n) {
        if (scalars[n] == nullptr) return executor.missing("scalar list element");
        const std::optional<Value> number = number_of(*scalars[n]);
        if (!number) return no_number(executor, *scalars[n]);
        const bool is_real = number->kind == ValueKind::kFloat;
        integers.push_back(is_real ? 0 : number->kind == ValueKind::kInt ? number->i : number->b);
        reals.push_back(is_real ? number->f : static_cast<double>(integers.back()));
        whole = whole && !is_real;
    }
    if (whole) return add_numbers(executor, kInt64, integers.data(), count);
    return add_numbers(executor, kDouble, reals.data(), count);
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

ACL_EXPORT void* ascendgraphPreparedState(const aclOpExecutor* executor, int (*run)(void*, void*, uint64_t)) {
    return executor != nullptr && executor->prepared.run == run ? executor->prepared.state : nullptr;
}

ACL_EXPORT void ascendgraphDestroyExecutor(aclOpExecutor* executor) {
    LastRefusal::set(executor->op_type, ascendgraphKeptError());
    delete executor;
}
ACL_EXPORT int aclDestroyAclOpExecutor(aclOpExecutor* executor) {
    forget_collected(executor);
    if (executor != nullptr && executor->is_repeatable())
        const std::shared_ptr<aclOpExecutor> last =
            std::move(executor->kept);  // runs that go on have it, too
    else
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
    if (const int error = executor->copy(*tensor, *copied)) return error;
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
        if (const int error = executor->copy(*list->tensors[n], copied[n])) return error;
    }
    executor->add(ValueKind::kTensorList, count).tensors = copied;
    return 0;
}

ACL_EXPORT int ascendgraphCheckDtypes(aclOpExecutor* executor, const char* name, uint64_t listed) {
    const Value& value = executor->values[executor->count - 1];
    const size_t count = value.kind == ValueKind::kAbsent ? 0 : value.count;
    for (size_t n = 0; n < count; ++n) {
        const int32_t dtype = value.tensors[n].dtype;
        if (dtype == Tensor::kUndefined || (dtype >= 0 && dtype < 64 && (listed >> dtype & 1) != 0)) continue;
        std::string names;
        for (int32_t one = 0; one < 64; ++one) {
            if ((listed >> one & 1) != 0) names += (names.empty() ? "" : ", ") + dtype_name(one);
        }
        return ascendgraphFail(
            kParamInvalid,
            (std::string(executor->op_type) + ": " + name + " has the dtype " + dtype_name(dtype) +
             "; the prototype lists " + names + ". Convert it, or list its dtype in the prototype")
                .c_str());
    }
    return 0;
}

ACL_EXPORT int ascendgraphAddScalar(aclOpExecutor* executor, const aclScalar* scalar) {
    if (scalar == nullptr) {
        executor->add(ValueKind::kAbsent);
        return 0;
    }
    const std::optional<Value> number = number_of(*scalar);
    if (!number) return no_number(*executor, *scalar);
    executor->add(number->kind) = *number;
    return 0;
}
ACL_EXPORT int ascendgraphAddInt(aclOpExecutor* executor, int64_t value) {
    executor->add(ValueKind::kInt).i = value;
    return 0;
}
ACL_EXPORT int ascendgraphAddFloat(aclOpExecutor* executor, double value) {
    if (const std::optional<float> number = passed_as_float(value)) {
        return ascendgraphFail(
            kParamInvalid,
            (std::string("aclnn") + executor->op_type + ": parameter " + std::to_string(executor->count + 1) +
             " is a double, and the caller passed the float " + std::to_string(*number) +
             ", of which a device makes a number near 0, silently; pass a double: EXEC_NPU_CMD converts "
             "nothing")
                .c_str());
    }
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

ACL_EXPORT int ascendgraphAddIntArrayTensor(aclOpExecutor* executor, const aclIntArray* array,
                                            const char* required_name) {
    return add_array_tensor(*executor, kInt64, array, required_name);
}
ACL_EXPORT int ascendgraphAddFloatArrayTensor(aclOpExecutor* executor, const aclFloatArray* array,
                                              const char* required_name) {
    return add_array_tensor(*executor, kFloat, array, required_name);
}
ACL_EXPORT int ascendgraphAddBoolArrayTensor(aclOpExecutor* executor, const aclBoolArray* array,
                                             const char* required_name) {
    return add_array_tensor(*executor, kBool, array, required_name);
}
ACL_EXPORT int ascendgraphAddScalarTensor(aclOpExecutor* executor, const aclScalar* scalar,
                                          const char* required_name) {
    if (scalar == nullptr) return add_nothing(*executor, required_name);
    return add_scalars(*executor, &scalar, 1);
}
ACL_EXPORT int ascendgraphAddScalarListTensor(aclOpExecutor* executor, const aclScalarList* list,
                                              const char* required_name) {
    if (list == nullptr) return add_nothing(*executor, required_name);
    return add_scalars(*executor, list->scalars.data(), list->scalars.size());
}

ACL_EXPORT int ascendgraphRunExecutor(aclOpExecutor* executor, void* stream) {
    if (executor == nullptr) {
        const std::string why = LastRefusal::take();
        if (why.empty()) return fail_null(kParamNullptr, "aclnn", "the executor");
        return ascendgraphFail(kParamNullptr,
                               (why + "; write what it asks for, and look at its status").c_str());
    }
    if (executor->is_repeatable()) {
        if (const int error = one_run(executor)) return error;
    }
    std::unique_ptr<aclOpExecutor> owned(executor);
    if (ascendgraphDeferral(stream) == nullptr) {
        const int status = [&] {
            const Entering entering(executor->op_type);
            const ascend_graph::host::Kernel kernel(stream, executor->op_type);
            return run(executor);
        }();
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
    executor->prepare = prepare;
    const int error = prepare(executor->values, executor->count, &executor->prepared);
    if (error == 0) *workspace_size = executor->prepared.workspace_size;
    return error;
}

ACL_EXPORT int ascendgraphPrepareFunction(aclOpExecutor** executor) {
    aclOpExecutor* created = *executor;
    created->never_keep();
    created->is_function = true;
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
    Registered<KernelEntry>::get().add(op_type, entry);
}
ACL_EXPORT KernelEntry ascendgraphFindKernel(const char* op_type) {
    return Registered<KernelEntry>::get().find(op_type);
}
ACL_EXPORT void ascendgraphRegisterPreparer(const char* op_type, ascendgraphPrepare prepare) {
    Registered<ascendgraphPrepare>::get().add(op_type, prepare);
}
ACL_EXPORT ascendgraphPrepare ascendgraphFindPreparer(const char* op_type) {
    return Registered<ascendgraphPrepare>::get().find(op_type);
}

ACL_EXPORT void ascendgraphSetPythonCaller(ascendgraphPythonCaller caller) { python_caller = caller; }

ACL_EXPORT int ascendgraphCallPython(const char* package_dir, const char* op_type, const Value* values,
                                     size_t count) {
    if (python_caller == nullptr) return needs_pytorch(op_type);
    return python_caller(package_dir, op_type, values, count);
}
