// Executors of aclnn calls and the table of kernels that operator packages bring.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "acl/abi.h"
#include "ascend_graph/aclnn_adapter.h"
#include "opapi/dtype.h"
#include "opapi/meta.h"

using namespace ascend_graph::host;

extern "C" float aclFloat16ToFloat(uint16_t value);  // libascendcl.so

namespace {

// Memory for the copies of one call's arguments: a block of its own that most calls fit into, then the heap.
class Arena {
  public:
    Arena() = default;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    // Not initialised.
    template <typename T>
    T* allocate(size_t count) {
        static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
        const size_t size = (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
        if (size > static_cast<size_t>(end_ - next_)) {
            const size_t block = std::max(size, sizeof(own_));
            next_ = more_.emplace_back(new char[block]).get();
            end_ = next_ + block;
        }
        T* allocated = reinterpret_cast<T*>(next_);
        next_ += size;
        return allocated;
    }

    template <typename T>
    T* copy(const T* values, size_t count) {
        T* copied = allocate<T>(count);
        std::copy_n(values, count, copied);
        return copied;
    }

  private:
    static constexpr size_t kAlignment = alignof(std::max_align_t);
    // With it the executor stays below the sizes that malloc serves at once from a thread's cache.
    alignas(kAlignment) char own_[768];
    char* next_ = own_;
    char* end_ = own_ + sizeof(own_);
    std::vector<std::unique_ptr<char[]>> more_;
};

}  // namespace

// Owns a copy of every argument.
struct aclOpExecutor {
    aclOpExecutor(const char* name, KernelEntry kernel)
        : entry(kernel), op_type(arena.copy(name, std::strlen(name) + 1)) {}
    aclOpExecutor(const aclOpExecutor&) = delete;
    aclOpExecutor& operator=(const aclOpExecutor&) = delete;
    ~aclOpExecutor() {
        if (prepared.destroy != nullptr) prepared.destroy(prepared.state);
    }

    Arena arena;
    KernelEntry entry;
    const char* op_type;
    Value* values = nullptr;
    size_t count = 0;
    size_t capacity = 0;
    ascendgraphPrepared prepared{};
    void* workspace = nullptr;
    uint64_t workspace_size = 0;

    void copy(const aclTensor& source, Tensor& target) {
        const auto* dims = arena.copy(source.sizes(), 2 * source.rank);
        char* data = static_cast<char*>(source.storage);
        if (data != nullptr) data += source.offset * static_cast<int64_t>(item_size(source.dtype));
        target = {data, source.dtype, static_cast<int32_t>(source.rank), dims, dims + source.rank};
    }

    Value& add(ValueKind kind, uint64_t length = 0) {
        if (count == capacity) {
            capacity = std::max<size_t>(8, 2 * capacity);
            auto* grown = arena.allocate<Value>(capacity);
            std::copy_n(values, count, grown);
            values = grown;
        }
        Value& added = values[count++] = Value{};
        added.kind = kind;
        added.count = length;
        return added;
    }

    // Null where the array is: an absent argument.
    template <typename Array>
    Value* add_array(ValueKind kind, const Array* array) {
        if (array != nullptr) return &add(kind, array->values.size());
        add(ValueKind::kAbsent);
        return nullptr;
    }

    int missing(const char* name) const {
        return ascendgraphFail(
            kParamNullptr,
            (std::string("aclnn") + op_type + ": required parameter '" + name + "' is null").c_str());
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
    if (ascendgraphDeferral(stream) == nullptr) {
        const std::unique_ptr<aclOpExecutor> owned(executor);
        return run(executor);
    }
    return ascendgraphEnqueue(stream, executor->op_type, run, executor,
                              [](void* state) { delete static_cast<aclOpExecutor*>(state); });
}

ACL_EXPORT int ascendgraphPrepareExecutor(aclOpExecutor* executor, ascendgraphPrepare prepare,
                                          uint64_t* workspace_size) {
    const int error = prepare(executor->values, executor->count, &executor->prepared);
    if (error == 0) *workspace_size = executor->prepared.workspace_size;
    return error;
}

ACL_EXPORT int ascendgraphPrepareFunction(aclOpExecutor** executor) {
    aclOpExecutor* created = *executor;
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
