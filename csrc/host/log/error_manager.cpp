// liberror_manager.so: what functions of packages that CANN built report of an error. It goes where their log
// does. They link these weakly, and call them unasked.
#include <cstdarg>
#include <cstdint>
#include <string>
#include <vector>

#include "acl/abi.h"
#include "ascend_graph/log.h"

ACL_EXPORT void DlogRecord(int32_t module, int32_t level, const char* format, ...);

#define EXPORTED __attribute__((visibility("default")))

namespace error_message {

EXPORTED int32_t ReportInnerErrMsg(const char*, const char*, uint32_t, const char*, const char* format, ...) {
    if (format == nullptr) return -1;
    std::va_list arguments;
    va_start(arguments, format);
    DlogRecord(0, DLOG_ERROR, "%s", ascend_graph::host::formatted(format, arguments).c_str());
    va_end(arguments);
    return 0;
}

// A message of CANN's catalog, by its code and what it says of what.
EXPORTED int32_t ReportPredefinedErrMsg(const char* code, const std::vector<const char*>& keys,
                                        const std::vector<const char*>& values) {
    std::string text = code == nullptr ? "" : code;
    for (size_t i = 0; i < keys.size() && i < values.size(); ++i) {
        if (keys[i] == nullptr || values[i] == nullptr) continue;
        text += std::string(i == 0 ? ": " : ", ") + keys[i] + "=" + values[i];
    }
    DlogRecord(0, DLOG_ERROR, "%s", text.c_str());
    return 0;
}

}  // namespace error_message
