// Libraries of operator packages that CANN built, and the functions that they register.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "acl/abi.h"
#include "exe_graph/layout.h"

// libunified_dlog.so: the errors that this thread logged since the last call, as the end of a sentence.
ACL_EXPORT const char* ascendgraphTakeLoggedErrors();

namespace ascend_graph::host::layout {

// The table of a library by its GetRegisteredOpNum and GetOpImplFunctionsV2; null, with an error, where it
// has another layout.
const Functions* read_table(size_t (*count)(), int32_t (*fill)(void*, size_t), size_t* entries);

// The functions that a library, which is loaded once, registers for an operator; null, with an error, where
// it does not load or has none.
const Functions* registered_functions(const char* library, const char* op_type);

// What is said of a function of an author that failed.
inline std::string failure_text(const std::string& function, uint32_t status) {
    const std::string logged = ascendgraphTakeLoggedErrors();
    return function + " returned " +
           (status == 0xFFFFFFFF ? "GRAPH_FAILED" : "the status " + std::to_string(status)) +
           (logged.empty() ? "; it logged no reason: add OP_LOGE to it" : logged);
}

}  // namespace ascend_graph::host::layout
