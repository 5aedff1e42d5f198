// What streams run, as ranges of PyTorch's record functions: its profiler and torch_npu's show kernels with
// their host times with the operators that launched them.
#include "trace.h"

#include <ATen/record_function.h>

#include <memory>

#include "ascend_graph/host_runtime.h"

namespace ascend_graph::host {
namespace {

void* begin(const char* name) {
    auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE);
    if (!callbacks.has_value()) return nullptr;
    auto range = std::make_unique<at::RecordFunction>(std::move(*callbacks));
    range->before(std::string(name));
    return range.release();
}

void end(void* range) { delete static_cast<at::RecordFunction*>(range); }

}  // namespace

bool is_traced() { return at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE).has_value(); }

void trace_streams() { ascendgraphSetTracer(begin, end); }

}  // namespace ascend_graph::host
