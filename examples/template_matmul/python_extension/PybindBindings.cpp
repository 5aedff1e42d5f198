#include <torch/csrc/utils/pybind.h>

#include "AscendCTKernelWrapper.h"

PYBIND11_MODULE(torch_ascendct, m) {
    m.doc() = "Python bindings of the template library";
    m.def("basic_matmul", &AscendCTTorch::RunBasicMatmul, "");
}
