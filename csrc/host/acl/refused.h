// Functions that are known and that the host runtime does not have: each fails with its name and says what to
// write instead. A caller is never told that something happened which did not.
#pragma once

#include <string>
#include <type_traits>

#include "acl/abi.h"
#include "ascend_graph/host_runtime.h"

namespace ascend_graph::host {

// Results that say there is none: of functions that return an address, and a type or format, undefined.
using Pointer = void*;
enum Unknown : int { kUnknown = -1 };

template <typename Result>
Result refused(const char* function, const char* why) {
    ascendgraphFail(ACL_ERROR_API_NOT_SUPPORT,
                    (std::string(function) + " is not implemented by the host runtime; " + why).c_str());
    if constexpr (std::is_same_v<Result, aclError>) return ACL_ERROR_API_NOT_SUPPORT;
    if constexpr (std::is_same_v<Result, Unknown>) return kUnknown;
    return Result();
}

}  // namespace ascend_graph::host

// A macro because a symbol's name and its text must come from one word. Arguments are not read, which the C
// calling convention permits.
#define REFUSED(why, result, name) \
    ACL_EXPORT result name() { return ascend_graph::host::refused<result>(#name, why); }
