"""Values that kernels compute on the way to their outputs: maps, structures, tensors on the CPU, parts of shapes."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from ascend_graph.adoption import Decision, State

from .conftest import Adopt, decision


def adopt_kernel(
    adopted: Adopt, schema: str, parameters: str, body: str, *, more: str = "", header: str = ""
) -> Decision:
    """Adopt a repository of one operator ``mine::f`` with its kernel."""
    report = adopted(
        {
            "sizes.h": header,
            "ops.cpp": f"""
#include "sizes.h"
{more}
at::Tensor f({parameters})
{{
    {body}
}}
TORCH_LIBRARY(mine, m) {{ m.def("f{schema} -> Tensor"); }}
TORCH_LIBRARY_IMPL(mine, PrivateUse1, m) {{ m.impl("f", &f); }}
""",
        }
    )
    return decision(report, "mine::f")


def run_meta(one: Decision, *arguments: Any) -> torch.Tensor:
    """Run the meta function that a decision writes."""
    import math

    scope: dict[str, Any] = {"torch": torch, "math": math}
    exec("\n".join(one.meta), scope)
    (function,) = [value for name, value in scope.items() if name.startswith("_f")]
    return function(*arguments)  # type: ignore[no-any-return]


MAPS = """
at::ScalarType type_of(const std::string &name)
{
    static const std::unordered_map<std::string, at::ScalarType> known = {{"half", at::kHalf}, {"int8", at::kChar}};
    auto found = known.find(name);
    return found != known.end() ? found->second : at::kFloat;
}
aclDataType number_of(at::ScalarType type)
{
    static const std::map<at::ScalarType, aclDataType> known = {
        {at::kHalf, ACL_FLOAT16}, {at::kChar, ACL_INT8}, {at::kFloat, ACL_FLOAT}};
    return known.at(type);
}
at::ScalarType back(aclDataType number)
{
    static const std::map<aclDataType, at::ScalarType> known = {
        {ACL_FLOAT16, at::kHalf}, {ACL_INT8, at::kChar}, {ACL_FLOAT, at::kFloat}};
    return known.at(number);
}
"""


@pytest.mark.parametrize("call", ["type_of(kind)", "back(number_of(type_of(kind)))"])
def test_a_dtype_from_a_map_is_a_choice_by_its_key(adopted: Adopt, call: str) -> None:
    body = f"return at::empty(x.sizes(), x.options().dtype({call}));"
    one = adopt_kernel(adopted, "(Tensor x, str kind)", "const at::Tensor &x, const std::string &kind", body, more=MAPS)
    assert one.relation == 'x[*s] -> y[*s]: float16 if kind == "half" else int8 if kind == "int8" else float32'


STRUCTURE = """
struct Shapes {
    bool merged = false;
    int64_t rows = 0;
    int64_t columns;
};
Shapes shapes_of(const at::Tensor &x, int64_t by)
{
    Shapes made;
    if (x.dim() == 3) {
        made.rows = x.size(0);
        made.columns = (x.size(1) + by - 1) / by;
    } else {
        made.merged = true;
        made.columns = x.size(0) / by;
    }
    return made;
}
"""


def test_members_of_a_structure_are_followed_through_branches(adopted: Adopt) -> None:
    body = """
    auto made = shapes_of(x, by);
    at::Tensor y;
    if (made.merged) {
        y = at::empty({made.columns}, x.options());
    } else {
        y = at::empty({made.rows, made.columns}, x.options());
    }
    return y;"""
    one = adopt_kernel(adopted, "(Tensor x, int by)", "const at::Tensor &x, int64_t by", body, more=STRUCTURE)
    assert run_meta(one, torch.empty(4, 5, 6), 2).shape == (4, 3)
    assert run_meta(one, torch.empty(9), 2).shape == (4,)


@pytest.mark.parametrize(
    "change",
    [
        "auto &other = made; other.rows = 7;",
        "auto *other = &made; other->rows = 7;",
        "change(made);",
        "made.change();",
        "auto set = [&]() { made.rows = 7; }; set();",
        "for (int64_t i = 0; i < x.dim(); i++) { made.rows = made.rows + x.size(i); }",
    ],
)
def test_a_structure_that_may_change_otherwise_is_not_followed(adopted: Adopt, change: str) -> None:
    body = f"Shapes made; made.rows = x.size(0); {change} return at::empty({{made.rows}}, x.options());"
    one = adopt_kernel(adopted, "(Tensor x)", "const at::Tensor &x", body, more=STRUCTURE)
    assert one.relation is None
    assert not one.meta


def test_a_helper_that_changes_a_member_is_followed(adopted: Adopt) -> None:
    more = f"{STRUCTURE}\nvoid change(Shapes &one, int64_t n) {{ one.rows = n; }}"
    body = "Shapes made; change(made, x.size(1)); return at::empty({made.rows}, x.options());"
    one = adopt_kernel(adopted, "(Tensor x)", "const at::Tensor &x", body, more=more)
    assert one.relation == "x[x0, x1, *x_rest] -> y[x1]: x"


def test_a_constant_of_a_header_is_known(adopted: Adopt) -> None:
    header = "#pragma once\nnamespace sizes { constexpr uint32_t META = 1024; }"
    body = "return at::empty({static_cast<int64_t>(sizes::META)}, x.options().dtype(at::kInt));"
    one = adopt_kernel(adopted, "(Tensor x)", "const at::Tensor &x", body, header=header)
    assert one.relation == "-> y[1024]: int32"


def test_a_tensor_of_the_cpu_counts_where_it_is_moved(adopted: Adopt) -> None:
    made = (
        "auto host = at::zeros({x.size(0)}, at::TensorOptions().dtype(at::kInt).device(at::kCPU).pinned_memory(true));"
    )
    moved = adopt_kernel(
        adopted, "(Tensor x)", "const at::Tensor &x", f'{made} return host.to(at::Device("npu"), true);'
    )
    assert moved.relation == "x[x0, *x_rest] -> y[x0]: int32"


def test_a_tensor_that_stays_on_the_cpu_has_no_relation(adopted: Adopt) -> None:
    made = "auto host = at::zeros({x.size(0)}, at::TensorOptions().dtype(at::kInt).device(at::kCPU));"
    one = adopt_kernel(adopted, "(Tensor x)", "const at::Tensor &x", f"{made} return host;")
    assert one.relation is None
    assert "on the CPU" in one.reason


def test_a_shape_whose_rank_only_the_call_knows_has_a_meta_function(adopted: Adopt) -> None:
    body = """
    const size_t begin = x.dim() - dims.size();
    const auto shape = x.sizes();
    const int64_t m = std::accumulate(shape.cbegin(), shape.cbegin() + begin, 1LL, std::multiplies<int64_t>());
    if (m <= 0) {
        return at::empty({m}, x.options());
    }
    at::SmallVector<int64_t, 8> sizes;
    for (size_t i = 0; i < begin; i++) {
        sizes.emplace_back(x.size(i));
    }
    for (size_t i = begin; i < x.dim(); i++) {
        sizes.emplace_back(1);
    }
    return at::empty(sizes, x.options());"""
    one = adopt_kernel(adopted, "(Tensor x, int[] dims)", "const at::Tensor &x, at::IntArrayRef dims", body)
    assert run_meta(one, torch.empty(2, 3, 4), [3, 4]).shape == (2, 1, 1)
    assert run_meta(one, torch.empty(0, 3, 4), [4]).shape == (0,)


HALVED = """
void halve(c10::SmallVector<int64_t, 8> &sizes, const at::Tensor &x, int64_t dim)
{
    int64_t axis = dim;
    if (axis < 0) {
        axis += x.dim();
    }
    sizes[axis] = x.size(axis) / 2;
}
"""


def test_a_size_that_a_helper_sets_at_an_axis_of_the_call_is_followed(adopted: Adopt) -> None:
    body = "c10::SmallVector<int64_t, 8> sizes{x.sizes()}; halve(sizes, x, dim); return at::empty(sizes, x.options());"
    one = adopt_kernel(adopted, "(Tensor x, int dim)", "const at::Tensor &x, int64_t dim", body, more=HALVED)
    for dim, expected in ((0, (1, 4, 6)), (-1, (2, 4, 3)), (-2, (2, 2, 6))):
        assert run_meta(one, torch.empty(2, 4, 6), dim).shape == expected


@pytest.mark.parametrize(
    "change", ["sizes.pop_back();", "std::swap(sizes, other);", "sizes.back() = 3;", "sizes.clear();"]
)
def test_a_helper_that_changes_sizes_in_another_way_leaves_them_open(adopted: Adopt, change: str) -> None:
    more = f"void change(std::vector<int64_t> &sizes, std::vector<int64_t> &other) {{ {change} }}"
    body = "std::vector<int64_t> sizes = x.sizes().vec(); std::vector<int64_t> other = {2}; change(sizes, other); "
    one = adopt_kernel(
        adopted, "(Tensor x)", "const at::Tensor &x", body + "return at::empty(sizes, x.options());", more=more
    )
    assert one.relation != "x[*s] -> y[*s]: x"


def test_nested_conditions_of_a_dtype_keep_their_meaning(adopted: Adopt) -> None:
    body = """
    at::ScalarType type = at::kFloat;
    if (wide) {
        type = at::kDouble;
        if (whole) {
            type = at::kLong;
        }
    }
    return at::empty(x.sizes(), x.options().dtype(type));"""
    parameters = "const at::Tensor &x, bool wide, bool whole"
    one = adopt_kernel(adopted, "(Tensor x, bool wide, bool whole)", parameters, body)
    assert one.relation == "x[*s] -> y[*s]: int64 if wide and whole else float64 if wide else float32"


def test_the_reason_names_the_expression_that_is_not_followed(adopted: Adopt) -> None:
    body = "int64_t n = count_of(lengths.max()); auto y = at::empty({n, 4}, lengths.options()); return y;"
    one = adopt_kernel(adopted, "(Tensor lengths)", "const at::Tensor &lengths", body)
    assert "comes from `lengths.max()" in one.reason


def test_the_reason_names_the_value_of_the_data_that_is_a_size(adopted: Adopt) -> None:
    body = "auto z = made(lengths); int64_t n = z.max().item<int64_t>(); return at::empty({n + 1}, lengths.options());"
    one = adopt_kernel(adopted, "(Tensor lengths)", "const at::Tensor &lengths", body)
    assert "its size comes from the data, `z.max().item()`; write its largest size in a relation" in one.reason


def test_a_size_that_is_guarded_is_that_size(adopted: Adopt) -> None:
    body = "const int64_t m = n.guard_int(__FILE__, __LINE__); return at::empty({m}, x.options());"
    one = adopt_kernel(adopted, "(Tensor x, SymInt n)", "const at::Tensor &x, c10::SymInt n", body)
    assert one.relation == "x -> y[n]: x"


def test_a_part_from_any_index_on_has_its_length(adopted: Adopt) -> None:
    body = "auto y = at::empty({x.size(0) + 1}, x.options()); return y.narrow(0, 1, y.size(0) - 1);"
    one = adopt_kernel(adopted, "(Tensor x)", "const at::Tensor &x", body)
    assert one.meta[-1].endswith(".narrow(0, 1, ((x.shape[0] + 1) - 1))")


def test_an_undefined_tensor_is_named_in_the_reason(adopted: Adopt) -> None:
    one = adopt_kernel(adopted, "(Tensor x)", "const at::Tensor &x", "run(x); return at::Tensor();")
    assert "it returns an undefined tensor, and graphs have none" in one.reason


def test_helpers_of_headers_that_headers_include_are_followed(adopted: Adopt) -> None:
    body = "const uint32_t n = x.size(0); const uint32_t rows = up(n, 8); return at::empty({n, rows}, x.options());"
    report = adopted(
        {
            "src/helpers.h": '#include "sizes/sizes.h"\n',
            "src/sizes/sizes.h": "template <typename T, typename std::enable_if<true, int>::type = 0>\n"
            "T up(T a, T b) { return (a + b - 1) / b * b; }\n",
            "src/torch/ops.cpp": '#include "../helpers.h"\n'
            f"at::Tensor f(const at::Tensor &x) {{ {body} }}\n"
            'PYBIND11_MODULE(mine, m) { m.def("f", &f, py::arg()); }\n',
        }
    )
    (one,) = report.decisions
    assert one.relation == "x[n, *x_rest] -> y[n, (((n + 8) - 1) // 8) * 8]: x", one.reason


def test_a_call_of_one_of_several_functions_keeps_what_none_of_them_assigns(adopted: Adopt) -> None:
    body = "const uint32_t n = x.size(0); look(n); return at::empty({n}, x.options());"
    report = adopted(
        {
            "one.cpp": "namespace a { void look(uint32_t n) { see(n); } }\nnamespace b { void look(uint32_t n) { saw(n); } }\n"
            f"at::Tensor f(const at::Tensor &x) {{ {body} }}\n"
            'PYBIND11_MODULE(mine, m) { m.def("f", &f); }\n'
        }
    )
    (one,) = report.decisions
    assert one.relation == "x[n, *x_rest] -> y[n]: x", one.reason


def test_a_function_with_a_braced_default_is_found(adopted: Adopt) -> None:
    report = adopted(
        {
            "ops.cpp": """
at::Tensor f(const at::Tensor &x, const at::Tensor &cu = at::zeros({1}), int64_t n = int64_t{2})
{
    return at::empty({x.size(0), n}, x.options());
}
TORCH_LIBRARY(mine, m) { m.def("f(Tensor x, Tensor cu, int n) -> Tensor", &f); }
"""
        }
    )
    assert decision(report, "mine::f").relation == "x[x0, *x_rest] -> y[x0, n]: x"


def test_a_meta_function_of_a_conditional_operator_is_written_in_front_of_its_condition(adopted: Adopt) -> None:
    report = adopted(
        {
            "ops.cpp": """
at::Tensor f(const at::Tensor &x) { return at::empty({x.size(0)}, x.options()).expand({x.size(0)}).permute({0}); }
at::Tensor g(const at::Tensor &x, int64_t d)
{
    auto sizes = x.sizes().vec();
    sizes[d] = 1;
    return at::empty(sizes, x.options());
}
TORCH_LIBRARY(mine, m) {
#ifdef WITH_G
    m.def("g(Tensor x, int d) -> Tensor", &g);
#endif
}
"""
        }
    )
    text = report.text
    assert text.index("def _g(x, d):") < text.index('if hasattr(torch.ops.mine, "g"):') < text.index("meta=_g")
    compile(text, "operators.py", "exec")


MORE = {
    "auto s = x.sizes().vec(); s[1] = n; return at::empty(s, x.options());": "x[x0, x1, *x_rest] -> y[x0, n, *x_rest]: x",
    'std::string s(layout.data(), layout.size()); return at::empty({s == "BSH" ? 1 : n}, x.options());': (
        'x -> y[(1 if layout == "BSH" else n)]: x'
    ),
    "auto m = k.has_value() ? k : c10::nullopt; return at::empty({m.has_value() ? m.value() : n}, x.options());": (
        "x -> y[(k if k is not None else n)]: x"
    ),
}


@pytest.mark.parametrize("body", MORE)
def test_a_value_in_another_form_is_the_value(adopted: Adopt, body: str) -> None:
    parameters = "const at::Tensor &x, int64_t n, c10::string_view layout, c10::optional<int64_t> k"
    assert adopt_kernel(adopted, "(Tensor x, int n, str layout, int? k)", parameters, body).relation == MORE[body]


def test_a_helper_of_another_file_has_the_names_of_its_own_file(adopted: Adopt) -> None:
    report = adopted(
        {
            "ops.cpp": """
constexpr int64_t BLOCK = 128;
int64_t blocks(int64_t n) { return n; }
at::Tensor make(const at::Tensor &x);
at::Tensor f(const at::Tensor &x) { return make(x); }
TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> Tensor", &f); }
""",
            "make.cpp": """
constexpr int64_t BLOCK = 64;
int64_t blocks(int64_t n) { return n / BLOCK; }
at::Tensor make(const at::Tensor &x) { return at::empty({blocks(x.size(0)), BLOCK}, x.options()); }
""",
        }
    )
    assert decision(report, "mine::f").relation == "x[x0, *x_rest] -> y[x0 // 64, 64]: x"


def test_a_product_of_leading_sizes_is_followed(adopted: Adopt) -> None:
    body = """
    auto sizes = x.sizes().vec();
    const int64_t count = sizes.size();
    int64_t m = 1;
    for (int64_t i = 0; i < count - 1; ++i) {
        m *= sizes[i];
    }
    return at::empty({2 * m}, x.options());"""
    one = adopt_kernel(adopted, "(Tensor x)", "const at::Tensor &x", body)
    assert run_meta(one, torch.empty(2, 3, 4)).shape == (12,)
    assert run_meta(one, torch.empty(5)).shape == (2,)


@pytest.mark.parametrize(
    ("made", "dtype"),
    [
        ("at::empty_like(x, torch::dtype(torch::kInt32))", torch.int32),
        ("at::zeros_like(x, at::TensorOptions().dtype(at::kInt))", torch.int32),
        ("at::empty_like(x, at::TensorOptions().device(x.device()))", torch.float16),
        ("at::full_like(x, 0.5)", torch.float16),
        ("at::full_like(x, 1, at::dtype(at::kInt))", torch.int32),
        ("x.new_empty({x.size(0), x.size(1)}, at::dtype(at::kInt))", torch.int32),
        ("x.new_empty({x.size(0), x.size(1)}, at::device(x.device()))", torch.float16),
        ("x.to(at::dtype(at::kInt))", torch.int32),
    ],
)
def test_options_name_what_they_change(adopted: Adopt, made: str, dtype: torch.dtype) -> None:
    """A dtype alone leaves the device of the tensor that is asked, and a device its dtype."""
    one = adopt_kernel(adopted, "(Tensor x)", "const at::Tensor &x", f"return {made};")
    if one.relation is None:
        result = run_meta(one, torch.empty(2, 3, dtype=torch.float16))
        assert (result.shape, result.dtype) == ((2, 3), dtype)
    else:
        named = re.search(r"-> .*: (\w+)$", one.relation)
        assert ("float16" if named is None or named[1] == "x" else named[1]) == str(dtype).removeprefix("torch."), (
            one.relation
        )


@pytest.mark.parametrize(
    "made",
    [
        "at::empty_like(x, at::device(at::kCPU))",
        "at::empty({x.size(0)}, at::dtype(at::kInt))",
        "x.new_empty({x.size(0)}, at::TensorOptions().device(at::kCPU))",
        "x.to(at::TensorOptions().device(at::kCPU))",
    ],
)
def test_a_tensor_on_the_cpu_is_no_output(adopted: Adopt, made: str) -> None:
    one = adopt_kernel(adopted, "(Tensor x)", "const at::Tensor &x", f"return {made};")
    assert one.relation is None
    assert not one.meta


# Sizes that a reference, a pointer, an iterator or the header of a loop changes.
CHANGED_OTHERWISE = (
    "int64_t n = 3; int64_t *p = &n; *p = 5; return x.new_empty({n});",
    "int64_t n = 3; int64_t &r = n; r = 5; return x.new_empty({n});",
    "int64_t n = 1; for (auto it = v.begin(); it != v.end(); n++, it++) {} return x.new_empty({n});",
    "int64_t n = 1; while (n++ < 5) {} return x.new_empty({n});",
    "auto s = x.sizes().vec(); auto it = s.begin(); *it = 5; return x.new_empty(s);",
    "auto s = x.sizes().vec(); int64_t *p = s.data(); p[0] = 3; return x.new_empty(s);",
    "auto s = x.sizes().vec(); for (auto &i : s) { i += 1; } return x.new_empty(s);",
    "auto s = x.sizes().vec(); std::swap(s[0], s[1]); return x.new_empty(s);",
    "std::vector<int64_t> s = {1, 2}; auto &q = s; q.push_back(3); return x.new_empty(s);",
    "auto y = x.new_empty({2}); auto &z = y; z = x.new_empty({3}); return y;",
    "auto y = x.new_empty({2}); at::Tensor *z = &y; *z = x.new_empty({3}); return y;",
    "auto y = x.new_empty({2}); at::native::resize_output(y, {5}); return y;",
    "auto y = x.new_empty({2}); auto z = x.new_empty({3}); std::swap(y, z); return y;",
    "auto y = x.new_empty({2}); auto z = y; z.resize_({5}); return y;",
    "int64_t n = -7; return x.new_empty({10 + n / 2});",
    "int64_t n = 5; { int64_t n = 7; use(n); } return x.new_empty({n});",
    "int64_t n = 5; if (x.dim() == 2) { int64_t n = 7; use(n); } return x.new_empty({n});",
    "int64_t n = 5; for (int64_t n = 0; n < 2; n++) {} return x.new_empty({n});",
    "int64_t n = 2; auto f = [n](int64_t m) { return n * m; }; n = 3; return x.new_empty({f(4)});",
    "constexpr int n = 3; auto f = [n = x.size(0)]() { return n; }; return x.new_empty({f()});",
    "double n = 7; n = n / 2; return x.new_empty({(int64_t)(n * 2)});",
)


@pytest.mark.parametrize("body", CHANGED_OTHERWISE)
def test_what_is_changed_through_another_name_is_not_followed(adopted: Adopt, body: str) -> None:
    one = adopt_kernel(adopted, "(Tensor x)", "const at::Tensor &x", body)
    assert (one.relation, one.meta) == (None, ())


@pytest.mark.parametrize(
    "body",
    [
        "int64_t n = x.size(0), m = 2; return x.new_empty({n, m});",
        "int64_t n, m; std::tie(n, m) = std::make_tuple(x.size(0), 2); return x.new_empty({n, m});",
        "int64_t n = x.size(0); const int64_t &r = n; auto &s = n; return x.new_empty({r, 2});",
    ],
)
def test_several_variables_of_one_statement_are_followed(adopted: Adopt, body: str) -> None:
    one = adopt_kernel(adopted, "(Tensor x)", "const at::Tensor &x", body)
    assert one.relation is not None
    assert re.fullmatch(r"x\[(\w+), \*x_rest\] -> y\[\1, 2\]: x", one.relation)


@pytest.mark.parametrize(
    ("made", "shape"),
    [
        ("at::empty(size, x.options())", (4, 5)),
        ("x.new_zeros(size)", (4, 5)),
        ("size.size() == 2 ? x.new_empty(size) : x.new_empty({n})", (4, 5)),
        ("at_npu::native::OpPreparation::apply_tensor(x, size)", (4, 5)),
        ("npu_preparation::apply_tensor_with_format(x, {n, size[1]}, ACL_FORMAT_FRACTAL_NZ)", (7, 5)),
        ("npu_preparation::apply_tensor_with_format(x, ACL_FORMAT_FRACTAL_NZ)", (2, 3)),
        ("npu_preparation::apply_tensor(x, x.options().dtype(at::kHalf))", (2, 3)),
    ],
)
def test_a_list_argument_is_the_shape_of_what_is_made(adopted: Adopt, made: str, shape: tuple[int, ...]) -> None:
    parameters = "const at::Tensor &x, at::IntArrayRef size, int64_t n"
    one = adopt_kernel(adopted, "(Tensor x, int[] size, int n)", parameters, f"at::Tensor y = {made}; return y;")
    assert one.registers, one.reason
    if one.meta:
        assert run_meta(one, torch.ones(2, 3), [4, 5], 7).shape == shape
    else:
        assert one.relation in ("x[*s] -> y[*s]: x", "x[*s] -> y[*s]: float16", "x -> y[n, size[1]]: x")


def test_a_tensor_that_is_resized_is_named_in_the_reason(adopted: Adopt) -> None:
    body = "auto y = x.new_empty({2}); y.resize_({5}); return y;"
    assert "y.resize_([5])" in adopt_kernel(adopted, "(Tensor x)", "const at::Tensor &x", body).reason


@pytest.mark.parametrize(
    ("size", "relation"),
    [
        ("(n - 1) / 8 + 1", "(((n - 1) // 8) if (n - 1) >= 0 else (0 - ((0 - (n - 1)) // 8))) + 1"),
        ("(n + 8 - 1) / 8", "((n + 8) - 1) // 8"),
        ("(n + k - 1) / k", "((n + k) - 1) // k"),
        ("(n - m + 1) / 2", "((n - m) + 1) // 2"),
    ],
)
def test_a_quotient_rounds_as_in_cpp(adopted: Adopt, size: str, relation: str) -> None:
    body = f"int64_t n = x.size(0); int64_t m = x.size(1); return x.new_empty({{{size}}});"
    one = adopt_kernel(adopted, "(Tensor x, int k)", "const at::Tensor &x, int64_t k", body)
    assert one.relation is not None
    assert one.relation.replace("x1", "m").endswith(f"-> y[{relation}]: x")


DISPATCHED = """
at::Tensor rows_npu(const at::Tensor &x, int64_t n) {{ return at::empty({{n, x.size(1)}}, x.options()); }}
void put_npu(const at::Tensor &x, at::Tensor &y) {{ y.copy_(x); }}
at::Tensor f(const at::Tensor &x, at::Tensor &y)
{{
    static auto rows = c10::Dispatcher::singleton().findSchemaOrThrow("mine::rows", "").typed<decltype(rows_npu)>();
    {call}
    return rows.call(x, 4);
}}
TORCH_LIBRARY(mine, m) {{
    m.def("rows(Tensor x, int n) -> Tensor");
    m.def("put(Tensor x, Tensor(a!) y) -> ()");
}}
TORCH_LIBRARY_IMPL(mine, PrivateUse1, m) {{ m.impl("rows", &rows_npu); m.impl("put", &put_npu); }}
PYBIND11_MODULE(bound, m) {{ m.def("f", &f); }}
"""
LOOKED_UP = 'torch::Dispatcher::singleton().findSchemaOrThrow("{name}", "").typed<void(const at::Tensor &, at::Tensor &)>().call(x, y);'


def test_an_operator_that_is_called_through_the_dispatcher_is_its_kernel(adopted: Adopt) -> None:
    one = decision(adopted({"ops.cpp": DISPATCHED.format(call="")}), "bound::f")
    assert (one.relation, one.defined_from[0]) == (
        "x[x0, x1, *x_rest] -> y_out[4, x1]: x",
        "bound::f(Tensor x, Tensor y) -> Tensor",
    )


def test_what_an_operator_of_the_dispatcher_writes_is_in_the_schema(adopted: Adopt) -> None:
    one = decision(adopted({"ops.cpp": DISPATCHED.format(call=LOOKED_UP.format(name="mine::put"))}), "bound::f")
    assert one.defined_from[0] == "bound::f(Tensor x, Tensor(a1!) y) -> Tensor", one.reason


def test_an_operator_of_the_dispatcher_that_is_not_here_leaves_the_schema_open(adopted: Adopt) -> None:
    one = decision(adopted({"ops.cpp": DISPATCHED.format(call=LOOKED_UP.format(name="other::put"))}), "bound::f")
    assert "it passes an argument to call, which is not known here" in one.reason


LAMBDAS = {
    "that makes a tensor": (
        "auto f = [&](int64_t v) -> at::Tensor { at::Tensor t = at::empty({1}, x.options()); return t; }; f(n);",
        "n",
    ),
    "that casts": (
        "auto f = [&](const at::Tensor &t) -> at::Tensor"
        " { at::Tensor o = t; if (o.dim() != 1) o = o.reshape({1}); return o; }; f(x);",
        "n",
    ),
    "that reads what is outside": ("auto f = [&](int64_t v) { return v + n; }; n = f(2);", "2 + n"),
    "that adds to what is outside": ("auto f = [&](int64_t v) { n += v; }; f(2);", None),
    "that passes it on": ("auto f = [&](int64_t v) { change(n, v); }; f(2);", None),
    "that is called later": ("auto f = [&](int64_t v) { change(n, v); }; n = 3; f(2);", None),
    "that another function calls": ("auto f = [&](int64_t v) { change(n, v); }; n = 3; each(f);", None),
    "that another one calls": ("auto f = [&](int64_t v) { n += v; }; auto g = [&]() { f(1); }; n = 3; g();", None),
}


@pytest.mark.parametrize("case", LAMBDAS)
def test_what_a_lambda_changes_is_not_certain(case: str, adopted: Adopt) -> None:
    statements, size = LAMBDAS[case]
    report = adopted(
        {
            "ops.cpp": f"at::Tensor f(const at::Tensor &x, int64_t m) {{ int64_t n = m; {statements}"
            " return at::empty({x.size(0), n}, x.options()); }\n"
            'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x, int m) -> Tensor", &f); }\n'
        }
    )
    relation = decision(report, "mine::f").relation
    assert relation == (None if size is None else f"x[x0, *x_rest] -> y[x0, {size.replace('n', 'm')}]: x")


STRIDES = {
    "at::empty_like(x)": "x[*s] -> y like x",
    "at::empty_like(x.contiguous())": "x[*s] -> y[*s]: x",
    "at::empty_like(x.is_contiguous() ? x : x.contiguous())": "x[*s] -> y[*s]: x",
    "at::empty_like(m > 0 ? x : x.contiguous())": None,
    "at::empty_like(x.to(at::kHalf))": "x[*s] -> y like x: float16",
    "at::empty_like(x.contiguous().to(at::kHalf))": "x[*s] -> y[*s]: float16",
    "at::empty_like(x.scalar_type() == at::kHalf ? x : x.to(at::kHalf))": "x[*s] -> y like x: float16",
    "at::empty_like((x.scalar_type() != at::kHalf ? x.to(at::kHalf) : x).contiguous())": "x[*s] -> y[*s]: float16",
    "at::empty_like(x, x.scalar_type() == at::kHalf ? at::kHalf : x.scalar_type())": "x[*s] -> y like x",
    "x.contiguous()": "x[*s] -> y[*s]: x",
}


@pytest.mark.parametrize("made", STRIDES)
def test_a_copy_of_an_argument_has_its_own_strides(made: str, adopted: Adopt) -> None:
    report = adopted(
        {
            "ops.cpp": f"at::Tensor f(const at::Tensor &x, int64_t m) {{ at::Tensor y = {made}; return y; }}\n"
            'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x, int m) -> Tensor", &f); }\n'
        }
    )
    assert decision(report, "mine::f").relation == STRIDES[made]


@pytest.mark.parametrize("size", ["n.item<int64_t>()", "n.cpu().data_ptr<int64_t>()[0]"])
@pytest.mark.parametrize("meta", ["0", "x.size(0)"])
def test_a_meta_function_does_not_decide_a_size_that_data_have(size: str, meta: str, adopted: Adopt) -> None:
    one = decision(
        adopted(
            {
                "ops.cpp": "at::Tensor f(const at::Tensor &x, const at::Tensor &n)"
                f" {{ return at::empty({{{size}}}, x.options()); }}\n"
                "at::Tensor g(const at::Tensor &x, const at::Tensor &n)"
                f" {{ return at::empty({{{meta}}}, x.options()); }}\n"
                'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x, Tensor n) -> Tensor");'
                ' m.impl("f", torch::kPrivateUse1, &f); m.impl("f", torch::kMeta, &g); }\n'
            }
        ),
        "mine::f",
    )
    assert one.state is State.UNDECIDED
    assert one.reason.startswith("the meta function at ops.cpp:3 says x")
    assert "its size comes from the data" in one.reason


def test_the_size_of_a_copy_on_the_host_is_known(adopted: Adopt) -> None:
    report = adopted(
        {
            "ops.cpp": "at::Tensor f(const at::Tensor &x)"
            " { auto h = x.cpu(); return at::empty({h.size(0)}, x.options()); }\n"
            'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> Tensor", &f); }\n'
        }
    )
    assert decision(report, "mine::f").relation == "x[x0, *x_rest] -> y[x0]: x"


INFERRED = {
    "at::empty(x.sizes(), x.options()).reshape({-1, n})": "x -> y[numel(x) // n, n]: x",
    "at::empty({x.size(0), x.size(1), 4}, x.options()).view({-1, 4})": "x[x0, x1, *x_rest] -> y[x0 * x1, 4]: x",
    "at::empty({x.size(0), x.size(1), 4}, x.options()).view({x.size(0), -1})": (
        "x[x0, x1, *x_rest] -> y[x0, x1 * 4]: x"
    ),
    "at::empty({x.view({-1, 8}).size(0), 2}, x.options())": "x -> y[numel(x) // 8, 2]: x",
    "at::empty({x.reshape({-1}).numel()}, x.options())": "x -> y[numel(x)]: x",
    "at::empty(sizes(), x.options()).reshape({-1, n})": None,
}


@pytest.mark.parametrize("made", INFERRED)
def test_a_size_of_minus_one_is_what_is_left(made: str, adopted: Adopt) -> None:
    report = adopted(
        {
            "ops.cpp": f"at::Tensor f(const at::Tensor &x, int64_t n) {{ return {made}; }}\n"
            'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x, int n) -> Tensor", &f); }\n'
        }
    )
    assert decision(report, "mine::f").relation == INFERRED[made]


@pytest.mark.parametrize(("meta", "differs"), [("at::empty_like(y)", False), ("at::empty_like(x)", True)])
def test_a_meta_function_is_compared_with_an_argument_that_is_returned(
    meta: str, differs: bool, adopted: Adopt
) -> None:
    report = adopted(
        {
            "ops.cpp": "at::Tensor f(const at::Tensor &x, at::Tensor &y) { y.copy_(x); return y; }\n"
            f"at::Tensor g(const at::Tensor &x, at::Tensor &y) {{ return {meta}; }}\n"
            'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x, Tensor y) -> Tensor");'
            ' m.impl("f", torch::kPrivateUse1, &f); m.impl("f", torch::kMeta, &g); }\n'
        }
    )
    one = decision(report, "mine::f")
    assert one.relation == "y -> y"
    assert any("says otherwise" in line for line in one.evidence) == differs
