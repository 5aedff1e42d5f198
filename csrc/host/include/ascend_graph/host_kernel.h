// How the host runtime calls an operator's kernel.
//
// An operator package carries, for each prototype, one entry point with a uniform signature: an array of
// values in the prototype's order (inputs, attrs, outputs). Both ways into the operator, the aclnn functions
// and the graph engine, end there, as both end in the same kernel binary on a device.
#ifndef ASCEND_GRAPH_HOST_KERNEL_H
#define ASCEND_GRAPH_HOST_KERNEL_H

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ascend_graph::host {

// A borrowed array.
template <typename T>
struct Span {
    const T* first = nullptr;
    size_t count = 0;

    const T* begin() const { return first; }
    const T* end() const { return first + count; }
    size_t size() const { return count; }
    const T& operator[](size_t i) const { return first[i]; }
};

// A strided view of device memory. `sizes` and `strides` count elements; `dtype` is ge::DataType's number.
// Memory in another `format` (ge::Format's number) than that of the sizes, such as FRACTAL_NZ, has sizes of
// its own, the `kept` ones; the view is then one of the tensor that the memory stands for, and `view_offset`
// where it begins there. An output that is absent in a call has no dtype (DT_UNDEFINED), no data and the
// sizes [0]: there is nothing to write.
struct Tensor {
    static constexpr int32_t kUndefined = 28;

    void* data = nullptr;
    int32_t dtype = 0;
    int32_t rank = 0;
    const int64_t* sizes = nullptr;
    const int64_t* strides = nullptr;
    int32_t format = 2;  // ND
    int32_t kept_rank = 0;
    const int64_t* kept = nullptr;
    int64_t view_offset = 0;

    template <typename T>
    T* as() const {
        return static_cast<T*>(data);
    }

    bool is_given() const { return dtype != kUndefined; }

    int64_t numel() const {
        int64_t count = 1;
        for (int32_t d = 0; d < rank; ++d) count *= sizes[d];
        return count;
    }

    bool is_contiguous() const {
        int64_t expected = 1;
        for (int32_t d = rank - 1; d >= 0; --d) {
            if (sizes[d] != 1 && strides[d] != expected) return false;
            expected *= sizes[d];
        }
        return true;
    }

    // The element offset of the i-th element in row-major order.
    int64_t offset(int64_t i) const {
        int64_t at = 0;
        for (int32_t d = rank - 1; d >= 0; --d) {
            at += i % sizes[d] * strides[d];
            i /= sizes[d];
        }
        return at;
    }
};

enum class ValueKind : int32_t {
    kAbsent,
    kTensor,
    kTensorList,
    kInt,
    kFloat,
    kBool,
    kString,
    kIntList,
    kFloatList,
    kBoolList
};

// One argument of an operator. `count` is the length of a list.
struct Value {
    ValueKind kind = ValueKind::kAbsent;
    uint64_t count = 0;
    union {
        const Tensor* tensors;
        int64_t i;
        double f;
        bool b;
        const char* s;
        const int64_t* ints;
        const float* floats;
        const bool* bools;
    };
};

// Returns an ACL error code; a failure's text is given to ascendgraphFail first.
using KernelEntry = int (*)(const Value* values, size_t count);

}  // namespace ascend_graph::host

extern "C" {

// The number is that of the layout of Value and Tensor: a package that was compiled with another one does not
// load.
#define ascendgraphRegisterKernel ascendgraphRegisterKernelOfLayout2

// Makes `entry` the kernel of `op_type`; called when an operator package is loaded. A later package does not
// replace the kernel of an earlier one: the search order of ASCEND_CUSTOM_OPP_PATH decides.
void ascendgraphRegisterKernel(const char* op_type, ascend_graph::host::KernelEntry entry);
// Null where no loaded package has the operator.
ascend_graph::host::KernelEntry ascendgraphFindKernel(const char* op_type);

// Runs an operator by its GE type, as the aclop interface and hand-written aclnn functions do: inputs and
// outputs are tensors (or absent), attrs any value. A name may be empty: then the position counts.
namespace ascend_graph::host {
struct NamedValue {
    const char* name;
    Value value;
};
}  // namespace ascend_graph::host
using ascendgraphOperatorRunner = int (*)(const char* op_type, const ascend_graph::host::NamedValue* inputs,
                                          size_t input_count, const ascend_graph::host::NamedValue* attrs,
                                          size_t attr_count, const ascend_graph::host::NamedValue* outputs,
                                          size_t output_count);
// The bridge to PyTorch supplies it.
void ascendgraphSetOperatorRunner(ascendgraphOperatorRunner runner);
int ascendgraphRunOperator(const char* op_type, const ascend_graph::host::NamedValue* inputs,
                           size_t input_count, const ascend_graph::host::NamedValue* attrs, size_t attr_count,
                           const ascend_graph::host::NamedValue* outputs, size_t output_count);

// Tells the outputs' shapes of an operator by its GE type, before it runs. Inputs whose values are not known
// have no data. Each output is a tensor of int64_t, which gets dtype, rank and sizes.
void ascendgraphSetOperatorInference(ascendgraphOperatorRunner inference);
int ascendgraphInferOperator(const char* op_type, const ascend_graph::host::NamedValue* inputs,
                             size_t input_count, const ascend_graph::host::NamedValue* attrs,
                             size_t attr_count, const ascend_graph::host::NamedValue* outputs,
                             size_t output_count);

// Runs the Python function that `package_dir` carries for `op_type`.
int ascendgraphCallPython(const char* package_dir, const char* op_type,
                          const ascend_graph::host::Value* values, size_t count);
// The bridge to PyTorch supplies what ascendgraphCallPython calls.
using ascendgraphPythonCaller = int (*)(const char* package_dir, const char* op_type,
                                        const ascend_graph::host::Value* values, size_t count);
void ascendgraphSetPythonCaller(ascendgraphPythonCaller caller);

// What the first half of an aclnn call prepared for the second: `run` may be called any number of times,
// `destroy` once.
struct ascendgraphPrepared {
    void* state;
    uint64_t workspace_size;
    int (*run)(void* state, void* workspace, uint64_t workspace_size);
    void (*destroy)(void* state);
};
// Checks the arguments of one of the host's own aclnn functions and prepares its kernel, which is a Python
// function. The bridge to PyTorch supplies it.
using ascendgraphFunctionPreparer = int (*)(const char* function, const ascend_graph::host::Value* values,
                                            size_t count, ascendgraphPrepared* prepared);
void ascendgraphSetFunctionPreparer(ascendgraphFunctionPreparer preparer);
}

#endif  // ASCEND_GRAPH_HOST_KERNEL_H
