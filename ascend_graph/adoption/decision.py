"""Decision on one operator: its registration, or the reason why there is none."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


class State(enum.Enum):
    """State of an operator after adoption."""

    BY_NAMES = "by names"
    WITH_ARGUMENTS = "with arguments"
    UNDECIDED = "undecided"
    IMPOSSIBLE = "impossible"


class RegistrationForm(enum.Enum):
    """Function that registers an operator."""

    OP = "register_op"
    KERNEL = "register_kernel"


@dataclass(frozen=True, slots=True)
class Decision:
    """Registration of one operator, or the reason why there is none."""

    #: ``namespace::name`` of the operator.
    name: str
    state: State
    form: RegistrationForm | None = None
    #: The first argument of the call: an op type or a function.
    subject: str = ""
    #: ``torch.ops…`` of the operator; empty if the registration defines it.
    eager: str = ""
    relation: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    override: bool = False
    #: One sentence for each decision, with its place.
    evidence: tuple[str, ...] = ()
    reason: str = ""
    place: str = ""
    #: Conditions of the preprocessor under which the operator exists.
    conditions: tuple[str, ...] = ()
    #: Files whose declarations the registration needs.
    sources: tuple[str, ...] = ()
    #: Parts of the repository that the registration replaces or describes: file, first and last line.
    replaced: tuple[tuple[str, int, int], ...] = ()
    #: True if the repository has a meta function of it.
    has_meta: bool = False
    #: The Python reference that a test of the repository compares with, as ``file:line``.
    reference: str = ""
    #: Lines of a meta function, if no relation expresses the outputs.
    meta: tuple[str, ...] = ()
    #: Lines of a backward function, if the repository's own gradient is one operator.
    backward: tuple[str, ...] = ()
    #: Schema and Python function of an operator that the module defines; empty if the repository does. Without a function it
    #: stands for ``eager``, whose schema does not say what it writes.
    defined_from: tuple[str, str] | tuple[()] = ()
    #: Schema of the operator as its source defines it; empty if there is none.
    schema: str = ""

    @property
    def needs_operator(self) -> bool:
        """True if the repository's library defines the operator that the registration names."""
        return bool(self.eager) and (not self.defined_from or not self.defined_from[1])

    @property
    def registers(self) -> bool:
        """True if the operator is registered."""
        return self.state in (State.BY_NAMES, State.WITH_ARGUMENTS)


def count(decisions: Iterable[Decision], state: State) -> int:
    """Return the number of decisions in a state."""
    return sum(one.state is state for one in decisions)
