// The slice of HCCL's C ABI that the host runtime implements, as CANN documents it.
#pragma once

#include "acl/abi.h"
#include "hccl/hccl_types.h"

// How many of HCCL's options of communicators there are to be asked for (HcclCommConfigCapability): up to the
// time limit of collectives. Of them the size of the windows, the name and that limit have a meaning here.
inline constexpr uint32_t kConfigCapability = 9;
