// A runtime that kernels call is not left in the middle, whatever happens to the kernel.
#ifndef ASCENDC_RUNTIME_HOLD_H
#define ASCENDC_RUNTIME_HOLD_H

#include <ctime>

#include "ascendc_host_launch.h"

namespace ascendc_host {

class Hold {
  public:
    Hold() : held_(ascendgraphHold()) {}
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() { ascendgraphRelease(held_); }
    // Here, and only here, the thread may be taken out: for longer than its watchdog looks away.
    void pause() const {
        ascendgraphRelease(held_);
        const timespec time{0, 60'000'000};
        nanosleep(&time, nullptr);
        ascendgraphHold();
    }

  private:
    const uint64_t held_;
};

}  // namespace ascendc_host

#endif  // ASCENDC_RUNTIME_HOLD_H
