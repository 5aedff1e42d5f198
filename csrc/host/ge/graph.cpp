// libgraph.so: strings, shapes, tensors and graphs of GE's interface.
#include <cstring>
#include <fstream>

#include "ge/abi.h"
#include "ge/wire.h"

namespace ge {

AscendString::AscendString(const char* name)
    : name_(std::make_shared<std::string>(name == nullptr ? "" : name)) {}
AscendString::AscendString(const char* name, size_t length)
    : name_(std::make_shared<std::string>(name, length)) {}
const char* AscendString::GetString() const { return name_ == nullptr ? "" : name_->c_str(); }
size_t AscendString::GetLength() const { return name_ == nullptr ? 0 : name_->size(); }
bool AscendString::operator<(const AscendString& other) const {
    return std::strcmp(GetString(), other.GetString()) < 0;
}
bool AscendString::operator==(const AscendString& other) const {
    return std::strcmp(GetString(), other.GetString()) == 0;
}

class ShapeImpl {
  public:
    std::vector<int64_t> dims;
};

Shape::Shape() : impl_(std::make_shared<ShapeImpl>()) {}
Shape::Shape(const std::vector<int64_t>& dims) : impl_(std::make_shared<ShapeImpl>(ShapeImpl{dims})) {}
size_t Shape::GetDimNum() const { return impl_->dims.size(); }
int64_t Shape::GetDim(size_t index) const { return index < impl_->dims.size() ? impl_->dims[index] : 0; }
std::vector<int64_t> Shape::GetDims() const { return impl_->dims; }
int64_t Shape::GetShapeSize() const {
    if (impl_->dims.empty()) return 0;
    int64_t size = 1;
    for (int64_t dim : impl_->dims) {
        if (dim < 0) return -1;
        size *= dim;
    }
    return size;
}

class TensorDescImpl {
  public:
    std::vector<int64_t> shape;
    std::vector<int64_t> origin_shape;
    Format format = kFormatND;
    Format origin_format = kFormatND;
    DataType dtype = static_cast<DataType>(0);
    Placement placement = static_cast<Placement>(0);
};

TensorDesc::TensorDesc() : impl_(std::make_shared<TensorDescImpl>()) {}
TensorDesc::TensorDesc(const TensorDesc& other) : impl_(std::make_shared<TensorDescImpl>(*other.impl_)) {}
TensorDesc::TensorDesc(TensorDesc&& other) : impl_(std::make_shared<TensorDescImpl>(*other.impl_)) {}
TensorDesc& TensorDesc::operator=(const TensorDesc& other) {
    if (this != &other) *impl_ = *other.impl_;
    return *this;
}
TensorDesc& TensorDesc::operator=(TensorDesc&& other) { return *this = other; }
Shape TensorDesc::GetShape() const { return Shape(impl_->shape); }
void TensorDesc::SetShape(const Shape& shape) { impl_->shape = shape.GetDims(); }
Shape TensorDesc::GetOriginShape() const { return Shape(impl_->origin_shape); }
void TensorDesc::SetOriginShape(const Shape& shape) { impl_->origin_shape = shape.GetDims(); }
Format TensorDesc::GetFormat() const { return impl_->format; }
void TensorDesc::SetFormat(Format format) { impl_->format = format; }
Format TensorDesc::GetOriginFormat() const { return impl_->origin_format; }
void TensorDesc::SetOriginFormat(Format format) { impl_->origin_format = format; }
DataType TensorDesc::GetDataType() const { return impl_->dtype; }
void TensorDesc::SetDataType(DataType dtype) { impl_->dtype = dtype; }
Placement TensorDesc::GetPlacement() const { return impl_->placement; }
void TensorDesc::SetPlacement(Placement placement) { impl_->placement = placement; }

class TensorImpl {
  public:
    TensorDescImpl desc;
    uint8_t* data = nullptr;
    size_t size = 0;
    Tensor::DeleteFunc deleter;

    ~TensorImpl() { release(); }
    void release() {
        if (data != nullptr && deleter) deleter(data);
        data = nullptr;
        size = 0;
        deleter = nullptr;
    }
};

Tensor::Tensor() : impl_(std::make_shared<TensorImpl>()) {}
TensorDesc Tensor::GetTensorDesc() const {
    TensorDesc desc;
    *desc.impl_ = impl_->desc;
    return desc;
}
graphStatus Tensor::SetTensorDesc(const TensorDesc& desc) {
    impl_->desc = *desc.impl_;
    return kSuccess;
}
const uint8_t* Tensor::GetData() const { return impl_->data; }
uint8_t* Tensor::GetData() { return impl_->data; }
size_t Tensor::GetSize() const { return impl_->size; }
graphStatus Tensor::SetData(uint8_t* data, size_t size, const DeleteFunc& deleter) {
    impl_->release();
    impl_->data = data;
    impl_->size = size;
    impl_->deleter = deleter;
    return kSuccess;
}
graphStatus Tensor::ResetData(uint8_t* data, size_t size, const DeleteFunc& deleter) {
    return SetData(data, size, deleter);
}
std::unique_ptr<uint8_t[], Tensor::DeleteFunc> Tensor::ResetData() {
    std::unique_ptr<uint8_t[], DeleteFunc> owned(
        impl_->data, impl_->deleter ? impl_->deleter : [](uint8_t*) {});
    impl_->data = nullptr;
    impl_->size = 0;
    impl_->deleter = nullptr;
    return owned;
}

namespace {
graphStatus set_dim(std::vector<int64_t>& dims, size_t index, int64_t value) {
    if (index >= dims.size()) return kFailed;
    dims[index] = value;
    return kSuccess;
}
int64_t get_dim(const std::vector<int64_t>& dims, size_t index) {
    return index < dims.size() ? dims[index] : 0;
}
}  // namespace

graphStatus Tensor::SetOriginShapeDimNum(size_t rank) {
    impl_->desc.origin_shape.resize(rank);
    return kSuccess;
}
size_t Tensor::GetOriginShapeDimNum() const { return impl_->desc.origin_shape.size(); }
graphStatus Tensor::SetOriginShapeDim(size_t index, int64_t value) {
    return set_dim(impl_->desc.origin_shape, index, value);
}
int64_t Tensor::GetOriginShapeDim(size_t index) const { return get_dim(impl_->desc.origin_shape, index); }
graphStatus Tensor::SetOriginFormat(const Format& format) {
    impl_->desc.origin_format = format;
    return kSuccess;
}
Format Tensor::GetOriginFormat() const { return impl_->desc.origin_format; }
graphStatus Tensor::SetShapeDimNum(size_t rank) {
    impl_->desc.shape.resize(rank);
    return kSuccess;
}
size_t Tensor::GetShapeDimNum() const { return impl_->desc.shape.size(); }
graphStatus Tensor::SetShapeDim(size_t index, int64_t value) {
    return set_dim(impl_->desc.shape, index, value);
}
int64_t Tensor::GetShapeDim(size_t index) const { return get_dim(impl_->desc.shape, index); }
graphStatus Tensor::SetFormat(const Format& format) {
    impl_->desc.format = format;
    return kSuccess;
}
Format Tensor::GetFormat() const { return impl_->desc.format; }
graphStatus Tensor::SetDataType(const DataType& dtype) {
    impl_->desc.dtype = dtype;
    return kSuccess;
}
DataType Tensor::GetDataType() const { return impl_->desc.dtype; }
graphStatus Tensor::SetPlacement(const Placement& placement) {
    impl_->desc.placement = placement;
    return kSuccess;
}
Placement Tensor::GetPlacement() const { return impl_->desc.placement; }
const std::vector<int64_t>& Tensor::dims() const { return impl_->desc.shape; }
void Tensor::set_dims(const int64_t* sizes, size_t rank) {
    impl_->desc.shape.assign(sizes, sizes + rank);
    impl_->desc.origin_shape = impl_->desc.shape;
}

class GNodeImpl {
  public:
    std::string type;
};

GNode::GNode() : impl_(std::make_shared<GNodeImpl>()) {}
GNode GNode::of_type(const std::string& type) {
    GNode node;
    node.impl_->type = type;
    return node;
}
graphStatus GNode::GetType(AscendString& type) const {
    type = AscendString(impl_->type.c_str());
    return kSuccess;
}

class GraphImpl {
  public:
    std::string name;
    std::string model;
};

Graph::Graph(const char* name) : impl_(std::make_shared<GraphImpl>()) {
    impl_->name = name == nullptr ? "" : name;
}
graphStatus Graph::LoadFromSerializedModelArray(const void* model, size_t size) {
    if (model == nullptr) return kFailed;
    if (impl_ == nullptr) impl_ = std::make_shared<GraphImpl>();
    impl_->model.assign(static_cast<const char*>(model), size);
    return ascend_graph::host::is_message(impl_->model) ? kSuccess : kFailed;
}
graphStatus Graph::CopyFrom(const Graph& source) {
    impl_ = source.impl_ == nullptr ? nullptr : std::make_shared<GraphImpl>(*source.impl_);
    return kSuccess;
}
graphStatus Graph::SaveToFile(const char* file_name) const {
    if (file_name == nullptr || impl_ == nullptr) return kFailed;
    std::ofstream file(file_name, std::ios::binary);
    file.write(impl_->model.data(), static_cast<std::streamsize>(impl_->model.size()));
    return file ? kSuccess : kFailed;
}
std::vector<GNode> Graph::GetAllNodes() const {
    std::vector<GNode> nodes;
    if (impl_ == nullptr) return nodes;
    for (const std::string& type : ascend_graph::host::node_types(impl_->model))
        nodes.push_back(GNode::of_type(type));
    return nodes;
}
const std::string& Graph::model() const {
    static const std::string empty;
    return impl_ == nullptr ? empty : impl_->model;
}

const char* GetFormatName(Format format) {
    // The formats that a host tensor can have; others are shown by number in GE too.
    switch (static_cast<int>(format)) {
        case 0:
            return "NCHW";
        case 1:
            return "NHWC";
        case 2:
            return "ND";
        case 3:
            return "NC1HWC0";
        case 4:
            return "FRACTAL_Z";
        case 27:
            return "NDHWC";
        case 29:
            return "FRACTAL_NZ";
        case 30:
            return "NCDHW";
        default:
            return "UNKNOWN";
    }
}

}  // namespace ge
