// Registers the kernels by which forward mode, and a gradient, over an author's operator are refused. A
// library of its own, with functions for ctypes: those who bring their kernels need nothing else of
// csrc/eager, and it compiles in a fraction of the time. The Python side is
// ascend_graph/autograd/no_tangent.py.
#include <torch/library.h>

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../tangents.h"
#include "authors_gradient.h"

namespace {

using ascend_graph::eager::kNoGradient;
using ascend_graph::eager::refuse_tangents;
using ascend_graph::eager::remember_author;

using Registrations = std::vector<torch::Library>;

thread_local std::string failure;

}  // namespace

extern "C" {

// Returns registrations, or null; then ascendgraphRefusalFailure() says why. The kernels are functions: a
// call that is under way in another thread while registrations are taken back holds no object of them.
void* ascendgraphRefuseTangents(const char* ns, const char* name, bool counts_versions,
                                bool refuses_gradient) {
    try {
        auto made = std::make_unique<Registrations>();
        const auto at_key = [&](c10::DispatchKey key, torch::CppFunction&& kernel) {
            made->emplace_back(torch::Library::IMPL, ns, key, __FILE__, __LINE__);
            made->back().impl(name, std::move(kernel));
        };
        at_key(c10::DispatchKey::ADInplaceOrView,
               counts_versions ? torch::CppFunction::makeFromBoxedFunction<&refuse_tangents<true>>()
                               : torch::CppFunction::makeFromBoxedFunction<&refuse_tangents<false>>());
        if (refuses_gradient) {
            at_key(c10::DispatchKey::Autograd,
                   torch::CppFunction::makeFromBoxedFunction<&remember_author>().debug(kNoGradient));
        }
        return made.release();
    } catch (const std::exception& error) {
        failure = error.what();
        return nullptr;
    }
}

const char* ascendgraphRefusalFailure() { return failure.c_str(); }

void ascendgraphTakeBackRefusal(void* registrations) { delete static_cast<Registrations*>(registrations); }

}  // extern "C"
