#pragma once
#include "ascend_graph/op_api/executor.h"
