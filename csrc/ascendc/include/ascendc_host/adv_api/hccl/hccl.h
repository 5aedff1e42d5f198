// Communication of kernels with those of other ranks: Hccl, which gives tasks to what serves a communicator
// on a device, the AI CPU or a unit of the network, and the windows that the ranks have in common.
//
// Here the launch serves its communicators (runtime/service.h): a task's turn begins when the kernel has
// committed it and all before it, as a collective of the communicator that the operator's attr names.
#ifndef ASCENDC_HOST_ADV_API_HCCL_HCCL_H
#define ASCENDC_HOST_ADV_API_HCCL_HCCL_H

#include "ascendc_host/basic_api/sync.h"

namespace ascendc_host {

// What a kernel asks of a communicator. Counts, strides and offsets are of elements, but those of
// AlltoAllvWrite, of bytes.
struct CommunicationTask {
    const char* name;
    uint32_t operation;  // HcclCMDType
    const void* send;
    void* receive;
    uint64_t count;
    int32_t dtype;           // HcclDataType
    int32_t reduction = -1;  // HcclReduceOp
    uint64_t stride = 0;
    uint32_t repeat = 1;
    // By rank.
    const uint64_t* send_counts = nullptr;
    const uint64_t* send_offsets = nullptr;
    const uint64_t* receive_counts = nullptr;
    const uint64_t* receive_offsets = nullptr;
    uint64_t window_offset = 0;
};

// A block's part in the communication of a launch, as its Hccl object has it. Every block counts the tasks,
// and one of them gives them to the service.
class Channel {
  public:
    // Which tiling says how tasks are done: that of old, without; at addresses of global memory; or at
    // offsets from a copy.
    enum class Tiling : uint8_t { none, global, copied };
    enum class Worker : uint8_t { either, vector, cube };

    void open(void* context, const void* tiling, Tiling kind, Worker worker, int64_t block, bool is_ccu,
              const Where& where);
    int set_tiling(Tiling kind, const void* address, uint64_t offset, const Where& where);
    int8_t prepare(const CommunicationTask& task, bool commit, const Where& where);
    int8_t batch_write(const void* items, uint32_t count, uint32_t queue, const Where& where);
    void commit(int8_t handle, const Where& where);
    int wait(int8_t handle, const Where& where);
    int query(int8_t handle, const Where& where);
    int iterate(int8_t handle, uint16_t* slices, uint16_t count, bool waits, const Where& where);
    void wait_for_group(int8_t group, int8_t handle, const Where& where);
    void finalize(bool waits, const Where& where);
    void barrier(uint32_t queue, const Where& where) const;
    uint8_t* window(uint32_t rank, bool out, const Where& where) const;
    uint32_t rank(const Where& where) const;
    uint32_t ranks(const Where& where) const;
    uint32_t queues(const Where& where) const;

  private:
    static constexpr int8_t most = 63;  // tasks of a communicator in a launch
    static constexpr uint32_t operations = 21;
    struct Task {
        const char* name;
        uint32_t turns, step;
        int index;  // among those that the service has; -1: it is done
        uint32_t waited, slice;
    };

    void require(const char* api, const Where& where) const;
    Task& task_of(const char* api, int8_t handle, const Where& where);

    void* context_ = nullptr;  // of the communicator
    const uint8_t* tiling_ = nullptr;
    const void* tilings_[operations] = {};  // by operation
    Task tasks_[most] = {};
    int8_t count_ = 0, served_ = 0, others_ = 0;
    uint32_t session_ = 0, queues_ = 0;
    Tiling kind_ = Tiling::none;
    bool works_ = false, finalized_ = false, silent_ = false;
};

// A communicator's of the running kernel.
inline void*& context_of_launch(size_t index) { return current().contexts[index]; }

}  // namespace ascendc_host

namespace AscendC {

constexpr int32_t HCCL_FAILED = -1;
constexpr int32_t HCCL_SUCCESS = 0;
constexpr uint32_t HCCL_GROUP_ID_0 = 0;
constexpr uint32_t HCCL_GROUP_ID_1 = 1;
constexpr uint32_t HCCL_MAX_RANK_NUM = 32;
using HcclHandle = int8_t;
constexpr HcclHandle INVALID_HANDLE_ID = -1;

enum class HcclCMDType {
    HCCL_CMD_INVALID = 0,
    HCCL_CMD_BROADCAST = 1,
    HCCL_CMD_ALLREDUCE,
    HCCL_CMD_REDUCE,
    HCCL_CMD_SEND,
    HCCL_CMD_RECEIVE,
    HCCL_CMD_ALLGATHER,
    HCCL_CMD_REDUCE_SCATTER,
    HCCL_CMD_ALLTOALLV,
    HCCL_CMD_ALLTOALLVC,
    HCCL_CMD_ALLTOALL,
    HCCL_CMD_GATHER,
    HCCL_CMD_SCATTER,
    HCCL_CMD_BATCH_SEND_RECV,
    HCCL_CMD_BATCH_PUT,
    HCCL_CMD_BATCH_GET,
    HCCL_CMD_ALLGATHER_V,
    HCCL_CMD_REDUCE_SCATTER_V,
    HCCL_CMD_BATCH_WRITE,
    HCCL_CMD_HALF_ALLTOALLV = 20,
    HCCL_CMD_ALL
};

enum HcclReduceOp {
    HCCL_REDUCE_SUM = 0,
    HCCL_REDUCE_PROD = 1,
    HCCL_REDUCE_MAX = 2,
    HCCL_REDUCE_MIN = 3,
    HCCL_REDUCE_RESERVED
};

enum class MC2_BUFFER_LOCATION {
    MC2_BUFFER_TYPE_DEFAULT = 0,
    MC2_BUFFER_TYPE_OUTPUT,
    MC2_BUFFER_TYPE_WINDOW_IN,
    MC2_BUFFER_TYPE_WINDOW_OUT,
    MC2_BUFFER_TYPE_WORKSPACE,
    MC2_BUFFER_TYPE_INPUT,
    MC2_BUFFER_TYPE_COMMOUT,
    MC2_BUFFER_TYPE_END
};

enum HcclServerType { HCCL_SERVER_TYPE_AICPU = 0, HCCL_SERVER_TYPE_CCU = 5, HCCL_SERVER_TYPE_END };

enum class CoreType : uint8_t { DEFAULT, ON_AIV, ON_AIC };

struct HcclServerConfig {
    CoreType type;
    int64_t blockId;
};
static constexpr HcclServerConfig DEFAULT_CFG = {CoreType::DEFAULT, 0};

enum HcclDataType {
    HCCL_DATA_TYPE_INT8 = 0,
    HCCL_DATA_TYPE_INT16 = 1,
    HCCL_DATA_TYPE_INT32 = 2,
    HCCL_DATA_TYPE_FP16 = 3,
    HCCL_DATA_TYPE_FP32 = 4,
    HCCL_DATA_TYPE_INT64 = 5,
    HCCL_DATA_TYPE_UINT64 = 6,
    HCCL_DATA_TYPE_UINT8 = 7,
    HCCL_DATA_TYPE_UINT16 = 8,
    HCCL_DATA_TYPE_UINT32 = 9,
    HCCL_DATA_TYPE_FP64 = 10,
    HCCL_DATA_TYPE_BFP16 = 11,
    HCCL_DATA_TYPE_INT128 = 12,
    HCCL_DATA_TYPE_HIF8 = 14,
    HCCL_DATA_TYPE_FP8E4M3 = 15,
    HCCL_DATA_TYPE_FP8E5M2 = 16,
    HCCL_DATA_TYPE_FP8E8M0 = 17,
    HCCL_DATA_TYPE_MXFP8 = 18,
    HCCL_DATA_TYPE_RESERVED = 255
};

enum class ScopeType : uint8_t { ALL, QUEUE, BLOCK, INVALID_TYPE };

// What lies at a context, as kernels of operator libraries name it: for servers that are connected otherwise
// than by a bus, which the host has not, and on Atlas A3.
struct MemDetails {
    uint64_t size;
    uint64_t addr;
    uint32_t key;
};
struct IbVerbsData {
    MemDetails remoteInput;
    MemDetails remoteOutput;
    MemDetails localInput;
    MemDetails localOutput;
    uint8_t res[24];
};
namespace HcclContextDef {
struct HcclRankRelationResV2 {
    uint32_t remoteUsrRankId = 0;
    uint32_t remoteWorldRank = 0;
    uint64_t windowsIn = 0;
    uint64_t windowsOut = 0;
    uint64_t windowsExp = 0;
};
struct RemoteResPtr {
    HcclRankRelationResV2* nextHostPtr;
    HcclRankRelationResV2* nextDevicePtr;
};
struct HcclOpResParam {
    uint64_t workSpace;
    uint64_t workSpaceSize;
    uint32_t rankId;
    uint32_t rankNum;
    uint64_t winSize;
    uint64_t localWindowsIn;
    uint64_t localWindowsOut;
    char hcomId[128];
    uint64_t winExpSize;
    uint64_t localWindowsExp;
    uint32_t rWinStart;
};
}  // namespace HcclContextDef

// The context of a communicator: of the first or second attr that the definition's HcclGroup names; null
// where that is empty.
template <uint32_t index = 0>
__gm__ uint8_t* GetHcclContext() {
    static_assert(index < 2, "GetHcclContext: an operator has at most 2 communicators; valid: 0, 1");
    return static_cast<__gm__ uint8_t*>(ascendc_host::context_of_launch(index));
}
template <uint32_t index = 0>
void SetHcclContext(__gm__ uint8_t* context) {
    static_assert(index < 2, "SetHcclContext: an operator has at most 2 communicators; valid: 0, 1");
    ascendc_host::context_of_launch(index) = context;
}

template <HcclServerType serverType = HcclServerType::HCCL_SERVER_TYPE_AICPU,
          const auto& config = DEFAULT_CFG>
class Hccl {
  public:
    void InitV2(GM_ADDR context, const void* initTiling, Where where = Where()) {
        open(context, initTiling, ascendc_host::Channel::Tiling::copied, where);
    }
    void Init(GM_ADDR context, __gm__ void* initTiling = nullptr, Where where = Where()) {
        using Tiling = ascendc_host::Channel::Tiling;
        open(context, initTiling, initTiling == nullptr ? Tiling::none : Tiling::global, where);
    }
    int32_t SetCcTilingV2(uint64_t offset, Where where = Where()) {
        return channel_.set_tiling(ascendc_host::Channel::Tiling::copied, nullptr, offset, where);
    }
    int32_t SetCcTiling(__gm__ void* ccOpTilingData, Where where = Where()) {
        return channel_.set_tiling(ascendc_host::Channel::Tiling::global, ccOpTilingData, 0, where);
    }

    template <bool commit = false>
    HcclHandle AllReduce(GM_ADDR sendBuf, GM_ADDR recvBuf, uint64_t count, HcclDataType dataType,
                         HcclReduceOp op, uint8_t repeat = 1, Where where = Where()) {
        return channel_.prepare({"AllReduce", number(HcclCMDType::HCCL_CMD_ALLREDUCE), sendBuf, recvBuf,
                                 count, dataType, op, 0, repeat},
                                commit, where);
    }
    template <bool commit = false>
    HcclHandle AllGather(GM_ADDR sendBuf, GM_ADDR recvBuf, uint64_t sendCount, HcclDataType dataType,
                         uint64_t strideCount, uint8_t repeat = 1, Where where = Where()) {
        return channel_.prepare({"AllGather", number(HcclCMDType::HCCL_CMD_ALLGATHER), sendBuf, recvBuf,
                                 sendCount, dataType, -1, strideCount, repeat},
                                commit, where);
    }
    template <bool commit = false>
    HcclHandle ReduceScatter(GM_ADDR sendBuf, GM_ADDR recvBuf, uint64_t recvCount, HcclDataType dataType,
                             HcclReduceOp op, uint64_t strideCount, uint8_t repeat = 1,
                             Where where = Where()) {
        return channel_.prepare({"ReduceScatter", number(HcclCMDType::HCCL_CMD_REDUCE_SCATTER), sendBuf,
                                 recvBuf, recvCount, dataType, op, strideCount, repeat},
                                commit, where);
    }
    template <bool commit = false>
    HcclHandle AlltoAll(GM_ADDR sendBuf, GM_ADDR recvBuf, uint64_t dataCount, HcclDataType dataType,
                        uint64_t strideCount = 0, uint8_t repeat = 1, Where where = Where()) {
        return channel_.prepare({"AlltoAll", number(HcclCMDType::HCCL_CMD_ALLTOALL), sendBuf, recvBuf,
                                 dataCount, dataType, -1, strideCount, repeat},
                                commit, where);
    }
    template <bool commit = false>
    HcclHandle AlltoAllV(GM_ADDR sendBuf, void* sendCounts, void* sdispls, HcclDataType sendType,
                         GM_ADDR recvBuf, void* recvCounts, void* rdispls, HcclDataType recvType,
                         uint8_t repeat = 1, Where where = Where()) {
        if (sendType != recvType) {
            ascendc_host::fail(
                ascendc_host::enter(where), where,
                ascendc_host::format("AlltoAllV: sendType %d and recvType %d; they must be the same",
                                     int(sendType), int(recvType)));
        }
        return channel_.prepare(
            {"AlltoAllV", number(HcclCMDType::HCCL_CMD_ALLTOALLV), sendBuf, recvBuf, 0, sendType, -1, 0,
             repeat, numbers(sendCounts), numbers(sdispls), numbers(recvCounts), numbers(rdispls)},
            commit, where);
    }
    template <bool commit = false>
    HcclHandle AlltoAllvWrite(GM_ADDR usrIn, GM_ADDR sendOffsets, GM_ADDR sendSizes, uint64_t remoteWinOffset,
                              uint64_t localDataSize, Where where = Where()) {
        return channel_.prepare({"AlltoAllvWrite", number(HcclCMDType::HCCL_CMD_HALF_ALLTOALLV), usrIn,
                                 nullptr, localDataSize, HCCL_DATA_TYPE_INT8, -1, 0, 1, numbers(sendSizes),
                                 numbers(sendOffsets), nullptr, nullptr, remoteWinOffset},
                                commit, where);
    }
    // Committed as it is, whatever the argument says.
    template <bool commit = false>
    HcclHandle BatchWrite(GM_ADDR batchWriteInfo, uint32_t itemNum, uint16_t queueID = 0,
                          Where where = Where()) {
        return channel_.batch_write(batchWriteInfo, itemNum, queueID, where);
    }

    void Commit(HcclHandle handleId, Where where = Where()) { channel_.commit(handleId, where); }
    int32_t Wait(HcclHandle handleId, Where where = Where()) { return channel_.wait(handleId, where); }
    int32_t Query(HcclHandle handleId, Where where = Where()) { return channel_.query(handleId, where); }
    template <bool sync = true>
    int32_t Iterate(HcclHandle handleId, uint16_t* seqSlices, uint16_t seqSliceLen, Where where = Where()) {
        return channel_.iterate(handleId, seqSlices, seqSliceLen, sync, where);
    }
    void InterHcclGroupSync(int8_t srcGroupID, HcclHandle srcHandleID, Where where = Where()) {
        channel_.wait_for_group(srcGroupID, srcHandleID, where);
    }
    template <ScopeType type = ScopeType::ALL>
    void QueueBarrier(uint16_t queueID, Where where = Where()) {
        static_assert(type == ScopeType::ALL, "QueueBarrier: only ScopeType::ALL is supported");
        channel_.barrier(queueID, where);
    }
    template <bool sync = true>
    void Finalize(Where where = Where()) {
        channel_.finalize(sync, where);
    }

    GM_ADDR GetWindowsInAddr(uint32_t rankId, Where where = Where()) {
        return channel_.window(rankId, false, where);
    }
    GM_ADDR GetWindowsOutAddr(uint32_t rankId, Where where = Where()) {
        return channel_.window(rankId, true, where);
    }
    uint32_t GetRankId(Where where = Where()) { return channel_.rank(where); }
    uint32_t GetRankDim(Where where = Where()) { return channel_.ranks(where); }
    uint16_t GetQueueNum(Where where = Where()) { return static_cast<uint16_t>(channel_.queues(where)); }

  private:
    static constexpr uint32_t number(HcclCMDType operation) { return static_cast<uint32_t>(operation); }
    static const uint64_t* numbers(const void* array) { return static_cast<const uint64_t*>(array); }
    void open(GM_ADDR context, const void* tiling, ascendc_host::Channel::Tiling kind, const Where& where) {
        using Worker = ascendc_host::Channel::Worker;
        const Worker worker = config.type == CoreType::ON_AIV   ? Worker::vector
                              : config.type == CoreType::ON_AIC ? Worker::cube
                                                                : Worker::either;
        channel_.open(context, tiling, kind, worker, config.blockId, serverType == HCCL_SERVER_TYPE_CCU,
                      where);
    }

    ascendc_host::Channel channel_;
};

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_HCCL_HCCL_H
