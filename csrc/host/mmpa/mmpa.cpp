// libmmpa.so: the functions of the system that CANN's libraries and operator packages call through it.
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "acl/abi.h"

namespace {

enum : int32_t { kOk = 0, kError = -1, kInvalidParameter = -2 };

}  // namespace

ACL_EXPORT void* mmDlopen(const char* file, int32_t mode) {
    return file == nullptr ? nullptr : dlopen(file, mode);
}
ACL_EXPORT void* mmDlsym(void* library, const char* name) {
    return library == nullptr || name == nullptr ? nullptr : dlsym(library, name);
}
ACL_EXPORT int32_t mmDlclose(void* library) {
    if (library == nullptr) return kInvalidParameter;
    return dlclose(library) == 0 ? kOk : kError;
}
ACL_EXPORT char* mmDlerror() { return dlerror(); }

// mmDlInfo has the members of Dl_info, in their order.
ACL_EXPORT int32_t mmDladdr(void* address, Dl_info* info) {
    if (address == nullptr || info == nullptr) return kInvalidParameter;
    return dladdr(address, info) == 0 ? kError : kOk;
}

ACL_EXPORT int32_t mmGetTid() { return static_cast<int32_t>(syscall(SYS_gettid)); }

ACL_EXPORT int32_t mmGetErrorCode() { return errno; }
ACL_EXPORT char* mmGetErrorFormatMessage(int32_t code, char* text, uint64_t room) {
    if (text == nullptr || room == 0) return nullptr;
    return strerror_r(code, text, room);
}

ACL_EXPORT int32_t mmRealPath(const char* path, char* real_path, int32_t room) {
    if (path == nullptr || real_path == nullptr || room < PATH_MAX) return kInvalidParameter;
    return realpath(path, real_path) == nullptr ? kError : kOk;
}
