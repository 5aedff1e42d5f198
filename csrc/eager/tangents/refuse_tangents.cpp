// Registers the kernel by which forward mode over an author's operator is refused. A library of its own, with
// functions for ctypes: those who bring their kernels need nothing else of csrc/eager, and it compiles in a
// fraction of the time. The Python side is ascend_graph/autograd/no_tangent.py.
#include <torch/library.h>

#include <exception>
#include <memory>
#include <string>

#include "../tangents.h"

namespace {

using ascend_graph::eager::refuse_tangents;

thread_local std::string failure;

}  // namespace

extern "C" {

// Returns a registration, or null; then ascendgraphRefusalFailure() says why. The kernel is a function: a
// call that is under way in another thread while the registration is taken back holds no object of it.
void* ascendgraphRefuseTangents(const char* ns, const char* name, bool counts_versions) {
    try {
        auto library = std::make_unique<torch::Library>(
            torch::Library::IMPL, ns, c10::DispatchKey::ADInplaceOrView, __FILE__, __LINE__);
        library->impl(name, counts_versions
                                ? torch::CppFunction::makeFromBoxedFunction<&refuse_tangents<true>>()
                                : torch::CppFunction::makeFromBoxedFunction<&refuse_tangents<false>>());
        return library.release();
    } catch (const std::exception& error) {
        failure = error.what();
        return nullptr;
    }
}

const char* ascendgraphRefusalFailure() { return failure.c_str(); }

void ascendgraphTakeBackRefusal(void* registration) { delete static_cast<torch::Library*>(registration); }

}  // extern "C"
