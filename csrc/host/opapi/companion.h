// Kernels of operators whose package CANN built: see ascend_graph/host/prebuilt/companion.py.
#pragma once

#include <string>

#include "ascend_graph/host_kernel.h"

namespace ascend_graph::host {

inline constexpr int kFindKernel = 561003;  // ACLNN_ERR_INNER_FIND_KERNEL_ERROR

// The kernel of an operator that is called from a library of a package: one that is registered, or else that
// of the package's companion, which is built if it is not there. Null where there is none; `why` then says
// what is wrong with the package, and is empty where the caller is not in a package.
KernelEntry kernel_of_package(const std::string& op_type, const void* caller, std::string& why);

}  // namespace ascend_graph::host
