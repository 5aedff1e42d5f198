// Calls the InferShape and InferDataType functions that the sources linked with this one register, without a
// definition of their operators: the caller has the prototype.
#include <algorithm>
#include <cstring>
#include <exception>
#include <string>

#include "ascend_graph/attr_values.h"
#include "ascend_graph/host_kernel.h"
#include "ascend_graph/log.h"
#include "ascend_graph/scalar_outputs.h"
#include "ascendc_host/internal/runtime.h"
#include "ascendc_host_launch.h"
#include "register/op_impl_registry.h"

namespace {

using ascend_graph::host::Tensor;
using ascend_graph::host::Value;
using ascend_graph::host::ValueKind;

// How a call ended; ascend_graph/host/infer_shape/calls.py has the same numbers.
enum Outcome : int { kDone = 0, kRefused = 1, kMissing = 2, kCrashed = 3 };

// dtype, rank and sizes of one output.
constexpr size_t kAnswer = 2 + 25;

gert::Tensor described(const Tensor& tensor) {
    gert::StorageShape shape;
    for (int32_t axis = 0; axis < tensor.rank; ++axis) {
        shape.MutableOriginShape().AppendDim(tensor.sizes[axis]);
        shape.MutableStorageShape().AppendDim(tensor.sizes[axis]);
    }
    return {shape,
            {ge::FORMAT_ND, ge::FORMAT_ND},
            gert::kOnHost,
            static_cast<ge::DataType>(tensor.dtype),
            tensor.data};
}

int told(int outcome, const std::string& text, char* message, size_t capacity) {
    const size_t length = std::min(text.size(), capacity - 1);
    std::memcpy(message, text.data(), length);
    message[length] = '\0';
    return outcome;
}

// Runs an author's function; its own status, or why it has none.
template <typename Function, typename Context>
int run(const char* name, Function function, Context& context, char* message, size_t capacity) {
    ge::graphStatus status = ge::GRAPH_SUCCESS;
    std::string thrown;
    auto body = [&] {
        try {
            status = function(&context);
        } catch (const std::exception& error) {
            thrown = error.what();
        } catch (...) {
            thrown = "an exception";
        }
    };
    const int ended =
        ascendc_host::catch_faults([](void* f) { (*static_cast<decltype(body)*>(f))(); }, &body);
    const std::string logged = ascend_graph::host::take_logged_errors();
    const std::string subject = std::string("the ") + name + " function ";
    if (ended != 0) return told(kCrashed, subject + ascendgraphEndText(ended), message, capacity);
    if (!thrown.empty()) return told(kCrashed, subject + "threw " + thrown, message, capacity);
    if (status == ge::GRAPH_SUCCESS) return kDone;
    const std::string text =
        status == ge::GRAPH_FAILED ? "GRAPH_FAILED" : "the status " + std::to_string(status);
    return told(kRefused, subject + "returned " + text + logged, message, capacity);
}

}  // namespace

extern "C" {

// Writes a line for each operator with an InferShape function: its type, whether it has an InferDataType
// function, and the positions of the inputs whose values it reads. Returns the length of the whole text.
__attribute__((visibility("default"))) size_t ascendgraphShapeFunctions(char* text, size_t capacity) {
    std::string all;
    for (const auto& [op_type, functions] : gert::OpFunctions::all()) {
        if (functions.infer_shape == nullptr) continue;
        all += op_type + (functions.infer_dtype == nullptr ? " shape" : " dtype");
        for (const size_t input : functions.data_inputs) all += " " + std::to_string(input);
        all += "\n";
    }
    told(0, all, text, capacity);
    return all.size();
}

// `values` are those of all inputs, then of all attrs; `counts` the numbers of tensors of each output. Writes
// dtype (DT_UNDEFINED where no function says it), rank (-1 for what it makes a scalar) and sizes of each
// tensor.
__attribute__((visibility("default"))) int ascendgraphInferShapes(const char* op_type, const Value* values,
                                                                  size_t inputs, size_t attrs, size_t outputs,
                                                                  const size_t* counts, int64_t* answer,
                                                                  char* message, size_t capacity) {
    const auto found = gert::OpFunctions::all().find(op_type);
    if (found == gert::OpFunctions::all().end() || found->second.infer_shape == nullptr)
        return told(kMissing, "no source registers an InferShape function for it", message, capacity);
    const gert::OpFunctions& functions = found->second;
    gert::ComputeNodeInfo node(op_type, op_type);
    for (size_t i = 0; i < inputs; ++i) {
        const bool given = values[i].kind != ValueKind::kAbsent;
        node.inputs.begin_parameter(given ? values[i].count : 0);
        for (size_t n = 0; given && n < values[i].count; ++n)
            node.inputs.add(described(values[i].tensors[n]));
    }
    for (size_t i = 0; i < attrs; ++i) {
        if (!ascend_graph::host::add_value(node.attrs, values[inputs + i])) node.attrs.add_absent();
    }
    for (const auto& add : functions.private_attrs) add(node.attrs);
    for (size_t i = 0; i < outputs; ++i) {
        node.outputs.begin_parameter(counts[i]);
        for (size_t n = 0; n < counts[i]; ++n) {
            gert::Tensor output;
            output.SetDataType(ge::DT_UNDEFINED);
            node.outputs.add(output);
        }
    }
    gert::InferShapeContext shapes(node);
    int outcome = run("InferShape", functions.infer_shape, shapes, message, capacity);
    if (outcome != kDone) return outcome;
    if (functions.infer_dtype != nullptr) {
        gert::InferDataTypeContext dtypes(node);
        outcome = run("InferDataType", functions.infer_dtype, dtypes, message, capacity);
        if (outcome != kDone) return outcome;
    }
    const std::vector<bool> scalar = ascend_graph::host::scalar_outputs(
        node, [&] { return run("InferShape", functions.infer_shape, shapes, message, capacity) == kDone; });
    for (size_t i = 0; i < node.outputs.tensors.size(); ++i, answer += kAnswer) {
        const gert::Tensor& output = *node.outputs.at(i);
        const gert::Shape& shape = output.GetOriginShape();
        answer[0] = functions.infer_dtype == nullptr ? ge::DT_UNDEFINED : output.GetDataType();
        answer[1] = scalar[i] ? ascend_graph::host::kScalarRank : static_cast<int64_t>(shape.GetDimNum());
        for (size_t axis = 0; axis < shape.GetDimNum(); ++axis) answer[2 + axis] = shape[axis];
    }
    return kDone;
}
}
