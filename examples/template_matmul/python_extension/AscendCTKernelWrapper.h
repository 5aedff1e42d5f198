#pragma once
#include <ATen/ATen.h>

#include <string>

namespace AscendCTTorch {

// mat1[m, k] * mat2[k, n] with the dtype named by `outDType`: "float16", "bf16" or "float32".
at::Tensor RunBasicMatmul(const at::Tensor& mat1, const at::Tensor& mat2, const std::string& outDType);

}  // namespace AscendCTTorch
