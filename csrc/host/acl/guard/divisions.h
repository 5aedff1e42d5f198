// Integer divisions for which an x86 processor stops: by zero, and of the smallest number by -1.
#pragma once

#include <cstdint>

namespace ascend_graph::host::guard {

enum class Passed { no, by_zero, overflow };

// In a handler of SIGFPE, with its `info` and `context`: lets the thread go on behind the division that it
// stopped at. Quotient and remainder of a division by zero are `of_zero`; with `overflows` the smallest
// number divided by -1 is itself. `no` where it is neither, or this processor's divisions are not known.
Passed pass_division(void* info, void* context, uint64_t of_zero, bool overflows);

}  // namespace ascend_graph::host::guard
