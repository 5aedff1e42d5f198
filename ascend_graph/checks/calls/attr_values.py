"""Attr values worth a call, from every source that names them, and their coverage by calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from ascend_graph.checks.calls.constants import Constants, constants_of
from ascend_graph.checks.calls.samples import Sample, is_tensor
from ascend_graph.checks.report import AttrCoverage
from ascend_graph.host import open_package
from ascend_graph.prototypes import package_directories
from ascend_graph.registration.registered import RegisteredOp
from ascend_graph.shapes.compared import compared_values

#: Integers that are tried for an attr after a refused value: an author who checks it has a list.
_PROBES = (*range(17), 32, 64, 128, 256)
_WORD = re.compile(r"[A-Za-z_][\w.+-]{0,31}|-?\d+(?:\.\d+)?")


def attrs_of(schema: Any) -> list[Any]:
    """Return the arguments of a schema that are neither tensors nor numbers of a tensor."""
    return [a for a in schema.arguments if not is_tensor(a)]


def known_values(op: RegisteredOp, said: Constants | None) -> dict[str, list[Any]]:
    """Return by argument the values that prototype, relation, reference and package name.

    Args:
        op: The operator.
        said: Facts that the reference states about its arguments, or None.
    """
    names = op.binding.argument_names()
    arguments = list(op.overload._schema.arguments)
    order = [a.name for a in arguments]
    relation = {} if op.relation is None else compared_values(op.relation)
    defaults = _of_prototype(op)
    kernel, texts = _of_package(op, order)
    found: dict[str, list[Any]] = {}
    for argument in attrs_of(op.overload._schema):
        name = argument.name
        candidates = [
            *(() if said is None else said.values.get(name, ())),
            *relation.get(name, ()),
            *(relation.get(names[name], ()) if names.get(name, name) != name else ()),
            *defaults.get(name, ()),
            *(() if kernel is None else kernel.values.get(name, ())),
            *texts,
        ]
        fitting = _fitting(argument, candidates)
        if fitting:
            found[name] = fitting
    return found


def _of_prototype(op: RegisteredOp) -> dict[str, list[Any]]:
    """Return the prototype's attr defaults by argument; a schema may have changed them."""
    if op.prototype is None:
        return {}
    names = op.binding.argument_names()
    defaults = {a.name: a.default for a in op.prototype.attrs if a.default_known and a.default is not None}
    return {name: [defaults[theirs]] for name, theirs in names.items() if theirs in defaults}


def _of_package(op: RegisteredOp, order: Sequence[str]) -> tuple[Constants | None, Sequence[str]]:
    """Return the constants of the installed package's Python kernel, and the strings its C++ code compares with."""
    for directory in package_directories():
        package = open_package(directory.parent.parent)
        if package is not None and op.op_type in package.metadata:
            kernel = package.python_function(op.op_type)
            texts = package.metadata[op.op_type].get("compared") or ()
            return None if kernel is None else constants_of(kernel, order), texts
    return None, ()


def _fitting(argument: Any, candidates: Iterable[Any]) -> list[Any]:
    """Return the candidates that fit an argument's type, each once, without its default."""
    type_ = argument.type.getElementType() if isinstance(argument.type, torch.OptionalType) else argument.type
    text, real = str(type_), str(argument.real_type)
    default = argument.default_value if argument.has_default_value() else None
    found: list[Any] = []
    for candidate in candidates:
        value = candidate
        if "ScalarType" in real:
            fits = isinstance(value, torch.dtype)
        elif text == "bool":
            fits = isinstance(value, bool)
        elif text == "int":
            fits = type(value) is int and -(2**63) <= value < 2**63
        elif text in ("float", "number"):
            fits = type(value) in (int, float)
            value = float(value) if fits and text == "float" else value
        elif text == "str":
            fits = isinstance(value, str)
        elif text.startswith("List["):
            item = {"int": int, "float": float, "bool": bool, "str": str}.get(text[5:-1])
            fits = isinstance(value, tuple | list) and item is not None and all(type(v) is item for v in value)
            value = list(value) if fits else value
        else:
            fits = False
        if fits and value != default and not any(value == one for one in found):
            found.append(value)
    return found


def proposed(argument: Any, refusals: Sequence[str]) -> list[Any]:
    """Return values of an attr to try after refusals: those that the messages name, and small integers."""
    text = str(argument.type)
    words = [word for message in refusals for word in _WORD.findall(message)]
    numbers: list[Any] = [int(word) for word in words if re.fullmatch(r"-?\d+", word)]
    candidates: list[Any] = [*words, *(n for n in numbers if abs(n) <= 1 << 16)]
    if text in ("int", "Optional[int]"):
        candidates = [*(n for n in numbers if abs(n) <= 1 << 16), *_PROBES]
    elif text not in ("str", "Optional[str]"):
        return []
    return _fitting(argument, candidates)[:64]


def coverage(
    schema: Any,
    ran: Sequence[Sample],
    refused: Sequence[tuple[Sample, str]],
    known: Mapping[str, Sequence[Any]],
    reference: Constants | None,
) -> tuple[AttrCoverage, ...]:
    """Return for each attr which of its values the calls had and which they lacked."""
    found = []
    for argument in attrs_of(schema):
        name = argument.name
        tried = _distinct(_value(schema, name, sample) for sample in ran)
        refusals: list[tuple[Any, str]] = []
        for sample, why in refused:
            value = _value(schema, name, sample)
            alone = sample.why == f"{name}={value!r}"
            if alone and not _among(value, tried) and not _among(value, [v for v, _ in refusals]):
                refusals.append((value, why))
        out = [v for v in known.get(name, ()) if not _among(v, tried) and not _among(v, [r for r, _ in refusals])]
        remarks = []
        if len(tried) < 2 and not out and str(argument.type) not in ("bool", "Optional[bool]"):
            remarks.append("nothing names another value: give samples= with the others that there are")
        if reference is not None and reference.read is not None and name not in reference.read:
            remarks.append("the reference does not read it")
        found.append(AttrCoverage(name, tuple(tried), tuple(refusals), tuple(out), "; ".join(remarks)))
    return tuple(found)


def _value(schema: Any, name: str, sample: Sample) -> Any:
    """Return the value that a sample gives an argument, or its default if the sample leaves it out."""
    if name in sample.kwargs:
        return sample.kwargs[name]
    positional = [a for a in schema.arguments if not a.kwarg_only]
    for argument, value in zip(positional, sample.args, strict=False):
        if argument.name == name:
            return value
    return next(a.default_value for a in schema.arguments if a.name == name)


def _distinct(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if not _among(value, found):
            found.append(value)
    return found


def _among(value: Any, others: Sequence[Any]) -> bool:
    return any(type(value) is type(other) and value == other for other in others)
