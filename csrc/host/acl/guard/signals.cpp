// A kernel that never ends can only be left by a jump out of it. The jump is made by a signal handler on the
// kernel's own thread, and only where it cannot break what others use: while the thread executes the author's
// module itself, not malloc or another library. What the kernel held (memory, its own locks) is lost.
#include "acl/guard/signals.h"

#include <elf.h>
#include <link.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

#include "acl/guard/divisions.h"
#include "acl/strict.h"

namespace ascend_graph::host::guard {

__attribute__((tls_model("initial-exec"))) __thread void (*on_division)() = nullptr;

namespace {

constexpr int kStop = SIGURG;  // ignored where nobody handles it, and used by nobody
// How long the jump waits for a harmless moment: then a thread that blocks in the kernel may be taken out of
// it, then any.
constexpr int64_t kPatience = kSecond / 2;
constexpr int64_t kLastResort = 3 * kSecond;

std::atomic<int64_t> interrupted{0};  // the time of the last SIGINT
struct sigaction before_interrupt;

uintptr_t program_counter(void* context) {
#if defined(__x86_64__)
    return static_cast<uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return static_cast<uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.pc);
#else
    return 0;
#endif
}
uintptr_t stack_pointer(void* context) {
#if defined(__x86_64__)
    return static_cast<uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
    return static_cast<uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.sp);
#else
    return 0;
#endif
}
// Whether the thread was interrupted in a call of the operating system, which may be about to be repeated.
bool in_system_call(uintptr_t pc) {
#if defined(__x86_64__)
    static const char instruction[] = {'\x0f', '\x05'};  // syscall
#elif defined(__aarch64__)
    static const char instruction[] = {'\x01', '\x00', '\x00', '\xd4'};  // svc #0
#else
    static const char instruction[] = {};
    return false;
#endif
    const auto* at = reinterpret_cast<const char*>(pc);
    return std::memcmp(at - sizeof(instruction), instruction, sizeof(instruction)) == 0 ||
           std::memcmp(at, instruction, sizeof(instruction)) == 0;
}

void on_stop(int, siginfo_t*, void* context) {
    Thread* thread = self;
    if (thread == nullptr || thread->jump == nullptr) return;
    const uint64_t section = thread->section.load(std::memory_order_relaxed);
    if (section == 0 || thread->leave.load(std::memory_order_acquire) != section) return;
    const uintptr_t pc = program_counter(context);
    const int64_t waited = now() - thread->asked.load(std::memory_order_relaxed);
    const bool in_author = pc >= thread->low.load(std::memory_order_relaxed) &&
                           pc < thread->high.load(std::memory_order_relaxed);
    if (in_author || waited > kLastResort || (waited > kPatience && in_system_call(pc)))
        siglongjmp(*thread->jump, thread->reason.load(std::memory_order_relaxed));
}

// Raw pointers, integer division and endless recursion are beyond what headers can check. A fault inside a
// section ends the section; a fault anywhere else goes on to whoever handled it before.
constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE};
struct sigaction before_fault[std::size(kFaults)];
std::atomic<DivisionHandler> division_handler{nullptr};

// Where a strict runtime keeps threads out of device memory: says who it was, before the process ends of it
// or the kernel does.
void say_why(const void* address) {
    char text[320], line[400];
    if (!strict::enabled() || !strict::explain(address, text, sizeof text)) return;
    const int length = std::snprintf(line, sizeof line, "\nascend_graph, strict: %s\n", text);
    if (length > 0 && write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0) return;
}

void on_fault(int signal, siginfo_t* info, void* context) {
    if (signal == SIGFPE && on_division != nullptr &&
        pass_division(info, context, kNobodyKnows, false) == Passed::by_zero)
        return on_division();
    if (signal == SIGSEGV) say_why(info->si_addr);
    if (self != nullptr && self->jump != nullptr) {
        const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
        const uintptr_t stack = stack_pointer(context);
        const uintptr_t distance = address > stack ? address - stack : stack - address;
        siglongjmp(*self->jump, signal == SIGSEGV && distance < 65536 ? SIGSTKFLT : signal);
    }
    if (signal == SIGFPE) {
        const DivisionHandler goes_on = division_handler.load(std::memory_order_relaxed);
        if (goes_on != nullptr && goes_on(info, context)) return;
    }
    const auto& old = before_fault[std::find(std::begin(kFaults), std::end(kFaults), signal) - kFaults];
    if ((old.sa_flags & SA_SIGINFO) != 0 && old.sa_sigaction != nullptr)
        return old.sa_sigaction(signal, info, context);
    if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) return old.sa_handler(signal);
    ::signal(signal, SIG_DFL);  // the instruction runs again and ends the process as it would have
}

void handle(int signal, void (*handler)(int, siginfo_t*, void*), struct sigaction* before) {
    struct sigaction action = {};
    action.sa_sigaction = handler;
    // Handlers that are left by a jump leave the signal mask as it was.
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, before);
}

void on_interrupt(int signal, siginfo_t* info, void* context) {
    interrupted.store(now(), std::memory_order_relaxed);
    if ((before_interrupt.sa_flags & SA_SIGINFO) != 0)
        before_interrupt.sa_sigaction(signal, info, context);
    else
        before_interrupt.sa_handler(signal);
}
bool handles_interrupt(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_interrupt;
}

// Where the executable code of the module lies that contains `code`.
std::pair<uintptr_t, uintptr_t> module_of(const void* code) {
    struct Search {
        uintptr_t address, low = 0, high = 0;
    } search{reinterpret_cast<uintptr_t>(code)};
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* p) {
            auto& wanted = *static_cast<Search*>(p);
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const auto& segment = info->dlpi_phdr[i];
                const uintptr_t low = info->dlpi_addr + segment.p_vaddr, high = low + segment.p_memsz;
                if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
                if (wanted.address < low || wanted.address >= high) continue;
                wanted.low = low;
                wanted.high = high;
                return 1;
            }
            return 0;
        },
        &search);
    return {search.low, search.high};
}

}  // namespace

void handle_signals() {
    handle(kStop, on_stop, nullptr);
    for (size_t i = 0; i < std::size(kFaults); ++i) handle(kFaults[i], on_fault, &before_fault[i]);
}

void handle_divisions(DivisionHandler goes_on) {
    division_handler.store(goes_on, std::memory_order_relaxed);
    struct sigaction current;
    if (sigaction(SIGFPE, nullptr, &current) != 0 || current.sa_sigaction == on_fault) return;
    handle(SIGFPE, on_fault, nullptr);  // not passed on to who took it over, who would pass it back
}

void make_leave(Thread& thread, uint64_t section, int reason) {
    if (thread.leave.load(std::memory_order_relaxed) != section) {
        const auto [low, high] = module_of(thread.code.load(std::memory_order_relaxed));
        thread.low.store(low, std::memory_order_relaxed);
        thread.high.store(high, std::memory_order_relaxed);
        thread.reason.store(reason, std::memory_order_relaxed);
        thread.asked.store(now(), std::memory_order_relaxed);
        thread.leave.store(section, std::memory_order_release);
        handle(kStop, on_stop, nullptr);  // should somebody have replaced it
    }
    pthread_kill(thread.id, kStop);
}

void note_interrupts() {
    struct sigaction current = {};
    sigaction(SIGINT, nullptr, &current);
    const bool by_default = (current.sa_flags & SA_SIGINFO) == 0 &&
                            (current.sa_handler == SIG_DFL || current.sa_handler == SIG_IGN);
    if (by_default || handles_interrupt(current)) return;
    before_interrupt = current;
    current.sa_sigaction = on_interrupt;
    current.sa_flags |= SA_SIGINFO;
    sigaction(SIGINT, &current, nullptr);
}
void forget_interrupts() {
    struct sigaction current = {};
    sigaction(SIGINT, nullptr, &current);
    if (handles_interrupt(current)) sigaction(SIGINT, &before_interrupt, nullptr);
}
int64_t last_interrupt() { return interrupted.load(std::memory_order_relaxed); }

}  // namespace ascend_graph::host::guard
