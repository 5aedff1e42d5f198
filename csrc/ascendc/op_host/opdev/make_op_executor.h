#pragma once
#include "ascend_graph/op_api/executor.h"
// As in CANN's, which sources rely on.
using namespace std;
