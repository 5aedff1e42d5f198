"""Errors of the language: a wrong relation, and inputs that do not fit a relation."""

from __future__ import annotations

from ascend_graph.errors import AscendGraphError


class RelationError(AscendGraphError):
    """Wrong shape relation: its text does not parse, or its names mean nothing for the operator.

    The message shows the line and a caret under the position.
    """

    def __init__(self, message: str, source: str = "", at: int | None = None) -> None:
        self.source = source
        #: Offset of the fault in :attr:`source`, or ``None`` if no single position is at fault.
        self.at = at
        super().__init__(message if at is None else f"{message}\n{pointer(source, at)}")


class ShapeError(AscendGraphError, RuntimeError):
    """Mismatch of inputs and a relation; also a ``RuntimeError``, like the errors of torch's shape checks."""


def pointer(source: str, at: int) -> str:
    """Return the line of ``source`` at offset ``at``, with a caret under it; long lines are cut."""
    start = source.rfind("\n", 0, at) + 1
    end = source.find("\n", at)
    line, column = source[start : len(source) if end < 0 else end], at - start
    if column > 80:
        line, column = "…" + line[column - 60 :], 61
    return f"  {line[:120]}\n  {' ' * column}^"
