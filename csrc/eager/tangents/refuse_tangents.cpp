// Registers the kernel by which forward mode over an author's operator is refused. A library of its own:
// those who bring their kernels need nothing else of csrc/eager, and it compiles in a fraction of the time.
// The Python side is ascend_graph/autograd/no_tangent.py.
#include <pybind11/pybind11.h>
#include <torch/library.h>

#include <memory>
#include <optional>
#include <string>

#include "../autograd.h"

namespace {

// Taken back by `close` or with the last reference. The kernel is a function: a call that is under way in
// another thread holds no object of it.
class Refusal {
  public:
    Refusal(const std::string& ns, const std::string& name, bool counts_versions)
        : library_(std::in_place, torch::Library::IMPL, ns, c10::DispatchKey::ADInplaceOrView, __FILE__,
                   __LINE__) {
        using ascend_graph::eager::refuse_tangents;
        library_->impl(name.c_str(),
                       counts_versions
                           ? torch::CppFunction::makeFromBoxedFunction<&refuse_tangents<true>>()
                           : torch::CppFunction::makeFromBoxedFunction<&refuse_tangents<false>>());
    }
    void close() { library_.reset(); }

  private:
    std::optional<torch::Library> library_;
};

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    pybind11::class_<Refusal>(m, "Refusal")
        .def(pybind11::init<const std::string&, const std::string&, bool>())
        .def("close", &Refusal::close);
}
