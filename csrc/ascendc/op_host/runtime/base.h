#include "runtime/kernel.h"
