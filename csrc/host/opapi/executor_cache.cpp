#include "opapi/executor_cache.h"

#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "acl/abi.h"
#include "opapi/executor.h"

namespace ascend_graph::host {

struct KeptCall {
    std::unique_ptr<aclOpExecutor> idle;  // has no place while it is here
    size_t users = 0;                     // executors in use that may come back
};

namespace {

class Cache {
  public:
    static Cache& get() {
        static Cache& cache = *new Cache;  // outlives the libraries that its executors call
        return cache;
    }
    // The executor of the key; null where there is none now.
    std::unique_ptr<aclOpExecutor> take(std::string_view key, size_t tensors, KeptCall*& place) {
        const std::lock_guard<std::mutex> lock(mutex_);
        KeptCall& call = find(key);
        place = &call;
        if (call.idle == nullptr || call.idle->tensor_count() != tensors) return nullptr;
        ++call.users;
        ++used_;
        call.idle->place = &call;
        return std::move(call.idle);
    }
    void claim(KeptCall& call) {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++call.users;
    }
    void give_up(KeptCall& call) {
        const std::lock_guard<std::mutex> lock(mutex_);
        --call.users;
    }
    void keep(KeptCall& call, std::unique_ptr<aclOpExecutor>& executor) {
        const std::lock_guard<std::mutex> lock(mutex_);
        --call.users;
        if (call.idle == nullptr) call.idle = std::move(executor);
    }
    bool keeps() const { return limit_ != 0; }
    uint64_t used() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return used_;
    }

  private:
    static size_t read_limit() {
        const char* value = std::getenv("ACLNN_CACHE_LIMIT");
        char* end = nullptr;
        const unsigned long long limit = value == nullptr ? 0 : std::strtoull(value, &end, 10);
        return value == nullptr || *value == '\0' || *end != '\0' ? 10000 : static_cast<size_t>(limit);
    }
    KeptCall& find(std::string_view key) {
        // The keys are the map's own; the views point into them.
        const auto found = calls_.find(key);
        if (found != calls_.end()) return found->second->second;
        if (calls_.size() >= limit_) {
            for (auto call = calls_.begin(); call != calls_.end();)
                call = call->second->second.users == 0 ? calls_.erase(call) : std::next(call);
        }
        auto made = std::make_unique<Entry>(std::string(key), KeptCall{});
        KeptCall& call = made->second;
        const std::string_view kept = made->first;
        calls_.emplace(kept, std::move(made));
        return call;
    }

    using Entry = std::pair<const std::string, KeptCall>;
    std::mutex mutex_;
    std::unordered_map<std::string_view, std::unique_ptr<Entry>> calls_;
    const size_t limit_ = read_limit();
    uint64_t used_ = 0;
};

// What a thread says of the call that it makes.
struct Said {
    bool open = false;
    bool has_key = false;
    KeptCall* place = nullptr;  // looked for, and empty: for the executor that is made next
    std::vector<void*> storages;
};
// Every call asks several times: without a look-up.
__attribute__((tls_model("initial-exec"))) thread_local Said said;

}  // namespace

KeptCall* claim_kept_call() {
    if (!said.open) return nullptr;
    return std::exchange(said.place, nullptr);
}
void give_up(KeptCall* place) { Cache::get().give_up(*place); }
void keep(KeptCall* place, std::unique_ptr<aclOpExecutor> executor) { Cache::get().keep(*place, executor); }

}  // namespace ascend_graph::host

using namespace ascend_graph::host;

ACL_EXPORT void UnInitPTACacheThreadLocal() {
    if (said.place != nullptr) Cache::get().give_up(*said.place);
    said.open = said.has_key = false;
    said.place = nullptr;
    said.storages.clear();
}
ACL_EXPORT void InitPTACacheThreadLocal() {
    if (said.open) UnInitPTACacheThreadLocal();
    said.open = true;
}
// Every function of an operator package: what a kernel does is its second phase's.
ACL_EXPORT bool CanUsePTACache(const char*) { return Cache::get().keeps(); }
ACL_EXPORT void AddTensorAddrToCachedList(void* storage) {
    if (said.open) said.storages.push_back(storage);
}
ACL_EXPORT void SetPTACacheHashKey(uint8_t* key, size_t size) {
    said.has_key = said.open && key != nullptr && size != 0;
}
ACL_EXPORT aclOpExecutor* PTAFindExecCache(uint8_t* key, size_t size, uint64_t* workspace_size) {
    if (!said.has_key || workspace_size == nullptr) return nullptr;
    KeptCall* place = nullptr;
    const std::string_view bytes(reinterpret_cast<const char*>(key), size);
    auto executor = Cache::get().take(bytes, said.storages.size(), place);
    if (executor == nullptr) {
        said.place = place;
        Cache::get().claim(*place);
        return nullptr;
    }
    executor->move_to(said.storages.data());
    *workspace_size = 0;  // of a prepared executor it would be more, and none of these is kept
    return executor.release();
}

// How many calls had the executor of an earlier one.
ACL_EXPORT uint64_t ascendgraphKeptExecutorsUsed(void) { return Cache::get().used(); }
