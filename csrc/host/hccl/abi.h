// The slice of HCCL's C ABI that the host runtime implements, as CANN documents it.
#pragma once

#include "acl/abi.h"
#include "hccl/hccl_types.h"

// How many of HCCL's options of communicators there are to be asked for (HcclCommConfigCapability): up to the
// time limit of collectives. Of them the size of the windows, the name and that limit have a meaning here.
inline constexpr uint32_t kConfigCapability = 9;

// Of the types that collectives take; 0 for others.
constexpr uint32_t element_size(HcclDataType dtype) {
    switch (dtype) {
        case HCCL_DATA_TYPE_INT8:
        case HCCL_DATA_TYPE_UINT8:
        case HCCL_DATA_TYPE_FP8E4M3:
        case HCCL_DATA_TYPE_FP8E5M2:
            return 1;
        case HCCL_DATA_TYPE_INT16:
        case HCCL_DATA_TYPE_UINT16:
        case HCCL_DATA_TYPE_FP16:
        case HCCL_DATA_TYPE_BFP16:
            return 2;
        case HCCL_DATA_TYPE_INT32:
        case HCCL_DATA_TYPE_UINT32:
        case HCCL_DATA_TYPE_FP32:
            return 4;
        case HCCL_DATA_TYPE_INT64:
        case HCCL_DATA_TYPE_UINT64:
        case HCCL_DATA_TYPE_FP64:
            return 8;
        default:
            return 0;
    }
}
