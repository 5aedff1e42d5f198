"""The operators of the tests of eager calls, and their host kernels."""

from __future__ import annotations

from ascend_graph.prototypes import OpPrototype, parse_text

ANY = "TensorType::ALL()"
FLOAT = "TensorType({DT_FLOAT})"
DOUBLE = "TensorType({DT_DOUBLE})"
#: The relations of the operators that write in place, and of one that has no gradient.
WRITING = {
    "AddTo": "w[*s], x[*s] -> w",
    "AddInto": "x[*s], w[*s] -> w",
    "Put": "cache[n, d], update[t, d], slots[t] -> cache",
    "Twice": "x[*s] -> y[*s]",
}


def _recorder() -> str:
    """A prototype of 48 parameters that mixes what goes to integer registers, double registers and the stack."""
    lines = ["REG_OP(Recorder)"]
    lines += [f".INPUT(x{n}, {ANY})" for n in range(5)]
    lines += [f".OPTIONAL_INPUT(o{n}, {ANY})" for n in range(3)]
    lines += [f".DYNAMIC_INPUT(d{n}, {ANY})" for n in range(2)]
    for n in range(5):
        lines += [
            f".REQUIRED_ATTR(f{n}, Float)",
            f".ATTR(i{n}, Int, {-(n**9)})",
            f".ATTR(b{n}, Bool, {'true' if n % 2 else 'false'})",
        ]
    lines += [f".ATTR(g{n}, Float, {n}.25)" for n in range(7)]
    lines += [
        '.ATTR(s0, String, "plain")',
        '.ATTR(s1, String, "quo\\"te\\n")',
        ".ATTR(t0, Type, DT_BF16)",
        ".ATTR(t1, Type, DT_INT4)",
    ]
    lines += [".ATTR(li, ListInt, {1, -2})", ".REQUIRED_ATTR(li2, ListInt)", ".ATTR(lf, ListFloat, {0.5, 1e-7})"]
    lines += [
        ".ATTR(lb, ListBool, {true, false})",
        ".ATTR(lt, ListType, {DT_FLOAT, DT_BF16})",
        ".REQUIRED_ATTR(lf2, ListFloat)",
    ]
    lines += [f".OUTPUT(y0, {ANY})", f".OUTPUT(y1, {ANY})", f".DYNAMIC_OUTPUT(ys, {ANY})"]
    return "\n".join([*lines, ".OP_END_FACTORY_REG(Recorder)"])


PROTOTYPES = f"""
{_recorder()}
REG_OP(AddCustom).INPUT(x, {ANY}).INPUT(y, {ANY}).OUTPUT(z, {ANY}).OP_END_FACTORY_REG(AddCustom)
REG_OP(Failing).INPUT(x, {ANY}).OUTPUT(y, {ANY}).ATTR(fail, Bool, true).OP_END_FACTORY_REG(Failing)
REG_OP(Gather1).INPUT(x, {ANY}).DYNAMIC_INPUT(xs, {ANY}).OUTPUT(y, {ANY}).OP_END_FACTORY_REG(Gather1)
REG_OP(Increment).INPUT(x, {ANY}).OUTPUT(x, {ANY}).OP_END_FACTORY_REG(Increment)
REG_OP(Probe).INPUT(x, {ANY}).INPUT(w, {ANY}).OPTIONAL_INPUT(b, {ANY}).OUTPUT(y, {ANY}).OUTPUT(z, {ANY})
    .ATTR(n, Int, 3).ATTR(flag, Bool, false).ATTR(dtype, Type, DT_FLOAT16).OP_END_FACTORY_REG(Probe)
REG_OP(AddCustomGrad).INPUT(dz, {ANY}).OUTPUT(dx, {ANY}).OUTPUT(dy, {ANY}).OP_END_FACTORY_REG(AddCustomGrad)
REG_OP(Square).INPUT(x, {ANY}).OPTIONAL_INPUT(b, {ANY}).OUTPUT(y, {ANY}).OUTPUT(index, {ANY})
    .ATTR(scale, Float, 1.0).OP_END_FACTORY_REG(Square)
REG_OP(SquareGrad).INPUT(x, {ANY}).INPUT(grad_y, {ANY}).OUTPUT(dx, {ANY}).ATTR(scale, Float, 1.0)
    .OP_END_FACTORY_REG(SquareGrad)
REG_OP(SquareGradGrad).INPUT(x, {ANY}).INPUT(grad_y, {ANY}).INPUT(grad_dx, {ANY}).OUTPUT(grad_x, {ANY})
    .OUTPUT(grad_grad_y, {ANY}).ATTR(scale, Float, 1.0).OP_END_FACTORY_REG(SquareGradGrad)
REG_OP(Maybe).INPUT(x, {ANY}).OUTPUT(y, {ANY}).OUTPUT(z, {ANY}).ATTR(with_z, Bool, true).OP_END_FACTORY_REG(Maybe)
REG_OP(CastTo).INPUT(x, {ANY}).OUTPUT(y, {ANY}).ATTR(dst_type, Int, 2).OP_END_FACTORY_REG(CastTo)
REG_OP(AddTo).INPUT(w, {FLOAT}).INPUT(x, {FLOAT}).OUTPUT(w, {FLOAT}).OP_END_FACTORY_REG(AddTo)
REG_OP(AddInto).INPUT(x, {FLOAT}).INPUT(w, {FLOAT}).OUTPUT(w, {FLOAT}).OP_END_FACTORY_REG(AddInto)
REG_OP(Put).INPUT(cache, {FLOAT}).INPUT(update, {FLOAT}).INPUT(slots, TensorType({{DT_INT32, DT_INT64}}))
    .OUTPUT(cache, {FLOAT})
    .OP_END_FACTORY_REG(Put)
REG_OP(Twice).INPUT(x, {FLOAT}).OUTPUT(y, {FLOAT}).OP_END_FACTORY_REG(Twice)
REG_OP(Blend).INPUT(x, {DOUBLE}).INPUT(w, {DOUBLE}).OPTIONAL_INPUT(b, {DOUBLE}).OUTPUT(out, {DOUBLE})
    .OUTPUT(aux, {DOUBLE})
    .ATTR(eps, Float, 0.5).OP_END_FACTORY_REG(Blend)
REG_OP(BlendGrad).INPUT(grad_out, {DOUBLE}).INPUT(grad_aux, {DOUBLE}).INPUT(x, {DOUBLE}).INPUT(w, {DOUBLE})
    .OUTPUT(dx, {DOUBLE}).OUTPUT(dw, {DOUBLE}).ATTR(epsilon, Float, 1.0).OP_END_FACTORY_REG(BlendGrad)
REG_OP(Parts).INPUT(x, {DOUBLE}).OPTIONAL_INPUT(b, {DOUBLE}).OUTPUT(z, {DOUBLE}).OUTPUT(y, {DOUBLE})
    .ATTR(with_z, Bool, true)
    .OP_END_FACTORY_REG(Parts)
REG_OP(PartsGrad).INPUT(x, {DOUBLE}).OPTIONAL_INPUT(b, {DOUBLE}).OPTIONAL_INPUT(z, {DOUBLE}).INPUT(y, {DOUBLE})
    .OPTIONAL_INPUT(grad_z, {DOUBLE}).INPUT(grad_y, {DOUBLE}).OUTPUT(dx, {DOUBLE}).OUTPUT(db, {DOUBLE})
    .OP_END_FACTORY_REG(PartsGrad)
REG_OP(Mix).INPUT(x, {FLOAT}).INPUT(y, {FLOAT}).OPTIONAL_INPUT(b, {FLOAT}).OUTPUT(z, {FLOAT}).OUTPUT(rest, {FLOAT})
    .ATTR(alpha, Float, 2.0).ATTR(negate, Bool, false).OP_END_FACTORY_REG(Mix)
REG_OP(MixGrad).INPUT(grad_z, {FLOAT}).OUTPUT(dx, {FLOAT}).OUTPUT(dy, {FLOAT})
    .ATTR(alpha, Float, 2.0).OP_END_FACTORY_REG(MixGrad)
REG_OP(Nowhere).INPUT(x, {ANY}).OUTPUT(y, {ANY}).OP_END_FACTORY_REG(Nowhere)
"""

#: The relations of the library that is generated from them, and its gradients.
SHAPES = {
    "Recorder": "x0[*s] -> y0[*s], y1[*s]: int64, ys[i < b][i + 1] where b = 2 if b1 else 3",
    "AddCustom": "x[*s], y[*s] -> z[*s]",
    "Gather1": "x[n], xs[i][n] -> y[n]",
    "Probe": (
        "x[..., m, k], w[k, q], b[q] -> y[..., m, q]: dtype, z[m * 2 + n, (ceildiv(q, 2) if flag else q // 2)]: "
        "promote(x, w) "
        "where m > 0"
    ),
    "CastTo": "x[*s] -> y[*s]: dst_type",
    "Maybe": "x[*s] -> y[*s], z[*s] if with_z else None",
    "Square": "x[*s], b[*s] -> y[*s], index[*s]: int64",
    "SquareGrad": "x[*s], grad_y[*s] -> dx[*s]",
    "SquareGradGrad": "x[*s], grad_y[*s], grad_dx[*s] -> grad_x[*s], grad_grad_y[*s]",
    **WRITING,
    "Blend": "x[*s], w[*s], b[*s] -> out[*s], aux[*s]",
    "BlendGrad": "grad_out[*s], grad_aux[*s], x[*s], w[*s] -> dx[*s], dw[*s]",
    "Parts": "x[*s], b[*s] -> z[*s] if with_z else None, y[*s]",
    "PartsGrad": "x[*s], b[*s], y[*s], grad_y[*s] -> dx[*s], db[*s]",
    "Mix": "x[n, m], y[m], b[m] -> z[n, m], rest[m]",
    "MixGrad": "grad_z[n, m] -> dx[n, m], dy[m]",
}
GRADIENTS = {
    "Square": "SquareGrad",
    "SquareGrad": "SquareGradGrad",
    "Blend": "BlendGrad",
    "Parts": "PartsGrad; unused: with_z",
    "Mix": "MixGrad; unused: negate; constant: rest, b",
}
#: Public schemas of the generated library: other names, another order and other defaults than the prototypes'.
SCHEMAS = {
    "Mix": (
        "public_ops::mixed(Tensor other, Tensor self, float scale=1.5, *, Tensor? bias=None, bool? flip=None) "
        "-> (Tensor rest, Tensor z)"
    ),
    "MixGrad": "public_ops::mixed_grad",
}
ARGUMENTS = {"Mix": "other: y, scale: alpha, bias: b, flip: negate"}


def prototype(op_type: str) -> OpPrototype:
    """One of the prototypes above."""
    return next(p for p in parse_text(PROTOTYPES).prototypes if p.op_type == op_type)


KERNELS = r"""
#include <cstdio>
#include <cstring>

#include "host_kernels.h"

static std::string recorded;

template <typename T>
static std::string bits(T value) {
    uint64_t raw = 0;
    std::memcpy(&raw, &value, sizeof(value));
    return std::to_string(raw);
}
static std::string text(int64_t v) { return std::to_string(v); }
static std::string text(double v) { return bits(v); }
static std::string text(float v) { return bits(v); }
static std::string text(bool v) { return v ? "true" : "false"; }
template <typename T>
static std::string text(const host_kernels::Span<T>& list) {
    std::string all = "[";
    for (const T& item : list) all += (all.size() > 1 ? "," : "") + text(item);
    return all + "]";
}
static std::string text(std::string_view v) {
    std::string all = "[";
    for (unsigned char c : v) all += (all.size() > 1 ? "," : "") + std::to_string(c);
    return all + "]";
}
static std::string text(const host_kernels::Tensor& t) {
    const host_kernels::Span<int64_t> sizes{t.sizes, static_cast<size_t>(t.rank)},
        strides{t.strides, static_cast<size_t>(t.rank)};
    return "[" + std::to_string(t.dtype) + "," + bits(t.data) + "," + text(sizes) + "," + text(strides) + "]";
}
static std::string text(const host_kernels::Tensor* t) { return t == nullptr ? "null" : text(*t); }
template <>
std::string text(const host_kernels::Span<host_kernels::Tensor>& list) {
    std::string all = "[";
    for (const auto& item : list) all += (all.size() > 1 ? "," : "") + text(item);
    return all + "]";
}

void host_kernels::Recorder(const RecorderArgs& a) {
    recorded = "{";
@RECORD@
    recorded.back() = '}';
}
extern "C" const char* recorded_arguments() { return recorded.c_str(); }

void host_kernels::AddCustom(const AddCustomArgs& a) {
    for (int64_t i = 0; i < a.z.numel(); ++i) {
        a.z.as<float>()[a.z.offset(i)] = a.x.as<float>()[a.x.offset(i)] + a.y.as<float>()[a.y.offset(i)];
    }
}
using host_kernels::Tensor;
static float& at(const Tensor& t, int64_t i) { return t.as<float>()[t.offset(i)]; }
void host_kernels::AddCustomGrad(const AddCustomGradArgs& a) {
    for (int64_t i = 0; i < a.dz.numel(); ++i) at(a.dx, i) = at(a.dy, i) = at(a.dz, i);
}
void host_kernels::Square(const SquareArgs& a) {
    const auto scale = static_cast<float>(a.scale);
    for (int64_t i = 0; i < a.x.numel(); ++i) {
        at(a.y, i) = scale * at(a.x, i) * at(a.x, i) + (a.b == nullptr ? 0 : at(*a.b, i));
        a.index.as<int64_t>()[a.index.offset(i)] = i;
    }
}
void host_kernels::SquareGrad(const SquareGradArgs& a) {
    const auto scale = static_cast<float>(a.scale);
    for (int64_t i = 0; i < a.x.numel(); ++i) at(a.dx, i) = 2 * scale * at(a.x, i) * at(a.grad_y, i);
}
void host_kernels::SquareGradGrad(const SquareGradGradArgs& a) {
    const auto scale = static_cast<float>(a.scale);
    for (int64_t i = 0; i < a.x.numel(); ++i) {
        at(a.grad_x, i) = 2 * scale * at(a.grad_y, i) * at(a.grad_dx, i);
        at(a.grad_grad_y, i) = 2 * scale * at(a.x, i) * at(a.grad_dx, i);
    }
}
void host_kernels::AddTo(const AddToArgs& a) {
    for (int64_t i = 0; i < a.w.numel(); ++i) at(a.w, i) += at(a.x, i);
}
void host_kernels::AddInto(const AddIntoArgs& a) {
    for (int64_t i = 0; i < a.w.numel(); ++i) at(a.w, i) += at(a.x, i);
}
void host_kernels::Put(const PutArgs&) {}
void host_kernels::Twice(const TwiceArgs& a) {
    for (int64_t i = 0; i < a.x.numel(); ++i) at(a.y, i) = 2 * at(a.x, i);
}
static double& real(const Tensor& t, int64_t i) { return t.as<double>()[t.offset(i)]; }
void host_kernels::Blend(const BlendArgs& a) {
    for (int64_t i = 0; i < a.x.numel(); ++i) {
        real(a.out, i) = real(a.x, i) * (real(a.w, i) + a.eps) + (a.b == nullptr ? 0 : real(*a.b, i));
        real(a.aux, i) = 3 * real(a.x, i) * real(a.x, i);
    }
}
void host_kernels::BlendGrad(const BlendGradArgs& a) {
    for (int64_t i = 0; i < a.x.numel(); ++i) {
        real(a.dx, i) = real(a.grad_out, i) * (real(a.w, i) + a.epsilon) + 6 * real(a.x, i) * real(a.grad_aux, i);
        real(a.dw, i) = real(a.grad_out, i) * real(a.x, i);
    }
}
void host_kernels::Parts(const PartsArgs& a) {
    for (int64_t i = 0; i < a.z.numel(); ++i) real(a.z, i) = 5 * real(a.x, i);
    for (int64_t i = 0; i < a.x.numel(); ++i) {
        real(a.y, i) = 2 * real(a.x, i) + (a.b == nullptr ? 0 : 7 * real(*a.b, i));
    }
}
// Only right if every tensor is the one it is called.
void host_kernels::PartsGrad(const PartsGradArgs& a) {
    for (int64_t i = 0; i < a.x.numel(); ++i) {
        const double x = real(a.x, i), b = a.b == nullptr ? 0 : real(*a.b, i);
        real(a.dx, i) = real(a.grad_y, i) * (real(a.y, i) - 7 * b) / x;
        if (a.z != nullptr && a.grad_z != nullptr) real(a.dx, i) += real(*a.grad_z, i) * real(*a.z, i) / x;
        real(a.db, i) = 7 * real(a.grad_y, i);
    }
}
void host_kernels::Mix(const MixArgs& a) {
    const int64_t width = a.y.numel();
    const float scale = static_cast<float>(a.negate ? -a.alpha : a.alpha);
    for (int64_t i = 0; i < a.x.numel(); ++i) {
        at(a.z, i) = at(a.x, i) + scale * at(a.y, i % width) + (a.b == nullptr ? 0 : at(*a.b, i % width));
    }
    for (int64_t i = 0; i < width; ++i) at(a.rest, i) = -at(a.y, i);
}
void host_kernels::MixGrad(const MixGradArgs& a) {
    const int64_t width = a.dy.numel();
    for (int64_t i = 0; i < width; ++i) at(a.dy, i) = 0;
    for (int64_t i = 0; i < a.grad_z.numel(); ++i) {
        at(a.dx, i) = at(a.grad_z, i);
        at(a.dy, i % width) += static_cast<float>(a.alpha) * at(a.grad_z, i);
    }
}
void host_kernels::Failing(const FailingArgs& a) {
    if (a.fail) throw std::runtime_error("the kernel was asked to fail");
}
void host_kernels::Maybe(const MaybeArgs& a) {
    for (int64_t i = 0; i < a.x.numel(); ++i) at(a.y, i) = at(a.x, i) + 1;
    for (int64_t i = 0; i < a.z.numel(); ++i) at(a.z, i) = at(a.x, i) + 2;
}
void host_kernels::CastTo(const CastToArgs& a) {
    recorded = "{\"dst_type\":" + std::to_string(a.dst_type) + ",\"y\":" + std::to_string(a.y.dtype) + "}";
}
void host_kernels::Gather1(const Gather1Args&) {}
void host_kernels::Probe(const ProbeArgs&) {}
void host_kernels::Increment(const IncrementArgs& a) {
    for (int64_t i = 0; i < a.x.numel(); ++i) a.x.as<float>()[a.x.offset(i)] += 1;
}
"""
