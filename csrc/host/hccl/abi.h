// The slice of HCCL's C ABI that the host runtime implements, as CANN documents it.
#pragma once

#include <cstdint>

#include "acl/abi.h"

enum HcclResult : int {
    HCCL_SUCCESS = 0,
    HCCL_E_PARA = 1,
    HCCL_E_PTR = 2,
    HCCL_E_INTERNAL = 4,
    HCCL_E_NOT_SUPPORT = 5,
    HCCL_E_UNAVAIL = 7,
    HCCL_E_TIMEOUT = 9,
    HCCL_E_REMOTE = 21,
};

enum HcclReduceOp : int {
    HCCL_REDUCE_SUM = 0,
    HCCL_REDUCE_PROD = 1,
    HCCL_REDUCE_MAX = 2,
    HCCL_REDUCE_MIN = 3,
};

enum HcclDataType : int {
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
    HCCL_DATA_TYPE_FP8E4M3 = 15,
    HCCL_DATA_TYPE_FP8E5M2 = 16,
};

using HcclComm = void*;

struct HcclRootInfo {
    char internal[4108];
};

struct HcclSendRecvItem {
    int type;  // 0 sends, 1 receives
    void* buf;
    uint64_t count;
    HcclDataType dtype;
    uint32_t peer;
};

// How many of HCCL's options of communicators there are to be asked for (HcclCommConfigCapability): up to the
// time limit of collectives. Those of buffers, algorithms and links have no meaning here.
inline constexpr uint32_t kConfigCapability = 9;

// The options of a communicator, at their places in HcclCommConfig.
struct HcclCommConfig {
    char header[24];
    uint32_t buffer_size;
    uint32_t deterministic;
    char name[128];
    char udi[128];
    uint32_t expansion_mode;
    uint32_t traffic_class;
    uint32_t service_level;
    uint32_t world_rank;
    uint64_t job;
    uint8_t zero_copy;
    int32_t timeout;
};
