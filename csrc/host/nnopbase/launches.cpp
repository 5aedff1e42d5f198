// Launches of hand-written aclnn functions in libraries of packages that CANN built: their arguments are read
// here, and run as those of functions that are compiled from sources are (op_api.cpp).
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ascend_graph/aclnn_adapter.h"
#include "nnopbase/arguments.h"

using namespace ascend_graph::host;

// libopapi.so: 0 where the operator's kernel is there, or nobody says that it should be.
extern "C" int ascendgraphNeedKernel(const char* op_type, const void* caller);

namespace op {

void* Allocated(size_t size) { return std::malloc(size); }
void DeAllocated(void* memory) { std::free(memory); }

namespace {

char* copied(const char* text) { return text == nullptr ? nullptr : strdup(text); }

}  // namespace

OpArgValue::OpArgValue(const char* text) : pointer(copied(text)), free(std::free) {}
OpArgValue::OpArgValue(const std::string& text) : OpArgValue(text.c_str()) {}
OpArgValue::OpArgValue(const std::string* text) : OpArgValue(text == nullptr ? nullptr : text->c_str()) {}

void DestroyOpArgContext(OpArgContext* context) {
    if (context == nullptr) return;
    for (const OpArgList& list : context->lists) {
        for (size_t i = 0; i < list.count; ++i) {
            const OpArg& one = list.args[i];
            if (one.type == OpArgType::kString && one.value.free != nullptr)
                one.value.free(one.value.pointer);
        }
    }
    DeAllocated(context);
}

namespace {

// Types of operators by their ids; an id is the place of its type plus one, as 0 is none.
class OperatorTypes {
  public:
    uint32_t id_of(const std::string& type) {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (size_t i = 0; i < types_.size(); ++i) {
            if (types_[i] == type) return static_cast<uint32_t>(i + 1);
        }
        types_.push_back(type);
        return static_cast<uint32_t>(types_.size());
    }
    // Null for an id that was not given out.
    const char* type_of(uint32_t id) {
        const std::lock_guard<std::mutex> lock(mutex_);
        return id == 0 || id > types_.size() ? nullptr : types_[id - 1].c_str();
    }
    static OperatorTypes& get() {
        static auto& types = *new OperatorTypes;
        return types;
    }

  private:
    std::mutex mutex_;
    std::deque<std::string> types_;  // addresses stay as they are
};

template <typename T>
const T* object(const OpArg& argument) {
    return static_cast<const T*>(argument.value.pointer);
}

AttrValue number_of(const aclScalar* scalar) {
    if (scalar == nullptr) return {};
    if (scalar->GetDataType() == ge::DT_BOOL) return scalar->ToBool();
    if (IsIntegralType(scalar->GetDataType())) return scalar->ToInt64();
    return scalar->ToDouble();
}

// Reads the arguments of one launch; the first that cannot be read is said, once.
class Reader {
  public:
    Reader(const char* type, aclOpExecutor* executor) : type_(type), executor_(executor) {}

    std::vector<LaunchTensors> tensors(const OpArgList& list, const char* side) {
        std::vector<LaunchTensors> read;
        for (size_t i = 0; i < list.count; ++i) read.push_back(tensors(list.args[i], side, i));
        return read;
    }
    std::vector<AttrValue> attrs(const OpArgList& list) {
        std::vector<AttrValue> read;
        for (size_t i = 0; i < list.count; ++i) read.push_back(attr(list.args[i], i));
        return read;
    }
    bool failed() const { return failed_; }

  private:
    LaunchTensors tensors(const OpArg& argument, const char* side, size_t index) {
        switch (argument.type) {
            case OpArgType::kTensor:
                return launch_tensors(object<aclTensor>(argument));
            case OpArgType::kTensorList:
                return launch_tensors(object<aclTensorList>(argument));
            case OpArgType::kIntList:
                if (executor_ != nullptr)
                    return launch_tensors(
                        executor_->ConvertToTensor(object<aclIntArray>(argument), ge::DT_INT64));
                break;
            case OpArgType::kScalar:
                if (executor_ != nullptr && argument.value.pointer != nullptr) {
                    const auto* scalar = object<aclScalar>(argument);
                    return launch_tensors(executor_->ConvertToTensor(scalar, scalar->GetDataType()));
                }
                break;
            default:
                break;
        }
        report_kind(side, index, argument, "a tensor, a list of tensors, an array of integers or a scalar");
        return launch_tensors(nullptr);
    }

    AttrValue attr(const OpArg& argument, size_t index) {
        switch (argument.type) {
            case OpArgType::kString:
                return launch_attr(static_cast<const char*>(argument.value.pointer));
            case OpArgType::kBool:
                return argument.value.u != 0;
            case OpArgType::kInt:
            case OpArgType::kUint:
            case OpArgType::kDataType:
                return argument.value.i;
            case OpArgType::kFloat:
                return static_cast<double>(argument.value.f);
            case OpArgType::kDouble:
                return argument.value.d;
            case OpArgType::kScalar:
                return number_of(object<aclScalar>(argument));
            case OpArgType::kIntList:
                return launch_attr(object<aclIntArray>(argument));
            case OpArgType::kFloatList:
                return launch_attr(object<aclFloatArray>(argument));
            case OpArgType::kBoolList:
                return launch_attr(object<aclBoolArray>(argument));
            default:
                report_kind("attr", index, argument, "a number, a text or an array");
                return {};
        }
    }

    void report_kind(const char* side, size_t index, const OpArg& argument, const char* expected) {
        if (!failed_)
            OP_LOGE(ACLNN_ERR_INNER, "%s: %s %zu of the launch has the OpArgType %d; expected %s", type_,
                    side, index, static_cast<int>(argument.type), expected);
        failed_ = true;
    }

    const char* type_;
    aclOpExecutor* executor_;
    bool failed_ = false;
};

// Null, with an error, for an id that GenOpTypeId did not return.
const char* type_of(uint32_t id) {
    const char* const type = OperatorTypes::get().type_of(id);
    if (type == nullptr)
        OP_LOGE(ACLNN_ERR_INNER, "the operator type id %u is not one that GenOpTypeId returned", id);
    return type;
}

aclnnStatus need_kernel(const char* type, const void* caller) {
    const aclnnStatus missing = ascendgraphNeedKernel(type, caller);
    if (missing != 0) log_text(DLOG_ERROR, ascendgraphRecentError());  // authors report more after it
    return missing;
}

aclnnStatus launch(uint32_t id, aclOpExecutor* executor, OpArgContext* context, const void* caller,
                   std::vector<std::string> attr_names) {
    const std::unique_ptr<OpArgContext, void (*)(OpArgContext*)> owned(context, DestroyOpArgContext);
    const char* const type = type_of(id);
    if (type == nullptr) return ACLNN_ERR_INNER;
    if (context == nullptr || executor == nullptr) {
        OP_LOGE(ACLNN_ERR_INNER_NULLPTR, "%s: a launch needs an executor and arguments", type);
        return ACLNN_ERR_INNER_NULLPTR;
    }
    if (const int missing = need_kernel(type, caller)) return missing;
    Reader reader(type, executor);
    LaunchArguments arguments;
    arguments.inputs = reader.tensors(context->lists[OpArgContext::kInputs], "input");
    arguments.outputs = reader.tensors(context->lists[OpArgContext::kOutputs], "output");
    arguments.attrs = reader.attrs(context->lists[OpArgContext::kAttrs]);
    arguments.attr_names = std::move(attr_names);
    arguments.shape_by_kernel = context->lists[OpArgContext::kOutputShapes].count != 0;
    return reader.failed() ? ACLNN_ERR_INNER : executor->launch(type, std::move(arguments));
}

}  // namespace

// With the host functions and the device's binaries that a library carries, which are found in the package's
// files here: by the operators' types, for one SoC or by SoCs.
using Handles = std::vector<void*>;
using Binaries = std::vector<std::tuple<const uint8_t*, const uint8_t*>>;
using Resources = std::map<ge::AscendString, std::tuple<Handles, Binaries, Binaries>>;
using ResourcesOfSocs =
    std::map<ge::AscendString, std::tuple<Handles, std::map<ge::AscendString, Binaries>, Binaries>>;

uint32_t GenOpTypeId(const char* type);
uint32_t GenOpTypeId(const char* type, const Resources&) { return GenOpTypeId(type); }
uint32_t GenOpTypeId(const char* type, const ResourcesOfSocs&) { return GenOpTypeId(type); }
uint32_t GenOpTypeId(const char* type) { return OperatorTypes::get().id_of(type == nullptr ? "" : type); }

namespace internal {

aclnnStatus CreatAicpuKernelLauncher(uint32_t id, AicpuTaskSpace&, aclOpExecutor* executor,
                                     const FVector<std::string>& attr_names, OpArgContext* context) {
    return launch(id, executor, context, __builtin_return_address(0), {attr_names.begin(), attr_names.end()});
}

}  // namespace internal
}  // namespace op

aclnnStatus CreatAiCoreKernelLauncher(const char*, uint32_t id, aclOpExecutor* executor,
                                      op::OpArgContext* context) {
    return op::launch(id, executor, context, __builtin_return_address(0), {});
}

// Sets the shapes and dtypes of outputs as the operator's package says them.
aclnnStatus InferShape(uint32_t id, op::OpArgList& inputs, op::OpArgList& outputs, op::OpArgList& attrs) {
    const char* const type = op::type_of(id);
    if (type == nullptr) return ACLNN_ERR_INNER;
    if (const int missing = op::need_kernel(type, __builtin_return_address(0))) return missing;
    op::Reader reader(type, nullptr);
    LaunchArguments arguments;
    arguments.inputs = reader.tensors(inputs, "input");
    arguments.outputs = reader.tensors(outputs, "output");
    arguments.attrs = reader.attrs(attrs);
    return reader.failed() ? ACLNN_ERR_INNER : infer_launch(type, arguments);
}
