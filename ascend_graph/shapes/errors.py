"""The two errors of the language: a relation that is wrong, and inputs that do not fit a relation."""

from __future__ import annotations

from ascend_graph.errors import AscendGraphError


class RelationError(AscendGraphError):
    """A shape relation is wrong: its text does not parse, or its names mean nothing for the operator.

    The message shows the line and a caret below the place.
    """

    def __init__(self, message: str, source: str = "", at: int | None = None) -> None:
        self.source = source
        #: Offset of the fault in :attr:`source`, or ``None`` where no single place is at fault.
        self.at = at
        super().__init__(message if at is None else f"{message}\n{pointer(source, at)}")


class ShapeError(AscendGraphError, RuntimeError):
    """Inputs do not fit a relation; also a ``RuntimeError``, as torch's own shape checks raise."""


def pointer(source: str, at: int) -> str:
    """The line of ``source`` that holds offset ``at``, with a caret below it; long lines are cut around it."""
    start = source.rfind("\n", 0, at) + 1
    end = source.find("\n", at)
    line, column = source[start : len(source) if end < 0 else end], at - start
    if column > 80:
        line, column = "…" + line[column - 60 :], 61
    return f"  {line[:120]}\n  {' ' * column}^"
