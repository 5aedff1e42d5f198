// liberror_manager.so: what functions of packages that CANN built report of an error. It goes where their log
// does. They link these weakly, and call them unasked. Strings are those of CANN's own C++ ABI.
#include <cstdarg>
#include <cstdint>
#include <map>
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

// The class behind them. Kernel launches that CANN's compiler made ask it for the head of each line of their
// log.
class EXPORTED ErrorManager {
  public:
    static ErrorManager& GetInstance();
    const std::string& GetLogHeader();
    int32_t ReportInterErrMessage(const std::string code, const std::string& text);
    int32_t ReportErrMessage(const std::string code, const std::map<std::string, std::string>& values);
    void ATCReportErrMessage(const std::string code, const std::vector<std::string>& keys,
                             const std::vector<std::string>& values);
};

ErrorManager& ErrorManager::GetInstance() {
    static ErrorManager only;
    return only;
}
const std::string& ErrorManager::GetLogHeader() {
    static const std::string none;  // a stage of a compilation, which there is not
    return none;
}
int32_t ErrorManager::ReportInterErrMessage(const std::string code, const std::string& text) {
    DlogRecord(0, DLOG_ERROR, "%s: %s", code.c_str(), text.c_str());
    return 0;
}
int32_t ErrorManager::ReportErrMessage(const std::string code,
                                       const std::map<std::string, std::string>& values) {
    std::vector<const char*> keys, texts;
    for (const auto& [key, value] : values) {
        keys.push_back(key.c_str());
        texts.push_back(value.c_str());
    }
    return error_message::ReportPredefinedErrMsg(code.c_str(), keys, texts);
}
void ErrorManager::ATCReportErrMessage(const std::string code, const std::vector<std::string>& keys,
                                       const std::vector<std::string>& values) {
    std::map<std::string, std::string> pairs;
    for (size_t i = 0; i < keys.size() && i < values.size(); ++i) pairs.emplace(keys[i], values[i]);
    ReportErrMessage(code, pairs);
}
