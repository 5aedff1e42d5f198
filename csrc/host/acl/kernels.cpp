// Kernels by their handles: of binaries that the host's own compiler made, and of the program itself. What
// such code is compiled with registers its kernels here when it is loaded.
#include "acl/kernels.h"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

extern char** environ;

namespace ascend_graph::host {
namespace {

// Never destroyed: libraries may be unloaded until the process ends.
struct Known {
    std::mutex mutex;
    std::map<const void*, std::shared_ptr<Function>> by_symbol;
};
auto& known = *new Known;
auto& binaries = *new Handles<Binary>("aclrtBinaryLoadFromFile");
auto& functions = *new Handles<Function>("aclrtBinaryGetFunction");
thread_local Binary* being_loaded = nullptr;

aclError refuse(const char* function, const std::string& why) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, std::string(function) + ": " + why);
}

// The parts of an ELF header that say for which machine it is, and whether it can be loaded.
struct Elf {
    unsigned char magic[16];
    uint16_t type;
    uint16_t machine;
};
constexpr uint16_t kRelocatable = 1, kShared = 3;
#ifdef __aarch64__
constexpr uint16_t kMachine = 183;
#else
constexpr uint16_t kMachine = 62;
#endif

std::string directory_of_this_library() {
    Dl_info info{};
    dladdr(reinterpret_cast<const void*>(&directory_of_this_library), &info);
    const std::string path = info.dli_fname == nullptr ? "" : info.dli_fname;
    return path.substr(0, path.rfind('/') + 1);
}

// An object that is not linked becomes a library, as a device's loader makes it code.
bool link_object(const std::string& object, const std::string& library) {
    const char* const given = std::getenv("CXX");
    const std::string compiler = given == nullptr || *given == '\0' ? "g++" : given;
    const std::string from = "-L" + directory_of_this_library();
    const std::string path = "-Wl,-rpath," + directory_of_this_library();
    const std::vector<std::string> words = {compiler, "-shared",           object,       "-o", library,
                                            from,     "-lascendc_runtime", "-lascendcl", path};
    std::vector<char*> arguments;
    for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_t child = 0;
    if (posix_spawnp(&child, compiler.c_str(), nullptr, nullptr, arguments.data(), environ) != 0)
        return false;
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// A name of its own for each load: a loader gives the same library for the same file.
std::string temporary_file() {
    const char* const given = std::getenv("TMPDIR");
    std::string name = std::string(given == nullptr ? "/tmp" : given) + "/ascend_graph_kernels_XXXXXX";
    const int file = mkstemp(name.data());
    if (file < 0) return {};
    close(file);
    return name;
}

aclError check_elf(const char* function, const std::string& bytes, const std::string& of, Elf& header) {
    if (bytes.size() < sizeof(header) || bytes.compare(0, 4,
                                                       "\x7f"
                                                       "ELF") != 0)
        return refuse(function,
                      of + " is not an ELF file; expected kernels that bisheng of the host compiled");
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (header.machine == kMachine && (header.type == kRelocatable || header.type == kShared))
        return ACL_SUCCESS;
    return fail(
        ACL_ERROR_API_NOT_SUPPORT,
        std::string(function) + ": " + of + " is for another machine (ELF " + std::to_string(header.machine) +
            "): device binaries cannot run on the host; compile the kernel's source with bisheng of the "
            "host");
}

aclError load(const char* function, const std::string& bytes, const std::string& of, void** handle) {
    Elf header{};
    if (aclError error = check_elf(function, bytes, of, header)) return error;
    const std::string file = temporary_file();
    const std::string library = header.type == kShared ? file : file + ".so";
    std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    const bool linked = header.type == kShared || link_object(file, library);
    auto binary = std::make_shared<Binary>();
    being_loaded = binary.get();
    void* const loaded = linked ? dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    being_loaded = nullptr;
    const std::string why = !linked ? "it does not link; compile it with -fPIC" : loaded ? "" : dlerror();
    unlink(file.c_str());
    unlink(library.c_str());
    if (loaded == nullptr)
        return refuse(function, of + " cannot be loaded; compile it with bisheng of this host: " + why);
    binary->library = loaded;
    binary->size = bytes.size();
    if (binary->functions.empty())
        return refuse(function, of + " has no kernels; compile their source with bisheng and "
                                     "--cce-aicore-only");
    for (const auto& one : binary->functions) one->binary = binary.get();
    *handle = binaries.add(std::move(binary));
    return ACL_SUCCESS;
}

}  // namespace

Binary::~Binary() {
    {
        const std::lock_guard<std::mutex> lock(known.mutex);
        for (const auto& one : functions) known.by_symbol.erase(one->symbol);
    }
    for (const auto& one : functions) host::functions.take(one.get());
    if (library != nullptr) dlclose(library);
}

std::shared_ptr<Function> function_of(const void* handle) {
    if (auto found = functions.find(handle)) return found;
    const std::lock_guard<std::mutex> lock(known.mutex);
    const auto found = known.by_symbol.find(handle);
    return found == known.by_symbol.end() ? nullptr : found->second;
}

std::shared_ptr<Binary> binary_of(const Function& function) {
    return function.binary == nullptr ? nullptr : binaries.find(function.binary);
}

aclError not_a_function(const char* function) {
    return functions.not_live(function, "the kernel's handle", ACL_ERROR_RT_PARAM_INVALID);
}

}  // namespace ascend_graph::host

using namespace ascend_graph::host;

// Called by what bisheng of the host compiled, for each kernel; `launch` reads the arguments from bytes.
ACL_EXPORT void ascendgraphRegisterKernel(const char* name, const void* symbol, Function::Launch launch,
                                          const uint32_t* sizes, uint32_t count) {
    auto function = std::make_shared<Function>();
    function->name = name;
    function->symbol = symbol;
    function->launch = launch;
    size_t offset = 0;
    for (uint32_t i = 0; i < count; ++i) {
        function->parameters.push_back({offset, sizes[i]});
        offset += (sizes[i] + 7u) / 8 * 8;
    }
    function->bytes = offset;
    if (being_loaded != nullptr) being_loaded->functions.push_back(function);
    functions.add(function);
    const std::lock_guard<std::mutex> lock(known.mutex);
    known.by_symbol.insert_or_assign(symbol, std::move(function));
}

ACL_EXPORT aclError aclrtBinaryLoadFromFile(const char* path, const void*, void** handle) {
    constexpr const char* function = "aclrtBinaryLoadFromFile";
    if (path == nullptr || handle == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, function, "binPath or binHandle");
    std::ifstream file(path, std::ios::binary);
    if (!file) return refuse(function, std::string(path) + " cannot be read; name a file that exists");
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    return load(function, bytes, path, handle);
}
ACL_EXPORT aclError aclrtBinaryLoadFromData(const void* data, size_t size, const void*, void** handle) {
    constexpr const char* function = "aclrtBinaryLoadFromData";
    if (data == nullptr || handle == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, function, "data or binHandle");
    return load(function, {static_cast<const char*>(data), size}, "the data", handle);
}
namespace {
struct BinaryData {  // aclrtBinary
    const void* data;
    size_t size;
};
}  // namespace
ACL_EXPORT void* aclrtCreateBinary(const void* data, size_t size) {
    if (data == nullptr || size == 0) {
        fail_null(ACL_ERROR_INVALID_PARAM, "aclrtCreateBinary", "data, or dataLen is 0: it");
        return nullptr;
    }
    return new BinaryData{data, size};
}
ACL_EXPORT aclError aclrtDestroyBinary(void* binary) {
    if (binary == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtDestroyBinary", "binary");
    delete static_cast<BinaryData*>(binary);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtBinaryLoad(const BinaryData* binary, void** handle) {
    if (binary == nullptr || handle == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtBinaryLoad", "binary or binHandle");
    return load("aclrtBinaryLoad", {static_cast<const char*>(binary->data), binary->size}, "the data",
                handle);
}
// Launches that wait keep it until they have run.
ACL_EXPORT aclError aclrtBinaryUnLoad(void* handle) {
    return binaries.take(handle) != nullptr ? ACL_SUCCESS
                                            : binaries.not_live("aclrtBinaryUnLoad", "binHandle");
}

ACL_EXPORT aclError aclrtBinaryGetFunction(void* handle, const char* name, void** function) {
    constexpr const char* here = "aclrtBinaryGetFunction";
    const auto binary = binaries.find(handle);
    if (binary == nullptr) return binaries.not_live(here, "binHandle");
    if (name == nullptr || function == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, here, "kernelName or funcHandle");
    std::string all;
    for (const auto& one : binary->functions) {
        if (one->name == name) {
            *function = one.get();
            return ACL_SUCCESS;
        }
        all += (all.empty() ? "" : ", ") + one->name;
    }
    return refuse(here, "the binary has no kernel " + std::string(name) + "; expected one of " + all);
}
ACL_EXPORT aclError aclrtBinaryGetGlobal(void* handle, const char* name, void** address, size_t* size) {
    constexpr const char* here = "aclrtBinaryGetGlobal";
    const auto binary = binaries.find(handle);
    if (binary == nullptr) return binaries.not_live(here, "binHandle");
    if (name == nullptr || (address == nullptr && size == nullptr))
        return fail_null(ACL_ERROR_INVALID_PARAM, here, "name, or dptr and size,");
    void* const found = dlsym(binary->library, name);
    if (found == nullptr)
        return refuse(
            here, "the binary exports no variable " + std::string(name) + "; name one that is not static");
    if (address != nullptr) *address = found;
    return size == nullptr ? ACL_SUCCESS : aclrtGetSymbolSize(found, size);
}
ACL_EXPORT aclError aclrtFunctionGetBinary(const void* handle, void** binary) {
    const auto function = function_of(handle);
    if (function == nullptr) return not_a_function("aclrtFunctionGetBinary");
    if (binary == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtFunctionGetBinary", "binHandle");
    if (function->binary == nullptr)
        return refuse(
            "aclrtFunctionGetBinary",
            "the kernel is the program's own, of no binary; call aclrtBinaryGetFunction for one that has");
    *binary = function->binary;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtGetFuncBySymbol(const void* symbol, void** function) {
    constexpr const char* here = "aclrtGetFuncBySymbol";
    if (symbol == nullptr || function == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, here, "symbol or funcHandle");
    const auto found = function_of(symbol);
    if (found == nullptr)
        return refuse(here,
                      "symbol is not the address of a registered kernel; call it in the source that defines "
                      "the kernel, "
                      "which has external linkage and is not a template, and compile that with bisheng");
    *function = found.get();
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtGetFunctionName(const void* handle, uint32_t size, char* name) {
    const auto function = function_of(handle);
    if (function == nullptr) return not_a_function("aclrtGetFunctionName");
    if (name == nullptr || size == 0)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtGetFunctionName", "name, or maxLen is 0: it");
    std::snprintf(name, size, "%s", function->name.c_str());
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtFunctionGetParamCount(const void* handle, size_t* count) {
    const auto function = function_of(handle);
    if (function == nullptr) return not_a_function("aclrtFunctionGetParamCount");
    if (count == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtFunctionGetParamCount", "paramCount");
    *count = function->parameters.size();
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtFunctionGetParamInfo(const void* handle, size_t index, size_t* offset,
                                              size_t* size) {
    constexpr const char* here = "aclrtFunctionGetParamInfo";
    const auto function = function_of(handle);
    if (function == nullptr) return not_a_function(here);
    if (offset == nullptr || size == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, here, "paramOffset or paramSize");
    if (index >= function->parameters.size())
        return refuse(here, "index " + std::to_string(index) +
                                " is out of range; expected less than the number of parameters, " +
                                std::to_string(function->parameters.size()));
    *offset = function->parameters[index].offset;
    *size = function->parameters[index].size;
    return ACL_SUCCESS;
}
// Functions of threads take memory of a core when they are launched; a host's kernels have what a core has.
ACL_EXPORT aclError aclrtFunctionGetAvailDynUbufPerBlock(const void* handle, uint32_t, size_t* size) {
    if (function_of(handle) == nullptr) return not_a_function("aclrtFunctionGetAvailDynUbufPerBlock");
    if (size == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtFunctionGetAvailDynUbufPerBlock", "dynamicUbufSize");
    *size = 0;
    return ACL_SUCCESS;
}
