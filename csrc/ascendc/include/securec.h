// Functions of the C library that check the size of their target, for C and C++.
#ifndef ASCEND_GRAPH_SECUREC_H
#define ASCEND_GRAPH_SECUREC_H

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef __cplusplus
#include <stdbool.h>
#endif

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

// How the functions are defined: libc_sec.so exports them, programs that include this header have their own.
#ifndef ASCEND_GRAPH_SECUREC
#define ASCEND_GRAPH_SECUREC static inline
#endif

ASCEND_GRAPH_SECUREC errno_t memset_s(void* target, size_t room, int value, size_t count) {
    if (room == 0 || room > SECUREC_MEM_MAX_LEN) return ERANGE;
    if (target == NULL) return EINVAL;
    memset(target, value, count > room ? room : count);
    return count > room ? ERANGE_AND_RESET : EOK;
}

ASCEND_GRAPH_SECUREC errno_t memmove_s(void* target, size_t room, const void* source, size_t count) {
    if (room == 0 || room > SECUREC_MEM_MAX_LEN) return ERANGE;
    if (target == NULL) return EINVAL;
    if (source == NULL || count > room) {
        memset(target, 0, room);
        return source == NULL ? EINVAL_AND_RESET : ERANGE_AND_RESET;
    }
    memmove(target, source, count);
    return EOK;
}

ASCEND_GRAPH_SECUREC errno_t memcpy_s(void* target, size_t room, const void* source, size_t count) {
    const char* to = (const char*)target;
    const char* from = (const char*)source;
    if (to != NULL && from != NULL && to != from && count <= room && from < to + count && to < from + count) {
        memset(target, 0, room);
        return EOVERLAP_AND_RESET;
    }
    return memmove_s(target, room, source, count);
}

// Copies a text to the end of the first `used` characters of the target; on an error the target is empty.
static inline errno_t ascend_graph_append(char* target, size_t used, size_t room, const char* source,
                                          size_t count) {
    const size_t length = strnlen(source, count);
    char* const end = target + used;
    if (end == source && used == 0 && length < room) {
        target[length] = '\0';
        return EOK;
    }
    const bool overlaps = target <= source + length && source <= end + length && length < room - used;
    if (overlaps || length >= room - used) {
        target[0] = '\0';
        return overlaps ? EOVERLAP_AND_RESET : ERANGE_AND_RESET;
    }
    memcpy(end, source, length);
    end[length] = '\0';
    return EOK;
}
ASCEND_GRAPH_SECUREC errno_t strncpy_s(char* target, size_t room, const char* source, size_t count) {
    if (room == 0 || room > SECUREC_STRING_MAX_LEN) return ERANGE;
    if (target == NULL) return EINVAL;
    if (source == NULL || count > SECUREC_STRING_MAX_LEN) {
        target[0] = '\0';
        return source == NULL ? EINVAL_AND_RESET : ERANGE_AND_RESET;
    }
    return ascend_graph_append(target, 0, room, source, count);
}
ASCEND_GRAPH_SECUREC errno_t strcpy_s(char* target, size_t room, const char* source) {
    return strncpy_s(target, room, source, SECUREC_STRING_MAX_LEN);
}
ASCEND_GRAPH_SECUREC errno_t strncat_s(char* target, size_t room, const char* source, size_t count) {
    if (room == 0 || room > SECUREC_STRING_MAX_LEN) return ERANGE;
    if (target == NULL) return EINVAL;
    const size_t used = strnlen(target, room);
    if (source == NULL || used == room) {  // a target without an end is not a text
        target[0] = '\0';
        return EINVAL_AND_RESET;
    }
    if (count > SECUREC_STRING_MAX_LEN) {
        target[0] = '\0';
        return ERANGE_AND_RESET;
    }
    return ascend_graph_append(target, used, room, source, count);
}
ASCEND_GRAPH_SECUREC errno_t strcat_s(char* target, size_t room, const char* source) {
    return strncat_s(target, room, source, SECUREC_STRING_MAX_LEN);
}

ASCEND_GRAPH_SECUREC int vsnprintf_s(char* target, size_t room, size_t count, const char* format,
                                     va_list arguments) {
    if (target == NULL || room == 0 || room > SECUREC_STRING_MAX_LEN) return -1;
    if (format == NULL || (count > SECUREC_STRING_MAX_LEN && count != (size_t)-1)) {
        target[0] = '\0';
        return -1;
    }
    const size_t most = count < room ? count + 1 : room;
    const int length = vsnprintf(target, most, format, arguments);
    if (length >= 0 && (size_t)length < most) return length;
    if (count >= room) target[0] = '\0';  // what was asked for does not fit: nothing is left half
    return -1;
}
ASCEND_GRAPH_SECUREC int snprintf_s(char* target, size_t room, size_t count, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf_s(target, room, count, format, arguments);
    va_end(arguments);
    return length;
}
ASCEND_GRAPH_SECUREC int vsprintf_s(char* target, size_t room, const char* format, va_list arguments) {
    return vsnprintf_s(target, room, room, format, arguments);
}
ASCEND_GRAPH_SECUREC int sprintf_s(char* target, size_t room, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsprintf_s(target, room, format, arguments);
    va_end(arguments);
    return length;
}
// What does not fit is cut off, and the length of what is there returned.
ASCEND_GRAPH_SECUREC int vsnprintf_truncated_s(char* target, size_t room, const char* format,
                                               va_list arguments) {
    if (target == NULL || room == 0 || room > SECUREC_STRING_MAX_LEN) return -1;
    if (format == NULL) {
        target[0] = '\0';
        return -1;
    }
    const int length = vsnprintf(target, room, format, arguments);
    return length >= 0 && (size_t)length >= room ? (int)(room - 1) : length;
}
ASCEND_GRAPH_SECUREC int snprintf_truncated_s(char* target, size_t room, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf_truncated_s(target, room, format, arguments);
    va_end(arguments);
    return length;
}

ASCEND_GRAPH_SECUREC char* strtok_s(char* text, const char* delimiters, char** context) {
    if (context == NULL || delimiters == NULL || (text == NULL && *context == NULL)) return NULL;
    return strtok_r(text, delimiters, context);
}

// The end of the directive of a scan's format that begins here: one conversion, or what is not a conversion.
static inline const char* ascend_graph_directive(const char* format) {
    if (*format != '%' || format[1] == '%') {
        do format += *format == '%' ? 2 : 1;
        while (*format != '\0' && (*format != '%' || format[1] == '%'));
        return format;
    }
    for (++format; *format == '*' || isdigit((unsigned char)*format); ++format) {
    }
    while (*format != '\0' && strchr("hljztL", *format) != NULL) ++format;
    if (*format != '[') return *format == '\0' ? format : format + 1;
    format += format[1] == '^' ? 2 : 1;
    if (*format == ']') ++format;  // the first is one of the set
    while (*format != '\0' && *format != ']') ++format;
    return *format == '\0' ? format : format + 1;
}

// sscanf, with the room of each text behind its address; -1 where a text has too little of it.
ASCEND_GRAPH_SECUREC int vsscanf_s(const char* text, const char* format, va_list arguments) {
    enum { kLongest = 256 };
    if (text == NULL || format == NULL) return -1;
    int assigned = 0;
    size_t begin = 0;  // how many characters were read
    const char* read = text;
    while (*format != '\0') {
        const char* end = ascend_graph_directive(format);
        const size_t length = (size_t)(end - format);
        char directive[kLongest + 3];
        if (length > kLongest) return -1;
        memcpy(directive, format, length);
        memcpy(directive + length, "%n", 3);
        const bool converts = *format == '%' && format[1] != '%' && format[1] != '*';
        const char kind = format[length - 1];
        int used = -1;
        if (!converts) {
            sscanf(read, directive, &used);
        } else if (kind == 'n') {
            *va_arg(arguments, int*) = (int)begin;
            used = 0;
        } else if (kind == 's' || kind == 'c' || kind == ']') {
            char* target = va_arg(arguments, char*);
            const size_t room = va_arg(arguments, unsigned int);
            if (target == NULL || room == 0) return -1;
            // Skip over it first: the text is as long as what was read of it.
            char skipping[kLongest + 4] = "%*";
            memcpy(skipping + 2, directive + 1, length + 2);
            sscanf(read, skipping, &used);
            if (used >= 0) {
                size_t spaces = 0;
                while (kind == 's' && isspace((unsigned char)read[spaces])) ++spaces;
                if ((size_t)used - spaces + (kind == 'c' ? 0 : 1) > room) {
                    target[0] = '\0';
                    return -1;
                }
                sscanf(read, directive, target, &used);
                ++assigned;
            }
        } else {
            if (sscanf(read, directive, va_arg(arguments, void*), &used) == 1) ++assigned;
        }
        if (used < 0) return assigned == 0 && *read == '\0' ? -1 : assigned;
        read += used;
        begin += (size_t)used;
        format = end;
    }
    return assigned;
}
ASCEND_GRAPH_SECUREC int sscanf_s(const char* text, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int assigned = vsscanf_s(text, format, arguments);
    va_end(arguments);
    return assigned;
}

#endif  // ASCEND_GRAPH_SECUREC_H
