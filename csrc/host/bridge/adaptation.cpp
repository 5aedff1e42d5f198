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
    // Norms, whose weights may have another dtype than the input. Of these accelerators keep the statistics
    // in float32, those of groups in the input's dtype; gradients have the dtypes of what they belong to.
    kStatistics = 16,
    kGradients = 32,
    // Results are contiguous, in whatever order the arguments lie: PyTorch's CPU kernels keep channels last,
    // accelerators' kernels do not, nor do the meta functions, which compilers believe.
    kInOrder = 64,
    // Negative indices count from the end of the dimension, as CANN's document of aclnnGather says.
    kFromEnd = 128,
};

// The operators whose CPU kernels lack what PyTorch's kernels of accelerators have. Only these dtypes are
// widened: all others, and all dtypes of all other operators, are for the kernel to take or refuse.
const std::unordered_map<std::string_view, unsigned>& adaptations() {
    static const std::unordered_map<std::string_view, unsigned> table{
        {"aten::_upsample_bilinear2d_aa", kHalf | kBFloat16},
        {"aten::_upsample_bilinear2d_aa_backward", kHalf | kBFloat16},
        {"aten::_upsample_bicubic2d_aa", kHalf | kBFloat16},
        {"aten::_upsample_bicubic2d_aa_backward", kHalf | kBFloat16},
        {"aten::convolution", kInOrder},
        {"aten::_convolution", kInOrder},
        {"aten::convolution_backward", kInOrder},
        {"aten::max_unpool2d", kInOrder},
        {"aten::max_unpool3d", kInOrder},
        {"aten::pixel_shuffle", kInOrder},
        {"aten::channel_shuffle", kInOrder},
        {"aten::native_channel_shuffle", kInOrder},
        {"aten::reflection_pad2d_backward", kInOrder},
        {"aten::reflection_pad3d", kInOrder},
        {"aten::reflection_pad3d_backward", kInOrder},
        {"aten::replication_pad2d_backward", kInOrder},
        {"aten::replication_pad3d", kInOrder},
        {"aten::replication_pad3d_backward", kInOrder},
        {"aten::avg_pool3d", kHalf | kBFloat16},
        {"aten::avg_pool3d_backward", kHalf | kBFloat16},
        {"aten::gather", kFromEnd},
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
        {"aten::native_layer_norm", kHalf | kBFloat16 | kStatistics},
        {"aten::native_layer_norm_backward", kHalf | kBFloat16 | kGradients},
        {"aten::native_batch_norm", kHalf | kBFloat16 | kStatistics},
        {"aten::_native_batch_norm_legit", kHalf | kBFloat16 | kStatistics},
        {"aten::native_batch_norm_backward", kHalf | kBFloat16 | kGradients},
        {"aten::native_group_norm", kHalf | kBFloat16 | kContiguous},
        // These read their arguments as if they were contiguous, and say nothing.
        {"aten::native_group_norm_backward", kHalf | kBFloat16 | kContiguous | kGradients},
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

// The dtype of a tensor among the arguments, by name; that of the first tensor where it is absent.
at::ScalarType dtype_of(const Operator& op, const c10::IValue* arguments, const char* name,
                        at::ScalarType fallback) {
    const auto index = op.schema().argumentIndexWithName(name);
    if (!index.has_value() || !arguments[*index].isTensor() || !arguments[*index].toTensor().defined())
        return fallback;
    return arguments[*index].toTensor().scalar_type();
}

std::optional<at::ScalarType> first_dtype(const Operator& op, const c10::IValue* arguments) {
    std::optional<at::ScalarType> first;
    for (size_t i = 0; i < op.schema().arguments().size() && !first.has_value(); ++i) {
        for_each_tensor(arguments[i], [&](const at::Tensor& t) {
            if (!first.has_value()) first = t.scalar_type();
        });
    }
    return first;
}

// The indices of a dimension of a tensor, negative ones counted from its end; what is outside is the kernel's
// to refuse.
at::Tensor counted_from_start(const at::Tensor& index, const at::Tensor& self, int64_t dim) {
    if (index.numel() == 0 || index.min().item<int64_t>() >= 0) return index;
    const int64_t size = self.dim() == 0 ? 1 : self.size(dim);
    return at::where(index.lt(0), index.add(size), index);
}

// Whether the kernel writes it, also where the schema does not say so: batch norm's running statistics.
bool is_updated(const c10::Argument& parameter) {
    return is_written(parameter) || parameter.name() == "running_mean" || parameter.name() == "running_var";
}

class Adapted {
  public:
    Adapted(const Operator& op, Stack& stack, unsigned adaptation)
        : adaptation_(adaptation), gives_arguments_(op.schema().is_mutable()) {
        const auto& parameters = op.schema().arguments();
        c10::IValue* arguments = arguments_of(op, stack);
        const auto first = first_dtype(op, arguments);
        if (first.has_value()) wide_ = widened(*first, adaptation);
        if (wide_.has_value()) set_result_dtypes(op, arguments, *first);
        for (size_t i = 0; i < parameters.size(); ++i) {
            const bool written = is_updated(parameters[i]);
            map_tensors(arguments[i], [&](const at::Tensor& t) { return substitute(t, written); });
        }
        if ((adaptation & kFromEnd) != 0) {  // of (self, dim, index)
            arguments[2] =
                counted_from_start(arguments[2].toTensor(), arguments[0].toTensor(), arguments[1].toInt());
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

    // What the operator gives, of which this is the result with a number.
    at::Tensor result(const at::Tensor& made, size_t number) const {
        for (const Substitute& substitute : substitutes_) {
            if (substitute.made.is_same(made)) return substitute.tensor;
        }
        if (!made.defined()) return made;
        if ((adaptation_ & kInOrder) != 0 && !gives_arguments_) return made.contiguous();
        if (!wide_.has_value() || made.scalar_type() != *wide_) return made;
        return made.to(result_dtypes_[std::min(number, result_dtypes_.size() - 1)]);
    }

  private:
    void set_result_dtypes(const Operator& op, const c10::IValue* arguments, at::ScalarType first) {
        result_dtypes_ = {first};
        if ((adaptation_ & kStatistics) != 0) result_dtypes_.push_back(*wide_);
        if ((adaptation_ & kGradients) != 0) {
            const at::ScalarType weight = dtype_of(op, arguments, "weight", first);
            result_dtypes_ = {dtype_of(op, arguments, "input", first), weight,
                              dtype_of(op, arguments, "bias", weight)};
        }
    }

    at::Tensor substitute(const at::Tensor& t, bool written) {
        if (!t.defined()) return t;
        at::Tensor made = t;
        if (wide_.has_value() && widened(t.scalar_type(), adaptation_).has_value()) {
            made = t.to(*wide_);
        } else if ((adaptation_ & kContiguous) != 0 && !written) {
            made = t.contiguous();
        }
        if (!made.is_same(t)) substitutes_.push_back({t, made, written});
        return made;
    }

    unsigned adaptation_;
    bool gives_arguments_;                // `out=`, or in place
    std::optional<at::ScalarType> wide_;  // what the kernel computes in, where it is another dtype
    c10::SmallVector<at::ScalarType, 3> result_dtypes_;
    std::vector<Substitute> substitutes_;
};

}  // namespace

bool has_results_in_order(const Operator& op) {
    const auto found = adaptations().find(op.operator_name().name);
    return found != adaptations().end() && (found->second & kInOrder) != 0;
}

void call_on_cpu(const Operator& op, Stack& stack) {
    const auto found = adaptations().find(op.operator_name().name);
    if (found == adaptations().end()) {
        op.callBoxed(stack);
        return;
    }
    const Adapted adapted(op, stack, found->second);
    op.callBoxed(stack);
    adapted.settle();
    size_t number = 0;
    map_results(op, stack, [&](const at::Tensor& made) { return adapted.result(made, number++); });
}

}  // namespace ascend_graph::host
