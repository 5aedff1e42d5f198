// The classes of GE's C++ interface that torchair uses, with the layout its compiled code expects.
//
// GE hides every class behind one shared_ptr, so only the member functions called across the library boundary
// and the size of the handle are part of the ABI. torchair is compiled against the old std::string ABI where
// GE returns one.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#define GE_EXPORT __attribute__((visibility("default")))

namespace ge {

using Status = uint32_t;
using graphStatus = uint32_t;
inline constexpr Status kSuccess = 0;
inline constexpr Status kFailed = 0xFFFFFFFF;

enum DataType : int {};
enum Format : int {};
enum Placement : int {};
inline constexpr DataType kUndefinedType = static_cast<DataType>(28);
inline constexpr Format kFormatND = static_cast<Format>(2);

class GE_EXPORT AscendString {
  public:
    AscendString() = default;
    ~AscendString() = default;
    AscendString(const char* name);
    AscendString(const char* name, size_t length);
    const char* GetString() const;
    size_t GetLength() const;
    size_t Hash() const;
    bool operator<(const AscendString& other) const;
    bool operator==(const AscendString& other) const;

  private:
    std::shared_ptr<std::string> name_;
};

class ShapeImpl;
class GE_EXPORT Shape {
  public:
    Shape();
    ~Shape() = default;
    explicit Shape(const std::vector<int64_t>& dims);
    size_t GetDimNum() const;
    int64_t GetDim(size_t index) const;
    std::vector<int64_t> GetDims() const;
    int64_t GetShapeSize() const;

  private:
    std::shared_ptr<ShapeImpl> impl_;
};

class TensorDescImpl;
class GE_EXPORT TensorDesc {
  public:
    TensorDesc();
    ~TensorDesc() = default;
    // GE copies deeply.
    TensorDesc(const TensorDesc& other);
    TensorDesc(TensorDesc&& other);
    TensorDesc& operator=(const TensorDesc& other);
    TensorDesc& operator=(TensorDesc&& other);

    Shape GetShape() const;
    void SetShape(const Shape& shape);
    Shape GetOriginShape() const;
    void SetOriginShape(const Shape& shape);
    Format GetFormat() const;
    void SetFormat(Format format);
    Format GetOriginFormat() const;
    void SetOriginFormat(Format format);
    DataType GetDataType() const;
    void SetDataType(DataType dtype);
    Placement GetPlacement() const;
    void SetPlacement(Placement placement);

  private:
    std::shared_ptr<TensorDescImpl> impl_;
    friend class Tensor;
};

class TensorImpl;
class GE_EXPORT Tensor {
  public:
    using DeleteFunc = std::function<void(uint8_t*)>;
    Tensor();
    ~Tensor() = default;

    TensorDesc GetTensorDesc() const;
    graphStatus SetTensorDesc(const TensorDesc& desc);
    const uint8_t* GetData() const;
    uint8_t* GetData();
    size_t GetSize() const;
    graphStatus SetData(uint8_t* data, size_t size, const DeleteFunc& deleter);
    graphStatus ResetData(uint8_t* data, size_t size, const DeleteFunc& deleter);
    std::unique_ptr<uint8_t[], DeleteFunc> ResetData();

    graphStatus SetOriginShapeDimNum(size_t rank);
    size_t GetOriginShapeDimNum() const;
    graphStatus SetOriginShapeDim(size_t index, int64_t value);
    int64_t GetOriginShapeDim(size_t index) const;
    graphStatus SetOriginFormat(const Format& format);
    Format GetOriginFormat() const;
    graphStatus SetShapeDimNum(size_t rank);
    size_t GetShapeDimNum() const;
    graphStatus SetShapeDim(size_t index, int64_t value);
    int64_t GetShapeDim(size_t index) const;
    graphStatus SetFormat(const Format& format);
    Format GetFormat() const;
    graphStatus SetDataType(const DataType& dtype);
    DataType GetDataType() const;
    graphStatus SetPlacement(const Placement& placement);
    Placement GetPlacement() const;

    // For the session alone: the dims without a copy.
    const std::vector<int64_t>& dims() const;
    void set_dims(const int64_t* sizes, size_t rank);

  private:
    std::shared_ptr<TensorImpl> impl_;
};

class GNodeImpl;
class GE_EXPORT GNode {
  public:
    GNode();
    ~GNode() = default;
    graphStatus GetType(AscendString& type) const;
    static GNode of_type(const std::string& type);

  private:
    std::shared_ptr<GNodeImpl> impl_;
};

class GraphImpl;
class GE_EXPORT Graph {
  public:
    explicit Graph(const char* name);
    Graph() = default;
    ~Graph() = default;
    graphStatus LoadFromSerializedModelArray(const void* model, size_t size);
    graphStatus CopyFrom(const Graph& source);
    graphStatus SaveToFile(const char* file_name) const;
    std::vector<GNode> GetAllNodes() const;
    // The serialized ge.proto.ModelDef.
    const std::string& model() const;

  private:
    std::shared_ptr<GraphImpl> impl_;
};

class TensorTypeImpl;
class GE_EXPORT TensorType {
  public:
    TensorType(const std::initializer_list<DataType>& types);

  private:
    std::shared_ptr<TensorTypeImpl> impl_;
};

class OperatorImpl;
class GE_EXPORT Operator {
  public:
    Operator() = default;
    Operator(const AscendString& name, const AscendString& type);
    virtual ~Operator() = default;
    // How the class that REG_OP makes describes itself in its constructor.
    void InputRegister(const char* name, const char* type);
    void OptionalInputRegister(const char* name, const char* type);
    void DynamicInputRegister(const char* name, uint32_t count, const char* type, bool at_the_end);
    void OutputRegister(const char* name, const char* type);
    void DynamicOutputRegister(const char* name, uint32_t count, const char* type, bool at_the_end);
    void RequiredAttrWithTypeRegister(const char* name, const char* type);
    void AttrRegister(const char* name, bool value);
    void AttrRegister(const char* name, int64_t value);
    void AttrRegister(const char* name, float value);
    void AttrRegister(const char* name, const AscendString& value);
    void AttrRegister(const char* name, const std::vector<bool>& values);
    void AttrRegister(const char* name, const std::vector<int64_t>& values);
    void AttrRegister(const char* name, const std::vector<float>& values);
    void AttrRegister(const char* name, const std::vector<AscendString>& values);
    void AttrRegister(const char* name, const std::vector<std::vector<int64_t>>& values);
    void DataTypeRegister(const char* name, const TensorType& types);
    const OperatorImpl* description() const { return impl_.get(); }

    graphStatus UpdateInputDesc(const char* name, const TensorDesc& desc);
    graphStatus UpdateOutputDesc(const char* name, const TensorDesc& desc);
    size_t GetInputsSize() const;
    size_t GetOutputsSize() const;
    TensorDesc GetInputDescByName(const char* name) const;
    TensorDesc GetOutputDescByName(const char* name) const;
    graphStatus GetAllIrAttrNamesAndTypes(std::map<AscendString, AscendString>& names_and_types) const;
    static Operator described(std::shared_ptr<OperatorImpl> impl);

  private:
    std::shared_ptr<OperatorImpl> impl_;
};

// The constructor of an operator's class, under the operator's type.
class GE_EXPORT OperatorCreatorRegister {
  public:
    OperatorCreatorRegister(const char* type, const std::function<Operator(const AscendString&)>& create);
};

class GE_EXPORT OperatorFactory {
  public:
    static Operator CreateOperator(const char* name, const char* type);
    static bool IsExistOp(const char* type);
};

GE_EXPORT const char* GetFormatName(Format format);

// Declared by GE in ge/ge_allocator.h; torchair implements Allocator.
class MemBlock;
class Allocator {
  public:
    virtual ~Allocator() = default;
    virtual MemBlock* Malloc(size_t size) = 0;
    virtual void Free(MemBlock* block) = 0;
    virtual MemBlock* MallocAdvise(size_t size, void* address) = 0;
};
class MemBlock {
  public:
    MemBlock(Allocator& allocator, void* address, size_t size)
        : allocator_(allocator), address_(address), count_(1), size_(size) {}
    virtual ~MemBlock() = default;
    void* address() const { return address_; }
    void release() {
        if (count_ > 0 && --count_ == 0) allocator_.Free(this);
    }

  private:
    Allocator& allocator_;
    void* address_;
    size_t count_;
    size_t size_;
};

class GE_EXPORT CompiledGraphSummary {
  public:
    class SummaryData;
    explicit CompiledGraphSummary(std::shared_ptr<SummaryData> data) : data_(std::move(data)) {}
    ~CompiledGraphSummary();
    bool IsStatic() const;
    Status GetConstMemorySize(size_t& size) const;
    Status GetFeatureMemorySize(size_t& size) const;
    Status GetFixedFeatureMemorySize(size_t& size) const;
    Status GetRefreshableFeatureMemorySize(size_t& size) const;
    Status GetFeatureMemoryBaseRefreshable(bool& refreshable) const;
    Status GetOutputShapes(std::vector<Shape>& shapes) const;
    Status GetOutputDtypes(std::vector<DataType>& dtypes) const;

  private:
    std::shared_ptr<SummaryData> data_;
};

class GE_EXPORT Session {
  public:
    explicit Session(const std::map<AscendString, AscendString>& options);
    ~Session();
    Status AddGraph(uint32_t graph_id, const Graph& graph,
                    const std::map<AscendString, AscendString>& options);
    Status RemoveGraph(uint32_t graph_id);
    Status CompileGraph(uint32_t graph_id);
    std::shared_ptr<CompiledGraphSummary> GetCompiledGraphSummary(uint32_t graph_id);
    Status RunGraph(uint32_t graph_id, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs);
    Status RunGraphWithStreamAsync(uint32_t graph_id, void* stream, const std::vector<Tensor>& inputs,
                                   std::vector<Tensor>& outputs);
    Status SetGraphConstMemoryBase(uint32_t graph_id, const void* memory, size_t size);
    Status UpdateGraphFeatureMemoryBase(uint32_t graph_id, const void* memory, size_t size);
    Status SetGraphFixedFeatureMemoryBase(uint32_t graph_id, const void* memory, size_t size);
    Status UpdateGraphRefreshableFeatureMemoryBase(uint32_t graph_id, const void* memory, size_t size);
    Status RegisterExternalAllocator(const void* stream, std::shared_ptr<Allocator> allocator) const;

  private:
    uint64_t session_id_;
};

GE_EXPORT Status GEInitialize(const std::map<AscendString, AscendString>& options);
GE_EXPORT Status GEFinalize();
GE_EXPORT std::string GEGetErrorMsg();
GE_EXPORT AscendString GEGetErrorMsgV2();
GE_EXPORT std::string GEGetWarningMsg();
GE_EXPORT AscendString GEGetWarningMsgV2();
GE_EXPORT Status GetRegisteredIrDef(const char* op_type,
                                    std::vector<std::pair<AscendString, AscendString>>& inputs,
                                    std::vector<std::pair<AscendString, AscendString>>& outputs,
                                    std::vector<std::pair<AscendString, AscendString>>& attrs);

}  // namespace ge
