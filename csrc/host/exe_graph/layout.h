// The memory layout of a node's context and of the table of registered functions, as libraries of operator
// packages that CANN built read and write them. Members stand where public headers have them; those that
// nothing here reads are named for their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

namespace ascend_graph::host::layout {

struct Shape {
    static constexpr size_t kMostDimensions = 25;
    size_t rank = 0;
    int64_t sizes[kMostDimensions] = {};
    uint8_t reserved[40] = {};
};
static_assert(sizeof(Shape) == 248);

struct StorageShape {
    Shape origin, storage;
    uint8_t reserved[40] = {};
};
static_assert(sizeof(StorageShape) == 536);

struct StorageFormat {
    int32_t origin = 0, storage = 0;
    uint64_t expanded = 0;
    uint8_t reserved[80] = {};
};
static_assert(sizeof(StorageFormat) == 96);

struct TensorData {
    static constexpr int32_t kOnDevice = 0, kOnHost = 1;
    void* address = nullptr;
    void* manager = nullptr;
    size_t size = 0;
    int32_t placement = kOnDevice;
    uint32_t reserved_word = 0;
    uint8_t reserved[40] = {};
};
static_assert(sizeof(TensorData) == 72);

struct Tensor {
    StorageShape shape;
    StorageFormat format;
    uint8_t version = 0, reserved_bytes[3] = {};
    int32_t dtype = 0;
    TensorData data;
    uint8_t reserved[40] = {};
};
static_assert(sizeof(Tensor) == 752);

struct Instances {  // of a parameter: the first among all tensors of its side, and how many
    uint32_t first = 0, count = 0;
    uint8_t reserved[40] = {};
};
static_assert(sizeof(Instances) == 48);

struct TensorDescription {
    int32_t dtype = 0;
    StorageFormat format;
    uint8_t reserved[40] = {};
};
static_assert(sizeof(TensorDescription) == 144);

// Followed by Instances of inputs, descriptions of inputs and outputs, attrs, Instances of outputs.
struct Node {
    const char *type = nullptr, *name = nullptr;
    size_t inputs = 0, input_tensors = 0, output_tensors = 0, outputs = 0, attr_bytes = 0;
    uint8_t reserved[24] = {};
};
static_assert(sizeof(Node) == 80);

struct Attrs {  // followed by the offset of each value from here
    size_t count = 0;
    uint8_t reserved[40] = {};
};
static_assert(sizeof(Attrs) == 48);

struct List {  // followed by the elements
    size_t capacity = 0, count = 0;
    uint8_t reserved[40] = {};
};
static_assert(sizeof(List) == 56);

struct TilingData {
    size_t capacity = 0, size = 0;
    void* data = nullptr;
    uint8_t reserved[40] = {};
};
static_assert(sizeof(TilingData) == 64);

struct AnyValue {
    void* word = nullptr;
    void (*destroy)(void*) = nullptr;
};

struct Context {  // followed by the addresses of inputs and outputs
    size_t inputs = 0, outputs = 0;
    const void *node = nullptr, *extension = nullptr;
    AnyValue** first_output = nullptr;
};
static_assert(sizeof(Context) == 40);

// One entry of the table that GetOpImplFunctionsV2 fills.
struct Functions {
    static constexpr uint32_t kVersion = 2;
    const char* op_type = nullptr;
    void *infer_shape = nullptr, *infer_shape_range = nullptr, *infer_dtype = nullptr, *tiling = nullptr,
         *tiling_parse = nullptr, *create_compile_info = nullptr, *delete_compile_info = nullptr;
    size_t tiling_capacity = 0;
    uint64_t data_inputs = 0;
    std::vector<uint64_t> private_attrs;
    std::unordered_set<std::string> private_attr_names;
    uint64_t host_inputs = 0;
    void* execute = nullptr;
    uint64_t tiling_data_inputs = 0;
    void* simplified_key = nullptr;
    uint8_t placements = 0;
    uint64_t outputs_by_kernel = 0;
    void *infer_symbols = nullptr, *infer_format = nullptr;
    uint32_t size = 0, version = 0;
    // The size that an entry says of itself is that without the name.
    static constexpr size_t kBytesBeforeReserved = 10 * sizeof(void*);
    uint8_t rest[kBytesBeforeReserved + 500 * sizeof(uint64_t)] = {};
};
static_assert(sizeof(Functions) == 4312);

}  // namespace ascend_graph::host::layout
