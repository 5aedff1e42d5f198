#include "acl/strict.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>

#include "acl/abi.h"
#include "acl/guard/watchdog.h"
#include "acl/runtime.h"
#include "ascend_graph/entering.h"

namespace ascend_graph::host::strict {
namespace {

// NaN in every floating dtype, -1 in every integer.
constexpr int kPoison = 0xff;
constexpr size_t kQuarantine = 16384;

enum class State : int { kNone, kLive, kFreed };

// Pages of one allocation. A signal handler reads them: there is no pointer to follow and nothing moves.
struct Region {
    std::atomic<State> state{State::kNone};
    std::atomic<char*> pages{nullptr};  // the first is a guard, and so is the last
    std::atomic<size_t> length{0};
    std::atomic<char*> begin{nullptr};
    std::atomic<size_t> size{0};
};

const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
std::array<Region, 2 * kQuarantine> regions;
std::atomic<size_t> used_regions{0};  // of the array, from its beginning
std::mutex mutex;                     // of what follows, and for whoever writes to a region
std::deque<size_t> freed;
int entered = 0;
std::atomic<const char*> at_work{nullptr};

void protect(const Region& region, int rights) {
    mprotect(region.pages.load() + page, region.length.load() - 2 * page, rights);
}

void protect_all(int rights) {
    for (size_t i = 0; i < used_regions.load(); ++i) {
        if (regions[i].state.load() == State::kLive) protect(regions[i], rights);
    }
}

// A region that is free, or that of what was freed first.
Region* unused() {
    const auto forget = [](Region& region) {
        munmap(region.pages.load(), region.length.load());
        region.state = State::kNone;
    };
    if (freed.size() >= kQuarantine) {
        Region& oldest = regions[freed.front()];
        freed.pop_front();
        forget(oldest);
        return &oldest;
    }
    for (size_t i = 0; i < regions.size(); ++i) {
        if (regions[i].state.load() != State::kNone) continue;
        if (i >= used_regions.load()) used_regions = i + 1;
        return &regions[i];
    }
    if (freed.empty()) return nullptr;
    Region& oldest = regions[freed.front()];
    freed.pop_front();
    forget(oldest);
    return &oldest;
}

}  // namespace

bool enabled() {
    static const bool is_strict = environment_number("ASCEND_GRAPH_STRICT", 0) != 0;
    return is_strict;
}

void* allocate(size_t bytes) {
    guard::Watchdog::get();  // handles signals from its first use on
    const size_t length = (bytes + page - 1) / page * page + 2 * page;
    std::lock_guard<std::mutex> lock(mutex);
    Region* region = unused();
    if (region == nullptr) return nullptr;
    void* pages = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    region->pages = static_cast<char*>(pages);
    region->length = length;
    region->begin = region->pages.load() + length - page - bytes;
    region->size = bytes;
    protect(*region, PROT_READ | PROT_WRITE);
    std::memset(region->begin.load(), kPoison, bytes);
    if (entered == 0) protect(*region, PROT_NONE);
    region->state = State::kLive;
    return region->begin.load();
}

void release(void* begin) {
    std::lock_guard<std::mutex> lock(mutex);
    for (size_t i = 0; i < used_regions.load(); ++i) {
        Region& region = regions[i];
        if (region.state.load() != State::kLive || region.begin.load() != begin) continue;
        region.state = State::kFreed;
        madvise(region.pages.load() + page, region.length.load() - 2 * page, MADV_DONTNEED);
        protect(region, PROT_NONE);
        freed.push_back(i);
        return;
    }
}

void let_in() {
    if (!enabled()) return;
    std::lock_guard<std::mutex> lock(mutex);
    if (entered++ == 0) protect_all(PROT_READ | PROT_WRITE);
}

void keep_out() {
    if (!enabled()) return;
    std::lock_guard<std::mutex> lock(mutex);
    if (--entered == 0) protect_all(PROT_NONE);
}

bool explain(const void* address, char* text, size_t size) {
    const auto* at = static_cast<const char*>(address);
    const char* name = at_work.load();
    for (size_t i = 0; i < used_regions.load(); ++i) {
        const Region& region = regions[i];
        const State state = region.state.load();
        const char* pages = region.pages.load();
        if (state == State::kNone || at < pages || at >= pages + region.length.load()) continue;
        const char* begin = region.begin.load();
        const size_t bytes = region.size.load();
        const char* who = name != nullptr ? name : "the program, outside any operator,";
        if (at < begin || at >= begin + bytes) {
            const size_t distance = at < begin ? begin - at : at - begin - bytes;
            std::snprintf(text, size, "%s touches memory %zu bytes %s %zu bytes of device memory%s", who,
                          distance, at < begin ? "before" : "past the end of", bytes,
                          state == State::kFreed ? ", which are freed" : "");
        } else if (state == State::kFreed) {
            std::snprintf(text, size, "%s touches device memory after it was freed: byte %td of %zu", who,
                          at - begin, bytes);
        } else {
            std::snprintf(
                text, size,
                "%s touches device memory: byte %td of %zu. A device's memory is not the host's: copy the "
                "tensor to the CPU, or the bytes with aclrtMemcpy",
                who, at - begin, bytes);
        }
        return true;
    }
    return false;
}

}  // namespace ascend_graph::host::strict

namespace strict = ascend_graph::host::strict;

ACL_EXPORT const char* ascendgraphEnter(const char* name) {
    if (!strict::enabled()) return nullptr;
    strict::let_in();
    return name != nullptr ? strict::at_work.exchange(name) : strict::at_work.load();
}

ACL_EXPORT void ascendgraphLeave(const char* before) {
    if (!strict::enabled()) return;
    strict::at_work = before;
    strict::keep_out();
}
