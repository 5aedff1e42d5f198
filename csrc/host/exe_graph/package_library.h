// Libraries of operator packages that CANN built, and the functions that they register.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exe_graph/layout.h"

namespace ascend_graph::host::layout {

// The table of a library by its GetRegisteredOpNum and GetOpImplFunctionsV2; null, with an error, where it
// has another layout.
const Functions* read_table(size_t (*count)(), int32_t (*fill)(void*, size_t), size_t* entries);

// The functions that a library, which is loaded once, registers for an operator; null, with an error, where
// it does not load or has none.
const Functions* registered_functions(const char* library, const char* op_type);

}  // namespace ascend_graph::host::layout
