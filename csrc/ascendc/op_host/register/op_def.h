#include "register/op_def_registry.h"
