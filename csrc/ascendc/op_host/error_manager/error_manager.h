// Reports of errors by the class that older sources call.
#ifndef ASCEND_GRAPH_ERROR_MANAGER_H
#define ASCEND_GRAPH_ERROR_MANAGER_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/err_msg.h"

class ErrorManager {
  public:
    static ErrorManager& GetInstance() {
        static ErrorManager manager;
        return manager;
    }
    void ATCReportErrMessage(const std::string& code, const std::vector<std::string>& keys = {},
                             const std::vector<std::string>& values = {}) {
        std::map<std::string, std::string> arguments;
        for (size_t i = 0; i < keys.size() && i < values.size(); ++i) arguments[keys[i]] = values[i];
        ReportErrMessage(code, arguments);
    }
    int32_t ReportErrMessage(const std::string& code, const std::map<std::string, std::string>& arguments) {
        std::string text = code;
        for (const auto& [key, value] : arguments)
            text += (text.size() == code.size() ? ": " : ", ") + key + " = " + value;
        ascend_graph::host::log_text(DLOG_ERROR, text);
        return 0;
    }
    int32_t ReportInterErrMessage(const std::string& code, const std::string& message) {
        ascend_graph::host::log_text(DLOG_ERROR, code + ": " + message);
        return 0;
    }
};

#endif  // ASCEND_GRAPH_ERROR_MANAGER_H
