"""Calls of functions and their helpers: aclnn functions and launches of kernels."""

from __future__ import annotations

import re

from ascend_graph.adoption.cpp.functions import CppFunction, close_of, split
from ascend_graph.adoption.model import Findings
from ascend_graph.sources.kernels import LITERAL

_ACLNN = re.compile(LITERAL + r"|\b(?P<function>aclnn(?!Status\b)[A-Z0-9]\w*?)(?:GetWorkspaceSize)?\b(?!\s*\.)")
_LAUNCH = re.compile(
    r"\bACLRT_LAUNCH_KERNEL\s*\(\s*(\w+)|\baclrtlaunch_(\w+)\s*\(|\b(\w+)\s*(?:<[^<>;{}]*>)?\s*<<<|\b[A-Z]\w*KERNEL\w*\s*\(\s*(\w+)\s*,"
)
_LAUNCHED = re.compile(
    r"\bACLRT_LAUNCH_KERNEL\s*\(\s*(?P<macro>\w+)\s*\)\s*\(|\baclrtlaunch_(?P<plain>\w+)\s*\(|\b(?!ACLRT_)[A-Z]\w*KERNEL\w*\s*(?P<opened>\()\s*(?P<command>\w+)\s*,|\b(?P<angled>\w+)\s*(?:<[^<>;{}]*>)?\s*<<<[^;{}]*?>>>\s*\("
)
_COMMAND = re.compile(r"\.\s*Name\s*\(\s*\"(\w+)\"\s*\)")
_CALLED = re.compile(r"([A-Za-z_][\w:]*)\s*\(")
#: Maximum nesting of helper functions in which calls are looked for.
_MAX_DEPTH = 3


def helpers_of(function: CppFunction, findings: Findings) -> list[CppFunction]:
    """Return the functions of the repository that a function calls, and those that they call."""
    found: list[CppFunction] = []
    seen = {function.name}

    def visit(one: CppFunction, depth: int) -> None:
        for called in dict.fromkeys(_CALLED.findall(one.body)):
            helper = findings.function(called, one.file)
            if helper is not None and helper.name not in seen:
                seen.add(helper.name)
                found.append(helper)
                if depth < _MAX_DEPTH:
                    visit(helper, depth + 1)

    visit(function, 1)
    return found


def reached(function: CppFunction, findings: Findings) -> tuple[set[str], set[str]]:
    """Return the aclnn functions and the kernels that a function and its helpers call."""
    functions: set[str] = set()
    launches: set[str] = set()
    for one in (function, *helpers_of(function, findings)):
        functions.update(match["function"] for match in _ACLNN.finditer(one.body) if match["function"])
        texts = findings.constants.get(one.file, {})
        for match in re.finditer(r"<\s*([A-Z][A-Z0-9_]*)\s*>\s*\(", one.body):
            value = getattr(texts.get(match[1]), "value", None)
            if isinstance(value, str) and value.startswith("aclnn"):
                functions.add(value)
        launches |= launches_of(one)
    return functions, launches


def commands_of(function: CppFunction, findings: Findings) -> set[str]:
    """Return the GE operators that a function and its helpers run as commands: ``OpCommand cmd; cmd.Name("Add")``."""
    bodies = [one.body for one in (function, *helpers_of(function, findings))]
    return {name for body in bodies if "OpCommand" in body or ".Run(" in body for name in _COMMAND.findall(body)}


def launches_of(function: CppFunction) -> set[str]:
    """Return the kernels that a function itself launches."""
    return {next(part for part in match.groups() if part) for match in _LAUNCH.finditer(function.body)}


def launch_arguments(function: CppFunction) -> list[tuple[str, list[str]]]:
    """Return the kernels that a function itself launches, each with its arguments as written."""
    found = []
    for match in _LAUNCHED.finditer(function.body):
        opening = match.start("opened") if match["command"] else match.end() - 1
        close = close_of(function.body, opening)
        given = split(function.body[opening + 1 : close]) if close > 0 else []
        name = match["macro"] or match["plain"] or match["angled"] or match["command"]
        # Number of blocks and stream come first where they are not in <<<…>>>; a macro takes the kernel and the blocks.
        found.append((name, given if match["angled"] else given[2:]))
    return found
