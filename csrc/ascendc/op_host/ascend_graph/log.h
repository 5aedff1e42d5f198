// Where messages of authors' host code go: logging macros of every layer, error reports, slog.
//
// What is logged as an error while a tiling or shape function runs is kept, and becomes a part of the error
// that the caller of the operator gets. ASCEND_SLOG_PRINT_TO_STDOUT=1 prints messages of
// ASCEND_GLOBAL_LOG_LEVEL (0 debug, 1 info, 2 warning, 3 error) and above, as on a device.
#ifndef ASCEND_GRAPH_LOG_H
#define ASCEND_GRAPH_LOG_H

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <type_traits>

#define DLOG_DEBUG 0x0
#define DLOG_INFO 0x1
#define DLOG_WARN 0x2
#define DLOG_ERROR 0x3
#define DLOG_NULL 0x4
#define DLOG_EVENT 0x10

namespace ascend_graph::host {

// The errors of the function that runs on this thread.
inline std::string& logged_errors() {
    static thread_local std::string errors;
    return errors;
}

// The same as the end of a sentence; the next function begins without any.
inline std::string take_logged_errors() {
    std::string taken;
    taken.swap(logged_errors());
    return taken.empty() ? taken : "; it logged: " + taken;
}

inline int printed_level() {
    static const int level = [] {
        const char* print = std::getenv("ASCEND_SLOG_PRINT_TO_STDOUT");
        const char* lowest = std::getenv("ASCEND_GLOBAL_LOG_LEVEL");
        if (print == nullptr || std::string(print) != "1") return DLOG_NULL;
        return lowest == nullptr ? DLOG_ERROR : std::atoi(lowest);
    }();
    return level;
}

inline bool is_logged(int level) { return level == DLOG_ERROR || level >= printed_level(); }

inline void print_text(int level, const std::string& text) {
    if (level < printed_level()) return;
    static const char* const names[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
    std::printf("[%s] OP: %s\n", level <= DLOG_ERROR ? names[level] : "EVENT", text.c_str());
}

inline void log_text(int level, const std::string& text) {
    constexpr size_t most = 2000;
    if (level == DLOG_ERROR) {
        std::string& errors = logged_errors();
        if (errors.size() < most) errors += (errors.empty() ? "" : " | ") + text;
    }
    print_text(level, text);
}

inline std::string formatted(const char* format, std::va_list arguments) {
    std::va_list again;
    va_copy(again, arguments);
    const int size = std::vsnprintf(nullptr, 0, format, arguments);
    std::string text(size > 0 ? static_cast<size_t>(size) : 0, '\0');
    std::vsnprintf(text.data(), text.size() + 1, format, again);
    va_end(again);
    return text;
}

inline void log(int level, const std::string& subject, const char* format, ...) {
    if (!is_logged(level)) return;
    std::va_list arguments;
    va_start(arguments, format);
    log_text(level, (subject.empty() ? "" : subject + ": ") + formatted(format, arguments));
    va_end(arguments);
}

// The same for the log alone: an error is not a part of what the caller gets.
inline void print(int level, const std::string& subject, const char* format, ...) {
    if (level < printed_level()) return;
    std::va_list arguments;
    va_start(arguments, format);
    print_text(level, (subject.empty() ? "" : subject + ": ") + formatted(format, arguments));
    va_end(arguments);
}

inline void log(int level, const std::string& text) {
    if (is_logged(level)) log_text(level, text);
}

// Whom a message is about: a name, or the node of a context.
inline std::string subject_of(const std::string& name) { return name; }
inline std::string subject_of(const char* name) { return name == nullptr ? "nil" : name; }
inline std::string subject_of(std::nullptr_t) { return "nil"; }
template <typename Context, typename = std::enable_if_t<std::is_class_v<Context>>>
std::string subject_of(const Context* context) {
    if (context == nullptr) return "nil";
    const char* type = context->GetNodeType();
    return type == nullptr ? "nil" : type;
}

template <typename... Parts>
void log_refusal(const std::string& subject, const Parts&... parts) {
    std::ostringstream text;
    (text << ... << parts);
    log_text(DLOG_ERROR, subject + ": " + text.str());
}

}  // namespace ascend_graph::host

#endif  // ASCEND_GRAPH_LOG_H
