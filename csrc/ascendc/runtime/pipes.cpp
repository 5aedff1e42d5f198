// The order of a block's pipes, by clocks: each pipe counts its instructions, and knows how far it has waited
// for the others. An instruction that meets memory which another pipe used later than that is a hazard.
#include "ascendc_host/internal/pipes.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <tuple>

#include "data_cache.h"
#include "launch_memory.h"
#include "pipe_order.h"

namespace ascendc_host {
namespace {

constexpr uint64_t cell_bytes = 32;
constexpr size_t pipes = static_cast<size_t>(Pipe::count);
constexpr const char* pipe_names[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"};

size_t number(Pipe pipe) { return static_cast<size_t>(pipe); }

bool begins(const char* text, const char* with) { return std::strncmp(text, with, std::strlen(with)) == 0; }
bool is_any(const char* text, std::initializer_list<const char*> all) {
    return std::any_of(all.begin(), all.end(), [&](const char* one) { return std::strcmp(text, one) == 0; });
}

[[noreturn]] void fail_wait(const Block& block, Pipe from, Pipe to, uint64_t key, const Where& where) {
    fail_waiting(
        block, where,
        format("WaitFlag<HardEvent::%s_%s>(%llu): nothing set the flag (on the device this waits for "
               "ever); call SetFlag with the same event and number first",
               pipe_name(from), pipe_name(to), static_cast<unsigned long long>(key)));
}

// The names that arguments of the API have.
bool is_written(const char* api, const char* name) {
    if (std::strcmp(api, "SetValue") == 0 || std::strcmp(api, "InitOutput") == 0) return true;
    if (std::strcmp(api, "AdjustSoftMaxRes") == 0) return std::strcmp(name, "softMaxRes") == 0;
    if (begins(name, "dst")) return std::strcmp(name, "dstOffset") != 0;
    return begins(name, "output") ||
           is_any(name, {"resForGamma", "meanLocal", "rstdLocal", "sumTensor", "maxTensor", "expMaxTensor",
                         "softMaxRes", "lastRowTensor", "sharedTmpBuffer"});
}
// Arguments that are read and never written, whatever the function.
bool is_source(const char* name) {
    return begins(name, "src") ||
           is_any(name, {"a source", "fm", "filter", "bias", "selMask", "what dst has", "cbufWorkspace"});
}
// Functions whose instructions are not those of the device, and what only looks.
bool is_unknown(const char* api, const char* name) {
    if (is_any(api, {"Matmul", "GetBatchTensorC", "TBuf::Get", "InitSpmBuffer", "SetFixPipeConfig"}))
        return true;
    return std::strcmp(name, "the tensor") == 0 &&
           !is_any(api, {"GetValue", "SetValue", "operator()", "InitOutput"});
}
Pipe pipe_of(const char* api) {
    if (is_any(api, {"GetValue", "SetValue", "operator()"})) return Pipe::scalar;
    if (begins(api, "LoadData")) return Pipe::mte1;
    if (std::strcmp(api, "Mmad") == 0) return Pipe::cube;
    if (std::strcmp(api, "Fixpipe") == 0) return Pipe::fixpipe;
    if (std::strcmp(api, "InitOutput") == 0) return Pipe::mte3;
    return Pipe::vector;
}

}  // namespace

const char* pipe_name(Pipe pipe) { return pipe_names[number(pipe)]; }

static const bool are_checked_from_the_start = [] {
    const char* given = std::getenv("ASCEND_GRAPH_KERNEL_PIPES");
    return given != nullptr && std::strcmp(given, "1") == 0;
}();
bool pipes_are_checked = are_checked_from_the_start;
// Whether reads of local memory that nothing wrote are faults, too. A kernel may compute more lanes than it
// uses.
static bool unset_reads_are_checked = are_checked_from_the_start;
static std::atomic<uint64_t> checked_launches{0};

class PipeOrder {
  public:
    explicit PipeOrder(Block& block) : block_(block), cache_(block) {}

    Pipe pipe = Pipe::vector;
    bool is_given = false;  // `pipe`, by an OnPipe
    uint64_t row_bytes = 0, row_stride = 0;

    // A new instruction.
    void issue() {
        shown_.clear();
        ++instruction_;
    }

    void use(const uint8_t* begin, uint64_t bytes, const char* api, const char* name, const Where& where) {
        if (bytes == 0 || is_unknown(api, name)) return;
        const Pipe on = is_given && pipe_of(api) != Pipe::scalar ? pipe : pipe_of(api);
        const bool written = is_written(api, name);
        const uint8_t* from = begin;
        const uint8_t* const end = begin + bytes;
        // One instruction may show the same operand again and again, each time to a later end.
        if (is_given && row_stride == 0) {
            const uint8_t*& shown = shown_[{begin, written}];
            if (end <= shown) return;
            from = std::max(from, shown);
            shown = end;
        }
        const Use mine{++issued_[number(on)], on, api, where, is_given ? instruction_ : 0};
        const Memory memory = memory_of(begin);
        const auto each = [&](const uint8_t* first, const uint8_t* last) {
            if (memory == Memory::count) {
                if (!written || block_.atomic != Block::Atomic::none) require_workspace(mine, first, last);
                meet_global(mine, first, last, written, name);
            } else {
                meet_local(mine, memory, first, last, written, name);
            }
        };
        const bool must_be_written = memory != Memory::count && !written && is_source(name);
        if (row_stride == 0 || row_bytes >= row_stride) {
            if (must_be_written) require_written(mine, memory, begin, end, name);
            return each(from, end);
        }
        for (const uint8_t* row = begin; row < end; row += row_stride) {
            if (must_be_written) require_written(mine, memory, row, std::min(row + row_bytes, end), name);
            each(row, std::min(row + row_bytes, end));
        }
    }

    void set(Pipe from, Pipe to, uint64_t key, const Where& where) {
        Flag flag{known_[number(from)], where};
        merge(flag.known, known_[number(Pipe::scalar)]);
        flag.known[number(from)] = issued_[number(from)];
        auto& set = flags_[{from, to, key}];
        if (!set.empty() && key < most_events) warn_set(from, to, key, set.back().where, where);
        set.push_back(flag);
    }
    void wait(Pipe from, Pipe to, uint64_t key, const Where& where) {
        auto& set = flags_[{from, to, key}];
        if (set.empty()) fail_wait(block_, from, to, key, where);
        merge(known_[number(to)], set.front().known);
        set.pop_front();
    }
    void wait_for_all() {
        for (auto& known : known_) known = issued_;
    }
    void wait_for(Pipe to, Pipe from) {
        auto& reached = known_[number(to)][number(from)];
        reached = issued_[number(from)];
    }
    void wait_for_all_blocks() {
        ++round_;
        tell_all();
    }
    void clean_data_cache(const void* at) { cache_.clean(at, round_); }
    // What is written from here on may come after what another block wrote.
    void wait_for_a_block() {
        is_alone_ = false;
        merge(known_[number(Pipe::scalar)], told_);
    }
    void tell_blocks(Pipe from) {
        merge(told_, known_[number(from)]);
        merge(told_, known_[number(Pipe::scalar)]);
        // The scalar unit has done what it was given before it gives the flag.
        for (const Pipe done : {from, Pipe::scalar}) told_[number(done)] = issued_[number(done)];
        asked_ = issued_;
    }
    void tell_all() { told_ = issued_; }
    // Writes that no flag for other blocks covered, though the block set one after them.
    std::vector<BlockWrite> hidden_writes() const {
        std::vector<BlockWrite> hidden;
        for (const auto& [begin, write] : writes_) {
            const size_t on = number(write.use.pipe);
            if (write.use.clock > told_[on] && write.use.clock <= asked_[on])
                hidden.push_back({begin, write.end, round_, write.use});
        }
        return hidden;
    }
    BlockReads& late_reads() { return late_reads_; }
    const std::vector<BlockWrite>& block_writes() const { return block_writes_; }
    BlockReads& block_reads() { return block_reads_; }
    // What is in it at the kernel's end stays there for all rounds.
    const DataCache& data_cache() {
        cache_.clean(nullptr, UINT32_MAX);
        return cache_;
    }
    // Flags that were set and that nothing waited for.
    void check_flags() const {
        for (const auto& [flag, set] : flags_) {
            if (set.empty() || flag.key >= most_events) continue;
            warn_once(format(
                "kernel %s: SetFlag<HardEvent::%s_%s>(%llu) without WaitFlag [%s:%d]: it is still set for "
                "the next kernel, whose waits may end too early",
                block_.kernel, pipe_name(flag.from), pipe_name(flag.to),
                static_cast<unsigned long long>(flag.key), set.back().where.file, set.back().where.line));
        }
    }

  private:
    using Clocks = std::array<uint32_t, pipes>;
    struct Cell {
        Use write;
        std::array<Use, pipes> reads;
    };
    struct Flag {
        Clocks known;
        Where where;
    };
    struct FlagName {
        Pipe from, to;
        uint64_t key;
        bool operator<(const FlagName& other) const {
            return std::tie(from, to, key) < std::tie(other.from, other.to, other.key);
        }
    };
    struct GlobalWrite {
        const uint8_t* end;
        Use use;
    };
    static void merge(Clocks& into, const Clocks& other) {
        for (size_t i = 0; i < pipes; ++i) into[i] = std::max(into[i], other[i]);
    }
    Memory memory_of(const uint8_t* at) const {
        for (size_t i = 0; i < static_cast<size_t>(Memory::count); ++i) {
            const auto which = static_cast<Memory>(i);
            const uint8_t* start = block_.memory(which);
            if (at >= start && at < start + most_bytes(which)) return which;
        }
        return Memory::count;
    }
    // What the scalar unit waited for, everything that it issues later waits for.
    bool waits(const Use& mine, const Use& other) const {
        return std::max(known_[number(mine.pipe)][number(other.pipe)],
                        known_[number(Pipe::scalar)][number(other.pipe)]) >= other.clock;
    }
    // With --cce-auto-sync, as compilers have it unless a project switches it off, the scalar unit of a
    // vector core waits for the other pipes and they for it, and vector instructions for one another. Copies
    // of one pipe in the same direction may pass one another.
    bool is_hazard(const Use& mine, const Use& other, bool both_write) const {
        if (other.clock == 0 || (mine.instruction != 0 && mine.instruction == other.instruction))
            return false;
        if (mine.pipe == other.pipe) {
            const bool is_copy = mine.pipe == Pipe::mte2 || mine.pipe == Pipe::mte3;
            if (!both_write || !is_copy || block_.atomic != Block::Atomic::none) return false;
        } else if ((mine.pipe == Pipe::scalar || other.pipe == Pipe::scalar) && !block_.syncs_by_hand) {
            return false;
        }
        return !waits(mine, other);
    }
    void meet_local(const Use& mine, Memory memory, const uint8_t* begin, const uint8_t* end, bool written,
                    const char* name) {
        auto& cells = cells_[static_cast<size_t>(memory)];
        const uint8_t* start = block_.memory(memory);
        const size_t first = static_cast<size_t>(begin - start) / cell_bytes;
        const size_t last = (static_cast<size_t>(end - start) + cell_bytes - 1) / cell_bytes;
        if (cells.size() < last) cells.resize(last);
        for (size_t i = first; i < last; ++i) {
            Cell& cell = cells[i];
            const auto meet_write = [&](bool of_this_pipe) {
                if (of_this_pipe == (cell.write.pipe == mine.pipe) && is_hazard(mine, cell.write, written))
                    fail_hazard(mine, cell.write, written, true, memory, name);
            };
            meet_write(false);
            if (!written) {
                cell.reads[number(mine.pipe)] = mine;
                continue;
            }
            // The scalar unit has what it reads before it issues anything else.
            for (const Use& read : cell.reads)
                if (read.pipe != Pipe::scalar && is_hazard(mine, read, false))
                    fail_hazard(mine, read, true, false, memory, name);
            meet_write(true);
            cell.write = mine;
        }
    }
    // Of global memory only the block's own writes are kept, whole.
    void meet_global(const Use& mine, const uint8_t* begin, const uint8_t* end, bool written,
                     const char* name) {
        if (std::strcmp(mine.api, "operator()") != 0)  // may read or write
            cache_.use(begin, end, written, mine, round_, is_alone_);
        auto at = writes_.upper_bound(begin);
        if (at != writes_.begin() && std::prev(at)->second.end > begin) --at;
        while (at != writes_.end() && at->first < end) {
            const GlobalWrite other = at->second;
            if (is_hazard(mine, other.use, written))
                fail_hazard(mine, other.use, written, true, Memory::count, name);
            if (!written) {
                ++at;
                continue;
            }
            const uint8_t* const other_begin = at->first;
            at = writes_.erase(at);
            if (other_begin < begin) writes_[other_begin] = {begin, other.use};
            if (other.end > end) writes_[end] = other;
        }
        if (!written) {
            (is_alone_ ? block_reads_ : late_reads_).add(begin, end, round_, mine);
            return;
        }
        writes_[begin] = {end, mine};
        if (!is_alone_ || block_.atomic != Block::Atomic::none) return;
        if (!block_writes_.empty()) {
            BlockWrite& last = block_writes_.back();
            if (last.end == begin && last.round == round_ && last.use.where.line == mine.where.line) {
                last.end = end;
                return;
            }
        }
        block_writes_.push_back({begin, end, round_, mine});
    }
    // Raises where no block wrote a part of the workspace, which is the last argument's memory.
    void require_workspace(const Use& mine, const uint8_t* begin, const uint8_t* end) const {
        if (!unset_reads_are_checked || block_.argument_count == 0 || end - begin < 4) return;
        const ArgumentMemory& workspace = block_.arguments[block_.argument_count - 1];
        const auto* start = static_cast<const uint8_t*>(workspace.data);
        if (begin < start || end > start + workspace.bytes || !is_unset(begin, end)) return;
        fail(
            block_, mine.where,
            format(
                "%s reads bytes %llu to %llu of the workspace, which nothing wrote: a device has there what "
                "the last kernel left. Set them to 0 with InitGlobalMemory and call SyncAll before, or write "
                "the first value without an atomic copy",
                mine.api, static_cast<unsigned long long>(begin - start),
                static_cast<unsigned long long>(end - start)));
    }
    static bool is_unset(const uint8_t* begin, const uint8_t* end) {
        return std::all_of(begin, end, [](uint8_t byte) { return byte == unset_byte; });
    }
    // Raises where nothing wrote a source, or a whole cell of what is copied to global memory: instructions
    // on tensors may compute more lanes than are used.
    void require_written(const Use& mine, Memory memory, const uint8_t* begin, const uint8_t* end,
                         const char* name) const {
        if (!unset_reads_are_checked) return;
        if (end - begin >= 4 && is_unset(begin, end)) fail_unset(mine, memory, begin, end, name);
        if (mine.pipe != Pipe::mte3 || memory != Memory::ub) return;
        const auto& cells = cells_[static_cast<size_t>(Memory::ub)];
        const uint8_t* const start = block_.memory(Memory::ub);
        auto cell = (static_cast<uint64_t>(begin - start) + cell_bytes - 1) / cell_bytes;
        for (; start + (cell + 1) * cell_bytes <= end; ++cell) {
            const uint8_t* const from = start + cell * cell_bytes;
            const bool is_written = cell < cells.size() && cells[cell].write.clock != 0;
            if (!is_written && is_unset(from, from + cell_bytes))
                fail_unset(mine, memory, from, from + cell_bytes, name);
        }
    }
    [[noreturn]] void fail_unset(const Use& mine, Memory memory, const uint8_t* begin, const uint8_t* end,
                                 const char* name) const {
        const char* const instead = memory == Memory::ub
                                        ? "Copy to it or compute it first, or fill it with Duplicate"
                                    : memory == Memory::l0c ? "Let the first Mmad set cmatrixInitVal"
                                                            : "Copy or load to it first";
        fail(block_, mine.where,
             format("%s reads %s, bytes %llu to %llu of the %s, which nothing wrote: a device has there what "
                    "the last "
                    "kernel left. %s",
                    mine.api, name, static_cast<unsigned long long>(begin - block_.memory(memory)),
                    static_cast<unsigned long long>(end - block_.memory(memory)), memory_name(memory),
                    instead));
    }
    [[noreturn]] void fail_hazard(const Use& mine, const Use& other, bool writes, bool wrote, Memory memory,
                                  const char* name) const {
        const char *from = pipe_name(other.pipe), *to = pipe_name(mine.pipe);
        const bool is_local = memory != Memory::count;
        const bool has_queue = is_local && mine.pipe != Pipe::scalar && other.pipe != Pipe::scalar;
        const char *in = is_local ? "the " : "global memory", *which = is_local ? memory_name(memory) : "";
        if (mine.pipe == other.pipe)
            fail(block_, mine.where,
                 format("%s writes %s on pipe %s and does not wait for %s [%s:%d], which writes the same "
                        "bytes of %s%s on "
                        "the same pipe: copies may pass one another. Write PipeBarrier<PIPE_%s>() between "
                        "the two",
                        mine.api, name, to, other.api, other.where.file, other.where.line, in, which, to));
        fail(block_, mine.where,
             format(
                 "%s %s %s on pipe %s and does not wait for pipe %s, on which %s [%s:%d] %s the same bytes "
                 "of %s%s. Write "
                 "SetFlag<HardEvent::%s_%s>(id) after that and WaitFlag<HardEvent::%s_%s>(id) before this%s",
                 mine.api, writes ? "writes" : "reads", name, to, from, other.api, other.where.file,
                 other.where.line, wrote ? "writes" : "reads", in, which, from, to, from, to,
                 has_queue ? ", or pass the tensor on by EnQue and DeQue of a queue between the two" : ""));
    }
    void warn_set(Pipe from, Pipe to, uint64_t key, const Where& before, const Where& where) const {
        warn_once(
            format("kernel %s: SetFlag<HardEvent::%s_%s>(%llu) [%s:%d]: the flag is set since [%s:%d], and "
                   "nothing waited for it: CANN's documents do not define what a device does. Call WaitFlag "
                   "between the two, or take another number",
                   block_.kernel, pipe_name(from), pipe_name(to), static_cast<unsigned long long>(key),
                   where.file, where.line, before.file, before.line));
    }
    Block& block_;
    Clocks issued_{};
    std::array<Clocks, pipes> known_{};
    Clocks told_{};   // what was done before flags for other blocks were set
    Clocks asked_{};  // what was issued before the last of them
    std::map<FlagName, std::deque<Flag>> flags_;
    std::vector<Cell> cells_[static_cast<size_t>(Memory::count)];
    std::map<const uint8_t*, GlobalWrite> writes_;
    uint32_t instruction_ = 0;
    std::vector<BlockWrite> block_writes_;
    BlockReads block_reads_, late_reads_;  // before it waited for a block, and after
    DataCache cache_;
    uint32_t round_ = 0;
    bool is_alone_ = true;
    std::map<std::pair<const uint8_t*, bool>, const uint8_t*> shown_;  // ends of an instruction's operands
};

void begin_pipes(Block& block) {
    if (!pipes_are_checked) return;
    block.pipes = std::make_shared<PipeOrder>(block);
    for (size_t i = 0; i < static_cast<size_t>(Memory::count); ++i) {
        const auto memory = static_cast<Memory>(i);
        std::memset(block.memory(memory), unset_byte, most_bytes(memory));
    }
}
std::shared_ptr<LaunchMemory> launch_memory() {
    if (!pipes_are_checked) return nullptr;
    ++checked_launches;
    return std::make_shared<LaunchMemory>();
}
// Chooses the checks of the launches that follow: those of the process's start (0), that pipes wait (1), and
// that nothing unset is read, too (2).
extern "C" void ascendcHostCheckPipes(int which) {
    pipes_are_checked = which > 0 || are_checked_from_the_start;
    unset_reads_are_checked = which > 1 || (which == 0 && are_checked_from_the_start);
}
extern "C" uint64_t ascendcHostCheckedLaunches() { return checked_launches; }
void end_pipes(const Block& block, LaunchMemory* memory) {
    if (block.pipes == nullptr) return;
    block.pipes->check_flags();
    if (memory != nullptr)
        memory->add(block, block.pipes->block_writes(), std::move(block.pipes->block_reads()),
                    block.pipes->data_cache()),
            memory->add_flagged(block, block.pipes->hidden_writes(), std::move(block.pipes->late_reads()));
}
void check_reads(const LaunchMemory* memory) {
    if (memory != nullptr) memory->check_reads();
}
void wait_for_all_blocks() {
    if (const auto& pipes = current().pipes) pipes->wait_for_all_blocks();
}
void wait_for_a_block() {
    if (!pipes_are_checked || !inside_kernel()) return;
    if (const auto& pipes = current().pipes) pipes->wait_for_a_block();
}

void touch(const void* begin, uint64_t bytes, const char* api, const char* name, const Where& where) {
    Block& block = current();
    if (block.pipes != nullptr) block.pipes->use(static_cast<const uint8_t*>(begin), bytes, api, name, where);
}
void set_pipe_flag(Pipe from, Pipe to, uint64_t key, const Where& where) {
    Block& block = current();
    if (key < most_events) {
        uint8_t& set = block.flags[number(from)][number(to)][key];
        set = static_cast<uint8_t>(std::min(set + 1, 255));
    }
    if (block.pipes != nullptr) block.pipes->set(from, to, key, where);
}
void wait_pipe_flag(Pipe from, Pipe to, uint64_t key, const Where& where) {
    Block& block = current();
    if (key < most_events) {
        uint8_t& set = block.flags[number(from)][number(to)][key];
        if (set == 0) fail_wait(block, from, to, key, where);
        --set;
    }
    if (block.pipes != nullptr) block.pipes->wait(from, to, key, where);
}
void wait_for_all_pipes() {
    if (const auto& pipes = current().pipes) pipes->wait_for_all();
}
void set_flag_for_blocks(Pipe from) {
    if (const auto& pipes = current().pipes) pipes->tell_blocks(from);
}
void tell_blocks_all() {
    if (!pipes_are_checked || !inside_kernel()) return;
    if (const auto& pipes = current().pipes) pipes->tell_all();
}
void wait_for_pipe(Pipe to, Pipe from) {
    if (const auto& pipes = current().pipes) pipes->wait_for(to, from);
}
void clean_data_cache(const void* at) {
    if (const auto& pipes = current().pipes) pipes->clean_data_cache(at);
}

void OnPipe::begin(Pipe pipe) {
    PipeOrder* order = current().pipes.get();
    if (order == nullptr || order->is_given) return;
    outer_ = order;
    pipe_before_ = order->pipe;
    order->pipe = pipe;
    order->is_given = true;
    order->issue();
}
void OnPipe::end() {
    auto* order = static_cast<PipeOrder*>(outer_);
    order->pipe = pipe_before_;
    order->is_given = false;
    order->row_bytes = order->row_stride = 0;
}
void OnPipe::set_rows(uint64_t bytes, uint64_t stride) {
    auto* order = static_cast<PipeOrder*>(outer_);
    order->row_bytes = bytes;
    order->row_stride = stride;
}

}  // namespace ascendc_host
