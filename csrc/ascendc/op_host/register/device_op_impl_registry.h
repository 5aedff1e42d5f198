#include "op_impl_registry.h"
