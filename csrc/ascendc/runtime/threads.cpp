// The threads of a vector function, as contexts that take turns on the thread of their block.
//
// A context runs one thread of the block after another, as long as none has to wait. One that waits keeps its
// context, and the next one starts in another. When all have started, and none can go on, what they wait for
// is decided: the lanes of a warp that are at the same call meet there; when no warp function is left, all
// must be at the same barrier.
#include "ascendc_host/simt_api/threads.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "hold.h"

#define ASCENDC_THREAD_STATE __attribute__((tls_model("initial-exec"), visibility("default"))) __thread
ASCENDC_THREAD_STATE ascendc_host::ThreadPlace threadIdx, blockIdx, blockDim, gridDim;

namespace ascendc_host {
namespace {

constexpr size_t stack_bytes = 128 * 1024;
constexpr size_t stacks_of_chunk = 64;
constexpr size_t page = 4096;
constexpr size_t most_warps = most_threads_of_block / warp_size;

// Stacks, kept by the thread of the processor. Below each lies a page that ends what overflows it.
class Stacks {
  public:
    ~Stacks() {
        for (char* chunk : chunks_) munmap(chunk, stack_bytes * stacks_of_chunk);
    }
    char* get(size_t index) {
        const Hold hold;
        while (index / stacks_of_chunk >= chunks_.size()) {
            void* memory = mmap(nullptr, stack_bytes * stacks_of_chunk, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (memory == MAP_FAILED) throw std::bad_alloc();
            chunks_.push_back(static_cast<char*>(memory));
            // Where the system has no room for so many mappings, an overflow goes unnoticed.
            for (size_t i = 0; i < stacks_of_chunk; ++i)
                mprotect(chunks_.back() + i * stack_bytes, page, PROT_NONE);
        }
        return chunks_[index / stacks_of_chunk] + index % stacks_of_chunk * stack_bytes;
    }

  private:
    std::vector<char*> chunks_;
};

bool is_reversed() {
    const char* order = std::getenv("ASCEND_GRAPH_KERNEL_THREADS");
    return order != nullptr && std::string(order) == "reversed";
}

class Threads {
  public:
    Threads(const dim3& size, void (*body)(void*), void* state, const Where& where)
        : size_(size),
          total_(size.x * size.y * size.z),
          body_(body),
          state_(state),
          where_(where),
          reversed_(is_reversed()) {}

    void run() {
        static thread_local Stacks stacks;
        while (started_ < total_) {
            const size_t index = contexts_.size();
            {
                const Hold hold;
                contexts_.push_back(std::make_unique<Context>());
                start(*contexts_.back(), stacks.get(index));
            }
            resume(*contexts_.back());
        }
        while (ended_ < total_) {
            decide();
            // As they stand: those that wait again are decided upon afterwards.
            for (const auto& context : contexts_) {
                if (context->state == State::ready) resume(*context);
            }
        }
    }

    void barrier(const Where& where) { wait(State::at_barrier, where, "asc_syncthreads"); }
    void yield() {
        if (total_ > 1) wait(State::ready, where_, "");
    }
    const WarpValues& meet(uint64_t value, const char* api, const Where& where) {
        running_->value = value;
        const Context& mine = *running_;
        wait(State::at_warp, where, api);
        return warps_[mine.thread / warp_size];
    }
    uint32_t number() const { return running_->thread; }

    static thread_local Threads* current;

  private:
    enum class State { running, ended, ready, at_barrier, at_warp };
    struct Context {
        ucontext_t context;
        State state = State::running;
        uint32_t thread = 0;
        uint64_t value = 0;
        const char* api = "";
        Where where;
    };

    void start(Context& context, char* stack) {
        getcontext(&context.context);
        context.context.uc_stack.ss_sp = stack;
        context.context.uc_stack.ss_size = stack_bytes;
        context.context.uc_link = &scheduler_;
        makecontext(&context.context, [] { current->run_here(); }, 0);
    }
    // In a context: one thread after another. What is thrown ends all of them, where they were called.
    void run_here() {
        Context& mine = *running_;
        try {
            while (started_ < total_) {
                mine.thread = reversed_ ? total_ - 1 - started_ : started_;
                ++started_;
                place(mine.thread);
                body_(state_);
                ++ended_;
            }
        } catch (...) {
            failure_ = std::current_exception();
        }
        mine.state = State::ended;
    }
    void resume(Context& context) {
        running_ = &context;
        context.state = State::running;
        place(context.thread);
        swapcontext(&scheduler_, &context.context);
        if (failure_ != nullptr) std::rethrow_exception(failure_);
    }
    void place(uint32_t thread) {
        threadIdx = {thread % size_.x, thread / size_.x % size_.y, thread / size_.x / size_.y};
    }
    void wait(State state, const Where& where, const char* api) {
        Context& mine = *running_;
        mine.state = state;
        mine.where = where;
        mine.api = api;
        swapcontext(&mine.context, &scheduler_);
    }

    // Who may go on, where all wait: the lanes of every warp of which none can go on by itself; without any
    // that can, all that are at the barrier.
    void decide() {
        bool goes_on[most_warps] = {};
        bool any = false;
        for (const auto& context : contexts_) {
            if (context->state == State::ready) any = goes_on[context->thread / warp_size] = true;
        }
        const Context* first[most_warps] = {};
        for (const auto& context : contexts_) {
            const uint32_t warp = context->thread / warp_size, lane = context->thread % warp_size;
            if (context->state != State::at_warp || goes_on[warp]) continue;
            if (first[warp] == nullptr) {
                first[warp] = context.get();
                warps_[warp] = {};
            }
            check_same(*first[warp], *context, "the lanes of a warp");
            warps_[warp].active |= uint32_t{1} << lane;
            warps_[warp].values[lane] = context->value;
            context->state = State::ready;
            any = true;
        }
        if (any) return;
        const Context* one = nullptr;
        for (const auto& context : contexts_) {
            if (context->state != State::at_barrier) continue;
            if (one == nullptr) one = context.get();
            check_same(*one, *context, "the threads of a block");
            context->state = State::ready;
        }
        if (ended_ > 0) {
            fail_waiting(
                ascendc_host::current(), one->where,
                format("asc_syncthreads waits for ever: thread %u waits, and %u of %u threads have ended "
                       "without it; let every thread call it",
                       one->thread, ended_, total_));
        }
    }
    void check_same(const Context& a, const Context& b, const char* whose) const {
        if (a.where.line == b.where.line && std::strcmp(a.where.file, b.where.file) == 0) return;
        fail(
            ascendc_host::current(), b.where,
            format("%s: %s wait at different calls: thread %u in %s:%d, thread %u in %s:%d; which of them "
                   "meet is not known; let them come to one call",
                   b.api, whose, a.thread, a.where.file, a.where.line, b.thread, b.where.file, b.where.line));
    }

    const dim3 size_;
    const uint32_t total_;
    void (*const body_)(void*);
    void* const state_;
    const Where where_;
    const bool reversed_;
    WarpValues warps_[most_warps];
    std::vector<std::unique_ptr<Context>> contexts_;
    ucontext_t scheduler_;
    Context* running_ = nullptr;
    uint32_t started_ = 0;
    uint32_t ended_ = 0;
    std::exception_ptr failure_;
};

thread_local Threads* Threads::current = nullptr;

Threads& threads_of(const char* api, const Where& where) {
    Block& block = enter(where);
    if (!block.in_threads)
        fail(block, where, format("%s outside of threads; call it in a function that is __simt_vf__", api));
    return *Threads::current;
}

}  // namespace

void run_threads(const dim3& threads, void (*body)(void* state), void* state, const Where& where) {
    Block& block = ascendc_host::current();
    if (block.in_threads) fail(block, where, "asc_vf_call in a thread; call the function itself");
    if (block.core == Core::aic)
        fail(block, where, "asc_vf_call on a cube core; threads are of vector cores");
    const uint64_t total = uint64_t{threads.x} * threads.y * threads.z;
    if (total == 0 || total > most_threads_of_block || threads.x > most_threads_of_block ||
        threads.y > most_threads_of_block) {
        fail(block, where,
             format("asc_vf_call: %u * %u * %u threads; valid: 1 to %u", threads.x, threads.y, threads.z,
                    most_threads_of_block));
    }
    Threads all(threads, body, state, where);
    Threads::current = &all;
    block.in_threads = true;
    blockDim = {threads.x, threads.y, threads.z};
    blockIdx = {static_cast<uint32_t>(block.block_idx()), 0, 0};
    gridDim = {block.count * (block.core == Core::aiv ? block.sub_count : 1), 1, 1};
    all.run();
    block.in_threads = false;
    std::memset(&threadIdx, 0xa5, sizeof threadIdx);
    blockIdx = blockDim = gridDim = threadIdx;
}

void thread_barrier(const Where& where) { threads_of("asc_syncthreads", where).barrier(where); }
const WarpValues& meet_warp(uint64_t value, const char* api, const Where& where) {
    return threads_of(api, where).meet(value, api, where);
}
void yield_thread() {
    if (ascendc_host::current().in_threads) Threads::current->yield();
    poll();
}
uint32_t thread_number(const char* api, const Where& where) { return threads_of(api, where).number(); }

}  // namespace ascendc_host
