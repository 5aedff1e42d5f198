#include "acl/guard/divisions.h"

#include <signal.h>
#include <ucontext.h>

#include <cstring>
#include <optional>

namespace ascend_graph::host::guard {

#if defined(__x86_64__)
namespace {

// The registers of a signal's context in the order of the processor's numbers.
constexpr int kRegisters[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                              REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

template <typename T>
T load(const uint8_t* place) {
    T value;
    std::memcpy(&value, place, sizeof(T));
    return value;
}

// A division of 8 to 64 bits: "Instruction Format" in Intel's manual, volume 2, chapter 2.
struct Division {
    unsigned bits;
    uint64_t divisor;
    const uint8_t* next;
};

std::optional<Division> decode(const greg_t* registers) {
    const auto* at = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
    const auto value = [&](unsigned number) { return static_cast<uint64_t>(registers[kRegisters[number]]); };
    bool narrow = false;
    for (; *at == 0x66 || *at == 0x2e || *at == 0x36 || *at == 0x3e || *at == 0x26; ++at)
        narrow = narrow || *at == 0x66;
    unsigned rex = 0;
    if ((*at & 0xf0) == 0x40) rex = *at++;
    const uint8_t code = *at++;
    if (code != 0xf6 && code != 0xf7) return std::nullopt;
    const unsigned bits = code == 0xf6 ? 8 : (rex & 8) != 0 ? 64 : narrow ? 16 : 32;
    const uint8_t modrm = *at++;
    const unsigned operation = modrm >> 3 & 7, mode = modrm >> 6, low = modrm & 7;
    if (operation != 6 && operation != 7) return std::nullopt;
    const uint64_t mask = ~uint64_t{0} >> (64 - bits);
    // Without REX, numbers 4 to 7 of bytes are the second ones of the first four registers.
    if (mode == 3 && bits == 8 && rex == 0 && low > 3) return Division{bits, value(low - 4) >> 8 & mask, at};
    if (mode == 3) return Division{bits, value(low | (rex & 1) << 3) & mask, at};
    uint64_t address = 0;
    bool relative = false, wide = mode == 2;
    if (low == 4) {
        const uint8_t sib = *at++;
        const unsigned index = (sib >> 3 & 7) | (rex & 2) << 2, base = sib & 7;
        if (index != 4) address = value(index) << (sib >> 6);
        if (base == 5 && mode == 0) {
            wide = true;
        } else {
            address += value(base | (rex & 1) << 3);
        }
    } else if (low == 5 && mode == 0) {
        relative = wide = true;
    } else {
        address = value(low | (rex & 1) << 3);
    }
    if (mode == 1) {
        address += static_cast<int64_t>(load<int8_t>(at));
        at += 1;
    } else if (wide) {
        address += static_cast<int64_t>(load<int32_t>(at));
        at += 4;
    }
    if (relative) address += reinterpret_cast<uint64_t>(at);
    uint64_t divisor = 0;
    std::memcpy(&divisor, reinterpret_cast<const void*>(address), bits / 8);
    return Division{bits, divisor, at};
}

// Writes the low bits of a register as the processor does: 32 of them clear the others.
void write(greg_t& target, unsigned bits, uint64_t value) {
    const uint64_t kept = bits == 16 ? static_cast<uint64_t>(target) & ~uint64_t{0xffff} : 0;
    target = static_cast<greg_t>(kept | value);
}

void write_results(greg_t* registers, unsigned bits, uint64_t quotient, uint64_t remainder) {
    if (bits == 8) return write(registers[REG_RAX], 16, remainder << 8 | quotient);  // AH and AL
    write(registers[REG_RAX], bits, quotient);
    write(registers[REG_RDX], bits, remainder);
}

}  // namespace

Passed pass_division(void* info, void* context, uint64_t of_zero, bool overflows) {
    auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const bool divides = static_cast<siginfo_t*>(info)->si_code == FPE_INTDIV;
    const auto division = divides ? decode(registers) : std::nullopt;
    if (!division.has_value()) return Passed::no;
    const bool zero = division->divisor == 0;
    if (!zero && !overflows) return Passed::no;
    // Else the quotient does not fit, and is the dividend.
    const uint64_t mask = ~uint64_t{0} >> (64 - division->bits);
    write_results(registers, division->bits,
                  (zero ? of_zero : static_cast<uint64_t>(registers[REG_RAX])) & mask,
                  (zero ? of_zero : 0) & mask);
    registers[REG_RIP] = reinterpret_cast<greg_t>(division->next);
    return zero ? Passed::by_zero : Passed::overflow;
}

#else

Passed pass_division(void*, void*, uint64_t, bool) { return Passed::no; }

#endif

}  // namespace ascend_graph::host::guard
