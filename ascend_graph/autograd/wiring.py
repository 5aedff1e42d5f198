"""Wiring of a gradient operator, which an author writes in one line.

    backward = SquareGrad
    backward = SquareGrad(grad: grad_y, eps: epsilon) -> out: x; unused: mode; default: version; constant: index

Matching names need not be written. An argument of the gradient operator takes an input, output or attr of the forward
operator or ``grad_<output>``; a return, by name or number, is the gradient of an input. ``unused`` are attrs of the
forward operator that the gradient does not depend on, ``default`` arguments of the gradient operator that stay at their
defaults, ``constant`` inputs and outputs of the forward operator that are not differentiated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ascend_graph.errors import AscendGraphError

_FORM = "Op, or Op(argument: source, …) -> return: input, …; unused: attr, …; default: argument, …; constant: output, …"
_SECTIONS = ("unused", "default", "constant")
_OPERATOR = re.compile(r"\s*([A-Za-z_][\w.]*(?:::[A-Za-z_][\w.]*)?)\s*(?:\(([^()]*)\))?\s*(?:->([^;]*))?\Z")
_PAIR = re.compile(r"\s*(\w+)\s*:\s*(\w+)\s*\Z")
_NAME = re.compile(r"\s*(\w+)\s*\Z")


class GradientError(AscendGraphError):
    """Error of a gradient that cannot be registered, or whose operator cannot be bound to the forward operator."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """Gradient operator by name, and the matches that names do not settle."""

    operator: str
    #: Pairs of an argument of the gradient operator and its source.
    arguments: tuple[tuple[str, str], ...] = ()
    #: Pairs of a return and the input that it is the gradient of.
    returns: tuple[tuple[str, str], ...] = ()
    unused: tuple[str, ...] = ()
    default: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = self.operator
        if self.arguments:
            text += f"({', '.join(f'{a}: {b}' for a, b in self.arguments)})"
        if self.returns:
            text += f" -> {', '.join(f'{a}: {b}' for a, b in self.returns)}"
        for section in _SECTIONS:
            if names := getattr(self, section):
                text += f"; {section}: {', '.join(names)}"
        return text


def parse_wiring(text: str) -> Wiring:
    """Read a line such as ``SquareGrad(dy: grad_y) -> dx: x; unused: mode``.

    Raises:
        GradientError: It has another form, or sets something twice.

    >>> print(parse_wiring("SquareGrad ( dy:grad_y ) ; constant: index"))
    SquareGrad(dy: grad_y); constant: index
    >>> parse_wiring("SquareGrad(dy)")
    Traceback (most recent call last):
        ...
    ascend_graph.autograd.wiring.GradientError: backward = SquareGrad(dy): 'dy' is not a 'name: name'; write Op, or ...
    """

    def refuse(what: str) -> GradientError:
        return GradientError(f"backward = {text}: {what}; write {_FORM}")

    head, *tails = text.split(";")
    match = _OPERATOR.match(head)
    if match is None:
        raise refuse(f"{head.strip()!r} names no operator")

    def pairs(listed: str | None) -> tuple[tuple[str, str], ...]:
        found: dict[str, str] = {}
        for item in (listed or "").split(",") if (listed or "").strip() else ():
            pair = _PAIR.match(item)
            if pair is None:
                raise refuse(f"{item.strip()!r} is not a 'name: name'")
            if pair[1] in found:
                raise refuse(f"{pair[1]} is said twice")
            found[pair[1]] = pair[2]
        return tuple(found.items())

    sections: dict[str, tuple[str, ...]] = {}
    for tail in tails:
        name, colon, listed = tail.partition(":")
        name = name.strip()
        if not colon or name not in _SECTIONS or name in sections:
            raise refuse(f"{tail.strip()!r} is not one of {', '.join(f'{s}: …' for s in _SECTIONS)}, each once")
        items = [_NAME.match(item) for item in listed.split(",")]
        if None in items:
            raise refuse(f"{listed.strip()!r} is not a list of names")
        sections[name] = tuple(dict.fromkeys(item[1] for item in items if item is not None))
    return Wiring(match[1], pairs(match[2]), pairs(match[3]), **sections)
