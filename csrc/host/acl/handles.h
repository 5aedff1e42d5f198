// Handles of what the library made: callers hand them back, and a stale one must be an error, not a crash.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "acl/runtime.h"

namespace ascend_graph::host {

template <typename T>
class Handles {
  public:
    // `made_by` names the function whose handles these are.
    explicit Handles(const char* made_by) : made_by_(made_by) {}

    void* add(std::shared_ptr<T> made) {
        const std::lock_guard<std::mutex> lock(mutex_);
        void* const handle = made.get();
        live_.emplace(handle, std::move(made));
        return handle;
    }
    // Null where the handle is not live.
    std::shared_ptr<T> find(const void* handle) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = live_.find(handle);
        return found == live_.end() ? nullptr : found->second;
    }
    // What the handle was of, which dies outside the lock.
    std::shared_ptr<T> take(const void* handle) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = live_.find(handle);
        if (found == live_.end()) return nullptr;
        auto taken = std::move(found->second);
        live_.erase(found);
        return taken;
    }
    aclError not_live(const char* function, const char* parameter,
                      aclError code = ACL_ERROR_RT_PARAM_INVALID) const {
        return fail(code, std::string(function) + ": " + parameter + " is not live; expected one that " +
                              made_by_ + " made, not destroyed");
    }

  private:
    const char* made_by_;
    mutable std::mutex mutex_;
    std::unordered_map<const void*, std::shared_ptr<T>> live_;
};

}  // namespace ascend_graph::host
