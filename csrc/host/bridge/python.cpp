// The bridge's Python side: graphs run as plans of Python kernels, and operators of packages can be called or
// written in Python.
#include <ATen/ATen.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "ascend_graph/custom_operator.h"
#include "ascend_graph/entering.h"
#include "ascend_graph/ge_bridge.h"
#include "ascend_graph/host_kernel.h"
#include "ascend_graph/host_runtime.h"
#include "divisions.h"
#include "formats.h"
#include "graph_memory.h"
#include "tensors.h"
#include "trace.h"
#include "with_python.h"

namespace py = pybind11;

namespace ascend_graph::host {
namespace {

constexpr int kFailure = 500001;  // ACL_ERROR_FAILURE

// Raises the exception in the main thread as soon as the interpreter continues there.
void raise_later(py::error_already_set& error) {
    struct Raised {
        PyObject *type, *value, *trace;
    };
    auto* raised = new Raised;
    error.restore();
    PyErr_Fetch(&raised->type, &raised->value, &raised->trace);
    Py_AddPendingCall(
        [](void* p) {
            const std::unique_ptr<Raised> raised(static_cast<Raised*>(p));
            PyErr_Restore(raised->type, raised->value, raised->trace);
            return -1;
        },
        raised);
}

// Whether Python, in whose main thread we are, answers the signal that came with an exception: it does so
// when it continues.
bool interrupt_is_raised() {
    if (!Py_IsInitialized()) return false;
    py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() == 0) return false;
    py::error_already_set error;
    raise_later(error);
    return true;
}

// Dynamo looks at every Python function that starts while it runs a program it compiles: also at those that
// an extension of that program comes to here, which are no part of it.
class Uncompiled {
  public:
    Uncompiled() : before_(set_eval_frame()(py::none())) {}
    Uncompiled(const Uncompiled&) = delete;
    Uncompiled& operator=(const Uncompiled&) = delete;
    ~Uncompiled() {
        try {
            set_eval_frame()(before_);
        } catch (py::error_already_set& e) {
            e.discard_as_unraisable("ascend_graph.host");
        }
    }

  private:
    static py::handle set_eval_frame() {
        static const py::handle function =  // leaked: it may be called while the interpreter ends
            py::object(py::module_::import("torch._C._dynamo.eval_frame").attr("set_eval_frame")).release();
        return function;
    }
    py::object before_;
};

// What the caller's modes change is the caller's own calls: a kernel's tensors are made on the CPU whatever
// the default device is, and no FakeTensorMode, under which a graph may be compiled, sees them.
class OutsideModes {
  public:
    OutsideModes()
        : functions_(at::impl::PythonTorchFunctionTLS::get_state()),
          dispatch_(c10::impl::TorchDispatchModeTLS::get_state()) {
        at::impl::PythonTorchFunctionTLS::set_state({});
        c10::impl::TorchDispatchModeTLS::set_state({});
    }
    OutsideModes(const OutsideModes&) = delete;
    OutsideModes& operator=(const OutsideModes&) = delete;
    ~OutsideModes() {
        c10::impl::TorchDispatchModeTLS::set_state(dispatch_);
        at::impl::PythonTorchFunctionTLS::set_state(functions_);
    }

  private:
    const at::impl::PythonTorchFunctionTLS functions_;
    const c10::impl::TorchDispatchModeTLS dispatch_;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast_{c10::autocast_dispatch_keyset};
};

}  // namespace

int with_python(const std::function<void()>& body, int code) {
    const Entering entering(nullptr);
    py::gil_scoped_acquire gil;
    try {
        const Uncompiled uncompiled;
        const OutsideModes outside_modes;
        body();
        return 0;
    } catch (py::error_already_set& e) {
        if (e.matches(PyExc_KeyboardInterrupt)) {
            raise_later(e);
            return 0;
        }
        std::string text;
        try {
            text = py::module_::import("ascend_graph.host.runtime.engine")
                       .attr("error_text")(e.value())
                       .cast<std::string>();
        } catch (const std::exception&) {
            text = e.what();
        }
        if (py::hasattr(e.value(), "acl_code")) code = e.value().attr("acl_code").cast<int>();
        return ascendgraphFail(code, text.c_str());
    } catch (const std::exception& e) {
        return ascendgraphFail(code, e.what());
    }
}

namespace {

at::ScalarType torch_dtype(int32_t ge_dtype) {
    const auto dtype = scalar_type_of(ge_dtype);
    TORCH_CHECK(dtype.has_value(), "ge::DataType ", ge_dtype,
                " has no dtype in PyTorch; cast the tensor to a dtype that has");
    return *dtype;
}

int32_t ge_dtype(at::ScalarType dtype) {
    const auto number = ge_dtype_of(dtype);
    TORCH_CHECK(number.has_value(), "dtype ", dtype,
                " has no ge::DataType; cast the tensor to a dtype that has");
    return *number;
}

py::object engine() { return py::module_::import("ascend_graph.host.runtime.engine"); }

struct CompiledPlan {
    py::object plan;
    py::object run;
    py::object traced;
};

// Leaked: graphs may outlive the interpreter's own shutdown.
std::unordered_map<uint32_t, CompiledPlan>& plans() {
    static auto& instance = *new std::unordered_map<uint32_t, CompiledPlan>;
    return instance;
}

int compile(uint32_t graph_id, const void* model, size_t size, const char* const* names,
            const char* const* values, size_t options, CompileSink sink) {
    return with_python([&] {
        py::dict option_map;
        for (size_t i = 0; i < options; ++i) option_map[names[i]] = values[i];
        py::object plan =
            engine().attr("compile_model")(py::bytes(static_cast<const char*>(model), size), option_map);
        for (py::handle output : plan.attr("outputs")) {
            const auto sizes = output.attr("sizes").cast<std::vector<int64_t>>();
            sink.output(sink.context, output.attr("dtype").cast<int32_t>(), sizes.data(), sizes.size());
        }
        sink.is_static(sink.context, plan.attr("is_static").cast<bool>());
        plans()[graph_id] = {plan, plan.attr("run"), plan.attr("traced")};
    });
}

// The caller's memory for an output, which must be what was computed.
void* fitting(const GraphTensor& place, const at::Tensor& result, size_t index, const py::object& plan) {
    const at::IntArrayRef sizes(place.sizes, place.rank);
    // A number without dimensions is a tensor of one element for TorchAir.
    const bool same_shape =
        sizes == result.sizes() || (result.numel() == 1 && c10::multiply_integers(sizes) == 1);
    // TorchAir does not say a tensor's bytes again where its address is that of an earlier call, whose tensor
    // may have been smaller; its sizes are always those of this call.
    const bool has_room =
        result.nbytes() <= place.bytes || (sizes == result.sizes() && !in_blocks(place.format));
    if (place.dtype == ge_dtype(result.scalar_type()) && same_shape && has_room) return place.data;
    const auto node = plan.attr("outputs")[py::int_(index)].attr("node").cast<std::string>();
    TORCH_CHECK(!in_blocks(place.format), "graph output ", index, ", of node ", node,
                ": the caller keeps it in the format ", format_name(place.format),
                ", which a graph of the host does not write; cast it to ACL_FORMAT_ND (2) first: "
                "torch_npu.npu_format_cast");
    TORCH_CHECK(false, "graph output ", index, ", of node ", node, ": the kernel gave ", result.scalar_type(),
                result.sizes(), "; expected ", torch_dtype(place.dtype), sizes, " in ", place.bytes,
                " bytes, as the caller allocated by the meta function. Correct that, or the kernel");
}

bool overlap(const at::Tensor& tensor, const char* begin, size_t bytes) {
    const auto& storage = tensor.storage();
    const auto* first = static_cast<const char*>(storage.data());
    return first < begin + bytes && begin < first + storage.nbytes();
}

// An output may be placed in the memory of an input, which other results may be views of: those get memory of
// their own before it is written.
void separate(std::vector<at::Tensor>& results, const std::vector<void*>& places, const GraphTensor* inputs,
              size_t input_count) {
    std::vector<void*> read;
    for (size_t i = 0; i < input_count; ++i) read.push_back(inputs[i].data);
    std::sort(read.begin(), read.end());
    for (size_t i = 0; i < places.size(); ++i) {
        if (!std::binary_search(read.begin(), read.end(), places[i])) continue;
        const size_t bytes = results[i].nbytes();
        for (size_t j = 0; j < results.size(); ++j) {
            const bool is_there = i == j && results[j].data_ptr() == places[i] && results[j].is_contiguous();
            if (!is_there && overlap(results[j], static_cast<const char*>(places[i]), bytes))
                results[j] = results[j].clone(at::MemoryFormat::Contiguous);
        }
    }
}

// The stream of the graph that this thread runs.
thread_local void* graph_stream = nullptr;

int run(uint32_t graph_id, void* stream, const GraphTensor* inputs, size_t input_count,
        const GraphTensor* outputs, size_t output_count, OutputSink sink) {
    if (const char* why = ascendgraphDeferral(stream)) {
        return ascendgraphFail(
            kFailure, ("a GE graph cannot run now: " + std::string(why) + "; run it afterwards").c_str());
    }
    const Entering entering("a GE graph");
    const WorkOn here(stream);
    return with_python([&] {
        // The plan works on plain CPU tensors: no autograd, no functionalization, no cost of either.
        at::AutoDispatchBelowADInplaceOrView below_autograd;
        const auto found = plans().find(graph_id);
        TORCH_CHECK(found != plans().end(), "graph ", graph_id, " is not compiled", kReport);
        const CompiledPlan plan =
            found->second;  // kept: kernels release the GIL, and the graph may be removed meanwhile
        py::tuple arguments(input_count);
        for (size_t i = 0; i < input_count; ++i) {
            const GraphTensor& in = inputs[i];
            arguments[i] =
                py::cast(wrap(in.data, torch_dtype(in.dtype), {in.sizes, static_cast<size_t>(in.rank)}));
        }
        survive_divisions();
        const uint64_t divided = divisions_by_zero();
        graph_stream = stream;
        const InsideGraph padded;
        const py::object& graph = is_traced() || ascendgraphWorkIsObserved() ? plan.traced : plan.run;
        auto results = graph(*arguments).cast<std::vector<at::Tensor>>();
        TORCH_CHECK(divisions_by_zero() == divided, "graph ", graph_id,
                    ": an integer was divided by zero; give divisors other than 0");
        TORCH_CHECK(results.size() == output_count, "the graph has ", results.size(),
                    " outputs and its caller ", output_count, kReport);
        std::vector<void*> places(output_count);
        for (size_t i = 0; i < output_count; ++i) {
            const at::Tensor& result = results[i];
            if (outputs[i].data != nullptr) {
                places[i] = fitting(outputs[i], result, i, plan.plan);
                continue;
            }
            places[i] = sink.place(sink.context, i, ge_dtype(result.scalar_type()), result.sizes().data(),
                                   result.sizes().size(), result.nbytes());
            TORCH_CHECK(places[i] != nullptr || result.numel() == 0, "no memory for graph output ", i,
                        "; free memory, or give smaller inputs");
        }
        separate(results, places, inputs, input_count);
        for (size_t i = 0; i < output_count; ++i) {
            const at::Tensor& result = results[i];
            if (result.numel() == 0 || (places[i] == result.data_ptr() && result.is_contiguous())) continue;
            wrap(places[i], result.scalar_type(), result.sizes()).copy_(result);
        }
    });
}

int remove(uint32_t graph_id) {
    return with_python([&] { plans().erase(graph_id); });
}

int describe(const char* op_type, OperatorSink sink) {
    return with_python([&] {
        for (py::handle parameter : engine().attr("describe_operator")(op_type)) {
            const auto [role, name, kind] =
                parameter.cast<std::tuple<std::string, std::string, std::string>>();
            sink.parameter(sink.context, role[0], name.c_str(), kind.c_str());
        }
    });
}

// A tensor of what memory holds in blocks.
at::Tensor kept_by(const Tensor& t) {
    return wrap(t.data, torch_dtype(t.dtype), {t.kept, static_cast<size_t>(t.kept_rank)});
}

at::Tensor to_torch(const Tensor& t) {
    if (in_blocks(t.format)) {
        return unblocked(kept_by(t), blocks_of(t))
            .as_strided({t.sizes, static_cast<size_t>(t.rank)}, {t.strides, static_cast<size_t>(t.rank)});
    }
    return wrap(t.data, torch_dtype(t.dtype), {t.sizes, static_cast<size_t>(t.rank)},
                {t.strides, static_cast<size_t>(t.rank)});
}

py::object to_python(const Value& value) {
    auto list = [&](const auto* items) {
        py::list result;
        for (size_t i = 0; i < value.count; ++i) result.append(items[i]);
        return result;
    };
    switch (value.kind) {
        case ValueKind::kAbsent:
            return py::none();
        case ValueKind::kTensor:
            return py::cast(to_torch(*value.tensors));
        case ValueKind::kTensorList: {
            py::list tensors;
            for (size_t i = 0; i < value.count; ++i) tensors.append(to_torch(value.tensors[i]));
            return tensors;
        }
        case ValueKind::kInt:
            return py::int_(value.i);
        case ValueKind::kFloat:
            return py::float_(value.f);
        case ValueKind::kBool:
            return py::bool_(value.b);
        case ValueKind::kString:
            return py::str(value.s);
        case ValueKind::kIntList:
            return list(value.ints);
        case ValueKind::kFloatList:
            return list(value.floats);
        case ValueKind::kBoolList:
            return list(value.bools);
    }
    return py::none();
}

int call_python(const char* package_dir, const char* op_type, const Value* values, size_t count) {
    return with_python([&] {
        at::AutoDispatchBelowADInplaceOrView below_autograd;
        py::list arguments;
        for (size_t i = 0; i < count; ++i) arguments.append(to_python(values[i]));
        py::module_::import("ascend_graph.host.packages.python_kernels")
            .attr("call_python_kernel")(package_dir, op_type, arguments);
    });
}

py::list named_pairs(const NamedValue* values, size_t count) {
    py::list list;
    for (size_t i = 0; i < count; ++i)
        list.append(py::make_tuple(values[i].name, to_python(values[i].value)));
    return list;
}

int run_operator(const char* op_type, const NamedValue* inputs, size_t input_count, const NamedValue* attrs,
                 size_t attr_count, const NamedValue* outputs, size_t output_count) {
    return with_python([&] {
        at::AutoDispatchBelowADInplaceOrView below_autograd;
        const py::list results = named_pairs(outputs, output_count);
        py::module_::import("ascend_graph.host.runtime.single_op")
            .attr("run_operator")(op_type, named_pairs(inputs, input_count), named_pairs(attrs, attr_count),
                                  results);
        for (size_t i = 0; i < output_count; ++i) {
            const Value& value = outputs[i].value;
            if (value.kind != ValueKind::kTensor || !in_blocks(value.tensors->format)) continue;
            const Tensor& output = *value.tensors;
            put_blocks(results[i].cast<py::tuple>()[1].cast<at::Tensor>(), blocks_of(output),
                       kept_by(output));
        }
    });
}

int infer_operator(const char* op_type, const NamedValue* inputs, size_t input_count, const NamedValue* attrs,
                   size_t attr_count, const NamedValue* outputs, size_t output_count) {
    return with_python([&] {
        at::AutoDispatchBelowADInplaceOrView below_autograd;
        py::module_::import("ascend_graph.host.runtime.single_op")
            .attr("infer_operator")(op_type, named_pairs(inputs, input_count), named_pairs(attrs, attr_count),
                                    named_pairs(outputs, output_count));
    });
}

bool is_four_bits(int32_t ge_dtype) {
    return ge_dtype == 29 || ge_dtype == 40 || ge_dtype == 41;  // int4, float4_e2m1, float4_e1m2
}

// As for a kernel, but of elements that PyTorch has no dtype for the bytes, with the dtype's number next to
// them. Elements of four bits lie two in a byte, in the dimension without a stride.
py::object to_python_bytes(const Tensor& t) {
    if (in_blocks(t.format)) {
        const Blocks blocks = blocks_of(t);
        return py::module_::import("ascend_graph.host.runtime.aclnn_functions.blocks")
            .attr("Blocked")(kept_by(t), t.format, std::vector<int64_t>(t.sizes, t.sizes + t.rank),
                             std::vector<int64_t>(t.strides, t.strides + t.rank),
                             std::vector<int64_t>(blocks.sizes.begin(), blocks.sizes.end()));
    }
    if (scalar_type_of(t.dtype).has_value()) return py::cast(to_torch(t));
    std::vector<int64_t> sizes(t.sizes, t.sizes + t.rank), strides(t.strides, t.strides + t.rank);
    for (size_t d = 0; is_four_bits(t.dtype) && d < sizes.size(); ++d) {
        if (strides[d] == 1) {
            sizes[d] /= 2;
        } else {
            strides[d] /= 2;
        }
    }
    py::object tensor = py::cast(wrap(t.data, at::kByte, sizes, strides));
    tensor.attr("ge_dtype") = t.dtype;
    return tensor;
}

py::object to_python_bytes(const Value& value) {
    if (value.kind == ValueKind::kTensor) return to_python_bytes(*value.tensors);
    if (value.kind != ValueKind::kTensorList) return to_python(value);
    py::list tensors;
    for (size_t i = 0; i < value.count; ++i) tensors.append(to_python_bytes(value.tensors[i]));
    return tensors;
}

// The first half of an aclnn call of the host's own: what Python makes of the arguments is called by the
// second.
int prepare_function(const char* function, const Value* values, size_t count, ascendgraphPrepared* prepared) {
    constexpr int kParamInvalid = 161002;  // ACLNN_ERR_PARAM_INVALID
    return with_python(
        [&] {
            at::AutoDispatchBelowADInplaceOrView below_autograd;
            py::list arguments;
            for (size_t i = 0; i < count; ++i) arguments.append(to_python_bytes(values[i]));
            static const py::handle prepare =  // leaked: it may be called while the interpreter ends
                py::object(
                    py::module_::import("ascend_graph.host.runtime.aclnn_functions.call").attr("prepare"))
                    .release();
            prepared->state = prepare(function, arguments).release().ptr();
            prepared->run = [](void* state, void*, uint64_t) {
                constexpr int kInner = 561000;  // ACLNN_ERR_INNER
                return with_python(
                    [&] {
                        at::AutoDispatchBelowADInplaceOrView below_autograd;
                        survive_divisions();
                        py::handle(static_cast<PyObject*>(state))();
                    },
                    kInner);
            };
            prepared->destroy = [](void* state) {
                if (!Py_IsInitialized()) return;  // a captured graph that outlives the interpreter
                py::gil_scoped_acquire gil;
                Py_DECREF(static_cast<PyObject*>(state));
            };
        },
        kParamInvalid);
}

// The reverse of to_python, keeping what the values point at alive for the call.
struct Call {
    std::vector<Value> values;
    std::deque<std::vector<Tensor>> tensors;
    std::deque<at::Tensor> held;
    std::deque<std::vector<int64_t>> ints;
    std::deque<std::vector<float>> floats;
    std::deque<std::unique_ptr<bool[]>> bools;
    std::deque<std::string> strings;

    Tensor borrow(const at::Tensor& t) {
        held.push_back(t);
        const at::Tensor& kept = held.back();
        return {kept.data_ptr(), ge_dtype(kept.scalar_type()), static_cast<int32_t>(kept.dim()),
                kept.sizes().data(), kept.strides().data()};
    }

    void add(py::handle item, const std::string& kind) {
        Value& value = values.emplace_back();
        if (item.is_none()) return;
        if (kind == "tensor") {
            tensors.push_back({borrow(item.cast<at::Tensor>())});
            value.kind = ValueKind::kTensor;
            value.count = 1;
            value.tensors = tensors.back().data();
        } else if (kind == "tensors") {
            std::vector<Tensor> list;
            for (py::handle t : item) list.push_back(borrow(t.cast<at::Tensor>()));
            tensors.push_back(std::move(list));
            value.kind = ValueKind::kTensorList;
            value.count = tensors.back().size();
            value.tensors = tensors.back().data();
        } else if (kind == "Int" || kind == "Type") {
            value.kind = ValueKind::kInt;
            value.i = item.cast<int64_t>();
        } else if (kind == "Float") {
            value.kind = ValueKind::kFloat;
            value.f = item.cast<double>();
        } else if (kind == "Bool") {
            value.kind = ValueKind::kBool;
            value.b = item.cast<bool>();
        } else if (kind == "String") {
            strings.push_back(item.cast<std::string>());
            value.kind = ValueKind::kString;
            value.s = strings.back().c_str();
        } else if (kind == "ListInt" || kind == "ListType") {
            ints.push_back(item.cast<std::vector<int64_t>>());
            value.kind = ValueKind::kIntList;
            value.count = ints.back().size();
            value.ints = ints.back().data();
        } else if (kind == "ListFloat") {
            floats.push_back(item.cast<std::vector<float>>());
            value.kind = ValueKind::kFloatList;
            value.count = floats.back().size();
            value.floats = floats.back().data();
        } else if (kind == "ListBool") {
            const auto flags = item.cast<std::vector<bool>>();
            bools.push_back(std::make_unique<bool[]>(flags.size()));
            std::copy(flags.begin(), flags.end(), bools.back().get());
            value.kind = ValueKind::kBoolList;
            value.count = flags.size();
            value.bools = bools.back().get();
        } else {
            throw py::type_error("operators of packages have no parameters of type " + kind +
                                 "; expected a type of REG_OP's attrs");
        }
    }
};

bool has_kernel(const std::string& op_type) { return ascendgraphFindKernel(op_type.c_str()) != nullptr; }

void call_kernel(const std::string& op_type, const py::sequence& arguments,
                 const std::vector<std::string>& kinds) {
    const KernelEntry entry = ascendgraphFindKernel(op_type.c_str());
    TORCH_CHECK(entry != nullptr, "no loaded operator package has a kernel for ", op_type,
                "; build one with ascend-graph build, and name it in ASCEND_CUSTOM_OPP_PATH");
    Call call;
    for (size_t i = 0; i < kinds.size(); ++i) call.add(arguments[i], kinds[i]);
    const int error = entry(call.values.data(), call.values.size());
    TORCH_CHECK(error == 0, ascendgraphRecentError());
}

bool has_custom_operator(const std::string& op_type) {
    CustomOperator found{};
    return ascendgraphFindCustomOperator(op_type.c_str(), &found);
}

std::optional<std::string> custom_prototype(const std::string& op_type) {
    CustomOperator found{};
    if (!ascendgraphFindCustomOperator(op_type.c_str(), &found)) return std::nullopt;
    const char* text = found.prototype();
    return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

// What a class that executes a node gets memory from, and what it made of it.
struct CustomResults {
    const std::deque<at::Tensor>& inputs;
    std::vector<at::Tensor> outputs, workspaces;

    at::Tensor& output(size_t index) {
        if (index >= outputs.size()) outputs.resize(index + 1);
        return outputs[index];
    }
    static void* allocate(void* context, size_t output, int32_t dtype, const int64_t* sizes, size_t rank) {
        const auto type = scalar_type_of(dtype);
        if (!type.has_value()) return nullptr;
        at::Tensor& place = static_cast<CustomResults*>(context)->output(output);
        place = device_memory({sizes, rank}, *type);
        return place.data_ptr();
    }
    static void refer(void* context, size_t output, size_t input) {
        auto& self = *static_cast<CustomResults*>(context);
        self.output(output) = self.inputs.at(input);
    }
    static void* workspace(void* context, size_t bytes) {
        auto& kept = static_cast<CustomResults*>(context)->workspaces;
        kept.push_back(device_memory({static_cast<int64_t>(bytes)}, at::kByte));
        return kept.back().data_ptr();
    }
};

std::vector<std::optional<at::Tensor>> call_custom_operator(const std::string& op_type,
                                                            const py::sequence& arguments,
                                                            const std::vector<std::string>& kinds,
                                                            size_t input_count) {
    CustomOperator custom{};
    TORCH_CHECK(ascendgraphFindCustomOperator(op_type.c_str(), &custom), "no loaded library executes ",
                op_type, "; load the one that registers it with REG_AUTO_MAPPING_OP");
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    Call call;
    for (size_t i = 0; i < kinds.size(); ++i) call.add(arguments[i], kinds[i]);
    CustomResults results{call.held, {}, {}};
    const int error = custom.execute(
        {call.values.data(), input_count, call.values.data() + input_count, call.values.size() - input_count,
         graph_stream, &results, CustomResults::allocate, CustomResults::refer, CustomResults::workspace});
    TORCH_CHECK(error == 0, ascendgraphRecentError());
    std::vector<std::optional<at::Tensor>> outputs;
    for (const at::Tensor& output : results.outputs)
        outputs.push_back(output.defined() ? std::optional<at::Tensor>(output) : std::nullopt);
    return outputs;
}

const bool registered = [] {
    ascendgraphSetGraphEngine({compile, run, remove, describe});
    ascendgraphSetPythonCaller(call_python);
    ascendgraphSetFunctionPreparer(prepare_function);
    ascendgraphSetOperatorRunner(run_operator);
    ascendgraphSetOperatorInference(infer_operator);
    ascendgraphSetInterruptHook(interrupt_is_raised);
    trace_streams();
    return true;
}();

}  // namespace
}  // namespace ascend_graph::host

// Called once the bridge is loaded, not while it is: what is imported may load libraries itself.
extern "C" __attribute__((visibility("default"))) int ascendgraphBridgeReady() {
    if (!Py_IsInitialized()) return 0;
    return ascend_graph::host::with_python(
        [] { py::module_::import("ascend_graph.host.runtime.wheel_patches").attr("install")(); });
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.doc() = "The host runtime's bridge to PyTorch.";
    m.def(
        "unblocked",
        [](const at::Tensor& kept, int32_t format, const std::vector<int64_t>& sizes) {
            using namespace ascend_graph::host;
            return unblocked(
                kept,
                Blocks{format, {kept.sizes().begin(), kept.sizes().end()}, {sizes.begin(), sizes.end()}});
        },
        py::arg("kept"), py::arg("format"), py::arg("sizes"),
        "The tensor of these sizes whose memory, kept in blocks as the aclFormat says, is `kept`.");
    m.def("has_kernel", &ascend_graph::host::has_kernel, py::arg("op_type"),
          "Whether a loaded operator package has a kernel for the operator.");
    m.def("call_kernel", &ascend_graph::host::call_kernel, py::arg("op_type"), py::arg("arguments"),
          py::arg("kinds"), "Calls an operator's kernel with CPU tensors; outputs are among the arguments.");
    m.def(
        "device_memory",
        [](const std::vector<int64_t>& sizes, at::ScalarType dtype) {
            return ascend_graph::host::device_memory(sizes, dtype);
        },
        py::arg("sizes"), py::arg("dtype"),
        "A CPU tensor in device memory, whose extent the kernel API knows.");
    m.def("work_begins", &ascendgraphWorkBegins,
          "To be called before a node of a graph runs; gives what `work_ends` takes.");
    m.def("work_ends", &ascendgraphWorkEnds, py::arg("began"), py::arg("name"),
          "To be called after it, for who profiles kernels.");
    m.def("has_custom_operator", &ascend_graph::host::has_custom_operator, py::arg("op_type"),
          "Whether a loaded library has a class that executes the operator.");
    m.def("custom_prototype", &ascend_graph::host::custom_prototype, py::arg("op_type"),
          "The text of the REG_OP in a library that executes the operator; None without one.");
    m.def("call_custom_operator", &ascend_graph::host::call_custom_operator, py::arg("op_type"),
          py::arg("arguments"), py::arg("kinds"), py::arg("input_count"),
          "Executes an operator on contiguous CPU tensors, the attrs behind them, and gives its outputs.");
}
