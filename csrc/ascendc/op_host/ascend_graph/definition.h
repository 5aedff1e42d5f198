// What the build of an operator package and its functions both make of a definition.
#ifndef ASCEND_GRAPH_DEFINITION_H
#define ASCEND_GRAPH_DEFINITION_H

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "ascend_graph/aclnn_objects.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace ascend_graph::host {

// A tensor's dtype, and how its memory holds it: in a format of blocks, or ND for all others.
struct TensorKind {
    ge::DataType dtype = ge::DT_UNDEFINED;
    ge::Format format = ge::FORMAT_ND;
    bool operator==(const TensorKind& other) const { return dtype == other.dtype && format == other.format; }
};

inline ge::Format kept_format(ge::Format format) { return in_blocks(format) ? format : ge::FORMAT_ND; }

// The kinds of every input, then of every output. A kernel is compiled once for each.
using Combination = std::vector<TensorKind>;

// What a definition says for the chip that is built for, by either of its names; it replaces what the
// definition says for all.
inline const ops::OpAICoreConfig* own_config(const ops::OpDef& op) {
    static constexpr bool is_3510 = ASCEND_GRAPH_NPU_ARCH == 3510;
    static constexpr const char* names[] = {is_3510 ? "ascend950" : "ascend910b",
                                            is_3510 ? "ascend910_95" : "ascend910_93"};
    for (const char* name : names) {
        const auto found = op.ai_core.configs.find(name);
        if (found != op.ai_core.configs.end()) return &found->second;
    }
    return nullptr;
}

struct Definition {
    const ops::OpDef& op;
    std::vector<ops::OpParamDef> inputs, outputs;
    std::vector<Combination> combinations;

    // Throws std::invalid_argument where the definition contradicts itself.
    explicit Definition(const ops::OpDef& defined) : op(defined) {
        const ops::OpAICoreConfig* const own = own_config(op);
        const ops::OpAICoreConfig none;
        const ops::OpAICoreConfig& config = own == nullptr ? none : *own;
        inputs = merged(op.inputs, config.inputs);
        outputs = merged(op.outputs, config.outputs);
        combine();
    }

    // The inputs and outputs, as combinations count them.
    std::vector<const ops::OpParamDef*> parameters() const {
        std::vector<const ops::OpParamDef*> all;
        for (const auto& one : inputs) all.push_back(&one);
        for (const auto& one : outputs) all.push_back(&one);
        return all;
    }
    // The input that output `index` is written over; -1 for none.
    int in_place(size_t index) const {
        for (size_t i = 0; i < inputs.size(); ++i) {
            if (inputs[i].name == outputs[index].name) return static_cast<int>(i);
        }
        return -1;
    }

  private:
    static std::vector<ops::OpParamDef> merged(const ops::OpParamDefs& common,
                                               const ops::OpParamDefs& device) {
        std::vector<ops::OpParamDef> result(common.all.begin(), common.all.end());
        for (const ops::OpParamDef& own : device.all) {
            auto same = std::find_if(result.begin(), result.end(),
                                     [&](const auto& one) { return one.name == own.name; });
            if (same == result.end())
                result.push_back(own);
            else
                *same = own;
        }
        return result;
    }

    [[noreturn]] void refuse(const std::string& text) const {
        throw std::invalid_argument(op.type + ": " + text);
    }

    // InitValue: a type that there is, one value, or one for each dtype and the same where that is the same.
    void check_initial(const ops::OpParamDef& one) const {
        for (const ops::ScalarVar& value : one.initial) {
            if (value.bytes().empty())
                refuse(one.name + ": InitValue takes 0, or a number with its ScalarType");
        }
        if (one.initial.size() < 2) return;
        if (one.initial.size() != one.dtypes.size()) {
            refuse(one.name + ": InitValue has " + std::to_string(one.initial.size()) + " values, DataType " +
                   std::to_string(one.dtypes.size()) + "; the list has one for each dtype");
        }
        for (size_t i = 0; i < one.dtypes.size(); ++i) {
            for (size_t j = 0; j < i; ++j) {
                if (one.dtypes[i] == one.dtypes[j] && one.initial[i] != one.initial[j])
                    refuse(one.name +
                           ": InitValue has two values for one dtype, which the host runtime does not tell "
                           "apart");
            }
        }
    }

    void combine() {
        const auto all = parameters();
        for (const auto* one : all) check_initial(*one);
        size_t columns = 0;
        for (const auto* one : all) {
            if (one->follows.empty() && one->dtypes.empty()) refuse(one->name + " has no DataType");
            if (one->any_dtype || !one->follows.empty()) continue;
            if (columns != 0 && one->dtypes.size() != columns) {
                refuse(one->name + " has " + std::to_string(one->dtypes.size()) +
                       " dtypes, the parameters before it " + std::to_string(columns) +
                       "; every DataType list has one entry for each combination");
            }
            columns = one->dtypes.size();
        }
        for (size_t column = 0; column < std::max<size_t>(columns, 1); ++column) {
            std::vector<Combination> row{Combination(all.size())};
            for (size_t i = 0; i < all.size(); ++i) {
                if (!all[i]->follows.empty()) continue;
                if (!all[i]->any_dtype) {
                    for (Combination& one : row) one[i].dtype = all[i]->dtypes[column];
                    continue;
                }
                widen(row, all[i]->dtypes, [i](Combination& one, ge::DataType type) { one[i].dtype = type; });
            }
            for (size_t i = 0; i < all.size(); ++i) {
                const std::vector<ge::Format>& formats = all[i]->formats;
                if (formats.empty() || !all[i]->follows_format.empty()) continue;
                if (!all[i]->any_format) {
                    for (Combination& one : row)
                        one[i].format = kept_format(formats[std::min(column, formats.size() - 1)]);
                    continue;
                }
                std::vector<ge::Format> kept;
                for (ge::Format format : formats) {
                    if (std::find(kept.begin(), kept.end(), kept_format(format)) == kept.end())
                        kept.push_back(kept_format(format));
                }
                widen(row, kept, [i](Combination& one, ge::Format format) { one[i].format = format; });
            }
            for (Combination& one : row) {
                for (size_t i = 0; i < all.size(); ++i) {
                    if (!all[i]->follows.empty())
                        one[i].dtype = one[followed(all, i, &ops::OpParamDef::follows)].dtype;
                    if (!all[i]->follows_format.empty())
                        one[i].format = one[followed(all, i, &ops::OpParamDef::follows_format)].format;
                }
                for (size_t i = 0; i < all.size(); ++i) {
                    if (all[i]->to_dtype) one[i].dtype = *all[i]->to_dtype;
                    if (!all[i]->to_dtype_of.empty())
                        one[i].dtype = one[find(all, *all[i], all[i]->to_dtype_of)].dtype;
                }
                // Combinations that differ alone in formats that all keep numbers in order are one kernel.
                if (std::find(combinations.begin(), combinations.end(), one) == combinations.end())
                    combinations.push_back(std::move(one));
            }
        }
    }

    // Every one of the values with every combination that there is.
    template <typename T, typename Set>
    void widen(std::vector<Combination>& row, const std::vector<T>& values, Set set) const {
        std::vector<Combination> wider;
        for (const Combination& one : row) {
            for (T value : values) {
                wider.push_back(one);
                set(wider.back(), value);
            }
        }
        row = std::move(wider);
        if (row.size() > most_combinations)
            refuse("its lists of dtypes and formats make more than " + std::to_string(most_combinations) +
                   " combinations");
    }

    // The parameter whose dtype or format parameter `i` has, through every step.
    size_t followed(const std::vector<const ops::OpParamDef*>& all, size_t i,
                    std::string ops::OpParamDef::* what) const {
        for (size_t steps = 0; steps <= all.size(); ++steps) {
            if ((all[i]->*what).empty()) return i;
            i = find(all, *all[i], all[i]->*what);
        }
        refuse(all[i]->name + " follows itself");
    }
    size_t find(const std::vector<const ops::OpParamDef*>& all, const ops::OpParamDef& follower,
                const std::string& name) const {
        const auto other =
            std::find_if(all.begin(), all.end(), [&](const auto* one) { return one->name == name; });
        if (other == all.end()) refuse(follower.name + " follows " + name + ", which there is not");
        return static_cast<size_t>(other - all.begin());
    }

    static constexpr size_t most_combinations = 256;
};

}  // namespace ascend_graph::host

#endif  // ASCEND_GRAPH_DEFINITION_H
