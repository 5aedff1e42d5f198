// Single-operator descriptions (aclTensorDesc, aclDataBuffer, aclopAttr) of the older aclop interface.
//
// ATen operators do not come this way on the host runtime; an operator that does fails with its name.
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "acl/runtime.h"

using namespace ascend_graph::host;

struct aclTensorDesc {
    aclDataType dtype;
    aclFormat format;
    std::vector<int64_t> dims;
    std::string name;
};
struct aclDataBuffer {
    void* data;
    size_t size;
};
struct aclopAttr {};

ACL_EXPORT aclTensorDesc* aclCreateTensorDesc(aclDataType dtype, int rank, const int64_t* dims,
                                              aclFormat format) {
    if (rank < 0 || (rank > 0 && dims == nullptr)) return nullptr;
    return new aclTensorDesc{dtype, format, {dims, dims + rank}, {}};
}
ACL_EXPORT void aclDestroyTensorDesc(const aclTensorDesc* desc) { delete desc; }
ACL_EXPORT void aclSetTensorDescName(aclTensorDesc* desc, const char* name) {
    if (desc != nullptr && name != nullptr) desc->name = name;
}
ACL_EXPORT aclError aclSetTensorFormat(aclTensorDesc*, aclFormat) { return ACL_SUCCESS; }
ACL_EXPORT aclError aclSetTensorShape(aclTensorDesc*, int, const int64_t*) { return ACL_SUCCESS; }
ACL_EXPORT aclError aclSetTensorPlaceMent(aclTensorDesc*, int) { return ACL_SUCCESS; }
ACL_EXPORT aclDataType aclGetTensorDescType(const aclTensorDesc* desc) { return desc->dtype; }
ACL_EXPORT aclFormat aclGetTensorDescFormat(const aclTensorDesc* desc) { return desc->format; }
ACL_EXPORT size_t aclGetTensorDescNumDims(const aclTensorDesc* desc) {
    return desc == nullptr ? 0 : desc->dims.size();
}
ACL_EXPORT aclError aclGetTensorDescDimV2(const aclTensorDesc* desc, size_t index, int64_t* size) {
    if (desc == nullptr || size == nullptr || index >= desc->dims.size()) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclGetTensorDescDimV2: no such dimension");
    }
    *size = desc->dims[index];
    return ACL_SUCCESS;
}

ACL_EXPORT aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
    return new aclDataBuffer{data, size};
}
ACL_EXPORT aclError aclDestroyDataBuffer(const aclDataBuffer* buffer) {
    delete buffer;
    return ACL_SUCCESS;
}

ACL_EXPORT aclopAttr* aclopCreateAttr() { return new aclopAttr; }
ACL_EXPORT void aclopDestroyAttr(const aclopAttr* attr) { delete attr; }
ACL_EXPORT aclError aclopSetAttrBool(aclopAttr*, const char*, uint8_t) { return ACL_SUCCESS; }
ACL_EXPORT aclError aclopSetAttrDataType(aclopAttr*, const char*, aclDataType) { return ACL_SUCCESS; }
ACL_EXPORT aclError aclopSetAttrFloat(aclopAttr*, const char*, float) { return ACL_SUCCESS; }
ACL_EXPORT aclError aclopSetAttrInt(aclopAttr*, const char*, int64_t) { return ACL_SUCCESS; }
ACL_EXPORT aclError aclopSetAttrString(aclopAttr*, const char*, const char*) { return ACL_SUCCESS; }
ACL_EXPORT aclError aclopSetAttrListBool(aclopAttr*, const char*, int, const uint8_t*) { return ACL_SUCCESS; }
ACL_EXPORT aclError aclopSetAttrListFloat(aclopAttr*, const char*, int, const float*) { return ACL_SUCCESS; }
ACL_EXPORT aclError aclopSetAttrListInt(aclopAttr*, const char*, int, const int64_t*) { return ACL_SUCCESS; }
ACL_EXPORT aclError aclopSetAttrListListInt(aclopAttr*, const char*, int, const int*, const int64_t* const*) {
    return ACL_SUCCESS;
}

namespace {
aclError not_an_operator(const char* op_type) {
    return fail(ACL_ERROR_OP_NOT_FOUND, std::string("the host runtime has no kernel for operator ") +
                                            (op_type != nullptr ? op_type : "(null)") +
                                            " in the aclop interface; give it one in an operator package, or "
                                            "use the ATen operator it stands for");
}
}  // namespace

ACL_EXPORT aclError aclopCompileAndExecute(const char* op_type, int, const aclTensorDesc* const*,
                                           const aclDataBuffer* const*, int, const aclTensorDesc* const*,
                                           aclDataBuffer* const*, const aclopAttr*, int, int, const char*,
                                           aclrtStream) {
    return not_an_operator(op_type);
}
ACL_EXPORT aclError aclopCompileAndExecuteV2(const char* op_type, int, aclTensorDesc**, aclDataBuffer**, int,
                                             aclTensorDesc**, aclDataBuffer**, aclopAttr*, int, int,
                                             const char*, aclrtStream) {
    return not_an_operator(op_type);
}

// Compile options: kept and given back. There is no just-in-time compilation of operators on a host.
namespace {
constexpr int kJitCompile = 10;  // ACL_OP_JIT_COMPILE
std::mutex options_mutex;
std::map<int, std::string>& options() {
    static std::map<int, std::string> values{{kJitCompile, "disable"}};
    return values;
}
}  // namespace

ACL_EXPORT aclError aclSetCompileopt(int option, const char* value) {
    if (value == nullptr) return fail(ACL_ERROR_INVALID_PARAM, "aclSetCompileopt: value is null");
    std::lock_guard<std::mutex> lock(options_mutex);
    options()[option] = value;
    return ACL_SUCCESS;
}
ACL_EXPORT size_t aclGetCompileoptSize(int option) {
    std::lock_guard<std::mutex> lock(options_mutex);
    auto found = options().find(option);
    return found == options().end() ? 0 : found->second.size() + 1;
}
ACL_EXPORT aclError aclGetCompileopt(int option, char* value, size_t length) {
    std::lock_guard<std::mutex> lock(options_mutex);
    auto found = options().find(option);
    if (value == nullptr || found == options().end() || length <= found->second.size()) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclGetCompileopt: option " + std::to_string(option) +
                                                 " is not set, or the buffer is too small");
    }
    std::strcpy(value, found->second.c_str());
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclopSetCompileFlag(int) { return ACL_SUCCESS; }
