// What generated InferShape functions use of CANN's exe_graph/runtime headers, declared and filled by the
// tests. ge::DataType and ge::graphStatus come from the GE headers of the torch_npu wheel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/ge_error_codes.h"
#include "graph/types.h"

namespace gert {

class Shape {
  public:
    std::vector<int64_t> dims;
    size_t GetDimNum() const { return dims.size(); }
    int64_t GetDim(size_t axis) const { return dims[axis]; }
    void SetDimNum(size_t rank) { dims.resize(rank); }
    Shape& AppendDim(int64_t size) {
        dims.push_back(size);
        return *this;
    }
};

struct IntVector {
    std::vector<int64_t> items;
    const int64_t* GetData() const { return items.data(); }
    size_t GetSize() const { return items.size(); }
};

struct Attr {
    int64_t number = 0;
    bool flag = false;
    float real = 0;
    std::string text;
    IntVector list;
};

class RuntimeAttrs {
  public:
    std::vector<Attr> attrs;
    const int64_t* GetInt(size_t n) const { return &attrs[n].number; }
    const bool* GetBool(size_t n) const { return &attrs[n].flag; }
    const float* GetFloat(size_t n) const { return &attrs[n].real; }
    const char* GetStr(size_t n) const { return attrs[n].text.c_str(); }
    const IntVector* GetListInt(size_t n) const { return &attrs[n].list; }
};

struct Context {
    std::vector<Shape> inputs, outputs;
    std::vector<bool> present;
    std::vector<ge::DataType> input_types, output_types;
    RuntimeAttrs attrs;
    const RuntimeAttrs* GetAttrs() const { return &attrs; }
};

class InferShapeContext : public Context {
  public:
    const Shape* GetInputShape(size_t n) const { return present[n] ? &inputs[n] : nullptr; }
    const Shape* GetOptionalInputShape(size_t n) const { return GetInputShape(n); }
    Shape* GetOutputShape(size_t n) { return &outputs[n]; }
};

}  // namespace gert
