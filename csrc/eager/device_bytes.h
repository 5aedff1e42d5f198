// Tiling data in the memory of the device, for kernels that read it from there.
#ifndef ASCEND_GRAPH_EAGER_DEVICE_BYTES_H
#define ASCEND_GRAPH_EAGER_DEVICE_BYTES_H

#include <acl/acl.h>  // which of its parts declares capturing differs between versions

#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "launch.h"

namespace ascend_graph::launch {

namespace detail {

inline void check(aclError error, const char* function) {
    if (error != ACL_SUCCESS)
        throw std::runtime_error(std::string(function) + " failed with error " + std::to_string(error) +
                                 "; set ASCEND_SLOG_PRINT_TO_STDOUT=1 to see why");
}

// While a graph is captured, a thread may only copy to the device at once in the relaxed mode.
class Relaxed {
  public:
    Relaxed() { check(aclmdlRICaptureThreadExchangeMode(&mode_), "aclmdlRICaptureThreadExchangeMode"); }
    ~Relaxed() { aclmdlRICaptureThreadExchangeMode(&mode_); }
    Relaxed(const Relaxed&) = delete;
    Relaxed& operator=(const Relaxed&) = delete;

  private:
    aclmdlRICaptureMode mode_ = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
};

}  // namespace detail

// The address of these bytes on the current device, for a kernel that reads its tiling from global memory.
//
// They are copied there once per content and kept as long as the process: a captured graph reads them at
// every replay, and nothing has to be copied or waited for when the same shapes come again.
inline void* on_device(const Bytes& bytes) {
    static std::mutex mutex;
    static std::map<std::pair<int32_t, Bytes>, void*> known;
    static std::map<int32_t, std::pair<std::byte*, size_t>>
        blocks;  // per device: where room is, and how much
    constexpr size_t kBlock = size_t{1} << 16, kAlignment = 64;
    if (bytes.empty()) return nullptr;
    int32_t device = 0;
    detail::check(aclrtGetDevice(&device), "aclrtGetDevice");
    const std::lock_guard<std::mutex> lock(mutex);
    void*& address = known[{device, bytes}];
    if (address != nullptr) return address;
    const detail::Relaxed relaxed;
    const size_t needed = (bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
    auto& [room, size] = blocks[device];
    if (size < needed) {
        const size_t wanted = needed > kBlock ? needed : kBlock;
        void* block = nullptr;
        detail::check(aclrtMalloc(&block, wanted, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
        room = static_cast<std::byte*>(block);
        size = wanted;
    }
    detail::check(aclrtMemcpy(room, bytes.size(), bytes.data(), bytes.size(), ACL_MEMCPY_HOST_TO_DEVICE),
                  "aclrtMemcpy");
    address = room;
    room += needed;
    size -= needed;
    return address;
}

}  // namespace ascend_graph::launch

#endif  // ASCEND_GRAPH_EAGER_DEVICE_BYTES_H
