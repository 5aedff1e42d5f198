// The seam between the host runtime's libraries: work in stream order, errors, allocations and bridges to
// PyTorch.
//
// libascendcl.so defines these functions; the other libraries of the toolkit, operator packages and launched
// kernels call them. Everything here is plain C so that it serves code of any C++ ABI.
#ifndef ASCEND_GRAPH_HOST_RUNTIME_H
#define ASCEND_GRAPH_HOST_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Records `message` as the calling thread's recent error (aclGetRecentErrMsg) and returns `code`, so that a
// failing function can write `return ascendgraphFail(code, "...")`.
int ascendgraphFail(int code, const char* message);
// The calling thread's recent error without clearing it; "" if there is none.
const char* ascendgraphRecentError(void);
// The same, without saying that somebody has read it.
const char* ascendgraphKeptError(void);

// Runs `run(state)` in the order of `stream` (null: the default stream). While the stream captures, the work
// is recorded instead and run by every replay. `destroy(state)` is called once, after the last run. Returns
// an ACL error code.
int ascendgraphEnqueue(void* stream, const char* name, int (*run)(void* state), void* state,
                       void (*destroy)(void* state));
// As ascendgraphEnqueue, for work that other processes have to answer: `run` begins it, returns
// ASCENDGRAPH_WAITS until they have, and is called again when something of the kind has ended. It is
// announced with ascendgraphRemoteBegins when it begins, and with ascendgraphRemoteEnds, by any thread, when
// it ends.
#define ASCENDGRAPH_WAITS (-1)
int ascendgraphCommunicate(void* stream, const char* name, int (*run)(void* state), void* state,
                           void (*destroy)(void* state));
void ascendgraphRemoteBegins(void);
void ascendgraphRemoteEnds(void);
// Runs `fn` with a copy of `arg_size` bytes at `arg`, in the order of `stream`. `fn` reports a failure with
// ascendgraphSetError; as on a device, whatever comes next reports it: a synchronization, or another
// operator.
int ascendgraphLaunchHost(void* stream, void (*fn)(void*), void* arg, size_t arg_size, const char* name);
void ascendgraphSetError(int code, const char* message);
// The failure of a launch that nothing has reported yet, which is reported with this call: 0 if there is
// none.
int ascendgraphReportKernelFailure(void);
// Why work on `stream` is kept instead of being run at once, as a clause ("the stream is capturing a model");
// null if it is run.
const char* ascendgraphDeferral(void* stream);
// Whether any stream of the process keeps work: a cheap test before the one above.
bool ascendgraphAnyDeferral(void);

// Who is told of each piece of work that a stream runs, on the thread that runs it: `begin` returns what
// `end` is given afterwards, null where nobody listens. The bridge to PyTorch supplies them.
void ascendgraphSetTracer(void* (*begin)(const char* name), void (*end)(void* range));

// A kernel that has run: its name, where, and when (nanoseconds since 1970).
struct AscendgraphWork {
    const char* name;
    int32_t device;
    int32_t stream;
    int64_t start;
    int64_t end;
};
// Who is told of each kernel, on the thread that ran it; null for nobody. libmspti.so supplies it.
void ascendgraphObserveWork(void (*ran)(const struct AscendgraphWork* work));
bool ascendgraphWorkIsObserved(void);
// The stream that this thread's kernels are of from now on; returns the one before.
void* ascendgraphWorkOn(void* stream);
// Before and after a kernel. The first returns 0 where nobody is to be told of it, for it is part of another,
// or nobody listens; the second does nothing then.
int64_t ascendgraphWorkBegins(void);
void ascendgraphWorkEnds(int64_t began, const char* name);

// The live device or pinned allocation that contains `p`.
bool ascendgraphAllocationExtent(const void* p, const void** base, size_t* size);
// How many allocations were released: what was live is live as long as this does not change.
uint64_t ascendgraphReleases(void);

// Authors' code (kernels, tiling and shape functions) may do anything. Runs `body(state)`, which may throw,
// and returns 0 when it returned, or the number of the signal that ended it: SIGSEGV, SIGBUS and SIGFPE,
// SIGSTKFLT where its stack was exhausted, SIGINT for Ctrl-C, SIGALRM at the limit of
// ASCEND_GRAPH_KERNEL_TIMEOUT. Then it was left by a jump: destructors of its frames have not run.
// `code` is a function in the author's module; the limit counts from `since`, a time of ascendgraphNow, or
// from now on where that is 0.
int ascendgraphGuard(void (*body)(void* state), void* state, const void* code, int64_t since);
// Who is asked about a division that the processor refuses (SIGFPE) anywhere else: true if the thread goes
// on, with the registers of `context`. `info` and `context` are those of a signal handler. To be called again
// before such code runs, for others take the signal over, too.
void ascendgraphHandleDivisions(bool (*goes_on)(void* info, void* context));
// For such a handler: the thread goes on behind the division. The smallest number divided by -1 is itself,
// and any number divided by zero is zero. False where it was no division that is known.
bool ascendgraphPassDivision(void* info, void* context, bool* by_zero);
// In what ascendgraphGuard enters, an integer division by zero ends the body, as it ends a process. From here
// on the thread calls `divided` instead, in a signal handler, and goes on with a quotient and a remainder
// that nobody knows. Null: as before. Returns what was called before.
typedef void (*ascendgraphDivided)(void);
ascendgraphDivided ascendgraphOnDivision(ascendgraphDivided divided);
// From the first of these calls to the second the thread is not taken out of what ascendgraphGuard entered:
// for a runtime that kernels call.
uint64_t ascendgraphHold(void);
void ascendgraphRelease(uint64_t held);
// Nanoseconds of a clock that goes on.
int64_t ascendgraphNow(void);
// How it ended, as the predicate of a sentence: "did not end in 5 seconds, …".
const char* ascendgraphEndText(int ended);
// The limit in seconds: 0 for none, negative where ASCEND_GRAPH_KERNEL_TIMEOUT is malformed.
double ascendgraphKernelTimeout(void);
// Whether the interpreter raises a SIGINT that has just been handled as KeyboardInterrupt, on this thread,
// when it continues: then nothing else need report it. The bridge to PyTorch supplies the answer.
bool ascendgraphInterruptIsRaised(void);
void ascendgraphSetInterruptHook(bool (*is_raised)(void));

#ifdef __cplusplus
}  // extern "C"

#include <string>

namespace ascend_graph::host {

// Ends the text of an error that no program should be able to cause.
constexpr const char* kReport =
    "; this is a fault of ascend_graph: report it with the program and the output of ascend-graph doctor";

// The error of a null argument: "aclrtGetDevice: deviceId is null; expected an address".
inline int fail_null(int code, const std::string& function, const char* parameters) {
    return ascendgraphFail(code, (function + ": " + parameters + " is null; expected an address").c_str());
}

// Where this thread's kernels are, as long as it lives.
class WorkOn {
  public:
    explicit WorkOn(void* stream) : before_(ascendgraphWorkOn(stream)) {}
    ~WorkOn() { ascendgraphWorkOn(before_); }
    WorkOn(const WorkOn&) = delete;
    WorkOn& operator=(const WorkOn&) = delete;

  private:
    void* before_;
};

// A kernel on this thread, which runs as long as it lives; `name` has to live as long.
class Kernel {
  public:
    Kernel(void* stream, const char* name) : stream_(stream), name_(name), began_(ascendgraphWorkBegins()) {}
    ~Kernel() {
        if (began_ == 0) return;
        const WorkOn here(stream_);
        ascendgraphWorkEnds(began_, name_);
    }
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;

  private:
    void* const stream_;
    const char* const name_;
    const int64_t began_;
};

}  // namespace ascend_graph::host
#endif

#endif  // ASCEND_GRAPH_HOST_RUNTIME_H
