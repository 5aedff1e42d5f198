#include "version/cann_version.h"
