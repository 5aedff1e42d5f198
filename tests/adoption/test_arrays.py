"""C arrays, vectors and lists in adopted C++: what a loop fills is followed, what another name changes is not."""

from __future__ import annotations

import pytest

from ascend_graph.adoption import Decision, State

from .conftest import Adopt, decision, schema_of
from .test_bound_functions import adopt_function

PAIR = """
void look(const at::Tensor &t, const char *name) { TORCH_CHECK(t.dim() == 2, name); }
void put(int64_t *n, int64_t v) { n[0] = v; }
at::Tensor joined(const std::array<const at::Tensor *, 2> &parts, int32_t count)
{
    int32_t rows[2] = {static_cast<int32_t>(parts[0]->size(0))};
    for (int32_t i = 1; i < count; ++i) {
        const at::Tensor &one = *parts[i];
        const std::string name = "x" + std::to_string(i);
        look(one, name.c_str());
        rows[i] = static_cast<int32_t>(one.sizes()[0]);
    }
    return at::empty({rows[0] + rows[1], 4}, parts[0]->options());
}
"""
FOLLOWED = {
    "return joined({&x, &z}, 2);": "x[x0, *x_rest], z[z0, z1] -> y[x0 + z0, 4]: x",
    "return joined({&x, nullptr}, 1);": "x[x0, *x_rest] -> y[x0, 4]: x",
    "int64_t n[2]; for (int i = 0; i < 2; i++) { n[i] = x.size(i) * 2; } return at::empty({n[1]}, x.options());": "x[x0, x1, *x_rest] -> y[x1 * 2]: x",
    "TORCH_CHECK(x.dim() == 2); int64_t n[2]; for (int i = 0; i < x.dim(); i++) { n[i] = x.size(i); } "
    "return at::empty({n[1], n[0]}, x.options());": "x[x0, x1] -> y[x1, x0]: x",
    "const int32_t n[] = {3, 4}; return at::empty({n[1]}, x.options());": "x -> y[4]: x",
    "int64_t n[2] = {1, 2}; put(n, 5); return at::empty({n[0], n[1]}, x.options());": "x -> y[5, 2]: x",
    "std::vector<int64_t> n(2); for (int i = 0; i < 2; i++) { n[i] = x.size(i); } return at::empty(n, x.options());": "x[x0, x1, *x_rest] -> y[x0, x1]: x",
    "std::vector<int64_t> n(2); return at::empty(n, x.options());": "x -> y[0, 0]: x",
    "std::vector<at::Tensor> v; for (int i = 0; i < 2; i++) { v.push_back(at::empty({x.size(i)}, x.options())); } return v[1];": "x[x0, x1, *x_rest] -> y[x1]: x",
}
# What changes n[0] in another way.
CHANGES = (
    "n[x.dim()] = 3;",
    "for (int i = 0; i < x.dim(); i++) { n[i] = 3; }",
    "n[0]++;",
    "*n = 3;",
    "*(n + 1) = 3;",
    "int64_t *p = n; p[0] = 3;",
    "int64_t *p = n + 1; p[-1] = 3;",
    "int64_t *p; p = n; p[0] = 3;",
    "int64_t (&r)[2] = n; r[0] = 3;",
    "auto &r = n[0]; r = 3;",
    "for (auto &k : n) { k = 3; }",
    "memset(n, 0, sizeof(n));",
    "std::fill(n, n + 2, 3);",
    "fill(n);",
    "auto f = [&]() { n[0] = 3; }; f();",
)
LISTS = {
    "return {at::empty_like(x), at::empty({3}, x.options())};": "[torch.empty_like(x), x.new_empty((3,), dtype=x.dtype)]",
    "std::vector<at::Tensor> v; for (int64_t i = 0; i < n; i++) { v.push_back(at::empty({2}, x.options())); } return v;": "[x.new_empty((2,), dtype=x.dtype) for _ in range(n)]",
    "std::vector<at::Tensor> v(1); v[0] = at::empty({n}, x.options()); return v;": "[x.new_empty((n,), dtype=x.dtype)]",
    "auto a = at::empty_like(x); if (n > 2) { return {a}; } return {a, at::empty({2}, x.options())};": "([torch.empty_like(x)] if (n > 2) else [torch.empty_like(x), x.new_empty((2,), dtype=x.dtype)])",
}


@pytest.mark.parametrize("body", FOLLOWED)
def test_what_a_loop_fills_is_followed(body: str, adopted: Adopt) -> None:
    one, _ = adopt_function(adopted, "const at::Tensor &x, const at::Tensor &z", body, more=PAIR)
    assert (one.relation, schema_of(one)) == (FOLLOWED[body], "mine::f(Tensor x, Tensor z) -> Tensor"), one.reason


@pytest.mark.parametrize("change", CHANGES)
def test_an_array_that_another_name_may_change_is_not_followed(change: str, adopted: Adopt) -> None:
    body = f"int64_t n[2] = {{1, 2}}; {change} return at::empty({{n[0]}}, x.options());"
    one, _ = adopt_function(adopted, "const at::Tensor &x", body)
    assert (one.state, one.relation) == (State.UNDECIDED, None)


@pytest.mark.parametrize("body", LISTS)
def test_a_list_that_is_returned_has_a_meta_function(body: str, adopted: Adopt) -> None:
    one = list_of(adopted, body)
    assert one.meta[-1] == f"    return {LISTS[body]}", one.reason


@pytest.mark.parametrize(
    "body", ["return {x, at::empty_like(x)};", "return {at::Tensor(), at::empty_like(x)};", "return v;"]
)
def test_a_list_with_other_items_than_new_tensors_is_left_open(body: str, adopted: Adopt) -> None:
    assert list_of(adopted, body).state is State.UNDECIDED


def list_of(adopted: Adopt, body: str) -> Decision:
    """Return the decision on an operator that returns a list."""
    return decision(
        adopted(
            {
                "ops.cpp": f"std::vector<at::Tensor> f(const at::Tensor &x, int64_t n) {{ {body} }}\n"
                'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x, int n) -> Tensor[]"); }\n'
                'TORCH_LIBRARY_IMPL(mine, PrivateUse1, m) { m.impl("f", &f); }\n'
            }
        ),
        "mine::f",
    )
