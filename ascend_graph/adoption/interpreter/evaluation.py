"""State of an evaluation: the function, its limits, and the outcome so far."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ascend_graph.adoption.interpreter.values import UNKNOWN, Choice, Element, Input, NewTensor, allocations
from ascend_graph.adoption.interpreter.variables import changed_names, decayed_names, mutated_names

#: Maximum number of statements and expressions that are evaluated for one function.
MAX_STEPS = 20000
#: Maximum nesting of calls into helper functions.
MAX_CALLS = 4
#: Maximum number of nodes in a value; a larger one is unknown.
MAX_NODES = 400
#: Maximum number of rounds of a loop that are run one by one.
MAX_ROUNDS = 16
#: Result of statements that raise.
RAISED = object()
#: Result of statements that come to their end.
NOTHING = object()


class TooManyStepsError(Exception):
    """Function whose evaluation exceeds its limits."""


@dataclass(slots=True)
class Callee:
    """A helper function: its parameters with defaults, and its statements."""

    parameters: tuple[tuple[str, ast.expr | None], ...]
    statements: list[ast.stmt]
    #: True if an integer division is written ``/``.
    is_cpp: bool
    #: Positions of the parameters that the function may assign: references and pointers that are not const.
    written: frozenset[int] = frozenset()
    #: Names of its own file, if it is in another than the function that calls it.
    scope: FileScope | None = None
    #: True if only that it assigns nothing of its arguments is known.
    is_opaque: bool = False
    _changed: frozenset[str] | None = None
    _mutated: frozenset[str] | None = None
    _decayed: frozenset[str] | None = None

    @property
    def mutated(self) -> frozenset[str]:
        """The variables whose lists the function changes in place."""
        if self._mutated is None:
            self._mutated = frozenset() if self.is_cpp else mutated_names(self.statements)
        return self._mutated

    @property
    def decayed(self) -> frozenset[str]:
        """The arrays that may be changed by another name."""
        if self._decayed is None:
            self._decayed = decayed_names(self.statements) if self.is_cpp else frozenset()
        return self._decayed

    @property
    def changed(self) -> frozenset[str]:
        """The variables that get another value after their first."""
        if self._changed is None:
            self._changed = changed_names([name for name, _ in self.parameters], self.statements)
        return self._changed


@dataclass(frozen=True, slots=True)
class FileScope:
    """Meaning of names in one file: its helper functions and its constants."""

    lookup: Lookup
    constants: Mapping[str, Any]


#: Mark in front of the name of a method of something unknown, such as a module that is loaded at run time.
METHOD = "."
#: Mark in front of the name of an operator that is called through torch's dispatcher.
DISPATCHED = "<dispatched>"
#: Looks a helper function up by its name as written and the number of arguments.
Lookup = Callable[[str, int], "Callee | None"]


@dataclass(slots=True)
class Outcome:
    """Result of a function: the returned value, and the arguments of the calls that were watched."""

    returned: Any = UNKNOWN
    calls: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    #: Ranks that checks at the top of the function require, by argument.
    ranks: dict[str, int] = field(default_factory=dict)
    #: Number of dimensions that every call certainly reads, by argument.
    read: dict[str, int] = field(default_factory=dict)
    #: Names that the function gives to sizes, as proposals.
    hints: dict[Any, str] = field(default_factory=dict)
    #: Least and greatest number of watched calls in a run; rounds of a loop that make all of their tensors count as one.
    runs: tuple[int, int] = (0, 0)
    #: True if rounds of a loop were counted as one.
    repeats: bool = False
    #: Tensors that statements change in place: arguments by name, and allocations that are changed after a watched call.
    changed: set[str | int] = field(default_factory=set)
    #: Allocations of watched calls that hold values before the call: zeros, a copy.
    filled: set[int] = field(default_factory=set)


class Evaluation(ABC):
    """Evaluation of one function: what it looks up, watches and counts."""

    def __init__(
        self,
        lookup: Lookup = lambda _, __: None,
        watched: Callable[[str, ast.Call], str | None] = lambda _, __: None,
        constants: Mapping[str, Any] | None = None,
    ) -> None:
        self.lookup, self.watched = lookup, watched
        self.constants = dict(constants or {})
        self.outcome = Outcome()
        self.steps = 0
        self.depth = 0
        #: Number of undecided conditions around the current statement.
        self.conditional = 0
        self.is_cpp = False
        #: The innermost expression that is not understood, of the expression that is evaluated.
        self.cause = ""
        #: Variables of the current function that get another value after their first.
        self.changed: frozenset[str] = frozenset()
        #: Variables whose lists the current function changes in place.
        self.mutated: frozenset[str] = frozenset()
        #: Arrays of the current function that may be changed by another name.
        self.decayed: frozenset[str] = frozenset()
        #: Memory of views: arguments by name, allocations by number.
        self.memory: dict[int, frozenset[str | int]] = {}
        #: Allocations that hold values: those that are not made by ``empty`` and the like.
        self.filled: set[int] = set()
        #: Variables at the end of the last call; None if it may have returned before.
        self.ended: Mapping[str, Any] | None = None

    def step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise TooManyStepsError

    def watch(self, name: str, values: Iterable[Any]) -> None:
        """Record a watched call."""
        given = tuple(values)
        self.outcome.calls.append((name, given))
        for one in given:
            if self.memory_of(one) & self.filled:
                self.outcome.filled |= {*allocations(one)}
        least, greatest = self.outcome.runs
        self.outcome.runs = least + 1, greatest + 1

    def memory_of(self, value: Any) -> frozenset[str | int]:
        """Return the memory that a tensor may be: arguments by name, allocations by number."""
        if isinstance(value, Input | Element):
            return frozenset({value.name})
        if isinstance(value, Choice):
            return self.memory_of(value.then) | self.memory_of(value.otherwise)
        if not isinstance(value, NewTensor):
            return frozenset()
        return self.memory.get(value.serial, frozenset({value.serial}))

    def change(self, value: Any) -> None:
        """Record that the values of a tensor are changed in place."""
        found = self.memory_of(value)
        self.filled |= {one for one in found if isinstance(one, int)}
        self.outcome.changed |= found if self.outcome.calls else {one for one in found if isinstance(one, str)}

    @abstractmethod
    def call(self, callee: Callee, arguments: list[Any], captured: Mapping[str, Any] | None = None) -> Any:
        """Return the result of a function that is called."""

    @abstractmethod
    def value(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        """Return the value of an expression."""
