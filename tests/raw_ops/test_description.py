"""The Python face of the wheel's own raw ops, against the signatures in the wheel: read as text, without torch."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

from ascend_graph.prototypes import OpPrototype, parse_text
from ascend_graph.raw_ops.description import RawOp, describe, signature_text


def wheel_functions() -> dict[str, ast.FunctionDef]:
    spec = importlib.util.find_spec("torch_npu")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the torch_npu wheel is not installed")
    path = Path(spec.submodule_search_locations[0], "dynamo/torchair/_ge_concrete_graph/auto_generated_ge_raw_ops.py")
    module = ast.parse(path.read_text())
    return {node.name: node for node in module.body if isinstance(node, ast.FunctionDef) and ast.get_docstring(node)}


def prototype_of(node: ast.FunctionDef) -> OpPrototype | None:
    doc = ast.get_docstring(node) or ""
    op_type = re.findall(r"REG_OP\((\w+)\)", doc)[0]
    result = parse_text(f"{doc[doc.index('REG_OP') :]}\n.OP_END_FACTORY_REG({op_type})")
    return result.prototypes[0] if result.prototypes else None


def arguments(raw_op: RawOp) -> tuple[list[str], set[str]]:
    text = signature_text(raw_op)
    positional, _, keyword = text[text.index("(") + 1 : text.rindex(") ->")].partition("*, ")
    names = {part.partition("=")[0] for part in re.split(r", (?=[A-Za-z_]\w*(?:=|,|$))", keyword)}
    return [name for name in positional.split(", ") if name], names


#: The docstring has a typing error that stops reading, or its function was edited by hand and has other parameters.
EDITED = {
    "WeightQuantBatchMatmulV2",
    "GroupedDynamicBlockQuant",
    "MoeUpdateExpert",
}


def test_names_and_order_of_the_wheels_raw_ops() -> None:
    functions = wheel_functions()
    assert len(functions) > 1700
    different = []
    for name, node in functions.items():
        prototype = prototype_of(node)
        if prototype is None:
            assert name in EDITED, name
            continue
        raw_op = describe(prototype)
        positional, keyword = arguments(raw_op)
        if (raw_op.function_name, positional, keyword) != (
            name,
            [argument.arg for argument in node.args.args],
            {argument.arg for argument in node.args.kwonlyargs},
        ):
            different.append(name)
    # What differs was edited by hand in the wheel; the parity benchmark lists each with its reason.
    assert len(different) < 0.02 * len(functions), different


def test_signature_text_is_a_signature() -> None:
    prototype = parse_text(
        'REG_OP(A).INPUT(in, T).ATTR(s, String, "a, b=c").ATTR(l, ListInt, {1}).OP_END_FACTORY_REG(A)'
    ).prototypes[0]
    text = signature_text(describe(prototype))
    assert text == ("A(in_changed_as_is_python_key, *, s='a, b=c', l=(1,), dependencies=(), node_name=None) -> None")
    parsed = ast.parse(f"def {text}: ...").body[0]
    assert isinstance(parsed, ast.FunctionDef)


def test_names_that_would_collide() -> None:
    prototype = parse_text(
        """
        REG_OP(Clash)
            .INPUT(x, T).INPUT(node_name, T).INPUT(size_of_y, T)
            .DYNAMIC_OUTPUT(y, T)
            .ATTR(x, Int, 1).ATTR(dependencies, Int, 2).ATTR(lambda, Int, 3)
            .ATTR(x_changed_as_duplicate_with_input, Int, 4)
            .OP_END_FACTORY_REG(Clash)
        """
    ).prototypes[0]
    raw_op = describe(prototype)
    names = [value.argument for value in raw_op.inputs] + [output.size_argument for output in raw_op.outputs]
    names += [attr.argument for attr in raw_op.attrs]
    assert names == [
        "x",
        "node_name_changed_as_is_reserved",
        "size_of_y",
        "size_of_y_",
        "x_changed_as_duplicate_with_input",
        "dependencies_changed_as_is_reserved",
        "lambda_changed_as_is_python_key",
        "x_changed_as_duplicate_with_input_",
    ]
    assert [attr.name for attr in raw_op.attrs] == ["x", "dependencies", "lambda", "x_changed_as_duplicate_with_input"]
    inspect.signature(eval(f"lambda {', '.join(names)}: 0"))


def test_a_default_that_is_no_constant_has_to_be_given() -> None:
    prototype = parse_text("REG_OP(A).ATTR(a, Int, 1).ATTR(b, Int, kUnknown).OP_END_FACTORY_REG(A)").prototypes[0]
    assert [(attr.name, attr.required) for attr in describe(prototype).attrs] == [("b", True), ("a", False)]
