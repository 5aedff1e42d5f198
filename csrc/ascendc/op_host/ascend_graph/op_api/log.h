// The logging macros and error codes of hand-written aclnn functions. What is logged as an error is what the
// caller gets.
#ifndef ASCEND_GRAPH_OP_API_LOG_H
#define ASCEND_GRAPH_OP_API_LOG_H

#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <type_traits>

#include "acl/host_acl.h"
#include "ascend_graph/host_runtime.h"
#include "ascend_graph/log.h"
#include "toolchain/slog.h"

#define ACLNN_SUCCESS 0
#define ACLNN_ERR_PARAM_NULLPTR 161001
#define ACLNN_ERR_PARAM_INVALID 161002
#define ACLNN_ERR_RUNTIME_ERROR 361001
#define ACLNN_ERR_INNER 561000
#define ACLNN_ERR_INNER_INFERSHAPE_ERROR 561001
#define ACLNN_ERR_INNER_TILING_ERROR 561002
#define ACLNN_ERR_INNER_FIND_KERNEL_ERROR 561003
#define ACLNN_ERR_INNER_CREATE_EXECUTOR 561101
#define ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR 561102
#define ACLNN_ERR_INNER_NULLPTR 561103
#define ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE 561104
#define ACLNN_ERR_INNER_KEY_CONFILICT 561105
#define ACLNN_ERR_INNER_KEY_CONFLICT 561105
#define ACLNN_ERR_INNER_INVALID_IMPL_MODE 561106
#define ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND 561107
#define ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND 561112
#define ACLNN_ERR_INNER_STATIC_WORKSPACE_INVALID 561118
#define ACLNN_ERR_INNER_STATIC_BLOCK_DIM_INVALID 561119

namespace ascend_graph::host {

// The first error of a call is its message; what follows is where it passed.
template <typename... T>
void op_api_error(int code, const char* format, const T&... values) {
    log(DLOG_ERROR, std::string(), format, values...);
    ascendgraphFail(code, logged_errors().c_str());
}

// The form without a report only prints its code, so sources of shape functions give it a name instead.
template <typename Code, typename... T>
void op_api_error_without_report(const Code& code, const char* format, const T&... values) {
    if constexpr (std::is_convertible_v<Code, std::string>)
        log(DLOG_ERROR, std::string(code), format, values...);
    else
        op_api_error(static_cast<int>(code), format, values...);
}

}  // namespace ascend_graph::host

// Sources that include the other macros of these names too, those of tiling functions, mean the last ones.
#undef OP_LOGD
#undef OP_LOGI
#undef OP_LOGW
#undef OP_LOGE
#undef OP_LOGE_WITHOUT_REPORT
#undef OP_EVENT
#undef OP_CHECK
#define OP_LOGD(...) ::ascend_graph::host::log(DLOG_DEBUG, std::string(), __VA_ARGS__)
#define OP_LOGI(...) ::ascend_graph::host::log(DLOG_INFO, std::string(), __VA_ARGS__)
#define OP_LOGW(...) ::ascend_graph::host::log(DLOG_WARN, std::string(), __VA_ARGS__)
#define OP_EVENT(...) ::ascend_graph::host::log(DLOG_EVENT, std::string(), __VA_ARGS__)
#define OP_LOGE(code, ...) ::ascend_graph::host::op_api_error(static_cast<int>(code), __VA_ARGS__)
#define OP_LOGE_WITHOUT_REPORT(code, ...) ::ascend_graph::host::op_api_error_without_report(code, __VA_ARGS__)

// What these are made of in CANN, for headers that make them anew. What is not reported is for the log alone.
#define OP_ID OP
#define OPAPI_SUBMOD_NAME "ACLNN"
#define OP_LOG_DEBUG DLOG_DEBUG
#define OP_LOG_INFO DLOG_INFO
#define OP_LOG_WARN DLOG_WARN
#define OP_LOG_ERROR DLOG_ERROR
#define OP_LOG_EVENT DLOG_EVENT
#define DOplogSub(moduleId, submodule, level, ...) ::ascend_graph::host::print(level, submodule, __VA_ARGS__)
#define DDfxlogSub(moduleId, submodule, level, file, line, ...) \
    DOplogSub(moduleId, submodule, level, __VA_ARGS__)
#define REPORT_ERROR_MESSAGE(code, ...) \
    ::ascend_graph::host::op_api_error(static_cast<int>(code), __VA_ARGS__)

namespace op {
struct OpLog {
    static uint64_t GetTid() { return static_cast<uint64_t>(syscall(SYS_gettid)); }
};
}  // namespace op

inline std::string GetOpName() { return {}; }
constexpr const char* GetFileName(const char* path) {
    const char* file = path;
    for (; *path != '\0'; ++path)
        if (*path == '/') file = path + 1;
    return file;
}

#ifndef unlikely
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif
#ifndef likely
#define likely(x) __builtin_expect(!!(x), 1)
#endif

#define OP_CHECK(cond, log_func, return_expr) \
    do {                                      \
        if (unlikely(!(cond))) {              \
            log_func;                         \
            return_expr;                      \
        }                                     \
    } while (false)
#define OP_CHECK_NO_RETURN(cond, log_func) OP_CHECK(cond, log_func, )
#define CHECK_RET(cond, ret_value)               \
    do {                                         \
        if (unlikely(!(cond))) return ret_value; \
    } while (false)
#define CHECK_COND(cond, ret_value, ...) OP_CHECK(cond, OP_LOGE(ret_value, __VA_ARGS__), return ret_value)
#define CHECK_RET_CODE(call, ...)                      \
    do {                                               \
        const int checked_code = (call);               \
        if (unlikely(checked_code != ACLNN_SUCCESS)) { \
            OP_LOGE(checked_code, __VA_ARGS__);        \
            return checked_code;                       \
        }                                              \
    } while (false)
#define OP_CHECK_NOTNULL(value)                                                                             \
    OP_CHECK((value) != nullptr, OP_LOGE(ACLNN_ERR_INNER_NULLPTR, "parameter %s must not be null", #value), \
             return ACLNN_ERR_INNER_NULLPTR)

#endif  // ASCEND_GRAPH_OP_API_LOG_H
