// The executor of a hand-written aclnn function: the tensors that it makes, and the operators that it
// launches.
//
// GetWorkspaceSize runs the author's function, which notes launches; they run in the order of the stream,
// when the second function is called. Memory of the tensors between them is a part of the workspace. An
// operator of an operator package runs its author's tiling and kernel, any other the graph engine's kernel.
#ifndef ASCEND_GRAPH_OP_API_EXECUTOR_H
#define ASCEND_GRAPH_OP_API_EXECUTOR_H

// CANN's headers bring containers along that this one has no use for, and sources rely on it.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "ascend_graph/op_api/log.h"
#include "ascend_graph/op_api/objects.h"
#include "ascend_graph/op_api/platform.h"

namespace ge {
enum UnknowShapeOpType {
    DEPEND_IN_SHAPE = 1,
    DEPEND_CONST_VALUE = 2,
    DEPEND_SHAPE_RANGE = 3,
    DEPEND_COMPUTE = 4
};
}

namespace op {

enum class OpImplMode : uint32_t {
    IMPL_MODE_DEFAULT = 0x1,
    IMPL_MODE_HIGH_PERFORMANCE = 0x2,
    IMPL_MODE_HIGH_PRECISION = 0x4,
    IMPL_MODE_SUPER_PERFORMANCE = 0x8,
    IMPL_MODE_SUPPORT_OUT_OF_BOUND_INDEX = 0x10,
    IMPL_MODE_ENABLE_FLOAT32_EXECUTION = 0x20,
    IMPL_MODE_ENABLE_HI_FLOAT32_EXECUTION = 0x40,
    IMPL_MODE_KEEP_FP16 = 0x80,
    IMPL_MODE_RESERVED = 0xFFFFFFFF
};
enum class OpExecMode : uint32_t {
    OP_EXEC_MODE_DEFAULT = 0,
    OP_EXEC_MODE_HF32 = 1,
    OP_EXEC_MODE_RESERVED = 0xFFFFFFFF
};
enum CoreType { AI_CORE = 0, AI_CPU, DVPP, NO_CALC };

}  // namespace op

namespace ascend_graph::host {

// An input or output of a launch: a tensor (null where it is absent) or a list.
struct LaunchTensors {
    bool is_list = false;
    std::vector<const aclTensor*> tensors;
};
using AttrValue = std::variant<std::monostate, int64_t, double, bool, std::string, std::vector<int64_t>,
                               std::vector<float>, std::vector<unsigned char>>;

// What OP_INPUT, OP_OUTPUT and OP_ATTR collect.
struct LaunchArguments {
    std::vector<LaunchTensors> inputs, outputs;
    std::vector<AttrValue> attrs;
    std::vector<std::string> attr_names;
    bool shape_by_kernel = false;
};

inline LaunchTensors launch_tensors(const aclTensor* tensor) { return {false, {tensor}}; }
inline LaunchTensors launch_tensors(const aclTensorList* list) {
    return list == nullptr ? LaunchTensors{false, {nullptr}} : LaunchTensors{true, list->tensors};
}
inline LaunchTensors launch_tensors(std::nullptr_t) { return {false, {nullptr}}; }

template <typename T>
AttrValue launch_attr(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
        return value;
    } else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
        return static_cast<int64_t>(value);
    } else if constexpr (std::is_floating_point_v<T>) {
        return static_cast<double>(value);
    } else {
        return std::string(value);
    }
}
inline AttrValue launch_attr(const aclIntArray* array) {
    return array == nullptr ? AttrValue() : AttrValue(array->values);
}
inline AttrValue launch_attr(aclIntArray* array) {
    return launch_attr(static_cast<const aclIntArray*>(array));
}
inline AttrValue launch_attr(const aclFloatArray* array) {
    return array == nullptr ? AttrValue() : AttrValue(array->values);
}
inline AttrValue launch_attr(aclFloatArray* array) {
    return launch_attr(static_cast<const aclFloatArray*>(array));
}
inline AttrValue launch_attr(const aclBoolArray* array) {
    return array == nullptr ? AttrValue() : AttrValue(array->values);
}
inline AttrValue launch_attr(aclBoolArray* array) {
    return launch_attr(static_cast<const aclBoolArray*>(array));
}
inline AttrValue launch_attr(const std::vector<int64_t>& values) { return values; }
inline AttrValue launch_attr(const char* text) {
    return text == nullptr ? AttrValue() : AttrValue(std::string(text));
}
inline AttrValue launch_attr(char* text) { return launch_attr(static_cast<const char*>(text)); }
inline AttrValue launch_attr(std::nullptr_t) { return {}; }

// The parts of a launch, in any order; what only tunes a device is nothing here.
template <typename... T>
LaunchArguments inputs_of(const T&... values) {
    LaunchArguments collected;
    (collected.inputs.push_back(launch_tensors(values)), ...);
    return collected;
}
template <typename... T>
LaunchArguments outputs_of(const T&... values) {
    LaunchArguments collected;
    (collected.outputs.push_back(launch_tensors(values)), ...);
    return collected;
}
template <typename... T>
LaunchArguments attrs_of(const T&... values) {
    LaunchArguments collected;
    (collected.attrs.push_back(launch_attr(values)), ...);
    return collected;
}
template <typename... T>
LaunchArguments ignored_arguments(const T&...) {
    return {};
}
template <typename... T>
LaunchArguments shape_by_kernel(const T&...) {
    LaunchArguments collected;
    collected.shape_by_kernel = true;
    return collected;
}
inline void join(LaunchArguments& all, LaunchArguments part) {
    for (auto& one : part.inputs) all.inputs.push_back(std::move(one));
    for (auto& one : part.outputs) all.outputs.push_back(std::move(one));
    for (auto& one : part.attrs) all.attrs.push_back(std::move(one));
    all.shape_by_kernel |= part.shape_by_kernel;
}
inline void join(LaunchArguments&, op::CoreType) {}
inline void join(LaunchArguments& all, std::vector<std::string> attr_names) {
    all.attr_names = std::move(attr_names);
}
template <typename... T>
LaunchArguments joined(T... parts) {
    LaunchArguments all;
    (join(all, std::move(parts)), ...);
    return all;
}

struct Plan;

}  // namespace ascend_graph::host

namespace op {

struct Object {
    virtual ~Object() = default;
    static void operator delete(void* memory) { ::operator delete(memory); }
};

}  // namespace op

// The types that numbers of the host are given in. A list that is a macro, for each is a function of its own
// in CANN's library.
#define ASCEND_GRAPH_NUMBERS(declare)                                                                       \
    declare(int8_t) declare(uint8_t) declare(int16_t) declare(uint16_t) declare(int32_t) declare(uint32_t)  \
        declare(int64_t) declare(uint64_t) declare(bool) declare(float) declare(double) declare(op::fp16_t) \
            declare(op::bfloat16)

// An executor of libopapi.so that has a plan: the steps of a call, which outlive the caller's tensors. It has
// no members here, and libraries that CANN built delete it by its virtual destructor.
struct aclOpExecutor : op::Object {
    ~aclOpExecutor() override;
    aclOpExecutor(const aclOpExecutor&) = delete;
    aclOpExecutor& operator=(const aclOpExecutor&) = delete;

    aclTensor* AllocTensor(const op::Shape& shape, op::DataType type, op::Format format = ge::FORMAT_ND);
    aclTensor* AllocTensor(const op::Shape& storage, const op::Shape& original, op::DataType type,
                           op::Format storage_format, op::Format original_format);
    aclTensor* AllocTensor(op::DataType type, op::Format storage_format, op::Format original_format);
    aclTensor* AllocHostTensor(const op::Shape& shape, op::DataType type, op::Format format = ge::FORMAT_ND);
    aclTensor* CreateView(const aclTensor* tensor, const op::Shape& shape, int64_t offset);
    aclTensor* CreateView(const aclTensor* tensor, const op::Shape& original, const op::Shape& storage,
                          const op::Strides& strides, int64_t offset);

    aclIntArray* AllocIntArray(const int64_t* values, uint64_t count);
    aclFloatArray* AllocFloatArray(const float* values, uint64_t count);
    aclBoolArray* AllocBoolArray(const bool* values, uint64_t count);
    aclTensorList* AllocTensorList(const aclTensor* const* tensors, uint64_t count);
    aclScalarList* AllocScalarList(const aclScalar* const* scalars, uint64_t count);
    aclScalar* AllocScalar(const void* value, op::DataType type);
#define ASCEND_GRAPH_DECLARE(T)                                                     \
    aclTensor* AllocHostTensor(const T* values, uint64_t count, op::DataType type); \
    aclScalar* AllocScalar(T value);
    ASCEND_GRAPH_NUMBERS(ASCEND_GRAPH_DECLARE)
#undef ASCEND_GRAPH_DECLARE
    aclTensor* AllocHostTensor(const char* values, uint64_t count, op::DataType type) {
        return AllocHostTensor(reinterpret_cast<const int8_t*>(values), count, type);
    }

    const aclTensor* ConvertToTensor(const aclIntArray* array, op::DataType type);
    const aclTensor* ConvertToTensor(const aclFloatArray* array, op::DataType type);
    const aclTensor* ConvertToTensor(const aclBoolArray* array, op::DataType type);
    const aclTensor* ConvertToTensor(const aclScalar* scalar, op::DataType type);
    template <typename T>
    const aclTensor* ConvertToTensor(const T* values, uint64_t count, op::DataType type) {
        return AllocHostTensor(values, count, type);
    }

    uint64_t GetWorkspaceSize() const;
    void AbandonCache(bool = false) {}
    void AddTensorRelation(const aclTensor*, const aclTensor*) {}
    // What ends a call's first half: there is no cache here.
    void AddCache() {}
    void DeleteCache() {}

    // For the macros and functions below.
    aclnnStatus launch(const char* op_type, ascend_graph::host::LaunchArguments arguments);
    aclnnStatus copy(const aclTensor* from, const aclTensor* to);

  private:
    ascend_graph::host::Plan* plan() const;
    aclTensor* new_tensor(const op::Shape& storage, const op::Shape& original, op::DataType type,
                          op::Format storage_format, op::Format original_format);
    aclTensor* host_tensor(const void* values, uint64_t count, op::DataType from, op::DataType to,
                           bool is_scalar = false);
};

// Libraries that CANN built release the executor inline.
class UniqueExecutor : public op::Object {
  public:
    explicit UniqueExecutor(const char* function);
    UniqueExecutor(const UniqueExecutor&) = delete;
    UniqueExecutor& operator=(const UniqueExecutor&) = delete;
    aclOpExecutor* get() const { return executor_.get(); }
    aclOpExecutor* operator->() const { return executor_.get(); }
    void ReleaseTo(aclOpExecutor** executor) {
        if (executor != nullptr) *executor = executor_.release();
    }

  private:
    const char* function_;
    std::unique_ptr<aclOpExecutor> executor_;
};

aclnnStatus CommonOpExecutorRun(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                aclrtStream stream);

namespace ascend_graph::host {

// What L2_DFX_PHASE_1 checks.
aclnnStatus begin_call(const char* function, const void* executor, const void* workspace_size);
// Sets the shapes and dtypes of a launch's outputs as the operator's package says them.
aclnnStatus infer_launch(const char* op_type, const LaunchArguments& arguments);

}  // namespace ascend_graph::host

#define CREATE_EXECUTOR() UniqueExecutor(__func__)
#define OP_TYPE_REGISTER(kernelName) \
    [[maybe_unused]] inline uint32_t kernelName##OpTypeId() { return 0; }

#define OP_INPUT(...) ::ascend_graph::host::inputs_of(__VA_ARGS__)
#define OP_OUTPUT(...) ::ascend_graph::host::outputs_of(__VA_ARGS__)
#define OP_ATTR(...) ::ascend_graph::host::attrs_of(__VA_ARGS__)
#define OP_WORKSPACE(...) ::ascend_graph::host::ignored_arguments(__VA_ARGS__)
#define OP_OPTION(...) ::ascend_graph::host::ignored_arguments(__VA_ARGS__)
#define OP_MODE(...) ::ascend_graph::host::ignored_arguments(__VA_ARGS__)
#define OP_OUTSHAPE(...) ::ascend_graph::host::shape_by_kernel()
#define OP_EMPTY_ARG ::ascend_graph::host::LaunchArguments()
#define OP_ATTR_NAMES(...) std::vector<std::string>(__VA_ARGS__)

#define INFER_SHAPE(kernelName, ...) \
    ((void)kernelName##OpTypeId(),   \
     ::ascend_graph::host::infer_launch(#kernelName, ::ascend_graph::host::joined(__VA_ARGS__)))
#define ADD_TO_LAUNCHER_LIST_AICORE(kernelName, ...) \
    ((void)kernelName##OpTypeId(), (executor)->launch(#kernelName, ::ascend_graph::host::joined(__VA_ARGS__)))
#define ADD_TO_LAUNCHER_LIST_AICPU(kernelName, attrNames, ...)               \
    ([&] {                                                                   \
        (void)kernelName##OpTypeId();                                        \
        auto launch_arguments = ::ascend_graph::host::joined(__VA_ARGS__);   \
        launch_arguments.attr_names = attrNames;                             \
        return (executor)->launch(#kernelName, std::move(launch_arguments)); \
    }())

#define DFX_IN(...) 0
#define DFX_OUT(...) 0
#define L2_DFX_PHASE_1(function, in, out)                                                                    \
    do {                                                                                                     \
        const aclnnStatus dfx_status = ::ascend_graph::host::begin_call(#function, executor, workspaceSize); \
        if (dfx_status != ACLNN_SUCCESS) return dfx_status;                                                  \
    } while (false)
#define L2_DFX_PHASE_1_WITHOUT_CACHE(function, in, out) L2_DFX_PHASE_1(function, in, out)
#define L2_DFX_PHASE_2(function) \
    do {                         \
    } while (false)
#define L0_DFX(...) \
    do {            \
    } while (false)

namespace op::internal {

// Of launches on the AI CPU, which are those of any operator here.
struct AicpuTaskSpace {
    explicit AicpuTaskSpace(const std::string&, ge::UnknowShapeOpType = ge::DEPEND_IN_SHAPE, bool = false) {}
    void SetRef(size_t, bool = true) {}
};

}  // namespace op::internal
namespace op {
using internal::AicpuTaskSpace;
// Memory is the host's on both sides.
inline const aclTensor* CopyToNpu(const aclTensor* tensor, aclOpExecutor*) { return tensor; }
inline const aclTensor* CopyToNpuSync(const aclTensor* tensor, aclOpExecutor*) { return tensor; }
inline aclnnStatus CopyNpuToNpu(const aclTensor* from, const aclTensor* to, aclOpExecutor* executor) {
    return executor->copy(from, to);
}
}  // namespace op

#endif  // ASCEND_GRAPH_OP_API_EXECUTOR_H
