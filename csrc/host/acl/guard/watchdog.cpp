#include "acl/guard/watchdog.h"

#include <signal.h>

#include <chrono>
#include <new>
#include <thread>

#include "acl/guard/signals.h"

namespace ascend_graph::host::guard {
namespace {

constexpr int64_t kTick = 50 * kMillisecond;

// Whether the thread has to leave its section, and is told so.
bool must_leave(Thread& thread, uint64_t section, int64_t since, int64_t time) {
    const bool expired = limit() != 0 && time - since >= limit();
    const bool interrupted = last_interrupt() > since;
    if (expired || interrupted) make_leave(thread, section, interrupted ? SIGINT : SIGALRM);
    return expired || interrupted;
}

}  // namespace

// Never destroyed: threads outlive static objects.
Watchdog& Watchdog::get() {
    static Watchdog* watchdog = [] {
        handle_signals();
        // Threads do not survive a fork, but the one that forks does.
        pthread_atfork(nullptr, nullptr, [] {
            new (&get()) Watchdog;
            if (self != nullptr) get().threads_.push_back(self);
        });
        return new Watchdog;
    }();
    return *watchdog;
}

void Watchdog::wake() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!started_) start();
    asleep_ = false;
    wake_.notify_one();
}

void Watchdog::start() {
    started_ = true;
    // No signal of the process is handled by this thread.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { watch(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Watchdog::watch() {
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
            if (must_leave(*thread, section, since, time)) pause = kMillisecond;
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

}  // namespace ascend_graph::host::guard
