// The table of operators that a class of C++ executes, and that libraries add when they are loaded.
#include "ascend_graph/custom_operator.h"

#include <map>
#include <mutex>
#include <string>

#include "acl/abi.h"

using ascend_graph::host::CustomOperator;

namespace {

std::mutex mutex;

// Leaked: libraries may be loaded and asked until the process ends.
std::map<std::string, CustomOperator>& operators() {
    static auto& table = *new std::map<std::string, CustomOperator>;
    return table;
}

}  // namespace

ACL_EXPORT void ascendgraphRegisterCustomOperator(const char* op_type, CustomOperator value) {
    if (op_type == nullptr) return;
    const std::lock_guard<std::mutex> lock(mutex);
    operators().emplace(op_type, value);
}

ACL_EXPORT bool ascendgraphFindCustomOperator(const char* op_type, CustomOperator* found) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto entry = operators().find(op_type);
    if (entry == operators().end()) return false;
    *found = entry->second;
    return true;
}
