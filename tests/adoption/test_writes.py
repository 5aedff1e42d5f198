"""Memory of arguments is followed through every form of C++: what may write to it is found, or leaves the schema open."""

from __future__ import annotations

import pytest

from ascend_graph.adoption import State

from .conftest import Adopt, schema_of
from .test_bound_functions import adopt_function

# What certainly writes: the body, and the arguments of the schema.
WRITTEN = {
    "x += 1;": "Tensor(a0!) x, Tensor z",
    "x[0] += 1;": "Tensor(a0!) x, Tensor z",
    "x[0][1] = 3;": "Tensor(a0!) x, Tensor z",
    "x.select(0, 0) = z;": "Tensor(a0!) x, Tensor z",
    "auto p = x.data_ptr<float>(); *p = 1;": "Tensor(a0!) x, Tensor z",
    "float *p = x.data_ptr<float>(); *(p + 1) = 1;": "Tensor(a0!) x, Tensor z",
    "float *p = (float *)x.data_ptr(); float *q = (float *)z.data_ptr(); *(p++) = *(q + 1);": "Tensor(a0!) x, Tensor z",
    "std::memcpy(x.data_ptr(), source, 4);": "Tensor(a0!) x, Tensor z",
    "for (auto &t : {x, z}) { t.add_(1); }": "Tensor(a0!) x, Tensor(a1!) z",
    "at::Tensor t; keep(x, t); t.add_(1);": "Tensor(a0!) x, Tensor z",
    "auto add = [](at::Tensor t) { t.add_(1); }; add(x);": "Tensor(a0!) x, Tensor z",
    "Fn run = nullptr; if (n) { run = add_one; } else { run = look; } run(x);": "Tensor(a0!) x, Tensor z",
    "Fn run = n ? look : add_one, *none; Fn other{run}; other(z);": "Tensor x, Tensor(a1!) z",
    "Fn run = chosen(n); run(x);": "Tensor(a0!) x, Tensor z",
    "Fn run; run = look; run(x);": "Tensor x, Tensor z",
    "applied(z, add_one); applied(x, look);": "Tensor x, Tensor(a1!) z",
    'ctx->saved["x"] = x; const auto same = [n](const at::Tensor &t) { return t.dim(); }; same(x);': "Tensor x, Tensor z",
    "int64_t n = x.size(0), m; n += 1; auto *p = x.data_ptr<float>(); p += n; auto q = std::max(n, m);": "Tensor x, Tensor z",
}
# What may write, in forms that are not followed.
OPEN = (
    "for (auto t : {x, z}) launch_it(t);",
    "while (fill_it(x)) { n(); }",
    "Fn run = look; choose(run); run(x);",
    "Fn run = n ? look : elsewhere; run(x);",
    "Fn run = table.at(n); run(x);",
    "Fn look = table.at(n); look(x);",
    "do { n(); } while (fill_it(x));",
    "for (int i = 0; fill_it(x, i); i++) { n(); }",
    "switch (fill_it(x)) { case 0: n(); }",
    "pass_on(fn, x);",
    "of_any(x);",
    "Pair p; p.x = x; p.go();",
    "auto p = std::make_shared<Pair>(x); p->go();",
    "Pair p; p.x = x; of_pair(p);",
    "of_number(x, 1);",
    "std::vector<at::Tensor> v; for (int i = 0; i < 3; i++) { v.push_back(x); } fill_it(v);",
    "fill_it(x.data_ptr<float>() + 4);",
    "((Fn)function)(x.data_ptr());",
    "reinterpret_cast<Fn>(function)(x.data_ptr());",
    "(flag ? one : other)(x);",
    "n(), fill_it(x);",
    "auto *task = new Task(x); task->go();",
    "std::fill_n(x.data_ptr<float>(), 4, 0);",
    "std::copy(v.begin(), v.end(), x.data_ptr<float>());",
    "std::invoke(fn, x);",
    "std::thread t(fill_it, x);",
    "at::_ops::add_out::call(z, z, 1, x);",
    "at_npu::native::custom_ops::npu_of_its_own(x);",
    "c10_npu::launch(x.data_ptr());",
    "auto v = x.view({-1}); v *= 2;",
)
HELPERS = """
struct Pair { at::Tensor x; };
template <class F, class... Args> void pass_on(const F &f, Args &&...args) { f(stream(), std::forward<Args>(args)...); }
template <class T> void of_any(T &t) { fill_it(t); }
void of_pair(Pair &p) { fill_it(p.x); }
void of_number(int n) {}
void keep(const at::Tensor &t, at::Tensor &kept) { kept = t; }
void add_one(at::Tensor t) { t.add_(1); }
void look(at::Tensor t) { auto n = t.size(0); }
void choose(Fn &f) { f = add_one; }
Fn chosen(int64_t n) { if (n) { return look; } return n > 1 ? look : add_one; }
void applied(const at::Tensor &t, Fn f) { f(t); }
"""


@pytest.mark.parametrize("body", WRITTEN)
def test_what_is_written_in_any_form_is_in_the_schema(body: str, adopted: Adopt) -> None:
    whole = f"at::Tensor y = at::empty_like(z); {body} return y;"
    one, _ = adopt_function(adopted, "at::Tensor x, at::Tensor z", whole, more=HELPERS)
    assert (one.state, schema_of(one)) == (State.BY_NAMES, f"mine::f({WRITTEN[body]}) -> Tensor"), one.reason


@pytest.mark.parametrize("body", OPEN)
def test_what_may_write_in_a_form_that_is_not_followed_is_left_open(body: str, adopted: Adopt) -> None:
    whole = f"at::Tensor y = at::empty_like(z); {body} return y;"
    one, _ = adopt_function(adopted, "at::Tensor x, at::Tensor z", whole, more=HELPERS)
    assert one.state is State.UNDECIDED
    assert not one.reason.startswith("no meta function"), one.reason


def test_an_object_that_is_cast_to_a_tensor_may_be_written(adopted: Adopt) -> None:
    get = "at::Tensor get(const py::object &o) { return o.cast<at::Tensor>(); }"
    one, _ = adopt_function(adopted, "const py::object &x", "auto t = get(x); t.add_(1);", returns="void", more=get)
    assert schema_of(one) == "mine::f(Tensor(a0!) x) -> ()"


def test_copies_of_a_header_are_one_definition(adopted: Adopt) -> None:
    header = "inline aclScalar *scalar_of(const at::Tensor &t) { return aclCreateScalar(t.data_ptr(), type_of(t.dtype())); }\n"
    report = adopted(
        {
            "one/common.hpp": header,
            "two/common.hpp": header,
            "three/aclnn_add.h": "aclnnStatus aclnnAddScalarGetWorkspaceSize(const aclTensor *x, "
            "const aclScalar *n, aclTensor *y, "
            "uint64_t *workspaceSize, aclOpExecutor **executor);",
            "three/f.cpp": "at::Tensor f(at::Tensor x, at::Tensor n) { auto y = at::empty_like(x); "
            "auto s = scalar_of(n);\n"
            'EXEC_NPU_CMD(aclnnAddScalar, x, s, y); return y; }\nPYBIND11_MODULE(mine, m) { m.def("f", &f); }\n',
        }
    )
    (one,) = report.decisions
    assert (one.state, schema_of(one)) == (State.BY_NAMES, "mine::f(Tensor x, Tensor n) -> Tensor"), one.reason


@pytest.mark.parametrize(
    "body",
    [
        'PyErr_SetString(PyExc_NotImplementedError, "no"); throw py::error_already_set();',
        'TORCH_CHECK_NOT_IMPLEMENTED(false, "no"); return x;',
        'AT_ERROR("no");',
    ],
)
def test_a_function_that_only_raises_cannot_be_registered(body: str, adopted: Adopt) -> None:
    one, _ = adopt_function(adopted, "at::Tensor x", body)
    assert (one.state, one.reason.partition(",")[0]) == (State.IMPOSSIBLE, "its kernel only raises")


def test_a_generator_has_a_type_in_the_schema(adopted: Adopt) -> None:
    one, _ = adopt_function(
        adopted, "at::Tensor x, at::Generator &g, c10::optional<at::Generator> h", "return at::Tensor();"
    )
    assert schema_of(one) == "mine::f(Tensor x, Generator g, Generator? h) -> Tensor"


def test_an_empty_submodule_is_named(adopted: Adopt) -> None:
    report = adopted(
        {
            ".gitmodules": '[submodule "kernels"]\n\tpath = other/kernels\n\turl = https://example.org/kernels.git\n',
            "ops.cpp": 'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> Tensor"); }\n',
        }
    )
    (one,) = report.diagnostics
    assert (one.file, one.line) == (".gitmodules", 2)
    assert "git submodule update --init other/kernels" in one.message
