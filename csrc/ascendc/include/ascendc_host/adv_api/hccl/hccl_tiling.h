// What tiling functions say of an operator's communication, as it lies in the structures Mc2InitTiling and
// Mc2CcTiling, for the class that writes them and for the runtime that reads them.
#ifndef ASCENDC_HOST_ADV_API_HCCL_HCCL_TILING_H
#define ASCENDC_HOST_ADV_API_HCCL_HCCL_TILING_H

#include <cstdint>

namespace ascendc_host {

struct CommunicationStart {
    static constexpr uint32_t kMark = 0x6d633269;

    uint32_t mark;
    uint8_t debug_mode, reserved;
    uint16_t queues, blocks;
};

struct CommunicationOfTask {
    static constexpr uint32_t kMark = 0x6d633263;
    static constexpr uint32_t kText = 128;

    uint32_t mark;
    uint8_t skips_own_part, source_place, step, engine;
    uint8_t source_dtype, target_dtype;
    char group[kText], algorithm[kText];
    uint32_t operation, reduction;
};

}  // namespace ascendc_host

#endif  // ASCENDC_HOST_ADV_API_HCCL_HCCL_TILING_H
