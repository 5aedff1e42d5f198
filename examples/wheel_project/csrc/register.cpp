// The schemas of myops, and the Python binding.
#include <torch/csrc/utils/pybind.h>  // and Python of tensors; torch/extension.h takes three times as long to compile
#include <torch/library.h>

#include "function.h"

TORCH_LIBRARY(myops, m) {
    m.def("my_op(Tensor self, Tensor other) -> Tensor");
    m.def("my_op_backward(Tensor self) -> (Tensor, Tensor)");
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("add_custom", &my_op_impl_autograd, "x + y"); }
