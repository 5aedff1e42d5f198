// The description of a GE operator: names and kinds of its inputs, outputs and attrs.
#pragma once

#include <utility>
#include <vector>

#include "ge/abi.h"

namespace ge {

class OperatorImpl {
  public:
    std::vector<std::pair<AscendString, AscendString>> inputs, outputs, attrs;
};

}  // namespace ge
