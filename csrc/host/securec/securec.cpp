// libc_sec.so: the functions of securec.h, for libraries that were linked elsewhere.
#define ASCEND_GRAPH_SECUREC extern "C" __attribute__((visibility("default")))
#include "securec.h"

#include <wchar.h>

#define EXPORT ASCEND_GRAPH_SECUREC

namespace {

// Sizes of wide characters in bytes; too many become a size that the functions of bytes refuse.
size_t bytes(size_t characters) {
    return characters > SECUREC_MEM_MAX_LEN / sizeof(wchar_t) ? SECUREC_MEM_MAX_LEN + 1
                                                              : characters * sizeof(wchar_t);
}

constexpr size_t kLongestWide = SECUREC_STRING_MAX_LEN / sizeof(wchar_t);

errno_t append(wchar_t* target, size_t used, size_t room, const wchar_t* source, size_t count) {
    const size_t length = wcsnlen(source, count);
    wchar_t* const end = target + used;
    if (end == source && used == 0 && length < room) {
        target[length] = L'\0';
        return EOK;
    }
    const bool fits = length < room - used;
    const bool overlaps = fits && target <= source + length && source <= end + length;
    if (overlaps || !fits) {
        target[0] = L'\0';
        return overlaps ? EOVERLAP_AND_RESET : ERANGE_AND_RESET;
    }
    wmemcpy(end, source, length);
    end[length] = L'\0';
    return EOK;
}

}  // namespace

EXPORT errno_t wmemmove_s(wchar_t* target, size_t room, const wchar_t* source, size_t count) {
    return memmove_s(target, bytes(room), source, bytes(count));
}
EXPORT errno_t wmemcpy_s(wchar_t* target, size_t room, const wchar_t* source, size_t count) {
    return memcpy_s(target, bytes(room), source, bytes(count));
}

EXPORT errno_t wcsncpy_s(wchar_t* target, size_t room, const wchar_t* source, size_t count) {
    if (room == 0 || room > kLongestWide) return ERANGE;
    if (target == nullptr) return EINVAL;
    if (source == nullptr || count > kLongestWide) {
        target[0] = L'\0';
        return source == nullptr ? EINVAL_AND_RESET : ERANGE_AND_RESET;
    }
    return append(target, 0, room, source, count);
}
EXPORT errno_t wcscpy_s(wchar_t* target, size_t room, const wchar_t* source) {
    return wcsncpy_s(target, room, source, kLongestWide);
}
EXPORT errno_t wcsncat_s(wchar_t* target, size_t room, const wchar_t* source, size_t count) {
    if (room == 0 || room > kLongestWide) return ERANGE;
    if (target == nullptr) return EINVAL;
    const size_t used = wcsnlen(target, room);
    if (source == nullptr || used == room || count > kLongestWide) {
        target[0] = L'\0';
        return source == nullptr || used == room ? EINVAL_AND_RESET : ERANGE_AND_RESET;
    }
    return append(target, used, room, source, count);
}
EXPORT errno_t wcscat_s(wchar_t* target, size_t room, const wchar_t* source) {
    return wcsncat_s(target, room, source, kLongestWide);
}
EXPORT wchar_t* wcstok_s(wchar_t* text, const wchar_t* delimiters, wchar_t** context) {
    if (context == nullptr || delimiters == nullptr || (text == nullptr && *context == nullptr))
        return nullptr;
    return wcstok(text, delimiters, context);
}

EXPORT int vswprintf_s(wchar_t* target, size_t room, const wchar_t* format, va_list arguments) {
    if (target == nullptr || room == 0 || room > kLongestWide) return -1;
    const int length = format == nullptr ? -1 : vswprintf(target, room, format, arguments);
    if (length < 0) target[0] = L'\0';
    return length;
}
EXPORT int swprintf_s(wchar_t* target, size_t room, const wchar_t* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vswprintf_s(target, room, format, arguments);
    va_end(arguments);
    return length;
}
