// Kernels that are launched by a handle, with arguments as bytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "acl/handles.h"
#include "acl/runtime.h"

extern "C" aclError aclrtGetSymbolSize(const void* symbol, size_t* size);

namespace ascend_graph::host {

struct Binary;

struct Function {
    // Each argument begins at a multiple of 8 bytes.
    using Launch = uint32_t (*)(uint32_t blocks, void* stream, const char* arguments);
    struct Parameter {
        size_t offset;
        size_t size;
    };
    std::string name;
    const void* symbol = nullptr;
    Launch launch = nullptr;
    std::vector<Parameter> parameters;
    size_t bytes = 0;          // of all arguments
    Binary* binary = nullptr;  // null where it is the program's own
};

// Code that a program loaded.
struct Binary {
    Binary() = default;
    ~Binary();
    Binary(const Binary&) = delete;
    Binary& operator=(const Binary&) = delete;

    void* library = nullptr;
    size_t size = 0;
    std::vector<std::shared_ptr<Function>> functions;
};

// By its handle, or by the kernel's own address; null where it is neither.
std::shared_ptr<Function> function_of(const void* handle);
// What holds the kernel's code; null where it is the program's own.
std::shared_ptr<Binary> binary_of(const Function& function);
aclError not_a_function(const char* function);

}  // namespace ascend_graph::host
