// The functions of an operator package that is made from an operator project: from a call's values to the
// author's tiling function, and from what that decided to the author's kernel.
//
// A call is prepared (tiling runs, the workspace's size is known) and then run, any number of times. Kernels
// are shared libraries, one for each combination of dtypes (and, where the source asks the preprocessor for
// it, each tiling key), loaded when they are first needed.
#ifndef ASCEND_GRAPH_PACKAGE_H
#define ASCEND_GRAPH_PACKAGE_H

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <new>

#include "acl/host_acl.h"
#include "ascend_graph/aclnn_adapter.h"
#include "ascend_graph/attr_values.h"
#include "ascend_graph/call_memory.h"
#include "ascend_graph/definition.h"
#include "ascend_graph/kernel_context.h"
#include "ascend_graph/log.h"
#include "ascend_graph/program_output.h"
#include "ascend_graph/scalar_outputs.h"
#include "ascendc_host/internal/pipes.h"
#include "graph/utils/type_utils.h"

namespace ascend_graph::host {

// Calls an author's function. A fault of the processor in it, one that never ends, and Ctrl-C are a failure
// of the call, not the end of the process.
template <typename Definition, typename F>
void call_author(int code, const std::string& what, const Definition& definition,
                 const gert::ComputeNodeInfo& node, F&& function) {
    gert::asked_without_values = nullptr;
    const int ended = ascendc_host::catch_faults([](void* f) { (*static_cast<F*>(f))(); }, &function);
    if (ended == 0) return;
    std::string hint;
    if (ended == SIGSEGV || ended == SIGBUS) {
        hint = "; an input, attr or shape that is not there is null";
        for (size_t i = 0; i < definition.inputs.size() && gert::asked_without_values != nullptr; ++i) {
            for (size_t j = 0; j < node.inputs.parameters[i].GetInstanceNum(); ++j) {
                if (node.inputs.at(node.inputs.index_of(i, j)) == gert::asked_without_values)
                    hint = "; the values of input " + definition.inputs[i].name +
                           " are on the device: write ValueDepend(OPTIONAL) at it in the definition";
            }
        }
    }
    throw OperatorFailure(code, what + " " + ascendgraphEndText(ended) + hint);
}

// The tensors that a call gives for each input, then for each output.
using Arguments = std::vector<Span<Tensor>>;

class Operator {
  public:
    // `snake_name` names its kernels in `directory`.
    Operator(const char* op_type, const char* snake_name, std::string directory)
        : type_(op_type),
          stem_(std::move(directory) + "/" + snake_name),
          definition_(*ops::OpDef::all().at(op_type)),
          functions_(gert::OpFunctions::all()[op_type]),
          kernels_(definition_.combinations.size()) {
        for (const auto* one = ascendc_host::tiling_classes(); one != nullptr; one = one->next) {
            const std::string name = one->op_type;  // the operator's, or the operator's for one tiling key
            if (name == type_ || name.compare(0, type_.size() + 1, type_ + "_") == 0)
                functions_.tiling_capacity = std::max(functions_.tiling_capacity, one->size);
        }
        if (functions_.tiling_capacity == 0) functions_.tiling_capacity = kTilingCapacity;
    }

    const std::string& type() const { return type_; }

    // A tiled call, ready to run.
    class Call;
    std::unique_ptr<Call> prepare(const Value* values, size_t count);

    // A call's values with the tensors that the operator takes in FRACTAL_NZ kept so, as GE has them before
    // it.
    std::vector<Value> in_its_formats(const Value* values, size_t count,
                                      std::deque<MatrixBlocks>& blocks) const {
        std::vector<Value> given(values, values + count);
        const Arguments arguments = input_arguments(values);
        if (find_combination(arguments) != definition_.combinations.size()) return given;
        const size_t c = find_combination(arguments, false);
        for (size_t i = 0; c != definition_.combinations.size() && i < arguments.size(); ++i) {
            const TensorKind& kind = definition_.combinations[c][i];
            if (kind.format != ge::FORMAT_FRACTAL_NZ || given[i].kind != ValueKind::kTensor) continue;
            given[i].tensors = &blocks.emplace_back(arguments[i][0]).tensor;
        }
        return given;
    }

    // What a hand-written aclnn function asks: values are a request (0 run, 1 check the tiling, 2 infer), the
    // numbers of inputs, attrs and outputs, then these. What it leaves out at the end is absent.
    void launch(const Value* values);

    // Writes dtype, rank (-1 for what the function makes a scalar) and sizes of each output, as int64, into
    // the tensors after inputs and attrs.
    void infer(const Value* values, size_t count) {
        const size_t inputs = definition_.inputs.size(), attrs = definition_.op.attrs.size();
        if (count != inputs + attrs + definition_.outputs.size())
            fail(kInferShapeFailed, "wrong number of arguments");
        Arguments arguments = input_arguments(values);
        gert::ComputeNodeInfo node = make_node(arguments, values + inputs);
        for (const ops::OpParamDef& output : definition_.outputs) {
            if (output.kind == ops::DYNAMIC)
                fail(kInferShapeFailed,
                     "output " + output.name + " is dynamic; in graphs it needs a shape relation");
            if (output.shape_by_kernel)
                fail(kInferShapeFailed,
                     "the shape of output " + output.name + " is known to its kernel alone");
            node.outputs.begin_parameter(1);
            node.outputs.add(gert::Tensor());
        }
        if (functions_.infer_shape == nullptr)
            fail(kInferShapeFailed,
                 "it has no InferShape function; in graphs it needs one, or a shape relation");
        gert::InferShapeContext shapes(node);
        ge::graphStatus status = ge::GRAPH_SUCCESS;
        call_author(kInferShapeFailed, type_ + ": the InferShape function", definition_, node,
                    [&] { status = functions_.infer_shape(&shapes); });
        if (status != ge::GRAPH_SUCCESS)
            fail(kInferShapeFailed, "the InferShape function returned " + failure_text(status));
        infer_dtypes(node, arguments);
        const std::vector<bool> scalar = scalar_outputs(node, [&] {
            try {
                call_author(kInferShapeFailed, type_ + ": the InferShape function", definition_, node,
                            [&] { status = functions_.infer_shape(&shapes); });
            } catch (const OperatorFailure&) {
                return false;
            }
            take_logged_errors();
            return status == ge::GRAPH_SUCCESS;
        });
        for (size_t i = 0; i < definition_.outputs.size(); ++i) {
            const gert::Tensor& output = *node.outputs.at(i);
            const gert::Shape& shape = output.GetOriginShape();
            int64_t* target = values[inputs + attrs + i].tensors->as<int64_t>();
            *target++ = output.GetDataType();
            *target++ = scalar[i] ? kScalarRank : static_cast<int64_t>(shape.GetDimNum());
            for (size_t axis = 0; axis < shape.GetDimNum(); ++axis) {
                if (shape[axis] < 0) {
                    fail(kInferShapeFailed, "the InferShape function left dimension " + std::to_string(axis) +
                                                " of output " + definition_.outputs[i].name +
                                                " unknown; every input shape is known here");
                }
                *target++ = shape[axis];
            }
        }
    }

  private:
    using Launch = void (*)(uint32_t blocks, uint64_t tiling_key, void* const* arguments);

    static constexpr size_t kTilingCapacity = 16 * 1024;

    [[noreturn]] void fail(int code, const std::string& text) const {
        throw OperatorFailure(code, type_ + ": " + text);
    }
    // With what the function logged, which is then forgotten.
    static std::string failure_text(ge::graphStatus status) {
        const std::string logged = take_logged_errors();
        return (status == ge::GRAPH_FAILED ? "GRAPH_FAILED" : "the status " + std::to_string(status)) +
               (logged.empty() ? "; it logged no reason: add OP_LOGE to it" : logged);
    }
    // Whether the aclnn function takes the values of a parameter.
    bool is_numbers(size_t i) const {
        return i < definition_.inputs.size() && definition_.inputs[i].passed_as != ops::PassedAs::TENSOR;
    }
    static Span<Tensor> tensors_of(const Value& value) {
        return value.kind == ValueKind::kAbsent ? Span<Tensor>{} : Span<Tensor>{value.tensors, value.count};
    }
    Arguments input_arguments(const Value* values) const {
        Arguments arguments;
        for (size_t i = 0; i < definition_.inputs.size(); ++i) arguments.push_back(tensors_of(values[i]));
        return arguments;
    }

    static gert::Tensor described(const Tensor& tensor, void* data) {
        gert::StorageShape shape;
        for (int32_t axis = 0; axis < tensor.rank; ++axis)
            shape.MutableOriginShape().AppendDim(tensor.sizes[axis]);
        const Span<int64_t> kept = in_blocks(tensor.format)
                                       ? Span<int64_t>{tensor.kept, static_cast<size_t>(tensor.kept_rank)}
                                       : Span<int64_t>{tensor.sizes, static_cast<size_t>(tensor.rank)};
        for (int64_t size : kept) shape.MutableStorageShape().AppendDim(size);
        return {shape,
                {ge::FORMAT_ND, kind_of(tensor).format},
                gert::kOnHost,
                static_cast<ge::DataType>(tensor.dtype),
                data};
    }

    gert::ComputeNodeInfo make_node(const Arguments& arguments, const Value* attrs) {
        gert::ComputeNodeInfo node(type_, type_);
        for (size_t i = 0; i < arguments.size(); ++i) {
            const bool is_input = i < definition_.inputs.size();
            gert::NodeTensors& side = is_input ? node.inputs : node.outputs;
            const bool values = is_input && (is_numbers(i) || functions_.data_inputs.count(i) != 0);
            side.begin_parameter(arguments[i].size());
            for (const Tensor& tensor : arguments[i])
                side.add(described(tensor, values ? tensor.data : nullptr));
        }
        for (size_t i = 0; i < definition_.op.attrs.size(); ++i)
            add_attr(node.attrs, definition_.op.attrs[i], attrs[i]);
        for (const auto& add : functions_.private_attrs) add(node.attrs);
        return node;
    }

    void add_attr(gert::RuntimeAttrs& attrs, const ops::OpAttrDef& attr, const Value& value) {
        if (add_value(attrs, value)) return;
        if (value.kind != ValueKind::kAbsent)
            fail(kParamInvalid, "attr " + attr.name + " is given as a tensor");
        if (const auto* text = std::get_if<std::string>(&attr.value)) {
            attrs.add(*text);
        } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&attr.value)) {
            attrs.add(gert::TypedContinuousVector<int64_t>(ints->data(), ints->size()));
        } else if (const auto* floats = std::get_if<std::vector<float>>(&attr.value)) {
            attrs.add(gert::TypedContinuousVector<float>(floats->data(), floats->size()));
        } else if (const auto* bools = std::get_if<std::vector<bool>>(&attr.value)) {
            auto& kept = flags_[attr.name];
            if (kept == nullptr) {
                kept.reset(new bool[bools->size() + 1]);
                std::copy(bools->begin(), bools->end(), kept.get());
            }
            attrs.add(gert::TypedContinuousVector<bool>(kept.get(), bools->size()));
        } else if (const auto* integer = std::get_if<int64_t>(&attr.value)) {
            attrs.add(*integer);
        } else if (const auto* number = std::get_if<float>(&attr.value)) {
            attrs.add(*number);
        } else if (const auto* flag = std::get_if<bool>(&attr.value)) {
            attrs.add(*flag);
        } else {
            fail(kParamInvalid,
                 "attr " + attr.name + " is a list of lists, which aclnn functions do not take");
        }
    }

    static TensorKind kind_of(const Tensor& tensor) {
        return {static_cast<ge::DataType>(tensor.dtype), kept_format(static_cast<ge::Format>(tensor.format))};
    }

    // The first combination that has the kinds of every tensor there is, or their dtypes alone; the number of
    // combinations where none has. Numbers are converted to what the combination has for them.
    size_t find_combination(const Arguments& arguments, bool by_format = true) const {
        for (size_t c = 0; c < definition_.combinations.size(); ++c) {
            bool fits = true;
            for (size_t i = 0; i < arguments.size() && fits; ++i) {
                if (is_numbers(i)) continue;
                const TensorKind& known = definition_.combinations[c][i];
                for (const Tensor& tensor : arguments[i])
                    fits = fits && (by_format ? kind_of(tensor) == known : tensor.dtype == known.dtype);
            }
            if (fits) return c;
        }
        return definition_.combinations.size();
    }

    void infer_dtypes(gert::ComputeNodeInfo& node, const Arguments& inputs) {
        if (functions_.infer_dtype != nullptr) {
            gert::InferDataTypeContext dtypes(node);
            ge::graphStatus status = ge::GRAPH_SUCCESS;
            call_author(kInferShapeFailed, type_ + ": the InferDataType function", definition_, node,
                        [&] { status = functions_.infer_dtype(&dtypes); });
            if (status != ge::GRAPH_SUCCESS)
                fail(kInferShapeFailed, "the InferDataType function returned " + failure_text(status));
        }
        // What no function says, the kernel does.
        const size_t c = find_combination(inputs);
        const bool known = c != definition_.combinations.size();
        if (!known && functions_.infer_dtype == nullptr) fail(kInferShapeFailed, no_kernel(inputs));
        for (size_t i = 0; known && i < definition_.outputs.size(); ++i) {
            gert::Tensor& output = *node.outputs.at(i);
            const gert::Shape& shape = output.GetOriginShape();
            const bool absent = shape.GetDimNum() == 1 && shape.GetDim(0) == 0;
            if (output.GetDataType() == ge::DT_UNDEFINED && !(absent && functions_.infer_dtype != nullptr))
                output.SetDataType(definition_.combinations[c][inputs.size() + i].dtype);
        }
    }

    std::string no_kernel(const Arguments& arguments) const {
        const auto parameters = definition_.parameters();
        std::string given, known;
        for (size_t i = 0; i < arguments.size(); ++i) {
            given += (i == 0 ? "" : ", ") + parameters[i]->name + ": ";
            given += arguments[i].size() == 0 ? "none" : kind_name(kind_of(arguments[i][0]));
        }
        for (const Combination& one : definition_.combinations) {
            known += known.empty() ? "" : "; ";
            for (size_t i = 0; i < one.size(); ++i)
                known += (i == 0 ? "" : ", ") + parameters[i]->name + ": " + kind_name(one[i]);
        }
        return "no kernel takes " + given + "; the definition has " + known;
    }
    static std::string kind_name(const TensorKind& kind) {
        const std::string name = dtype_name(kind.dtype);
        return kind.format == ge::FORMAT_ND
                   ? name
                   : name + " in " + ge::TypeUtils::FormatToSerialString(kind.format);
    }
    static std::string dtype_name(int32_t dtype) {
        const char* name = "";
        switch (dtype) {
#define ASCEND_GRAPH_NAME(ge, number, bits, torch) \
    case number:                                   \
        name = torch;                              \
        break;
            ASCEND_GRAPH_DTYPES(ASCEND_GRAPH_NAME)
#undef ASCEND_GRAPH_NAME
            default:
                break;
        }
        return *name != '\0' ? name : "ge::DataType " + std::to_string(dtype);
    }

    // One library is for all tiling keys, or there is one for each.
    Launch kernel(size_t combination, uint64_t key) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (kernels_[combination] != nullptr) return kernels_[combination];
        Launch& one = kernels_by_key_[{combination, key}];
        if (one != nullptr) return one;
        const std::string stem = stem_ + "_" + std::to_string(combination), whole = stem + ".so";
        if (access(whole.c_str(), F_OK) != 0) compile_later_key(stem, "whole", whole);
        if (access(whole.c_str(), F_OK) == 0) return kernels_[combination] = load(whole);
        const std::string path = stem + "_" + std::to_string(key) + ".so";
        if (access(path.c_str(), F_OK) != 0) compile_later_key(stem, std::to_string(key), path);
        if (access(path.c_str(), F_OK) != 0 && !has_kernels(stem))
            fail(kNoKernel, "the library of its kernel is missing: there is neither " + whole + " nor " +
                                path + "; build the package again");
        if (access(path.c_str(), F_OK) != 0)
            fail(kNoKernel,
                 "its kernel is compiled for no tiling key " + std::to_string(key) +
                     " of these dtypes, which the tiling function set: no TILING_KEY_IS in it names it");
        return one = load(path);
    }
    // Whether some tiling key has a library: it begins with the stem and a number.
    static bool has_kernels(const std::string& stem) {
        const std::filesystem::path whole(stem + "_");
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator(whole.parent_path(), ignored)) {
            const std::string name = entry.path().filename();
            const std::string begin = whole.filename();
            if (name.compare(0, begin.size(), begin) == 0 && std::isdigit(name[begin.size()])) return true;
        }
        return false;
    }
    // Compiles the library of a tiling key that the build of the package left for the first launch, if it
    // did.
    void compile_later_key(const std::string& stem, const std::string& key, const std::string& path) const {
        std::ifstream keys(stem + ".keys");
        std::string python, line;
        std::getline(keys, python);
        while (std::getline(keys, line) && line != key) {
        }
        if (!keys) return;
        if (const char* named = std::getenv("ASCEND_GRAPH_PYTHON"); named != nullptr && *named != '\0')
            python = named;
        // Without the working directory, where anything may lie.
        const char* program =
            "import sys; sys.path.pop(0); from ascend_graph.host.packages.kernel_keys import main; main()";
        const std::array<const char*, 6> arguments{python.c_str(), "-c",        program,
                                                   stem.c_str(),   key.c_str(), nullptr};
        const std::string said = output_of(arguments.data());
        if (access(path.c_str(), F_OK) != 0)
            fail(kNoKernel, (key == "whole" ? "its kernel for these dtypes" : "its tiling key " + key) +
                                ", which is compiled when it is first launched, is not: " +
                                (said.empty() ? python + " failed without a message" : said));
    }
    Launch load(const std::string& path) const {
        void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) fail(kNoKernel, std::string("its kernel does not load: ") + dlerror());
        const auto launch = reinterpret_cast<Launch>(dlsym(library, "ascendgraphLaunchKernel"));
        if (launch == nullptr) fail(kNoKernel, path + " is not a kernel of an operator project");
        return launch;
    }

    const void* compile_info(gert::ComputeNodeInfo& node) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (compile_info_ == nullptr) {
            std::shared_ptr<void> info;
            if (functions_.make_compile_info != nullptr) info = functions_.make_compile_info();
            if (functions_.tiling_parse != nullptr) {
                gert::TilingParseContext context(node, info);
                ge::graphStatus status = ge::GRAPH_SUCCESS;
                call_author(kTilingFailed, type_ + ": the TilingParse function", definition_, node,
                            [&] { status = functions_.tiling_parse(&context); });
                if (status != ge::GRAPH_SUCCESS)
                    fail(kTilingFailed, "the TilingParse function returned " + failure_text(status));
            }
            compile_info_ = std::move(info);
        }
        return compile_info_.get();
    }

    static constexpr int kParamInvalid = 161002;  // ACLNN_ERR_PARAM_INVALID

    const std::string type_;
    const std::string stem_;
    const Definition definition_;
    gert::OpFunctions functions_;
    std::mutex mutex_;
    std::vector<Launch> kernels_;
    std::map<std::pair<size_t, uint64_t>, Launch> kernels_by_key_;
    std::shared_ptr<void> compile_info_;
    std::map<std::string, std::unique_ptr<bool[]>> flags_;
};

// Borrows the call's values.
class Operator::Call {
  public:
    Call(Operator& op, Arguments arguments, const Value* attrs) : op_(op), arguments_(std::move(arguments)) {
        size_t outputs = 0, empty = 0;
        for (size_t i = op.definition_.inputs.size(); i < arguments_.size(); ++i) {
            for (const Tensor& output : arguments_[i]) ++outputs, empty += output.numel() == 0;
        }
        empty_ = outputs != 0 && empty == outputs;
        if (empty_) return;  // nothing to compute: as on a device, no kernel starts
        const size_t combination = op.find_combination(arguments_);
        if (combination == op.definition_.combinations.size()) op.fail(kNoKernel, op.no_kernel(arguments_));
        for (size_t i = 0; i < op.definition_.inputs.size(); ++i) {
            if (!op.is_numbers(i) || arguments_[i].size() == 0) continue;
            numbers_.emplace_back(arguments_[i][0], op.definition_.combinations[combination][i].dtype);
            arguments_[i] = {&numbers_.back().tensor, 1};
        }
        hold_contexts(attrs);
        tile(attrs);
        launch_ = op.kernel(combination, tiling_key_);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    size_t workspace_bytes() const { return workspace_bytes_; }

    // Refuses tensors with gaps, which a launch on a device would read as if they had none.
    void check_memory() const {
        const auto parameters = op_.definition_.parameters();
        for (size_t i = 0; i < arguments_.size(); ++i) {
            for (const Tensor& tensor : arguments_[i]) {
                if (in_blocks(tensor.format) || tensor.is_contiguous() || parameters[i]->ignore_contiguous)
                    continue;
                op_.fail(kParamInvalid, "parameter " + parameters[i]->name +
                                            " has gaps in its memory; call l0op::Contiguous before, or "
                                            "l0op::ViewCopy after");
            }
        }
    }

    void run(void* workspace, size_t bytes) const {
        if (empty_) return;
        if (bytes < workspace_bytes_ || (workspace == nullptr && workspace_bytes_ != 0)) {
            op_.fail(kParamInvalid, "a workspace of " + std::to_string(workspace == nullptr ? 0 : bytes) +
                                        " bytes is given, its tiling asked for " +
                                        std::to_string(workspace_bytes_));
        }
        std::vector<DeviceBuffer> kept;
        std::vector<std::pair<const Tensor*, char*>> results;  // packed outputs, to be spread again
        std::vector<void*> pointers;
        std::vector<ascendc_host::ArgumentMemory> memory;
        const size_t inputs = op_.definition_.inputs.size();
        const auto parameters = op_.definition_.parameters();
        for (size_t i = 0; i < arguments_.size(); ++i) {
            const bool dynamic = parameters[i]->kind == ops::DYNAMIC;
            std::vector<void*> addresses;
            for (const Tensor& tensor : arguments_[i]) {
                addresses.push_back(packed(tensor, *parameters[i], i >= inputs, kept, results));
                memory.push_back({addresses.back(), memory_of(tensor)});
            }
            pointers.push_back(dynamic             ? tensor_list(arguments_[i], addresses, kept)
                               : addresses.empty() ? nullptr
                                                   : addresses[0]);
        }
        pointers.push_back(ascendc_host::user_workspace(workspace, workspace_bytes_));
        leave_old_contents(workspace);
        // Kernels share results in it, each by a tensor of its own part: all of it is one argument's memory.
        memory.push_back({workspace, workspace_bytes_});
        pointers.push_back(tiling_data(kept));
        ascendc_host::set_contexts(contexts_);
        ascendc_host::set_arguments(memory);
        launch_(blocks_, tiling_key_, pointers.data());
        for (const auto& [tensor, data] : results) copy_elements(*tensor, item_size(*tensor), data, false);
    }

  private:
    static constexpr int kParamInvalid = Operator::kParamInvalid;

    // What a kernel finds in its own part of the workspace is what another one left there, never zeros that
    // it could count on. Of a large one the begin is enough to show it.
    void leave_old_contents(void* workspace) const {
        constexpr int unset = 0xfe;
        const size_t most = ascendc_host::pipes_are_checked ? SIZE_MAX : 1024 * 1024;
        if (workspace_bytes_ > ascendc_host::system_workspace)
            std::memset(ascendc_host::user_workspace(workspace, workspace_bytes_), unset,
                        std::min(most, workspace_bytes_ - ascendc_host::system_workspace));
    }
    // The communicators that the definition's attrs name; an empty name is none.
    void hold_contexts(const Value* attrs) {
        const auto& known = op_.definition_.op.attrs;
        const auto& groups = op_.definition_.op.mc2.groups;
        if (groups.size() > contexts_.size())
            op_.fail(kParamInvalid,
                     "HcclGroup names " + std::to_string(groups.size()) + " communicators; valid: 1 or 2");
        for (size_t i = 0; i < groups.size(); ++i) {
            const auto found = std::find_if(known.begin(), known.end(),
                                            [&](const ops::OpAttrDef& one) { return one.name == groups[i]; });
            if (found == known.end())
                op_.fail(kParamInvalid,
                         "HcclGroup names the attr " + groups[i] + ", which its definition has not");
            const Value& value = attrs[found - known.begin()];
            if (value.kind != ValueKind::kString || *value.s == '\0') continue;
            KernelContext* context = nullptr;
            void* held = nullptr;
            if (ascendgraphHoldContext(value.s, &context, &held) != 0)
                op_.fail(kParamInvalid, "attr " + groups[i] + ": " + ascendgraphRecentError());
            held_.push_back(held);
            contexts_[i] = context->address();
        }
    }

    void tile(const Value* attrs) {
        const gert::OpFunctions& functions = op_.functions_;
        gert::ComputeNodeInfo node = op_.make_node(arguments_, attrs);
        if (functions.tiling == nullptr)
            op_.fail(kTilingFailed,
                     "it has no tiling function; name it with AICore().SetTiling(...) or IMPL_OP_OPTILING");
        gert::TilingContext context(node, functions.tiling_capacity, op_.compile_info(node));
        ge::graphStatus status = ge::GRAPH_SUCCESS;
        call_author(kTilingFailed, op_.type_ + ": the tiling function", op_.definition_, node,
                    [&] { status = functions.tiling(&context); });
        ascendc_host::forget_tiling_data();
        if (status != ge::GRAPH_SUCCESS)
            op_.fail(kTilingFailed, "the tiling function returned " + Operator::failure_text(status));
        const gert::TilingData& data = *context.GetRawTilingData();
        if (data.GetDataSize() > data.GetCapacity()) {
            op_.fail(kTilingFailed, "the tiling function made " + std::to_string(data.GetDataSize()) +
                                        " bytes of tiling data; their buffer has " +
                                        std::to_string(data.GetCapacity()) +
                                        ", the size of the structure that REGISTER_TILING_DATA_CLASS names");
        }
        if (context.GetBlockDim() == 0)
            op_.fail(kTilingFailed, "the tiling function set no number of blocks (SetBlockDim)");
        const auto* bytes = static_cast<const char*>(data.GetData());
        tiling_.assign(bytes, bytes + data.GetDataSize());
        blocks_ = context.GetBlockDim();
        tiling_key_ = context.GetTilingKey();
        workspace_bytes_ = context.workspace_bytes();
        zeroed_ = context.NeedAtomic();
    }

    // The memory that the kernel gets for a tensor: its own where that is packed, else a packed copy.
    void* packed(const Tensor& tensor, const ops::OpParamDef& parameter, bool is_output,
                 std::vector<DeviceBuffer>& kept,
                 std::vector<std::pair<const Tensor*, char*>>& results) const {
        void* data = tensor.data;
        const auto dtype = static_cast<ge::DataType>(tensor.dtype);
        if (ge::GetSizeByDataType(dtype) > ge::kDataTypeSizeBitOffset) {
            // Elements that share bytes: no copy can put them in order, and no value is theirs alone.
            if (in_blocks(tensor.format) || !tensor.is_contiguous() ||
                (is_output && !parameter.initial.empty()))
                op_.fail(kParamInvalid, "parameter " + parameter.name +
                                            ", whose elements are less than a byte, is a view, in blocks, or "
                                            "has InitValue; a kernel takes it whole and in order");
            if (is_output && zeroed_)
                std::memset(data, 0, static_cast<size_t>(ge::GetSizeInBytes(tensor.numel(), dtype)));
            return data;
        }
        const size_t item = item_size(tensor);
        if (in_blocks(tensor.format)) {
            if (!tensor.is_contiguous() || tensor.view_offset != 0) {
                op_.fail(kParamInvalid, "parameter " + parameter.name + " is a view of a tensor in " +
                                            Operator::kind_name(Operator::kind_of(tensor)) +
                                            "; a kernel takes whole ones");
            }
            int64_t count = 1;
            for (int32_t axis = 0; axis < tensor.kept_rank; ++axis) count *= tensor.kept[axis];
            if (is_output) initialize(data, static_cast<size_t>(count) * item, tensor, parameter);
            return data;
        }
        if (!tensor.is_contiguous() && !parameter.ignore_contiguous) {
            kept.emplace_back(static_cast<size_t>(tensor.numel()) * item);
            data = kept.back().data();
            copy_elements(tensor, item, static_cast<char*>(data), true);
            if (is_output) results.emplace_back(&tensor, static_cast<char*>(data));
        }
        if (is_output) initialize(data, static_cast<size_t>(tensor.numel()) * item, tensor, parameter);
        return data;
    }

    // The bytes from a tensor's first element to the end of its last.
    static size_t memory_of(const Tensor& tensor) {
        int64_t last = 0;
        const bool blocks = in_blocks(tensor.format);
        int64_t count = 1;
        for (int32_t axis = 0; axis < (blocks ? tensor.kept_rank : tensor.rank); ++axis) {
            const int64_t size = blocks ? tensor.kept[axis] : tensor.sizes[axis];
            count *= size;
            if (!blocks) last += (size - 1) * tensor.strides[axis];
        }
        if (count == 0) return 0;
        const int64_t bytes = ge::GetSizeInBytes(blocks ? count : std::max(count, last + 1),
                                                 static_cast<ge::DataType>(tensor.dtype));
        return bytes < 0 ? 0 : static_cast<size_t>(bytes);
    }

    // What the definition says that an output holds before the kernel starts.
    void initialize(void* data, size_t size, const Tensor& tensor, const ops::OpParamDef& parameter) const {
        if (data == nullptr || (!zeroed_ && parameter.initial.empty())) return;
        std::string element(1, '\0');
        if (!parameter.initial.empty()) element = initial_of(parameter, tensor.dtype).bytes();
        auto* bytes = static_cast<char*>(data);
        for (size_t i = 0; i < size; ++i) bytes[i] = element[i % element.size()];
    }
    static const ops::ScalarVar& initial_of(const ops::OpParamDef& parameter, int32_t dtype) {
        if (parameter.initial.size() == 1) return parameter.initial.front();
        const auto found =
            std::find(parameter.dtypes.begin(), parameter.dtypes.end(), static_cast<ge::DataType>(dtype));
        return parameter.initial[static_cast<size_t>(found - parameter.dtypes.begin())];
    }

    // The tiling data in device memory, at the end of its allocation: a kernel that reads beyond it is found
    // out.
    void* tiling_data(std::vector<DeviceBuffer>& kept) const {
        if (tiling_.empty()) return nullptr;
        kept.emplace_back(tiling_.size());
        const void* base = nullptr;
        size_t size = 0;
        auto* data = static_cast<char*>(kept.back().data());
        if (ascendgraphAllocationExtent(data, &base, &size)) data += size - tiling_.size();
        return std::memcpy(data, tiling_.data(), tiling_.size());
    }

    // What ListTensorDesc reads: the offset of the addresses, each tensor's rank, index and sizes, the
    // addresses.
    static void* tensor_list(Span<Tensor> tensors, const std::vector<void*>& addresses,
                             std::vector<DeviceBuffer>& kept) {
        std::vector<uint64_t> words{0};
        for (size_t i = 0; i < tensors.size(); ++i) {
            words.push_back(static_cast<uint64_t>(i) << 32 | static_cast<uint32_t>(tensors[i].rank));
            words.insert(words.end(), tensors[i].sizes, tensors[i].sizes + tensors[i].rank);
        }
        words[0] = words.size() * sizeof(uint64_t);
        for (void* address : addresses) words.push_back(reinterpret_cast<uint64_t>(address));
        kept.emplace_back(words.size() * sizeof(uint64_t));
        std::memcpy(kept.back().data(), words.data(), words.size() * sizeof(uint64_t));
        return kept.back().data();
    }

    Operator& op_;
    Arguments arguments_;
    std::deque<NumberTensor> numbers_;
    bool empty_ = false;
    Launch launch_ = nullptr;
    uint32_t blocks_ = 0;
    uint64_t tiling_key_ = 0;
    size_t workspace_bytes_ = 0;
    bool zeroed_ = false;
    std::vector<char> tiling_;
    ascendc_host::Contexts contexts_{};
    // Contexts of communicators, as long as a call of them is there.
    struct Held : std::vector<void*> {
        ~Held() {
            for (void* one : *this) ascendgraphLetGo(one);
        }
    };
    Held held_;
};

inline std::unique_ptr<Operator::Call> Operator::prepare(const Value* values, size_t count) {
    const size_t inputs = definition_.inputs.size(), attrs = definition_.op.attrs.size();
    Arguments arguments = input_arguments(values);
    size_t next = inputs + attrs;
    for (size_t i = 0; i < definition_.outputs.size(); ++i) {
        const int input = definition_.in_place(i);
        if (input < 0 && next == count) fail(kParamInvalid, "too few arguments");
        arguments.push_back(input >= 0 ? arguments[static_cast<size_t>(input)] : tensors_of(values[next++]));
    }
    if (next != count) fail(kParamInvalid, "too many arguments");
    return std::make_unique<Call>(*this, std::move(arguments), values + inputs);
}

inline void Operator::launch(const Value* values) {
    const Value* part = values + 4;
    std::vector<Value> own;
    const auto take = [&](int64_t given, size_t known, const char* what) {
        if (given > static_cast<int64_t>(known))
            fail(kParamInvalid,
                 "it takes " + std::to_string(known) + " " + what + ", given " + std::to_string(given));
        own.insert(own.end(), part, part + given);
        own.resize(own.size() + known - static_cast<size_t>(given));
        part += given;
    };
    take(values[1].i, definition_.inputs.size(), "inputs");
    take(values[2].i, definition_.op.attrs.size(), "attrs");
    const bool infers = values[0].i == 2,
               all = values[3].i == static_cast<int64_t>(definition_.outputs.size());
    for (size_t i = 0; i < definition_.outputs.size(); ++i) {
        const bool is_input = !infers && definition_.in_place(i) >= 0;
        if (is_input && !all) continue;
        if (part == values + 4 + values[1].i + values[2].i + values[3].i)
            fail(kParamInvalid, "output " + definition_.outputs[i].name + " is not given");
        if (!is_input) own.push_back(*part);
        ++part;
    }
    if (infers) return infer(own.data(), own.size());
    const auto call = prepare(own.data(), own.size());
    call->check_memory();
    if (values[0].i != 0) return;
    const DeviceBuffer workspace(call->workspace_bytes());
    call->run(workspace.data(), call->workspace_bytes());
}

// Runs `body`; what it throws becomes an error of the call.
template <typename F>
int reported(const std::string& op_type, F&& body) {
    try {
        body();
        return 0;
    } catch (const OperatorFailure& failure) {
        return ascendgraphFail(failure.code, failure.what());
    } catch (const std::exception& error) {
        return ascendgraphFail(561000, (op_type + ": " + error.what()).c_str());  // ACLNN_ERR_INNER
    }
}

// The call of an operator by its values alone, as the graph engine makes it: in the formats that the operator
// takes, and with a workspace of its own.
inline int run_operator(Operator& op, const Value* values, size_t count) {
    return reported(op.type(), [&] {
        std::deque<MatrixBlocks> blocks;
        const std::vector<Value> given = op.in_its_formats(values, count, blocks);
        const auto call = op.prepare(given.data(), count);
        const DeviceBuffer workspace(call->workspace_bytes());
        call->run(workspace.data(), call->workspace_bytes());
    });
}

inline int launch_operator(Operator& op, const Value* values, size_t) {
    return reported(op.type(), [&] { op.launch(values); });
}

inline int infer_operator(Operator& op, const Value* values, size_t count) {
    return reported(op.type(), [&] { op.infer(values, count); });
}

// The first half of an aclnn call: tiling has run when it returns, and says how much workspace the second
// half needs.
inline int prepare_operator(Operator& op, const Value* values, size_t count, ascendgraphPrepared* prepared) {
    struct State {
        Operator& op;
        std::unique_ptr<Operator::Call> call;
    };
    return reported(op.type(), [&] {
        auto call = op.prepare(values, count);
        prepared->workspace_size = call->workspace_bytes();
        prepared->run = [](void* state, void* workspace, uint64_t size) {
            auto* own = static_cast<State*>(state);
            return reported(own->op.type(), [&] { own->call->run(workspace, size); });
        };
        prepared->destroy = [](void* state) { delete static_cast<State*>(state); };
        prepared->state = new State{op, std::move(call)};
    });
}

}  // namespace ascend_graph::host

#endif  // ASCEND_GRAPH_PACKAGE_H
