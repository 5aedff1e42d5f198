// Blocks in threads: the pool, the launch of a kernel, waits between blocks, and broken rules as ACL errors.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "ascendc_host/internal/processors.h"
#include "ascendc_host/internal/runtime.h"
#include "hold.h"
#include "pipe_order.h"
#include "service.h"

namespace ascendc_host {

template <>
const char Layout::so = 0;

// A thread runs kernels of any architecture.
size_t most_bytes(Memory memory) {
    if (memory == Memory::ub) return whole_unified_buffer;
    size_t most = 0;
    for (const LocalMemory& one : local_memories)
        most = std::max<size_t>(most, memory_bytes(memory, one.architecture));
    return most;
}

namespace {

// ACL error codes of the device runtime (acl/error_codes/rt_error_codes.h).
constexpr int param_invalid = 107000;
constexpr int aicore_timeout = 507014;
constexpr int aicore_exception = 507015;

// A wait needs all of its blocks alive at once; the device has far fewer cores than this.
constexpr uint32_t most_threads = 512;

// Read by every call of the API: no look-up of the library's thread storage, just an offset.
__attribute__((tls_model("initial-exec"))) thread_local Block* this_block = nullptr;
thread_local std::mutex* this_lock = nullptr;  // of global memory, held by the block

[[noreturn]] void violate(const std::string& block, const Where& where, const std::string& rule, int code);

struct Cancelled {};  // another block failed: unwind quietly
struct Restart {
    KernelType type;
    bool asked = false;  // the kernel has only asked for its core: it may still declare another type
};
// The core of a kernel that has one to a group.
Core single_core(KernelType type) {
    return type == KernelType::aiv_only || type == KernelType::mix_0_1 ? Core::aiv : Core::aic;
}

// --- threads
// ---------------------------------------------------------------------------------------------------------

// Threads that are kept between launches. Never destroyed: they may be waiting when the process exits.
class Pool {
  public:
    static Pool& get() {
        static Pool* pool = [] {
            // Threads do not survive a fork: the child starts with an empty pool.
            pthread_atfork(nullptr, nullptr, [] { new (&get()) Pool; });
            return new Pool;
        }();
        return *pool;
    }
    void run(std::function<void()> task) {
        std::lock_guard<std::mutex> lock(mutex_);
        tasks_.push_back(std::move(task));
        if (idle_ >= tasks_.size()) {
            wake_.notify_one();
        } else {
            std::thread([this] { work(); }).detach();
        }
    }

  private:
    void work() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            while (tasks_.empty()) {
                ++idle_;
                wake_.wait(lock);
                --idle_;
            }
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            task();
            lock.lock();
        }
    }
    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::function<void()>> tasks_;
    size_t idle_ = 0;
};

// The architecture of the kernels that the process runs.
int this_architecture() {
    const Processor* found = processor_of_process();
    return found == nullptr ? processors[0].kernels : found->kernels;
}

// The local memories of a core, kept by its thread.
struct Memories {
    uint8_t* at[static_cast<size_t>(Memory::count)] = {};
    ~Memories() {
        for (auto* memory : at) std::free(memory);
    }
    uint8_t* get(size_t which) {
        if (at[which] == nullptr) {
            const size_t bytes = most_bytes(static_cast<Memory>(which));
            at[which] = static_cast<uint8_t*>(std::aligned_alloc(512, (bytes + 511) / 512 * 512));
            if (at[which] == nullptr) throw std::bad_alloc();
            std::memset(at[which], unset_byte, bytes);
        }
        return at[which];
    }
};

}  // namespace

// --- one launch
// ------------------------------------------------------------------------------------------------------

class Runner {
  public:
    // `memory` is that of the tensors among the arguments.
    Runner(const char* kernel, uint32_t blocks, std::optional<uint64_t> tiling_key, const Contexts& contexts,
           Body body, const void* arguments, const ArgumentMemory* memory, size_t memory_count)
        : kernel_(kernel),
          blocks_(blocks),
          tiling_key_(tiling_key),
          contexts_(contexts),
          body_(body),
          arguments_(arguments),
          memory_(memory),
          memory_count_(memory_count) {}
    ~Runner() {
        if (services_ != nullptr) services_->leave();
    }
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;

    // Empty when every block ended well.
    Violation run() {
        const Hold hold;  // where a kernel is launched by code that may be left, too
        KernelType type = KernelType::undeclared;
        for (;;) {
            reset(type);
            run_all();
            if (failure_.what.empty() && services_ != nullptr) end_communication();
            if (restart_ == KernelType::undeclared || !failure_.what.empty()) return failure_;
            if (type != KernelType::undeclared && !assumed_) {
                return {format("kernel %s: KERNEL_TASK_TYPE_DEFAULT names two types in one launch", kernel_),
                        aicore_exception};
            }
            assumed_ = type == KernelType::undeclared && asked_;
            type = restart_;
        }
    }
    // Whether the type of this run is the one of kernels that ask for their core before they declare any.
    bool assumed() const { return assumed_; }

    // Waits until `ready`, under the lock. `what` says what is awaited, for the message of a wait that cannot
    // end.
    void wait(const std::function<bool()>& ready, const char* what, const Where& where) {
        const Hold hold;
        std::unique_lock<std::mutex> lock(mutex_);
        if (cancelled()) throw Cancelled{};
        if (ready()) return;
        do {
            waiters_.push_back({&ready, what, where, this_block});
            const auto self = std::prev(waiters_.end());
            --running_;
            start_more(1);
            find_deadlock();
            const bool is_over = await_change(lock, [&] { return ready() || cancelled(); });
            waiters_.erase(self);
            ++running_;
            if (is_over) break;
            lock.unlock();
            hold.pause();  // nothing of this frame is known to others now
            lock.lock();
        } while (!ready() && !cancelled());
        if (!ready()) throw Cancelled{};
    }
    template <typename F>
    void change(const F& f) {
        const Hold hold;
        std::lock_guard<std::mutex> lock(mutex_);
        f();
        changed_.notify_all();
    }

    // Blocks that all wait for one another run at once: on a device more of them than it has cores never do.
    void require_cores(const char* api, const Where& where) const {
        const Processor* soc = processor_of_process();
        if (soc == nullptr || is_coupled(*soc)) return;
        const bool are_cubes = per_group() > 1 || this_block->core == Core::aic;
        const uint32_t most = are_cubes ? soc->cube_cores : soc->vector_cores;
        if (blocks_ > most)
            violate(name_of(*this_block), where,
                    format("%s: %u blocks wait for one another, and %s has %u %s cores: there they wait for "
                           "ever; launch %u blocks or fewer",
                           api, blocks_, soc->name, most, are_cubes ? "cube" : "vector", most),
                    aicore_timeout);
    }

    void barrier(bool vector_only, const Where& where) {
        require_cores("SyncAll", where);
        const bool of_vectors = vector_only && per_group() > 1;
        const uint32_t members = of_vectors ? blocks_ * sub_count() : jobs();
        Rendezvous& meeting = of_vectors ? vector_barrier_ : barrier_;
        if (of_vectors && this_block->core != Core::aiv)
            return;  // SyncAll of the vector cores: nothing for a cube core
        uint64_t round = 0;
        change([&] {
            round = meeting.round;
            if (++meeting.arrived == members) {
                meeting.arrived = 0;
                ++meeting.round;
            }
        });
        wait([&] { return meeting.round != round; }, "SyncAll", where);
    }

    // CrossCoreSetFlag as the hardware does it: a core's set stays pending until every core that must set has
    // done so; then the flag counter of every receiver goes up by one. Mode 0 joins all cores of one kind,
    // mode 1 the vector cores of a group, mode 2 lets the cube core of a group and its vector cores signal
    // one another.
    void set_flag(int mode, int flag, const Where& where) {
        check_flag(mode, flag, where);
        if (mode == 0) require_cores("CrossCoreSetFlag", where);
        const Block& me = *this_block;
        const auto senders = mode == 2   ? side(me, me.core == Core::aiv)
                             : mode == 1 ? side(me, true)
                                         : kind(me);
        const auto receivers = mode == 2 ? side(me, me.core != Core::aiv) : senders;
        change([&] {
            ++pending_[{job_of(me), flag, mode}];
            for (uint32_t sender : senders) {
                if (pending_[{sender, flag, mode}] == 0) return;
            }
            for (uint32_t sender : senders) --pending_[{sender, flag, mode}];
            for (uint32_t receiver : receivers) ++flags_[{receiver, flag}];
        });
    }
    void wait_flag(int flag, const Where& where) {
        check_flag(0, flag, where);
        const std::pair<uint32_t, int> mine{job_of(*this_block), flag};
        wait([&] { return flags_[mine] > 0; }, "CrossCoreWaitFlag", where);
        const Hold hold;
        std::lock_guard<std::mutex> lock(mutex_);
        --flags_[mine];
    }

    void set_event(int64_t block, int event) {
        change([&] { ++events_[{block, event}]; });
    }
    void wait_event(int64_t block, int event, const Where& where) {
        wait([&] { return events_[{block, event}] > 0; }, "IBWait", where);
        const Hold hold;
        std::lock_guard<std::mutex> lock(mutex_);
        --events_[{block, event}];
    }

    // A block that polls memory waits without saying so: give every other block a thread.
    void poll() {
        if (polled_.exchange(true)) return std::this_thread::yield();
        const Hold hold;
        std::lock_guard<std::mutex> lock(mutex_);
        start_more(jobs());
    }

    bool interrupted() const { return interrupted_; }

    // Made by the first who asks, under the lock.
    Services& services() {
        if (services_ == nullptr)
            services_ = std::make_shared<Services>([this](const std::function<void()>& f) { change(f); });
        return *services_;
    }

    // That an integer was divided by zero, as a sentence; empty when none was.
    std::string divisions() const {
        if (!divided_at_.has_value()) return "";
        const std::string called = *divided_at_->file == '\0' ? "before any call of the API"
                                                              : format("after the API call in %s:%d",
                                                                       divided_at_->file, divided_at_->line);
        return format(
            "kernel %s divides an integer by zero, %s; a core does not stop there, but quotient and "
            "remainder are numbers that nobody knows",
            kernel_, called.c_str());
    }

    static thread_local Runner* mine;

    // The rule that a block of this thread broke, and the end of a block that cannot go on.
    static void remember(const Violation& violation) {
        if (this_run != nullptr && this_run->first.what.empty()) this_run->first = violation;
    }
    static void leave() {
        if (this_run != nullptr) this_run->leave();
    }

  private:
    struct Run;
    static thread_local Run* this_run;

    // Whether `over` came to be true. Other ranks may let a block wait for long: it is asked now and then, so
    // that Ctrl-C and the limit of time reach it.
    template <typename Over>
    bool await_change(std::unique_lock<std::mutex>& lock, const Over& over) {
        if (services_ != nullptr) return changed_.wait_for(lock, std::chrono::milliseconds(100), over);
        changed_.wait(lock, over);
        return true;
    }
    // After all blocks: nothing may be left that a kernel gave to its communicators.
    void end_communication() {
        const Hold hold;
        std::unique_lock<std::mutex> lock(mutex_);
        if (restart_ != KernelType::undeclared) {
            if (services_->begun())
                failure_ = {
                    format("kernel %s communicates before KERNEL_TASK_TYPE_DEFAULT; declare its type first",
                           kernel_),
                    aicore_exception};
            else
                services_.reset();  // no collective has begun that would tell it: all begins anew
            return;
        }
        const int64_t limit = static_cast<int64_t>(ascendgraphKernelTimeout() * 1e9);
        while (services_->busy()) {
            changed_.wait_for(lock, std::chrono::milliseconds(100));
            if (limit > 0 && ascendgraphNow() - start_ > limit) break;
        }
        const std::string unfinished = services_->busy()
                                           ? "a collective " + std::string(ascendgraphEndText(SIGALRM))
                                           : services_->unfinished();
        if (!unfinished.empty())
            failure_ = {format("kernel %s: %s", kernel_, unfinished.c_str()), aicore_exception};
    }

    struct Rendezvous {
        uint32_t arrived = 0;
        uint64_t round = 0;
    };
    struct Waiter {
        const std::function<bool()>* ready;
        const char* what;
        Where where;
        const Block* block;
    };
    uint32_t sub_count() const { return type_ == KernelType::mix_1_2 ? 2 : 1; }
    uint32_t per_group() const {
        return type_ == KernelType::mix_1_2 ? 3 : type_ == KernelType::mix_1_1 ? 2 : 1;
    }
    uint32_t jobs() const { return blocks_ * per_group(); }
    uint32_t job_of(const Block& block) const {
        return block.index * per_group() +
               (per_group() > 1 && block.core == Core::aiv ? 1 + block.sub_index : 0);
    }

    void check_flag(int mode, int flag, const Where& where) {
        if (mode < 0 || mode > 2)
            fail(*this_block, where, format("CrossCoreSetFlag: mode %d; valid: 0, 1, 2", mode));
        if (flag < 0 || flag > 15)
            fail(*this_block, where, format("CrossCoreSetFlag: flag %d; valid: 0 to 15", flag));
    }
    // One side of the group of `me`: its vector cores, or its cube core. A unified core is both.
    std::vector<uint32_t> side(const Block& me, bool vectors) const {
        const uint32_t group = me.index * per_group();
        if (per_group() == 1 || !vectors) return {group};
        std::vector<uint32_t> found;
        for (uint32_t sub = 0; sub < sub_count(); ++sub) found.push_back(group + 1 + sub);
        return found;
    }
    // All cores of the kind of `me`.
    std::vector<uint32_t> kind(const Block& me) const {
        std::vector<uint32_t> found;
        for (uint32_t job = 0; job < jobs(); ++job) {
            if (per_group() == 1 || (job % per_group() != 0) == (me.core == Core::aiv)) found.push_back(job);
        }
        return found;
    }

    void reset(KernelType type) {
        type_ = type;
        restart_ = KernelType::undeclared;
        asked_ = true;
        failure_ = {"", 0};
        next_ = running_ = starting_ = 0;
        barrier_ = vector_barrier_ = {};
        pending_.clear();
        flags_.clear();
        events_.clear();
        polled_ = false;
        shared_ = launch_memory();
    }
    bool cancelled() const { return !failure_.what.empty() || restart_ != KernelType::undeclared; }

    void run_all() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            const uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
            start_more(std::min(cores, jobs()) - 1);
        }
        work();
        std::unique_lock<std::mutex> lock(mutex_);
        while (workers_ > 0) changed_.wait(lock);
        if (cancelled()) return;
        try {
            check_reads(shared_.get());
        } catch (const Violation& violation) {
            failure_ = violation;
        }
    }

    // Under the lock: up to `count` further threads, as far as there are blocks that no thread will take.
    void start_more(uint32_t count) {
        while (count-- > 0 && !cancelled() && next_ + starting_ < jobs()) {
            if (workers_ >= most_threads) {
                failure_ = {format("kernel %s: %u blocks wait for one another; at most %u can, and a device "
                                   "has fewer cores",
                                   kernel_, jobs(), most_threads),
                            aicore_timeout};
                changed_.notify_all();
                return;
            }
            ++workers_;
            ++starting_;
            Pool::get().run([this] {
                {
                    std::lock_guard<std::mutex> lock(mutex_);
                    --starting_;
                }
                work();
                std::lock_guard<std::mutex> lock(mutex_);
                --workers_;
                changed_.notify_all();
            });
        }
    }

    void work() {
        for (;;) {
            uint32_t job;
            {
                std::lock_guard<std::mutex> lock(mutex_);
                if (next_ == jobs() || cancelled()) {
                    find_deadlock();
                    return;
                }
                job = next_++;
                ++running_;
            }
            run_block(job);
            std::lock_guard<std::mutex> lock(mutex_);
            --running_;
            find_deadlock();
        }
    }

    void run_block(uint32_t job) {
        // A block that is left by a jump is not destroyed: the jump may have come in the middle of anything.
        alignas(Block) char storage[sizeof(Block)];
        Block& block = *new (storage) Block;
        block.kernel = kernel_;
        block.index = job / per_group();
        block.count = blocks_;
        block.type = type_;
        block.tiling_key = tiling_key_.value_or(0);
        block.tiling_key_given = tiling_key_.has_value();
        block.contexts = contexts_;
        block.arguments = memory_;
        block.argument_count = memory_count_;
        block.sub_count = sub_count();
        if (per_group() > 1) {
            block.core = job % per_group() == 0 ? Core::aic : Core::aiv;
            block.sub_index = block.core == Core::aiv ? job % per_group() - 1 : 0;
        } else if (type_ != KernelType::undeclared) {
            block.core = single_core(type_);
        }
        block.where = Where("", 0);
        Run run{*this, block};
        Block* const outer_block = this_block;
        Runner* const outer_runner = mine;
        Run* const outer_run = std::exchange(this_run, &run);
        const auto before = ascendgraphOnDivision(Run::divided);
        const int ended = ascendgraphGuard([](void* r) { static_cast<Run*>(r)->run(); }, &run,
                                           reinterpret_cast<const void*>(body_), start_);
        ascendgraphOnDivision(before);
        this_run = outer_run;
        this_block = outer_block;
        mine = outer_runner;
        if (run.divided_at.has_value()) {
            std::lock_guard<std::mutex> lock(mutex_);
            if (!divided_at_.has_value()) divided_at_ = run.divided_at;
        }
        if (ended == 0) {
            block.~Block();
        } else {
            if (this_lock != nullptr) std::exchange(this_lock, nullptr)->unlock();
            if (!run.is_left) run.failure = describe_end(block, ended);
        }
        if (run.failure.what.empty() && run.restart.type == KernelType::undeclared) return;
        std::lock_guard<std::mutex> lock(mutex_);
        if (failure_.what.empty()) {
            failure_ = run.failure;
            interrupted_ = ended == SIGINT;
        }
        if (run.restart.type != KernelType::undeclared) {
            // A declaration of one block outweighs the question of another.
            if (asked_) restart_ = run.restart.type;
            asked_ = asked_ && run.restart.asked;
        }
        changed_.notify_all();
    }

    // One block in its thread.
    struct Run {
        Runner& runner;
        Block& block;
        Violation failure{"", 0};
        Restart restart{KernelType::undeclared};
        std::optional<Where> divided_at{};  // an integer by zero, first
        Violation first{"", 0};  // rule that was broken first: a destructor may break another after it
        bool is_left = false;    // from a destructor

        // In std::terminate: no exception leaves a destructor, so the block is left where it is, as after a
        // fault.
        void leave() {
            is_left = true;
            failure = first;
            if (failure.what.empty()) {
                try {
                    throw;
                } catch (const Cancelled&) {
                } catch (const std::exception& error) {
                    failure = broken(block, error.what());
                } catch (...) {
                    failure = broken(block, "throws a value that is not a std::exception");
                }
            }
            ::raise(SIGBUS);
        }
        // In a signal handler.
        static void divided() {
            if (!this_run->divided_at.has_value()) this_run->divided_at = this_run->block.where;
        }
        void run() {
            static thread_local Memories memories;
            try {
                for (size_t i = 0; i < static_cast<size_t>(Memory::count); ++i)
                    block.memories_[i] = memories.get(i);
                this_block = &block;
                mine = &runner;
                begin_pipes(block);
                runner.body_(runner.arguments_);
                const Hold hold;
                end_pipes(block, runner.shared_.get());
                block.check_tiling_key();
                block.check_balance();
            } catch (const Violation& violation) {
                failure = violation;
            } catch (const Restart& wish) {
                restart = wish;
            } catch (const Cancelled&) {
            } catch (const std::exception& error) {
                failure = broken(block, error.what());
            } catch (...) {
                failure = broken(block, "throws a value that is not a std::exception");
            }
        }
    };

    static Violation broken(const Block& block, const std::string& rule, int code = aicore_exception) {
        try {
            fail(block, block.where, rule);
        } catch (const Violation& violation) {
            return {violation.what, code};
        }
    }
    static Violation describe_end(const Block& block, int ended) {
        const char* called = *block.where.file == '\0' ? "" : " (after the API call named here)";
        return broken(block, std::string(ascendgraphEndText(ended)) + called,
                      ended == SIGALRM ? aicore_timeout : aicore_exception);
    }

    // Under the lock: when nothing runs or will start and no waiter can go on, no waiter ever will.
    void find_deadlock() {
        if (cancelled() || running_ > 0 || starting_ > 0 || next_ < jobs() || waiters_.empty()) return;
        if (services_ != nullptr && services_->busy()) return;
        for (const auto& waiter : waiters_) {
            if ((*waiter.ready)()) return;
        }
        const Waiter& first = waiters_.front();
        failure_ = {format("kernel %s, block %lld of %u: %s waits for ever: every other block has ended or "
                           "waits too (%zu wait) "
                           "[%s:%d]",
                           kernel_, static_cast<long long>(first.block->block_idx()), blocks_, first.what,
                           waiters_.size(), first.where.file, first.where.line),
                    aicore_timeout};
        changed_.notify_all();
    }

    const char* kernel_;
    uint32_t blocks_;
    std::optional<uint64_t> tiling_key_;
    Contexts contexts_;
    Body body_;
    const void* arguments_;
    const ArgumentMemory* memory_;
    size_t memory_count_;
    const int64_t start_ = ascendgraphNow();

    std::mutex mutex_;
    std::condition_variable changed_;
    KernelType type_ = KernelType::undeclared;
    KernelType restart_ = KernelType::undeclared;
    bool asked_ = true;     // every wish to restart so far came of a question
    bool assumed_ = false;  // type_ came of a question
    Violation failure_{"", 0};
    bool interrupted_ = false;
    std::optional<Where> divided_at_;
    uint32_t next_ = 0;      // the first block that no thread has taken
    uint32_t running_ = 0;   // blocks that run and do not wait
    uint32_t starting_ = 0;  // threads on their way to their first block
    uint32_t workers_ = 0;   // threads of the pool in this launch
    std::list<Waiter> waiters_;
    Rendezvous barrier_, vector_barrier_;
    std::map<std::tuple<uint32_t, int, int>, int64_t> pending_;
    std::map<std::pair<uint32_t, int>, int64_t> flags_;
    std::map<std::pair<int64_t, int>, int64_t> events_;
    std::atomic<bool> polled_{false};
    std::shared_ptr<Services> services_;
    std::shared_ptr<LaunchMemory> shared_;
};

thread_local Runner* Runner::mine = nullptr;
// Initial-exec, for a signal handler reads it.
__attribute__((tls_model("initial-exec"))) thread_local Runner::Run* Runner::this_run = nullptr;

static const std::terminate_handler terminate_before = std::set_terminate([] {
    Runner::leave();
    if (terminate_before != nullptr) terminate_before();
    std::abort();
});

// --- the face
// --------------------------------------------------------------------------------------------------------

const char* memory_name(Memory memory) {
    static const char* const names[] = {"unified buffer", "L1 buffer",   "L0A buffer",    "L0B buffer",
                                        "L0C buffer",     "bias buffer", "fixpipe buffer"};
    return names[static_cast<size_t>(memory)];
}

std::string format(const char* text, ...) {
    va_list list;
    va_start(list, text);
    va_list again;
    va_copy(again, list);
    const int length = std::vsnprintf(nullptr, 0, text, list);
    std::string result(static_cast<size_t>(std::max(length, 0)), '\0');
    std::vsnprintf(&result[0], result.size() + 1, text, again);
    va_end(again);
    va_end(list);
    return result;
}

bool inside_kernel() { return this_block != nullptr; }

Block& current() {
    if (this_block == nullptr) {
        throw Violation{
            "an Ascend C API was called outside a kernel; launch the kernel instead of calling it",
            aicore_exception};
    }
    return *this_block;
}

std::string name_of(const Block& block) {
    std::string name = format("kernel %s, block %lld of %u", block.kernel,
                              static_cast<long long>(block.block_idx()), block.count);
    return block.core == Core::aic ? name + " (cube core)" : name;
}
namespace {
void violate(const std::string& block, const Where& where, const std::string& rule, int code) {
    std::string what = block + ": " + rule;
    if (where.file != nullptr && *where.file != '\0') what += format(" [%s:%d]", where.file, where.line);
    const Violation violation{what, code};
    Runner::remember(violation);
    throw violation;
}
}  // namespace
void fail(const std::string& block, const Where& where, const std::string& rule) {
    violate(block, where, rule, aicore_exception);
}
void fail(const Block& block, const Where& where, const std::string& rule) {
    fail(name_of(block), where, rule);
}
void fail_waiting(const Block& block, const Where& where, const std::string& rule) {
    violate(name_of(block), where, rule, aicore_timeout);
}
void fail(const std::string& rule) {
    const Block& block = current();
    fail(block, block.where, rule);
}

void Block::check_balance() {
    for (const auto& queue : queues) {
        if (queue.retired) continue;
        for (const auto& buffer : queue.buffers) {
            if (buffer.state == Buffer::State::free) continue;
            const std::string unbalanced =
                format("queue %s is unbalanced at the end of the kernel: ", queue.position);
            // The flag that EnQue set is there for the next kernel; a buffer that is not given back is no
            // more.
            if (buffer.state == Buffer::State::enqueued)
                fail(*this, buffer.used, unbalanced + "EnQue without DeQue");
            warn_once(format(
                "kernel %s: %s%s; a device ends such a kernel as others, but has a buffer less [%s:%d]",
                kernel, unbalanced.c_str(),
                buffer.state == Buffer::State::dequeued ? "DeQue without FreeTensor"
                                                        : "AllocTensor without EnQue or FreeTensor",
                buffer.used.file, buffer.used.line));
        }
    }
}

bool Block::is_tiling_key(uint64_t key) {
    if (key == tiling_key) {
        tiling_key_given = false;  // one of the kernel's
        return true;
    }
    if (tiling_key_given) tiling_keys_asked.push_back(key);
    return false;
}

void Block::check_tiling_key() {
    if (!tiling_key_given || tiling_keys_asked.empty()) return;
    std::string known;
    for (uint64_t key : tiling_keys_asked) known += (known.empty() ? "" : ", ") + std::to_string(key);
    fail(*this, Where("", 0),
         format("tiling key %llu is not one of the kernel's; it asks for %s",
                static_cast<unsigned long long>(tiling_key), known.c_str()));
}

int catch_faults(void (*body)(void* state), void* state) {
    return ascendgraphGuard(body, state, reinterpret_cast<const void*>(body), 0);
}

Core ask_core() {
    const Block& block = current();
    if (block.type == KernelType::undeclared)
        throw Restart{block.vector_code ? KernelType::aiv_only : KernelType::mix_1_2, true};
    return block.core;
}

void declare_kernel_type(KernelType type) {
    Block& block = current();
    if (block.type == type || type == KernelType::undeclared) return;
    const bool mixed = type == KernelType::mix_1_1 || type == KernelType::mix_1_2;
    if (mixed || (block.type != KernelType::undeclared && Runner::mine->assumed())) throw Restart{type};
    if (block.type != KernelType::undeclared) return;
    block.type = type;
    block.core = single_core(type);
}

void barrier(bool vector_only, const Where& where) {
    Runner::mine->barrier(vector_only, where);
    wait_for_all_blocks();
}
void set_cross_flag(int mode, int flag, const Where& where) { Runner::mine->set_flag(mode, flag, where); }
void wait_cross_flag(int flag, const Where& where) {
    Runner::mine->wait_flag(flag, where);
    wait_for_a_block();
}
void set_block_event(int64_t block, int event, const Where&) {
    tell_blocks_all();
    Runner::mine->set_event(block, event);
}
void wait_block_event(int64_t block, int event, const Where& where) {
    Runner::mine->wait_event(block, event, where);
    wait_for_a_block();
}
void poll() {
    Runner::mine->poll();
    tell_blocks_all();
    wait_for_a_block();
}

Services& services_of_launch() { return Runner::mine->services(); }
void in_launch(const std::function<void()>& function) { Runner::mine->change(function); }
void wait_in_launch(const std::function<bool()>& ready, const char* what, const Where& where) {
    Runner::mine->wait(ready, what, where);
    wait_for_a_block();
}

namespace {
std::mutex& global_lock(size_t slot) {
    static std::mutex locks[64];
    return locks[slot];
}
}  // namespace
GlobalLock::GlobalLock(const void* address) : slot_((reinterpret_cast<uintptr_t>(address) >> 12) % 64) {
    const Hold hold;
    global_lock(slot_).lock();
    this_lock = &global_lock(slot_);
}
GlobalLock::~GlobalLock() {
    const Hold hold;
    this_lock = nullptr;
    global_lock(slot_).unlock();
}

namespace {
// Addresses of a workspace that nobody asked for: whatever a kernel adds to one, there is no memory.
constexpr size_t missing_bytes = size_t{1} << 36;
uint8_t* missing_workspace() {
    static void* const begin =
        mmap(nullptr, missing_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return begin == MAP_FAILED ? nullptr : static_cast<uint8_t*>(begin);
}
}  // namespace

uint8_t* user_workspace(void* workspace, size_t bytes) {
    return bytes > system_workspace ? static_cast<uint8_t*>(workspace) + system_workspace
                                    : missing_workspace();
}
bool lacks_workspace(const void* p) {
    const uint8_t* const begin = missing_workspace();
    return begin != nullptr && p >= begin && p < begin + missing_bytes;
}
std::string workspace_hint(const void* p) {
    if (this_block == nullptr || this_block->argument_count == 0) return "";
    const ArgumentMemory& whole = this_block->arguments[this_block->argument_count - 1];
    const auto* const begin = static_cast<const uint8_t*>(whole.data);
    if (!lacks_workspace(p) && (whole.bytes == 0 || p < begin || p >= begin + whole.bytes)) return "";
    if (whole.bytes > system_workspace)
        return format(
            "; the tiling function asked for %zu bytes of workspace after the 16 MiB of the system: ask for "
            "all "
            "that the kernel uses, in all blocks",
            whole.bytes - system_workspace);
    return format(
        "; the tiling function asked for a workspace of %zu bytes, of which the first 16 MiB are the "
        "system's: "
        "add platform.GetLibApiWorkSpaceSize() to what the kernel uses itself",
        whole.bytes);
}

size_t allocation_rest(const void* p) {
    if (lacks_workspace(p)) return 0;
    const void* base = nullptr;
    size_t size = 0;
    if (ascendgraphAllocationExtent == nullptr || !ascendgraphAllocationExtent(p, &base, &size))
        return this_block == nullptr ? SIZE_MAX : window_rest(this_block->contexts, p);
    const auto begin = reinterpret_cast<uintptr_t>(base);
    const auto at = reinterpret_cast<uintptr_t>(p);
    return at < begin || at - begin > size ? 0 : size - (at - begin);
}

size_t argument_rest(const void* p) {
    if (this_block == nullptr) return 0;
    const auto at = reinterpret_cast<uintptr_t>(p);
    size_t rest = 0;
    for (size_t i = 0; i < this_block->argument_count; ++i) {
        const ArgumentMemory& one = this_block->arguments[i];
        const auto begin = reinterpret_cast<uintptr_t>(one.data);
        if (at >= begin && at - begin < one.bytes) rest = std::max(rest, one.bytes - (at - begin));
    }
    return rest;
}

namespace {
// Before the memory of the tensors, and the arguments behind that.
struct alignas(std::max_align_t) Header {
    const char* kernel;
    Body body;
    std::optional<uint64_t> tiling_key;
    uint32_t blocks;
    Contexts contexts;
    size_t memory_count;

    static size_t of_memory(size_t count) {
        return (count * sizeof(ArgumentMemory) + sizeof(Header) - 1) / sizeof(Header);
    }
};
thread_local std::optional<uint64_t> next_tiling_key;
thread_local Contexts next_contexts{};
thread_local std::vector<ArgumentMemory> next_memory;
void run_launch(void* bytes) {
    const auto* header = static_cast<const Header*>(bytes);
    Runner runner(header->kernel, header->blocks, header->tiling_key, header->contexts, header->body,
                  header + 1 + Header::of_memory(header->memory_count),
                  reinterpret_cast<const ArgumentMemory*>(header + 1), header->memory_count);
    Violation failure = runner.run();
    if (runner.interrupted() && ascendgraphInterruptIsRaised()) return;
    const std::string divisions = runner.divisions();
    if (failure.what.empty()) {
        if (!divisions.empty()) warn_once(divisions);
        return;
    }
    if (!divisions.empty()) failure.what += "; " + divisions;
    ascendgraphSetError(failure.code, failure.what.c_str());
}
}  // namespace

// What the device's runtime takes.
constexpr uint32_t most_blocks = 65535;

static const bool overruns_are_allowed_from_the_start = [] {
    const char* given = std::getenv("ASCEND_GRAPH_KERNEL_OVERRUNS");
    return given != nullptr && std::strcmp(given, "1") == 0;
}();
bool overruns_are_allowed = overruns_are_allowed_from_the_start;
// Chooses for the launches that follow; with -1 as the process started.
extern "C" void ascendcHostAllowOverruns(int allowed) {
    overruns_are_allowed = allowed < 0 ? overruns_are_allowed_from_the_start : allowed != 0;
}
void warn_once(const std::string& text) {
    static auto& said = *new std::set<std::string>;
    static auto& mutex = *new std::mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    if (said.insert(text).second) std::fprintf(stderr, "ascend_graph: %s\n", text.c_str());
}

extern "C" void ascendcHostSetTilingKey(uint64_t key) { next_tiling_key = key; }
void set_contexts(const Contexts& contexts) { next_contexts = contexts; }
void set_arguments(const std::vector<ArgumentMemory>& arguments) { next_memory = arguments; }

uint32_t launch_bytes(const char* kernel, int architecture, uint32_t block_count, void* stream, Body body,
                      const void* arguments, size_t bytes) {
    const auto tiling_key = std::exchange(next_tiling_key, std::nullopt);
    const Contexts contexts = std::exchange(next_contexts, Contexts{});
    const std::vector<ArgumentMemory> memory = std::exchange(next_memory, {});
    if (architecture != this_architecture()) {
        ascendgraphSetError(
            param_invalid,
            format("kernel %s is for dav-%d, and this process stands for dav-%d; start it with "
                   "python -m ascend_graph.host --npu-arch dav-%d",
                   kernel, architecture, this_architecture(), architecture)
                .c_str());
        return param_invalid;
    }
    if (block_count == 0 || block_count > most_blocks) {
        ascendgraphSetError(param_invalid, format("kernel %s: %u blocks; launch at least 1, and at most %u",
                                                  kernel, block_count, most_blocks)
                                               .c_str());
        return param_invalid;
    }
    const size_t front = 1 + Header::of_memory(memory.size());
    std::unique_ptr<Header[]> copy(new Header[front + (bytes + sizeof(Header) - 1) / sizeof(Header)]);
    copy[0] = {kernel, body, tiling_key, block_count, contexts, memory.size()};
    std::copy(memory.begin(), memory.end(), reinterpret_cast<ArgumentMemory*>(&copy[1]));
    std::memcpy(&copy[front], arguments, bytes);
    return static_cast<uint32_t>(
        ascendgraphLaunchHost(stream, run_launch, copy.get(), front * sizeof(Header) + bytes, kernel));
}

}  // namespace ascendc_host
