// The thread that looks at the others: who is in authors' code, for how long, and whether it must leave.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "acl/guard/thread.h"

namespace ascend_graph::host::guard {

class Watchdog {
  public:
    static Watchdog& get();

    void add(Thread* thread) {
        std::lock_guard<std::mutex> lock(mutex_);
        threads_.push_back(thread);
    }
    void remove(Thread* thread) {
        std::lock_guard<std::mutex> lock(mutex_);
        threads_.erase(std::remove(threads_.begin(), threads_.end(), thread), threads_.end());
    }
    // After a section was entered.
    void wake_if_asleep() {
        if (asleep_.load()) wake();
    }

  private:
    void wake();
    void start();
    void watch();

    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<Thread*> threads_;
    std::atomic<bool> asleep_{true};
    bool started_ = false;
};

}  // namespace ascend_graph::host::guard
