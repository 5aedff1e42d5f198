// The classes of hand-written aclnn functions as opbase's public headers have them, as far as
// aclnn_classes.cpp needs them: names, signatures and layouts, and the parts that are compiled into an
// author's library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <vector>

using aclnnStatus = int32_t;
namespace gert {
struct Shape {
    size_t rank;
    int64_t sizes[25];
    uint8_t reserved[40];
};
}  // namespace gert
namespace ge {
enum DataType : int { DT_FLOAT = 0 };
enum Format : int { FORMAT_ND = 2 };
class AscendString {
  public:
    const char* GetString() const;

  private:
    std::shared_ptr<std::string> text_;
};
// REGISTER_OP_LIB: in libraries that CANN 9.0 or newer built.
class OpLibRegister {
  public:
    explicit OpLibRegister(const char* vendor);
    OpLibRegister(const OpLibRegister& other);
    ~OpLibRegister();
    OpLibRegister& RegOpLibInit(uint32_t (*function)(AscendString& path));

  private:
    void* implementation_;
};
}  // namespace ge

namespace op {
class Object {
  public:
    Object() = default;
    virtual ~Object() = default;
    void operator delete(void* memory);
};
}  // namespace op

class aclTensor : public op::Object {
  public:
    const gert::Shape& GetViewShape() const;
    ge::DataType GetDataType() const;
    void SetViewShape(const gert::Shape& shape);
};
template <typename T>
class aclArray : public op::Object {
  public:
    uint64_t Size() const;
    const T* GetData() const;
};
class aclIntArray : public aclArray<int64_t> {};
ge::AscendString ToString(const aclTensor* tensor);
ge::AscendString ToString(const aclIntArray* array);

struct aclOpExecutor : public op::Object {
    ~aclOpExecutor() override;
    aclTensor* AllocTensor(ge::DataType type, ge::Format storage, ge::Format origin);
    const aclTensor* ConvertToTensor(const aclIntArray* values, ge::DataType type);
    uint64_t GetWorkspaceSize() const;
    void AddCache();
    void DeleteCache();
};
class UniqueExecutor : public op::Object {
  public:
    explicit UniqueExecutor(const char* function);
    ~UniqueExecutor() override {
        if (executor_ != nullptr) executor_->DeleteCache();
    }
    aclOpExecutor* get() const { return executor_.get(); }
    void ReleaseTo(aclOpExecutor** executor) {
        *executor = executor_.release();
        (*executor)->AddCache();
    }

  private:
    const char* function_;
    std::unique_ptr<aclOpExecutor> executor_{nullptr};
};

namespace op {
enum class OpArgType { kTensor, kTensorList, kScalar, kString, kBool, kInt, kMemsetWorkspace = 15 };
struct OpArgValue {
    OpArgValue() = default;
    OpArgValue(const char* text);
    union {
        int64_t i;
        const void* pointer;
    };
    void (*free)(void*) = nullptr;
};
struct OpArg {
    OpArgType type;
    OpArgValue value;
};
struct OpArgList {
    OpArg* args = nullptr;
    size_t count = 0;
    int type;
};
struct OpArgContext {
    std::array<OpArgList, 7> lists;
    uint8_t reserved[32];
};
void* Allocated(size_t size);
void DestroyOpArgContext(OpArgContext* context);
uint32_t GenOpTypeId(const char* type);
// What such a library carries of an operator: functions, binaries of the device by SoC, and what was tuned.
using Binaries = std::vector<std::tuple<const uint8_t*, const uint8_t*>>;
template <typename OfKernels>
using Resources = std::map<ge::AscendString, std::tuple<std::vector<void*>, OfKernels, Binaries>>;
uint32_t GenOpTypeId(const char* type, const Resources<Binaries>& resources);
uint32_t GenOpTypeId(const char* type, const Resources<std::map<ge::AscendString, Binaries>>& resources);
aclnnStatus CheckPhase1Params(aclOpExecutor** executor, uint64_t* workspace_size);
bool IsContiguous(const aclTensor* tensor);

// What GetOpArgContext makes of OP_INPUT, OP_OUTPUT and OP_ATTR.
inline OpArgContext* arguments(std::initializer_list<OpArg> inputs, std::initializer_list<OpArg> outputs,
                               std::initializer_list<OpArg> attrs) {
    const size_t count = inputs.size() + outputs.size() + attrs.size() + 1;
    auto* context = new (Allocated(sizeof(OpArgContext) + count * sizeof(OpArg))) OpArgContext();
    auto* next = reinterpret_cast<OpArg*>(context + 1) + 1;
    OpArgList* list = context->lists.data();
    for (const auto* group : {&inputs, &outputs, &attrs}) {
        list->args = next;
        list->count = group->size();
        for (const OpArg& one : *group) *next++ = one;
        ++list;
    }
    return context;
}

namespace internal {
extern thread_local char g_hashBuf[8192];
extern thread_local uint64_t g_hashOffset;
void InitExecutorCacheThreadLocal();
void AddParamToBuf(const aclTensor* tensor);
bool CheckCacheable();
bool GetFromCache(aclOpExecutor** executor, uint64_t* workspace_size);
}  // namespace internal
}  // namespace op

namespace l0op {
const aclTensor* Contiguous(const aclTensor* x, aclOpExecutor* executor);
const aclTensor* ViewCopy(const aclTensor* x, const aclTensor* y, aclOpExecutor* executor);
}  // namespace l0op

void ReportErrorMessageInner(const std::string& code, const char* format, ...);
void InitL2Phase1Context(const char* name, aclOpExecutor** executor);
aclnnStatus InferShape(uint32_t id, op::OpArgList& inputs, op::OpArgList& outputs, op::OpArgList& attrs);
aclnnStatus CreatAiCoreKernelLauncher(const char* name, uint32_t id, aclOpExecutor* executor,
                                      op::OpArgContext* context);
aclnnStatus CommonOpExecutorRun(void* workspace, uint64_t size, aclOpExecutor* executor, void* stream);
