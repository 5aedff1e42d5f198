#include "shapes.h"

#include <string>

#include "aten.h"
#include "errors.h"

namespace ascend_graph::host {
namespace {

// The results of an operator that only writes into its arguments, whose shapes it does not change: in place,
// or a helper that fills what its caller has made. `out=` may be resized.
std::optional<Stack> written(const c10::FunctionSchema& schema, const Stack& arguments) {
    const auto& parameters = schema.arguments();
    bool writes = false;
    for (const c10::Argument& parameter : parameters) {
        if (!is_written(parameter)) continue;
        if (parameter.is_out()) return std::nullopt;
        writes = true;
    }
    if (!writes) return std::nullopt;
    Stack results;
    for (const c10::Argument& result : schema.returns()) {
        if (!is_written(result)) return std::nullopt;
        for (size_t i = 0; i < parameters.size(); ++i) {
            if (is_written(parameters[i]) && *parameters[i].alias_info() == *result.alias_info())
                results.push_back(arguments[i]);
        }
    }
    return results.size() == schema.returns().size() ? std::optional<Stack>(results) : std::nullopt;
}

const at::Tensor& tensor(const Operator& op, const Stack& arguments, const char* name) {
    return arguments.at(*op.schema().argumentIndexWithName(name)).toTensor();
}

template <typename T>
T value(const Operator& op, const Stack& arguments, const char* name) {
    return arguments.at(*op.schema().argumentIndexWithName(name)).to<T>();
}

// What EmbeddingBag.cpp keeps for the derivative.
void resize_embedding_bag(const Operator& op, const Stack& arguments, c10::IValue* results,
                          bool forward_only) {
    constexpr int64_t kSum = 0, kMax = 2;
    const auto& weight = tensor(op, arguments, "weight");
    const auto& offsets = tensor(op, arguments, "offsets");
    const int64_t mode = value<int64_t>(op, arguments, "mode");
    const int64_t bags = offsets.size(0) - (value<bool>(op, arguments, "include_last_offset") ? 1 : 0);
    const bool narrow = weight.scalar_type() == at::kFloat || weight.scalar_type() == at::kHalf ||
                        weight.scalar_type() == at::kBFloat16;
    const bool fast = narrow && weight.stride(1) == 1 && value<int64_t>(op, arguments, "padding_idx") < 0;
    const auto give = [&](size_t i, at::IntArrayRef sizes) {
        results[i] = at::empty(sizes, results[i].toTensor().options());
    };
    give(1, {mode == kSum && fast ? 0 : tensor(op, arguments, "indices").size(0)});
    const int64_t sizes = forward_only && mode == kSum ? offsets.size(0) : bags;
    give(2, {sizes});
    if (mode == kMax) {
        give(3, {bags, weight.size(1)});
    } else {
        give(3, {sizes});
    }
}

// Meta kernels have the shapes of CUDA's kernels where those differ from the CPU's: in what is kept for the
// derivative.
void resize_auxiliary(const Operator& op, const Stack& arguments, Stack& stack) {
    const std::string& name = op.operator_name().name;
    c10::IValue* results = stack.data() + stack.size() - op.schema().returns().size();
    if (name == "aten::_embedding_bag" || name == "aten::_embedding_bag_forward_only") {
        resize_embedding_bag(op, arguments, results, name != "aten::_embedding_bag");
    } else if (name == "aten::native_batch_norm" || name == "aten::_native_batch_norm_legit") {
        if (value<bool>(op, arguments, "training") || op.schema().arguments().back().is_out()) return;
        for (size_t i : {1, 2}) results[i] = at::empty({0}, results[i].toTensor().options());
    }
}

}  // namespace

bool infer(const Operator& op, Stack& stack, const char* deferral) {
    const bool of_values = op.hasTag(at::Tag::data_dependent_output);
    const bool of_any_shape = op.hasTag(at::Tag::dynamic_output_shape);
    const auto refuse = [&](const std::string& why) {
        TORCH_CHECK(false, name_of(op), " cannot be captured: ", deferral, " and computes nothing, ",
                    of_values || of_any_shape ? "and what the operator returns depends on the values of its "
                                                "arguments. Call it outside the graph"
                                              : "and the shapes of its results do not follow from those of "
                                                "its arguments. Call it outside the graph",
                    why);
    };
    if (of_values) refuse("");
    const size_t count = op.schema().arguments().size();
    const Stack arguments(stack.end() - static_cast<std::ptrdiff_t>(count), stack.end());
    const size_t below = stack.size() - count;
    try {
        op.callBoxed(stack);
    } catch (std::exception& error) {
        if (!of_any_shape && !is_not_implemented(error)) throw;
        const auto results = of_any_shape ? std::nullopt : written(op.schema(), arguments);
        if (!results.has_value()) {
            if (!of_any_shape && op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd))
                return false;
            refuse(" (" + text_of(error) + ")");
        }
        stack.resize(below);
        stack.insert(stack.end(), results->begin(), results->end());
    }
    resize_auxiliary(op, arguments, stack);
    return true;
}

}  // namespace ascend_graph::host
