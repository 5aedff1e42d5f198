// Authors' code, which may do anything: it is entered here, and left when it returns, when the processor
// faults, at the time limit or at Ctrl-C.
//
// A kernel that never ends can only be left by a jump out of it. The jump is made by a signal handler on the
// kernel's own thread, and only where it cannot break what others use: while the thread executes the author's
// module itself, not malloc or another library. What the kernel held (memory, its own locks) is lost.
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "acl/abi.h"
#include "ascend_graph/host_runtime.h"

namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kSecond = 1'000'000'000;
constexpr int kStop = SIGURG;  // ignored where nobody handles it, and used by nobody
constexpr int64_t kTick = 50 * kMillisecond;
// How long the jump waits for a harmless moment: then a thread that blocks in the kernel may be taken out of
// it, then any.
constexpr int64_t kPatience = kSecond / 2;
constexpr int64_t kLastResort = 3 * kSecond;

int64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * kSecond + time.tv_nsec;
}

// The limit in nanoseconds, 0 for none; -1 where the variable is malformed.
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
__attribute__((tls_model("initial-exec"))) thread_local Thread* self = nullptr;

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

void on_fault(int signal, siginfo_t* info, void* context) {
    if (self != nullptr && self->jump != nullptr) {
        const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
        const uintptr_t stack = stack_pointer(context);
        const uintptr_t distance = address > stack ? address - stack : stack - address;
        siglongjmp(*self->jump, signal == SIGSEGV && distance < 65536 ? SIGSTKFLT : signal);
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

// While authors' code runs for long, SIGINT is noted here on its way to the handler that the process has for
// it. Where it has none, SIGINT ends it as ever.
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

class Watchdog {
  public:
    // Never destroyed: threads outlive static objects.
    static Watchdog& get() {
        static Watchdog* watchdog = [] {
            handle(kStop, on_stop, nullptr);
            for (size_t i = 0; i < std::size(kFaults); ++i) handle(kFaults[i], on_fault, &before_fault[i]);
            // Threads do not survive a fork, but the one that forks does.
            pthread_atfork(nullptr, nullptr, [] {
                new (&get()) Watchdog;
                if (self != nullptr) get().threads_.push_back(self);
            });
            return new Watchdog;
        }();
        return *watchdog;
    }

    void add(Thread* thread) {
        std::lock_guard<std::mutex> lock(mutex_);
        threads_.push_back(thread);
    }
    void remove(Thread* thread) {
        std::lock_guard<std::mutex> lock(mutex_);
        threads_.erase(std::remove(threads_.begin(), threads_.end(), thread), threads_.end());
    }
    void wake_if_asleep() {
        if (!asleep_.load()) return;
        std::lock_guard<std::mutex> lock(mutex_);
        if (!started_) start();
        asleep_ = false;
        wake_.notify_one();
    }

  private:
    void start() {
        started_ = true;
        // No signal of the process is handled by this thread.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        std::thread([this] { watch(); }).detach();
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    void watch() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (int idle = 0;;) {
            int64_t pause = kTick;
            bool any = false, lasting = false;
            const int64_t time = now();
            for (Thread* thread : threads_) {
                const uint64_t section = thread->section.load();
                if (section == 0) continue;
                any = true;
                const int64_t since = thread->since.load(std::memory_order_relaxed);
                lasting |= time - since >= kTick;
                if (limit() != 0) pause = std::min(pause, std::max(since + limit() - time, kMillisecond));
                if (check(*thread, section, since, time)) pause = kMillisecond;
            }
            if (lasting) note_interrupts();
            idle = any ? 0 : idle + 1;
            if (idle == 1) forget_interrupts();
            if (idle > 20) {
                asleep_ = true;
                if (std::none_of(threads_.begin(), threads_.end(),
                                 [](Thread* thread) { return thread->section.load() != 0; })) {
                    wake_.wait(lock, [this] { return !asleep_.load(); });
                }
                asleep_ = false;
                idle = 0;
                continue;
            }
            wake_.wait_for(lock, std::chrono::nanoseconds(pause));
        }
    }

    // Whether the thread must leave its section.
    static bool check(Thread& thread, uint64_t section, int64_t since, int64_t time) {
        const bool expired = limit() != 0 && time - since >= limit();
        const bool stopped = interrupted.load(std::memory_order_relaxed) > since;
        if (!expired && !stopped) return false;
        if (thread.leave.load(std::memory_order_relaxed) != section) {
            const auto [low, high] = module_of(thread.code.load(std::memory_order_relaxed));
            thread.low.store(low, std::memory_order_relaxed);
            thread.high.store(high, std::memory_order_relaxed);
            thread.reason.store(stopped ? SIGINT : SIGALRM, std::memory_order_relaxed);
            thread.asked.store(time, std::memory_order_relaxed);
            thread.leave.store(section, std::memory_order_release);
            handle(kStop, on_stop, nullptr);  // should somebody have replaced it
        }
        pthread_kill(thread.id, kStop);
        return true;
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<Thread*> threads_;
    std::atomic<bool> asleep_{true};
    bool started_ = false;
};

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

ACL_EXPORT int64_t ascendgraphNow(void) { return now(); }

ACL_EXPORT int ascendgraphGuard(void (*body)(void* state), void* state, const void* code, int64_t since) {
    sigjmp_buf jump;
    Section section(code, since);
    const int ended = sigsetjmp(jump, 0);
    if (ended == 0) {
        section.open(&jump);
        body(state);
    }
    return ended;
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
