#pragma once
#include "ascend_graph/op_api/objects.h"
