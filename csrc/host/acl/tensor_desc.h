// The description of a tensor in ACL: what operators by their type and programs read of it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "acl/abi.h"

struct aclTensorDesc {
    aclDataType dtype;
    aclFormat format;
    std::vector<int64_t> dims;
    std::string name;
    // How memory holds it, where that is said.
    int32_t kept_format = 2;  // ND
    std::vector<int64_t> kept;
    // Kept and given back.
    std::vector<std::pair<int64_t, int64_t>> shape_range;
};
