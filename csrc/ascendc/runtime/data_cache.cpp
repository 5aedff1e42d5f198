#include "data_cache.h"

#include <algorithm>

namespace ascendc_host {
namespace {

uint64_t line_of(const void* at) { return reinterpret_cast<uint64_t>(at) / cache_line; }
uint64_t last_line_of(const uint8_t* end) { return line_of(end - 1); }

}  // namespace

uint64_t bits_in_line(uint64_t line, const uint8_t* begin, const uint8_t* end) {
    const uint64_t start = line * cache_line;
    const uint64_t first = std::max(reinterpret_cast<uint64_t>(begin), start) - start;
    const uint64_t last = std::min(reinterpret_cast<uint64_t>(end), start + cache_line) - start;
    if (first >= last) return 0;
    const uint64_t below = last == cache_line ? ~uint64_t{0} : (uint64_t{1} << last) - 1;
    return below & ~((uint64_t{1} << first) - 1);
}

void DataCache::use(const uint8_t* begin, const uint8_t* end, bool written, const Use& mine, uint32_t round,
                    bool is_alone) {
    if (mine.pipe != Pipe::scalar) return copy(begin, end, written, mine);
    if (written)
        write(begin, end, mine, round, is_alone);
    else
        read(begin, end, mine, round, is_alone);
}

void DataCache::read(const uint8_t* begin, const uint8_t* end, const Use& mine, uint32_t round,
                     bool is_alone) {
    for (uint64_t line = line_of(begin); line <= last_line_of(end); ++line) {
        const auto [at, is_new] = lines_.try_emplace(line);
        Line& state = at->second;
        if (is_new) {
            state.loaded = round;
        } else if ((state.overwritten & bits_in_line(line, begin, end)) != 0) {
            fail(block_, mine.where,
                 format("%s reads global memory that %s [%s:%d] wrote after the scalar unit had its line of "
                        "%llu bytes in "
                        "the data cache: a device reads what was there before. Call DataCacheCleanAndInvalid "
                        "for the line before",
                        mine.api, state.copy.api, state.copy.where.file, state.copy.where.line,
                        static_cast<unsigned long long>(cache_line)));
        } else if (is_alone && state.loaded != round) {
            reads_.push_back({begin, end, state.loaded, round, mine});
        }
    }
}

void DataCache::write(const uint8_t* begin, const uint8_t* end, const Use& mine, uint32_t round,
                      bool is_alone) {
    for (uint64_t line = line_of(begin); line <= last_line_of(end); ++line) {
        const auto [at, is_new] = lines_.try_emplace(line);
        Line& state = at->second;
        if (is_new) state.loaded = round;
        const uint64_t bits = bits_in_line(line, begin, end);
        if ((state.overwritten & ~bits) != 0)
            fail(
                block_, mine.where,
                format("%s changes a line of %llu bytes of global memory that the data cache had before %s "
                       "[%s:%d] wrote to it: a device writes the whole line back, and with it what was there "
                       "before. Call DataCacheCleanAndInvalid for the line before",
                       mine.api, static_cast<unsigned long long>(cache_line), state.copy.api,
                       state.copy.where.file, state.copy.where.line));
        if (state.changed == 0) {
            state.first = round;
            state.is_alone = is_alone;
        }
        state.changed |= bits;
        state.overwritten &= ~bits;
        state.change = mine;
    }
}

void DataCache::copy(const uint8_t* begin, const uint8_t* end, bool written, const Use& mine) {
    const uint64_t last = last_line_of(end);
    for (auto at = lines_.lower_bound(line_of(begin)); at != lines_.end() && at->first <= last; ++at) {
        Line& state = at->second;
        const uint64_t bits = bits_in_line(at->first, begin, end);
        if (state.changed != 0 && (written || (state.changed & bits) != 0))
            fail(block_, mine.where,
                 format("%s %s global memory, of which %s [%s:%d] left %s in the data cache of the scalar "
                        "unit: %s. Call DataCacheCleanAndInvalid<T, CacheLine::SINGLE_CACHE_LINE, "
                        "DcciDst::CACHELINE_OUT>(tensor) after %s, for each line of %llu bytes",
                        mine.api, written ? "writes" : "reads", state.change.api, state.change.where.file,
                        state.change.where.line, written ? "a line" : "bytes",
                        written ? "a device writes the whole line back later, over what is copied"
                                : "a device's copy reads what was there before",
                        state.change.api, static_cast<unsigned long long>(cache_line)));
        if (!written) continue;
        state.overwritten |= bits;
        state.copy = mine;
    }
}

void DataCache::write_back(uint64_t line, const Line& state, uint32_t round) {
    if (state.changed != 0 && state.is_alone)
        changed_.push_back({line, state.changed, state.first, round, state.change});
}

void DataCache::clean(const void* at, uint32_t round) {
    if (at == nullptr) {
        for (const auto& [line, state] : lines_) write_back(line, state, round);
        lines_.clear();
        return;
    }
    const auto found = lines_.find(line_of(at));
    if (found == lines_.end()) return;
    write_back(found->first, found->second, round);
    lines_.erase(found);
}

}  // namespace ascendc_host
