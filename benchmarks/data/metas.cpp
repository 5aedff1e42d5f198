// Meta functions written by hand in C++, for the comparison in benchmarks/metas.py; they take symbolic sizes.

#include <ATen/ATen.h>
#include <torch/library.h>

namespace {

at::Tensor like(const at::Tensor& x) { return at::empty_like(x); }

at::Tensor mm(const at::Tensor& x, const at::Tensor& w) {
    TORCH_CHECK(x.dim() == 2 && w.dim() == 2, "mm: x and w are matrices");
    TORCH_SYM_CHECK(x.sym_size(1).sym_eq(w.sym_size(0)), "mm: k differs");
    return at::empty_symint({x.sym_size(0), w.sym_size(1)}, x.options());
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& w, const std::optional<at::Tensor>& b) {
    TORCH_CHECK(x.dim() >= 1 && w.dim() == 2, "linear: w is a matrix");
    TORCH_SYM_CHECK(x.sym_size(-1).sym_eq(w.sym_size(1)), "linear: k differs");
    if (b.has_value()) {
        TORCH_SYM_CHECK(b->sym_size(0).sym_eq(w.sym_size(0)), "linear: n differs");
    }
    auto sizes = x.sym_sizes().vec();
    sizes.back() = w.sym_size(0);
    return at::empty_symint(sizes, x.options());
}

std::tuple<at::Tensor, at::Tensor> quant(const at::Tensor& x, int64_t block) {
    TORCH_CHECK(x.dim() >= 1, "quant: x has no dimension");
    auto sizes = x.sym_sizes().vec();
    sizes.back() = (sizes.back() + block - 1) / block;
    return {at::empty_symint(x.sym_sizes(), x.options().dtype(at::kChar)),
            at::empty_symint(sizes, x.options().dtype(at::kFloat))};
}

}  // namespace

TORCH_LIBRARY(metas_in_cpp, m) {
    m.def("like(Tensor x) -> Tensor");
    m.def("mm(Tensor x, Tensor w) -> Tensor");
    m.def("linear(Tensor x, Tensor w, Tensor? b=None) -> Tensor");
    m.def("quant(Tensor x, *, int block=32) -> (Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(metas_in_cpp, Meta, m) {
    m.impl("like", like);
    m.impl("mm", mm);
    m.impl("linear", linear);
    m.impl("quant", quant);
}
