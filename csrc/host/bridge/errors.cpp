#include "errors.h"

#include <torch/csrc/Exceptions.h>

namespace ascend_graph::host {

std::string text_of(std::exception& error) {
    if (auto* raised = dynamic_cast<python_error*>(&error)) raised->persist();
    if (auto* raised = dynamic_cast<c10::Error*>(&error)) return raised->what_without_backtrace();
    return error.what();
}

bool is_not_implemented(const std::exception& error) {
    if (dynamic_cast<const c10::NotImplementedError*>(&error) != nullptr) return true;
    const auto* raised = dynamic_cast<const python_error*>(&error);
    if (raised == nullptr) return false;
    pybind11::gil_scoped_acquire gil;
    return PyErr_GivenExceptionMatches(raised->type, PyExc_NotImplementedError) != 0;
}

}  // namespace ascend_graph::host
