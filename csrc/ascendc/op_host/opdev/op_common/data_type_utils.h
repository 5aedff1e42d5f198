#pragma once
#include "ascend_graph/op_api/dtypes.h"
namespace opcommon {
using op::CanCast;
using op::IsComplexType;
using op::IsFloatingType;
using op::IsIntegralType;
using op::PromoteType;
}  // namespace opcommon
