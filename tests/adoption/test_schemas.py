"""Schemas are read as torch reads them, in every form that C++ and Python have for them."""

from __future__ import annotations

import pytest
import torch

from ascend_graph.adoption import State
from ascend_graph.binding.op_schema import read_schema
from ascend_graph.binding.schema_text import SchemaTextError, parse_schema

from .conftest import Adopt, decision

SCHEMAS = [
    "npu::f(Tensor x, Tensor? y, *, float a=1e-6, int[] b=[1, 2], bool c=True) -> (Tensor z, Tensor)",
    "npu::f(Tensor(a!) x, Tensor[] ys, int[2] tuning=[]) -> Tensor(a!)",
    "npu::f.out(Tensor?[] xs, str layout='BSND', ScalarType? dtype=None) -> Tensor[]",
    "npu::f(Tensor x, SymInt n, Scalar s=2, Device? device=None) -> ()",
    "npu::f(Tensor(a!)? x=None, int? n=-1) -> ()",
    "npu::f() -> str",
]


@pytest.mark.parametrize("text", SCHEMAS)
def test_text_is_read_as_torch_reads_it(text: str) -> None:
    expected, found = read_schema(torch._C.parse_schema(text)), parse_schema(text)
    assert found.arguments == expected.arguments
    assert found.returns == expected.returns
    assert (found.name, found.overload) == (expected.name, expected.overload)


@pytest.mark.parametrize(
    "text",
    ["f", "f(Tensor x", "f(Tensor x)", "f(Tensor x, Tensor x) -> ()", "f(x) -> Tensor", "f(Tensor x) -> (Tensor", ""],
)
def test_a_text_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaTextError):
        parse_schema(text, "npu")


FORMS = {
    "library": 'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> Tensor"); }',
    "fragment": 'TORCH_LIBRARY_FRAGMENT(mine, ops) { ops.def("f(Tensor x) -> Tensor"); }',
    "adjacent": 'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x)" /* of rows */\n  " -> Tensor"); }',
    "raw": 'TORCH_LIBRARY(mine, m) { m.def(R"(f(Tensor x) -> Tensor)"); }',
    "continued": 'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) \\\n -> Tensor"); }',
    "macro": "#define NAME mine\n#define LIB(n, m) TORCH_LIBRARY(n, m)\n"
    'LIB(NAME, m) { m.def("f(Tensor x) -> Tensor"); }'.replace("LIB(NAME", "TORCH_LIBRARY_OF(NAME").replace(
        "#define LIB", "#define TORCH_LIBRARY_OF"
    ),
    "selective": 'TORCH_LIBRARY(mine, m) { m.def(TORCH_SELECTIVE_SCHEMA("f(Tensor x) -> Tensor")); }',
    "chained": 'TORCH_LIBRARY(mine, m) { m.def("g(Tensor x) -> ()").def("f(Tensor x) -> Tensor"); }',
    "qualified": 'TORCH_LIBRARY(other, m) { m.def("mine::f(Tensor x) -> Tensor"); }',
    "constant": 'TORCH_LIBRARY(mine, m) { m.def(SCHEMA); }\n#define SCHEMA "f(Tensor x) -> Tensor"'.replace(
        "TORCH_LIBRARY(mine, m) { m.def(SCHEMA); }\n", ""
    )
    + "\nTORCH_LIBRARY(mine, m) { m.def(SCHEMA); }",
    "macro of definitions": '#define DEF(s) m.def(s)\nTORCH_LIBRARY(mine, m) { DEF("f(Tensor x) -> Tensor"); }',
    "old": 'static auto r = torch::RegisterOperators().op("mine::f(Tensor x) -> Tensor");',
    "inferred": 'TORCH_LIBRARY(mine, m) { m.def("f", &f); }\n'
    "at::Tensor f(const at::Tensor &x) { return at::empty_like(x); }",
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_definition_in_cpp_is_found(form: str, adopted: Adopt) -> None:
    report = adopted({"csrc/ops.cpp": "#include <torch/library.h>\n" + FORMS[form]})
    assert "mine::f" in [one.name for one in report.decisions]


@pytest.mark.parametrize("tags", ["{at::Tag::pt2_compliant_tag}", "std::vector<at::Tag>{at::Tag::core}"])
def test_tags_before_the_function_are_not_the_function(tags: str, adopted: Adopt) -> None:
    text = (
        f'TORCH_LIBRARY(mine, m) {{ m.def("f(Tensor x) -> Tensor", {tags}, &f); }}\n'
        "at::Tensor f(const at::Tensor &x) { auto y = at::empty_like(x); EXEC_NPU_CMD(aclnnScale, x, y); return y; }"
    )
    (one,) = adopted({"csrc/ops.cpp": "#include <torch/library.h>\n" + text}).decisions
    assert "aclnnScale" in str(one)


PYTHON = {
    "custom_op": "@torch.library.custom_op('mine::f', mutates_args=())\n"
    "def f(x: torch.Tensor) -> torch.Tensor:\n    return g(x)\n",
    "define": "torch.library.define('mine::f', '(Tensor x) -> Tensor')\n",
    "library": "lib = torch.library.Library('mine', 'DEF')\nlib.define('f(Tensor x) -> Tensor')\n",
    "library with a name": "NAME = 'mine'\nlib = Library(NAME, 'FRAGMENT')\nlib.define('f(Tensor x)' + ' -> Tensor')\n",
    "custom_op of a function": "def f(x: torch.Tensor) -> torch.Tensor: ...\n"
    "g = torch.library.custom_op('mine::f', f, mutates_args=())\n",
    "custom_op called twice": "def f(x: torch.Tensor) -> torch.Tensor: ...\n"
    "g = torch.library.custom_op('mine::f', mutates_args=())(f)\n",
    "direct": "LIB = Library('mine', 'FRAGMENT')\ndef f(x: torch.Tensor) -> torch.Tensor: ...\n"
    "direct_register_custom_op(op_name='f', op_func=f, mutates_args=[], target_lib=LIB)\n",
}


@pytest.mark.parametrize("form", PYTHON)
def test_every_form_of_a_definition_in_python_is_found(form: str, adopted: Adopt) -> None:
    report = adopted({"ops.py": "import torch\nfrom torch.library import Library\n" + PYTHON[form]})
    assert [one.name for one in report.decisions] == ["mine::f"]


def test_bad_input_is_reported_with_its_line_and_the_rest_goes_on(adopted: Adopt) -> None:
    report = adopted(
        {
            "csrc/ops.cpp": 'TORCH_LIBRARY(mine, m) {\n  m.def("f(Tensor x) -> " + kind);\n'
            '  m.def("broken(Tensor x");\n'
            '  m.def("good(Tensor x) -> ()");\n}\n'
            'TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("h(Tensor x) -> ()"); }\n',
            "csrc/open.cpp": 'TORCH_LIBRARY(mine, m) { m.def("k(Tensor x) -> ()");\n',
            "csrc/binary.cpp": "TORCH_LIBRARY\0\0",
            "bad.py": "import torch.library\ndef f(:\n",
            "computed.py": "import torch\nlib = torch.library.Library('mine', 'FRAGMENT')\nlib.define(make('x'))\n",
        }
    )
    assert [one.name for one in report.decisions] == ["mine::good"]
    places = {f"{one.file}:{one.line}" for one in report.diagnostics}
    assert places == {
        "csrc/ops.cpp:2",
        "csrc/ops.cpp:3",
        "csrc/ops.cpp:6",
        "csrc/open.cpp:1",
        "csrc/binary.cpp:1",
        "bad.py:2",
        "computed.py:3",
    }


def test_different_definitions_of_one_name_are_undecided(adopted: Adopt) -> None:
    report = adopted(
        {
            "a.cpp": 'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> ()"); }',
            "b.cpp": 'TORCH_LIBRARY_FRAGMENT(mine, m) { m.def("f(Tensor x, int n) -> ()"); }',
        }
    )
    (one,) = report.undecided
    assert one.reason == "its schema is defined differently at a.cpp:1 and b.cpp:1"


def test_equal_definitions_under_different_conditions_are_one_operator(adopted: Adopt) -> None:
    same = 'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> ()"); }'
    report = adopted(
        {
            "a.cpp": f"#ifdef A\n{same}\n#else\n{same}\n#endif\n#ifdef B\n{same.replace('f(Tensor', 'g(Tensor')}\n#endif\n"
        }
    )
    assert [(one.name, one.conditions) for one in report.decisions] == [("mine::f", ()), ("mine::g", ("defined(B)",))]


def test_operators_of_other_libraries_and_of_other_directories_are_left_out(adopted: Adopt) -> None:
    definition = 'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> ()"); }'
    report = adopted(
        {
            "third_party/a.cpp": definition,
            "tests/b.cpp": definition,
            "c.cpp": 'TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("add", &add); }\n'
            "at::Tensor add(at::Tensor x) { return x; }",
        }
    )
    assert report.decisions == ()
    assert "another library's operator" in report.diagnostics[0].message
    many = 'TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("add", &add); m.impl("mul", &add); m.impl("sub", &add); }'
    (one,) = adopted({"c.cpp": many}).diagnostics
    assert one.message.startswith("aten::add and 2 more are implemented")


def test_the_tests_of_a_library_of_kernels_alone_bind_its_operators(adopted: Adopt) -> None:
    kernels = "REG_OP(F).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(F)"
    files = {"op_graph/f_proto.h": kernels, "tests/b.cpp": 'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> ()"); }'}
    assert [one.name for one in adopted(files).decisions] == ["mine::f"]
    own = {"ops/a.cpp": 'TORCH_LIBRARY(mine, m) { m.def("g(Tensor x) -> ()"); }'}
    assert [one.name for one in adopted(files | own).decisions] == ["mine::g"]


YAML = """all_version: [v2.1, newest]
official:
  - func: abs(Tensor self) -> Tensor
    op_api: all_version
custom:
  # structured: the kernel is generated
  - func: npu_grow(Tensor x, float by=1.0) -> Tensor
    op_api: [v2.1, newest]
    gen_opapi:
      out:
        size: x
        dtype: at::kFloat
      exec: aclnnGrow
  - func: 'npu_pair(Tensor x, Tensor w) -> (Tensor, Tensor)'
    op_api: all_version
    gen_opapi:
      y:
        size: '{x.size(0), w.size(1)}'
        dtype: w
      scale:
        size: '{x.size(0)}'
        dtype: at::kFloat
      exec: aclnnPair, x, w, y, scale
  - func: npu_written(Tensor x, int n) -> Tensor
    op_api: all_version
  - func: npu_inherits(Tensor x) -> Tensor
    op_api: all_version
    gen_opapi:
      structured_inherit: npu_grow
"""


def test_operators_of_op_plugins_yaml_files_are_read(adopted: Adopt) -> None:
    report = adopted(
        {
            "config/op_plugin_functions.yaml": YAML,
            "ops/Written.cpp": "namespace op_api {\nat::Tensor npu_written(const at::Tensor &x, int64_t n)\n{\n"
            "    at::Tensor y = at::empty({n, x.size(0)}, x.options());\n"
            "    EXEC_NPU_CMD(aclnnWritten, x, n, y);\n    return y;\n}\n}\n",
        }
    )
    relations = {one.name: one.relation for one in report.decisions if one.registers}
    assert relations == {
        "npu::npu_grow": "x[*s] -> y[*s]: float32",
        "npu::npu_pair": "x[x0, *x_rest], w[w0, w1, *w_rest] -> y0[x0, w1]: w, y1[x0]: float32",
        "npu::npu_written": "x[x0, *x_rest] -> y[n, x0]: x",
    }
    assert [one.name for one in report.undecided] == ["npu::npu_inherits"]


STRUCTURED = """all_version: [v2.1, newest]
custom:
  - func: npu_bend(Tensor self, Tensor? input_scale=None, float by=1.0) -> Tensor
    op_api: all_version
    gen_opapi:
      new_params:
        twice: 'static_cast<float>(2.0 * by)'
      out:
        size: self
        dtype: self
      exec: aclnnBend, self, input_scale, twice, out
  - func: npu_bend.out(Tensor self, Tensor? input_scale=None, float by=1.0, *, Tensor(a!) out) -> Tensor(a!)
    op_api: all_version
    gen_opapi:
      exec: aclnnBend, self, input_scale, by, out
  - func: npu_fill_(Tensor(a!) self, Tensor value) -> Tensor(a!)
    op_api: all_version
    gen_opapi:
      exec: aclnnFill
  - func: npu_chosen(Tensor x) -> Tensor
    op_api: all_version
    gen_opapi:
      out:
        size: x
        dtype: x
      exec: aclnnChosen
      cpu_scalar_op:
        - param: x
          exec: aclnnChosens
"""
GENERATED = """
namespace op_api {
at::Tensor npu_bend(const at::Tensor & self, const c10::optional<at::Tensor> & input_scale, double by)
{
    auto twice = static_cast<float>(2.0 * by);
    auto output_size_0 = self.sizes();
    at::Tensor out = npu_preparation::apply_tensor_without_format(output_size_0,
                                                                self.options().dtype(self.scalar_type()));
    EXEC_NPU_CMD_EXT(aclnnBend, self, input_scale, twice, out);
    return out;
}
}
namespace at_npu::native {
at::Tensor wrapper__npu_bend(const at::Tensor & self, const c10::optional<at::Tensor> & input_scale, double by) {
    return op_plugin::npu_bend(self, input_scale, by);
}
TORCH_LIBRARY_FRAGMENT(npu, m) {
    m.def("npu_bend(Tensor input, Tensor? input_scale=None, float by=1.0) -> Tensor");
    m.def("npu_bend.out(Tensor input, Tensor? input_scale=None, float by=1.0, *, Tensor(a!) out) -> Tensor(a!)");
}
TORCH_LIBRARY_IMPL(npu, PrivateUse1, m) {
    m.impl("npu_bend", TORCH_FN(at_npu::native::wrapper__npu_bend));
    m.impl("npu_bend.out", TORCH_FN(at_npu::native::wrapper_out_npu_bend_out));
}
}
"""


def test_structured_kernels_are_read_as_op_plugins_generator_makes_them(adopted: Adopt) -> None:
    report = adopted({"npu_custom.yaml": STRUCTURED})
    relations = {one.name: (one.relation, one.eager) for one in report.decisions if one.registers}
    assert relations == {
        # The generator registers an argument ``self`` as ``input``, and makes an overload ``out``.
        "npu::npu_bend": ("input[*s] -> y[*s]: input", "torch.ops.npu.npu_bend.default"),
        "npu::npu_fill_": ("input -> input", "torch.ops.npu.npu_fill_"),
    }
    # Another function may be called: what is not understood is not taken for nothing.
    assert [one.name for one in report.undecided] == ["npu::npu_chosen"]


def test_what_op_plugins_generator_wrote_changes_nothing(adopted: Adopt) -> None:
    files = {"npu_custom.yaml": STRUCTURED}
    copy = STRUCTURED.partition("    gen_opapi")[0]
    built = {"config/op_plugin_functions.yaml": copy, "aten/CustomRegisterSchema.cpp": GENERATED}
    before, after = adopted(files), adopted(files | built)
    assert {str(one) for one in before.decisions if one.registers} == {
        str(one) for one in after.decisions if one.registers
    }
    assert [one.name for one in after.decisions] == [one.name for one in before.decisions]
    assert after.diagnostics == before.diagnostics


def test_a_gradient_that_the_library_registers_itself_is_stated(adopted: Adopt) -> None:
    derivatives = "all_version: [v2.1]\nbackward:\n- name: npu_grow(Tensor x, float by=1.0) -> Tensor\n  x: npu_shrink(grad, by)\n"
    library = """
TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(mine, AutogradPrivateUse1, m) { m.impl("f", &differentiated); }
"""
    report = adopted({"functions.yaml": YAML, "derivatives.yaml": derivatives, "ops.cpp": library})
    stated = {one.name: [line for line in one.evidence if line.startswith("gradient")] for one in report.decisions}
    assert stated["npu::npu_grow"] == ["gradient: the library's own, which stays: derivatives.yaml:3"]
    assert stated["mine::f"] == ["gradient: the library's own, which stays: ops.cpp:3"]
    assert stated["npu::npu_pair"] == []


def test_a_library_that_is_made_for_a_dispatch_key_implements_for_that_key(adopted: Adopt) -> None:
    report = adopted(
        {
            "library.py": "import torch\nfrom torch.library import Library, impl\n\n"
            'DEFINED = Library("mine", "DEF")\nDEFINED.define("f(Tensor x) -> Tensor")\n'
            'DEFINED.define("g(Tensor x) -> Tensor")\n'
            'METAS = Library("mine", "IMPL", "Meta")\n\n\n@impl(METAS, "f")\ndef f_meta(x):\n'
            "    return torch.empty_like(x)\n\n\n"
            'METAS.impl("g", f_meta)\n'
        }
    )
    for name in ("mine::f", "mine::g"):
        one = decision(report, name)
        assert (one.has_meta, one.relation) == (True, "x[*s] -> y like x")


def test_a_constant_named_like_the_library_hides_nothing(adopted: Adopt) -> None:
    source = """
void f(const at::Tensor &x) { const int64_t m = x.size(0) + 1; use(m); }
TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> ()", &f); }
"""
    assert [one.name for one in adopted({"ops.cpp": source}).decisions] == ["mine::f"]


OWN_DECORATOR = """
import torch


def register(name, *, written=()):
    def decorate(function):
        return torch.library.custom_op(name, mutates_args=written)(function)

    return decorate
"""
DECORATED = """
import torch

from .making import register as made


@made("mine::f")
def f(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@made("mine::g", written=("x",))
def g(x: torch.Tensor, by: int = 2) -> None:
    x.mul_(by)
"""


def test_operators_of_an_own_decorator_in_another_file_are_found(adopted: Adopt) -> None:
    report = adopted({"mine/__init__.py": "", "mine/making.py": OWN_DECORATOR, "mine/ops.py": DECORATED})
    assert report.diagnostics == ()
    assert [one.name for one in report.decisions] == ["mine::f", "mine::g"]
    assert decision(report, "mine::g").relation == "->"


def test_meta_functions_that_an_own_decorator_registers_are_kept(adopted: Adopt) -> None:
    making = OWN_DECORATOR.replace(
        "        return torch",
        "        torch.library.register_fake(name)(lambda x: function(x))\n        return torch",
    )
    kernel = DECORATED.partition('@made("mine::g"')[0].replace("return x.clone()", "return computed(x)")
    one = decision(adopted({"making.py": making, "ops.py": kernel.replace(".making", "making")}), "mine::f")
    assert one.registers
    assert any(line.startswith("meta kept: ops.py:7") for line in one.evidence)


def test_operators_whose_names_are_computed_are_reported_where_they_are_made(adopted: Adopt) -> None:
    source = OWN_DECORATOR.replace("custom_op(name", "custom_op(prefix + name")
    (found,) = adopted({"ops.py": source}).diagnostics
    assert (found.file, found.line) == ("ops.py", 7)
    assert found.message.startswith("custom_op: the name is computed, so that its operators are not counted")


def test_a_function_of_another_file_is_followed(adopted: Adopt) -> None:
    kernels = (
        "import torch\ndef grown(x: torch.Tensor, by: int) -> torch.Tensor:\n    return x.new_empty((x.shape[0], by))\n"
    )
    register = """
import torch
from torch.library import Library

from src_of_mine.kernels import grown as kernel

LIB = Library("mine", "FRAGMENT")
direct_register_custom_op(op_name="f", op_func=kernel, fake_impl=kernel, mutates_args=[], target_lib=LIB)
"""
    report = adopted({"python/src_of_mine/kernels.py": kernels, "python/src_of_mine/ops.py": register})
    assert decision(report, "mine::f").relation == "x[x0, *x_rest] -> y[x0, by]: x"


def test_kernels_that_are_registered_for_a_device_are_found(adopted: Adopt) -> None:
    source = """
import torch


@torch.library.custom_op("mine::f", mutates_args=(), device_types="cpu")
def f(x: torch.Tensor) -> torch.Tensor: ...


@f.register_kernel("npu")
def _(x):
    return x.new_empty((x.shape[0],))
"""
    assert decision(adopted({"ops.py": source}), "mine::f").relation == "x[x0, *x_rest] -> y[x0]: x"


BUILDER = """
from torch.library import Library
_library = None
def get_library():
    global _library
    if _library is None:
        try:
            _library = Library("mine", "DEF")
        except RuntimeError:
            _library = Library("mine", "FRAGMENT")
    return _library
class Builder:
    def __init__(self, name):
        self.name = name
    def prepare(self):
        self.register(self.signature())
        self.register_meta()
    def register(self, schemas):
        for schema in [schemas] if isinstance(schemas, str) else schemas:
            get_library().define(schema)
    def load(self):
        return load(name=self.name, sources=self.sources())
"""
BUILT = """
import torch
from torch.library import impl
from package.builders import Builder, get_library
class HalfBuilder(Builder):
    def __init__(self):
        super().__init__("half")
    def sources(self):
        return ["csrc/half.cpp"]
    def signature(self):
        return SCHEMA
    def register_meta(self):
        @impl(get_library(), self.name, "Meta")
        def half_meta(x, scale=1.0):
            shape = list(x.shape)
            shape[-1] = shape[-1] // 2
            return x.new_empty(shape)
builder = HalfBuilder()
builder.prepare()
@impl(get_library(), builder.name, "PrivateUse1")
def half(x, scale=1.0):
    module = builder.load()
    return module.half(x, scale)
"""
HALF_CPP = """
at::Tensor half(const at::Tensor &x, double scale) {
    std::vector<int64_t> shape(x.sizes().begin(), x.sizes().end());
    shape[x.dim() - 1] = x.size(x.dim() - 1) / 2;
    at::Tensor y = at::empty(shape, x.options());
    EXEC_NPU_CMD(aclnnHalf, x, scale, y);
    return y;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("half", &half); }
"""
HALF_PROTOTYPE = """
REG_OP(Half).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).ATTR(scale, Float, 1.0)
    .OP_END_FACTORY_REG(Half)
"""
SCHEMAS_OF_METHODS = {
    "a literal": '"half(Tensor x, float scale=1.0) -> Tensor"',
    "a sum with an attribute": 'self.name + "(Tensor x, float scale=1.0) -> Tensor"',
    "a list": '[f"{self.name}(Tensor x, float scale=1.0) -> Tensor"]',
}


def built_files(schema: str = SCHEMAS_OF_METHODS["a literal"]) -> dict[str, str]:
    return {
        "src/package/__init__.py": "",
        "src/package/builders/__init__.py": "from .builder import Builder, get_library\n",
        "src/package/builders/builder.py": BUILDER,
        "half/half.py": BUILT.replace("SCHEMA", schema),
        "half/csrc/half.cpp": HALF_CPP,
        "half/half_proto.h": HALF_PROTOTYPE,
    }


@pytest.mark.parametrize("form", SCHEMAS_OF_METHODS)
def test_operators_that_classes_state_are_bound_by_the_functions_that_they_load(form: str, adopted: Adopt) -> None:
    report = adopted(built_files(SCHEMAS_OF_METHODS[form]))
    (one,) = report.decisions
    assert (one.name, one.eager, one.subject) == ("mine::half", "torch.ops.mine.half", "Half")
    assert one.relation == "x[*x_rest, x_last] -> y[*x_rest, x_last // 2]: x"
    assert one.has_meta
    assert not one.defined_from
    assert report.diagnostics == ()


@pytest.mark.parametrize("tensor", ["x", "torch.empty_like(x)", "y"])
def test_methods_of_tensors_are_not_bound_functions_of_their_name(tensor: str, adopted: Adopt) -> None:
    """A kernel in Python computes with a tensor's ``half()``; the function that is bound as such stays an operator."""
    kernel = f"    y = torch.relu(x)\n    return {tensor}.half()\n"
    files = built_files() | {
        "half/half.py": "import torch\nfrom torch.library import Library\nlibrary = Library('mine', 'DEF')\n"
        f"library.define('cast(Tensor x) -> Tensor')\ndef cast(x):\n{kernel}library.impl('cast', cast, 'PrivateUse1')\n"
    }
    decisions = {one.name.rpartition("::")[2]: one for one in adopted(files).decisions}
    assert set(decisions) == {"cast", "half"}
    assert decisions["half"].subject == "Half"
    assert decisions["cast"].subject != "Half"


def test_a_class_whose_schema_is_computed_is_reported_where_it_is_defined(adopted: Adopt) -> None:
    report = adopted(built_files("make_schema()"))
    assert "mine::half" not in [one.name for one in report.decisions]
    (found,) = [one for one in report.diagnostics if "the schema is computed" in one.message]
    assert found.file == "src/package/builders/builder.py"


def test_methods_of_torchscript_classes_are_not_operators(adopted: Adopt) -> None:
    report = adopted(
        {
            "ops.cpp": "at::Tensor f(const at::Tensor &x) { return at::empty_like(x); }\n"
            "struct Model : torch::CustomClassHolder { void run(at::Tensor x); at::Tensor f(at::Tensor x); };\n"
            "TORCH_LIBRARY(mine, m) {\n"
            '    m.class_<Model>("Model").def(torch::init<>()).def("run", &Model::run)\n'
            '        .def("name", [](const c10::intrusive_ptr<Model>& one) { return one->name; }).def("f", &f);\n'
            '    m.def("f(Tensor x) -> Tensor");\n}\n'
            'TORCH_LIBRARY_IMPL(mine, PrivateUse1, m) { m.impl("f", &f); }\n'
        }
    )
    assert [one.name for one in report.decisions] == ["mine::f"]
    assert report.diagnostics == ()


def namespaced(cmake: dict[str, str]) -> dict[str, str]:
    source = (
        "at::Tensor f(const at::Tensor &x) { return at::empty_like(x); }\n"
        'TORCH_LIBRARY(MODULE_NAME, m) { m.def("f(Tensor x) -> Tensor"); }\n'
        'TORCH_LIBRARY_IMPL(MODULE_NAME, PrivateUse1, m) { m.impl("f", &f); }\n'
    )
    return {"inner/csrc/ops.cpp": source} | cmake


@pytest.mark.parametrize(
    "cmake",
    [
        {"CMakeLists.txt": 'set(MODULE_NAME "mine" CACHE STRING "")\nadd_definitions(-DMODULE_NAME=${MODULE_NAME})\n'},
        {"inner/CMakeLists.txt": "target_compile_definitions(ops PRIVATE MODULE_NAME=mine)\n"},
        {"inner/setup.py": 'args = ["-DMODULE_NAME=mine"]\n', "other/setup.py": 'args = ["-DMODULE_NAME=other"]\n'},
    ],
)
def test_a_namespace_that_build_files_define_is_the_one_of_the_nearest(cmake: dict[str, str], adopted: Adopt) -> None:
    assert [one.name for one in adopted(namespaced(cmake)).decisions] == ["mine::f"]


def test_a_namespace_that_build_files_define_differently_is_reported(adopted: Adopt) -> None:
    cmake = {f"{name}/CMakeLists.txt": f"add_definitions(-DMODULE_NAME={name})\n" for name in ("one", "other")}
    report = adopted(namespaced(cmake))
    assert report.decisions == ()
    assert "the namespace is 'MODULE_NAME', which the build decides" in report.diagnostics[0].message


@pytest.mark.parametrize(
    "form", ["f.register_autograd(backward)", "torch.library.register_autograd('mine::f', backward)"]
)
def test_a_gradient_that_python_registers_is_stated(form: str, adopted: Adopt) -> None:
    source = (
        "import torch\n@torch.library.custom_op('mine::f', mutates_args=())\n"
        f"def f(x: torch.Tensor) -> torch.Tensor:\n    return torch.empty_like(x)\n{form}\n"
    )
    (one,) = adopted({"ops.py": source}).decisions
    assert "gradient: the library's own, which stays: ops.py:5" in one.evidence


def test_a_schema_whose_string_continues_on_the_next_line_has_quotes(adopted: Adopt) -> None:
    text = 'TORCH_SELECTIVE_SCHEMA("mine::f(Tensor x, str mode=\\"a\\", \\\n    str other=\\"b\\") -> Tensor")'
    report = adopted(
        {"ops.cpp": f'TORCH_LIBRARY_FRAGMENT(mine, m) {{\n m.def({text});\n m.def("g(Tensor x) -> Tensor");\n}}\n'}
    )
    assert [one.name for one in report.decisions] == ["mine::f", "mine::g"]
    assert not report.diagnostics


def test_definitions_and_kernels_of_another_device_are_another_build(adopted: Adopt) -> None:
    cuda = """
TORCH_LIBRARY(mine, m) { m.def("put(Tensor x, Tensor(a!) y) -> Tensor"); m.def("top(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(mine, CUDA, m) { m.impl("put", &put); m.impl("top", &top); }
"""
    npu = """
TORCH_LIBRARY(mine, m) { m.def("put(Tensor x, Tensor(a!) y) -> ()"); }
TORCH_LIBRARY_IMPL(mine, PrivateUse1, m) { m.impl("put", &put); }
"""
    functions = "at::Tensor top(const at::Tensor &x) { return at::empty_like(x); }\n"
    report = adopted(
        {
            "cuda/ops.cpp": functions + cuda,
            "npu/ops.cpp": "void put(at::Tensor x, at::Tensor y) { launch(x, y); }" + npu,
        }
    )
    put, top = report.decisions
    assert (put.state, put.relation) == (State.BY_NAMES, "->")
    assert (top.state, top.reason.partition(" at ")[0]) == (State.IMPOSSIBLE, "its kernel")
    assert top.reason.endswith("is for CUDA: nothing is registered for the NPU")


def test_the_kernel_of_another_device_tells_nothing_of_the_npus(adopted: Adopt) -> None:
    cuda = """
at::Tensor put(const at::Tensor &x, at::Tensor &y) { y.copy_(x); return y; }
TORCH_LIBRARY(mine, m) { m.def("put(Tensor x, Tensor y) -> Tensor"); }
TORCH_LIBRARY_IMPL(mine, CUDA, m) { m.impl("put", &put); }
"""
    meta = 'import torch\n\n@torch.library.register_fake("mine::put")\ndef put(x, y):\n    return torch.empty_like(x)\n'
    one = decision(adopted({"ops.cpp": cuda, "meta.py": meta}), "mine::put")
    assert (one.state, one.relation, one.defined_from) == (State.BY_NAMES, "x[*s] -> y_out like x", ())
    assert "its kernel at ops.cpp:4 is for CUDA: not read" in one.evidence
    assert "shape: the meta function, meta.py:4" in one.evidence


BUILDS = {
    "copies": ("at::empty_like(x)", "at::empty_like(x)"),
    "same result": ("at::empty({x.size(0)}, x.options())", "at::empty(x.size(0), x.options())"),
    "sizes": ("at::empty_like(x)", "at::empty({x.size(0), 2}, x.options())"),
    "writes": ("at::empty_like(x)", "at::empty_like(x); x.zero_()"),
    "one unknown": ("at::empty_like(x)", "of_another(x)"),
}


@pytest.mark.parametrize("kind", BUILDS)
def test_kernels_of_several_builds_are_adopted_if_they_agree(kind: str, adopted: Adopt) -> None:
    kernel = """at::Tensor f_{name}(const at::Tensor &x) {{ at::Tensor y = {made}; return y; }}
TORCH_LIBRARY(mine, m) {{ m.def("f(Tensor x) -> Tensor"); }}
TORCH_LIBRARY_IMPL(mine, PrivateUse1, m) {{ m.impl("f", &f_{name}); }}
"""
    files = {f"{n}/ops.cpp": kernel.format(name=n, made=made) for n, made in zip("ab", BUILDS[kind], strict=True)}
    one = decision(adopted(files), "mine::f")
    if kind in ("copies", "same result"):
        assert one.state is State.BY_NAMES, one.reason
    else:
        assert one.state is State.UNDECIDED
        assert one.reason.startswith("its kernels at a/ops.cpp:1 and b/ops.cpp:1 differ"), one.reason


def test_two_kernels_that_are_not_followed_leave_the_meta_function(adopted: Adopt) -> None:
    text = (
        'import torch\n\n@torch.library.impl("mine::f", "NPU")\ndef f(x):\n    return of_{name}(x)\n\n'
        '@torch.library.register_fake("mine::f")\ndef meta(x):\n    return torch.empty_like(x)\n'
    )
    defined = 'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> Tensor"); }\n'
    one = decision(
        adopted({"ops.cpp": defined, "a.py": text.format(name="a"), "b.py": text.format(name="b")}), "mine::f"
    )
    assert (one.state, one.relation) == (State.BY_NAMES, "x[*s] -> y like x"), one.reason


def test_meta_functions_of_several_builds_that_differ_are_not_read(adopted: Adopt) -> None:
    meta = 'import torch\n\n@torch.library.register_fake("mine::f")\ndef f(x):\n    return torch.empty_like(x{more})\n'
    kernel = 'TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> Tensor"); }\n'
    files = {"ops.cpp": kernel, "cuda.py": meta.format(more=""), "npu.py": meta.format(more=", dtype=torch.int8")}
    one = decision(adopted(files), "mine::f")
    assert (one.state, one.relation) == (State.BY_NAMES, None)
    assert "its meta functions at cuda.py:4 and npu.py:4 differ: not read" in one.evidence


OVERLOADS = """
at::Tensor rows(const at::Tensor &x, int64_t n) { return at::empty({n}, x.options()); }
at::Tensor columns(const at::Tensor &x, at::IntArrayRef n) { return at::empty({n[0], 2}, x.options()); }
at::Tensor whole(const at::Tensor &x) { return at::empty_like(x); }
TORCH_LIBRARY(mine, m) {
    m.def("take.rows(Tensor x, int n) -> Tensor");
    m.def("take.columns(Tensor x, int[] n) -> Tensor");
    m.def("take(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(mine, PrivateUse1, m) {
    m.impl("take.rows", &rows);
    m.impl("take.columns", &columns);
    m.impl("take", &whole);
}
"""


def test_each_overload_has_the_kernel_that_is_its_own(adopted: Adopt) -> None:
    report = adopted({"ops.cpp": OVERLOADS})
    found = {one.eager: one.relation for one in report.decisions}
    assert found == {
        "torch.ops.mine.take.default": "x[*s] -> y like x",
        "torch.ops.mine.take.rows": "x -> y[n]: x",
        "torch.ops.mine.take.columns": "x -> y[n[0], 2]: x",
    }


def test_each_overload_has_the_python_kernel_and_meta_function_that_are_its_own(adopted: Adopt) -> None:
    report = adopted(
        {
            "ops.py": "import torch\n"
            'lib = torch.library.Library("mine", "DEF")\n'
            'lib.define("take.rows(Tensor x, int n) -> Tensor")\n'
            'lib.define("take(Tensor x) -> Tensor")\n'
            '@torch.library.impl(lib, "take.rows", "PrivateUse1")\ndef rows(x, n):\n    return x.new_empty(n)\n'
            'lib.impl(torch.ops.mine.take.default, lambda x: torch.empty_like(x), "PrivateUse1")\n'
            '@torch.library.register_fake("mine::take.rows")\ndef fake(x, n):\n    return x.new_empty(n)\n'
        }
    )
    found = {one.eager: (one.relation, one.has_meta) for one in report.decisions}
    assert found == {
        "torch.ops.mine.take.default": ("x[*s] -> y like x", False),
        "torch.ops.mine.take.rows": ("x -> y[n]: x", True),
    }


PARTLY_MOVED = """
import torch
import ascend_graph

LIB = torch.library.Library("mine", "DEF")
LIB.define("f(Tensor x) -> Tensor")
LIB.define("g(Tensor x) -> Tensor")
LIB.impl("f", lambda x: torch.empty_like(x), "PrivateUse1")
LIB.impl("g", lambda x: torch.empty_like(x), "PrivateUse1")
ascend_graph.register_op("F", eager=torch.ops.mine.f.default, shape="x[*s] -> y[*s]")
"""


def test_operators_that_the_author_registered_are_left_out_of_the_module(adopted: Adopt) -> None:
    report = adopted({"ops.py": PARTLY_MOVED})
    assert [one.name for one in report.decisions] == ["mine::g"]
    assert [(one.line, one.message) for one in report.diagnostics] == [
        (10, "mine::f is registered here already, and left out; remove the call to have it written")
    ]
    # What adopt wrote is not the author's: another run writes it again.
    written = PARTLY_MOVED.partition("ascend_graph.register_op")
    files = {"ops.py": written[0], "my_ops.py": "# adopt: (head) 0\n" + written[1] + written[2]}
    assert [one.name for one in adopted(files).decisions] == ["mine::f", "mine::g"]
