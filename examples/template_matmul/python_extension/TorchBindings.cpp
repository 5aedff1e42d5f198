#include <torch/library.h>

#include "AscendCTKernelWrapper.h"

namespace {

at::Tensor BasicMatmul(const at::Tensor& mat1, const at::Tensor& mat2, c10::string_view outDType) {
    return AscendCTTorch::RunBasicMatmul(mat1, mat2, std::string(outDType));
}

}  // namespace

TORCH_LIBRARY(AscendCTTorch, m) { m.def("basic_matmul(Tensor mat1, Tensor mat2, str outDType) -> Tensor"); }

TORCH_LIBRARY_IMPL(AscendCTTorch, PrivateUse1, m) { m.impl("basic_matmul", &BasicMatmul); }
