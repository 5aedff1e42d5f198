"""Bound functions are found however they are bound, and the written module makes operators of them."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
import torch

import ascend_graph

from .conftest import Adopt, decision, schema_of
from .test_bound_functions import HEADER

# ------------------------------------------------------------------------ where it is bound

FUNCTION = "at::Tensor f(const at::Tensor &x) { return at::empty_like(x); }\n"
BLOCKS = {
    "a function that takes the module": 'void add(py::module_ &mod) { mod.def("f", &f); }\n'
    "PYBIND11_MODULE(mine, m) { add(m); }\n",
    "a macro": "#define BIND(name) m.def(#name, &name)\nPYBIND11_MODULE(mine, m) { BIND(f); }\n",
    "a chain": 'PYBIND11_MODULE(mine, m) { m.def("version", []() { return 1; })\n .def("f", &f); }\n',
    "a lambda": 'PYBIND11_MODULE(mine, m) { m.def("f", [](const at::Tensor &x) { return at::empty_like(x); }); }\n',
    "a cast": "int f(int n) { return n; }\nPYBIND11_MODULE(mine, m) {"
    ' m.def("f", static_cast<at::Tensor (*)(const at::Tensor &)>(&f)); }\n',
    "a cast to a named type": "int f(int n) { return n; }\nusing Made = at::Tensor (*)(const at::Tensor &);\n"
    'PYBIND11_MODULE(mine, m) { m.def("f", (Made)&f); }\n',
    "overload_cast": "int f(int n) { return n; }\n"
    'PYBIND11_MODULE(mine, m) { m.def("f", py::overload_cast<const at::Tensor &>(&f)); }\n',
}


@pytest.mark.parametrize("kind", BLOCKS)
def test_functions_are_found_however_they_are_bound(kind: str, adopted: Adopt) -> None:
    report = adopted({"bind.cpp": FUNCTION + BLOCKS[kind]})
    one = decision(report, "mine::f")
    assert (schema_of(one), one.defined_from[1:]) == ("mine::f(Tensor x) -> Tensor", ("mine:f",))


def test_functions_of_several_files_and_submodules_are_found(adopted: Adopt) -> None:
    report = adopted(
        {
            "a.cpp": "#include <torch/extension.h>\n" + FUNCTION + 'void add_ops(py::module &m) { m.def("f", &f); }\n',
            "bind.cpp": "void add_ops(py::module &m);\n"
            'PYBIND11_MODULE(mine, m) { auto sub = m.def_submodule("ops"); add_ops(sub); }\n',
        }
    )
    (one,) = report.decisions
    assert one.defined_from == ("mine::ops_f(Tensor x) -> Tensor", "mine:ops.f")


def test_methods_of_classes_are_not_operators(adopted: Adopt) -> None:
    block = 'PYBIND11_MODULE(mine, m) { py::class_<Buffer>(m, "Buffer").def(py::init<>()).def("f", &Buffer::f); }\n'
    assert adopted({"bind.cpp": FUNCTION + block}).decisions == ()


def test_two_functions_of_one_name_are_overloads(adopted: Adopt) -> None:
    report = adopted(
        {
            "bind.cpp": FUNCTION
            + "at::Tensor f(const at::Tensor &x, int64_t n) { return at::empty({n}, x.options()); }\n"
            'PYBIND11_MODULE(mine, m) { m.def("f", static_cast<at::Tensor (*)(const at::Tensor &)>(&f));\n'
            'm.def("f", static_cast<at::Tensor (*)(const at::Tensor &, int64_t)>(&f)); }\n'
        }
    )
    schemas = [schema_of(one) for one in report.decisions]
    assert schemas == ["mine::f(Tensor x) -> Tensor", "mine::f.overload_2(Tensor x, int n) -> Tensor"]
    assert all(one.registers for one in report.decisions)


def test_a_function_that_the_preprocessor_chooses_is_a_line_to_complete(adopted: Adopt) -> None:
    report = adopted(
        {
            "bind.cpp": FUNCTION
            + "at::Tensor g(const at::Tensor &x, int64_t n) { return at::empty({n}, x.options()); }\n"
            'PYBIND11_MODULE(mine, m) {\n#ifdef WIDE\nm.def("f", &g);\n#else\nm.def("f", &f);\n#endif\n}\n'
        }
    )
    assert [one.reason for one in report.undecided] == [
        "it is bound in several ways, this one only with defined(WIDE)",
        "it is bound in several ways, this one only with not (defined(WIDE))",
    ]


# Where the Python module stands: the files beside the C++, and the text of the function.
MODULES = {
    "import a.b": ({"pack/__init__.py": "", "pack/api.py": "import pack._C\npack._C.f(1)\n"}, "pack._C:f"),
    "import a.b as c": ({"api.py": "import pack._C as ext\next.f(1)\n"}, "pack._C:f"),
    "from a import b": ({"api.py": "from pack import _C\n_C.f(1)\n"}, "pack._C:f"),
    "from a.b import f": ({"api.py": "from pack._C import f\nf(1)\n"}, "pack._C:f"),
    "from . import b": ({"pack/__init__.py": "from . import _C\n\nrun = _C.f\n"}, "pack._C:f"),
    "a setup file": (
        {"setup.py": 'setup(ext_modules=[NpuExtension(name="pack._C", sources=["csrc/bind.cpp"])])\n'},
        "pack._C:f",
    ),
    "CMake": (
        {"CMakeLists.txt": "target_compile_definitions(x PRIVATE TORCH_EXTENSION_NAME=pack_ext)\n"},
        "pack_ext:f",
    ),
    "a class that builds it": (
        {
            "pack/__init__.py": "",
            "pack/builder.py": "class FBuilder(OpBuilder):\n    def __init__(self):\n        super().__init__('f')\n\n"
            "    def sources(self):\n        return ['csrc/bind.cpp']\n",
        },
        "pack.builder:FBuilder().load().f",
    ),
    "an object that a module has loaded": (
        {
            "pack/__init__.py": "",
            "pack/loaded.py": "ext = load('csrc/x')\n",
            "pack/api.py": "from pack.loaded import ext\next.f(1)\n",
        },
        "pack.loaded:ext.f",
    ),
}


@pytest.mark.parametrize("kind", MODULES)
def test_the_python_module_is_found(kind: str, adopted: Adopt) -> None:
    files, expected = MODULES[kind]
    report = adopted(
        {"csrc/bind.cpp": FUNCTION + 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n', **files}
    )
    (one,) = report.decisions
    assert one.defined_from[1:] == (expected,)
    assert one.registers


def test_a_module_that_nothing_names_is_a_line_to_complete(adopted: Adopt) -> None:
    report = adopted(
        {
            "bind.cpp": FUNCTION + 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n',
            "api.py": "import torch_npu\ntorch_npu.f(1)\n",
        }
    )
    (one,) = report.undecided
    assert "nothing here tells which Python module has it" in one.reason
    assert '"…:f"' in report.text


def test_a_namespace_that_the_repository_defines_is_left_to_it(adopted: Adopt) -> None:
    report = adopted(
        {
            "bind.cpp": FUNCTION + 'PYBIND11_MODULE(mine, m) { m.def("f", &f); }\n',
            "library.py": 'import torch\nLIBRARY = torch.library.Library("mine", "DEF")\n',
        }
    )
    (one,) = report.decisions
    assert one.name == "mine_functions::f"


GRADIENT = """import torch
import mine


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        function = mine.f
        ctx.save_for_backward(x)
        return function(x)

    @staticmethod
    def backward(ctx, grad):
        return mine.f_backward(grad, *ctx.saved_tensors)
"""


def test_an_autograd_function_of_a_pair_is_named(adopted: Adopt) -> None:
    report = adopted(
        {
            "bind.cpp": FUNCTION
            + FUNCTION.replace(" f(", " f_backward(")
            + 'PYBIND11_MODULE(mine, m) { m.def("f", &f); m.def("f_backward", &f_backward); }\n',
            "api.py": GRADIENT,
        }
    )
    said = "differentiated in Python by Scale with f_backward, api.py:13: pass backward= for a gradient of the operator"
    assert said in decision(report, "mine::f").evidence
    assert not any("differentiated" in one for one in decision(report, "mine::f_backward").evidence)


def test_an_autograd_function_in_cpp_is_followed_and_named(adopted: Adopt) -> None:
    report = adopted(
        {
            "bind.cpp": "class Twice : public torch::autograd::Function<Twice> {\npublic:\n"
            "    static at::Tensor forward(AutogradContext *ctx, const at::Tensor &x, int64_t n)\n    {\n"
            "        ctx->save_for_backward({x});\n        return at::empty({n, x.size(0)}, x.options());\n    }\n"
            "    static std::vector<at::Tensor> backward(AutogradContext *ctx, std::vector<at::Tensor> grads)\n"
            "    { return grads; }\n};\n"
            "at::Tensor f(const at::Tensor &x, int64_t n) { return Twice::apply(x, n); }\n"
            'PYBIND11_MODULE(mine, m) { m.def("f", &f); }\n',
        }
    )
    one = decision(report, "mine::f")
    assert one.relation == "x[x0, *x_rest] -> y[n, x0]: x"
    assert any("differentiated in C++ by Twice" in said for said in one.evidence)


# ------------------------------------------------------------------------ the module


def test_the_written_module_defines_and_registers_the_operator(
    adopted: Adopt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = adopted(
        {
            "aclnn_mine.h": HEADER,
            "bind.cpp": "at::Tensor tilt(const at::Tensor &x, double by) {\n"
            "    TORCH_CHECK(x.dim() == 2); auto y = at::empty({x.size(1), x.size(0)}, x.options());\n"
            "    EXEC_NPU_CMD(aclnnScale, x, by, y);\n    return y.transpose(0, 1);\n}\n"
            'PYBIND11_MODULE(adopted_bound, m) { m.def("tilt", &tilt, "", py::arg("x"), py::arg("by") = 2.0); }\n',
        }
    )
    extension = types.ModuleType("adopted_bound")
    extension.tilt = lambda x, by: x.t().contiguous().mul(by).t()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "adopted_bound", extension)
    before = set(ascend_graph.registered_ops())
    exec(compile(report.text, str(report.output), "exec"), {"__file__": str(report.output)})
    (op,) = set(ascend_graph.registered_ops()) - before
    try:
        x = torch.arange(6.0).reshape(2, 3).npu()
        assert torch.equal(torch.ops.adopted_bound.tilt(x).cpu(), x.cpu() * 2)
        assert op(torch.empty(2, 3, device="meta")).stride() == torch.ops.adopted_bound.tilt(x).stride()
        compiled = torch.compile(
            lambda t: torch.ops.adopted_bound.tilt(t, 3.0) + 1, backend="aot_eager", fullgraph=True
        )
        assert torch.equal(compiled(x).cpu(), x.cpu() * 3 + 1)
    finally:
        op.unregister()


def test_a_definition_is_the_same_again_and_never_another() -> None:
    schema = "adopted_defining::f(Tensor x, float by=2.0, *, int[] dims=[1]) -> (Tensor, Tensor)"

    def function(x: torch.Tensor, by: float, dims: list[int]) -> list[torch.Tensor]:
        return [x * by, x.sum(dims)]

    op = ascend_graph.define_from_function(schema, function)
    assert ascend_graph.define_from_function(schema, function) is op
    x = torch.ones(2, 3).npu()
    y, z = op(x)
    assert (y.cpu().tolist(), z.cpu().tolist()) == ([[2.0] * 3] * 2, [3.0, 3.0])
    assert op(x, 1.0, dims=[0])[1].cpu().tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(ascend_graph.AscendGraphError, match="is defined as"):
        ascend_graph.define_from_function(schema, "other:f")
    with pytest.raises(ascend_graph.AscendGraphError, match="has no namespace"):
        ascend_graph.define_from_function("f(Tensor x) -> Tensor", function)
    with pytest.raises(ascend_graph.AscendGraphError, match="cannot be defined"):
        ascend_graph.define_from_function("aten::relu(Tensor self) -> Tensor", function)


def test_a_function_that_cannot_be_imported_is_named_by_the_call() -> None:
    op = ascend_graph.define_from_function("adopted_defining::missing(Tensor x) -> Tensor", "no_such_extension._C:f")
    with pytest.raises(ImportError, match="no_such_extension._C:f cannot be imported"):
        op(torch.ones(2).npu())


@pytest.mark.parametrize(
    "impl",
    [
        'torch.library.impl("mine::twice", "PrivateUse1", _C.twice)',
        'torch.library.Library("mine", "IMPL", "PrivateUse1").impl("twice", _C.twice)',
    ],
)
def test_a_bound_function_that_implements_an_operator_is_its_kernel(impl: str, adopted: Adopt) -> None:
    report = adopted(
        {
            "ops.cpp": "at::Tensor twice(const at::Tensor &x) { auto y = at::empty({x.size(0), 2}, x.options()); return y; }\n"
            'PYBIND11_MODULE(_C, m) { m.def("twice", &twice); }\n',
            "ops.py": 'import torch\nimport _C\ntorch.library.define("mine::twice", "(Tensor x) -> Tensor")\n' + impl,
        }
    )
    (one,) = report.decisions
    assert (one.name, one.relation) == ("mine::twice", "x[x0, *x_rest] -> y[x0, 2]: x"), one.reason


def test_functions_of_one_name_without_a_schema_are_told_apart(adopted: Adopt) -> None:
    files = {
        f"{name}.cpp": f"at::Tensor f(const at::Tensor &x, {kind} y) {{ return at::empty_like(x); }}\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n'
        for name, kind in {"one": "One", "two": "Two"}.items()
    }
    first, again = adopted(files), adopted(files)
    assert [one.name.partition("::")[2] for one in first.decisions] == ["f", "f.overload_2"]
    assert (first.drifted, again.drifted) == (True, False)


def test_modules_of_one_name_are_not_adopted_together(adopted: Adopt) -> None:
    # Each case of a contest has an extension of its own, and all are built under one name.
    files = {
        f"{name}/ops.cpp": f"at::Tensor f(const at::Tensor &x) {{ return {made}; }}\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n'
        for name, made in {"one": "at::empty_like(x)", "two": "at::empty({x.size(0)}, x.options())"}.items()
    }
    files |= {"test.py": "import torch\nimport case_lib\ny = case_lib.f(torch.ones(2))\n"}
    report = adopted(files)
    assert [one.registers for one in report.decisions] == [False, False]
    assert report.decisions[0].reason.startswith("one/ops.cpp and two/ops.cpp bind case_lib:f")


def test_files_that_open_one_module_are_several_builds_of_it(adopted: Adopt) -> None:
    bound = """at::Tensor first(const at::Tensor &x) {{ return at::empty({size}, x.options()); }}
at::Tensor {name}(const at::Tensor &x) {{ return at::empty_like(x); }}
PYBIND11_MODULE(client, m) {{ m.def("run", &first); m.def("{name}", &{name}); }}
"""
    report = adopted(
        {"a/ops.cpp": bound.format(size="{2}", name="one"), "b/ops.cpp": bound.format(size="{3}", name="two")}
    )
    assert [(one.name, one.state.value) for one in report.decisions] == [
        ("client::one", "by names"), ("client::run", "undecided"),
        ("client::run.overload_2", "undecided"), ("client::two", "by names"),
    ]  # fmt: skip
    reason = "a/ops.cpp and b/ops.cpp bind client:run, and one of them is installed; adopt one directory"
    assert [one.reason for one in report.decisions if "run" in one.name] == [reason, reason]


def test_the_build_file_around_a_file_names_its_module(adopted: Adopt) -> None:
    source = (
        "at::Tensor %s(const at::Tensor &x) {\n"
        "    at::Tensor y = at::empty_like(x); EXEC_NPU_CMD(aclnnRelu, x, y); return y; }\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("%s", &%s); }\n'
    )
    setup = 'setup(ext_modules=[CppExtension(name="%s", sources=glob.glob("csrc/*.cpp"))])\n'
    report = adopted(
        {
            "one/csrc/ops.cpp": source.replace("%s", "one"),
            "one/setup.py": setup.replace("%s", "first._C"),
            "two/csrc/ops.cpp": source.replace("%s", "two"),
            "two/setup.py": setup.replace("%s", "second._C"),
            "three/ops.cpp": source.replace("%s", "three"),
        }
    )
    found = {one.name.partition("::")[2]: one for one in report.decisions}
    assert found["one"].defined_from[1] == "first._C:one"
    assert found["two"].defined_from[1] == "second._C:two"
    assert found["three"].reason.startswith("nothing here tells which Python module has it")
