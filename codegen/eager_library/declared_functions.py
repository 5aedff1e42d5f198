"""Operators of a generated library that have no prototype: aclnn functions by their declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ascend_graph.codegen.rendering import GenerationError

from ascend_graph.aclnn import AclnnFunction, Direction, ValueKind, parse_text
from ascend_graph.aclnn.catalog import header_files
from ascend_graph.aclnn.declaration import FIRST_PHASE
from ascend_graph.binding import AclnnCall, BindingError
from ascend_graph.binding.calls.from_declaration import derive
from ascend_graph.binding.errors import EagerError
from ascend_graph.binding.generated_schema import AclnnArgumentKind, GeneratedArgument, OperatorSchema, operator_schema
from ascend_graph.shapes import RelationError, parse_relation

#: File of a project with the declarations.
FILE = "aclnn.h"


@dataclass(frozen=True, slots=True)
class DeclaredOperator:
    """Operator that calls a declared function."""

    schema: OperatorSchema
    call: AclnnCall


def aclnn_headers(sources: Iterable[Path]) -> list[Path]:
    """Return the headers among the sources that declare aclnn functions."""
    files = [file for source in sources for file in (header_files(source) if source.is_dir() else [source])]
    return [file for file in files if FIRST_PHASE in file.read_text(errors="replace")]


def declared_operators(
    text: str, shapes: Mapping[str, str]
) -> tuple[dict[str, DeclaredOperator], list[tuple[str, str]], list[str]]:
    """Return the operators of a header's functions by name, the functions left out, and the proposals.

    Tensors are positional, values are keyword-only, as in every generated library. A list of scalars that may be null is null.

    Args:
        text: The header.
        shapes: The shape relations by function, as far as they are declared.

    Raises:
        GenerationError: The header has errors, or declares a function in two ways.
    """
    result = parse_text(text)
    if result.errors:
        raise GenerationError("\n".join(map(str, result.errors)))
    found: dict[str, DeclaredOperator] = {}
    skipped: list[tuple[str, str]] = []
    proposed: list[str] = []
    first: dict[str, AclnnFunction] = {}
    for function in result.functions:
        earlier = first.setdefault(function.name, function)
        if not function.agrees_with(earlier):
            raise GenerationError(
                f"{function.name} is declared in two ways, and nothing says which one its library has. Remove one:\n"
                f"  {FILE}:{earlier.line}: {earlier}\n  {FILE}:{function.line}: {function}"
            )
        if earlier is not function:
            continue
        try:
            found[function.name] = _operator(function, shapes.get(function.name, ""))
        except (BindingError, EagerError) as error:
            skipped.append((function.name, str(error).partition("\n")[0]))
            continue
        null = [name for name, value in _nulls(function).items() if value is None]
        if null:
            proposed.append(f"{', '.join(null)} of {function.name}: always null")
    return found, skipped, proposed


def _nulls(function: AclnnFunction) -> dict[str, Any]:
    """Map each list of scalars that may be null to None: PyTorch's dispatcher passes no optional one to C++."""
    return {
        p.name: None
        for p in function.parameters
        if p.optional and not p.default and p.value is ValueKind.SCALAR_LIST and p.direction is Direction.IN
    }


def _operator(function: AclnnFunction, shape: str) -> DeclaredOperator:
    outputs: set[str] = set()
    try:
        relation = parse_relation(shape) if shape else None
    except RelationError:
        relation = None  # said where the relation is read
    if relation is not None:
        outputs = {*relation.outputs} - {*relation.inputs}
    if not any(
        p.value in (ValueKind.TENSOR, ValueKind.TENSOR_LIST) and p.direction is not Direction.OUT
        for p in function.parameters
    ):
        raise EagerError(
            "it reads no tensor, so nothing says that it runs on the NPU; expected an input of type aclTensor or "
            "aclTensorList"
        )
    derived = derive(function, None, _nulls(function), outputs)
    made = operator_schema(derived.schema.prototype, derived.schema.name)
    # What a prototype has no word for is as the declaration says: scalars of any type, and what may be null.
    exact: dict[str, GeneratedArgument] = {
        a.parameter.name: replace(a, keyword=True)
        for a in derived.schema.arguments
        if a.kind in (AclnnArgumentKind.SCALAR, AclnnArgumentKind.SCALARS) or a.is_null
    }
    arguments = tuple([a if a.is_input else exact.get(a.parameter.name, a) for a in made.arguments])
    schema = replace(made, arguments=arguments)
    return DeclaredOperator(schema, replace(derived.call, declared=replace(function, file=FILE)))
