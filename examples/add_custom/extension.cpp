// The eager half of AddCustom, as the documents write it: an operator whose NPU kernel calls aclnnAddCustom.
#include <torch/library.h>

#include "op_plugin/include/npu_cpp_extension.h"

namespace {

at::Tensor npu_add_custom(const at::Tensor& x, const at::Tensor& y) {
    TORCH_CHECK(x.sizes() == y.sizes(), "npu_add_custom: x has shape ", x.sizes(), ", y has shape ",
                y.sizes());
    at::Tensor z = at::empty_like(x);
    EXEC_NPU_CMD_EXT(aclnnAddCustom, x, y, z);
    return z;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(npu, m) { m.def("npu_add_custom(Tensor x, Tensor y) -> Tensor"); }

TORCH_LIBRARY_IMPL(npu, PrivateUse1, m) { m.impl("npu_add_custom", &npu_add_custom); }
