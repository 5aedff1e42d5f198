// libexe_graph.so: the functions that libraries of operator packages register, and calls of their InferShape
// and InferDataType functions. The libraries may come from CANN's own build: contexts have its layout.
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "acl/abi.h"
#include "ascend_graph/host_runtime.h"
#include "exe_graph/node.h"
#include "exe_graph/package_library.h"

namespace gert {

// The one function of a node's attrs that is not inline.
class __attribute__((visibility("default"))) RuntimeAttrs {
  public:
    const void* GetPointerByIndex(size_t index) const;
};
const void* RuntimeAttrs::GetPointerByIndex(size_t index) const {
    const auto* attrs = reinterpret_cast<const ascend_graph::host::layout::Attrs*>(this);
    if (index >= attrs->count) return nullptr;
    return reinterpret_cast<const char*>(this) + reinterpret_cast<const size_t*>(attrs + 1)[index];
}

}  // namespace gert

namespace {

using namespace ascend_graph::host;
using layout::Functions;

constexpr int kInferShapeFailed = 561001;  // ACLNN_ERR_INNER_INFERSHAPE_ERROR
constexpr int kInner = 561000;             // ACLNN_ERR_INNER

int fail(int code, const std::string& text) { return ascendgraphFail(code, text.c_str()); }

struct GuardedCall {
    uint32_t (*function)(void*);
    void* context;
    uint32_t status = 0;
};

// Calls an author's function; 0 if it returned success, else the failure's code.
int call_guarded(const std::string& what, void* function, void* context) {
    GuardedCall call{reinterpret_cast<uint32_t (*)(void*)>(function), context};
    ascendgraphTakeLoggedErrors();  // those of others
    const int ended = ascendgraphGuard(
        [](void* state) {
            auto* one = static_cast<GuardedCall*>(state);
            one->status = one->function(one->context);
        },
        &call, function, 0);
    if (ended != 0) return fail(kInferShapeFailed, what + " " + ascendgraphEndText(ended));
    return call.status == 0 ? 0 : fail(kInferShapeFailed, layout::failure_text(what, call.status));
}

}  // namespace

// A registered operator's functions, null where it has none; inputs and outputs as bits of a mask.
struct PackageFunctions {
    const char* op_type;
    void *infer_shape, *infer_dtype, *tiling, *tiling_parse;
    uint64_t data_inputs, tiling_data_inputs, outputs_by_kernel;
};

namespace ascend_graph::host::layout {

const Functions* read_table(size_t (*count)(), int32_t (*fill)(void*, size_t), size_t* entries) {
    if (count == nullptr || fill == nullptr)
        return fail(kInner,
                    "the library lacks GetRegisteredOpNum or GetOpImplFunctionsV2; build the package with a "
                    "CANN that has them"),
               nullptr;
    *entries = count();
    // Leaked with what the library puts there: it is asked once. Twice the memory, for a table with larger
    // entries.
    auto* table = static_cast<char*>(std::calloc(2 * *entries + 1, sizeof(Functions)));
    for (size_t i = 0; i < *entries; ++i) new (table + i * sizeof(Functions)) Functions;
    if (*entries != 0 && fill(table, *entries) != 0)
        return fail(kInner, "GetOpImplFunctionsV2 failed; build the package anew"), nullptr;
    const auto* functions = reinterpret_cast<const Functions*>(table);
    for (size_t i = 0; i < *entries; ++i) {
        const Functions& one = functions[i];
        if (one.size == sizeof(Functions) - sizeof(one.op_type) && one.version == Functions::kVersion)
            continue;
        fail(kInner, "the library's table of functions (OpImplFunctionsV2) has entries of " +
                         std::to_string(one.size) + " bytes and version " + std::to_string(one.version) +
                         "; expected " + std::to_string(sizeof(Functions) - sizeof(one.op_type)) +
                         " bytes and version " + std::to_string(Functions::kVersion) +
                         ". Use a package that was built with CANN 8.5 or newer");
        return nullptr;
    }
    return functions;
}

}  // namespace ascend_graph::host::layout

// Tells `sink` the functions that a library registered. `count` and `fill` are its GetRegisteredOpNum and
// GetOpImplFunctionsV2. The library's table has to have the layout that is known here.
ACL_EXPORT int ascendgraphPackageFunctions(size_t (*count)(), int32_t (*fill)(void*, size_t), void* context,
                                           void (*sink)(void*, const PackageFunctions*)) {
    size_t entries = 0;
    const Functions* functions = layout::read_table(count, fill, &entries);
    if (functions == nullptr) return kInner;
    for (size_t i = 0; i < entries; ++i) {
        const Functions& one = functions[i];
        const PackageFunctions found{
            one.op_type,      one.infer_shape, one.infer_dtype,        one.tiling,
            one.tiling_parse, one.data_inputs, one.tiling_data_inputs, one.outputs_by_kernel};
        sink(context, &found);
    }
    return 0;
}

// Calls the InferShape function, and the InferDataType function unless it is null. `values` has `inputs`
// inputs, `attrs` attrs, then for each output a tensor of int64 words: dtype, rank and sizes are written
// there.
ACL_EXPORT int ascendgraphInferPackageShape(const char* op_type, void* infer_shape, void* infer_dtype,
                                            size_t inputs, size_t attrs, const Value* values, size_t count) {
    const std::string name = op_type;
    layout::Side given, results;
    for (size_t i = 0; i < inputs; ++i) given.add(values[i]);
    layout::AttrBlock block(attrs);
    for (size_t i = 0; i < attrs; ++i) {
        if (!block.add(values[inputs + i]))
            return fail(kInferShapeFailed,
                        name + ": attr " + std::to_string(i) +
                            " has no value, or one of a type that cannot be passed; expected "
                            "a number, a text or a list of numbers");
    }
    const size_t outputs = count - inputs - attrs;
    for (size_t i = 0; i < outputs; ++i) results.add_output();
    const std::vector<char> node = layout::node_bytes(op_type, given, results, block.bytes());

    layout::ContextBlock shapes(node.data());
    for (layout::Tensor& tensor : given.tensors) shapes.add_input(&tensor);
    shapes.add_input(nullptr);  // who finds InferShape functions, for none but GE's own
    for (layout::Tensor& tensor : results.tensors) shapes.add_output(&tensor);
    if (const int failed = call_guarded(name + ": the InferShape function", infer_shape, shapes.finished()))
        return failed;

    layout::ContextBlock dtypes(node.data());
    const auto word = [](int32_t dtype) { return reinterpret_cast<void*>(static_cast<intptr_t>(dtype)); };
    for (const layout::Tensor& tensor : given.tensors) dtypes.add_input(word(tensor.dtype));
    for (size_t i = 0; i < outputs; ++i) dtypes.add_output(word(Tensor::kUndefined));
    if (infer_dtype != nullptr) {
        if (const int failed =
                call_guarded(name + ": the InferDataType function", infer_dtype, dtypes.finished()))
            return failed;
    }
    for (size_t i = 0; i < outputs; ++i) {
        const layout::Shape& shape = results.tensors[i].shape.origin;
        int64_t* target = values[inputs + attrs + i].tensors->as<int64_t>();
        if (shape.rank > layout::Shape::kMostDimensions)
            return fail(kInferShapeFailed, name + ": the InferShape function gave output " +
                                               std::to_string(i) + " the rank " + std::to_string(shape.rank) +
                                               "; expected at most 25");
        int32_t dtype = 0;
        std::memcpy(&dtype, &dtypes.output(i).word, sizeof dtype);
        *target++ = dtype;
        *target++ = static_cast<int64_t>(shape.rank);
        std::memcpy(target, shape.sizes, shape.rank * sizeof(int64_t));
    }
    return 0;
}
