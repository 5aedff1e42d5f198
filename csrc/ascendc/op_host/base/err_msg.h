// Reports of errors to the caller of an operator.
#ifndef ASCEND_GRAPH_BASE_ERR_MSG_H
#define ASCEND_GRAPH_BASE_ERR_MSG_H

#include <memory>
#include <string>
#include <vector>

#include "ascend_graph/log.h"

namespace ascend_graph::host {

// A report by the number of its text: what the values of its keys are.
inline void report_predefined(const char* code, const std::vector<const char*>& keys,
                              const std::vector<const char*>& values) {
    std::string text = code;
    for (size_t i = 0; i < keys.size() && i < values.size(); ++i)
        text +=
            std::string(i == 0 ? ": " : ", ") + keys[i] + " = " + (values[i] == nullptr ? "nil" : values[i]);
    log_text(DLOG_ERROR, text);
}

}  // namespace ascend_graph::host

#define REPORT_INNER_ERR_MSG(code, ...) ::ascend_graph::host::log(DLOG_ERROR, code, __VA_ARGS__)
#define REPORT_INNER_ERROR(code, ...) REPORT_INNER_ERR_MSG(code, __VA_ARGS__)
#define REPORT_CALL_ERROR(code, ...) REPORT_INNER_ERR_MSG(code, __VA_ARGS__)
#define REPORT_USER_ERR_MSG(code, ...) REPORT_INNER_ERR_MSG(code, __VA_ARGS__)
#define REPORT_PREDEFINED_ERR_MSG(code, ...) ::ascend_graph::host::report_predefined(code, __VA_ARGS__)
#define REPORT_INPUT_ERROR(code, ...) REPORT_PREDEFINED_ERR_MSG(code, __VA_ARGS__)

#endif  // ASCEND_GRAPH_BASE_ERR_MSG_H
