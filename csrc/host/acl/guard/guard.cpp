// Authors' code, which may do anything: it is entered here, and left when it returns, when the processor
// faults, at the time limit or at Ctrl-C.
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "acl/abi.h"
#include "acl/guard/divisions.h"
#include "acl/guard/signals.h"
#include "acl/guard/watchdog.h"
#include "ascend_graph/entering.h"
#include "ascend_graph/host_runtime.h"

namespace ascend_graph::host::guard {

__attribute__((tls_model("initial-exec"))) __thread Thread* self = nullptr;

int64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * kSecond + time.tv_nsec;
}

int64_t parse_limit() {
    const char* text = std::getenv("ASCEND_GRAPH_KERNEL_TIMEOUT");
    if (text == nullptr || *text == '\0') return 0;
    char* end = nullptr;
    const double seconds = std::strtod(text, &end);
    return *end == '\0' && seconds >= 1e-3 && seconds <= 1e9 ? static_cast<int64_t>(seconds * kSecond) : -1;
}
int64_t limit() {
    static const int64_t value = std::max<int64_t>(0, parse_limit());
    return value;
}

namespace {

// A thread that has entered a section once, until it ends.
class Registration {
  public:
    Registration() {
        self = new Thread;
        Watchdog::get().add(self);
        stack_t current;
        if (sigaltstack(nullptr, &current) != 0 || (current.ss_flags & SS_DISABLE) == 0) return;
        void* memory = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return;
        stack_ = memory;
        stack_t mine = {};
        mine.ss_sp = memory;
        mine.ss_size = kStack;
        sigaltstack(&mine, nullptr);
    }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    ~Registration() {
        Watchdog::get().remove(self);
        delete std::exchange(self, nullptr);
        stack_t current;
        if (stack_ == nullptr || sigaltstack(nullptr, &current) != 0) return;
        if (current.ss_sp == stack_) {
            current.ss_flags = SS_DISABLE;
            sigaltstack(&current, nullptr);
        }
        munmap(stack_, kStack);
    }

  private:
    static constexpr size_t kStack = 64 * 1024;  // where a thread handles the overflow of its own
    void* stack_ = nullptr;
};

// What the thread does from here on; then, what it did before.
class Section {
  public:
    Section(const void* code, int64_t since)
        : thread_(current()),
          section_(thread_.section.load(std::memory_order_relaxed)),
          since_(thread_.since.load(std::memory_order_relaxed)),
          code_(thread_.code.load(std::memory_order_relaxed)),
          jump_(thread_.jump) {
        set(nullptr, code, since == 0 ? now() : since);
    }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;
    ~Section() {
        set(jump_, code_, since_);
        thread_.section.store(section_, std::memory_order_release);
    }
    // From here on the section may be left.
    void open(sigjmp_buf* jump) {
        thread_.jump = jump;
        thread_.section.store(++thread_.last);
        Watchdog::get().wake_if_asleep();
    }

  private:
    static Thread& current() {
        if (self == nullptr) static thread_local Registration registration;
        if (self == nullptr) self = new Thread;  // the thread is ending: nobody watches it any more
        return *self;
    }
    void set(sigjmp_buf* jump, const void* code, int64_t since) {
        // First out of the section that was: a signal handler must not see half of each.
        thread_.section.store(0, std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        thread_.jump = jump;
        thread_.code.store(code, std::memory_order_relaxed);
        thread_.since.store(since, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }

    Thread& thread_;
    const uint64_t section_;
    const int64_t since_;
    const void* const code_;
    sigjmp_buf* const jump_;
};

bool (*interrupt_is_raised)() = nullptr;

}  // namespace
}  // namespace ascend_graph::host::guard

using namespace ascend_graph::host::guard;

ACL_EXPORT int64_t ascendgraphNow(void) { return now(); }

ACL_EXPORT int ascendgraphGuard(void (*body)(void* state), void* state, const void* code, int64_t since) {
    sigjmp_buf jump;
    // A tiling function reads the values of its ValueDepend inputs where they are.
    const ascend_graph::host::Entering entering(nullptr);
    Section section(code, since);
    const int ended = sigsetjmp(jump, 0);
    if (ended == 0) {
        section.open(&jump);
        body(state);
    }
    return ended;
}

ACL_EXPORT void ascendgraphHandleDivisions(bool (*goes_on)(void* info, void* context)) {
    Watchdog::get();  // handles signals from its first use on
    handle_divisions(goes_on);
}

ACL_EXPORT bool ascendgraphPassDivision(void* info, void* context, bool* by_zero) {
    const Passed passed = pass_division(info, context, 0, true);
    *by_zero = passed == Passed::by_zero;
    return passed != Passed::no;
}

ACL_EXPORT ascendgraphDivided ascendgraphOnDivision(ascendgraphDivided divided) {
    return std::exchange(on_division, divided);
}

ACL_EXPORT uint64_t ascendgraphHold(void) { return self == nullptr ? 0 : self->section.exchange(0); }
ACL_EXPORT void ascendgraphRelease(uint64_t held) {
    if (self != nullptr) self->section.store(held);
}

ACL_EXPORT double ascendgraphKernelTimeout(void) {
    const int64_t value = parse_limit();
    return value < 0 ? -1 : static_cast<double>(value) / kSecond;
}

ACL_EXPORT const char* ascendgraphEndText(int ended) {
    switch (ended) {
        case SIGALRM: {
            static const std::string text = [] {
                char seconds[32];
                std::snprintf(seconds, sizeof(seconds), "%g", static_cast<double>(limit()) / kSecond);
                return std::string("did not end in ") + seconds +
                       " seconds, the limit of ASCEND_GRAPH_KERNEL_TIMEOUT";
            }();
            return text.c_str();
        }
        case SIGINT:
            return "was interrupted (SIGINT)";
        case SIGFPE:
            return "divides by zero, or overflows in a division";
        case SIGSTKFLT:
            return "exhausts its stack: a recursion without end, or local arrays that are too large";
        default:
            return "accesses memory through a null or bad pointer";
    }
}

ACL_EXPORT void ascendgraphSetInterruptHook(bool (*is_raised)(void)) { interrupt_is_raised = is_raised; }
ACL_EXPORT bool ascendgraphInterruptIsRaised(void) {
    return interrupt_is_raised != nullptr && interrupt_is_raised();
}
