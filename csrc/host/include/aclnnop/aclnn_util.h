#include "../aclnn_util.h"
