// Functions of the C library that check the size of their target.
#ifndef ASCEND_GRAPH_SECUREC_H
#define ASCEND_GRAPH_SECUREC_H

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#ifndef EOK
#define EOK 0
#endif
#ifndef EINVAL_AND_RESET
#define EINVAL_AND_RESET 150
#define ERANGE_AND_RESET 162
#define EOVERLAP_AND_RESET 182
#endif
#define SECUREC_MEM_MAX_LEN 0x7fffffffUL
#define SECUREC_STRING_MAX_LEN 0x7fffffffUL

typedef int errno_t;

inline errno_t memset_s(void* target, size_t room, int value, size_t count) {
    if (room == 0 || room > SECUREC_MEM_MAX_LEN) return ERANGE;
    if (target == nullptr) return EINVAL;
    std::memset(target, value, count > room ? room : count);
    return count > room ? ERANGE_AND_RESET : EOK;
}

inline errno_t memmove_s(void* target, size_t room, const void* source, size_t count) {
    if (room == 0 || room > SECUREC_MEM_MAX_LEN) return ERANGE;
    if (target == nullptr) return EINVAL;
    if (source == nullptr || count > room) {
        std::memset(target, 0, room);
        return source == nullptr ? EINVAL_AND_RESET : ERANGE_AND_RESET;
    }
    std::memmove(target, source, count);
    return EOK;
}

inline errno_t memcpy_s(void* target, size_t room, const void* source, size_t count) {
    const auto* to = static_cast<const char*>(target);
    const auto* from = static_cast<const char*>(source);
    if (to != nullptr && from != nullptr && to != from && count <= room && from < to + count &&
        to < from + count) {
        std::memset(target, 0, room);
        return EOVERLAP_AND_RESET;
    }
    return memmove_s(target, room, source, count);
}

inline errno_t strncpy_s(char* target, size_t room, const char* source, size_t count) {
    if (room == 0 || room > SECUREC_STRING_MAX_LEN) return ERANGE;
    if (target == nullptr) return EINVAL;
    target[0] = '\0';
    if (source == nullptr) return EINVAL_AND_RESET;
    const size_t length = strnlen(source, count);
    if (length >= room) return ERANGE_AND_RESET;
    std::memmove(target, source, length);
    target[length] = '\0';
    return EOK;
}
inline errno_t strcpy_s(char* target, size_t room, const char* source) {
    return strncpy_s(target, room, source, SECUREC_STRING_MAX_LEN);
}
inline errno_t strncat_s(char* target, size_t room, const char* source, size_t count) {
    if (target == nullptr) return EINVAL;
    const size_t used = strnlen(target, room);
    return used == room ? ERANGE_AND_RESET : strncpy_s(target + used, room - used, source, count);
}
inline errno_t strcat_s(char* target, size_t room, const char* source) {
    return strncat_s(target, room, source, SECUREC_STRING_MAX_LEN);
}

inline int vsnprintf_s(char* target, size_t room, size_t count, const char* format, va_list arguments) {
    if (target == nullptr || room == 0 || format == nullptr) return -1;
    const size_t most = count < room ? count + 1 : room;
    const int length = std::vsnprintf(target, most, format, arguments);
    if (length >= 0 && static_cast<size_t>(length) < most) return length;
    if (count >= room) target[0] = '\0';  // what was asked for does not fit: nothing is left half
    return -1;
}
inline int snprintf_s(char* target, size_t room, size_t count, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf_s(target, room, count, format, arguments);
    va_end(arguments);
    return length;
}
inline int sprintf_s(char* target, size_t room, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf_s(target, room, room, format, arguments);
    va_end(arguments);
    return length;
}

#endif  // ASCEND_GRAPH_SECUREC_H
