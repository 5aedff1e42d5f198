// The memory that the ranks of a communicator have in common: of each rank two windows, through which kernels
// read and write what another rank has, and a smaller one for states.
//
// A rank's windows lie in a file without a name. Its descriptor is made with the communicator and told to the
// others; the memory is mapped, and with it taken, when a kernel first needs it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ascend_graph/collectives.h"

namespace ascend_graph::host {

class Windows {
  public:
    static constexpr uint64_t kMiB = 1024 * 1024, kStateBytes = kMiB;

    // `bytes` is the size of a window. Throws std::runtime_error where the system gives no memory.
    explicit Windows(uint64_t bytes);
    ~Windows();
    Windows(const Windows&) = delete;
    Windows& operator=(const Windows&) = delete;

    int32_t descriptor() const { return descriptor_; }
    uint64_t bytes() const { return bytes_; }
    // Throws std::runtime_error where a rank's memory cannot be reached, or its windows have another size.
    void map(const std::vector<Member>& members);

    std::vector<Member> members;
    std::vector<uint8_t*> in, out, states;  // by rank, when they are mapped

  private:
    uint64_t all() const { return 2 * bytes_ + kStateBytes; }

    uint64_t bytes_;
    int32_t descriptor_;
};

}  // namespace ascend_graph::host
