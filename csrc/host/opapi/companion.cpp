#include "opapi/companion.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "acl/abi.h"
#include "ascend_graph/host_runtime.h"
#include "ascend_graph/program_output.h"

namespace ascend_graph::host {

namespace {

// <package>/op_api/lib/libcust_opapi.so → <package>; "" for code that is elsewhere.
std::string package_of(const void* code) {
    Dl_info info{};
    if (dladdr(code, &info) == 0 || info.dli_fname == nullptr) return "";
    std::error_code unknown;
    const auto library = std::filesystem::canonical(info.dli_fname, unknown);
    const auto package = library.parent_path().parent_path().parent_path();
    if (unknown || !std::filesystem::is_directory(package / "op_impl/ai_core/tbe", unknown)) return "";
    return package;
}

// Builds the companion if it is not there and loads it; what went wrong, or "".
std::string load_companion(const std::string& package, const std::string& op_type) {
    const char* python = std::getenv("ASCEND_GRAPH_PYTHON");
    if (python == nullptr || *python == '\0')
        return "ASCEND_GRAPH_PYTHON does not name the Python to build its kernel with";
    // Without the working directory, where anything may lie.
    const char* program =
        "import sys; sys.path.pop(0); from ascend_graph.host.prebuilt.companion import main; main()";
    const std::array<const char*, 6> arguments{python,          "-c",   program, package.c_str(),
                                               op_type.c_str(), nullptr};
    std::string said = output_of(arguments.data());
    while (!said.empty() && said.back() == '\n') said.pop_back();
    const std::string library = said + "/op_api/lib/libcust_opapi.so";
    if (access(library.c_str(), R_OK) != 0)
        return said.empty() ? std::string(python) + " failed without a message" : said;
    // It registers the kernel. Its functions have the names of the package's own, which callers mean.
    return dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr ? dlerror() : "";
}

}  // namespace

KernelEntry kernel_of_package(const std::string& op_type, const void* caller, std::string& why) {
    if (const KernelEntry kernel = ascendgraphFindKernel(op_type.c_str())) return kernel;
    const std::string package = package_of(caller);
    if (package.empty()) return nullptr;
    // A refusal stays one: the files do not change while the process has the package's library.
    static std::mutex mutex;
    static auto& refused = *new std::map<std::string, std::string>;
    const std::lock_guard<std::mutex> lock(mutex);
    const auto [entry, is_new] = refused.try_emplace(package + '\0' + op_type);
    if (is_new) entry->second = load_companion(package, op_type);
    why = entry->second;
    return ascendgraphFindKernel(op_type.c_str());
}

}  // namespace ascend_graph::host

// For launches of a library that `caller` is code of: builds the companion of an operator of its package.
ACL_EXPORT int ascendgraphNeedKernel(const char* op_type, const void* caller) {
    std::string why;
    if (ascend_graph::host::kernel_of_package(op_type, caller, why) != nullptr || why.empty()) return 0;
    return ascendgraphFail(ascend_graph::host::kFindKernel,
                           (std::string(op_type) + ": its kernel is not there: " + why).c_str());
}
