"""Functions that pybind11 binds without a schema get one, and what they write is marked in it."""

from __future__ import annotations

import pytest

from ascend_graph.adoption import AdoptionReport, Decision, State

from .conftest import Adopt, decision, schema_of

HEADER = """
aclnnStatus aclnnScaleGetWorkspaceSize(const aclTensor *x, double factor, aclTensor *y, uint64_t *workspaceSize,
    aclOpExecutor **executor);
aclnnStatus aclnnPutGetWorkspaceSize(aclTensor *cacheRef, const aclTensor *x, uint64_t *workspaceSize,
    aclOpExecutor **executor);
"""
PYTHON = "import mine._C\n\n\ndef run(x):\n    return mine._C.f(x)\n"
BODY = "auto y = at::empty_like(x); EXEC_NPU_CMD(aclnnScale, x, 1.0, y); return y;"


def adopt_function(
    adopted: Adopt, parameters: str, body: str, *, returns: str = "at::Tensor", arguments: str = "", more: str = ""
) -> tuple[Decision, AdoptionReport]:
    """Adopt a repository of one bound function ``f``."""
    report = adopted(
        {
            "csrc/aclnn_mine.h": HEADER,
            "csrc/ops.cpp": f"{more}\n{returns} f({parameters})\n{{\n    {body}\n}}\n",
            "csrc/bind.cpp": f'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("f", &f, "f"{arguments}); }}\n',
            "mine/__init__.py": "",
            "mine/api.py": PYTHON,
        }
    )
    return decision(report, "mine::f"), report


def test_a_bound_function_is_defined_with_its_schema_and_registered(adopted: Adopt) -> None:
    one, report = adopt_function(adopted, "const at::Tensor &x, double by", BODY)
    assert one.state is State.BY_NAMES
    assert one.defined_from == ("mine::f(Tensor x, float by) -> Tensor", "mine._C:f")
    assert one.relation == "x[*s] -> y like x"
    assert (
        'eager=ascend_graph.define_from_function("mine::f(Tensor x, float by) -> Tensor", "mine._C:f")' in report.text
    )


SIGNATURES = {
    "at::Tensor x, int32_t n, float p, bool flag, const char *mode": "Tensor x, int n, float p, bool flag, str mode",
    "const c10::optional<at::Tensor> &x, at::TensorList all": "Tensor? x, Tensor[] all",
    "const std::vector<at::Tensor> &x, std::optional<int64_t> n": "Tensor[] x, int? n",
    "at::Tensor x, at::IntArrayRef dims, const std::vector<float> sizes": "Tensor x, int[] dims, float[] sizes",
    "at::Tensor x, c10::optional<at::ScalarType> t, const at::Scalar &v": "Tensor x, ScalarType? t, Scalar v",
    "torch::Tensor x, c10::optional<std::vector<int64_t>> groups": "Tensor x, int[]? groups",
    "at::Tensor x, int64_t from": "Tensor x, int from_",
}


@pytest.mark.parametrize("parameters", SIGNATURES)
def test_each_type_that_pybind11_converts_has_a_type_in_the_schema(parameters: str, adopted: Adopt) -> None:
    one, _ = adopt_function(adopted, parameters, "return at::Tensor();")
    assert schema_of(one) == f"mine::f({SIGNATURES[parameters]}) -> Tensor"


RETURNS = {
    "std::tuple<at::Tensor, at::Tensor>": ("return std::tie(y, y);", "(Tensor, Tensor)"),
    "std::pair<at::Tensor, at::Tensor>": ("return {y, y};", "(Tensor, Tensor)"),
    "std::vector<at::Tensor>": ("return {y, y, y};", "(Tensor, Tensor, Tensor)"),
    "pybind11::tuple": ("return pybind11::make_tuple(y, y);", "(Tensor, Tensor)"),
    "std::tuple<c10::optional<at::Tensor>, at::Tensor>": ("return std::make_tuple(y, y);", "(Tensor, Tensor)"),
}


@pytest.mark.parametrize("returns", RETURNS)
def test_what_a_function_returns_is_in_its_schema(returns: str, adopted: Adopt) -> None:
    body, expected = RETURNS[returns]
    one, _ = adopt_function(adopted, "const at::Tensor &x", f"auto y = at::empty_like(x); {body}", returns=returns)
    assert schema_of(one) == f"mine::f(Tensor x) -> {expected}"


def test_a_tuple_with_a_number_is_left_open(adopted: Adopt) -> None:
    body = "auto y = at::empty_like(x); return py::make_tuple(y, 3);"
    one, _ = adopt_function(adopted, "const at::Tensor &x", body, returns="py::tuple")
    assert one.reason == "it is bound without a schema, and not all that it returns are tensors"


def test_names_and_defaults_are_those_of_py_arg(adopted: Adopt) -> None:
    arguments = (
        ', py::arg("input"), py::arg("eps") = 1e-3f, pybind11::arg("mode").none(true) = py::none(), py::kw_only(),'
        ' "dims"_a = std::vector<int64_t>{}, py::arg("layout") = "SBH", py::arg("n") = -1'
    )
    one, report = adopt_function(
        adopted,
        "const at::Tensor &x, double e, c10::optional<int64_t> m, std::vector<int64_t> d, std::string l, int64_t n",
        BODY,
        arguments=arguments,
    )
    assert schema_of(one) == (
        "mine::f(Tensor input, float eps=0.0010000000474974513, int? mode=None, *, int[] dims=[], "
        'str layout="SBH", int n=-1) -> Tensor'
    )
    assert one.relation == "input[*s] -> y like input"
    compile(report.text, "operators.py", "exec")


# What a function writes: the parameters, its body, and the schema that says it.
WRITES = {
    "an output of a header": (
        "const at::Tensor &x, const at::Tensor &out",
        "EXEC_NPU_CMD(aclnnScale, x, 1.0, out);",
        "Tensor x, Tensor(a1!) out",
    ),
    "a reference of a header": (
        "at::Tensor cache, const at::Tensor &x",
        "EXEC_NPU_CMD(aclnnPut, cache, x);",
        "Tensor(a0!) cache, Tensor x",
    ),
    "a view": (
        "const at::Tensor &x, at::Tensor &out",
        "auto flat = out.view({-1}); auto part = flat; EXEC_NPU_CMD(aclnnScale, x, 1.0, part);",
        "Tensor x, Tensor(a1!) out",
    ),
    "an optional argument": (
        "const at::Tensor &x, c10::optional<at::Tensor> out",
        "at::Tensor y = out.value_or(at::empty_like(x)); EXEC_NPU_CMD(aclnnScale, x, 1.0, y);",
        "Tensor x, Tensor(a1!)? out",
    ),
    "a method in place": ("at::Tensor &x", "x.mul_(2);", "Tensor(a0!) x"),
    "a copy into it": ("const at::Tensor &x, at::Tensor &out", "out.copy_(x);", "Tensor x, Tensor(a1!) out"),
    "a function with outputs": (
        "const at::Tensor &x, at::Tensor &out",
        "at::add_out(out, x, x);",
        "Tensor x, Tensor(a1!) out",
    ),
    "items of a list": (
        "const std::vector<at::Tensor> &all, const at::Tensor &x",
        "for (auto i = 0; i < 2; i++) { all[i].copy_(x); }",
        "Tensor(a0!)[] all, Tensor x",
    ),
    "a lambda": ("at::Tensor x", "auto run = [&]() { x.mul_(2); }; run();", "Tensor(a0!) x"),
    "an operator command": (
        "const at::Tensor &x, at::Tensor &out",
        'OpCommand cmd; cmd.Name("Scale").Input(x).Output(out).Run();',
        "Tensor x, Tensor(a1!) out",
    ),
    "a helper": (
        "const at::Tensor &x, at::Tensor &out",
        "fill(out, x);",
        "Tensor x, Tensor(a1!) out",
    ),
    "CANN's function without a header": (
        "at::Tensor x, const at::Tensor &y, double alpha",
        "EXEC_NPU_CMD(aclnnInplaceAdd, x, y, alpha);",
        "Tensor(a0!) x, Tensor y, float alpha",
    ),
}
# aclnnApplyFusedEmaAdam is made by msOpGen's build of an OpDef of CANN.
WRITES["an optimizer of CANN"] = (
    "at::Tensor g, at::Tensor v, at::Tensor m, at::Tensor n, at::Tensor s, const at::Tensor &t, double a, int64_t k,"
    " bool b",
    "EXEC_NPU_CMD(aclnnApplyFusedEmaAdam, g, v, m, n, s, t, a, a, a, a, a, k, b, a);",
    "Tensor g, Tensor(a1!) v, Tensor(a2!) m, Tensor(a3!) n, Tensor(a4!) s, Tensor t, float a, int k, bool b",
)
HELPER = "void fill(at::Tensor &y, const at::Tensor &x) { EXEC_NPU_CMD(aclnnScale, x, 1.0, y); }"


@pytest.mark.parametrize("kind", WRITES)
def test_what_a_function_writes_is_marked_in_its_schema(kind: str, adopted: Adopt) -> None:
    parameters, body, expected = WRITES[kind]
    one, _ = adopt_function(adopted, parameters, body, returns="void", more=HELPER)
    assert schema_of(one) == f"mine::f({expected}) -> ()"
    assert (one.state, one.relation) == (State.BY_NAMES, "->")


def test_an_argument_that_is_written_and_returned_is_an_alias(adopted: Adopt) -> None:
    one, _ = adopt_function(adopted, "at::Tensor &x, const at::Tensor &y", "EXEC_NPU_CMD(aclnnPut, x, y); return x;")
    assert schema_of(one) == "mine::f(Tensor(a0!) x, Tensor y) -> Tensor(a0!)"
    assert one.registers


def test_what_is_only_read_is_not_marked(adopted: Adopt) -> None:
    body = "TORCH_CHECK(x.dim() == 2); auto z = x.clone(); z.add_(1); auto n = x.max().item<int64_t>(); " + BODY
    one, _ = adopt_function(adopted, "const at::Tensor &x", body)
    assert schema_of(one) == "mine::f(Tensor x) -> Tensor"
    assert one.registers


# What stays undecided: the body, and the reason.
UNDECIDED = {
    "EXEC_NPU_CMD(aclnnSomewhere, x, y); return y;": "aclnnSomewhere is called, and neither a prototype nor a header",
    "EXEC_NPU_CMD(aclnnScale, x, y); return y;": "it passes 2 arguments to aclnnScale, which has 3",
    "EXEC_NPU_CMD(aclnnScale, x, x, y); return y;": "it passes a tensor to aclnnScale where that takes a value",
    "ACLRT_LAUNCH_KERNEL(k)(8, stream, x.data_ptr(), y.data_ptr()); return y;": "it launches k",
    "elsewhere(x); return y;": "it passes x to elsewhere, which is not known here",
    "auto run = [=]() { launch_of(x.data_ptr(), y.data_ptr()); }; cmd.Then(run); return y;": "it "
    "passes x to launch_of, which is not known here",
    "auto n = sizeof(x.mul_(2)); return y;": "it is not understood what `sizeof(x.mul_(2))` does with x",
    "x.resize_({2}); return y;": "it changes the shape of an argument with resize_",
    "return x;": "it returns x itself, and does not write it",
    "return x.permute({1, 0});": "it returns an argument in some calls",
    "return flag(x) ? x : y;": "it passes x to flag",
    "Runner r; r.launch(x, y); return y;": "it passes an argument to launch, which is not known here",
}


@pytest.mark.parametrize("body", UNDECIDED)
def test_a_function_that_may_write_more_stays_a_line_to_complete(body: str, adopted: Adopt) -> None:
    one, report = adopt_function(adopted, "at::Tensor x", f"at::Tensor y = at::empty_like(x); {body}")
    assert one.state is State.UNDECIDED
    assert UNDECIDED[body] in one.reason
    assert (
        "#     eager=ascend_graph.define_from_function(" in report.text
        or "# ascend_graph.register_kernel(" in report.text
    )


KERNEL = """#include "kernel_operator.h"
template <typename T> class Copier {{ public: __aicore__ inline void Run(const AscendC::GlobalTensor<T> &from); }};
template <typename T> class Writer {{ public: __aicore__ inline void Run(const AscendC::GlobalTensor<T> &to); }};
template <typename T> __aicore__ inline void Copier<T>::Run(const AscendC::GlobalTensor<T> &from)
{{
    AscendC::DataCopy(local, from, 8);
}}
template <typename T> __aicore__ inline void Writer<T>::Run(const AscendC::GlobalTensor<T> &to)
{{
    AscendC::DataCopy(to, local, 8);
}}
class Add {{
public:
    __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR c)
    {{
        aGm.SetGlobalBuffer((__gm__ half *)a + 8, 8);
        bGm.SetGlobalBuffer((__gm__ half *)b, 8);
        cGm.SetGlobalBuffer((__gm__ half *)c, 8);
    }}
    __aicore__ inline void Process()
    {{
        AscendC::DataCopy(local, aGm[0], 8);
        AscendC::DataCopy(other, bGm, 8);
        {write}
    }}
private:
    AscendC::GlobalTensor<half> aGm, bGm, cGm;
}};
extern "C" __global__ __aicore__ void add(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t n)
{{
    Add op;
    op.Init(x, y, z);
    op.Process();
}}
"""
# What the kernel writes, and the schema of the function that launches it, or the reason why there is none.
LAUNCHES = {
    "AscendC::DataCopy(cGm, local, 8);": "Tensor x, Tensor y",
    "AscendC::DataCopy(cGm, local, 8); AscendC::DataCopyPad(bGm[4], other, 8);": "Tensor x, Tensor(a1!) y",
    "AscendC::DataCopy(cGm, local, 8); aGm.SetValue(0, 1);": "Tensor(a0!) x, Tensor y",
    "auto part = cGm[8]; AscendC::DataCopy(part, local, 8);": "Tensor x, Tensor y",
    "auto part = bGm[8]; AscendC::DataCopy(part, local, 8); if (n) { Copier<half> one; one.Run(aGm); }": "Tensor x, Tensor(a1!) y",
    "AscendC::DataCopy(cGm, local, 8); Copier<half> one; one.Run(bGm);": "Tensor x, Tensor y",
    # A kernel that writes nothing: a header that it includes is missing.
    "Copier<half> one; one.Run(bGm);": "it launches add, and what that kernel does with x is not understood",
    "Writer<half> one; one.Run(bGm);": "Tensor x, Tensor(a1!) y",
    "AscendC::DataCopy(cGm, local, 8); Elsewhere(bGm);": "it launches add, and "
    "what that kernel does with y is not understood",
}


@pytest.mark.parametrize("write", LAUNCHES)
@pytest.mark.parametrize(
    "form",
    ["ACLRT_LAUNCH_KERNEL(add)\n    (8, stream, ", "aclrtlaunch_add(8, stream, ", "add<<<8, nullptr, stream>>>("],
)
def test_what_a_launched_kernel_writes_is_read_from_its_source(form: str, write: str, adopted: Adopt) -> None:
    report = adopted(
        {
            "kernel.cpp": KERNEL.format(write=write),
            "bind.cpp": "at::Tensor f(const at::Tensor &x, const at::Tensor &y) {\n"
            "    at::Tensor z = at::empty_like(x);\n"
            f"    {form}const_cast<void *>(x.storage().data()), y.data_ptr(), z.data_ptr(), 8);\n    return z;\n}}\n"
            'PYBIND11_MODULE(mine, m) { m.def("f", &f); }\n',
        }
    )
    (one,) = report.decisions
    if one.registers:
        assert schema_of(one) == f"mine::f({LAUNCHES[write]}) -> Tensor"
    else:
        assert one.reason == LAUNCHES[write]


def test_a_function_next_to_a_kernel_launches_it_for_others(adopted: Adopt) -> None:
    launcher = (
        "void launch_add(uint32_t blocks, void *stream, uint8_t *x, uint8_t *y, uint8_t *z, uint32_t n)\n"
        "{\n    add<<<blocks, nullptr, stream>>>(x, y, z, n);\n}\n"
    )
    report = adopted(
        {
            "kernel.cpp": KERNEL.format(write="AscendC::DataCopy(cGm, local, 8);") + launcher,
            "bind.cpp": "void f(const at::Tensor &x, const at::Tensor &y, const at::Tensor &z)\n{\n"
            "    auto run = [=]() { launch_add(8, stream, x.data_ptr(), y.data_ptr(), z.data_ptr(), 8); };\n    run();\n}\n"
            'PYBIND11_MODULE(mine, m) { m.def("f", &f); }\n',
        }
    )
    (one,) = report.decisions
    assert schema_of(one) == "mine::f(Tensor x, Tensor y, Tensor(a2!) z) -> ()"
    assert one.registers


def test_an_in_place_function_whose_header_marks_nothing_is_undecided(adopted: Adopt) -> None:
    header = (
        "aclnnStatus aclnnInplaceMixGetWorkspaceSize(const aclTensor *x1, const aclTensor *residual,"
        " const aclTensor *normOut, uint64_t *workspaceSize, aclOpExecutor **executor);\n"
    )
    report = adopted(
        {
            "aclnn_mix.h": header,
            "bind.cpp": "at::Tensor f(const at::Tensor &x, const at::Tensor &r) { auto y = at::empty_like(x);"
            ' EXEC_NPU_CMD(aclnnInplaceMix, x, r, y); return y; }\nPYBIND11_MODULE(mine, m) { m.def("f", &f); }\n',
        }
    )
    (one,) = report.undecided
    assert "does not tell which tensor it writes" in one.reason


def test_a_function_without_tensors_is_not_an_operator(adopted: Adopt) -> None:
    report = adopted(
        {"bind.cpp": 'int version(int n) { return n; }\nPYBIND11_MODULE(mine, m) { m.def("version", &version); }\n'}
    )
    assert report.decisions == ()


def test_a_type_without_a_counterpart_is_named(adopted: Adopt) -> None:
    one, _ = adopt_function(adopted, "const at::Tensor &x, py::dict options", BODY)
    assert one.state is State.UNDECIDED
    assert "a schema has no type for py::dict" in one.reason


@pytest.mark.parametrize(
    "foreign", ["ms::Tensor &", "const paddle::Tensor &", "std::vector<mindspore::tensor::Tensor>"]
)
def test_functions_of_another_framework_are_not_counted(adopted: Adopt, foreign: str) -> None:
    ours = f"at::Tensor f(const at::Tensor &x)\n{{\n    {BODY}\n}}\n"
    theirs = f"void g({foreign} x, int64_t n)\n{{\n}}\n"
    bound = 'PYBIND11_MODULE(_C, m) { m.def("f", &f); m.def("g", &g); }\n'
    files = {"csrc/aclnn_mine.h": HEADER, "csrc/ops.cpp": ours + theirs, "csrc/bind.cpp": bound}
    report = adopted(files | {"mine/__init__.py": "", "mine/api.py": PYTHON})
    assert [one.name for one in report.decisions] == ["mine::f"]
    (found,) = report.diagnostics
    assert "which is not PyTorch's: it is not counted" in found.message


def test_an_argument_without_a_name_has_that_of_the_parameter(adopted: Adopt) -> None:
    arguments = ', pybind11::arg(), pybind11::arg("most") = 0'
    one, _ = adopt_function(adopted, "const at::Tensor &x, int64_t n", "return at::empty_like(x);", arguments=arguments)
    assert schema_of(one) == "mine::f(Tensor x, int most=0) -> Tensor"


def test_a_function_with_a_schema_is_one_operator(adopted: Adopt) -> None:
    report = adopted(
        {
            "ops.cpp": "at::Tensor f(const at::Tensor &x) { at::Tensor y = at::empty_like(x);"
            " EXEC_NPU_CMD(aclnnRelu, x, y); return y; }\n"
            'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> Tensor"); }\n'
            'TORCH_LIBRARY_IMPL(mine, PrivateUse1, m) { m.impl("f", &f); }\n'
            'PYBIND11_MODULE(mine_lib, m) { m.def("g", &f); }\n'
        }
    )
    assert [one.name for one in report.decisions] == ["mine::f"]
