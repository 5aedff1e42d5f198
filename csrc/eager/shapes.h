// Checks and arithmetic on shapes, symbolic ones too: what generated kernels and meta functions share.
#ifndef ASCEND_GRAPH_EAGER_SHAPES_H
#define ASCEND_GRAPH_EAGER_SHAPES_H

#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/SymBool.h>
#include <c10/core/SymInt.h>

#include <initializer_list>
#include <vector>

namespace ascend_graph::eager {

// Schemas let None pass for a required tensor.
inline void check_given(const char* op, const char* name, const at::Tensor& tensor) {
    TORCH_CHECK(tensor.defined(), op, ": argument ", name, " is None, but must be a tensor");
}

// Demands one of the dtypes that the prototype lists: the bits are numbers of at::ScalarType.
inline void check_dtype(const char* op, const char* name, const at::Tensor& tensor, uint64_t dtypes,
                        const char* listed) {
    if (!tensor.defined() || (dtypes >> static_cast<unsigned>(tensor.scalar_type()) & 1) != 0) return;
    TORCH_CHECK(false, op, ": argument ", name, " is torch.", c10::getDtypeNames(tensor.scalar_type()).first,
                "; allowed are ", listed);
}
inline void check_dtype(const char* op, const char* name, const std::optional<at::Tensor>& tensor,
                        uint64_t dtypes, const char* listed) {
    if (tensor) check_dtype(op, name, *tensor, dtypes, listed);
}
inline void check_dtype(const char* op, const char* name, at::TensorList tensors, uint64_t dtypes,
                        const char* listed) {
    for (const at::Tensor& tensor : tensors) check_dtype(op, name, tensor, dtypes, listed);
}

// Demands the number of dimensions; `open` shapes may have more.
inline void check_rank(const char* pattern, const at::Tensor& tensor, int64_t rank, bool open) {
    TORCH_CHECK(open ? tensor.dim() >= rank : tensor.dim() == rank, pattern, ": expected ",
                open ? "at least " : "", rank, " dimension(s), the input has ", tensor.dim(), ": ",
                tensor.sym_sizes());
}

inline void check_size(const char* pattern, const char* name, const c10::SymInt& size,
                       const c10::SymInt& expected) {
    TORCH_SYM_CHECK(size.sym_eq(expected), pattern, ": the size is ", size, ", but ", name, " is ", expected);
}

inline void check_sizes(const char* pattern, const char* name, c10::SymIntArrayRef sizes,
                        c10::SymIntArrayRef expected) {
    TORCH_CHECK(sizes.size() == expected.size(), pattern, ": the sizes are ", sizes, ", but *", name, " is ",
                expected);
    for (size_t n = 0; n < sizes.size(); ++n) {
        TORCH_SYM_CHECK(sizes[n].sym_eq(expected[n]), pattern, ": the sizes are ", sizes, ", but *", name,
                        " is ", expected);
    }
}

// The dimensions between the first `before` and the last `after`.
inline c10::SymIntArrayRef middle(const at::Tensor& tensor, size_t before, size_t after) {
    const c10::SymIntArrayRef sizes = tensor.sym_sizes();
    return sizes.slice(before, sizes.size() - before - after);
}

inline c10::SymDimVector broadcast(c10::SymIntArrayRef a, c10::SymIntArrayRef b) {
    return at::infer_size_symdimvector(a, b);
}

// One piece of an output's shape: a size, or several.
struct Piece {
    Piece(c10::SymInt size) : one(std::move(size)), many(&one, 1) {}
    Piece(c10::SymIntArrayRef sizes) : many(sizes) {}
    Piece(const Piece& other)
        : one(other.one), many(other.many.data() == &other.one ? c10::SymIntArrayRef(&one, 1) : other.many) {}
    Piece& operator=(const Piece&) = delete;
    c10::SymInt one;
    c10::SymIntArrayRef many;
};

inline c10::SymDimVector shape(std::initializer_list<Piece> pieces) {
    c10::SymDimVector sizes;
    for (const Piece& piece : pieces) sizes.append(piece.many.begin(), piece.many.end());
    return sizes;
}

// Numbers of a relation are integers of 63 bits and a sign; what is beyond is refused, as in Python.
inline c10::SymInt within(bool overflow, int64_t number) {
    TORCH_CHECK(!overflow && number != INT64_MIN, "a size is beyond 64 bits; give smaller inputs");
    return number;
}
template <typename Known, typename Symbolic>
c10::SymInt combine(const c10::SymInt& a, const c10::SymInt& b, Known known, Symbolic symbolic) {
    const auto x = a.maybe_as_int();
    const auto y = b.maybe_as_int();
    if (!x || !y) return symbolic(a, b);
    int64_t result = 0;
    const bool overflow = known(*x, *y, &result);
    return within(overflow, result);
}
inline c10::SymInt add(const c10::SymInt& a, const c10::SymInt& b) {
    return combine(
        a, b, [](int64_t x, int64_t y, int64_t* r) { return __builtin_add_overflow(x, y, r); },
        [](const auto& x, const auto& y) { return x + y; });
}
inline c10::SymInt subtract(const c10::SymInt& a, const c10::SymInt& b) {
    return combine(
        a, b, [](int64_t x, int64_t y, int64_t* r) { return __builtin_sub_overflow(x, y, r); },
        [](const auto& x, const auto& y) { return x - y; });
}
inline c10::SymInt multiply(const c10::SymInt& a, const c10::SymInt& b) {
    return combine(
        a, b, [](int64_t x, int64_t y, int64_t* r) { return __builtin_mul_overflow(x, y, r); },
        [](const auto& x, const auto& y) { return x * y; });
}
inline c10::SymInt negate(const c10::SymInt& a) { return subtract(int64_t{0}, a); }

// Rounds down, whatever the signs, as shape relations do.
inline c10::SymInt floor_divide(const c10::SymInt& a, const c10::SymInt& b) {
    TORCH_SYM_CHECK(b.sym_ne(int64_t{0}), "a size is divided by zero");
    return combine(
        a, b,
        [](int64_t x, int64_t y, int64_t* r) {
            if (y == -1) return __builtin_sub_overflow(int64_t{0}, x, r);
            *r = x / y - ((x % y != 0) && ((x < 0) != (y < 0)) ? 1 : 0);
            return false;
        },
        [](const auto& x, const auto& y) { return x / y; });
}
inline c10::SymInt modulo(const c10::SymInt& a, const c10::SymInt& b) {
    TORCH_SYM_CHECK(b.sym_ne(int64_t{0}), "a size is divided by zero");
    return combine(
        a, b,
        [](int64_t x, int64_t y, int64_t* r) {
            const int64_t rest = y == -1 ? 0 : x % y;  // a product with the quotient could go beyond 64 bits
            *r = rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
            return false;
        },
        [](const auto& x, const auto& y) { return x - x / y * y; });
}
inline c10::SymInt ceil_divide(const c10::SymInt& a, const c10::SymInt& b) {
    return negate(floor_divide(negate(a), b));
}

// An input that a relation needs.
inline const at::Tensor& given(const char*, const at::Tensor& tensor) { return tensor; }
inline const at::Tensor& given(const char* name, const std::optional<at::Tensor>& tensor) {
    TORCH_CHECK(tensor.has_value(), "input ", name, " is absent, but needed here");
    return *tensor;
}

inline c10::SymInt elements(const at::Tensor& tensor) {
    c10::SymInt result = 1;
    for (const c10::SymInt& size : tensor.sym_sizes()) result = multiply(result, size);
    return result;
}

// The dtype of an output that an argument names.
inline at::ScalarType scalar_type(int64_t dtype) {
    TORCH_CHECK(dtype >= 0 && dtype < static_cast<int64_t>(at::ScalarType::NumOptions), dtype,
                " is not a dtype of torch; expected 0 to ",
                static_cast<int64_t>(at::ScalarType::NumOptions) - 1);
    return static_cast<at::ScalarType>(dtype);
}

// The device an argument is on.
inline std::optional<at::Device> npu_of(const at::Tensor& tensor) {
    return tensor.defined() ? std::make_optional(tensor.device()) : std::nullopt;
}
inline std::optional<at::Device> npu_of(const std::optional<at::Tensor>& tensor) {
    return tensor ? npu_of(*tensor) : std::nullopt;
}
inline std::optional<at::Device> npu_of(at::TensorList tensors) {
    return tensors.empty() ? std::nullopt : npu_of(tensors.front());
}

// A tensor without data, and a real one of its shape: for operators whose meta function is written in Python.
inline at::Tensor without_data(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
}
inline std::optional<at::Tensor> without_data(const std::optional<at::Tensor>& tensor) {
    if (!tensor) return tensor;
    return without_data(*tensor);
}
inline std::vector<at::Tensor> without_data(at::TensorList tensors) {
    std::vector<at::Tensor> made;
    for (const at::Tensor& tensor : tensors) made.push_back(without_data(tensor));
    return made;
}
inline at::Tensor with_data(const at::Tensor& meta, at::Device device) {
    if (!meta.defined()) return meta;
    return at::empty_strided(meta.sizes(), meta.strides(), meta.options().device(device));
}
inline std::vector<at::Tensor> with_data(const std::vector<at::Tensor>& metas, at::Device device) {
    std::vector<at::Tensor> made;
    for (const at::Tensor& meta : metas) made.push_back(with_data(meta, device));
    return made;
}

}  // namespace ascend_graph::eager

#endif  // ASCEND_GRAPH_EAGER_SHAPES_H
