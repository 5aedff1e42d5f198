#include "adaptation.h"

#include <string_view>
#include <unordered_map>

namespace ascend_graph::host {
namespace {

// How the tensors are changed before the CPU kernel sees them.
enum Adaptation : unsigned {
    kHalf = 1,        // float16 is computed in float32
    kBFloat16 = 2,    // bfloat16 is computed in float32
    kContiguous = 4,  // read tensors are made contiguous
    kIntegers = 8,    // integers are computed in float64
};

// The operators whose CPU kernels lack what PyTorch's kernels of accelerators have. Only these dtypes are
// widened: all others, and all dtypes of all other operators, are for the kernel to take or refuse.
const std::unordered_map<std::string_view, unsigned>& adaptations() {
    static const std::unordered_map<std::string_view, unsigned> table{
        {"aten::_upsample_bilinear2d_aa", kHalf | kBFloat16},
        {"aten::_upsample_bilinear2d_aa_backward", kHalf | kBFloat16},
        {"aten::_upsample_bicubic2d_aa", kHalf | kBFloat16},
        {"aten::_upsample_bicubic2d_aa_backward", kHalf | kBFloat16},
        {"aten::avg_pool3d", kHalf | kBFloat16},
        {"aten::avg_pool3d_backward", kHalf | kBFloat16},
        {"aten::histc", kIntegers},
        {"aten::multi_margin_loss", kHalf | kBFloat16},
        {"aten::multi_margin_loss_backward", kHalf | kBFloat16},
        {"aten::multilabel_margin_loss_forward", kHalf | kBFloat16},
        {"aten::multilabel_margin_loss_backward", kHalf | kBFloat16},
        {"aten::polygamma", kHalf},
        {"aten::polygamma_", kHalf},
        {"aten::round", kHalf},
        {"aten::round_", kHalf},
        {"aten::rrelu_with_noise", kHalf},
        {"aten::rrelu_with_noise_", kHalf},
        {"aten::native_group_norm", kContiguous},
        // These read their arguments as if they were contiguous, and say nothing.
        {"aten::native_group_norm_backward", kContiguous},
        {"aten::adaptive_max_pool3d_backward", kContiguous},
        {"aten::fractional_max_pool2d_backward", kContiguous},
        {"aten::fractional_max_pool3d_backward", kContiguous},
        // These refuse what is not contiguous.
        {"aten::nll_loss2d_backward", kContiguous},
        {"aten::_pdist_forward", kContiguous},
        {"aten::_pdist_backward", kContiguous},
    };
    return table;
}

// The dtype that the kernel computes in instead; nothing for one that it takes or refuses itself.
std::optional<at::ScalarType> widened(at::ScalarType dtype, unsigned adaptation) {
    if ((dtype == at::kHalf && (adaptation & kHalf) != 0) ||
        (dtype == at::kBFloat16 && (adaptation & kBFloat16) != 0))
        return at::kFloat;
    if (at::isIntegralType(dtype, /*includeBool=*/false) && (adaptation & kIntegers) != 0) return at::kDouble;
    return std::nullopt;
}

// A tensor and what the kernel is given in its place.
struct Substitute {
    at::Tensor tensor;
    at::Tensor made;
    bool written;
};

class Adapted {
  public:
    Adapted(const Operator& op, Stack& stack, unsigned adaptation) : adaptation_(adaptation) {
        const auto& parameters = op.schema().arguments();
        c10::IValue* arguments = arguments_of(op, stack);
        for (size_t i = 0; i < parameters.size(); ++i) {
            const bool written = is_written(parameters[i]);
            map_tensors(arguments[i], [&](const at::Tensor& t) { return substitute(t, written); });
        }
    }

    void settle() const {
        for (const Substitute& substitute : substitutes_) {
            if (!substitute.written) continue;
            if (substitute.tensor.sizes() != substitute.made.sizes()) {
                substitute.tensor.resize_(substitute.made.sizes());
            }
            substitute.tensor.copy_(substitute.made);
        }
    }

    at::Tensor result(const at::Tensor& made) const {
        for (const Substitute& substitute : substitutes_) {
            if (substitute.made.is_same(made)) return substitute.tensor;
        }
        return narrow_.has_value() && made.defined() && made.scalar_type() == wide_ ? made.to(*narrow_)
                                                                                    : made;
    }

  private:
    at::Tensor substitute(const at::Tensor& t, bool written) {
        if (!t.defined()) return t;
        at::Tensor made = t;
        if (const auto wide = widened(t.scalar_type(), adaptation_); wide.has_value()) {
            if (!narrow_.has_value()) narrow_ = t.scalar_type();
            wide_ = *wide;
            made = t.to(wide_);
        } else if ((adaptation_ & kContiguous) != 0 && !written) {
            made = t.contiguous();
        }
        if (!made.is_same(t)) substitutes_.push_back({t, made, written});
        return made;
    }

    unsigned adaptation_;
    std::optional<at::ScalarType> narrow_;
    at::ScalarType wide_ = at::kFloat;
    std::vector<Substitute> substitutes_;
};

}  // namespace

void call_on_cpu(const Operator& op, Stack& stack) {
    const auto found = adaptations().find(op.operator_name().name);
    if (found == adaptations().end()) {
        op.callBoxed(stack);
        return;
    }
    const Adapted adapted(op, stack, found->second);
    op.callBoxed(stack);
    adapted.settle();
    map_results(op, stack, [&](const at::Tensor& made) { return adapted.result(made); });
}

}  // namespace ascend_graph::host
