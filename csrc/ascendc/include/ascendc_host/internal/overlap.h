// Memory that an instruction reads and writes at once. Instructions go repeat after repeat, and each repeat
// is read before it is written: within a repeat a source and the destination are the same memory or apart,
// and no repeat reads what an earlier one wrote. Functions of whole tensors mostly ask for operands that lie
// apart.
#ifndef ASCENDC_HOST_INTERNAL_OVERLAP_H
#define ASCENDC_HOST_INTERNAL_OVERLAP_H

#include <initializer_list>
#include <vector>

#include "ascendc_host/internal/runtime.h"

namespace ascendc_host {

// The bytes that an operand covers.
struct Span {
    const char* name;
    const void* data;
    uint64_t bytes;

    const uint8_t* begin() const { return static_cast<const uint8_t*>(data); }
    const uint8_t* end() const { return begin() + bytes; }
    bool meets(const Span& other) const {
        return bytes != 0 && other.bytes != 0 && begin() < other.end() && other.begin() < end();
    }
};

[[noreturn]] void fail_overlap(const char* api, const Span& dst, const Span& src, const Where& where);
// ASCEND_GRAPH_KERNEL_IN_PLACE=1 lets a destination be its source where documents do not support it; a
// warning says so.
bool allows_in_place(const char* api, const Span& dst, const Span& src);

// For functions whose pages say that source and destination do not overlap.
inline void require_apart(const char* api, const Span& dst, const Span& src, const Where& where) {
    if (__builtin_expect(!dst.meets(src), 1)) return;
    if (dst.data == src.data && allows_in_place(api, dst, src)) return;
    fail_overlap(api, dst, src, where);
}
inline void require_apart(const char* api, std::initializer_list<Span> dsts, std::initializer_list<Span> srcs,
                          const Where& where) {
    for (const Span& dst : dsts)
        for (const Span& src : srcs) require_apart(api, dst, src, where);
}

// How an operand is walked: distances between blocks and between repeats, in blocks of 32 bytes.
struct Walk {
    const char* name;
    const void* data;
    uint32_t block, repeat;
    uint32_t bits;  // of an element
};
// Which lanes of which repeats are active: see AscendC::detail::Mask.
struct Lanes {
    uint32_t repeats, lanes;
    bool counter;
    uint64_t count, low, high;
};
// Raises where a repeat reads what an earlier one wrote, or a repeat's source and destination overlap in
// part. `accumulates` allows the former, as it is for the second source of sums.
void require_order(const char* api, const Walk& dst, const Walk& src, const Lanes& lanes, bool accumulates,
                   const Where& where);

// An operand whose repeats lie one after the other, of so many bytes each.
struct Run {
    const char* name;
    const void* data;
    uint64_t bytes;
};
// Raises where a repeat reads what an earlier one wrote.
void require_order(const char* api, const Run& dst, const Walk& src, const Lanes& lanes, const Where& where);
void require_order(const char* api, const Run& dst, const Run& src, uint32_t repeats, const Where& where);

// What the repeats of an instruction wrote, where what they read is known as they run. Blocks begin at
// multiples of 32 bytes.
class Written {
  public:
    Written(const void* begin, uint64_t bytes)
        : begin_(static_cast<const uint8_t*>(begin)), blocks_((bytes + 31) / 32) {}
    void add(const void* at) { blocks_[index(at)] = true; }
    bool has(const void* at) const {
        return at >= begin_ && index(at) < blocks_.size() && blocks_[index(at)];
    }

  private:
    uint64_t index(const void* at) const {
        return static_cast<uint64_t>(static_cast<const uint8_t*>(at) - begin_) / 32;
    }
    const uint8_t* begin_;
    std::vector<bool> blocks_;
};
[[noreturn]] void fail_order(const char* api, const char* dst, const char* src, const Where& where);

}  // namespace ascendc_host

#endif  // ASCENDC_HOST_INTERNAL_OVERLAP_H
