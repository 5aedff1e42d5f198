#pragma once
#include "ascend_graph/op_api/kernels.h"
