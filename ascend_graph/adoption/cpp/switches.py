"""Control flow of C++ whose body runs once: ``switch``, ``try`` with handlers that raise, ``do … while (false)``."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from ascend_graph.adoption.cpp.expressions import expression
from ascend_graph.sources.kernels import LITERAL

_PART = re.compile(LITERAL + r"|(?P<mark>[(){}\[\]])|(?P<label>\b(?:case\b(?:[^:;{}]|::)*|default\s*):(?!:))")
#: Functions that raise whatever they are given, and those that do if it is false.
_RAISING, _CHECKS = frozenset({"AT_ERROR", "TORCH_CHECK_NOT_IMPLEMENTED"}), frozenset({"TORCH_CHECK"})


def cases_of(text: str) -> list[tuple[list[str], str]] | None:
    """Return the values of each case of a ``switch`` with its code; no values stand for ``default``.

    Args:
        text: The code between the braces.

    Returns:
        The cases in order, or None if code stands in front of them or the default is not the last.

    >>> cases_of("case 1: case at::kFloat: f(); break; default: g();")
    [(['1', 'at::kFloat'], 'f(); break;'), ([], 'g();')]
    """
    depth, begin = 0, 0
    labels: list[str] = []
    found: list[tuple[list[str], str]] = []
    for match in _PART.finditer(text):
        depth += ((match["mark"] or "") in tuple("([{")) - ((match["mark"] or "") in tuple(")]}"))
        if match["label"] is None or depth:
            continue
        code = text[begin : match.start()].strip()
        if code and not labels:
            return None
        if code:
            found.append((labels, code))
            labels = []
        labels = [*labels, match["label"].rstrip(" \t\n:").removeprefix("case").strip()]
        begin = match.end()
    found.append((labels, text[begin:].strip()))
    plain = [([] if "default" in given else given, code) for given, code in found]
    is_last = all(given for given, _ in plain[:-1])
    return plain if labels and is_last else None


def always_raises(body: list[ast.stmt]) -> bool:
    """Return whether statements end by an error, and leave the function in no other way."""
    if any(isinstance(one, ast.Return) for part in body for one in ast.walk(part)):
        return False
    calls = [one.value for one in body if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)]
    named = [(one.func.id, one.args) for one in calls if isinstance(one.func, ast.Name)]
    return any(isinstance(one, ast.Raise) for one in body) or any(
        name in _RAISING or (name in _CHECKS and arguments and getattr(arguments[0], "value", None) is False)
        for name, arguments in named
    )


def run_once(
    word: str,
    header: str,
    text: str,
    place: tuple[int, list[ast.stmt], int],
    statement: Callable[[int], tuple[list[ast.stmt], int]],
    block: Callable[[str], list[ast.stmt]],
) -> tuple[list[ast.stmt], int] | None:
    """Return the statements of a part that runs once, and its end; None for a loop, or if that is not certain.

    Args:
        word: The word that it begins with.
        header: The code in its brackets.
        text: The code around it.
        place: Where its body begins, the statements of that, and where it ends.
        statement: Reads the statement at a position of the text.
        block: Reads statements.
    """
    start, body, end = place
    if word == "do" and re.fullmatch(r"\s*\(\s*(?:0|false)\s*\)\s*", header):
        return None if _jumps(body) else (body, end)
    if word == "try":
        last = end
        while (handler := re.compile(r"\s*catch\s*\([^()]*\)").match(text, last)) is not None:
            caught, last = statement(handler.end())
            if not always_raises(caught):
                return None
        return (body, last) if last > end else None
    cases = cases_of(text[start : end - 1].strip()[1:]) if word == "switch" else None
    made: list[ast.stmt] = []
    for number, (labels, code) in enumerate(reversed(cases or [])):
        inner = _without_break(block(code), is_last=number == 0)
        if inner is None:
            return None
        tests: list[ast.expr] = [ast.Compare(expression(header), [ast.Eq()], [expression(one)]) for one in labels]
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)
        made = [ast.If(test, inner or [ast.Pass()], made)] if labels else inner
    return (made, end) if cases else None


def _jumps(body: list[ast.stmt]) -> int:
    return sum(isinstance(one, ast.Break | ast.Continue) for part in body for one in ast.walk(part))


def _without_break(body: list[ast.stmt], *, is_last: bool) -> list[ast.stmt] | None:
    """Return the statements of a case without the ``break`` at their end; None if they may go on with the next case."""
    for number, one in enumerate(body):
        # Behind it are marks alone, such as that the variables of a block end.
        if isinstance(one, ast.Break):
            body = [*body[:number], *body[number + 1 :]]
            return None if _jumps(body) else body
    ended = is_last or (bool(body) and isinstance(body[-1], ast.Return)) or always_raises(body)
    return body if ended and not _jumps(body) else None
