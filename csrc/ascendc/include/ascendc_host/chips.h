// The chips that the host stands for: what tiling functions ask of the architecture that a package is built
// for, and what ACL says of the device that a process stands for.
#ifndef ASCENDC_HOST_CHIPS_H
#define ASCENDC_HOST_CHIPS_H

#include <cstdint>

namespace ascendc_host {

// Of one architecture; sizes in bytes.
struct Chip {
    const char* short_name;
    const char* name;
    const char* cores;
    uint32_t cube_cores, vector_cores;
    uint64_t ub, l0c, l2, hbm;
};

constexpr Chip chip_of(int architecture) {
    constexpr uint64_t kib = 1024, mib = 1024 * kib;
    if (architecture == 3510)
        return {"Ascend950", "Ascend950PR_9589", "AIC-C-310",     32, 64, 248 * kib,
                256 * kib,   128 * mib,          128 * 1024 * mib};
    return {"Ascend910B", "Ascend910B2", "AIC-C-220",    24, 48, 192 * kib,
            128 * kib,    192 * mib,     64 * 1024 * mib};
}

}  // namespace ascendc_host
#endif
