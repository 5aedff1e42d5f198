// slog: the log of CANN's host libraries.
#ifndef ASCEND_GRAPH_TOOLCHAIN_SLOG_H
#define ASCEND_GRAPH_TOOLCHAIN_SLOG_H

#include <cstdint>

#include "ascend_graph/log.h"

#define DLOG_TYPE_DEBUG 0
#define DLOG_TYPE_RUN 1
#define RUN_LOG_MASK 0x01000000
#define DEBUG_LOG_MASK 0x00010000
#ifndef MSG_LENGTH
#define MSG_LENGTH 1024
#endif

// The modules whose messages operators write.
enum { SLOG = 0, ASCENDCL = 48, GE = 45, FE = 29, RUNTIME = 5, HCCL = 3, TEFUSION = 31, OP = 63 };

inline int32_t CheckLogLevel(int32_t, int32_t level) {
    return ::ascend_graph::host::is_logged(level) ? 1 : 0;
}
inline int32_t AlogCheckDebugLevel(uint32_t, int32_t level) { return CheckLogLevel(0, level); }
inline int32_t dlog_getlevel(int32_t, int32_t* enable_event) {
    if (enable_event != nullptr) *enable_event = 0;
    return ::ascend_graph::host::printed_level();
}

inline int32_t dlog_setlevel(int32_t, int32_t, int32_t) { return 0; }  // the environment says the level
inline void DlogFlush() { std::fflush(stdout); }

#define DlogRecord(moduleId, level, ...) ::ascend_graph::host::log(level, "", __VA_ARGS__)
#define Dlog(moduleId, level, ...) DlogRecord(moduleId, level, __VA_ARGS__)
#define DlogSub(moduleId, submodule, level, fmt, ...) \
    DlogRecord(moduleId, level, "[%s]" fmt, submodule, ##__VA_ARGS__)
#define DlogRecordInner(moduleId, level, ...) DlogRecord(moduleId, level, __VA_ARGS__)
#define AlogRecord(moduleId, type, level, ...) DlogRecord(moduleId, level, __VA_ARGS__)
#define dlog_debug(moduleId, ...) DlogRecord(moduleId, DLOG_DEBUG, __VA_ARGS__)
#define dlog_info(moduleId, ...) DlogRecord(moduleId, DLOG_INFO, __VA_ARGS__)
#define dlog_warn(moduleId, ...) DlogRecord(moduleId, DLOG_WARN, __VA_ARGS__)
#define dlog_error(moduleId, ...) DlogRecord(moduleId, DLOG_ERROR, __VA_ARGS__)
#define dlog_event(moduleId, ...) DlogRecord(moduleId, DLOG_EVENT, __VA_ARGS__)

#endif  // ASCEND_GRAPH_TOOLCHAIN_SLOG_H
