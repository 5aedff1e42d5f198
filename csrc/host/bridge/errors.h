// Exceptions of operators, which may be Python's.
#pragma once

#include <exception>
#include <string>

namespace ascend_graph::host {

// The message of an exception; an operator that is written in Python raises Python's.
std::string text_of(std::exception& error);

// Whether an exception says that a meta kernel does not exist, or would need values.
bool is_not_implemented(const std::exception& error);

}  // namespace ascend_graph::host
