// Global memory that the blocks of a launch use: what one may read or write only after it waited for another.
#ifndef ASCENDC_RUNTIME_LAUNCH_MEMORY_H
#define ASCENDC_RUNTIME_LAUNCH_MEMORY_H

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "data_cache.h"
#include "pipe_order.h"

namespace ascendc_host {

// A part of global memory that a block wrote, between two waits for all blocks.
struct BlockWrite {
    const uint8_t* begin;
    const uint8_t* end;
    uint32_t round;
    Use use;
};

// Parts of global memory that a block read between two waits for all blocks; those of one line are joined.
class BlockReads {
  public:
    void add(const uint8_t* begin, const uint8_t* end, uint32_t round, const Use& use) {
        auto& parts = lines_[{round, use.where.line}];
        auto at = parts.upper_bound(begin);
        if (at != parts.begin() && std::prev(at)->second.end >= begin) --at;
        for (; at != parts.end() && at->first <= end; at = parts.erase(at)) {
            begin = std::min(begin, at->first);
            end = std::max(end, at->second.end);
        }
        parts[begin] = {end, use};
    }
    template <typename Function>
    void each(const Function& function) const {
        for (const auto& [line, parts] : lines_)
            for (const auto& [begin, part] : parts) function(begin, part.end, line.first, part.use);
    }

  private:
    struct Part {
        const uint8_t* end;
        Use use;
    };
    std::map<std::pair<uint32_t, int>, std::map<const uint8_t*, Part>> lines_;  // by round and line
};

class LaunchMemory {
  public:
    void add(const Block& block, const std::vector<BlockWrite>& writes, BlockReads reads,
             const DataCache& cache) {
        const std::lock_guard<std::mutex> lock(mutex_);
        readers_.push_back({block.block_idx(), name_of(block), std::move(reads), cache.reads()});
        for (const ChangedLine& line : cache.changed_lines())
            changed_lines_[line.line].push_back({line, block.block_idx(), name_of(block)});
        for (const BlockWrite& write : writes) {
            auto& parts = rounds_[write.round];
            auto at = parts.upper_bound(write.begin);
            if (at != parts.begin() && std::prev(at)->second.end > write.begin) --at;
            const uint8_t *begin = write.begin, *end = write.end;
            for (; at != parts.end() && at->first < write.end; at = parts.erase(at)) {
                if (at->second.block != block.block_idx()) fail_shared(block, write, at->first, at->second);
                begin = std::min(begin, at->first);
                end = std::max(end, at->second.end);
            }
            parts[begin] = {end, block.block_idx(), write.use};
        }
    }
    // What a block wrote and no flag that it set for others covered, and what it read after it waited for
    // one.
    void add_flagged(const Block& block, std::vector<BlockWrite> hidden, BlockReads reads) {
        const std::lock_guard<std::mutex> lock(mutex_);
        flagged_.push_back({block.block_idx(), name_of(block), std::move(reads), std::move(hidden)});
    }
    // Of a launch that ended: raises where a block read what another wrote.
    void check_reads() const {
        check_flagged();
        for (const Reader& reader : readers_)
            reader.reads.each([&](const uint8_t* begin, const uint8_t* end, uint32_t round, const Use& use) {
                each_write(begin, end, round, round, reader.block,
                           [&](const Part& other) { fail_read(reader, use, other); });
                check_cached_writes(reader, begin, end, round, use);
            });
        check_lines();
    }

  private:
    struct Part {
        const uint8_t* end = nullptr;
        int64_t block = 0;
        Use use;
    };
    struct Reader {
        int64_t block;
        std::string name;
        BlockReads reads;
        std::vector<CachedRead> cached;
    };
    struct Flagged {
        int64_t block;
        std::string name;
        BlockReads reads;
        std::vector<BlockWrite> hidden;
    };
    struct BlockLine {
        ChangedLine line;
        int64_t block;
        std::string name;
    };
    // Raises where a block waited for a flag and then read what the flag's pipe had not waited for.
    void check_flagged() const {
        for (const Flagged& writer : flagged_)
            for (const BlockWrite& write : writer.hidden)
                for (const Flagged& reader : flagged_) {
                    if (reader.name == writer.name) continue;
                    reader.reads.each(
                        [&](const uint8_t* begin, const uint8_t* end, uint32_t, const Use& use) {
                            if (begin < write.end && write.begin < end) fail_flag(reader, use, writer, write);
                        });
                }
    }
    [[noreturn]] static void fail_flag(const Flagged& reader, const Use& mine, const Flagged& writer,
                                       const BlockWrite& write) {
        fail(reader.name, mine.where,
             format("%s reads global memory that %s wrote by %s [%s:%d], and the flags that it set for other "
                    "blocks did not wait for pipe %s, which writes it. Name that pipe in "
                    "CrossCoreSetFlag<mode, PIPE_%s>, or call PipeBarrier<PIPE_ALL> before",
                    mine.api, writer.name.c_str(), write.use.api, write.use.where.file, write.use.where.line,
                    pipe_name(write.use.pipe), pipe_name(write.use.pipe)));
    }
    // Calls `function` with what other blocks wrote of a range in some rounds.
    template <typename Function>
    void each_write(const uint8_t* begin, const uint8_t* end, uint32_t first, uint32_t last, int64_t block,
                    const Function& function) const {
        for (auto round = rounds_.lower_bound(first); round != rounds_.end() && round->first <= last;
             ++round) {
            const auto& parts = round->second;
            auto at = parts.upper_bound(begin);
            if (at != parts.begin() && std::prev(at)->second.end > begin) --at;
            for (; at != parts.end() && at->first < end; ++at)
                if (at->second.block != block) function(at->second);
        }
    }
    // Raises where bytes were still in another block's data cache when all blocks had waited for one another.
    void check_cached_writes(const Reader& reader, const uint8_t* begin, const uint8_t* end, uint32_t round,
                             const Use& mine) const {
        const uint64_t last = reinterpret_cast<uint64_t>(end - 1) / cache_line;
        auto at = changed_lines_.lower_bound(reinterpret_cast<uint64_t>(begin) / cache_line);
        for (; at != changed_lines_.end() && at->first <= last; ++at)
            for (const BlockLine& other : at->second) {
                const ChangedLine& line = other.line;
                if (other.block == reader.block || round <= line.first || round > line.last ||
                    (line.changed & bits_in_line(line.line, begin, end)) == 0)
                    continue;
                fail(
                    reader.name, mine.where,
                    format("%s reads global memory that block %lld left in the data cache of its scalar unit "
                           "by %s [%s:%d]: SyncAll does not write it back. Call DataCacheCleanAndInvalid "
                           "between the two",
                           mine.api, static_cast<long long>(other.block), line.use.api, line.use.where.file,
                           line.use.where.line));
            }
    }
    // Raises where two blocks changed one line of a data cache, and where one read a line that is out of
    // date.
    void check_lines() const {
        for (const auto& [line, changes] : changed_lines_)
            for (const BlockLine& mine : changes) {
                const auto* begin = reinterpret_cast<const uint8_t*>(line * cache_line);
                each_write(begin, begin + cache_line, mine.line.first, mine.line.last, mine.block,
                           [&, &mine = mine](const Part& other) { fail_line(mine, other); });
            }
        for (const Reader& reader : readers_)
            for (const CachedRead& read : reader.cached)
                each_write(read.begin, read.end, read.loaded, read.round - 1, reader.block,
                           [&](const Part& other) {
                               fail(reader.name, read.use.where,
                                    format("%s reads global memory that block %lld wrote by %s [%s:%d] after "
                                           "the scalar unit had its line of %llu bytes in the data cache: a "
                                           "device reads what was there before. Call "
                                           "DataCacheCleanAndInvalid for the line before",
                                           read.use.api, static_cast<long long>(other.block), other.use.api,
                                           other.use.where.file, other.use.where.line,
                                           static_cast<unsigned long long>(cache_line)));
                           });
    }
    [[noreturn]] static void fail_line(const BlockLine& mine, const Part& other) {
        const Use& use = mine.line.use;
        fail(
            mine.name, use.where,
            format("%s changes a line of %llu bytes of global memory to which block %lld writes, too, by %s "
                   "[%s:%d]: "
                   "data caches write whole lines back, and the bytes of one block are lost. Give each block "
                   "lines of its own, or write with DataCopyPad",
                   use.api, static_cast<unsigned long long>(cache_line), static_cast<long long>(other.block),
                   other.use.api, other.use.where.file, other.use.where.line));
    }
    [[noreturn]] static void fail_read(const Reader& reader, const Use& mine, const Part& other) {
        fail(reader.name, mine.where,
             format("%s reads global memory that block %lld writes by %s [%s:%d], and neither waits for the "
                    "other: "
                    "whether it reads what was there before is chance. Call SyncAll between the two, or give "
                    "each block "
                    "memory of its own",
                    mine.api, static_cast<long long>(other.block), other.use.api, other.use.where.file,
                    other.use.where.line));
    }
    [[noreturn]] static void fail_shared(const Block& block, const BlockWrite& mine, const uint8_t* begin,
                                         const Part& other) {
        const uint8_t* const first = std::max(begin, mine.begin);
        fail(block, mine.use.where,
             format("%s writes to global memory, %zu bytes of which block %lld writes, too, by %s [%s:%d], "
                    "and neither "
                    "waits for the other: which of them stays is chance. Give each block whole blocks of 32 "
                    "bytes, write "
                    "the elements that are left with DataCopyPad, or call SyncAll in between",
                    mine.use.api, static_cast<size_t>(std::min(other.end, mine.end) - first),
                    static_cast<long long>(other.block), other.use.api, other.use.where.file,
                    other.use.where.line));
    }
    std::mutex mutex_;
    std::map<uint32_t, std::map<const uint8_t*, Part>> rounds_;  // parts lie apart
    std::vector<Reader> readers_;
    std::vector<Flagged> flagged_;
    std::map<uint64_t, std::vector<BlockLine>> changed_lines_;
};

}  // namespace ascendc_host

#endif  // ASCENDC_RUNTIME_LAUNCH_MEMORY_H
