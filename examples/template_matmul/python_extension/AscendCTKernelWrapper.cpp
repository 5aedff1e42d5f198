// From tensors to the kernel's arguments.
#include "AscendCTKernelWrapper.h"

#include <map>

#include "basic_matmul.h"
#include "torch_npu/csrc/core/npu/NPUStream.h"

namespace AscendCTTorch {
namespace {

at::ScalarType ScalarTypeOf(const std::string& name) {
    static const std::map<std::string, at::ScalarType> types{
        {"float16", at::kHalf}, {"bf16", at::kBFloat16}, {"float32", at::kFloat}};
    const auto found = types.find(name);
    TORCH_CHECK(found != types.end(), "basic_matmul: outDType is '", name,
                "'; valid: float16, bf16, float32");
    return found->second;
}

aclDataType AclTypeOf(at::ScalarType type) {
    switch (type) {
        case at::kHalf:
            return ACL_FLOAT16;
        case at::kBFloat16:
            return ACL_BF16;
        case at::kFloat:
            return ACL_FLOAT;
        default:
            TORCH_CHECK(false, "basic_matmul: dtype ", type, "; valid: float16, bfloat16, float32");
    }
}

}  // namespace

at::Tensor RunBasicMatmul(const at::Tensor& mat1, const at::Tensor& mat2, const std::string& outDType) {
    TORCH_CHECK(mat1.dim() == 2 && mat2.dim() == 2 && mat1.size(1) == mat2.size(0), "basic_matmul: shapes ",
                mat1.sizes(), " and ", mat2.sizes(), " cannot be multiplied");
    TORCH_CHECK(mat1.scalar_type() == mat2.scalar_type(), "basic_matmul: dtypes ", mat1.scalar_type(),
                " and ", mat2.scalar_type(), " differ");
    const at::Tensor a = mat1.contiguous(), b = mat2.contiguous();
    at::Tensor result = at::empty({a.size(0), b.size(1)}, a.options().dtype(ScalarTypeOf(outDType)));
    if (result.numel() == 0) return result;
    if (a.size(1) == 0) return result.zero_();

    AscendCT::KernelInfo info{};
    info.inputDataType = AclTypeOf(a.scalar_type());
    info.outputDataType = AclTypeOf(result.scalar_type());
    info.m = a.size(0);
    info.n = b.size(1);
    info.k = a.size(1);
    info.inputAddr[0] = a.data_ptr();
    info.inputAddr[1] = b.data_ptr();
    info.outputAddr = result.data_ptr();
    constexpr uint32_t kBlocks = 20;
    const bool launched = AscendCT::BasicMatmul(kBlocks, c10_npu::getCurrentNPUStream().stream(false), info);
    TORCH_CHECK(launched, "basic_matmul: no kernel from ", a.scalar_type(), " to ", result.scalar_type(),
                "; the output has the inputs' dtype or is float32");
    return result;
}

}  // namespace AscendCTTorch
