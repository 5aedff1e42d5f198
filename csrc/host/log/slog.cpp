// libunified_dlog.so: CANN's log, as libraries that were linked elsewhere call it.
#include <cstdarg>
#include <cstdint>

#include "acl/abi.h"
#include "ascend_graph/log.h"

using ascend_graph::host::printed_level;

// Nothing keeps a log file here: what is not printed need not be formatted.
ACL_EXPORT int32_t CheckLogLevel(int32_t, int32_t level) { return level >= printed_level() ? 1 : 0; }

ACL_EXPORT void DlogRecord(int32_t, int32_t level, const char* format, ...) {
    if (format == nullptr || level < printed_level()) return;
    std::va_list arguments;
    va_start(arguments, format);
    ascend_graph::host::print_text(level, ascend_graph::host::formatted(format, arguments));
    va_end(arguments);
}

ACL_EXPORT int32_t dlog_getlevel(int32_t, int32_t* enable_event) {
    if (enable_event != nullptr) *enable_event = 0;
    return printed_level();
}
