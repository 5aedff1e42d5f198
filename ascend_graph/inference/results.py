"""What a search returns: the relation found, the evidence for it, and why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_graph.errors import AscendGraphError
from ascend_graph.shapes import Relation


class InferenceError(AscendGraphError):
    """No relation was found by running; the message has the table of what was tried and the line to write instead."""


class NarrowRelationWarning(UserWarning):
    """A relation found by running refuses shapes that the kernel takes; the text has an example of them."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One row of the table: a domain, how many runs it had, and what came of it."""

    domain: str
    runs: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Inferred:
    """A relation found by running, and the evidence for it."""

    relation: Relation
    runs: int
    trials: tuple[Trial, ...] = ()
    #: An input that the kernel runs on and the relation refuses, if one was met.
    narrower: str = ""
    #: Whether that is so for shapes of tensors with dimensions, whatever the attrs are.
    narrow: bool = False
    #: Outputs whose strides the relation does not say, or that are an input at times.
    strides: tuple[str, ...] = ()
    #: How many numbers of dimensions were met with which this is so.
    refused: int = 0

    def __str__(self) -> str:
        notes = [note for note in (self.narrower, *self.strides) if note]
        return "\n".join([f'shape="{self.relation}"', *(f"# {note}" for note in notes)])
