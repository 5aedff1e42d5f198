// Launches of kernels by their handle, and the lists of their arguments.
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "acl/kernels.h"
#include "ascend_graph/entering.h"

using namespace ascend_graph::host;

namespace {

constexpr uint32_t most_blocks = 65535;
constexpr size_t kSlot = 8;  // each argument begins at a multiple of it

aclError refuse(const char* function, const std::string& why) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, std::string(function) + ": " + why);
}

struct Arguments;

// One argument: its bytes, or, of a placeholder, the memory whose address it is.
struct Parameter {
    Arguments* of;
    size_t offset;
    size_t size;
    bool placeholder = false;
    std::vector<char> data{};
};

struct Arguments {
    std::shared_ptr<Function> function;
    std::vector<char> bytes{};
    std::deque<Parameter> parameters{};  // whose addresses are handles
    bool complete = false;

    Parameter& add(const void* value, size_t size) {
        parameters.push_back({this, bytes.size(), size});
        bytes.resize(bytes.size() + (size + kSlot - 1) / kSlot * kSlot);
        if (value != nullptr) std::memcpy(bytes.data() + parameters.back().offset, value, size);
        return parameters.back();
    }
    Parameter* find(const void* handle) {
        for (auto& one : parameters) {
            if (&one == handle) return &one;
        }
        return nullptr;
    }
};
auto& lists = *new Handles<Arguments>("aclrtKernelArgsInit");

// Arguments of a launch, with the memory that their placeholders point at: it is the kernel's until it ends.
struct Launched {
    std::vector<char> bytes;
    std::vector<std::vector<char>> held{};
};

aclError launch(const char* function, const void* handle, uint32_t blocks, aclrtStream stream,
                std::shared_ptr<Launched> arguments) {
    const auto kernel = function_of(handle);
    if (kernel == nullptr) return not_a_function(function);
    if (blocks == 0 || blocks > most_blocks)
        return refuse(function, "numBlocks is " + std::to_string(blocks) + "; it must be 1 to " +
                                    std::to_string(most_blocks));
    if (arguments->bytes.size() < kernel->bytes)
        return refuse(function, "the arguments have " + std::to_string(arguments->bytes.size()) +
                                    " bytes; kernel " + kernel->name + " takes " +
                                    std::to_string(kernel->parameters.size()) + " in " +
                                    std::to_string(kernel->bytes) + ", each at a multiple of 8");
    if (aclError error = check_stream(function, stream)) return error;
    const aclError error = static_cast<aclError>(kernel->launch(blocks, stream, arguments->bytes.data()));
    auto binary = binary_of(*kernel);
    if (error != ACL_SUCCESS || (arguments->held.empty() && binary == nullptr)) return error;
    // Behind the kernel: its code and what it pointed at end with this task, or with the model that captured
    // both.
    return stream_of(stream).mark({"kernel arguments", [arguments, binary] { return ACL_SUCCESS; }});
}

std::shared_ptr<Launched> copied(const void* bytes, size_t size) {
    auto arguments = std::make_shared<Launched>();
    arguments->bytes.assign(static_cast<const char*>(bytes), static_cast<const char*>(bytes) + size);
    return arguments;
}

struct PlaceHolder {  // aclrtPlaceHolderInfo
    uint32_t address_offset;
    uint32_t data_offset;
};

}  // namespace

ACL_EXPORT aclError aclrtKernelArgsInit(void* handle, void** list) {
    const auto function = function_of(handle);
    if (function == nullptr) return not_a_function("aclrtKernelArgsInit");
    if (list == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtKernelArgsInit", "argsHandle");
    *list = lists.add(std::make_shared<Arguments>(Arguments{function}));
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtKernelArgsAppend(void* handle, const void* value, size_t size, void** parameter) {
    constexpr const char* here = "aclrtKernelArgsAppend";
    const auto list = lists.find(handle);
    if (list == nullptr) return lists.not_live(here, "argsHandle");
    if (value == nullptr || parameter == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, here, "param or paramHandle");
    if (size == 0) return refuse(here, "paramSize is 0; expected at least 1");
    if (list->complete)
        return refuse(
            here,
            "the list is complete: aclrtKernelArgsFinalize was called; call aclrtKernelArgsInit for another");
    *parameter = &list->add(value, size);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtKernelArgsAppendPlaceHolder(void* handle, void** parameter) {
    constexpr const char* here = "aclrtKernelArgsAppendPlaceHolder";
    const auto list = lists.find(handle);
    if (list == nullptr) return lists.not_live(here, "argsHandle");
    if (parameter == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, here, "paramHandle");
    if (list->complete)
        return refuse(
            here,
            "the list is complete: aclrtKernelArgsFinalize was called; call aclrtKernelArgsInit for another");
    Parameter& added = list->add(nullptr, sizeof(void*));
    added.placeholder = true;
    *parameter = &added;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtKernelArgsGetPlaceHolderBuffer(void* handle, void* parameter, size_t size,
                                                        void** buffer) {
    constexpr const char* here = "aclrtKernelArgsGetPlaceHolderBuffer";
    const auto list = lists.find(handle);
    if (list == nullptr) return lists.not_live(here, "argsHandle");
    Parameter* const found = list->find(parameter);
    if (found == nullptr || !found->placeholder)
        return refuse(here,
                      "paramHandle is not a placeholder of the list; expected one of "
                      "aclrtKernelArgsAppendPlaceHolder");
    if (buffer == nullptr || size == 0)
        return fail_null(ACL_ERROR_INVALID_PARAM, here, "bufferAddr, or dataSize is 0: it");
    found->data.resize(size);
    *buffer = found->data.data();
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtKernelArgsParaUpdate(void* handle, void* parameter, const void* value, size_t size) {
    constexpr const char* here = "aclrtKernelArgsParaUpdate";
    const auto list = lists.find(handle);
    if (list == nullptr) return lists.not_live(here, "argsHandle");
    Parameter* const found = list->find(parameter);
    if (found == nullptr || found->placeholder)
        return refuse(here, "paramHandle is not a value of the list; expected one of aclrtKernelArgsAppend");
    if (value == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, here, "param");
    if (size != found->size)
        return refuse(here, "paramSize is " + std::to_string(size) + "; it must be that of the value, " +
                                std::to_string(found->size));
    std::memcpy(list->bytes.data() + found->offset, value, size);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtKernelArgsFinalize(void* handle) {
    const auto list = lists.find(handle);
    if (list == nullptr) return lists.not_live("aclrtKernelArgsFinalize", "argsHandle");
    list->complete = true;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtLaunchKernelWithConfig(void* function, uint32_t blocks, aclrtStream stream,
                                                const void*, void* handle, void*) {
    constexpr const char* here = "aclrtLaunchKernelWithConfig";
    const auto list = lists.find(handle);
    if (list == nullptr) return lists.not_live(here, "argsHandle");
    if (!list->complete) return refuse(here, "the list is not complete; call aclrtKernelArgsFinalize first");
    auto arguments = std::make_shared<Launched>();
    arguments->bytes = list->bytes;
    for (const auto& one : list->parameters) {
        if (!one.placeholder) continue;
        arguments->held.push_back(one.data);
        void* const address = arguments->held.back().data();
        std::memcpy(arguments->bytes.data() + one.offset, &address, sizeof(address));
    }
    return launch(here, function, blocks, stream, std::move(arguments));
}

// Arguments in memory of the device, which the kernel reads when it begins: here when it is launched.
static aclError launch_device(const char* here, void* function, uint32_t blocks, const void* bytes,
                              size_t size, aclrtStream stream) {
    if (bytes == nullptr && size != 0) return fail_null(ACL_ERROR_INVALID_PARAM, here, "argsData");
    const Entering entering(here);
    return launch(here, function, blocks, stream, copied(bytes, size));
}
ACL_EXPORT aclError aclrtLaunchKernel(void* function, uint32_t blocks, const void* bytes, size_t size,
                                      aclrtStream stream) {
    return launch_device("aclrtLaunchKernel", function, blocks, bytes, size, stream);
}
ACL_EXPORT aclError aclrtLaunchKernelV2(void* function, uint32_t blocks, const void* bytes, size_t size,
                                        const void*, aclrtStream stream) {
    return launch_device("aclrtLaunchKernelV2", function, blocks, bytes, size, stream);
}
ACL_EXPORT aclError aclrtLaunchKernelWithHostArgs(void* function, uint32_t blocks, aclrtStream stream,
                                                  const void*, const void* bytes, size_t size,
                                                  const PlaceHolder* placeholders, size_t count) {
    constexpr const char* here = "aclrtLaunchKernelWithHostArgs";
    if ((bytes == nullptr && size != 0) || (placeholders == nullptr && count != 0))
        return fail_null(ACL_ERROR_INVALID_PARAM, here, "hostArgs or placeHolderArray");
    auto arguments = copied(bytes, size);
    // What the placeholders point at lies behind the arguments, in the same memory.
    if (count != 0) arguments->held.push_back(arguments->bytes);
    for (size_t i = 0; i < count; ++i) {
        if (placeholders[i].address_offset + sizeof(void*) > size || placeholders[i].data_offset >= size)
            return refuse(here, "placeholder " + std::to_string(i) +
                                    " is out of range; expected less than argsSize, " + std::to_string(size));
        void* const address = arguments->held.back().data() + placeholders[i].data_offset;
        std::memcpy(arguments->bytes.data() + placeholders[i].address_offset, &address, sizeof(address));
    }
    return launch(here, function, blocks, stream, std::move(arguments));
}
ACL_EXPORT aclError aclrtLaunchKernelWithArgsArray(void* handle, uint32_t blocks, aclrtStream stream,
                                                   const void*, void** values) {
    constexpr const char* here = "aclrtLaunchKernelWithArgsArray";
    const auto function = function_of(handle);
    if (function == nullptr) return not_a_function(here);
    if (values == nullptr && !function->parameters.empty())
        return fail_null(ACL_ERROR_INVALID_PARAM, here, "args");
    auto arguments = std::make_shared<Launched>();
    arguments->bytes.resize(function->bytes);
    for (size_t i = 0; i < function->parameters.size(); ++i) {
        if (values[i] == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, here, "an element of args");
        const auto& parameter = function->parameters[i];
        std::memcpy(arguments->bytes.data() + parameter.offset, values[i], parameter.size);
    }
    return launch(here, handle, blocks, stream, std::move(arguments));
}
