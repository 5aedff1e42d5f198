// Super kernels of captured models (libascendsk): on a device, the kernels of a model, or between two marks,
// become one.
//
// Fusing changes when kernels run, not what they compute: the host runs the model as it was recorded.
#include "acl/runtime.h"

using namespace ascend_graph::host;

struct aclskOptions;

namespace {

aclError mark(const char* function, const char* name, aclrtStream stream) {
    if (name != nullptr && *name == '\0') {
        return fail(ACL_ERROR_INVALID_PARAM,
                    std::string(function) + ": the scope's name is empty; expected a name, or none");
    }
    return check_stream(function, stream);
}

}  // namespace

ACL_EXPORT aclError aclskOptimize(aclmdlRI handle, const aclskOptions*) {
    const auto model = model_of(handle);
    if (model == nullptr) return not_a_model("aclskOptimize");
    if (model->capturing()) {
        return fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG,
                    "aclskOptimize: the model is not complete; end its capture first");
    }
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclskScopeBegin(const char* name, aclrtStream stream) {
    return mark("aclskScopeBegin", name, stream);
}

ACL_EXPORT aclError aclskScopeEnd(const char* name, aclrtStream stream) {
    return mark("aclskScopeEnd", name, stream);
}
