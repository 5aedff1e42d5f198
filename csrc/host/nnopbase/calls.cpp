// What hand-written aclnn functions in libraries of packages that CANN built call around their operators:
// checks, logs, and the records of a cache and a profiler that the host does not have.
#include <cstdarg>
#include <string>
#include <typeinfo>
#include <vector>

#include "ascend_graph/aclnn_adapter.h"
#include "ascend_graph/op_api/kernels.h"

using namespace ascend_graph::host;

extern "C" void* ascendgraphPlatformOfThread();
#undef DlogRecordInner  // the macro of sources

// --- the log
// --------------------------------------------------------------------------------------------------

int32_t CheckLogLevelInner(int32_t, int32_t level) { return level >= printed_level() ? 1 : 0; }

void DlogRecordInner(int32_t, int32_t level, const char* format, ...) {
    if (format == nullptr || level < printed_level()) return;
    std::va_list arguments;
    va_start(arguments, format);
    print_text(level, formatted(format, arguments));
    va_end(arguments);
}

// What a function reports is what its caller gets. The code is that of a message: EZ1001 for parameters.
void ReportErrorMessageInner(const std::string& code, const char* format, ...) {
    if (format == nullptr) return;
    std::va_list arguments;
    va_start(arguments, format);
    log_text(DLOG_ERROR, formatted(format, arguments));
    va_end(arguments);
    ascendgraphFail(code == "EZ1001" ? ACLNN_ERR_PARAM_INVALID : ACLNN_ERR_INNER, logged_errors().c_str());
}

// The classes' names, which messages have.
[[gnu::used]] const std::type_info* const class_names[] = {&typeid(aclTensor), &typeid(aclTensorList),
                                                           &typeid(aclScalar), &typeid(aclScalarList),
                                                           &typeid(aclIntArray)};

// --- the first and the second half of a call
// ------------------------------------------------------------------

void InitL2Phase1Context(const char*, aclOpExecutor**) { logged_errors().clear(); }
void InitL2Phase2Context(const char*, aclOpExecutor*) {}
void InitL0Context(const char*, aclOpExecutor*) {}

ge::AscendString ToString(const aclTensor* tensor) { return op::ToString(tensor); }
ge::AscendString ToString(const aclTensorList* tensors) { return op::ToString(tensors); }
ge::AscendString ToString(const aclScalar* scalar) {
    return scalar == nullptr ? ge::AscendString("nullptr") : scalar->ToString();
}
#define ASCEND_GRAPH_TEXT(Array)                                                   \
    ge::AscendString ToString(const Array* array) {                                \
        return array == nullptr ? ge::AscendString("nullptr") : array->ToString(); \
    }
ASCEND_GRAPH_TEXT(aclIntArray)
ASCEND_GRAPH_TEXT(aclFloatArray)
ASCEND_GRAPH_TEXT(aclBoolArray)

namespace op {

fe::PlatFormInfos* PlatformInfo::GetPlatformInfos() const {
    return static_cast<fe::PlatFormInfos*>(ascendgraphPlatformOfThread());
}

ge::AscendString ToString(const std::string& text) { return text.c_str(); }

aclnnStatus CheckPhase1Params(aclOpExecutor** executor, uint64_t* workspace_size) {
    return begin_call("the aclnn function", executor, workspace_size);
}

// No tensors are dumped.
bool IsDumpEnabled() { return false; }
void InitThreadLocalContext() {}
#define ASCEND_GRAPH_IGNORED(Object)                      \
    void AddInputTensorToThreadLocalCtx(Object* const) {} \
    void AddOutputTensorToThreadLocalCtx(Object* const) {}
ASCEND_GRAPH_IGNORED(aclTensor)
ASCEND_GRAPH_IGNORED(const aclTensor)
ASCEND_GRAPH_IGNORED(aclTensorList)
ASCEND_GRAPH_IGNORED(const aclTensorList)

// Nor is a function profiled: its operators are.
class OpDfxProfiler;
OpDfxProfiler* CreateDfxProfiler(const char*) { return nullptr; }
OpDfxProfiler* CreateDfxProfiler(uint32_t) { return nullptr; }

enum OpLevel { kLevelZero, kLevelOne, kLevelTwo };
enum DfxProfilingType { kDfxProfilingDefault };

// The caller has memory for it, and constructs it inline but for the second half.
class OpDfxGuard {
  public:
    OpDfxGuard(const char* file, int line, OpLevel level, const char* function);
    OpDfxGuard(uint64_t id, DfxProfilingType type);
    ~OpDfxGuard();
    void StringToVec(const char* names, std::vector<std::string>& list);
    void StringToVecWithBrackets(const char* names, std::vector<std::string>& list);
};

OpDfxGuard::OpDfxGuard(const char*, int, OpLevel, const char*) {}
OpDfxGuard::OpDfxGuard(uint64_t, DfxProfilingType) {}
OpDfxGuard::~OpDfxGuard() = default;

// The names of parameters in "self, other"; there are as many as commas say.
void OpDfxGuard::StringToVec(const char* names, std::vector<std::string>& list) {
    list.emplace_back();
    for (const char* c = names == nullptr ? "" : names; *c != '\0'; ++c) {
        if (*c == ',')
            list.emplace_back();
        else if (*c != ' ')
            list.back() += *c;
    }
}
// The same in "DFX_IN(self, other)".
void OpDfxGuard::StringToVecWithBrackets(const char* names, std::vector<std::string>& list) {
    const std::string text = names == nullptr ? "" : names;
    const size_t first = text.find('('), last = text.rfind(')');
    StringToVec(
        first == text.npos || last == text.npos ? names : text.substr(first + 1, last - first - 1).c_str(),
        list);
}

namespace internal {

struct OpProfilingSwitch {
    bool flags[6];
};
OpProfilingSwitch opProfilingSwitch{};

std::string GetLogApiInfo() { return {}; }

// The key of a cache of calls, which callers write inline; there is no such cache, so that none is looked up.
constexpr uint64_t kKeyBytes = 8192;
thread_local char g_hashBuf[kKeyBytes];
thread_local uint64_t g_hashOffset = 0;

void InitExecutorCacheThreadLocal() { g_hashOffset = 0; }
void AddOpConfigInfoToBuf() {}
void AddSeperator() {}
bool CheckCacheable() { return false; }
bool GetFromCache(aclOpExecutor**, uint64_t*) { return false; }
void AddParamToBuf() {}
#define ASCEND_GRAPH_NOT_KEPT(T) \
    void AddParamToBuf(T) {}
ASCEND_GRAPH_NOT_KEPT(const aclTensor*)
ASCEND_GRAPH_NOT_KEPT(aclTensor*)
ASCEND_GRAPH_NOT_KEPT(const aclScalar*)
ASCEND_GRAPH_NOT_KEPT(aclScalar*)
ASCEND_GRAPH_NOT_KEPT(const aclIntArray*)
ASCEND_GRAPH_NOT_KEPT(const aclFloatArray*)
ASCEND_GRAPH_NOT_KEPT(const aclBoolArray*)
ASCEND_GRAPH_NOT_KEPT(const aclTensorList*)
ASCEND_GRAPH_NOT_KEPT(aclTensorList*)
ASCEND_GRAPH_NOT_KEPT(const aclScalarList*)
ASCEND_GRAPH_NOT_KEPT(aclScalarList*)
ASCEND_GRAPH_NOT_KEPT(const std::string&)
ASCEND_GRAPH_NOT_KEPT(aclDataType)
ASCEND_GRAPH_NOT_KEPT(const char*)
ASCEND_GRAPH_NOT_KEPT(char*)

}  // namespace internal
}  // namespace op
