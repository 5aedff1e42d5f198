// The seam between kernel launches and the host runtime.
//
// Everything that starts a kernel (aclrtlaunch_<kernel>, kernel<<<...>>>, an operator package) ends in
// ascendgraphLaunchHost, so that one place orders kernels on streams and records them while a graph is
// captured. The host runtime's ACL library defines these functions; the Ascend C runtime library only calls
// them.
#ifndef ASCENDC_HOST_LAUNCH_H
#define ASCENDC_HOST_LAUNCH_H

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
extern "C" {
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif

typedef void* aclrtStream;
typedef int aclError;

// Runs `fn(copy of arg)` in the order of `stream`; a null stream is the default stream of the current
// context. `arg_size` bytes are copied before the call returns, with the alignment of max_align_t. While a
// graph is captured on `stream`, the call is recorded with its own copy of the bytes and run at every replay,
// but not now. `name` names the kernel in errors and traces and is copied too. Returns 0, or an ACL error
// code when the launch is refused.
aclError ascendgraphLaunchHost(aclrtStream stream, void (*fn)(void*), void* arg, size_t arg_size,
                               const char* name);

// Called by `fn`, on the thread that runs it, when the kernel failed: as on a device, the next
// synchronization returns `code`, and aclGetRecentErrMsg then returns `message`, which is copied. Called also
// by a launch that is refused before it reaches a stream.
void ascendgraphSetError(int code, const char* message);

// Runs `body(state)`, code of the module of `code`, and returns 0, or the number of the signal that ended it:
// a fault of the processor, SIGINT, or SIGALRM at the time limit, which counts from `since` (0: from now on).
// See host_runtime.h.
int ascendgraphGuard(void (*body)(void* state), void* state, const void* code, int64_t since);
typedef void (*ascendgraphDivided)(void);
ascendgraphDivided ascendgraphOnDivision(ascendgraphDivided divided);
uint64_t ascendgraphHold(void);
void ascendgraphRelease(uint64_t held);
int64_t ascendgraphNow(void);
const char* ascendgraphEndText(int ended);
bool ascendgraphInterruptIsRaised(void);
double ascendgraphKernelTimeout(void);

// The allocation that contains `p`, when the runtime made it: returns true and sets its start and its size in
// bytes. Weak: without it only the sizes given to GlobalTensor::SetGlobalBuffer are checked.
__attribute__((weak)) bool ascendgraphAllocationExtent(const void* p, const void** base, size_t* size);

#ifdef __cplusplus
}
#endif
#endif  // ASCENDC_HOST_LAUNCH_H
