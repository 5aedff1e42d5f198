"""Python module of GE raw ops from prototypes, and its type stub."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ascend_graph.codegen.rendering import identifier, python_docstring, python_literal, render

from ascend_graph.prototypes.model import OpPrototype, ParameterKind
from ascend_graph.raw_ops.description import ATTR_FIELDS, RawOp, describe

#: Names that the generated module itself uses.
_MODULE_NAMES = frozenset(
    {"annotations", "Any", "Sequence", "Tensor", "DataType", "OpDef", "_add_node", "_ge", "_set", "_input", "_subgraph"}
)
_LINE_LENGTH = 120
_INPUT_ANNOTATIONS = {
    ParameterKind.REQUIRED: "Tensor",
    ParameterKind.OPTIONAL: "Tensor | None",
    ParameterKind.DYNAMIC: "Sequence[Tensor]",
}
_STUB_ANNOTATIONS = {
    ParameterKind.REQUIRED: "_Input",
    ParameterKind.OPTIONAL: "_Input | None",
    ParameterKind.DYNAMIC: "Sequence[Tensor]",
}


@dataclass(frozen=True, slots=True)
class RawOpModule:
    """Text of a generated module and of its stub, and the prototypes left out with the reason."""

    source: str
    stub: str
    skipped: tuple[tuple[OpPrototype, str], ...]


def raw_op_module(prototypes: Iterable[OpPrototype], title: str = "GE raw ops") -> RawOpModule:
    """Generate the raw ops of prototypes, in their order.

    The same prototypes and title always give the same text. If an op has two definitions, the first is taken.

    Raises:
        GenerationError: A name in a prototype is not an identifier.
    """
    functions: list[_Function] = []
    skipped: list[tuple[OpPrototype, str]] = []
    seen: dict[str, OpPrototype] = {}
    for prototype in prototypes:
        description = describe(prototype)
        name = identifier(description.function_name)
        other = seen.get(name)
        if other is not None:
            if other != prototype:
                skipped.append((prototype, f"another definition of {other.op_type} came first and is {name}"))
            continue
        if name in _MODULE_NAMES:
            skipped.append((prototype, f"the generated module uses the name {name} itself"))
            continue
        seen[name] = prototype
        functions.append(_Function(description))
    fields = {field.path: field.list_type for field in ATTR_FIELDS.values() if field.list_type}
    notes = [f"{identifier(prototype.op_type)} is left out: {reason}" for prototype, reason in skipped]
    values = {"title": python_docstring(title, ""), "functions": functions, "list_types": fields, "skipped": notes}
    return RawOpModule(render("raw_ops.py.jinja", **values), render("raw_ops.pyi.jinja", **values), tuple(skipped))


class _Function:
    """Texts of one raw op for the templates."""

    __slots__ = (
        "attrs",
        "converts",
        "definition",
        "docstring",
        "graphs",
        "inputs",
        "op_type",
        "outputs",
        "stub",
    )

    def __init__(self, raw_op: RawOp) -> None:
        self.op_type = repr(identifier(raw_op.op_type))
        self.definition = _definition(raw_op, _INPUT_ANNOTATIONS)
        self.stub = _definition(raw_op, _STUB_ANNOTATIONS)
        self.docstring = python_docstring(raw_op.docstring)
        self.converts = _converts(raw_op)
        self.inputs = _listed(f'("{identifier(value.name)}", {value.argument})' for value in raw_op.inputs)
        self.attrs = _listed(
            f'("{identifier(attr.name)}", "{attr.field.path}", {attr.argument})' for attr in raw_op.attrs
        )
        self.outputs = _listed(
            f'("{identifier(output.name)}", {output.size_argument})'
            if output.size_argument
            else f'"{identifier(output.name)}"'
            for output in raw_op.outputs
        )
        self.graphs = _listed(f'("{identifier(graph.name)}", {graph.argument})' for graph in raw_op.graphs)


def _listed(items: Iterable[str], indent: str = "        ") -> str:
    texts = list(items)
    line = f"[{', '.join(texts)}]"
    if len(indent) + len(line) < _LINE_LENGTH:
        return line
    return "\n".join(["[", *(f"{indent}    {text}," for text in texts), f"{indent}]"])


def _converts(raw_op: RawOp) -> str:
    dynamic = [value.kind is ParameterKind.DYNAMIC for value in raw_op.inputs]
    optional = [value.kind is ParameterKind.OPTIONAL for value in raw_op.inputs]
    text = f"{dynamic}, {optional}"
    if any(value.is_index for value in raw_op.inputs):
        types = [f"_ge.TensorType.TT_{'INDEX_NUMBER' if value.is_index else 'UNKNOWN'}" for value in raw_op.inputs]
        text += f", inputs_tensor_type=[{', '.join(types)}]"
    if len(text) < _LINE_LENGTH - 30:
        return f"@_ge.auto_convert_to_tensor({text})"
    return f"@_ge.auto_convert_to_tensor(\n    {text.replace('], ', '],' + chr(10) + '    ')},\n)"


def _definition(raw_op: RawOp, annotations: dict[ParameterKind, str]) -> str:
    parameters = [f"{identifier(value.argument)}: {annotations[value.kind]}" for value in raw_op.inputs]
    parameters.append("*")
    parameters += (f"{identifier(output.size_argument)}: int" for output in raw_op.outputs if output.size_argument)
    parameters += (
        f"{identifier(graph.argument)}: {'Sequence[Any]' if graph.dynamic else 'Any'}" for graph in raw_op.graphs
    )
    for attr in raw_op.attrs:
        text = f"{identifier(attr.argument)}: {attr.field.annotation}"
        if not attr.required:
            text += " | None" if attr.default is None and attr.field.annotation != "Any" else ""
            text += f" = {python_literal(attr.default)}"
        parameters.append(text)
    parameters += ["dependencies: Sequence[Tensor] = ()", "node_name: str | None = None"]
    head, tail = f"def {raw_op.function_name}(", f") -> {raw_op.returns}:"
    return _wrapped(head, parameters, tail)


def _wrapped(head: str, parameters: Sequence[str], tail: str) -> str:
    line = f"{head}{', '.join(parameters)}{tail}"
    if len(line) <= _LINE_LENGTH:
        return line
    return "\n".join([head, *(f"    {parameter}," for parameter in parameters), tail])
