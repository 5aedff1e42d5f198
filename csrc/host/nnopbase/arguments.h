// The arguments of a launch as libraries of packages that CANN built write them, in the layout of opbase's
// headers: what OP_INPUT, OP_OUTPUT and OP_ATTR of hand-written aclnn functions compile to there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "ascend_graph/op_api/kernels.h"

namespace op {

enum class OpArgType {
    kTensor,
    kTensorList,
    kScalar,
    kString,
    kBool,
    kInt,
    kUint,
    kFloat,
    kDouble,
    kDataType,
    kIntList,
    kUintList,
    kFloatList,
    kBoolList,
    kImplMode,
    kMemsetWorkspace
};

struct OpArgValue {
    OpArgValue(const char* text);
    OpArgValue(const std::string* text);
    OpArgValue(const std::string& text);

    union {
        uint64_t u;
        int64_t i;
        double d;
        float f;
        void* pointer;
    };
    void (*free)(void*) = nullptr;
};

struct OpArg {
    OpArgType type;
    OpArgValue value;
};
static_assert(sizeof(OpArg) == 24);

struct OpArgList {
    OpArg* args = nullptr;
    size_t count = 0;
    int type = 0;
};

// Followed by the arguments that the lists point to.
struct OpArgContext {
    enum List { kInputs, kOutputs, kAttrs, kWorkspaces, kOutputShapes, kOptions, kMode, kLists };
    std::array<OpArgList, kLists> lists;
    uint8_t reserved[32];
};
static_assert(sizeof(OpArgContext) == 200);

}  // namespace op
