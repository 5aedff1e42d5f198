// libge_runner.so: sessions and operator descriptions. Graphs are compiled and run by the bridge to PyTorch.
#include <mutex>
#include <unordered_map>

#include "acl/abi.h"
#include "ascend_graph/ge_bridge.h"
#include "ascend_graph/host_runtime.h"
#include "ge/abi.h"
#include "ge/operator_impl.h"

using ascend_graph::host::CompileSink;
using ascend_graph::host::GraphEngine;
using ascend_graph::host::GraphTensor;
using ascend_graph::host::OperatorSink;
using ascend_graph::host::OutputSink;

namespace {

GraphEngine engine{};

// GE keeps errors for the process, not for the thread: torchair compiles on one thread and asks on another.
std::mutex error_mutex;
std::string last_error;

ge::Status failed(const std::string& message) {
    std::lock_guard<std::mutex> lock(error_mutex);
    last_error = message;
    return ge::kFailed;
}

ge::Status failed_with_recent_error() { return failed(ascendgraphRecentError()); }

}  // namespace

ACL_EXPORT void ascendgraphSetGraphEngine(GraphEngine value) { engine = value; }

namespace ge {

class CompiledGraphSummary::SummaryData {
  public:
    bool is_static = false;
    std::vector<std::vector<int64_t>> shapes;
    std::vector<DataType> dtypes;
};

CompiledGraphSummary::~CompiledGraphSummary() = default;
bool CompiledGraphSummary::IsStatic() const { return data_->is_static; }
Status CompiledGraphSummary::GetOutputShapes(std::vector<Shape>& shapes) const {
    shapes.clear();
    for (const auto& dims : data_->shapes) shapes.emplace_back(dims);
    return kSuccess;
}
Status CompiledGraphSummary::GetOutputDtypes(std::vector<DataType>& dtypes) const {
    dtypes = data_->dtypes;
    return kSuccess;
}

// Nodes own their intermediate tensors: the engine asks for no memory beyond the smallest block.
namespace {
Status smallest(size_t& size) {
    size = 512;
    return kSuccess;
}
}  // namespace
Status CompiledGraphSummary::GetConstMemorySize(size_t& size) const { return smallest(size); }
Status CompiledGraphSummary::GetFeatureMemorySize(size_t& size) const { return smallest(size); }
Status CompiledGraphSummary::GetFixedFeatureMemorySize(size_t& size) const { return smallest(size); }
Status CompiledGraphSummary::GetRefreshableFeatureMemorySize(size_t& size) const { return smallest(size); }
Status CompiledGraphSummary::GetFeatureMemoryBaseRefreshable(bool& refreshable) const {
    refreshable = true;
    return kSuccess;
}

namespace {

struct CompiledGraph {
    Graph graph;
    std::map<AscendString, AscendString> options;
    std::shared_ptr<CompiledGraphSummary::SummaryData> summary;
};

std::mutex graphs_mutex;
std::unordered_map<uint32_t, std::shared_ptr<CompiledGraph>> graphs;
std::map<const void*, std::shared_ptr<Allocator>> allocators;

std::shared_ptr<CompiledGraph> find_graph(uint32_t graph_id) {
    std::lock_guard<std::mutex> lock(graphs_mutex);
    auto found = graphs.find(graph_id);
    return found == graphs.end() ? nullptr : found->second;
}

Status no_graph(const char* function, uint32_t graph_id) {
    return failed(std::string(function) + ": graph " + std::to_string(graph_id) +
                  " was not added or not compiled");
}

// Where the outputs go that the caller brings no memory for: into blocks of the stream's allocator.
struct Outputs {
    std::vector<Tensor>& tensors;
    std::shared_ptr<Allocator> allocator;

    static void* place(void* context, size_t index, int32_t dtype, const int64_t* sizes, size_t rank,
                       size_t bytes) {
        auto& self = *static_cast<Outputs*>(context);
        Tensor& tensor = self.tensors[index];
        tensor.set_dims(sizes, rank);
        tensor.SetDataType(static_cast<DataType>(dtype));
        tensor.SetFormat(kFormatND);
        tensor.SetOriginFormat(kFormatND);
        if (self.allocator != nullptr) {
            tensor.SetPlacement(static_cast<Placement>(1));  // kPlacementDevice
            MemBlock* block = self.allocator->Malloc(bytes);
            if (block == nullptr) return nullptr;
            tensor.SetData(static_cast<uint8_t*>(block->address()), bytes,
                           [block](uint8_t*) { block->release(); });
        } else {
            tensor.SetPlacement(static_cast<Placement>(0));  // kPlacementHost
            tensor.SetData(new uint8_t[std::max<size_t>(bytes, 1)], bytes,
                           [](uint8_t* data) { delete[] data; });
        }
        return tensor.GetData();
    }
};

// The addresses, sizes and capacities of tensors, by value: what happens to the tensors later changes
// nothing.
class Snapshot {
  public:
    explicit Snapshot(const std::vector<Tensor>& tensors) {
        size_t rank = 0;
        for (const Tensor& tensor : tensors) rank += tensor.dims().size();
        sizes_.reserve(rank);
        tensors_.reserve(tensors.size());
        for (const Tensor& tensor : tensors) {
            const auto& dims = tensor.dims();
            tensors_.push_back({const_cast<uint8_t*>(tensor.GetData()),
                                static_cast<int32_t>(tensor.GetDataType()), static_cast<int32_t>(dims.size()),
                                sizes_.data() + sizes_.size(), tensor.GetSize(),
                                static_cast<int32_t>(tensor.GetFormat())});
            sizes_.insert(sizes_.end(), dims.begin(), dims.end());
        }
    }
    const GraphTensor* data() const { return tensors_.data(); }
    size_t size() const { return tensors_.size(); }

  private:
    std::vector<int64_t> sizes_;
    std::vector<GraphTensor> tensors_;
};

Status run(uint32_t graph_id, void* stream, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
           std::shared_ptr<Allocator> allocator) {
    const auto graph = find_graph(graph_id);
    if (graph == nullptr || graph->summary == nullptr) return no_graph("RunGraph", graph_id);
    if (outputs.empty()) outputs.resize(graph->summary->dtypes.size());
    const Snapshot in(inputs), out(outputs);
    Outputs destination{outputs, std::move(allocator)};
    const int error = engine.run(graph_id, stream, in.data(), in.size(), out.data(), out.size(),
                                 OutputSink{&destination, Outputs::place});
    return error == 0 ? kSuccess : failed_with_recent_error();
}

}  // namespace

Status GEInitialize(const std::map<AscendString, AscendString>&) {
    if (engine.compile != nullptr) return kSuccess;
    return failed(
        "GEInitialize: the host runtime's graph engine runs on PyTorch; initialize an npu device first");
}
Status GEFinalize() { return kSuccess; }

Session::Session(const std::map<AscendString, AscendString>&) : session_id_(1) {}
Session::~Session() {
    std::lock_guard<std::mutex> lock(graphs_mutex);
    allocators.clear();
}

Status Session::AddGraph(uint32_t graph_id, const Graph& graph,
                         const std::map<AscendString, AscendString>& options) {
    std::lock_guard<std::mutex> lock(graphs_mutex);
    const bool added =
        graphs.emplace(graph_id, std::make_shared<CompiledGraph>(CompiledGraph{graph, options, nullptr}))
            .second;
    return added ? kSuccess : failed("AddGraph: graph " + std::to_string(graph_id) + " exists already");
}

Status Session::RemoveGraph(uint32_t graph_id) {
    {
        std::lock_guard<std::mutex> lock(graphs_mutex);
        if (graphs.erase(graph_id) == 0)
            return failed("RemoveGraph: graph " + std::to_string(graph_id) + " was not added");
    }
    return engine.remove(graph_id) == 0 ? kSuccess : failed_with_recent_error();
}

Status Session::CompileGraph(uint32_t graph_id) {
    const auto graph = find_graph(graph_id);
    if (graph == nullptr) return no_graph("CompileGraph", graph_id);
    std::vector<const char*> names, values;
    for (const auto& option : graph->options) {
        names.push_back(option.first.GetString());
        values.push_back(option.second.GetString());
    }
    auto summary = std::make_shared<CompiledGraphSummary::SummaryData>();
    CompileSink sink{summary.get(),
                     [](void* context, int32_t dtype, const int64_t* sizes, size_t rank) {
                         auto& data = *static_cast<CompiledGraphSummary::SummaryData*>(context);
                         data.dtypes.push_back(static_cast<DataType>(dtype));
                         data.shapes.emplace_back(sizes, sizes + rank);
                     },
                     [](void* context, bool value) {
                         static_cast<CompiledGraphSummary::SummaryData*>(context)->is_static = value;
                     }};
    const std::string& model = graph->graph.model();
    if (engine.compile(graph_id, model.data(), model.size(), names.data(), values.data(), names.size(),
                       sink) != 0) {
        return failed_with_recent_error();
    }
    graph->summary = std::move(summary);
    return kSuccess;
}

std::shared_ptr<CompiledGraphSummary> Session::GetCompiledGraphSummary(uint32_t graph_id) {
    const auto graph = find_graph(graph_id);
    if (graph == nullptr || graph->summary == nullptr) {
        no_graph("GetCompiledGraphSummary", graph_id);
        return nullptr;
    }
    return std::make_shared<CompiledGraphSummary>(graph->summary);
}

Status Session::RunGraph(uint32_t graph_id, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
    return run(graph_id, nullptr, inputs, outputs, nullptr);
}

Status Session::RunGraphWithStreamAsync(uint32_t graph_id, void* stream, const std::vector<Tensor>& inputs,
                                        std::vector<Tensor>& outputs) {
    std::shared_ptr<Allocator> allocator;
    {
        std::lock_guard<std::mutex> lock(graphs_mutex);
        auto found = allocators.find(stream);
        if (found != allocators.end()) allocator = found->second;
    }
    return run(graph_id, stream, inputs, outputs, std::move(allocator));
}

Status Session::SetGraphConstMemoryBase(uint32_t, const void*, size_t) { return kSuccess; }
Status Session::UpdateGraphFeatureMemoryBase(uint32_t, const void*, size_t) { return kSuccess; }
Status Session::SetGraphFixedFeatureMemoryBase(uint32_t, const void*, size_t) { return kSuccess; }
Status Session::UpdateGraphRefreshableFeatureMemoryBase(uint32_t, const void*, size_t) { return kSuccess; }
Status Session::RegisterExternalAllocator(const void* stream, std::shared_ptr<Allocator> allocator) const {
    std::lock_guard<std::mutex> lock(graphs_mutex);
    allocators[stream] = std::move(allocator);
    return kSuccess;
}

std::string GEGetErrorMsg() {
    std::lock_guard<std::mutex> lock(error_mutex);
    return last_error;
}
AscendString GEGetErrorMsgV2() { return AscendString(GEGetErrorMsg().c_str()); }
std::string GEGetWarningMsg() { return ""; }
AscendString GEGetWarningMsgV2() { return AscendString(""); }

namespace {
std::shared_ptr<OperatorImpl> describe(const char* op_type) {
    if (op_type == nullptr || engine.describe == nullptr) return nullptr;
    auto description = std::make_shared<OperatorImpl>();
    OperatorSink sink{description.get(), [](void* context, char role, const char* name, const char* kind) {
                          auto& impl = *static_cast<OperatorImpl*>(context);
                          auto& list = role == 'i' ? impl.inputs : role == 'o' ? impl.outputs : impl.attrs;
                          list.emplace_back(name, kind);
                      }};
    return engine.describe(op_type, sink) == 0 ? description : nullptr;
}
}  // namespace

Operator Operator::described(std::shared_ptr<OperatorImpl> impl) {
    Operator op;
    op.impl_ = std::move(impl);
    return op;
}
graphStatus Operator::UpdateInputDesc(const char* name, const TensorDesc&) {
    if (impl_ == nullptr || name == nullptr) return kFailed;
    for (const auto& input : impl_->inputs) {
        if (input.first == AscendString(name)) return kSuccess;
    }
    return kFailed;
}
graphStatus Operator::GetAllIrAttrNamesAndTypes(std::map<AscendString, AscendString>& names_and_types) const {
    if (impl_ == nullptr) return kFailed;
    for (const auto& attr : impl_->attrs) names_and_types.emplace(attr.first, attr.second);
    return kSuccess;
}
Operator OperatorFactory::CreateOperator(const char*, const char* type) {
    return Operator::described(describe(type));
}
bool OperatorFactory::IsExistOp(const char* type) { return describe(type) != nullptr; }

Status GetRegisteredIrDef(const char* op_type, std::vector<std::pair<AscendString, AscendString>>& inputs,
                          std::vector<std::pair<AscendString, AscendString>>& outputs,
                          std::vector<std::pair<AscendString, AscendString>>& attrs) {
    const auto description = describe(op_type);
    if (description == nullptr) {
        return failed(std::string("GetRegisteredIrDef: no prototype of ") +
                      (op_type == nullptr ? "(null)" : op_type));
    }
    inputs = description->inputs;
    outputs = description->outputs;
    attrs = description->attrs;
    return kSuccess;
}

}  // namespace ge

// torchair looks the function up by its plain name.
extern "C" GE_EXPORT ge::Status GetRegisteredIrDef(
    const char* op_type, std::vector<std::pair<ge::AscendString, ge::AscendString>>& inputs,
    std::vector<std::pair<ge::AscendString, ge::AscendString>>& outputs,
    std::vector<std::pair<ge::AscendString, ge::AscendString>>& attrs) {
    return ge::GetRegisteredIrDef(op_type, inputs, outputs, attrs);
}
