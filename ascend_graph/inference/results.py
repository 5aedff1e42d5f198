"""Results of a search: the relation found with the evidence for it, or the error."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_graph.errors import AscendGraphError
from ascend_graph.shapes import Relation


class InferenceError(AscendGraphError):
    """Error of a search without a relation; the message has the table of domains tried and the line to write."""


class NarrowRelationWarning(UserWarning):
    """Warning that a relation found by running refuses shapes that the kernel takes; the text has an example."""


@dataclass(frozen=True, slots=True)
class DomainTrial:
    """Row of the table: a domain, its number of runs and the outcome."""

    domain: str
    runs: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Inferred:
    """Relation found by running, and the evidence for it."""

    relation: Relation
    runs: int
    trials: tuple[DomainTrial, ...] = ()
    #: Message about an input that the kernel takes and the relation refuses, if there was one.
    narrower: str = ""
    #: True if such an input has only tensors with dimensions and elements, and its shapes alone fall outside.
    narrow: bool = False
    #: Notes on what was found beside the relation, such as outputs whose strides it leaves open.
    notes: tuple[str, ...] = ()
    #: What a shape function takes beyond the relation.
    limits: tuple[str, ...] = ()
    #: False if a shape function does not answer for some inputs.
    answers_all: bool = True
    #: Number of rank combinations with such an input.
    refused: int = 0

    def __str__(self) -> str:
        notes = [note for note in (self.narrower, *self.limits, *self.notes) if note]
        return "\n".join([f'shape="{self.relation}"', *(f"# {note}" for note in notes)])
