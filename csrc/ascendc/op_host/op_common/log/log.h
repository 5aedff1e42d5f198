// The logging macros of operators: OP_LOGE and its relatives, checks that log, names of dtypes and shapes.
#ifndef ASCEND_GRAPH_OP_COMMON_LOG_H
#define ASCEND_GRAPH_OP_COMMON_LOG_H

#include <unistd.h>  // as CANN's: sources use its functions without an include of their own

#include <cinttypes>
#include <string>
#include <vector>

#include "base/err_msg.h"
#include "exe_graph/runtime/shape.h"
#include "graph/ge_error_codes.h"
#include "graph/utils/type_utils.h"
#include "op_common/op_host/util/opbase_export.h"
#include "securec.h"
#include "toolchain/slog.h"

#ifndef OP_SUBMOD_NAME
#define OP_SUBMOD_NAME "OPS_BASE"
#endif

constexpr int32_t OP_MODULE_ID = 63;

namespace Ops::Base {

template <typename T>
std::string GetOpInfo(const T& subject) {
    return ::ascend_graph::host::subject_of(subject);
}

inline const char* GetSafeStr(const std::string& text) { return text.c_str(); }
inline const char* GetSafeStr(const char* text) { return text == nullptr ? "nil" : text; }

inline std::string ToString(ge::DataType type) { return ge::TypeUtils::DataTypeToSerialString(type); }
inline std::string ToString(ge::Format format) { return ge::TypeUtils::FormatToSerialString(format); }
inline std::string ToString(const gert::Shape& shape) {
    std::string text;
    for (size_t i = 0; i < shape.GetDimNum(); ++i)
        text += (i == 0 ? "" : ", ") + std::to_string(shape.GetDim(i));
    return "[" + text + "]";
}
inline std::string ToString(const std::vector<const gert::Shape*>& shapes) {
    std::string text;
    for (const gert::Shape* shape : shapes)
        text += (text.empty() ? "" : ", ") + (shape == nullptr ? std::string("nil") : ToString(*shape));
    return "[" + text + "]";
}

}  // namespace Ops::Base

#ifndef unlikely
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif
#ifndef likely
#define likely(x) __builtin_expect(!!(x), 1)
#endif

#define ASCEND_GRAPH_LOG(level, subject, ...) \
    ::ascend_graph::host::log(level, ::ascend_graph::host::subject_of(subject) __VA_OPT__(, ) __VA_ARGS__)

// Hand-written aclnn functions that are built with it have the macros of opdev/op_log.h.
#ifndef OP_LOG_LIBOPAPI_ONLY
#define OP_LOGD(opName, ...) ASCEND_GRAPH_LOG(DLOG_DEBUG, opName, __VA_ARGS__)
#define OP_LOGI(opName, ...) ASCEND_GRAPH_LOG(DLOG_INFO, opName, __VA_ARGS__)
#define OP_LOGW(opName, ...) ASCEND_GRAPH_LOG(DLOG_WARN, opName, __VA_ARGS__)
#define OP_LOGE(opName, ...) ASCEND_GRAPH_LOG(DLOG_ERROR, opName, __VA_ARGS__)
#define OP_LOGE_WITHOUT_REPORT(opName, ...) OP_LOGE(opName, __VA_ARGS__)
#define D_OP_LOGD(opName, ...) OP_LOGD(opName, __VA_ARGS__)
#define D_OP_LOGI(opName, ...) OP_LOGI(opName, __VA_ARGS__)
#define D_OP_LOGW(opName, ...) OP_LOGW(opName, __VA_ARGS__)
#define D_OP_LOGE(opName, ...) OP_LOGE(opName, __VA_ARGS__)
#define OpLogSub(moduleId, level, opInfo, ...) ASCEND_GRAPH_LOG(level, opInfo, __VA_ARGS__)
#define OpLogErrSub(moduleId, level, opInfo, ...) ASCEND_GRAPH_LOG(level, opInfo, __VA_ARGS__)

#define OP_CHECK_IF(condition, log, return_expr) \
    do {                                         \
        if (condition) {                         \
            log;                                 \
            return_expr;                         \
        }                                        \
    } while (0)
#define OP_CHECK_NULL_WITH_CONTEXT(context, ptr)     \
    do {                                             \
        if ((ptr) == nullptr) {                      \
            OP_LOGE(context, "%s is nullptr", #ptr); \
            return ge::GRAPH_FAILED;                 \
        }                                            \
    } while (0)
#endif

// A line of the log; who writes it reports the error, too.
#define OP_LOGE_LIBOPAPI_REPORT(opName, ...) \
    ::ascend_graph::host::print(DLOG_ERROR, ::ascend_graph::host::subject_of(opName), __VA_ARGS__)

// What a value is, and what it should be or why it is refused.
#define ASCEND_GRAPH_EXPECTED(subject, what, name, got, expected)                                           \
    ::ascend_graph::host::log_refusal(::ascend_graph::host::subject_of(subject), what " of ", name, " is ", \
                                      got, ", expected ", expected)
#define ASCEND_GRAPH_REASON(subject, what, name, got, reason)                                               \
    ::ascend_graph::host::log_refusal(::ascend_graph::host::subject_of(subject), what " of ", name, " is ", \
                                      got, ": ", reason)

#define OP_LOGE_WITH_INVALID_INPUT(subject, name)                                                \
    ::ascend_graph::host::log_refusal(::ascend_graph::host::subject_of(subject), "input ", name, \
                                      " is missing")
#define OP_LOGE_WITH_INVALID_INPUT_SHAPE(subject, index, got, expected) \
    ASCEND_GRAPH_EXPECTED(subject, "the shape", index, got, expected)
#define OP_LOGE_WITH_INVALID_INPUT_SHAPESIZE(subject, index, got, expected) \
    ASCEND_GRAPH_EXPECTED(subject, "the number of elements", index, got, expected)
#define OP_LOGE_WITH_INVALID_INPUT_FORMAT(subject, name, got, expected) \
    ASCEND_GRAPH_EXPECTED(subject, "the format", name, got, expected)
#define OP_LOGE_WITH_INVALID_INPUT_DTYPE(subject, name, got, expected) \
    ASCEND_GRAPH_EXPECTED(subject, "the dtype", name, got, expected)
#define OP_LOGE_WITH_INVALID_ATTR(subject, name, got, expected) \
    ASCEND_GRAPH_EXPECTED(subject, "the value", name, got, expected)
#define OP_LOGE_WITH_INVALID_ATTR_SIZE(subject, name, got, expected) \
    ASCEND_GRAPH_EXPECTED(subject, "the length", name, got, expected)

#define OP_LOGE_FOR_INVALID_SHAPE(subject, name, got, expected) \
    ASCEND_GRAPH_EXPECTED(subject, "the shape", name, got, expected)
#define OP_LOGE_FOR_INVALID_SHAPEDIM(subject, name, got, expected) \
    ASCEND_GRAPH_EXPECTED(subject, "the rank", name, got, expected)
#define OP_LOGE_FOR_INVALID_SHAPESIZE(subject, name, got, expected) \
    ASCEND_GRAPH_EXPECTED(subject, "the number of elements", name, got, expected)
#define OP_LOGE_FOR_INVALID_FORMAT(subject, name, got, expected) \
    ASCEND_GRAPH_EXPECTED(subject, "the format", name, got, expected)
#define OP_LOGE_FOR_INVALID_DTYPE(subject, name, got, expected) \
    ASCEND_GRAPH_EXPECTED(subject, "the dtype", name, got, expected)
#define OP_LOGE_FOR_INVALID_TENSORNUM(subject, name, got, expected) \
    ASCEND_GRAPH_EXPECTED(subject, "the number of tensors", name, got, expected)
#define OP_LOGE_FOR_INVALID_VALUE(subject, name, got, expected) \
    ASCEND_GRAPH_EXPECTED(subject, "the value", name, got, expected)
#define OP_LOGE_FOR_INVALID_LISTSIZE(subject, name, got, expected) \
    ASCEND_GRAPH_EXPECTED(subject, "the length", name, got, expected)
#define OP_LOGE_FOR_INVALID_STRIDE(subject, name, got, expected) \
    ASCEND_GRAPH_EXPECTED(subject, "the stride", name, got, expected)

#define OP_LOGE_FOR_INVALID_SHAPE_WITH_REASON(subject, name, got, reason) \
    ASCEND_GRAPH_REASON(subject, "the shape", name, got, reason)
#define OP_LOGE_FOR_INVALID_SHAPES_WITH_REASON(subject, names, got, reason) \
    ASCEND_GRAPH_REASON(subject, "the shapes", names, got, reason)
#define OP_LOGE_FOR_INVALID_SHAPEDIM_WITH_REASON(subject, name, got, reason) \
    ASCEND_GRAPH_REASON(subject, "the rank", name, got, reason)
#define OP_LOGE_FOR_INVALID_SHAPEDIMS_WITH_REASON(subject, names, got, reason) \
    ASCEND_GRAPH_REASON(subject, "the ranks", names, got, reason)
#define OP_LOGE_FOR_INVALID_SHAPESIZE_WITH_REASON(subject, name, got, reason) \
    ASCEND_GRAPH_REASON(subject, "the number of elements", name, got, reason)
#define OP_LOGE_FOR_INVALID_SHAPESIZES_WITH_REASON(subject, names, got, reason) \
    ASCEND_GRAPH_REASON(subject, "the numbers of elements", names, got, reason)
#define OP_LOGE_FOR_INVALID_FORMAT_WITH_REASON(subject, name, got, reason) \
    ASCEND_GRAPH_REASON(subject, "the format", name, got, reason)
#define OP_LOGE_FOR_INVALID_FORMATS_WITH_REASON(subject, names, got, reason) \
    ASCEND_GRAPH_REASON(subject, "the formats", names, got, reason)
#define OP_LOGE_FOR_INVALID_DTYPE_WITH_REASON(subject, name, got, reason) \
    ASCEND_GRAPH_REASON(subject, "the dtype", name, got, reason)
#define OP_LOGE_FOR_INVALID_DTYPES_WITH_REASON(subject, names, got, reason) \
    ASCEND_GRAPH_REASON(subject, "the dtypes", names, got, reason)
#define OP_LOGE_FOR_INVALID_TENSORNUMS_WITH_REASON(subject, names, got, reason) \
    ASCEND_GRAPH_REASON(subject, "the numbers of tensors", names, got, reason)
#define OP_LOGE_FOR_INVALID_VALUE_WITH_REASON(subject, name, got, reason) \
    ASCEND_GRAPH_REASON(subject, "the value", name, got, reason)
#define OP_LOGE_FOR_INVALID_VALUES_WITH_REASON(subject, names, got, reason) \
    ASCEND_GRAPH_REASON(subject, "the values", names, got, reason)
#define OP_LOGE_FOR_INVALID_LISTSIZE_WITH_REASON(subject, name, got, reason) \
    ASCEND_GRAPH_REASON(subject, "the length", name, got, reason)
#define OP_LOGE_FOR_INVALID_ARGUMENT_WITH_REASON(subject, name, reason)                                   \
    ::ascend_graph::host::log_refusal(::ascend_graph::host::subject_of(subject), "argument ", name, ": ", \
                                      reason)

#endif  // ASCEND_GRAPH_OP_COMMON_LOG_H
