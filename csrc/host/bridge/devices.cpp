#include "devices.h"

#include <ATen/core/Tensor.h>

#include <array>
#include <string_view>

#include "values.h"

namespace ascend_graph::host {
namespace {

using namespace std::string_view_literals;

// Arguments that may lie on the CPU next to device tensors, by the operator's and the argument's name (an
// empty one: any): what PyTorch's kernels of accelerators move to the device by themselves. `scalar`: only
// with zero dimensions.
struct Guest {
    std::string_view op;
    std::string_view argument;
    bool scalar;
};
constexpr std::array kGuests{
    Guest{"aten::copy_", "", false},
    Guest{"aten::_foreach_copy_", "", false},
    Guest{"aten::_copy_from", "", false},
    Guest{"aten::_copy_from_and_resize", "", false},
    Guest{"aten::index", "indices", false},
    Guest{"aten::_unsafe_index", "indices", false},
    Guest{"aten::index_put", "indices", false},
    Guest{"aten::index_put_", "indices", false},
    Guest{"aten::_unsafe_index_put", "indices", false},
    Guest{"aten::_index_put_impl_", "indices", false},
    Guest{"aten::index_put", "values", true},
    Guest{"aten::index_put_", "values", true},
    Guest{"aten::_unsafe_index_put", "values", true},
    Guest{"aten::_index_put_impl_", "values", true},
    Guest{"aten::index_fill", "value", true},
    Guest{"aten::index_fill_", "value", true},
    Guest{"aten::masked_fill", "value", true},
    Guest{"aten::masked_fill_", "value", true},
    Guest{"aten::fill", "value", true},
    Guest{"aten::fill_", "value", true},
    Guest{"aten::where", "", true},
    Guest{"aten::addcmul", "tensor2", true},
    Guest{"aten::addcmul_", "tensor2", true},
    Guest{"aten::bernoulli_", "p", false},
    Guest{"aten::linspace", "", true},
    Guest{"aten::logspace", "", true},
    Guest{"aten::_foreach_addcdiv", "scalars", false},
    Guest{"aten::_foreach_addcdiv_", "scalars", false},
    Guest{"aten::_foreach_addcmul", "scalars", false},
    Guest{"aten::_foreach_addcmul_", "scalars", false},
    Guest{"aten::_foreach_add", "other", true},
    Guest{"aten::_foreach_add_", "other", true},
    Guest{"aten::_foreach_mul", "other", true},
    Guest{"aten::_foreach_mul_", "other", true},
    Guest{"aten::_foreach_div", "other", true},
    Guest{"aten::_foreach_div_", "other", true},
    Guest{"aten::_fused_adam_", "lr", true},
    Guest{"aten::_fused_adamw_", "lr", true},
    Guest{"aten::_fused_sgd_", "lr", true},
    Guest{"aten::_fused_adagrad_", "lr", true},
    Guest{"aten::is_same_size", "", false},
};

// Operators made with TensorIterator take one CPU tensor without dimensions. PyTorch tags them "pointwise",
// except the first; the others are tagged so and do not take it. (Its meta kernels, which run the same
// TensorIterator, tell which.)
constexpr std::array kMoreIterated{"aten::floor_divide"sv, "aten::floor_divide_"sv, "aten::rsub"sv,
                                   "aten::mse_loss"sv, "aten::smooth_l1_loss"sv};
constexpr std::array kNotIterated{
    "aten::addcdiv"sv, "aten::addcdiv_"sv, "aten::clamp"sv,    "aten::clamp_"sv,
    "aten::equal"sv,   "aten::addcmul"sv,  "aten::addcmul_"sv, "aten::native_dropout_backward"sv};

template <typename List>
bool contains(const List& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool takes_a_scalar(const c10::OperatorHandle& op) {
    const std::string& name = op.operator_name().name;
    return op.hasTag(at::Tag::pointwise) ? !contains(kNotIterated, name) : contains(kMoreIterated, name);
}

bool is_guest(std::string_view op, const std::string& argument, bool scalar) {
    return std::any_of(kGuests.begin(), kGuests.end(), [&](const Guest& guest) {
        return guest.op == op && (guest.argument.empty() || guest.argument == argument) &&
               (scalar || !guest.scalar);
    });
}

bool on_cpu_without_dimensions(const at::Tensor& t) { return t.dim() == 0 && t.device().is_cpu(); }

void check_mixed_devices(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
    const auto& name = op.operator_name();
    const auto& parameters = op.schema().arguments();
    std::optional<c10::Device> common;
    for (size_t i = 0; i < arguments.size(); ++i) {
        for_each_tensor(arguments[i], [&](const at::Tensor& t) {
            const bool guest = t.device().is_cpu() && is_guest(name.name, parameters[i].name(), t.dim() == 0);
            if (!common.has_value() && !guest && !on_cpu_without_dimensions(t)) common = t.device();
        });
    }
    int scalars = takes_a_scalar(op) ? 1 : 0;
    for (size_t i = 0; i < arguments.size(); ++i) {
        const c10::Argument& parameter = parameters[i];
        const bool written = parameter.alias_info() != nullptr && parameter.alias_info()->isWrite();
        for_each_tensor(arguments[i], [&](const at::Tensor& t) {
            if (!common.has_value()) common = t.device();
            if (t.device() == *common) return;
            // Copies go between any devices.
            if (is_guest(name.name, parameter.name(), t.dim() == 0) &&
                (t.device().is_cpu() || parameter.name() != "indices"))
                return;
            if (!written && on_cpu_without_dimensions(t) && scalars-- > 0) return;
            TORCH_CHECK(false,
                        "Expected all tensors to be on the same device, but found at least two devices, ",
                        *common, " and ", t.device(), "! (when checking argument for argument ",
                        parameter.name(), " in method ", name, ")");
        });
    }
}

}  // namespace

void check_same_device(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
    std::optional<c10::Device> first;
    bool mixed = false;
    for (const c10::IValue& value : arguments) {
        for_each_tensor(value, [&](const at::Tensor& t) {
            if (!first.has_value()) first = t.device();
            mixed = mixed || t.device() != *first;
        });
    }
    if (mixed) check_mixed_devices(op, arguments);
}

}  // namespace ascend_graph::host
