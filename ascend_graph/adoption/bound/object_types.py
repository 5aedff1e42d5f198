"""Types of parameters that are any Python object: what the function casts them to."""

from __future__ import annotations

import re

from ascend_graph.adoption.cpp.functions import CppFunction, CppParameter
from ascend_graph.adoption.model import Findings

_OBJECT = re.compile(r"\A(?:const\s+)?(?:py|pybind11)\s*::\s*object\s*&?\Z")
_CALL = r"(?P<helper>[A-Za-z_][\w:]*)\s*(?:<(?P<given>[^;()]*?)>)?\s*\(\s*"
_MAX_DEPTH = 3


def is_object(parameter: CppParameter) -> bool:
    """Return whether a parameter takes any Python object."""
    return _OBJECT.match(parameter.type.strip()) is not None


def cast_type(function: CppFunction, parameter: CppParameter, findings: Findings, depth: int = 1) -> tuple[str, bool]:
    """Return the C++ type that a function casts an object to, and whether it takes None.

    The type is empty if the function does something else with the object as well, or casts it to several types.
    """
    name = re.escape(parameter.name)
    kinds: set[str] = set()
    optional = False
    body = function.body
    for match in re.finditer(rf"(?<![\w.>]){name}\b", body):
        before, after = body[: match.start()], body[match.end() :]
        cast = re.match(r"\s*\.\s*cast\s*<(.*?)>\s*\(\s*\)", after, re.DOTALL)
        helper = re.search(_CALL + r"\Z", before[-160:])
        if cast is not None:
            kinds.add(" ".join(cast[1].split()))
        elif re.match(r"\s*\.\s*is_none\s*\(", after):
            optional = True
        elif helper is not None and re.match(r"\s*\)", after) and depth < _MAX_DEPTH:
            found = findings.function(helper["helper"], function.file, 1)
            if found is None or len(found.parameters) != 1:
                return "", False
            kind, takes_none = cast_type(found, found.parameters[0], findings, depth + 1)
            # optional_value<bool>(x): the helper's parameter of its template.
            kinds.add(helper["given"] if helper["given"] and re.fullmatch(r"[A-Z]\w*", kind) else kind)
            optional |= takes_none
        else:
            return "", False
    return (kinds.pop(), optional) if len(kinds) == 1 else ("", False)
