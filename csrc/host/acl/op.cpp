// The aclop interface: single operators by their GE type, with descriptions of their tensors and attrs.
//
// torch_npu comes this way for operators without an aclnn function. They run on the graph engine's kernels.
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "acl/runtime.h"
#include "acl/tensor_desc.h"
#include "ascend_graph/aclnn_objects.h"
#include "ascend_graph/host_kernel.h"

using namespace ascend_graph::host;

extern "C" size_t aclDataTypeSize(aclDataType dtype);

struct aclDataBuffer {
    void* data;
    size_t size;
};
// The values in the order they were set, with what they point at. Deques keep addresses.
struct aclopAttr {
    std::vector<NamedValue> values;
    std::deque<std::string> strings;
    std::deque<std::vector<int64_t>> ints;
    std::deque<std::vector<float>> floats;
    std::deque<std::unique_ptr<bool[]>> bools;

    Value* add(const char* name, ValueKind kind, size_t count = 0) {
        if (name == nullptr) return nullptr;
        strings.emplace_back(name);
        values.push_back({strings.back().c_str(), {}});
        values.back().value.kind = kind;
        values.back().value.count = count;
        return &values.back().value;
    }
};

ACL_EXPORT void* aclGetDataBufferAddr(const aclDataBuffer* buffer) {
    return buffer == nullptr ? nullptr : buffer->data;
}
ACL_EXPORT size_t aclGetDataBufferSizeV2(const aclDataBuffer* buffer) {
    return buffer == nullptr ? 0 : buffer->size;
}
ACL_EXPORT uint32_t aclGetDataBufferSize(const aclDataBuffer* buffer) {
    return static_cast<uint32_t>(aclGetDataBufferSizeV2(buffer));
}
ACL_EXPORT aclError aclUpdateDataBuffer(aclDataBuffer* buffer, void* data, size_t size) {
    if (buffer == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclUpdateDataBuffer", "dataBuffer");
    *buffer = {data, size};
    return ACL_SUCCESS;
}
ACL_EXPORT aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
    return new aclDataBuffer{data, size};
}
ACL_EXPORT aclError aclDestroyDataBuffer(const aclDataBuffer* buffer) {
    delete buffer;
    return ACL_SUCCESS;
}

ACL_EXPORT aclopAttr* aclopCreateAttr() { return new aclopAttr; }
ACL_EXPORT void aclopDestroyAttr(const aclopAttr* attr) { delete attr; }
namespace {

template <typename F>
aclError set_attr(aclopAttr* attr, const char* name, ValueKind kind, size_t count, F store) {
    Value* value = attr == nullptr ? nullptr : attr->add(name, kind, count);
    if (value == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclopSetAttr", "attr or its name");
    store(*value);
    return ACL_SUCCESS;
}

}  // namespace

ACL_EXPORT aclError aclopSetAttrBool(aclopAttr* attr, const char* name, uint8_t v) {
    return set_attr(attr, name, ValueKind::kBool, 0, [&](Value& value) { value.b = v != 0; });
}
ACL_EXPORT aclError aclopSetAttrDataType(aclopAttr* attr, const char* name, aclDataType v) {
    return set_attr(attr, name, ValueKind::kInt, 0, [&](Value& value) { value.i = v; });
}
ACL_EXPORT aclError aclopSetAttrFloat(aclopAttr* attr, const char* name, float v) {
    return set_attr(attr, name, ValueKind::kFloat, 0, [&](Value& value) { value.f = v; });
}
ACL_EXPORT aclError aclopSetAttrInt(aclopAttr* attr, const char* name, int64_t v) {
    return set_attr(attr, name, ValueKind::kInt, 0, [&](Value& value) { value.i = v; });
}
ACL_EXPORT aclError aclopSetAttrString(aclopAttr* attr, const char* name, const char* v) {
    return set_attr(attr, name, ValueKind::kString, 0, [&](Value& value) {
        attr->strings.emplace_back(v == nullptr ? "" : v);
        value.s = attr->strings.back().c_str();
    });
}
ACL_EXPORT aclError aclopSetAttrListBool(aclopAttr* attr, const char* name, int count,
                                         const uint8_t* values) {
    return set_attr(attr, name, ValueKind::kBoolList, static_cast<size_t>(count), [&](Value& value) {
        attr->bools.push_back(std::make_unique<bool[]>(static_cast<size_t>(count)));
        for (int i = 0; i < count; ++i) attr->bools.back()[static_cast<size_t>(i)] = values[i] != 0;
        value.bools = attr->bools.back().get();
    });
}
ACL_EXPORT aclError aclopSetAttrListFloat(aclopAttr* attr, const char* name, int count, const float* values) {
    return set_attr(attr, name, ValueKind::kFloatList, static_cast<size_t>(count), [&](Value& value) {
        attr->floats.emplace_back(values, values + count);
        value.floats = attr->floats.back().data();
    });
}
ACL_EXPORT aclError aclopSetAttrListInt(aclopAttr* attr, const char* name, int count, const int64_t* values) {
    return set_attr(attr, name, ValueKind::kIntList, static_cast<size_t>(count), [&](Value& value) {
        attr->ints.emplace_back(values, values + count);
        value.ints = attr->ints.back().data();
    });
}
ACL_EXPORT aclError aclopSetAttrListListInt(aclopAttr*, const char* name, int, const int*,
                                            const int64_t* const*) {
    return fail(ACL_ERROR_API_NOT_SUPPORT,
                std::string("aclopSetAttrListListInt: attr ") + (name == nullptr ? "" : name) +
                    ": lists of lists are not implemented by the host runtime; expected a "
                    "list of numbers");
}

ACL_EXPORT aclError aclopSetAttrListString(aclopAttr*, const char* name, int, const char* const*) {
    return fail(ACL_ERROR_API_NOT_SUPPORT,
                std::string("aclopSetAttrListString: attr ") + (name == nullptr ? "" : name) +
                    ": lists of strings are not implemented by the host runtime; expected a "
                    "string");
}

namespace {
ascendgraphOperatorRunner runner = nullptr, inference = nullptr;

int without_pytorch(const char* op_type) {
    return fail(ACL_ERROR_OP_NOT_FOUND,
                std::string("operator ") + op_type +
                    ": the host runtime runs single operators in processes with PyTorch only; import "
                    "torch and torch_npu first");
}
}  // namespace

ACL_EXPORT void ascendgraphSetOperatorRunner(ascendgraphOperatorRunner value) { runner = value; }
ACL_EXPORT void ascendgraphSetOperatorInference(ascendgraphOperatorRunner value) { inference = value; }

ACL_EXPORT int ascendgraphRunOperator(const char* op_type, const NamedValue* inputs, size_t input_count,
                                      const NamedValue* attrs, size_t attr_count, const NamedValue* outputs,
                                      size_t output_count) {
    if (runner == nullptr) return without_pytorch(op_type);
    return runner(op_type, inputs, input_count, attrs, attr_count, outputs, output_count);
}
ACL_EXPORT int ascendgraphInferOperator(const char* op_type, const NamedValue* inputs, size_t input_count,
                                        const NamedValue* attrs, size_t attr_count, const NamedValue* outputs,
                                        size_t output_count) {
    if (inference == nullptr) return without_pytorch(op_type);
    return inference(op_type, inputs, input_count, attrs, attr_count, outputs, output_count);
}

namespace {

// Shapes and strides of one call's tensors.
class Tensors {
  public:
    NamedValue describe(const aclTensorDesc* desc, const aclDataBuffer* buffer) {
        NamedValue named{desc == nullptr ? "" : desc->name.c_str(), {}};
        constexpr int kUndefined = -1;  // ACL_DT_UNDEFINED marks an absent optional input
        if (desc == nullptr || static_cast<int>(desc->dtype) == kUndefined) return named;
        strides_.emplace_back(desc->dims.size());
        int64_t stride = 1;
        for (size_t d = desc->dims.size(); d-- > 0;) {
            strides_.back()[d] = stride;
            stride *= desc->dims[d];
        }
        tensors_.push_back({buffer == nullptr ? nullptr : buffer->data, static_cast<int32_t>(desc->dtype),
                            static_cast<int32_t>(desc->dims.size()), desc->dims.data(),
                            strides_.back().data()});
        if (in_blocks(desc->kept_format)) {
            tensors_.back().format = desc->kept_format;
            tensors_.back().kept_rank = static_cast<int32_t>(desc->kept.size());
            tensors_.back().kept = desc->kept.data();
        }
        named.value.kind = ValueKind::kTensor;
        named.value.count = 1;
        named.value.tensors = &tensors_.back();
        return named;
    }

  private:
    std::deque<Tensor> tensors_;
    std::deque<std::vector<int64_t>> strides_;
};

aclError execute(const char* op_type, int input_count, const aclTensorDesc* const* input_descs,
                 const aclDataBuffer* const* inputs, int output_count,
                 const aclTensorDesc* const* output_descs, const aclDataBuffer* const* outputs,
                 const aclopAttr* attr, aclrtStream stream) {
    if (op_type == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclopCompileAndExecute", "opType");
    if (ascendgraphDeferral(stream) != nullptr) {
        return fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG,
                    std::string("operator ") + op_type +
                        ": the aclop interface cannot be captured into a model; call the aclnn function");
    }
    Tensors tensors;
    std::vector<NamedValue> in, out;
    for (int i = 0; i < input_count; ++i) in.push_back(tensors.describe(input_descs[i], inputs[i]));
    for (int i = 0; i < output_count; ++i) out.push_back(tensors.describe(output_descs[i], outputs[i]));
    static const std::vector<NamedValue> none;
    const auto& attrs = attr == nullptr ? none : attr->values;
    const Kernel kernel(stream, op_type);
    return ascendgraphRunOperator(op_type, in.data(), in.size(), attrs.data(), attrs.size(), out.data(),
                                  out.size());
}

}  // namespace

ACL_EXPORT aclError aclopCompileAndExecute(const char* op_type, int input_count,
                                           const aclTensorDesc* const* input_descs,
                                           const aclDataBuffer* const* inputs, int output_count,
                                           const aclTensorDesc* const* output_descs,
                                           aclDataBuffer* const* outputs, const aclopAttr* attr, int, int,
                                           const char*, aclrtStream stream) {
    return execute(op_type, input_count, input_descs, inputs, output_count, output_descs, outputs, attr,
                   stream);
}
ACL_EXPORT aclError aclopCompileAndExecuteV2(const char* op_type, int input_count,
                                             aclTensorDesc** input_descs, aclDataBuffer** inputs,
                                             int output_count, aclTensorDesc** output_descs,
                                             aclDataBuffer** outputs, aclopAttr* attr, int, int, const char*,
                                             aclrtStream stream) {
    return execute(op_type, input_count, input_descs, inputs, output_count, output_descs, outputs, attr,
                   stream);
}

// Compile options: kept and given back. There is no just-in-time compilation of operators on a host.
namespace {
constexpr int kJitCompile = 10;  // ACL_OP_JIT_COMPILE
std::mutex options_mutex;
std::map<int, std::string>& options() {
    static std::map<int, std::string> values{{kJitCompile, "disable"}};
    return values;
}
}  // namespace

ACL_EXPORT aclError aclSetCompileopt(int option, const char* value) {
    if (value == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclSetCompileopt", "value");
    std::lock_guard<std::mutex> lock(options_mutex);
    options()[option] = value;
    return ACL_SUCCESS;
}
ACL_EXPORT size_t aclGetCompileoptSize(int option) {
    std::lock_guard<std::mutex> lock(options_mutex);
    auto found = options().find(option);
    return found == options().end() ? 0 : found->second.size() + 1;
}
ACL_EXPORT aclError aclGetCompileopt(int option, char* value, size_t length) {
    std::lock_guard<std::mutex> lock(options_mutex);
    auto found = options().find(option);
    if (value == nullptr || found == options().end() || length <= found->second.size()) {
        return fail(ACL_ERROR_INVALID_PARAM,
                    "aclGetCompileopt: option " + std::to_string(option) +
                        " is not set, or the buffer is too small; set it with aclSetCompileopt, and "
                        "allocate the size that aclGetCompileOptSize returns");
    }
    std::strcpy(value, found->second.c_str());
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclopSetCompileFlag(int) { return ACL_SUCCESS; }

// Calls of operators are recorded for kernels that are compiled for their shapes. The host has no such
// kernels: nothing is recorded, and a program goes on with the others.
ACL_EXPORT aclError aclopStartDumpArgs(uint32_t, const char* path) {
    if (path == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclopStartDumpArgs", "path");
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclopStopDumpArgs(uint32_t) { return ACL_SUCCESS; }
