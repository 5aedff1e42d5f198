// Tiling of communication: what a kernel's Hccl does, by group, operation and algorithm.
#ifndef ASCENDC_HOST_HCCL_TILING_H
#define ASCENDC_HOST_HCCL_TILING_H

#include <algorithm>
#include <cstring>
#include <string>

#include "../../kernel_tiling/kernel_tiling.h"
#include "ascendc_host/adv_api/hccl/hccl_tiling.h"

namespace AscendC {

// Setters and GetTiling return 0, or another number for what cannot be set.
class Mc2CcTilingConfig {
  public:
    explicit Mc2CcTilingConfig(const std::string& groupName, uint32_t opType, const std::string& algConfig,
                               uint32_t reduceType = 0, uint8_t dstDataType = 0, uint8_t srcDataType = 0,
                               uint8_t commEngine = 0) {
        const uint32_t failures[] = {SetGroupName(groupName), SetOpType(opType), SetAlgConfig(algConfig),
                                     SetReduceType(reduceType, dstDataType, srcDataType),
                                     SetCommEngine(commEngine)};
        failed_ =
            std::any_of(std::begin(failures), std::end(failures), [](uint32_t code) { return code != 0; });
    }
    virtual ~Mc2CcTilingConfig() = default;

    uint32_t GetTiling(::Mc2InitTiling& tiling) { return write(start_, tiling); }
    uint32_t GetTiling(::Mc2CcTiling& tiling) { return write(task_, tiling); }

    uint32_t SetOpType(uint32_t opType) {
        // AllReduce, AllGather, ReduceScatter, AlltoAllV, AlltoAll, BatchWrite, AlltoAllvWrite
        constexpr uint32_t known[] = {2, 6, 7, 8, 10, 18, 20};
        if (std::find(std::begin(known), std::end(known), opType) == std::end(known)) return kFailed;
        task_.operation = opType;
        return 0;
    }
    uint32_t SetGroupName(const std::string& groupName) { return copy(groupName, task_.group); }
    uint32_t SetAlgConfig(const std::string& algConfig) { return copy(algConfig, task_.algorithm); }
    uint32_t SetReduceType(uint32_t reduceType, uint8_t dstDataType = 0, uint8_t srcDataType = 0) {
        task_.reduction = reduceType;
        task_.target_dtype = dstDataType;
        task_.source_dtype = srcDataType;
        return 0;
    }
    uint32_t SetStepSize(uint8_t stepSize) { return task_.step = stepSize, 0; }
    uint32_t SetSkipLocalRankCopy(uint8_t skipLocalRankCopy) {
        if (skipLocalRankCopy > 1) return kFailed;
        return task_.skips_own_part = skipLocalRankCopy, 0;
    }
    uint32_t SetSkipBufferWindowCopy(uint8_t skipBufferWindowCopy) {
        if (skipBufferWindowCopy > 2) return kFailed;
        return task_.source_place = skipBufferWindowCopy, 0;
    }
    uint32_t SetDebugMode(uint8_t debugMode) {
        if (debugMode > 4) return kFailed;
        return start_.debug_mode = debugMode, 0;
    }
    uint32_t SetQueueNum(uint16_t num) { return start_.queues = num, 0; }
    uint32_t SetCommBlockNum(uint16_t num) { return start_.blocks = num, 0; }
    uint32_t SetCommEngine(uint8_t commEngine) { return task_.engine = commEngine, 0; }

  private:
    static constexpr uint32_t kFailed = 1;

    static uint32_t copy(const std::string& text, char (&to)[ascendc_host::CommunicationOfTask::kText]) {
        if (text.size() >= sizeof to) return kFailed;
        std::memset(to, 0, sizeof to);
        std::memcpy(to, text.data(), text.size());
        return 0;
    }
    template <typename Content, typename Tiling>
    uint32_t write(const Content& content, Tiling& tiling) const {
        static_assert(sizeof(Content) <= sizeof tiling.reserved);
        if (failed_) return kFailed;
        std::memset(static_cast<void*>(&tiling), 0, sizeof tiling);
        std::memcpy(static_cast<void*>(&tiling), &content, sizeof content);
        ascendc_host::tiling_data_written(&tiling, sizeof tiling);
        return 0;
    }

    ascendc_host::CommunicationStart start_{ascendc_host::CommunicationStart::kMark, 0, 0, 0, 0};
    ascendc_host::CommunicationOfTask task_{
        ascendc_host::CommunicationOfTask::kMark, 0, 0, 0, 0, 0, 0, "", "", 0, 0};
    bool failed_ = false;
};

}  // namespace AscendC

#endif  // ASCENDC_HOST_HCCL_TILING_H
