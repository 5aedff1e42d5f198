// The data cache of a block's scalar unit: GetValue and SetValue of global memory go through it, copies do
// not.
//
// A device's cache holds lines of 64 bytes. What SetValue writes stays there until DataCacheCleanAndInvalid
// or the kernel's end, when whole lines are written back; what GetValue read once is read again from there.
// Here there is one memory, so that a kernel that forgets the cache is right. This says where it is not.
#ifndef ASCENDC_RUNTIME_DATA_CACHE_H
#define ASCENDC_RUNTIME_DATA_CACHE_H

#include <cstdint>
#include <map>
#include <vector>

#include "ascendc_host/internal/pipes.h"

namespace ascendc_host {

// An instruction that used memory.
struct Use {
    uint32_t clock = 0;  // 0: none
    Pipe pipe = Pipe::scalar;
    const char* api = "";
    Where where{"", 0};
    uint32_t instruction = 0;  // of an OnPipe; 0: not known
};

constexpr uint64_t cache_line = 64;

// A line that SetValue changed, from the round of the first to that of the DataCacheCleanAndInvalid. Rounds
// are counted by waits for all blocks.
struct ChangedLine {
    uint64_t line;     // its address, in lines
    uint64_t changed;  // a bit for each byte
    uint32_t first, last;
    Use use;
};

// Global memory that GetValue took from a line that an earlier round brought into the cache.
struct CachedRead {
    const uint8_t* begin;
    const uint8_t* end;
    uint32_t loaded, round;
    Use use;
};

class DataCache {
  public:
    explicit DataCache(const Block& block) : block_(block) {}

    // Bytes of global memory that an instruction uses, in a round; `is_alone` until the block waited for some
    // blocks alone. Raises where the block's own copies and its scalar unit see different bytes.
    void use(const uint8_t* begin, const uint8_t* end, bool written, const Use& mine, uint32_t round,
             bool is_alone);
    // DataCacheCleanAndInvalid of the line at an address, of all lines for null.
    void clean(const void* at, uint32_t round);

    const std::vector<ChangedLine>& changed_lines() const { return changed_; }
    const std::vector<CachedRead>& reads() const { return reads_; }

  private:
    struct Line {
        uint64_t changed = 0;      // by SetValue, a bit for each byte
        uint64_t overwritten = 0;  // by copies, after the line was loaded
        uint32_t loaded = 0, first = 0;
        bool is_alone = true;
        Use change, copy;
    };
    void read(const uint8_t* begin, const uint8_t* end, const Use& mine, uint32_t round, bool is_alone);
    void write(const uint8_t* begin, const uint8_t* end, const Use& mine, uint32_t round, bool is_alone);
    void copy(const uint8_t* begin, const uint8_t* end, bool written, const Use& mine);
    void write_back(uint64_t line, const Line& state, uint32_t round);

    const Block& block_;
    std::map<uint64_t, Line> lines_;
    std::vector<ChangedLine> changed_;
    std::vector<CachedRead> reads_;
};

// The bits of the bytes of a line that lie in a range.
uint64_t bits_in_line(uint64_t line, const uint8_t* begin, const uint8_t* end);

}  // namespace ascendc_host

#endif  // ASCENDC_RUNTIME_DATA_CACHE_H
