// Python, called from C++ of any kind.
#pragma once

#include <functional>

namespace ascend_graph::host {

// Calls Python from a thread of any kind; an exception becomes the recent error, and its `acl_code`, or else
// `code`, is returned.
// KeyboardInterrupt goes on as soon as the interpreter does: an error of the call would hide it.
int with_python(const std::function<void()>& body, int code = 500001 /* ACL_ERROR_FAILURE */);

}  // namespace ascend_graph::host
