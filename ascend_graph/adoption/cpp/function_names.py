"""Names and functions in the arguments of registrations."""

from __future__ import annotations

import re

from ascend_graph.adoption.cpp.functions import CppFunction, close_of, lambda_of, split, string_of
from ascend_graph.adoption.model import Findings, SourcePlace
from ascend_graph.sources.text import SourceText

_SCHEMA_CALLS = re.compile(r"\A\s*(?:TORCH_SELECTIVE_(?:SCHEMA|NAME)|(?:torch|c10)::schema)\s*\(")


def text_of(source: SourceText, written: str, offset: int) -> str | None:
    """Return the string that an argument is, after macros and constants of its file; None if it is computed."""
    inner = _SCHEMA_CALLS.match(written)
    if inner is not None:
        close = close_of(written, inner.end() - 1)
        given = split(written[inner.end() : close])
        written = given[0] if given else ""
    value = string_of(written)
    return value if value is not None else string_of(source.expanded(written, offset))


def function_of(written: str, place: SourcePlace, findings: Findings) -> CppFunction | None:
    """Return the function that an argument of a registration means: a name, a cast of one, a lambda; None if not found."""
    if written.lstrip().startswith("["):
        return lambda_of(written, place.file, place.line)
    name = function_name(written)
    if name is None:
        return None
    found = findings.function(name, place.file)
    if found is None and "(*)" in written:
        # A cast chooses among overloads by the types of the parameters.
        chosen = re.search(r"\(\s*\*\s*\)\s*\(([^()]*)\)", written)
        types = ["".join(one.split()) for one in split(chosen[1])] if chosen else []
        same = [
            one
            for one in findings.functions.get(name.rpartition("::")[2], ())
            if ["".join(p.type.split()) for p in one.parameters] == types
        ]
        found = same[0] if len(same) == 1 else None
    return found


def function_name(written: str) -> str | None:
    """Return the name of the function that an argument of ``impl`` means, or None.

    >>> function_name("TORCH_FN(ns::add)"), function_name("static_cast<void (*)(int)>(&ns::put)")
    ('ns::add', 'ns::put')
    """
    text = " ".join(written.split())
    while (
        match := re.fullmatch(r"(?:TORCH_FN|TORCH_FN_TYPE|std::move|torch::wrap|WRAP_FN)\s*\((.*)\)", text)
    ) is not None:
        text = match[1].strip()
    cast = re.fullmatch(r"static_cast\s*<.*>\s*\(\s*(&?[\w:\s]+)\)", text)
    text = cast[1] if cast else text
    text = text.strip().removeprefix("&").strip().removeprefix("::")
    return text if re.fullmatch(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*", text) else None
