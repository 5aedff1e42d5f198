// A thread that enters authors' code, as the watchdog and the signal handlers see it; time and its limit.
#pragma once

#include <pthread.h>
#include <setjmp.h>

#include <atomic>
#include <cstdint>

namespace ascend_graph::host::guard {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kSecond = 1'000'000'000;

// Nanoseconds of a clock that goes on.
int64_t now();
// The limit in nanoseconds, 0 for none, and as ASCEND_GRAPH_KERNEL_TIMEOUT has it now: -1 where it is
// malformed.
int64_t limit();
int64_t parse_limit();

// What a thread does, as the watchdog sees it. Sections are numbered, for one to be left and no other.
struct Thread {
    pthread_t id = pthread_self();
    std::atomic<uint64_t> section{0};  // 0: nothing that may be left
    std::atomic<int64_t> since{0};
    std::atomic<const void*> code{nullptr};

    std::atomic<uint64_t> leave{0};  // the section to leave
    std::atomic<int> reason{0};
    std::atomic<int64_t> asked{0};
    std::atomic<uintptr_t> low{0}, high{0};  // the module of `code`

    sigjmp_buf* jump = nullptr;
    uint64_t last = 0;
};

// Read by signal handlers and by every call: no look-up of the library's thread storage, just an offset.
// __thread, because a thread_local might have to be initialized first.
extern __attribute__((tls_model("initial-exec"), visibility("hidden"))) __thread Thread* self;

}  // namespace ascend_graph::host::guard
