// What the functions of the table (ascend_graph/host/runtime/aclnn_functions/functions.txt) are made of:
// their C++ is generated from it when this library is built.
#pragma once

#include "ascend_graph/aclnn_adapter.h"
#include "ascend_graph/host_kernel.h"

#define ACLNN extern "C" __attribute__((visibility("default"))) aclnnStatus

namespace {

// Checks the arguments and keeps copies of them in a new executor.
template <typename... T>
aclnnStatus prepare(const char* function, uint64_t* workspace_size, aclOpExecutor** executor,
                    const T&... arguments) {
    using namespace ascend_graph::host;
    const aclnnStatus error = get_workspace_size(function, nullptr, nullptr, workspace_size, executor,
                                                 Argument<T>{nullptr, arguments}...);
    return error != 0 ? error : ascendgraphPrepareFunction(executor);
}

}  // namespace
