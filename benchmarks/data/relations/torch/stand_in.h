// Stand-ins for what csrc/eager/shapes.h and generated packages use of PyTorch, so that a thousand functions
// compile in seconds: tensors have sizes and a dtype, sizes are integers, a failed check throws.
#ifndef ASCEND_GRAPH_RELATIONS_STAND_IN_H
#define ASCEND_GRAPH_RELATIONS_STAND_IN_H

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

template <typename... Message>
[[noreturn]] void refuse(const Message&...) {
    throw std::runtime_error("refused");
}
#define TORCH_CHECK(condition, ...) \
    if (!(condition)) refuse(__VA_ARGS__)
#define TORCH_SYM_CHECK(condition, ...) TORCH_CHECK(condition, __VA_ARGS__)

namespace c10 {

template <typename T>
class ArrayRef {
  public:
    ArrayRef() = default;
    ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
    ArrayRef(const std::vector<T>& items) : data_(items.data()), size_(items.size()) {}
    const T* data() const { return data_; }
    size_t size() const { return size_; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }
    const T& operator[](size_t n) const { return data_[n]; }
    const T& front() const { return data_[0]; }
    bool empty() const { return size_ == 0; }
    ArrayRef slice(size_t begin, size_t size) const { return {data_ + begin, size}; }

  private:
    const T* data_ = nullptr;
    size_t size_ = 0;
};

class SymInt {
  public:
    SymInt() = default;
    SymInt(int64_t value) : value_(value) {}
    std::optional<int64_t> maybe_as_int() const { return value_; }
    int64_t value() const { return value_; }
    bool sym_eq(const SymInt& other) const { return value_ == other.value_; }
    bool sym_ne(const SymInt& other) const { return value_ != other.value_; }
    bool sym_lt(const SymInt& other) const { return value_ < other.value_; }
    bool sym_le(const SymInt& other) const { return value_ <= other.value_; }
    bool sym_gt(const SymInt& other) const { return value_ > other.value_; }
    bool sym_ge(const SymInt& other) const { return value_ >= other.value_; }
    SymInt operator+(const SymInt& other) const { return value_ + other.value_; }
    SymInt operator-(const SymInt& other) const { return value_ - other.value_; }
    SymInt operator*(const SymInt& other) const { return value_ * other.value_; }
    SymInt operator/(const SymInt& other) const { return value_ / other.value_; }

  private:
    int64_t value_ = 0;
};
using SymIntArrayRef = ArrayRef<SymInt>;

class SymDimVector : public std::vector<SymInt> {
  public:
    using std::vector<SymInt>::vector;
    template <typename Iterator>
    void append(Iterator begin, Iterator end) {
        insert(this->end(), begin, end);
    }
};

}  // namespace c10

namespace at {

enum class ScalarType : int64_t {
    Byte,
    Char,
    Short,
    Int,
    Long,
    Half,
    Float,
    Double,
    ComplexHalf,
    ComplexFloat,
    ComplexDouble,
    Bool,
    BFloat16 = 15,
    Float8_e5m2 = 23,
    Float8_e4m3fn = 24,
    UInt16 = 27,
    UInt32 = 28,
    UInt64 = 29,
    Float8_e8m0fnu = 44,
    NumOptions = 46,
    Promoted = 1000
};
}  // namespace at

namespace c10 {
// Only messages use the names.
inline std::pair<const char*, const char*> getDtypeNames(at::ScalarType) { return {"", ""}; }
}  // namespace c10

namespace at {

enum DeviceType { kMeta };
struct Device {};
struct TensorOptions {
    ScalarType type = ScalarType::Float;
    TensorOptions dtype(ScalarType other) const { return {other}; }
    TensorOptions device(Device) const { return *this; }
    TensorOptions device(DeviceType) const { return *this; }
};

class Tensor {
  public:
    Tensor() = default;
    Tensor(std::vector<c10::SymInt> sizes, ScalarType type)
        : sizes_(std::move(sizes)), type_(type), defined_(true) {}
    bool defined() const { return defined_; }
    int64_t dim() const { return static_cast<int64_t>(sizes_.size()); }
    c10::SymIntArrayRef sym_sizes() const { return sizes_; }
    c10::SymIntArrayRef sizes() const { return sizes_; }
    c10::SymIntArrayRef strides() const { return sizes_; }
    const c10::SymInt& sym_size(int64_t axis) const {
        return sizes_[static_cast<size_t>(axis < 0 ? axis + dim() : axis)];
    }
    ScalarType scalar_type() const { return type_; }
    TensorOptions options() const { return {type_}; }
    Device device() const { return {}; }

  private:
    std::vector<c10::SymInt> sizes_;
    ScalarType type_ = ScalarType::Float;
    bool defined_ = false;
};
using TensorList = c10::ArrayRef<Tensor>;

inline Tensor make(c10::SymIntArrayRef sizes, ScalarType type) {
    for (const c10::SymInt& size : sizes) TORCH_CHECK(size.value() >= 0, "size");
    return Tensor(std::vector<c10::SymInt>(sizes.begin(), sizes.end()), type);
}
inline Tensor empty_strided(c10::SymIntArrayRef sizes, c10::SymIntArrayRef, TensorOptions options) {
    return make(sizes, options.type);
}
inline Tensor empty_like(const Tensor& tensor) { return tensor; }
inline Tensor empty_like(const Tensor& tensor, TensorOptions options) {
    return make(tensor.sizes(), options.type);
}
// Promotion is torch's own, which the tests of eager operators compare with.
inline ScalarType result_type(const Tensor&, const Tensor&) { return ScalarType::Promoted; }

inline c10::SymDimVector infer_size_symdimvector(c10::SymIntArrayRef a, c10::SymIntArrayRef b) {
    const size_t rank = a.size() < b.size() ? b.size() : a.size();
    c10::SymDimVector result(rank, c10::SymInt(1));
    for (size_t d = 1; d <= rank; ++d) {
        const int64_t x = d <= a.size() ? a[a.size() - d].value() : 1;
        const int64_t y = d <= b.size() ? b[b.size() - d].value() : 1;
        TORCH_CHECK(x == y || x == 1 || y == 1, "broadcast");
        result[rank - d] = x == 1 ? y : x;
    }
    return result;
}

}  // namespace at

namespace ascend_graph::eager {
inline at::Tensor allocate(c10::SymIntArrayRef sizes, at::TensorOptions options) {
    return at::make(sizes, options.type);
}
}  // namespace ascend_graph::eager

#endif  // ASCEND_GRAPH_RELATIONS_STAND_IN_H
