"""Generated raw-op modules: what they contain, that they are stable, and that nothing from a header becomes code."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from ascend_graph.codegen.raw_op_module import raw_op_module
from ascend_graph.codegen.rendering import (
    GenerationError,
    identifier,
    python_docstring,
    python_literal,
    write_if_different,
)
from hypothesis import given
from hypothesis import strategies as st

from ascend_graph.prototypes import Attr, AttrType, DataType, OpPrototype, Parameter, parse_text

HEADER = """
/** Adds, scaled. */
REG_OP(AddCustom)
    .INPUT(x, TensorType({DT_FLOAT16, DT_FLOAT}))
    .OPTIONAL_INPUT(lambda, TensorType({DT_FLOAT}))
    .DYNAMIC_INPUT(rest, TensorType({DT_FLOAT}))
    .INPUT(shape, TensorType::IndexNumberType())
    .OUTPUT(z, TensorType({DT_FLOAT16, DT_FLOAT}))
    .ATTR(alpha, Float, 1e-7)
    .REQUIRED_ATTR(x, ListInt)
    .ATTR(dtype, Type, DT_FLOAT8_E5M2)
    .ATTR(dims, ListInt, {1, 2})
    .ATTR(node_name, String, "a\\"b")
    .OP_END_FACTORY_REG(AddCustom)
REG_OP(Split)
    .INPUT(x, TensorType::ALL())
    .DYNAMIC_OUTPUT(y, TensorType::ALL())
    .OUTPUT(z, TensorType::ALL())
    .OP_END_FACTORY_REG(Split)
REG_OP(Print).INPUT(x, TensorType::ALL()).OP_END_FACTORY_REG(Print)
REG_OP(If).INPUT(cond, TensorType::ALL()).DYNAMIC_OUTPUT(output, TensorType::ALL())
    .GRAPH(then_branch).GRAPH(else_branch).OP_END_FACTORY_REG(If)
"""


def functions(source: str) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


def test_signatures() -> None:
    module = raw_op_module(parse_text(HEADER).prototypes)
    found = {
        name: f"{ast.unparse(node.args)} -> {ast.unparse(node.returns)}"  # type: ignore[arg-type]
        for name, node in functions(module.source).items()
        if ast.get_docstring(node, clean=False) and not name.startswith(("_set", "_add_node"))
    }
    end = "dependencies: Sequence[Tensor]=(), node_name: str | None=None"
    assert found == {
        "AddCustom": (
            "x: Tensor, lambda_changed_as_is_python_key: Tensor | None, rest: Sequence[Tensor], shape: Tensor, *, "
            "x_changed_as_duplicate_with_input: Sequence[int], alpha: float=1e-07, dtype: int=DataType.DT_FLOAT8_E5M2, "
            f"dims: Sequence[int]=(1, 2), node_name_changed_as_is_reserved: str='a\"b', {end} -> Tensor"
        ),
        "_Split": f"x: Tensor, *, size_of_y: int, {end} -> tuple[list[Tensor], Tensor]",
        "Print": f"x: Tensor, *, {end} -> None",
        "_If": f"cond: Tensor, *, size_of_output: int, then_branch: Any, else_branch: Any, {end} -> list[Tensor]",
    }


def test_decorators_and_documentation() -> None:
    add = functions(raw_op_module(parse_text(HEADER).prototypes).source)["AddCustom"]
    assert ast.unparse(add.decorator_list[0]) == (
        "_ge.auto_convert_to_tensor([False, False, True, False], [False, True, False, False], "
        "inputs_tensor_type=[_ge.TensorType.TT_UNKNOWN, _ge.TensorType.TT_UNKNOWN, _ge.TensorType.TT_UNKNOWN, "
        "_ge.TensorType.TT_INDEX_NUMBER])"
    )
    doc = ast.get_docstring(add) or ""
    assert doc.startswith("Adds, scaled.\n\nREG_OP(AddCustom)\n    .INPUT(x, TensorType({DT_FLOAT16, DT_FLOAT}))\n")
    # The documentation holds the whole prototype.
    again = parse_text(f"{doc}\n.OP_END_FACTORY_REG(AddCustom)").prototypes
    assert again == parse_text(HEADER).prototypes[:1]


def test_no_mutable_defaults() -> None:
    for node in functions(raw_op_module(parse_text(HEADER).prototypes).source).values():
        for default in (*node.args.defaults, *node.args.kw_defaults):
            assert not isinstance(default, ast.List | ast.Dict | ast.Set)


def test_the_stub_has_the_same_functions() -> None:
    module = raw_op_module(parse_text(HEADER).prototypes)
    in_source, in_stub = functions(module.source), functions(module.stub)
    for name, node in in_stub.items():
        names = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
        assert names == [a.arg for a in (*in_source[name].args.args, *in_source[name].args.kwonlyargs)]
    assert list(in_stub) == ["AddCustom", "_Split", "Print", "_If"]


def test_the_same_prototypes_give_the_same_text_wherever_they_are() -> None:
    first = raw_op_module(parse_text(HEADER, "/here/a.h").prototypes)
    assert raw_op_module(parse_text(HEADER, "/there/b.h").prototypes).source == first.source


def test_what_is_left_out_is_said() -> None:
    text = (
        "REG_OP(_A).OP_END_FACTORY_REG(_A) REG_OP(A).DYNAMIC_OUTPUT(y, T).OP_END_FACTORY_REG(A)"
        "REG_OP(Tensor).OP_END_FACTORY_REG(Tensor)"
    )
    module = raw_op_module(parse_text(text).prototypes)
    assert [prototype.op_type for prototype, _ in module.skipped] == ["A", "Tensor"]
    assert "# A is left out: another definition of _A came first and is _A" in module.source
    assert list(functions(module.stub)) == ["_A"]


INJECTIONS = [
    '"""',
    "'''",
    '\\"""',
    '"\n__import__("os").system("true")\n"',
    "\\",
    "\\\\",
    "\\N{BULLET}",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "\r\n",
    "\0",
    "\x1b",
    "\u2028",
    "*/",
    'x"""\nimport os\n"""',
    "#",
    '"' * 7,
    "\ud800",
]
hostile = st.sampled_from(INJECTIONS) | st.text(max_size=20)


@given(st.lists(hostile, min_size=1, max_size=4).map("".join), hostile)
def test_texts_never_become_code(doc: str, value: str) -> None:
    attrs = (
        Attr("a", AttrType.STRING, False, value),
        Attr("b", AttrType.LIST_STRING, False, (value, doc)),
        Attr("c", AttrType.BYTES, False, value.encode(errors="replace")),
    )
    prototype = OpPrototype("A", (Parameter("x", dtypes=(DataType.BF16,), type_text=doc),), attrs, (), doc=doc)
    harmless = OpPrototype("A", (Parameter("x", dtypes=(DataType.BF16,)),), attrs, ())
    module = raw_op_module([prototype])
    found, plain = (functions(raw_op_module([one]).source)["A"] for one in (prototype, harmless))
    defaults = [ast.literal_eval(default) for default in found.args.kw_defaults[:3] if default is not None]
    assert defaults == [attr.default for attr in attrs]
    # Apart from the docstring it is the same code as without the text.
    assert ast.dump(ast.Module(found.body[1:], [])) == ast.dump(ast.Module(plain.body[1:], []))
    assert len(ast.parse(module.source).body) == len(ast.parse(raw_op_module([harmless]).source).body)
    compile(module.stub, "stub", "exec")


@pytest.mark.parametrize("name", ["x; import os", "x)", "", "1x", "a b", "é", "x\n", "__import__('os')"])
def test_names_that_are_no_identifiers_are_refused(name: str) -> None:
    with pytest.raises(GenerationError, match="is not an identifier"):
        identifier(name)
    for prototype in (
        OpPrototype(name),
        OpPrototype("A", (Parameter(name),)),
        OpPrototype("A", (), (), (Parameter(name),)),
    ):
        with pytest.raises(GenerationError, match="is not an identifier"):
            raw_op_module([prototype])


@given(st.text(max_size=40))
def test_a_docstring_keeps_its_text(text: str) -> None:
    text = text.replace("\r", "")
    found = ast.literal_eval(python_docstring(text, indent=""))
    assert [line.rstrip() for line in found.strip("\n").split("\n")] == [
        line.rstrip() for line in text.strip("\n").split("\n")
    ]


@given(
    st.recursive(
        st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | st.binary() | st.booleans(),
        lambda items: st.lists(items).map(tuple),
    )
)
def test_literals_are_the_values(value: object) -> None:
    assert ast.literal_eval(python_literal(value)) == value


def test_files_are_written_only_when_they_differ(tmp_path: Path) -> None:
    path = tmp_path / "new" / "ops.py"
    assert write_if_different(path, "a\n")
    os.utime(path, (1, 1))
    assert not write_if_different(path, "a\n")
    assert path.stat().st_mtime == 1
    path.chmod(0o640)
    assert write_if_different(path, "b\n")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("b\n", 0o640)
    assert [entry.name for entry in path.parent.iterdir()] == ["ops.py"]


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(GenerationError, match="cannot be written"):
        write_if_different(tmp_path / "file" / "ops.py", "a")
