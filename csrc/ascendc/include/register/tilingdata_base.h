#include "tilingdef.h"
