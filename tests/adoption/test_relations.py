"""Relations are written from kernels and metas only where every part is certain."""

from __future__ import annotations

import math

import pytest
import torch

from ascend_graph.adoption import Decision

from .conftest import Adopt, decision

HEAD = "#include <torch/extension.h>\nconstexpr int64_t BLOCK = 128;\n"
SCHEMA = "f(Tensor x, Tensor w, Tensor? bias, int n, int[] dims, bool flag=False, str layout='BSH') -> "
PARAMETERS = (
    "const at::Tensor &x, const at::Tensor &w, const c10::optional<at::Tensor> &bias, int64_t n, at::IntArrayRef dims, "
    "bool flag, c10::string_view layout"
)


def of_kernel(adopted: Adopt, body: str, returns: str = "Tensor", more: str = "") -> str | None:
    return decision_of_kernel(adopted, body, returns, more).relation


def decision_of_kernel(adopted: Adopt, body: str, returns: str = "Tensor", more: str = "") -> Decision:
    declared = "at::Tensor" if returns == "Tensor" else "std::tuple<at::Tensor, at::Tensor>"
    report = adopted(
        {
            "ops.cpp": f'{HEAD}{more}{declared} f({PARAMETERS}) {{\n{body}\n}}\nTORCH_LIBRARY(mine, m) {{ m.def("{SCHEMA}{returns}"); }}\n'
            'TORCH_LIBRARY_IMPL(mine, PrivateUse1, m) { m.impl("f", TORCH_FN(f)); }\n'
        }
    )
    return decision(report, "mine::f")


CERTAIN = {
    "return at::empty_like(x);": "x[*s] -> y like x",
    "auto y = at::empty({x.size(0), 2}, x.options()); return at::cumsum(y, 1, at::kInt);": (
        "x[x0, *x_rest] -> y[x0, 2]: int32"
    ),
    "return at::cumsum(x, -1, x.scalar_type());": "x[*s] -> y[*s]: x",
    "return at::empty_like(x, x.options().dtype(at::kFloat));": "x[*s] -> y like x: float32",
    "return at::empty(x.sizes(), w.options());": "x[*x_rest], w -> y[*x_rest]: w",
    "return at::zeros({x.size(0), n}, x.options());": "x[x0, *x_rest] -> y[x0, n]: x",
    "auto m = x.size(-1); return at::empty({m / 2}, x.options());": "x[*x_rest, m] -> y[m // 2]: x",
    'TORCH_CHECK(x.dim() == 2, "x must be a matrix"); return at::empty({x.size(1)}, x.options());': "x[x0, x1] -> y[x1]: x",
    "auto s = x.sizes().vec(); s.back() = w.size(0); return at::empty(s, x.options());": "x[*x_rest, x_last], w[w0, *w_rest] -> y[*x_rest, w0]: x",
    (
        "std::vector<int64_t> s; for (int i = 0; i < x.dim() - 1; ++i) { s.push_back(x.size(i)); "
        "} return at::empty(s, x.options());"
    ): "x[*x_rest, x_last] -> y[*x_rest]: x",
    "auto t = flag ? at::kHalf : x.scalar_type(); return at::empty(x.sizes(), x.options().dtype(t));": "x[*s] -> y[*s]: float16 if flag else x",
    (
        "at::Tensor y; if (flag) { y = at::empty({n}, x.options()); "
        "} else { y = at::empty({0}, x.options()); } return y;"
    ): "x -> y[n] if flag else [0]: x",
    (
        'if (x.dim() != 2) { throw std::runtime_error("no"); } return at::empty({x.size(0)}, x.options());'
    ): "x[x0, x1] -> y[x0]: x",
    'if (flag) { TORCH_CHECK(false, "no"); } return at::empty({x.size(0)}, x.options());': "x[x0, *x_rest] -> y[x0]: x",
    "return at::empty({n}, at::dtype(at::kInt).device(x.device()));": "-> y[n]: int32",
    "return at::empty({(x.size(0) + BLOCK - 1) / BLOCK}, x.options());": "x[x0, *x_rest] -> y[((x0 + 128) - 1) // 128]: x",
    "check(x); return at::empty({x.size(0)}, x.options());": "x[x0, x1] -> y[x0]: x",
    "int64_t k = n; switch (n) { case 1: k = 3; break; default: break; } return at::empty({k}, x.options());": (
        "x -> y[(3 if n == 1 else n)]: x"
    ),
    "switch (n) { case 1: case 2: return at::empty({1}, x.options()); default: return at::empty({n}, x.options()); }": (
        "x -> y[1] if (n == 1) or (n == 2) else [n]: x"
    ),
    "return make(x, n);": "x[x0, *x_rest] -> y[x0, n]: x",
    (
        "auto up = [](int64_t a) { return (a + 7) / 8; }; return at::empty({up(x.size(0))}, x.options());"
    ): "x[x0, *x_rest] -> y[(x0 + 7) // 8]: x",
    'return at::empty({n}, x.options().dtype(layout == "BSH" ? at::kInt : at::kLong));': '-> y[n]: int32 if layout == "BSH" else int64',
    "auto o = bias.has_value() ? x.size(0) : 1; return at::empty({o, x.size(0)}, x.options());": "x[x0, *x_rest], bias -> y[(x0 if bias else 1), x0]: x",
    "return x.to(at::kHalf);": "x[*s] -> y like x: float16",
    "return x.permute({1, 0}).contiguous();": "x[x0, x1] -> y[x1, x0]: x",
    "return at::empty({n, 2}, x.options()).fill_(1);": "x -> y[n, 2]: x",
    (
        "int64_t k = n; for (int i = 0; i < 2; i++) { k = k * x.size(i); } return at::empty({k}, x.options());"
    ): "x[x0, x1, *x_rest] -> y[(n * x0) * x1]: x",
    "int64_t k = n; change(w, k); return at::empty({k}, x.options());": "x, w[w0, *w_rest] -> y[w0]: x",
    "std::vector<at::Tensor> all; add(all, x, n); return all[0];": "x[x0, *x_rest] -> y[n, x0]: x",
    "auto k = n;\n#ifdef COUNTED\nCOUNT_CALLS(x);\n#endif\nreturn at::empty({k}, x.options());": "x -> y[n]: x",
    "#ifndef WITH_IT\nTORCH_CHECK(false);\n#else\nreturn at::empty({n}, x.options());\n#endif": "x -> y[n]: x",
    "auto k = Mode::WIDE == n ? 2 : 1; return at::empty({k}, x.options());": "x -> y[(2 if 3 == n else 1)]: x",
    (
        "auto y = at::empty({x.size(0)}, x.options()); if (flag) { y = y.to(at::kFloat); "
        "} if (flag) { y = y.to(at::kHalf); } return y;"
    ): "x[x0, *x_rest] -> y[x0]: float16 if flag else [x0]: x",
}
# Parts of a shape by iterators, and by a loop with a number after the counted one.
CERTAIN |= {
    "auto s = x.sizes().vec(); std::vector<int64_t> r(s.begin(), s.end() - 1); return at::empty(r, x.options());": (
        "x[*x_rest, x_last] -> y[*x_rest]: x"
    ),
    "auto s = x.sizes(); std::vector<int64_t> r(s.begin() + 1, s.end()); return at::empty(r, x.options());": (
        "x[x0, *x_rest] -> y[*x_rest]: x"
    ),
    "auto s = x.sizes(); std::vector<int64_t> r(s.begin() + 1, s.end() - 1); return at::empty(r, x.options());": (
        "x[x0, *x_rest, x_last] -> y[*x_rest]: x"
    ),
    (
        "std::vector<int64_t> r; for (int i = 0; i + 2 < x.dim(); ++i) { r.push_back(x.size(i)); "
        "} return at::empty(r, x.options());"
    ): ("x[*x_rest, x_back2, x_last] -> y[*x_rest]: x"),
    (
        "std::vector<int64_t> r; for (int i = 0; i + 1 <= x.dim(); ++i) { r.push_back(x.size(i)); "
        "} return at::empty(r, x.options());"
    ): ("x[*s] -> y[*s]: x"),
}
MORE = "void change(const at::Tensor &t, int64_t &k) { k = t.size(0); }\n"
MORE += "void add(std::vector<at::Tensor> &all, const at::Tensor &t, int64_t k)\n"
MORE += "{ all.push_back(at::empty({k, t.size(0)}, t.options())); }\n"
MORE += "enum class Mode : int64_t { NARROW = 2, WIDE };\n"
HELPER = MORE + "void check(const at::Tensor &t) { TORCH_CHECK(t.dim() == 2, t.dim()); }\n"
HELPER += "at::Tensor make(const at::Tensor &t, int64_t k) { return at::empty({t.size(0), k}, t.options()); }\n"


@pytest.mark.parametrize("body", CERTAIN, ids=str)
def test_what_a_kernel_certainly_allocates_is_its_relation(body: str, adopted: Adopt) -> None:
    assert of_kernel(adopted, body, more=HELPER) == CERTAIN[body]


UNCERTAIN = [
    # Integers are summed as int64.
    "return at::cumsum(x, 0);",
    # The preprocessor decides.
    "auto k = n;\n#ifdef DOUBLED\nk = 2 * n;\n#endif\nreturn at::empty({k}, x.options());",
    # A helper that may return before it has changed what it takes.
    "int64_t k = n; early(k, flag); return at::empty({k}, x.options());",
    # A loop that counts otherwise than it says, or ends before.
    "int64_t k = n; for (int i = 0; i < 4; i++) { k = k * x.size(0); i++; } return at::empty({k}, x.options());",
    "int64_t k = n; for (int i = 0; i < 4; i++) { if (i == w.size(0)) { break; } k = k * 2; } return at::empty({k}, x.options());",
    # A function may take a number by reference.
    "int64_t k = n; compute(w, k); return at::empty({k}, x.options());",
    "int64_t k = n; object->compute(k); return at::empty({k}, x.options());",
    # A loop, a lambda, an increment or an assignment in a condition changes it.
    "int64_t k = n; while (k % 8) { ++k; } return at::empty({k}, x.options());",
    "int64_t k = n; auto g = [&]() { k = 3; }; g(); return at::empty({k}, x.options());",
    "int64_t k = n; k++; return at::empty({k}, x.options());",
    "int64_t k = n; if ((k = w.size(0)) > 3) { } return at::empty({k}, x.options());",
    "int64_t k = n; switch (n) { case 1: k = 3; case 2: break; default: break; } return at::empty({k}, x.options());",
    "std::vector<int64_t> s = {n, n}; s[unknown()] = 3; return at::empty(s, x.options());",
    "std::vector<int64_t> s = {n, 1}; std::sort(s.begin(), s.end()); return at::empty(s, x.options());",
    "auto s = x.sizes(); std::vector<int64_t> r(s.begin(), s.end() + 1); return at::empty(r, x.options());",
    "auto s = x.sizes(); std::vector<int64_t> r(s.begin() - 1, s.end()); return at::empty(r, x.options());",
    "auto s = x.sizes(); std::vector<int64_t> r(s.begin(), s.end() - n); return at::empty(r, x.options());",
    "int64_t k = 1; for (int64_t i = 0; i < n; ++i) { k *= x.size(i); } return at::empty({k}, x.options());",
    # Data decides, or the device.
    "return at::empty({w.max().item<int64_t>()}, x.options());",
    "return at::empty({n}, x.options().device(at::kCPU));",
    "return x.view({-1, -1});",
    # Ranks that are checked in some calls only.
    'if (flag) { TORCH_CHECK(x.dim() == 2, ""); } auto k = x.size(2); return at::empty({dims[k]}, x.options());',
    "double k = x.size(0); return at::empty({static_cast<int64_t>(k / 2)}, x.options());",
    "return at::empty({static_cast<double>(x.size(0)) / 2}, x.options());",
    # A tensor without a device is on the CPU.
    "return at::empty({n}, at::kFloat);",
    "for (auto k : dims) { return at::empty({k}, x.options()); } return x;",
    "#if A\n return at::empty({1}, x.options());\n#else\n return at::empty({2}, x.options());\n#endif",
]
CHANGER = "void early(int64_t &k, bool flag) { if (flag) { return; } k = 3; }\n"


@pytest.mark.parametrize("body", UNCERTAIN, ids=str)
def test_what_is_not_certain_is_left_open(body: str, adopted: Adopt) -> None:
    one = decision_of_kernel(adopted, body, more=CHANGER)
    assert (one.relation, one.meta) == (None, ())


def test_two_returns_are_named_by_the_schema(adopted: Adopt) -> None:
    body = "auto y = at::empty_like(x); auto s = at::empty({x.size(0)}, x.options().dtype(at::kFloat)); return std::make_tuple(y, s);"
    assert of_kernel(adopted, body, "(Tensor out, Tensor scale)") == "x[x0, *x_rest] -> out like x, scale[x0]: float32"


def test_a_python_meta_is_read(adopted: Adopt) -> None:
    report = adopted(
        {
            "ops.py": "import torch\n"
            "lib = torch.library.Library('mine', 'DEF')\n"
            "lib.define('f(Tensor x, Tensor w, int n=2) -> (Tensor, Tensor)')\n"
            "lib.define('g(Tensor x) -> Tensor')\n"
            "@torch.library.register_fake('mine::f')\n"
            "def _(x, w, n=2):\n"
            "    y = x.new_empty(*x.shape[:-1], w.shape[-1])\n"
            "    return y, torch.empty((*x.shape[:-1], n), dtype=torch.float32, device=x.device)\n"
            "@torch.library.impl(lib, 'g', 'Meta')\n"
            "def g(x):\n"
            "    rows = [n for n in x.shape]\n"
            "    return x.new_empty(rows)\n"
        }
    )
    f = decision(report, "mine::f")
    assert f.relation == "x[*x_rest, x_last], w[*w_rest, w_last] -> y0[*x_rest, w_last]: x, y1[*x_rest, n]: float32"
    assert f.override
    g = decision(report, "mine::g")
    assert g.registers
    assert g.relation is None  # its meta function is kept


def test_a_meta_that_says_otherwise_than_the_kernel_is_named(adopted: Adopt) -> None:
    report = adopted(
        {
            "ops.cpp": "at::Tensor f(const at::Tensor &x) { return at::empty(x.sizes(), x.options().dtype(at::kChar)); }\n"
            "at::Tensor f_meta(const at::Tensor &x) { return at::empty_like(x); }\n"
            'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> Tensor"); m.impl("f", torch::kPrivateUse1, &f); }\n'
            'TORCH_LIBRARY_IMPL(mine, Meta, m) { m.impl("f", &f_meta); }\n'
        }
    )
    f = decision(report, "mine::f")
    assert f.relation == "x[*s] -> y[*s]: int8"
    assert "the meta function at ops.cpp:4 says otherwise: x[*s] -> y like x" in f.evidence


def test_an_optional_number_is_asked_for(adopted: Adopt) -> None:
    report = adopted(
        {
            "ops.cpp": "at::Tensor f(const at::Tensor &x, c10::optional<int64_t> n) { return at::empty({n.value_or(4)}, x.options()); }\n"
            "at::Tensor g(const at::Tensor &x, c10::optional<int64_t> n) { return at::empty({*n}, x.options()); }\n"
            'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x, int? n=None) -> Tensor", &f); m.def("g(Tensor x, int? n=None) -> Tensor", &g); }'
        }
    )
    assert decision(report, "mine::f").relation == "x -> y[(n if n is not None else 4)]: x"
    assert decision(report, "mine::g").relation is None


# Bodies whose outputs no relation states, and what they compute in Python.
METAS = {
    "return at::empty({x.size(0), x.size(1)}, x.options()).transpose(0, 1);": lambda x, w, n: x.new_empty(x.shape).t(),
    "return at::empty({n, 3, x.size(1)}, x.options()).permute({2, 0, 1});": lambda x, w, n: x.new_empty(
        (n, 3, x.shape[1])
    ).permute(2, 0, 1),
    "auto y = at::empty({n, 8}, x.options()); return y.narrow(1, 0, x.size(1));": lambda x, w, n: x.new_empty((n, 8))[
        :, : x.shape[1]
    ],
    (
        "int64_t k = 1; for (size_t i = 0; i < dims.size(); i++) { k *= dims[i]; } return at::empty({k}, x.options());"
    ): lambda x, w, n: x.new_empty(6),
    "if (flag) { return at::empty({x.size(3)}, x.options()); } return at::empty({n}, x.options());": lambda x, w, n: (
        x.new_empty(n)
    ),
    "auto t = at::empty_like(x.transpose(0, 1)); return t;": lambda x, w, n: torch.empty_like(x.t()),
}


@pytest.mark.parametrize("body", METAS, ids=str)
def test_outputs_that_no_relation_states_get_a_meta_function(body: str, adopted: Adopt) -> None:
    report = adopted(
        {
            "ops.cpp": f'{HEAD}at::Tensor f({PARAMETERS}) {{\n{body}\n}}\nTORCH_LIBRARY(mine, m) {{ m.def("{SCHEMA}Tensor"); }}\n'
            'TORCH_LIBRARY_IMPL(mine, PrivateUse1, m) { m.impl("f", TORCH_FN(f)); }\n'
        }
    )
    one = decision(report, "mine::f")
    assert one.relation is None
    scope = {"torch": torch, "math": math}
    exec("\n".join(one.meta), scope)
    x, w = torch.empty(4, 5, dtype=torch.float16, device="meta"), torch.empty(3, device="meta")
    made, expected = scope["_f"](x, w, None, 7, [2, 3]), METAS[body](x, w, 7)
    assert (made.shape, made.stride(), made.dtype) == (expected.shape, expected.stride(), expected.dtype)
    assert "meta=_f" in report.text
    assert ("import math" in report.text) == ("math." in "".join(one.meta))


@pytest.mark.parametrize("body", ["pass", "...", "return None", "raise NotImplementedError"])
def test_a_kernel_that_only_stands_for_the_operator_does_not_tell_its_outputs(body: str, adopted: Adopt) -> None:
    report = adopted(
        {
            "ops.py": f"""
import torch


@torch.library.custom_op("mine::f", mutates_args=())
def f(x: torch.Tensor, n: int) -> torch.Tensor:
    {body}


@f.register_fake
def _(x, n):
    return x.new_empty((x.shape[0], n))
"""
        }
    )
    one = decision(report, "mine::f")
    assert one.relation == "x[x0, *x_rest] -> y[x0, n]: x"
    assert not any("says otherwise" in line for line in one.evidence)


def test_choices_of_the_preprocessor_are_not_multiplied_out(adopted: Adopt) -> None:
    # 2 ** 64 of them would not end.
    lines = "".join(f"#ifdef A{n}\nf{n}();\n#endif\n" for n in range(64))
    text = (
        f"at::Tensor f(const at::Tensor &x) {{\n{lines}return at::empty_like(x); }}\n"
        'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> Tensor", &f); }\n'
    )
    assert not decision(adopted({"ops.cpp": text}), "mine::f").registers
