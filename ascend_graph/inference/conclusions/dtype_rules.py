"""Dtype rules of outputs: the simplest rule that explains all runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import torch

from ascend_graph.dispatch.meta_dtypes import TORCH
from ascend_graph.inference.domains import OperatorSignature
from ascend_graph.inference.observed import dtypes_of, shapes_of
from ascend_graph.inference.running import Returned
from ascend_graph.inference.templates import dtype_candidates
from ascend_graph.shapes import Relation, RelationError, ShapeError, parse_relation

#: Arguments and outputs of a call.
Call = tuple[Mapping[str, Any], tuple[Any, ...]]


def dtype_rules(signature: OperatorSignature, runs: Sequence[Call], *, by_case: bool = False) -> list[str] | None:
    """Return the simplest dtype rule of every output that explains the runs, or None if an output has none.

    Args:
        signature: The operator.
        runs: Its runs.
        by_case: If true, a rule may have any condition; a shape function answers enough questions to tell it from chance.
            Otherwise the only one is that an optional attr is absent.
    """
    rules = []
    for number in range(len(signature.outputs)):
        rule = next((c for c in dtype_candidates(signature) if dtype_holds(signature, c, number, runs)), None)
        rule = rule or _by_attr(signature, number, runs) or _by_numbers(signature, number, runs)
        if rule is None:
            rule = _by_case(signature, number, runs, _conditions(signature, runs) if by_case else _absences(signature))
        if rule is None:
            return None
        rules.append(rule)
    return rules


def dtype_holds(signature: OperatorSignature, rule: str, number: int, runs: Sequence[Call]) -> bool:
    names = [t.name for t in signature.tensors]
    relation = _try_parse(f"{', '.join(names)} -> y[]: {rule}")
    if relation is None:
        return False
    for values, outputs in runs:
        wanted = outputs[number]
        wanted = wanted[0] if isinstance(wanted, list) and wanted else wanted
        if not isinstance(wanted, Returned):
            continue
        shapes = {n: shapes_of(values[n]) for n in names if values[n] is not None}
        dtypes = {n: dtypes_of(values[n]) for n in names if values[n] is not None}
        attrs = {a.name: values[a.name] for a in signature.attrs}
        try:
            (result,) = relation.infer(shapes, dtypes, attrs, system=TORCH)
        except (ShapeError, RelationError, KeyError):
            return False
        assert isinstance(result, tuple)
        if result[1] != wanted.dtype:
            return False
    return True


def _by_attr(signature: OperatorSignature, number: int, runs: Sequence[Call]) -> str | None:
    """Return a rule by which a dtype attr decides the dtype, with another rule if the attr is absent."""
    for attr in signature.attrs:
        if attr.kind != "dtype":
            continue
        if dtype_holds(signature, attr.name, number, runs):
            return attr.name
        absent = [run for run in runs if run[0][attr.name] is None]
        for candidate in dtype_candidates(signature) if absent else ():
            rule = f"{candidate} if {attr.name} is None else {attr.name}"
            if dtype_holds(signature, candidate, number, absent) and dtype_holds(signature, rule, number, runs):
                return rule
        by_case = _by_case(signature, number, absent, _absences(signature)) if absent else None
        rule = f"({by_case}) if {attr.name} is None else {attr.name}"
        if by_case is not None and dtype_holds(signature, rule, number, runs):
            return rule
    return None


def _by_numbers(signature: OperatorSignature, number: int, runs: Sequence[Call]) -> str | None:
    """Return the common dtype of the tensors and of those optional numbers that are given, at most two."""
    tensors = ", ".join(t.name for t in signature.required)
    numbers = [a.name for a in signature.attrs if a.kind == "number" and a.optional]
    if not tensors or not 0 < len(numbers) <= 2:
        return None
    rule = f"promote({', '.join([tensors, *numbers])})"
    for name in numbers:
        others = [other for other in numbers if other != name]
        without = f"promote({', '.join([tensors, *others])})"
        absent = "".join(f"promote({tensors}) if {other} is None else " for other in others)
        rule = f"({absent}{without if others else f'promote({tensors})'}) if {name} is None else {rule}"
    return rule if dtype_holds(signature, rule, number, runs) else None


#: Conditions on a call, as text and as function.
Conditions = Iterator[tuple[str, Callable[[Mapping[str, Any]], bool]]]


def _by_case(signature: OperatorSignature, number: int, runs: Sequence[Call], conditions: Conditions) -> str | None:
    """Return a rule with one of some conditions, and a simple rule in both cases."""
    for condition, holds in conditions:
        cases = [run for run in runs if holds(run[0])], [run for run in runs if not holds(run[0])]
        if not all(cases):
            continue
        found = [_simple(signature, number, case) for case in cases]
        if found[0] is not None and found[1] is not None:
            rule = f"{found[0]} if {condition} else {found[1]}"
            if dtype_holds(signature, rule, number, runs):
                return rule
    return None


def _simple(signature: OperatorSignature, number: int, runs: Sequence[Call]) -> str | None:
    return next((c for c in dtype_candidates(signature) if dtype_holds(signature, c, number, runs)), None)


def _absences(signature: OperatorSignature) -> Conditions:
    """Yield the conditions that an optional attr is absent."""
    for attr in signature.attrs:
        if attr.optional and attr.kind != "dtype":
            yield f"{attr.name} is None", partial(_is_absent, attr.name)


def _conditions(signature: OperatorSignature, runs: Sequence[Call]) -> Conditions:
    """Yield conditions on a call: an attr is absent, a flag, a value of a string or integer, a dtype, a flag and a dtype."""
    yield from _absences(signature)
    flags = [a.name for a in signature.attrs if a.kind == "bool"]
    for name in flags:
        yield name, partial(_attr_is, name, True)
    for attr in signature.attrs:
        if attr.kind in ("str", "int"):
            seen = sorted({values[attr.name] for values, _ in runs if values[attr.name] is not None})
            for value in seen if len(seen) <= 12 else ():
                text = f'"{value}"' if isinstance(value, str) else str(value)
                yield f"{attr.name} == {text}", partial(_attr_is, attr.name, value)
        elif attr.kind == "dtype":
            for dtype in sorted({v for values, _ in runs if isinstance(v := values[attr.name], torch.dtype)}, key=str):
                yield f"{attr.name} == {str(dtype).removeprefix('torch.')}", partial(_attr_is, attr.name, dtype)
    single = [t for t in signature.required if not t.is_list]
    for a, b in combinations(single, 2):
        yield f"dtype({a.name}) == dtype({b.name})", partial(_same_dtype, a.name, b.name)
    for tensor in single:
        for dtype in sorted({dtypes_of(values[tensor.name]) for values, _ in runs}, key=str):
            text = f"dtype({tensor.name}) == {str(dtype).removeprefix('torch.')}"
            yield text, partial(_has_dtype, tensor.name, dtype)
            for name in flags:
                yield f"{name} and {text}", partial(_flag_and_dtype, name, tensor.name, dtype)


def _is_absent(name: str, values: Mapping[str, Any]) -> bool:
    return values[name] is None


def _attr_is(name: str, value: Any, values: Mapping[str, Any]) -> bool:
    return bool(values[name] == value)


def _same_dtype(a: str, b: str, values: Mapping[str, Any]) -> bool:
    return bool(values[a].dtype == values[b].dtype)


def _has_dtype(name: str, dtype: Any, values: Mapping[str, Any]) -> bool:
    return bool(values[name].dtype == dtype)


def _flag_and_dtype(flag: str, name: str, dtype: Any, values: Mapping[str, Any]) -> bool:
    return values[flag] is True and _has_dtype(name, dtype, values)


def _try_parse(text: str) -> Relation | None:
    with contextlib.suppress(RelationError):
        return parse_relation(text)
    return None
