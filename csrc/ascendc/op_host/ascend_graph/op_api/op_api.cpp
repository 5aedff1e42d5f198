// What hand-written aclnn functions are linked with: their tensors, their executor, and the operators that
// all of them use.
#include "ascend_graph/aclnn_adapter.h"
#include "ascend_graph/op_api/kernels.h"
#include "graph/utils/type_utils.h"

using namespace ascend_graph::host;

// --- dtypes, formats, shapes
// -----------------------------------------------------------------------------------------

namespace op {
namespace {

ge::AscendString text_of(const std::string& text) { return text.c_str(); }

template <typename Items, typename Name>
std::string listed(const Items& items, Name name) {
    std::string text;
    for (const auto& item : items) text += (text.empty() ? "" : ", ") + name(item);
    return "[" + text + "]";
}

std::string dtype_name(DataType type) { return ge::TypeUtils::DataTypeToSerialString(type); }

// How much a floating dtype holds; 0 for others.
int float_rank(DataType type) {
    switch (type) {
        case ge::DT_FLOAT16:
        case ge::DT_BF16:
        case ge::DT_COMPLEX32:
            return 1;
        case ge::DT_FLOAT:
        case ge::DT_COMPLEX64:
            return 2;
        case ge::DT_DOUBLE:
        case ge::DT_COMPLEX128:
            return 3;
        default:
            return 0;
    }
}

}  // namespace

DataType PromoteType(DataType a, DataType b) {
    if (a == b) return a;
    const auto known = [](DataType type) {
        return float_rank(type) != 0 || CheckType(type, {ge::DT_BOOL, ge::DT_UINT8, ge::DT_INT8, ge::DT_INT16,
                                                         ge::DT_INT32, ge::DT_INT64});
    };
    if (!known(a) || !known(b)) return ge::DT_UNDEFINED;
    const int rank_a = float_rank(a), rank_b = float_rank(b);
    if (rank_a != 0 || rank_b != 0) {
        // Two halves of different kinds meet in float.
        const bool halves = rank_a == 1 && rank_b == 1 && (a == ge::DT_BF16 || b == ge::DT_BF16);
        const int rank = halves ? 2 : std::max(rank_a, rank_b);
        if (IsComplexType(a) || IsComplexType(b)) {
            return rank == 1 ? ge::DT_COMPLEX32 : rank == 2 ? ge::DT_COMPLEX64 : ge::DT_COMPLEX128;
        }
        if (rank == 1) return rank_a == 1 ? a : b;
        return rank == 2 ? ge::DT_FLOAT : ge::DT_DOUBLE;
    }
    if (a == ge::DT_BOOL) return b;
    if (b == ge::DT_BOOL) return a;
    if (a == ge::DT_UINT8 || b == ge::DT_UINT8) {
        const DataType other = a == ge::DT_UINT8 ? b : a;
        return other == ge::DT_INT8 ? ge::DT_INT16 : other;
    }
    return TypeSize(a) > TypeSize(b) ? a : b;
}

int64_t CalcShapeBytes(int64_t count, DataType type, bool) { return ge::GetSizeInBytes(count, type); }

ge::AscendString ToString(DataType type) { return text_of(dtype_name(type)); }
ge::AscendString ToString(const std::initializer_list<DataType>& types) {
    return text_of(listed(types, dtype_name));
}
ge::AscendString ToString(const std::vector<DataType>& types) { return text_of(listed(types, dtype_name)); }
ge::AscendString ToString(Format format) { return text_of(ge::TypeUtils::FormatToSerialString(format)); }
ge::AscendString ToString(const Strides& strides) {
    return text_of(listed(strides, [](int64_t one) { return std::to_string(one); }));
}
ge::AscendString ToString(const Shape& shape) { return ToString(ToShapeVector(shape)); }
ge::AscendString ToString(SocVersion version) {
    for (const ascendc_host::Processor& one : ascendc_host::processors) {
        if (platform_ascendc::version_of<SocVersion>(one) == version) return text_of(one.short_name);
    }
    return text_of("another device");
}
ge::AscendString detail::text_of_object(const aclTensor* tensor) {
    return tensor == nullptr ? text_of("nullptr") : tensor->ToString();
}
ge::AscendString detail::text_of_object(const aclTensorList* list) {
    if (list == nullptr) return text_of("nullptr");
    return text_of(
        listed(list->tensors, [](const aclTensor* one) { return std::string(ToString(one).GetString()); }));
}

bool IsPrivateFormat(Format format) {
    switch (GetPrimaryFormat(format)) {
        case ge::FORMAT_NCHW:
        case ge::FORMAT_NHWC:
        case ge::FORMAT_ND:
        case ge::FORMAT_NC:
        case ge::FORMAT_HWCN:
        case ge::FORMAT_NDHWC:
        case ge::FORMAT_NCDHW:
        case ge::FORMAT_DHWCN:
        case ge::FORMAT_NCL:
            return false;
        default:
            return true;
    }
}

void ToShape(const int64_t* sizes, uint64_t rank, Shape& shape) {
    shape = Shape();
    for (uint64_t axis = 0; axis < rank; ++axis) shape.AppendDim(sizes[axis]);
}
void ToShape(const ShapeVector& sizes, Shape& shape) { ToShape(sizes.data(), sizes.size(), shape); }
ShapeVector ToShapeVector(const Shape& shape) {
    ShapeVector sizes;
    for (size_t axis = 0; axis < shape.GetDimNum(); ++axis) sizes.push_back(shape[axis]);
    return sizes;
}
void ToContiguousStrides(const Shape& shape, Strides& strides) {
    strides.assign(shape.GetDimNum(), 1);
    for (size_t axis = shape.GetDimNum(); axis-- > 1;)
        strides[axis - 1] = strides[axis] * std::max<int64_t>(shape[axis], 1);
}
bool BroadcastInferShape(const Shape& a, const Shape& b, Shape& result) {
    const size_t rank = std::max(a.GetDimNum(), b.GetDimNum());
    Shape broadcast;
    for (size_t axis = 0; axis < rank; ++axis) {
        const auto size = [&](const Shape& one) {
            const size_t missing = rank - one.GetDimNum();
            return axis < missing ? 1 : one[axis - missing];
        };
        const int64_t left = size(a), right = size(b);
        if (left != right && left != 1 && right != 1) return false;
        broadcast.AppendDim(left == 1 ? right : left);
    }
    result = broadcast;
    return true;
}
bool CheckBroadcastShape(const Shape& a, const Shape& b) {
    Shape ignored;
    return BroadcastInferShape(a, b, ignored);
}
bool IsContiguous(const aclTensor* tensor) {
    if (tensor == nullptr) return false;
    const Shape& shape = tensor->GetViewShape();
    const Strides& strides = tensor->GetViewStrides();
    int64_t expected = 1;
    for (size_t axis = shape.GetDimNum(); axis-- > 0;) {
        if (shape[axis] != 1 && axis < strides.size() && strides[axis] != expected) return tensor->IsEmpty();
        expected *= shape[axis];
    }
    return true;
}

}  // namespace op

// --- tensors and scalars
// ---------------------------------------------------------------------------------------------

TensorView& aclTensor::look() const {
    if (view == nullptr) {
        auto* made = new TensorView;
        for (uint64_t axis = 0; axis < rank; ++axis) made->view.AppendDim(sizes()[axis]);
        made->storage = made->original = made->view;
        if (ascend_graph::host::in_blocks(format)) {
            made->storage = {};
            for (uint64_t axis = 0; axis < kept_rank; ++axis) made->storage.AppendDim(kept()[axis]);
        }
        made->strides.assign(strides(), strides() + rank);
        made->view_format = made->storage_format = made->original_format = static_cast<op::Format>(format);
        made->block = std::make_shared<Block>();
        made->block->address = TensorObject::storage;
        free_view = [](void* memory) { delete static_cast<TensorView*>(memory); };
        view = made;
    }
    return *static_cast<TensorView*>(view);
}
// A shape of its own has no gaps.
void aclTensor::SetViewShape(const op::Shape& shape) {
    TensorView& own = look();
    const bool is_packed = op::IsContiguous(this);
    own.view = shape;
    if (is_packed || own.strides.size() != shape.GetDimNum()) op::ToContiguousStrides(shape, own.strides);
}
void aclTensor::SetStorageAddr(void* address) const { look().block->address = address; }
void* aclTensor::GetData() const {
    char* const start = static_cast<char*>(GetStorageAddr());
    return start == nullptr ? nullptr : start + offset * static_cast<int64_t>(op::TypeSize(GetDataType()));
}
ge::AscendString aclTensor::ToString() const {
    const std::string text = std::string(op::ToString(GetDataType()).GetString()) + " " +
                             op::ToString(GetViewShape()).GetString() + " with strides " +
                             op::ToString(GetViewStrides()).GetString();
    return text.c_str();
}

std::complex<double> aclScalar::ToComplex128() const {
    if (dtype == ge::DT_COMPLEX64) {
        std::complex<float> number;
        std::memcpy(&number, value, sizeof number);
        return number;
    }
    if (dtype == ge::DT_COMPLEX128) {
        std::complex<double> number;
        std::memcpy(&number, value, sizeof number);
        return number;
    }
    return ToDouble();
}
ge::AscendString aclScalar::ToString() const { return std::to_string(ToDouble()).c_str(); }

// --- the plan of a call
// ----------------------------------------------------------------------------------------------

namespace ascend_graph::host {
namespace {

constexpr uint64_t kBlockAlignment = 512;

// A tensor as a launch had it.
struct Operand {
    std::shared_ptr<Block> block;
    int64_t offset = 0;  // in bytes
    int32_t dtype = 0;
    std::vector<int64_t> sizes, strides;

    explicit Operand(const aclTensor& tensor)
        : block(tensor.look().block),
          offset(tensor.offset * static_cast<int64_t>(op::TypeSize(tensor.GetDataType()))),
          dtype(tensor.dtype),
          strides(tensor.GetViewStrides().begin(), tensor.GetViewStrides().end()) {
        const op::Shape& shape = tensor.GetViewShape();
        for (size_t axis = 0; axis < shape.GetDimNum(); ++axis) sizes.push_back(shape[axis]);
        strides.resize(sizes.size(), 1);
    }
    // Without a workspace: what is known while the call is prepared.
    Tensor at(char* workspace) const {
        char* start = static_cast<char*>(block->known());
        if (block->in_workspace) start = workspace == nullptr ? start : workspace + block->workspace_offset;
        return {start == nullptr ? nullptr : start + offset, dtype, static_cast<int32_t>(sizes.size()),
                sizes.data(), strides.data()};
    }
};

struct Operands {
    bool is_list = false, is_absent = false;
    std::vector<Operand> items;

    explicit Operands(const LaunchTensors& tensors) : is_list(tensors.is_list) {
        for (const aclTensor* tensor : tensors.tensors) {
            if (tensor != nullptr) items.emplace_back(*tensor);
        }
        is_absent = !is_list && items.empty();
    }
};

// What an operator of a package does with values: run, check its tiling, infer. See launch_operator in
// package.h.
enum class Request : int64_t { run = 0, tile = 1, infer = 2 };

struct Step {
    std::string op_type;  // empty: a copy of the input into the output
    std::vector<Operands> inputs, outputs;
    std::vector<AttrValue> attrs;
    std::vector<std::string> attr_names;

    int run(char* workspace) const {
        if (op_type.empty()) return copy(workspace);
        if (const KernelEntry entry = ascendgraphFindKernel((op_type + ":launch").c_str()))
            return with_values(workspace, [&](auto& in, auto& at, auto& out) {
                return ask(entry, Request::run, in, at, out);
            });
        return with_values(workspace, [&](auto& in, auto& at, auto& out) {
            return ascendgraphRunOperator(op_type.c_str(), in.data(), in.size(), at.data(), at.size(),
                                          out.data(), out.size());
        });
    }

    // Leaves the values that a device has before the call runs: those of tensors that were made from arrays.
    void forget_device_values() {
        for (Operands& one : inputs) {
            for (Operand& item : one.items) {
                if (item.block->values.empty()) item.block = std::make_shared<Block>();
            }
        }
    }

    // What is wrong with it before it runs; operators without a package are only known then.
    int check() const {
        const KernelEntry entry = ascendgraphFindKernel((op_type + ":launch").c_str());
        if (op_type.empty() || entry == nullptr) return 0;
        return with_values(
            nullptr, [&](auto& in, auto& at, auto& out) { return ask(entry, Request::tile, in, at, out); });
    }

    static int ask(KernelEntry entry, Request request, const std::vector<NamedValue>& inputs,
                   const std::vector<NamedValue>& attrs, const std::vector<NamedValue>& outputs) {
        std::vector<Value> values;
        const auto number = [&values](int64_t n) {
            values.emplace_back().kind = ValueKind::kInt;
            values.back().i = n;
        };
        number(static_cast<int64_t>(request));
        for (const auto* part : {&inputs, &attrs, &outputs}) number(static_cast<int64_t>(part->size()));
        for (const auto* part : {&inputs, &attrs, &outputs}) {
            for (const NamedValue& named : *part) values.push_back(named.value);
        }
        return entry(values.data(), values.size());
    }

    template <typename F>
    int with_values(char* workspace, F&& call) const {
        std::vector<std::vector<Tensor>> tensors;
        tensors.reserve(inputs.size() + outputs.size());
        const auto named = [&](const std::vector<Operands>& all) {
            std::vector<NamedValue> values;
            for (const Operands& one : all) {
                NamedValue& added = values.emplace_back(NamedValue{"", {}});
                if (one.is_absent) continue;
                auto& list = tensors.emplace_back();
                for (const Operand& item : one.items) list.push_back(item.at(workspace));
                added.value.kind = one.is_list ? ValueKind::kTensorList : ValueKind::kTensor;
                added.value.count = list.size();
                added.value.tensors = list.data();
            }
            return values;
        };
        const auto in = named(inputs), out = named(outputs);
        std::vector<NamedValue> at;
        for (size_t i = 0; i < attrs.size(); ++i)
            at.push_back({i < attr_names.size() ? attr_names[i].c_str() : "", attr_value(attrs[i])});
        return call(in, at, out);
    }

    static Value attr_value(const AttrValue& attr) {
        Value value;
        if (const auto* integer = std::get_if<int64_t>(&attr)) {
            value.kind = ValueKind::kInt;
            value.i = *integer;
        } else if (const auto* number = std::get_if<double>(&attr)) {
            value.kind = ValueKind::kFloat;
            value.f = *number;
        } else if (const auto* flag = std::get_if<bool>(&attr)) {
            value.kind = ValueKind::kBool;
            value.b = *flag;
        } else if (const auto* text = std::get_if<std::string>(&attr)) {
            value.kind = ValueKind::kString;
            value.s = text->c_str();
        } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&attr)) {
            value.kind = ValueKind::kIntList;
            value.count = ints->size();
            value.ints = ints->data();
        } else if (const auto* floats = std::get_if<std::vector<float>>(&attr)) {
            value.kind = ValueKind::kFloatList;
            value.count = floats->size();
            value.floats = floats->data();
        } else if (const auto* bools = std::get_if<std::vector<unsigned char>>(&attr)) {
            value.kind = ValueKind::kBoolList;
            value.count = bools->size();
            value.bools = reinterpret_cast<const bool*>(bools->data());
        }
        return value;
    }

    int copy(char* workspace) const {
        const Tensor from = inputs[0].items[0].at(workspace), to = outputs[0].items[0].at(workspace);
        const auto item = static_cast<int64_t>(op::TypeSize(static_cast<op::DataType>(from.dtype)));
        const int64_t count = to.numel();
        if (from.is_contiguous() && to.is_contiguous()) {
            if (count != 0) std::memmove(to.data, from.data, static_cast<size_t>(count * item));
            return 0;
        }
        for (int64_t i = 0; i < count; ++i)
            std::memcpy(to.as<char>() + to.offset(i) * item, from.as<char>() + from.offset(i) * item,
                        static_cast<size_t>(item));
        return 0;
    }
};

// An object that is gone with the call.
using Owned = std::unique_ptr<void, void (*)(void*)>;
template <typename T>
T* keep(std::vector<Owned>& owned, T* made) {
    owned.emplace_back(made, [](void* one) { delete static_cast<T*>(one); });
    return made;
}

}  // namespace

struct Plan {
    std::string function;
    std::vector<Owned> owned;
    std::vector<const aclTensor*> made;
    std::vector<Step> steps;

    // Places of the blocks in the workspace; its size.
    uint64_t place() const {
        uint64_t end = 0;
        std::set<Block*> placed;
        for (const aclTensor* tensor : made) {
            Block& block = *tensor->look().block;
            if (!block.in_workspace || !placed.insert(&block).second) continue;
            int64_t bytes = static_cast<int64_t>(block.values.size());
            for (const aclTensor* other : made) {
                if (other->look().block.get() != &block) continue;
                const int64_t count = std::max(other->GetStorageShape().GetShapeSize(), other->Numel());
                bytes = std::max(bytes, ge::GetSizeInBytes(count, other->GetDataType()));
            }
            block.workspace_offset = end;
            end += (static_cast<uint64_t>(std::max<int64_t>(bytes, 0)) + kBlockAlignment - 1) /
                   kBlockAlignment * kBlockAlignment;
        }
        return end;
    }

    int run(void* workspace, uint64_t size) const {
        const uint64_t needed = place();
        if (size < needed || (needed != 0 && workspace == nullptr)) {
            return ascendgraphFail(ACLNN_ERR_PARAM_INVALID,
                                   (function + ": the workspace has " + std::to_string(size) + " bytes; " +
                                    std::to_string(needed) + " are needed")
                                       .c_str());
        }
        auto* const memory = static_cast<char*>(workspace);
        for (const aclTensor* tensor : made) {
            const Block& block = *tensor->look().block;
            if (!block.values.empty())
                std::memcpy(memory + block.workspace_offset, block.values.data(), block.values.size());
        }
        for (const Step& step : steps) {
            if (const int status = step.run(memory)) return status;
        }
        return 0;
    }
};

namespace {

// Also what tells an executor with a plan from others.
int run_plan(void* state, void* workspace, uint64_t size) {
    return static_cast<Plan*>(state)->run(workspace, size);
}

}  // namespace

aclnnStatus begin_call(const char* function, const void* executor, const void* workspace_size) {
    logged_errors().clear();
    if (executor != nullptr && workspace_size != nullptr) return 0;
    return ascendgraphFail(ACLNN_ERR_PARAM_NULLPTR,
                           (std::string(function) + ": workspaceSize and executor must not be null").c_str());
}

aclnnStatus infer_launch(const char* op_type, const LaunchArguments& arguments) {
    const KernelEntry entry = ascendgraphFindKernel((std::string(op_type) + ":launch").c_str());
    constexpr int64_t kMost = 2 + static_cast<int64_t>(op::MAX_DIM_NUM);  // dtype, rank, sizes
    static const int64_t stride = 1;
    Step step{op_type, {}, {}, arguments.attrs, {}};
    for (const auto& one : arguments.inputs) step.inputs.emplace_back(one);
    if (entry == nullptr) step.forget_device_values();
    std::vector<std::vector<int64_t>> found(arguments.outputs.size(), std::vector<int64_t>(kMost));
    std::vector<Tensor> results;
    for (auto& one : found) results.push_back({one.data(), ge::DT_INT64, 1, &kMost, &stride});
    const int status = step.with_values(nullptr, [&](auto& inputs, auto& attrs, auto&) {
        std::vector<NamedValue> outputs;
        for (const Tensor& result : results) {
            outputs.push_back({"", {}});
            outputs.back().value.kind = ValueKind::kTensor;
            outputs.back().value.count = 1;
            outputs.back().value.tensors = &result;
        }
        if (entry == nullptr)
            return ascendgraphInferOperator(op_type, inputs.data(), inputs.size(), attrs.data(), attrs.size(),
                                            outputs.data(), outputs.size());
        return Step::ask(entry, Request::infer, inputs, attrs, outputs);
    });
    if (status != 0) return status;
    for (size_t i = 0; i < found.size(); ++i) {
        for (const aclTensor* tensor : arguments.outputs[i].tensors) {
            if (tensor == nullptr) continue;
            op::Shape shape;
            op::ToShape(found[i].data() + 2, static_cast<uint64_t>(found[i][1]), shape);
            const_cast<aclTensor*>(tensor)->SetViewShape(shape);
            tensor->SetOriginalShape(shape);
            tensor->SetStorageShape(shape);
        }
    }
    return 0;
}

}  // namespace ascend_graph::host

// --- the executor
// ----------------------------------------------------------------------------------------------------

Plan* aclOpExecutor::plan() const {
    auto* const found = static_cast<Plan*>(ascendgraphPreparedState(this, run_plan));
    if (found == nullptr)
        OP_LOGE(ACLNN_ERR_INNER_CREATE_EXECUTOR, "the executor is not one that CREATE_EXECUTOR made");
    return found;
}

aclTensor* aclOpExecutor::new_tensor(const op::Shape& storage, const op::Shape& original, op::DataType type,
                                     op::Format storage_format, op::Format original_format) {
    Plan* const own = plan();
    if (own == nullptr) return nullptr;
    auto* tensor = keep(own->owned, create_tensor<aclTensor>(0));
    own->made.push_back(tensor);
    tensor->dtype = type;
    TensorView& look = tensor->look();
    look.view = look.original = original;
    look.storage = storage;
    look.view_format = look.original_format = original_format;
    look.storage_format = storage_format;
    op::ToContiguousStrides(original, look.strides);
    return tensor;
}
aclTensor* aclOpExecutor::AllocTensor(const op::Shape& storage, const op::Shape& original, op::DataType type,
                                      op::Format storage_format, op::Format original_format) {
    auto* tensor = new_tensor(storage, original, type, storage_format, original_format);
    if (tensor != nullptr) tensor->look().block->in_workspace = true;
    return tensor;
}
aclTensor* aclOpExecutor::AllocTensor(const op::Shape& shape, op::DataType type, op::Format format) {
    return AllocTensor(shape, shape, type, format, format);
}
aclTensor* aclOpExecutor::AllocTensor(op::DataType type, op::Format storage_format,
                                      op::Format original_format) {
    return AllocTensor({0}, {0}, type, storage_format, original_format);
}
aclTensor* aclOpExecutor::AllocHostTensor(const op::Shape& shape, op::DataType type, op::Format format) {
    auto* tensor = AllocTensor(shape, type, format);
    if (tensor == nullptr) return nullptr;
    tensor->look().block->values.resize(
        static_cast<size_t>(std::max<int64_t>(ge::GetSizeInBytes(shape.GetShapeSize(), type), 0)));
    return tensor;
}
aclTensor* aclOpExecutor::host_tensor(const void* values, uint64_t count, op::DataType from, op::DataType to,
                                      bool is_scalar) {
    op::Shape shape;
    if (!is_scalar) shape.AppendDim(static_cast<int64_t>(count));
    aclTensor* tensor = AllocHostTensor(shape, to);
    if (tensor == nullptr) return nullptr;
    const size_t from_size = op::TypeSize(from), to_size = op::TypeSize(to);
    for (uint64_t i = 0; i < count; ++i) {
        if (!store_element(tensor->look().block->values.data() + i * to_size, to,
                           static_cast<const char*>(values) + i * from_size, from)) {
            OP_LOGE(ACLNN_ERR_INNER, "values cannot be converted to %s", op::ToString(to).GetString());
            return nullptr;
        }
    }
    return tensor;
}
aclTensor* aclOpExecutor::CreateView(const aclTensor* tensor, const op::Shape& shape, int64_t offset) {
    op::Strides strides;
    op::ToContiguousStrides(shape, strides);
    return CreateView(tensor, shape, shape, strides, offset);
}
aclTensor* aclOpExecutor::CreateView(const aclTensor* tensor, const op::Shape& original,
                                     const op::Shape& storage, const op::Strides& strides, int64_t offset) {
    if (tensor == nullptr) return nullptr;
    const TensorView& of = tensor->look();
    aclTensor* view =
        new_tensor(storage, original, tensor->GetDataType(), of.storage_format, of.original_format);
    if (view == nullptr) return nullptr;
    view->offset = offset;
    TensorView& look = view->look();
    look.block = of.block;
    look.strides = strides;
    look.view_format = of.view_format;
    return view;
}

#define ASCEND_GRAPH_DEFINE(T)                                                                      \
    aclTensor* aclOpExecutor::AllocHostTensor(const T* values, uint64_t count, op::DataType type) { \
        return host_tensor(values, count, dtype_of<T>(), type);                                     \
    }                                                                                               \
    aclScalar* aclOpExecutor::AllocScalar(T value) { return AllocScalar(&value, dtype_of<T>()); }
ASCEND_GRAPH_NUMBERS(ASCEND_GRAPH_DEFINE)
#undef ASCEND_GRAPH_DEFINE

const aclTensor* aclOpExecutor::ConvertToTensor(const aclIntArray* array, op::DataType type) {
    return array == nullptr ? nullptr : AllocHostTensor(array->GetData(), array->Size(), type);
}
const aclTensor* aclOpExecutor::ConvertToTensor(const aclFloatArray* array, op::DataType type) {
    return array == nullptr ? nullptr : AllocHostTensor(array->GetData(), array->Size(), type);
}
const aclTensor* aclOpExecutor::ConvertToTensor(const aclBoolArray* array, op::DataType type) {
    return array == nullptr ? nullptr : AllocHostTensor(array->GetData(), array->Size(), type);
}
const aclTensor* aclOpExecutor::ConvertToTensor(const aclScalar* scalar, op::DataType type) {
    return scalar == nullptr ? nullptr : host_tensor(scalar->GetData(), 1, scalar->GetDataType(), type, true);
}

namespace {

template <typename T>
T* keep(Plan* plan, T* made) {
    if (plan != nullptr) return ascend_graph::host::keep(plan->owned, made);
    delete made;
    return nullptr;
}
template <typename Array, typename T>
Array* array_of(Plan* plan, const T* values, uint64_t count) {
    auto* array = keep(plan, new Array);
    if (array != nullptr) array->values.assign(values, values + count);
    return array;
}

}  // namespace

aclIntArray* aclOpExecutor::AllocIntArray(const int64_t* values, uint64_t count) {
    return array_of<aclIntArray>(plan(), values, count);
}
aclFloatArray* aclOpExecutor::AllocFloatArray(const float* values, uint64_t count) {
    return array_of<aclFloatArray>(plan(), values, count);
}
aclBoolArray* aclOpExecutor::AllocBoolArray(const bool* values, uint64_t count) {
    return array_of<aclBoolArray>(plan(), values, count);
}
aclTensorList* aclOpExecutor::AllocTensorList(const aclTensor* const* tensors, uint64_t count) {
    return keep(plan(), new aclTensorList{{tensors, tensors + count}});
}
aclScalarList* aclOpExecutor::AllocScalarList(const aclScalar* const* scalars, uint64_t count) {
    return keep(plan(), new aclScalarList{{scalars, scalars + count}});
}
aclScalar* aclOpExecutor::AllocScalar(const void* value, op::DataType type) {
    auto* scalar = keep(plan(), new aclScalar);
    if (scalar == nullptr) return nullptr;
    scalar->dtype = type;
    std::memcpy(scalar->value, value, std::min(op::TypeSize(type), sizeof scalar->value));
    return scalar;
}

uint64_t aclOpExecutor::GetWorkspaceSize() const {
    const Plan* const own = plan();
    return own == nullptr ? 0 : own->place();
}

aclnnStatus aclOpExecutor::launch(const char* op_type, LaunchArguments arguments) {
    const auto refused = [op_type](int code, const std::string& text) {
        OP_LOGE(code, "%s: %s", op_type, text.c_str());
        return code;
    };
    if (arguments.shape_by_kernel)
        return refused(ACLNN_ERR_INNER,
                       "shapes that a kernel writes (OP_OUTSHAPE) are not known to the host runtime");
    Step step{op_type, {}, {}, std::move(arguments.attrs), std::move(arguments.attr_names)};
    for (const auto& one : arguments.inputs) step.inputs.emplace_back(one);
    for (const auto& one : arguments.outputs) step.outputs.emplace_back(one);
    if (const int status = step.check()) {
        log_text(DLOG_ERROR, ascendgraphRecentError());  // authors report more after it
        return status;
    }
    Plan* const own = plan();
    if (own == nullptr) return ACLNN_ERR_INNER_CREATE_EXECUTOR;
    own->steps.push_back(std::move(step));
    return ACLNN_SUCCESS;
}

aclnnStatus aclOpExecutor::copy(const aclTensor* from, const aclTensor* to) {
    if (from == nullptr || to == nullptr) return ACLNN_ERR_INNER_NULLPTR;
    if (from->Numel() != to->Numel() || from->dtype != to->dtype) {
        OP_LOGE(ACLNN_ERR_PARAM_INVALID, "%s cannot be copied to %s", from->ToString().GetString(),
                to->ToString().GetString());
        return ACLNN_ERR_PARAM_INVALID;
    }
    Step step;
    step.inputs.emplace_back(launch_tensors(from));
    step.outputs.emplace_back(launch_tensors(to));
    Plan* const own = plan();
    if (own == nullptr) return ACLNN_ERR_INNER_CREATE_EXECUTOR;
    own->steps.push_back(std::move(step));
    return ACLNN_SUCCESS;
}

UniqueExecutor::UniqueExecutor(const char* function) : function_(function) {
    ascendgraphPrepared prepared{};
    prepared.state = new Plan{function, {}, {}, {}};
    prepared.run = run_plan;
    prepared.destroy = [](void* state) { delete static_cast<Plan*>(state); };
    executor_.reset(ascendgraphCreatePrepared(function, &prepared));
}

aclnnStatus CommonOpExecutorRun(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                aclrtStream stream) {
    return ascendgraphRunPrepared(executor, workspace, workspaceSize, stream);
}

// --- operators
// -------------------------------------------------------------------------------------------------------

namespace l0op {
namespace {

const aclTensor* same_memory(const aclTensor* x, const op::Shape& shape, aclOpExecutor* executor) {
    return executor->CreateView(x, shape, x->GetViewOffset());
}
const aclTensor* launched(const char* op_type, const aclTensor* result, aclOpExecutor* executor,
                          LaunchArguments arguments) {
    return executor->launch(op_type, std::move(arguments)) == ACLNN_SUCCESS ? result : nullptr;
}

}  // namespace

const aclTensor* Contiguous(const aclTensor* x, aclOpExecutor* executor) {
    if (x == nullptr) return nullptr;
    if (op::IsContiguous(x)) return same_memory(x, x->GetViewShape(), executor);
    aclTensor* packed = executor->AllocTensor(x->GetViewShape(), x->GetDataType(), x->GetViewFormat());
    return executor->copy(x, packed) == ACLNN_SUCCESS ? packed : nullptr;
}
const aclTensor* PickViewAsContiguous(const aclTensor* x, aclOpExecutor* executor) {
    if (!op::IsContiguous(x)) return nullptr;
    return same_memory(x, x->GetViewShape(), executor);
}
const aclTensor* ViewCopy(const aclTensor* x, const aclTensor* y, aclOpExecutor* executor) {
    if (x == nullptr || y == nullptr) return nullptr;
    const bool is_same = x->look().block == y->look().block && x->GetViewOffset() == y->GetViewOffset() &&
                         op::IsContiguous(x) && op::IsContiguous(y);
    return is_same || executor->copy(x, y) == ACLNN_SUCCESS ? y : nullptr;
}
const aclTensor* ReViewToOut(const aclTensor* x, const aclTensor* y, aclOpExecutor* executor) {
    return ViewCopy(x, y, executor);
}
const aclTensor* Cast(const aclTensor* self, op::DataType dstDtype, aclOpExecutor* executor) {
    if (self == nullptr || self->GetDataType() == dstDtype) return self;
    aclTensor* result = executor->AllocTensor(self->GetViewShape(), dstDtype, self->GetViewFormat());
    LaunchArguments arguments = joined(OP_INPUT(self), OP_OUTPUT(result), OP_ATTR(dstDtype));
    arguments.attr_names = {"dst_type"};
    return launched("Cast", result, executor, std::move(arguments));
}
const aclTensor* CastOnlyForConvBackward(const aclTensor* self, op::DataType dstDtype,
                                         aclOpExecutor* executor) {
    return Cast(self, dstDtype, executor);
}
const aclTensor* Reshape(const aclTensor* x, const op::Shape& shape, aclOpExecutor* executor) {
    if (x == nullptr) return nullptr;
    op::Shape known = shape;
    int64_t rest = x->Numel(), unknown = -1;
    for (size_t axis = 0; axis < shape.GetDimNum(); ++axis) {
        if (shape[axis] == -1) unknown = static_cast<int64_t>(axis);
        if (shape[axis] > 0) rest /= shape[axis];
    }
    if (unknown >= 0) known.SetDim(static_cast<size_t>(unknown), rest);
    if (known.GetShapeSize() != x->Numel()) {
        OP_LOGE(ACLNN_ERR_PARAM_INVALID, "%s cannot be reshaped to %s", x->ToString().GetString(),
                op::ToString(shape).GetString());
        return nullptr;
    }
    const aclTensor* packed = Contiguous(x, executor);
    return packed == nullptr ? nullptr : same_memory(packed, known, executor);
}
const aclTensor* Reshape(const aclTensor* x, const aclIntArray* shape, aclOpExecutor* executor) {
    op::Shape sizes;
    op::ToShape(shape->GetData(), shape->Size(), sizes);
    return Reshape(x, sizes, executor);
}
const aclTensor* Transpose(const aclTensor* x, const aclIntArray* perm, aclOpExecutor* executor) {
    if (x == nullptr || perm == nullptr || perm->Size() != x->GetViewShape().GetDimNum()) {
        OP_LOGE(ACLNN_ERR_PARAM_INVALID, "Transpose: perm must name every dimension of x");
        return nullptr;
    }
    op::Shape shape;
    for (uint64_t axis = 0; axis < perm->Size(); ++axis)
        shape.AppendDim(x->GetViewShape().GetDim(static_cast<size_t>((*perm)[axis])));
    aclTensor* result = executor->AllocTensor(shape, x->GetDataType(), x->GetViewFormat());
    return Transpose(x, result, executor->ConvertToTensor(perm, ge::DT_INT64), executor);
}
const aclTensor* Transpose(const aclTensor* x, const aclTensor* y, const aclTensor* perm,
                           aclOpExecutor* executor) {
    return launched("Transpose", y, executor, joined(OP_INPUT(x, perm), OP_OUTPUT(y)));
}
const aclTensor* Slice(const aclTensor* x, const aclIntArray* offsets, const aclIntArray* size,
                       aclOpExecutor* executor) {
    op::Shape shape;
    for (uint64_t axis = 0; axis < size->Size(); ++axis) {
        const int64_t rest = x->GetViewShape().GetDim(axis) - (*offsets)[axis];
        shape.AppendDim((*size)[axis] == -1 ? rest : (*size)[axis]);
    }
    aclTensor* result = executor->AllocTensor(shape, x->GetDataType(), x->GetViewFormat());
    return Slice(x, result, executor->ConvertToTensor(offsets, ge::DT_INT64),
                 executor->ConvertToTensor(size, ge::DT_INT64), executor);
}
const aclTensor* Slice(const aclTensor* x, const aclTensor* y, const aclTensor* offset, const aclTensor* size,
                       aclOpExecutor* executor) {
    return launched("Slice", y, executor, joined(OP_INPUT(x, offset, size), OP_OUTPUT(y)));
}
const aclTensor* Pad(const aclTensor* self, const aclTensor* paddings, aclOpExecutor* executor) {
    if (self == nullptr || paddings == nullptr || paddings->GetData() == nullptr ||
        paddings->Numel() != 2 * static_cast<int64_t>(self->GetViewShape().GetDimNum())) {
        OP_LOGE(ACLNN_ERR_PARAM_INVALID, "Pad: paddings must be two known values for every dimension");
        return nullptr;
    }
    op::Shape shape;
    const auto* values = static_cast<const char*>(paddings->GetData());
    const auto value = [&](size_t i) {
        return convert_element<int64_t>(values + i * op::TypeSize(paddings->GetDataType()), paddings->dtype);
    };
    for (size_t axis = 0; axis < self->GetViewShape().GetDimNum(); ++axis)
        shape.AppendDim(value(2 * axis) + self->GetViewShape()[axis] + value(2 * axis + 1));
    aclTensor* result = executor->AllocTensor(shape, self->GetDataType(), self->GetViewFormat());
    return launched("Pad", result, executor, joined(OP_INPUT(self, paddings), OP_OUTPUT(result)));
}
const std::tuple<aclTensor*, aclTensor*> Sort(const aclTensor* self, int64_t dim, bool descending,
                                              bool stable, op::DataType indicesType,
                                              aclOpExecutor* executor) {
    if (self == nullptr || !op::CheckType(indicesType, {ge::DT_INT32, ge::DT_INT64})) {
        OP_LOGE(ACLNN_ERR_PARAM_INVALID, "Sort: expected a tensor and indices of int32 or int64");
        return {nullptr, nullptr};
    }
    aclTensor* values = executor->AllocTensor(self->GetViewShape(), self->GetDataType());
    aclTensor* indices = executor->AllocTensor(self->GetViewShape(), ge::DT_INT32);
    const auto arguments =
        joined(OP_INPUT(self), OP_OUTPUT(values, indices), OP_ATTR(dim, descending, stable));
    if (launched("Sort", values, executor, arguments) == nullptr) return {nullptr, nullptr};
    if (indicesType == ge::DT_INT32) return {values, indices};
    return {values, const_cast<aclTensor*>(Cast(indices, indicesType, executor))};
}
const aclTensor* ReFormat(const aclTensor* x, const op::Format& format, aclOpExecutor*) {
    if (x == nullptr) return nullptr;
    auto* const changed = const_cast<aclTensor*>(x);
    changed->SetViewFormat(format);
    changed->SetStorageFormat(format);
    changed->SetOriginalFormat(format);
    return x;
}
const aclTensor* TransData(const aclTensor* x, op::Format dstPrimaryFormat, int64_t, aclOpExecutor*) {
    if (x == nullptr || x->GetStorageFormat() == dstPrimaryFormat) return x;
    if (op::IsPrivateFormat(dstPrimaryFormat) || op::IsPrivateFormat(x->GetStorageFormat())) {
        OP_LOGE(ACLNN_ERR_PARAM_INVALID,
                "TransData from %s to %s: the host runtime keeps tensors as their shapes say",
                op::ToString(x->GetStorageFormat()).GetString(), op::ToString(dstPrimaryFormat).GetString());
        return nullptr;
    }
    return ReFormat(x, dstPrimaryFormat);
}
const aclTensor* TransDataSpecial(const aclTensor* x, op::Format dstPrimaryFormat, int64_t groups,
                                  aclOpExecutor* executor) {
    return TransData(x, dstPrimaryFormat, groups, executor);
}

}  // namespace l0op
