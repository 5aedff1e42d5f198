"""Comparison of a relation with the installed package's own shapes: its author's InferShape function.

Eager mode allocates by the relation, GE by InferShape. If the two differ one of them is wrong, and an eager kernel
writes rows at other places than the caller reads them. On the host runtime the function can be called. On a device it
is in a library that only GE loads, and nothing is compared.
"""

from __future__ import annotations

import importlib
import itertools
import os
import random
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ascend_graph
from ascend_graph.binding.bound import Binding
from ascend_graph.binding.errors import BindingWarning
from ascend_graph.prototypes import Attr, AttrType, DataType, OpPrototype, ParameterKind, PassedAs
from ascend_graph.registration.request import RegistrationError
from ascend_graph.shapes import Relation, RelationError, ShapeError, parse_relation
from ascend_graph.shapes.compared import compared_values
from ascend_graph.shapes.samples import RelationSample, RelationSampleError, sample

#: Variable with the module that calls installed packages' InferShape; the host runtime's launcher sets it.
VARIABLE = "ASCEND_GRAPH_AUTHOR_SHAPES"

#: Sizes that most operators take, sizes that leave a remainder, and sizes beyond the blocks of kernels.
_SIZES = (
    (8, 16, 24, 32, 48, 64),
    (16, 32, 48, 64, 80, 96),
    (2, 3, 5, 6, 7, 9),
    (2, 4, 6, 10, 12, 14),
    (256, 512, 1024, 2048, 520, 4096),
)
#: Highest number of attr settings compared, and highest number of calls.
_MOST_SETTINGS, _MOST_CALLS = 10, 100
_PLAIN: Mapping[AttrType, Any] = {
    AttrType.INT: 1,
    AttrType.FLOAT: 1.0,
    AttrType.BOOL: False,
    AttrType.STRING: "",
    AttrType.LIST_INT: (1,),
    AttrType.LIST_FLOAT: (1.0,),
    AttrType.LIST_BOOL: (False,),
}


def compare_with_author(
    prototype: OpPrototype, relation: Relation, names: Mapping[str, str], binding: Binding
) -> str | None:
    """Compare a relation with the shapes that the installed package infers, on a handful of calls.

    Args:
        prototype: The operator.
        relation: Its relation, which may be in the schema's names.
        names: The relation's names by schema name, if they differ.
        binding: The operator's binding.

    Returns:
        A text on how far they agree; None if nothing could be compared.

    Raises:
        RegistrationError: They contradict each other; the message has both answers, and the call.
    """
    module = os.environ.get(VARIABLE)
    if not module or not _comparable(prototype):
        return None
    said = importlib.import_module(module).author_shapes(prototype)
    if said is None:
        return None
    source = said[0]
    theirs_to_ours = _relation_names(names, binding)
    key = (source, prototype, str(relation), tuple(theirs_to_ours.items()))
    if key not in _agreements:
        _agreements[key] = _compare(prototype, relation, theirs_to_ours, said)
    return _agreements[key]


#: Results by package, prototype, relation and the names between them.
_agreements: dict[Any, str | None] = {}


def _compare(
    prototype: OpPrototype, relation: Relation, names: Mapping[str, str], said: tuple[str, Any, Any]
) -> str | None:
    source, shapes, branches = said
    calls, broadcast = 0, ""
    alike = _without_broadcasting(relation)
    settings = _settings(prototype, relation, names, branches)
    for attrs, found in itertools.islice(_calls(prototype, relation, names, settings), _MOST_CALLS):
        answer = _answers(prototype, relation, attrs, found, names, shapes)
        if answer is None:
            continue
        calls += 1
        ours, theirs = answer
        differing = [n for n in ours if n in theirs and ours[n] is not None and ours[n] != theirs[n]]
        if not differing:
            continue
        answers = f"of {_call(found, attrs)} the relation makes {_shapes(ours, differing)}, the package {_shapes(theirs, differing)}"
        if not _takes(alike, found, {names.get(n, n): v for n, v in attrs.items()}):
            broadcast = broadcast or answers
            continue
        raise RegistrationError(
            f"{prototype.op_type}: the relation {relation} contradicts {source}: {answers}. Eager mode allocates by the relation, "
            "GE by the package: correct the one that is wrong. A Python function, shape=lambda …, is not compared"
        )
    if broadcast:
        _warn(
            f"{prototype.op_type}: the relation {relation} broadcasts its leading dimensions, and {source} does not: {broadcast}. "
            f"If the operator broadcasts, correct the package; if it does not, write shape={str(alike)!r}"
        )
    return f"{source} agrees in {calls} calls" if calls else None


def _without_broadcasting(relation: Relation) -> Relation:
    """Return the relation with leading dimensions that must be equal in all tensors."""
    return parse_relation(str(relation).replace("...", "*leading"))


def _takes(relation: Relation, found: RelationSample, attrs: Mapping[str, Any]) -> bool:
    try:
        relation.infer(found.shapes, found.dtypes, attrs)
    except (RelationError, ShapeError):
        return False
    return True


def _warn(message: str) -> None:
    """Warn at the line of the caller's own code that registers the operator."""
    package = str(Path(ascend_graph.__file__).parent)
    level = 2
    while (frame := sys._getframe(level)).f_code.co_filename.startswith(package) and frame.f_back is not None:
        level += 1
    warnings.warn(message, BindingWarning, stacklevel=level + 1)


def _comparable(prototype: OpPrototype) -> bool:
    """Return whether output shapes follow from shapes: no lists of tensors, and no input passed by value."""
    dynamic = any(p.kind is ParameterKind.DYNAMIC for p in (*prototype.inputs, *prototype.outputs))
    values = any(p.passed_as is not PassedAs.TENSOR for p in prototype.inputs)
    known = all(a.type in _PLAIN and (a.required or a.default_known) for a in prototype.attrs)
    return not dynamic and not values and known


def _relation_names(names: Mapping[str, str], binding: Binding) -> dict[str, str]:
    """Return the relation's names of inputs and attrs by prototype name."""
    return {theirs: names.get(own, own) for own, theirs in binding.argument_names().items()}


def _calls(
    prototype: OpPrototype, relation: Relation, names: Mapping[str, str], settings: Sequence[dict[str, Any]]
) -> Iterator[tuple[dict[str, Any], RelationSample]]:
    """Yield attrs in the prototype's names, and inputs that the relation takes with them."""
    optional = [names.get(p.name, p.name) for p in prototype.inputs if p.kind is ParameterKind.OPTIONAL]
    for attrs in settings:
        named = {names.get(n, n): v for n, v in attrs.items()}
        for number in range(2 * len(_SIZES)):
            sizes = _SIZES[number % len(_SIZES)]
            try:
                found = sample(relation, named, random.Random(number), sizes=sizes, dtypes=("float32",), tries=10)
            except (RelationSampleError, RelationError):
                continue
            absent = optional if number % 2 else []
            yield attrs, RelationSample({n: None if n in absent else s for n, s in found.shapes.items()}, found.dtypes)


def _settings(
    prototype: OpPrototype, relation: Relation, names: Mapping[str, str], of_package: Mapping[str, Sequence[Any]]
) -> list[dict[str, Any]]:
    """Return settings of all attrs: the defaults, and those with each value on which relation or package may branch."""
    usual = {a.name: _PLAIN[a.type] if a.required or a.default is None else a.default for a in prototype.attrs}
    branches, used = compared_values(relation), relation.free_names
    settings = [usual]
    for attr in prototype.attrs:
        name = names.get(attr.name, attr.name)
        values = [v for v in (*branches.get(name, ()), *of_package.get(attr.name, ())) if _is_of(attr, v)]
        if attr.type is AttrType.BOOL:
            values.append(not usual[attr.name])
        elif name not in used:  # a relation may forget what the package's shapes follow from
            values += _other_values(attr, usual[attr.name])
        settings += [usual | {attr.name: value} for value in dict.fromkeys(values) if value != usual[attr.name]]
    return settings[:_MOST_SETTINGS]


def _other_values(attr: Attr, usual: Any) -> tuple[Any, ...]:
    """Return values that an attr may have as well; the package refuses those that it may not."""
    if attr.type is AttrType.INT and type(usual) is int:
        return usual + 1, 2 * usual
    return ((0,), (1, 0)) if attr.type is AttrType.LIST_INT else ()


def _is_of(attr: Attr, value: Any) -> bool:
    return type(value) is type(_PLAIN[attr.type])


def _answers(
    prototype: OpPrototype,
    relation: Relation,
    attrs: Mapping[str, Any],
    found: RelationSample,
    names: Mapping[str, str],
    shapes: Any,
) -> tuple[dict[str, Any], Mapping[str, Any]] | None:
    """Return the output shapes by name from relation and package; None if either refuses the call."""
    mine = [names.get(p.name, p.name) for p in prototype.inputs]
    dtypes = [_dtype(p.dtypes) for p in prototype.inputs]
    fed = {name: dtype for name, dtype in zip(mine, dtypes, strict=True) if name in found.shapes}
    if any(dtype is None for dtype in dtypes):
        return None
    try:
        results = relation.infer(found.shapes, fed, {names.get(n, n): v for n, v in attrs.items()})
    except (RelationError, ShapeError):
        return None
    outputs = _outputs(prototype, relation)
    ours = {n: None if r is None else tuple(r[0]) for n, r in zip(outputs, results, strict=True) if n}
    try:
        theirs = shapes([found.shapes.get(n) for n in mine], dtypes, attrs)
    except RuntimeError:
        return None  # the author's function refuses the call; it may well be right
    return {n: shape for n, shape in ours.items() if n not in prototype.in_place}, theirs


def _outputs(prototype: OpPrototype, relation: Relation) -> list[str]:
    """Return the prototype's names of the relation's outputs; empty for an unknown one."""
    known = [p.name for p in prototype.outputs]
    if set(relation.outputs) <= set(known):
        return list(relation.outputs)
    return known if len(known) == len(relation.outputs) else [""] * len(relation.outputs)


def _dtype(dtypes: Sequence[DataType]) -> str | None:
    """Return PyTorch's name of the first dtype, or None if it has no such dtype."""
    usual = {
        DataType.FLOAT: "float32", DataType.FLOAT16: "float16", DataType.BF16: "bfloat16", DataType.INT32: "int32",
        DataType.INT64: "int64", DataType.INT8: "int8", DataType.INT16: "int16", DataType.UINT8: "uint8", DataType.BOOL: "bool",
        DataType.DOUBLE: "float64", DataType.COMPLEX64: "complex64", DataType.COMPLEX128: "complex128",
    }  # fmt: skip
    return usual.get(dtypes[0]) if dtypes else None


def _call(found: RelationSample, attrs: Mapping[str, Any]) -> str:
    inputs = [f"{name}[{', '.join(map(str, shape))}]" for name, shape in found.shapes.items() if shape is not None]
    return ", ".join([*inputs, *(f"{name}={value!r}" for name, value in attrs.items())])


def _shapes(shapes: Mapping[str, Any], names: Sequence[str]) -> str:
    return ", ".join(
        f"{name}[{', '.join(map(str, shapes[name]))}]" if shapes[name] is not None else f"no {name}" for name in names
    )
