// Which operands of an instruction overlap in memory, and how.
#include "ascendc_host/internal/overlap.h"

#include <cstdlib>
#include <cstring>

namespace ascendc_host {
namespace {

constexpr uint64_t block_bytes = 32;

// The blocks of an operand that have an active lane, repeat after repeat.
class Blocks {
  public:
    Blocks(const Walk& walk, const Lanes& lanes)
        : walk_(walk), lanes_(lanes), per_block_(static_cast<uint32_t>(block_bytes * 8 / walk.bits)) {}

    uint32_t count() const { return (lanes_.lanes + per_block_ - 1) / per_block_; }
    bool active(uint32_t repeat, uint32_t block) const {
        const uint32_t first = block * per_block_;
        const uint32_t last = std::min(first + per_block_, lanes_.lanes);
        if (lanes_.counter) return uint64_t(repeat) * lanes_.lanes + first < lanes_.count;
        if (last > 128) return true;
        for (uint32_t lane = first; lane < last; ++lane)
            if (((lane < 64 ? lanes_.low >> lane : lanes_.high >> (lane - 64)) & 1) != 0) return true;
        return false;
    }
    const uint8_t* at(uint32_t repeat, uint32_t block) const {
        return static_cast<const uint8_t*>(walk_.data) +
               (uint64_t(repeat) * walk_.repeat + uint64_t(block) * walk_.block) * block_bytes;
    }
    Span extent() const {
        const uint64_t blocks =
            uint64_t(lanes_.repeats - 1) * walk_.repeat + uint64_t(count() - 1) * walk_.block + 1;
        return {walk_.name, walk_.data, blocks * block_bytes};
    }

  private:
    const Walk& walk_;
    const Lanes& lanes_;
    uint32_t per_block_;
};

bool same_walk(const Walk& dst, const Walk& src, const Lanes& lanes) {
    if (dst.data != src.data || dst.bits != src.bits || dst.block != src.block) return false;
    if (lanes.repeats == 1) return true;
    // Repeats that lie one after the other.
    return dst.repeat == src.repeat && dst.repeat >= 7 * dst.block + 1;
}

[[noreturn]] void fail_rule(const char* api, const char* dst, const char* src, const char* rule,
                            const Where& where) {
    fail(current(), where,
         format("%s: %s and %s overlap, and %s. Give %s a tensor of its own", api, dst, src, rule, dst));
}

}  // namespace

void fail_overlap(const char* api, const Span& dst, const Span& src, const Where& where) {
    const bool in_place = dst.data == src.data;
    fail(current(), where,
         format(
             "%s: %s %s %s, which the API does not support. Give %s a tensor of its own%s", api, dst.name,
             in_place ? "is" : "overlaps", src.name, dst.name,
             in_place ? ", or set ASCEND_GRAPH_KERNEL_IN_PLACE=1 for a kernel that cannot be changed" : ""));
}

void fail_order(const char* api, const char* dst, const char* src, const Where& where) {
    fail_rule(api, dst, src, "a repeat reads what an earlier one wrote", where);
}

bool allows_in_place(const char* api, const Span& dst, const Span& src) {
    const char* given = std::getenv("ASCEND_GRAPH_KERNEL_IN_PLACE");
    if (given == nullptr || std::strcmp(given, "1") != 0) return false;
    warn_once(format("kernel %s: %s: %s is %s, which the API does not support: a device's values may differ",
                     current().kernel, api, dst.name, src.name));
    return true;
}

void require_order(const char* api, const Walk& dst, const Walk& src, const Lanes& lanes, bool accumulates,
                   const Where& where) {
    if (lanes.repeats == 0 || same_walk(dst, src, lanes)) return;
    const Blocks writes(dst, lanes), reads(src, lanes);
    const Span written = writes.extent();
    if (!written.meets(reads.extent())) return;
    Written earlier(dst.data, written.bytes);
    for (uint32_t repeat = 0; repeat < lanes.repeats; ++repeat) {
        for (uint32_t block = 0; block < reads.count(); ++block) {
            if (!reads.active(repeat, block)) continue;
            const uint8_t* from = reads.at(repeat, block);
            if (!accumulates && earlier.has(from)) fail_order(api, dst.name, src.name, where);
            if (dst.bits != src.bits) continue;
            for (uint32_t other = 0; other < writes.count(); ++other) {
                if (other != block && writes.active(repeat, other) && writes.at(repeat, other) == from)
                    fail_rule(api, dst.name, src.name, "within a repeat they are the same memory or apart",
                              where);
            }
        }
        for (uint32_t block = 0; block < writes.count(); ++block)
            if (writes.active(repeat, block)) earlier.add(writes.at(repeat, block));
    }
}

void require_order(const char* api, const Run& dst, const Walk& src, const Lanes& lanes, const Where& where) {
    const Blocks reads(src, lanes);
    for (uint32_t repeat = 1; repeat < lanes.repeats; ++repeat) {
        const Span written{dst.name, dst.data, repeat * dst.bytes};
        for (uint32_t block = 0; block < reads.count(); ++block) {
            if (reads.active(repeat, block) &&
                written.meets({src.name, reads.at(repeat, block), block_bytes}))
                fail_order(api, dst.name, src.name, where);
        }
    }
}

void require_order(const char* api, const Run& dst, const Run& src, uint32_t repeats, const Where& where) {
    for (uint64_t repeat = 1; repeat < repeats; ++repeat) {
        const Span read{src.name, static_cast<const uint8_t*>(src.data) + repeat * src.bytes, src.bytes};
        if (read.meets({dst.name, dst.data, repeat * dst.bytes})) fail_order(api, dst.name, src.name, where);
    }
}

}  // namespace ascendc_host
