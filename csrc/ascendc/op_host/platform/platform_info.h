#include "platform/platform_info_def.h"
