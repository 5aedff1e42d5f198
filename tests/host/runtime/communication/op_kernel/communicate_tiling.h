// What the kernel of Communicate does, by the attr `way`.
#pragma once
#include "kernel_tiling/kernel_tiling.h"

enum Way : int32_t {
    ALL_REDUCE,      // in two turns
    ALL_REDUCE_MAX,  // committed as it is prepared
    ALL_GATHER,      // in three turns
    REDUCE_SCATTER,  // in two turns
    ALL_TO_ALL,
    ALL_TO_ALL_V,   // other counts for every rank
    STEPS,          // AlltoAllV, each slice doubled as it comes
    STEPS_BEFORE,   // AlltoAllV, each slice doubled before it goes
    COMPUTE_FIRST,  // on cube and vector cores: doubled, then reduced
    WINDOWS,        // to the next rank's window, with flags that blocks poll
    TWO_GROUPS,     // gathered in one, then reduced in the other
    BATCH_WRITE,    // into windows
    QUERY,          // asked until it is done
    TWO_OBJECTS,    // one after the other
    SILENT,         // only compute
    WRITE,          // AlltoAllvWrite, into windows
    GLOBAL_TILING,  // Init and SetCcTiling with addresses of global memory
    OLD,            // Init without a tiling
    NO_FINALIZE,
    NOT_COMMITTED,
    NO_TILING,
    UNKNOWN_HANDLE,
    OUTSIDE,
    PRODUCT,
    WAITS_TOO_OFTEN,
    WAITS_FIRST,
    BOTH_CORES,
    CCU,
    OTHER_GROUP,
    TILING_IN_GLOBAL_MEMORY,
    NO_MC2_TILING,
    ONE_FAILS,  // rank 1, while the others wait
    NO_INIT,
    OTHER_ALGORITHM,
    BEYOND_WINDOW,
};

struct CommunicateTiling {
    Mc2InitTiling init;
    Mc2CcTiling reduce, gather, scatter, exchange, exchange_v, steps, write, half, other;
    int32_t way;
    uint32_t size;  // of x
};
