// A node's description and the context of one call, in the layout of layout.h.
#pragma once

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "ascend_graph/host_kernel.h"
#include "exe_graph/layout.h"

namespace ascend_graph::host::layout {

// Attrs in one block: the number of them, the offset of each, the values.
class AttrBlock {
  public:
    explicit AttrBlock(size_t count) : bytes_(sizeof(Attrs) + count * sizeof(size_t)) {
        std::memcpy(bytes_.data(), &count, sizeof count);
    }

    // False for a value that the block cannot have: an attr always has one on a device.
    bool add(const Value& value) {
        switch (value.kind) {
            case ValueKind::kInt:
                return add_bytes(&value.i, sizeof value.i);
            case ValueKind::kFloat: {
                const auto number = static_cast<float>(value.f);
                return add_bytes(&number, sizeof number);
            }
            case ValueKind::kBool:
                return add_bytes(&value.b, sizeof value.b);
            case ValueKind::kString:
                return add_bytes(value.s, std::strlen(value.s) + 1);
            case ValueKind::kIntList:
                return add_list(value.ints, value.count);
            case ValueKind::kFloatList:
                return add_list(value.floats, value.count);
            case ValueKind::kBoolList:
                return add_list(value.bools, value.count);
            default:
                return false;
        }
    }
    const std::vector<char>& bytes() {
        bytes_.resize((bytes_.size() + 7) / 8 * 8);
        return bytes_;
    }

  private:
    void begin() {
        bytes_.resize((bytes_.size() + 7) / 8 * 8);
        const size_t offset = bytes_.size();
        std::memcpy(bytes_.data() + sizeof(Attrs) + added_++ * sizeof(size_t), &offset, sizeof offset);
    }
    bool add_bytes(const void* data, size_t size) {
        begin();
        append(data, size);
        return true;
    }
    template <typename T>
    bool add_list(const T* elements, size_t count) {
        begin();
        List list;
        list.capacity = list.count = count;
        append(&list, sizeof list);
        append(elements, count * sizeof(T));
        return true;
    }
    void append(const void* data, size_t size) {
        const auto* first = static_cast<const char*>(data);
        bytes_.insert(bytes_.end(), first, first + size);
    }

    std::vector<char> bytes_;
    size_t added_ = 0;
};

// The tensors of one side of a node, by the parameters they belong to.
struct Side {
    std::vector<Instances> parameters;
    std::deque<Tensor> tensors;

    void add(const Value& value) {
        Instances instances;
        instances.first = static_cast<uint32_t>(tensors.size());
        instances.count = value.kind == ValueKind::kAbsent ? 0 : static_cast<uint32_t>(value.count);
        parameters.push_back(instances);
        for (size_t i = 0; i < instances.count; ++i) tensors.push_back(described(value.tensors[i]));
    }
    void add_output() {
        Instances instances;
        instances.first = static_cast<uint32_t>(tensors.size());
        instances.count = 1;
        parameters.push_back(instances);
        tensors.emplace_back().dtype = host::Tensor::kUndefined;
        tensors.back().format.origin = tensors.back().format.storage = kND;
    }

  private:
    static constexpr int32_t kND = 2;

    static Tensor described(const host::Tensor& given) {
        Tensor tensor;
        Shape& origin = tensor.shape.origin;
        origin.rank = static_cast<size_t>(given.rank);
        for (size_t axis = 0; axis < origin.rank; ++axis) origin.sizes[axis] = given.sizes[axis];
        tensor.shape.storage = origin;
        if (given.kept_rank > 0) {
            Shape& kept = tensor.shape.storage = Shape();
            kept.rank = static_cast<size_t>(given.kept_rank);
            for (size_t axis = 0; axis < kept.rank; ++axis) kept.sizes[axis] = given.kept[axis];
        }
        tensor.format.storage = given.format;
        tensor.format.origin = given.kept_rank > 0 ? kND : given.format;
        tensor.dtype = given.dtype;
        tensor.data.address = given.data;
        tensor.data.placement = given.data == nullptr ? TensorData::kOnDevice : TensorData::kOnHost;
        return tensor;
    }
};

inline std::vector<char> node_bytes(const char* op_type, const Side& inputs, const Side& outputs,
                                    const std::vector<char>& attrs) {
    Node node;
    node.type = node.name = op_type;
    node.inputs = inputs.parameters.size();
    node.input_tensors = inputs.tensors.size();
    node.outputs = outputs.parameters.size();
    node.output_tensors = outputs.tensors.size();
    node.attr_bytes = attrs.size();
    std::vector<char> bytes;
    const auto append = [&bytes](const void* data, size_t size) {
        const auto* first = static_cast<const char*>(data);
        bytes.insert(bytes.end(), first, first + size);
    };
    append(&node, sizeof node);
    append(inputs.parameters.data(), inputs.parameters.size() * sizeof(Instances));
    for (const auto* tensors : {&inputs.tensors, &outputs.tensors}) {
        for (const Tensor& tensor : *tensors) {
            TensorDescription description;
            description.dtype = tensor.dtype;
            description.format = tensor.format;
            append(&description, sizeof description);
        }
    }
    append(attrs.data(), attrs.size());
    append(outputs.parameters.data(), outputs.parameters.size() * sizeof(Instances));
    return bytes;
}

// A call's inputs and outputs, each a pointer or a value that fits into one.
class ContextBlock {
  public:
    explicit ContextBlock(const void* node) { context_.node = node; }
    void add_input(void* word) {
        values_.push_back({word, nullptr});
        ++context_.inputs;
    }
    void add_output(void* word) {
        values_.push_back({word, nullptr});
        ++context_.outputs;
    }
    const AnyValue& output(size_t index) const { return values_[context_.inputs + index]; }
    // The context, as long as this lives and nothing is added.
    void* finished() {
        words_.assign(sizeof(Context) / sizeof(void*), nullptr);
        for (AnyValue& value : values_) words_.push_back(&value);
        words_.push_back(nullptr);
        context_.first_output =
            reinterpret_cast<AnyValue**>(words_.data() + sizeof(Context) / sizeof(void*) + context_.inputs);
        std::memcpy(words_.data(), &context_, sizeof context_);
        return words_.data();
    }

  private:
    Context context_;
    std::deque<AnyValue> values_;  // addresses stay as they are
    std::vector<void*> words_;
};

}  // namespace ascend_graph::host::layout
