"""Functions that macros register for a device under a key, and macros that call what is registered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from ascend_graph.adoption.cpp.functions import CppFunction
from ascend_graph.adoption.model import Findings

_REGISTERED = re.compile(
    r"\bREGISTER_(?P<in_name>\w*?)_?IMPL\s*\(\s*(?P<key>\w+)\s*,\s*(?:(?P<device>\w+)\s*,\s*)?(?P<function>[\w:]+)\s*\)"
)
_DISPATCHED = re.compile(r"\b(?P<macro>\w*DISPATCH\w*)\s*\(\s*(?P<key>\w+)\s*,")
#: Names of the NPU in such macros.
_DEVICES = frozenset({"NPU", "PrivateUse1", "XLA"})


def resolve_dispatches(codes: Iterable[str], findings: Findings) -> None:
    """Let functions that dispatch by a key call the function that is registered for the NPU under it.

    ``DISPATCH_DEVICE_IMPL(key, x)`` is ``function(x)`` after ``REGISTER_DEVICE_IMPL(key, PrivateUse1, function)``.
    """
    chosen: dict[str, str] = {}
    for code in codes:
        for match in _REGISTERED.finditer(code):
            findings.dispatch_keys.add(match["key"])
            if (match["device"] or match["in_name"]) in _DEVICES:
                chosen[match["key"]] = match["function"]
    if not findings.dispatch_keys:
        return

    def called(match: re.Match[str]) -> str:
        return f"{chosen[match['key']]}(" if match["key"] in chosen else match.group()

    for functions in findings.functions.values():
        functions[:] = [_resolved(one, called) for one in functions]


def _resolved(function: CppFunction, called: Callable[[re.Match[str]], str]) -> CppFunction:
    if "DISPATCH" not in function.body:
        return function
    variants = tuple(_DISPATCHED.sub(called, one) for one in function.variants)
    return replace(function, body=_DISPATCHED.sub(called, function.body), variants=variants)
