// Outputs that an InferShape function makes scalars, told from those that it leaves as they were: both have
// no dimensions.
#pragma once

#include <cstddef>
#include <vector>

#include "exe_graph/runtime/infer_shape_context.h"

namespace ascend_graph::host {

// The rank that an answer has for an output that the function made a scalar; it has 0 for one left alone.
constexpr int64_t kScalarRank = -1;

// Returns for each output whether a function that has answered made it a scalar. If an output has no
// dimensions the function is called again by `answers`, which returns whether it succeeded, with marks in
// place of such shapes.
template <typename Answers>
std::vector<bool> scalar_outputs(gert::ComputeNodeInfo& node, Answers&& answers) {
    const size_t count = node.outputs.tensors.size();
    std::vector<bool> found(count, false);
    const gert::Shape mark{-4242};
    const auto before = node.outputs.tensors;
    bool any = false;
    for (size_t i = 0; i < count; ++i) {
        if (!node.outputs.at(i)->GetOriginShape().IsScalar()) continue;
        node.outputs.at(i)->MutableOriginShape() = mark;
        any = true;
    }
    if (!any) return found;
    const bool answered = answers();
    for (size_t i = 0; i < count; ++i)
        found[i] = before[i].GetOriginShape().IsScalar() && answered &&
                   node.outputs.at(i)->GetOriginShape().IsScalar();
    node.outputs.tensors = before;
    return found;
}

}  // namespace ascend_graph::host
