// What a program for CPU debugging calls: it launches kernels as functions, without streams and copies.
//
//   uint8_t* x = (uint8_t*)AscendC::GmAlloc(bytes);
//   AscendC::SetKernelMode(KernelMode::AIV_MODE);
//   ICPU_RUN_KF(add_custom, blocks, x, y, z);   // returns when the kernel has run; a fault ends the program
#ifndef ASCENDC_HOST_TIKICPULIB_H
#define ASCENDC_HOST_TIKICPULIB_H

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>

#include "acl/acl.h"
#include "ascendc_host/internal/half.h"
#include "ascendc_host/internal/runtime.h"

using half = ascendc_host::Float16;

// Kernels say by themselves which cores they run on, so that the mode changes nothing on the host.
enum class KernelMode { MIX_MODE = 0, AIC_MODE = 1, AIV_MODE = 2, MIX_AIC_1_1 = 3 };

namespace ascendc_host {
namespace cpu_debug {

inline void require(aclError status, const char* what) {
    if (status == ACL_SUCCESS) return;
    const char* said = aclGetRecentErrMsg();
    std::fprintf(stderr, "%s: %s\n", what, said == nullptr || *said == '\0' ? "failed" : said);
    std::exit(EXIT_FAILURE);
}

// The device of this thread, which a program for CPU debugging does not choose.
inline void require_device(const char* what) {
    int32_t device = 0;
    if (aclrtGetDevice(&device) == ACL_SUCCESS) return;
    const aclError status = aclInit(nullptr);
    require(status == ACL_ERROR_REPEAT_INITIALIZE ? ACL_SUCCESS : status, what);
    require(aclrtSetDevice(0), what);
}

// A parameter as the launch function of a kernel takes it: numbers by value, structures by their address.
template <typename T, bool by_value = std::is_arithmetic<T>::value || std::is_same<T, half>::value>
struct Passed {
    using type = const void*;
    static type of(const T& value) { return &value; }
};
template <typename T>
struct Passed<T, true> {
    using type = T;
    static type of(const T& value) { return value; }
};
template <typename T>
struct Passed<T*, false> {
    using type = void*;
    static type of(T* value) { return const_cast<std::remove_cv_t<T>*>(value); }
};

// Runs `blocks` blocks of a kernel. Its launch function, which the compiler driver makes next to it, knows
// the code of both kinds of core; a kernel without one (a template) is called as it is.
template <typename Direct, typename... Parameters, typename... Values>
void run(const char* name, Direct direct, void (*)(Parameters...), uint32_t blocks, const Values&... values) {
    static_assert(sizeof...(Parameters) == sizeof...(Values),
                  "ICPU_RUN_KF: one value for each parameter of the kernel is expected");
    require_device("ICPU_RUN_KF");
    using Launch = uint32_t (*)(uint32_t, void*, typename Passed<std::remove_cv_t<Parameters>>::type...);
    const auto launch_function =
        reinterpret_cast<Launch>(dlsym(RTLD_DEFAULT, (std::string("aclrtlaunch_") + name).c_str()));
    const uint32_t status =
        launch_function != nullptr
            ? launch_function(blocks, nullptr, Passed<std::remove_cv_t<Parameters>>::of(values)...)
            : launch(name, blocks, nullptr, direct, static_cast<Parameters>(values)...);
    require(static_cast<aclError>(status), "ICPU_RUN_KF");
    require(aclrtSynchronizeStream(nullptr), "ICPU_RUN_KF");
}

}  // namespace cpu_debug
}  // namespace ascendc_host

namespace AscendC {

inline void SetKernelMode(KernelMode) {}

// Memory that kernels and the program read and write. Its size is known, so that accesses beyond it are
// faults.
inline void* GmAlloc(size_t size) {
    ascendc_host::cpu_debug::require_device("GmAlloc");
    void* memory = nullptr;
    ascendc_host::cpu_debug::require(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST), "GmAlloc");
    return memory;
}
inline void GmFree(void* memory) { ascendc_host::cpu_debug::require(aclrtFree(memory), "GmFree"); }

}  // namespace AscendC

#define ICPU_SET_TILING_KEY(tiling_key) ::ascendc_host::ascendcHostSetTilingKey(tiling_key)
#define ICPU_RUN_KF(kernel, blocks, ...) \
    ::ascendc_host::cpu_debug::run(      \
        #kernel, [](const auto&... values_) { kernel(values_...); }, kernel, blocks, ##__VA_ARGS__)

#endif  // ASCENDC_HOST_TIKICPULIB_H
