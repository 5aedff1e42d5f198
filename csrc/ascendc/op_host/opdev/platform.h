#pragma once
#include "ascend_graph/op_api/platform.h"
