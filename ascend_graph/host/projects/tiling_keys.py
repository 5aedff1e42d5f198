"""Kernels that are compiled once for each tiling key, as CANN compiles all of them.

A kernel that asks for its key in C++ (``TILING_KEY_IS``, ``if (TILING_KEY_VAR >= …)``) is compiled once for the host and asks
when it runs. One that asks the preprocessor (``#if TILING_KEY_VAR == …``) must be compiled for each key by itself. The keys are
those that its ``TILING_KEY_IS(…)`` name after the preprocessor has run with the macros of the dtypes.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping

#: A directive, with its continued lines.
_ASKED = re.compile(r"^[ \t]*#[ \t]*(?:el)?if(?:[^\n\\]|\\\n|\\.)*\bTILING_KEY_VAR\b", re.MULTILINE)
#: Macro that makes TILING_KEY_IS list its keys: see ascendc_host/basic_api/tiling.h.
LISTING = "ASCEND_GRAPH_LIST_TILING_KEYS"
_LISTED = re.compile(r"\bASCEND_GRAPH_TILING_KEY\s*\(")
_BRACKET = re.compile(r"[()]")
_SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b")
_LARGEST = (1 << 64) - 1
_BINARY: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}
_SHIFTS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


def asked_of_preprocessor(codes: Iterable[str]) -> bool:
    """Return whether a preprocessor condition in one of these texts without comments depends on the tiling key.

    >>> asked_of_preprocessor(["if (TILING_KEY_VAR == 1) {}"]), asked_of_preprocessor(["#if TILING_KEY_VAR == 1"])
    (False, True)
    """
    return any(_ASKED.search(code) is not None for code in codes)


def listed_keys(preprocessed: str) -> tuple[int, ...]:
    """Return the constant keys that ``TILING_KEY_IS(…)`` name in a preprocessed text, in order.

    >>> listed_keys("ASCEND_GRAPH_TILING_KEY(10UL); if (ASCEND_GRAPH_TILING_KEY((1 << 4) + 0x2)) f(ASCEND_GRAPH_TILING_KEY(n));")
    (10, 18)
    """
    found = (_constant(_argument(preprocessed, match.end())) for match in _LISTED.finditer(preprocessed))
    return tuple(dict.fromkeys(key for key in found if key is not None))


def _argument(text: str, begin: int) -> str:
    """Return the text up to the closing bracket."""
    depth = 1
    for bracket in _BRACKET.finditer(text, begin):
        depth += 1 if bracket[0] == "(" else -1
        if depth == 0:
            return text[begin : bracket.start()]
    return ""


def _constant(expression: str) -> int | None:
    # Octal numbers of C++ are syntax errors in Python; tiling keys are never octal.
    try:
        tree = ast.parse(_SUFFIX.sub(r"\1", " ".join(expression.split())), mode="eval")
        value = _value(tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return value if 0 <= value <= _LARGEST else None


def _value(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(node.value, bool):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left), _value(right))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SHIFTS:
            places = _value(right)
            if 0 <= places < 64:
                return _SHIFTS[type(op)](_value(left), places) & _LARGEST
    raise ValueError(f"{ast.unparse(node)} is not a constant; write a number")
