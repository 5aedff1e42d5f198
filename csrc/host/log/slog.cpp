// libunified_dlog.so: CANN's log, as libraries that were linked elsewhere call it. Errors are kept too: what
// a package's function logs is a part of the message that the operator's caller gets.
#include <cstdarg>
#include <cstdint>

#include "acl/abi.h"
#include "ascend_graph/log.h"

using namespace ascend_graph::host;

namespace {

// Nothing keeps a log file here: what is neither printed nor an error need not be formatted.
void record(int32_t level, const char* format, std::va_list arguments) {
    if (format != nullptr && is_logged(level)) log_text(level, formatted(format, arguments));
}

}  // namespace

ACL_EXPORT int32_t CheckLogLevel(int32_t, int32_t level) { return is_logged(level) ? 1 : 0; }

// This and DlogRecord are functions of C++, too: libraries link these whose headers do not say otherwise.
__attribute__((visibility("default"))) int32_t check_log_level(int32_t,
                                                               int32_t level) __asm__("_Z13CheckLogLevelii");
int32_t check_log_level(int32_t, int32_t level) { return CheckLogLevel(0, level); }

ACL_EXPORT void DlogRecord(int32_t, int32_t level, const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    record(level, format, arguments);
    va_end(arguments);
}

__attribute__((visibility("default"))) void dlog_record(int32_t, int32_t level, const char* format,
                                                        ...) __asm__("_Z10DlogRecordiiPKcz");
void dlog_record(int32_t, int32_t level, const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    record(level, format, arguments);
    va_end(arguments);
}

ACL_EXPORT int32_t dlog_getlevel(int32_t, int32_t* enable_event) {
    if (enable_event != nullptr) *enable_event = 0;
    return printed_level();
}

// The same under the names of newer releases. Libraries link them weakly, and call them unasked.
ACL_EXPORT int32_t AlogCheckDebugLevel(uint32_t, int32_t level) { return CheckLogLevel(0, level); }

ACL_EXPORT void AlogRecord(uint32_t, uint32_t, int32_t level, const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    record(level, format, arguments);
    va_end(arguments);
}

// The errors that this thread logged since the last call, as the end of a sentence.
ACL_EXPORT const char* ascendgraphTakeLoggedErrors() {
    static thread_local std::string taken;
    taken = take_logged_errors();
    return taken.c_str();
}
