"""Forward operator, gradient operator → which argument of the gradient is what, and where its returns go.

Decided once, by names and by what the author says beside them; Python's autograd and generated C++ both follow the value.
Nothing is left over silently: an attr of the forward operator that the gradient does not take, an argument of the gradient
that nothing feeds, a differentiable output whose gradient it does not take are refused, with the line to write.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ascend_graph.binding.synonyms import are_synonyms, normalize
from ascend_graph.gradients.signature import Argument, Result, Signature
from ascend_graph.gradients.wiring import GradientError, Wiring


class Feed(enum.Enum):
    """What feeds an argument of a gradient operator."""

    INPUT = "input"
    OUTPUT = "output"
    GRADIENT = "gradient of an output"
    ATTR = "attr"


@dataclass(frozen=True, slots=True)
class Source:
    """An argument, an output, or the gradient of an output, by its position in the forward operator."""

    feed: Feed
    position: int


@dataclass(frozen=True, slots=True)
class GradientPlan:
    """How a gradient operator is called, and where its returns go."""

    #: Per argument of the gradient operator what feeds it; None where it stays at its default.
    arguments: tuple[Source | None, ...]
    #: Per argument of the forward operator the return that is its gradient.
    gradient_of: tuple[int | None, ...]
    #: The outputs that are marked as not differentiable.
    constant: tuple[int, ...]
    #: The tensor arguments that get no gradient and are not said to need none: a call must not ask for one.
    undifferentiated: tuple[int, ...]

    def saved(self, feed: Feed) -> tuple[int, ...]:
        """What has to be kept of the forward call, each once."""
        return tuple(sorted({s.position for s in self.arguments if s is not None and s.feed is feed}))


def plan_gradient(forward: Signature, backward: Signature, wiring: Wiring) -> GradientPlan:
    """Bind a gradient operator to its forward operator.

    Args:
        forward: The operator that is differentiated.
        backward: The operator that computes the gradients.
        wiring: What the author says. Without it an argument is what it is called like: an input, output or attr of the forward
            operator, or the gradient of an output (``grad_y``, ``y_grad``, ``dy``; of the only one also ``grad``,
            ``grad_output`` and the like); a return is the gradient of an input (``grad_x``, ``x_grad``, ``dx``).
            Synonyms such as ``eps`` and ``epsilon`` count where they are the only possible ones.

    Raises:
        GradientError: Something is left over, ambiguous or contradictory; the message has the line to write.
    """
    return _Planner(forward, backward, wiring).plan()


def gradient_names(name: str) -> frozenset[str]:
    """What the gradient of something is called, normalized.

    >>> sorted(gradient_names("y_0"))
    ['dy0', 'dy0out', 'grady0', 'grady0out', 'y0grad', 'y0gradout']
    """
    base = normalize(name)
    return frozenset({f"grad{base}", f"{base}grad", f"d{base}", f"grad{base}out", f"{base}gradout", f"d{base}out"})


class _Planner:
    def __init__(self, forward: Signature, backward: Signature, wiring: Wiring) -> None:
        self.forward, self.backward, self.wiring = forward, backward, wiring
        self.problems: list[str] = []
        self.line = wiring

    def plan(self) -> GradientPlan:
        for side in (self.forward, self.backward):
            if written := [a.name for a in side.arguments if a.written]:
                raise self.refuse(
                    f"{side.name} writes {', '.join(written)} in place; gradients are for operators that write nothing"
                )
        self.check_names()
        constant = {n for n, r in enumerate(self.forward.results) if r.name in self.wiring.constant}
        arguments = self.arguments(constant)
        gradient_of = self.gradient_of()
        self.check_attrs(arguments)
        self.check_outputs(arguments, constant)
        if self.problems:
            raise self.refuse("; ".join(self.problems), f"\nWrite: backward = {self.line}")
        said = {n for n, a in enumerate(self.forward.arguments) if self.is_listed(a, self.wiring.constant)}
        return GradientPlan(
            tuple(arguments),
            tuple(gradient_of),
            tuple(sorted(constant)),
            tuple(
                n
                for n, a in enumerate(self.forward.arguments)
                if a.is_tensor and gradient_of[n] is None and n not in said
            ),
        )

    def refuse(self, what: str, line: str = "") -> GradientError:
        return GradientError(f"{self.backward.name} as the gradient of {self.forward.name}: {what}{line}")

    # ----------------------------------------------------------------------------------------------------- what is said

    @staticmethod
    def is_listed(argument: Argument, names: tuple[str, ...]) -> bool:
        return argument.name in names or (bool(argument.also) and argument.also in names)

    def check_names(self) -> None:
        """Refuse names in the wiring that are nobody's."""
        wiring, results = self.wiring, self.forward.results
        attrs = [a for a in self.forward.arguments if not a.is_tensor]
        tensors = [a for a in self.forward.arguments if a.is_tensor]
        for section, names, arguments, more in (
            ("unused", wiring.unused, attrs, ()),
            ("constant", wiring.constant, tensors, tuple(r.name for r in results)),
            ("default", wiring.default, self.backward.arguments, ()),
            ("(argument: …)", tuple(a for a, _ in wiring.arguments), self.backward.arguments, ()),
        ):
            known = {n for a in arguments for n in (a.name, a.also) if n} | set(more)
            if strangers := [n for n in names if n not in known]:
                valid = ", ".join([*(a.name for a in arguments), *more]) or "nothing"
                raise self.refuse(f"{section} names {', '.join(strangers)}; it may name {valid}")

    def source_named(self, argument: str, name: str) -> Source:
        """What the author says feeds an argument."""
        for n, given in enumerate(self.forward.arguments):
            if name in (given.name, given.also):
                return Source(Feed.INPUT if given.is_tensor else Feed.ATTR, n)
        for n, result in enumerate(self.forward.results):
            if name == result.name:
                return Source(Feed.OUTPUT, n)
        for n, result in enumerate(self.forward.results):
            if normalize(name) in gradient_names(result.name):
                return Source(Feed.GRADIENT, n)
        raise self.refuse(f"({argument}: {name}): {name} is none of {', '.join(self.source_names())}")

    def source_names(self) -> Iterator[str]:
        yield from (a.name for a in self.forward.arguments)
        yield from (r.name for r in self.forward.results)
        yield from (f"grad_{r.name}" for r in self.forward.results)

    # -------------------------------------------------------------------------------------------------------- arguments

    def arguments(self, constant: set[int]) -> list[Source | None]:
        said = dict(self.wiring.arguments)
        arguments = self.backward.arguments
        found: list[Source | None] = [None] * len(arguments)
        open_ = []
        for n, argument in enumerate(arguments):
            name = next((said[k] for k in (argument.name, argument.also) if k in said), None)
            if name is not None:
                found[n] = self.source_named(argument.name, name)
            elif self.is_listed(argument, self.wiring.default):
                if not argument.optional:
                    raise self.refuse(f"default: {argument.name}, but it has no default")
            else:
                open_.append(n)
        for stage in (self.by_name, self.by_output, self.by_synonym):
            found_now = {n: source for n in open_ if (source := stage(arguments[n], constant)) is not None}
            if stage is self.by_synonym:  # only what nothing else is already, and nothing else could be
                taken = [source for source in (*found, *found_now.values()) if source is not None]
                found_now = {n: s for n, s in found_now.items() if taken.count(s) == 1}
            for n, source in found_now.items():
                found[n] = source
            open_ = [n for n in open_ if n not in found_now]
        for n in open_:
            self.leftover(arguments[n])
        for argument, source in zip(arguments, found, strict=True):
            if source is not None:
                self.check_kind(argument, source)
        return found

    def by_name(self, argument: Argument, constant: set[int]) -> Source | None:
        """An input or attr of the same name, then an output of it."""
        names = argument.names
        given = [
            Source(Feed.INPUT if a.is_tensor else Feed.ATTR, n)
            for n, a in enumerate(self.forward.arguments)
            if a.is_tensor == argument.is_tensor and a.names & names
        ]
        if not given and argument.is_tensor:
            given = [Source(Feed.OUTPUT, n) for n, r in enumerate(self.forward.results) if normalize(r.name) in names]
        return given[0] if len(given) == 1 else None

    def by_output(self, argument: Argument, constant: set[int]) -> Source | None:
        """The gradient of the output that it is named after, or of the only one."""
        if not argument.is_tensor:
            return None
        results = self.forward.results
        named = [n for n, r in enumerate(results) if argument.names & gradient_names(r.name)]
        if not named and any(are_synonyms(name, "grad_output") for name in argument.names):
            named = [n for n, r in enumerate(results) if r.differentiable and n not in constant]
        return Source(Feed.GRADIENT, named[0]) if len(named) == 1 else None

    def by_synonym(self, argument: Argument, constant: set[int]) -> Source | None:
        """The only input or attr of a name that means the same."""
        given = [
            n
            for n, a in enumerate(self.forward.arguments)
            if a.is_tensor == argument.is_tensor and _mean_the_same(a.names, argument.names)
        ]
        if len(given) != 1:
            return None
        return Source(Feed.INPUT if argument.is_tensor else Feed.ATTR, given[0])

    def leftover(self, argument: Argument) -> None:
        given = ", ".join(a.name for a in self.forward.arguments)
        what = f"its argument {argument.name} is no input or attr ({given})"
        if argument.is_tensor:
            outputs = ", ".join(r.name for r in self.forward.results)
            gradients = ", ".join(f"grad_{r.name}" for r in self.forward.results)
            what = f"its argument {argument.name} is no argument ({given}), no output ({outputs}) and no gradient of one ({gradients})"
        self.problems.append(what)
        if argument.optional:
            self.line = replace(self.line, default=(*self.line.default, argument.name))
        else:
            self.line = replace(self.line, arguments=(*self.line.arguments, (argument.name, "…")))

    def check_kind(self, argument: Argument, source: Source) -> None:
        if source.feed in (Feed.OUTPUT, Feed.GRADIENT):
            result = self.forward.results[source.position]
            name, kind = result.name, result.kind
        else:
            given = self.forward.arguments[source.position]
            name, kind = given.name, given.kind
        if not _fits(kind, argument.kind):
            raise self.refuse(
                f"its argument {argument.name} is {argument.kind}, but {name} of the forward operator is {kind}"
            )

    # ------------------------------------------------------------------------------------------------ what it returns

    def gradient_of(self) -> list[int | None]:
        said = dict(self.wiring.returns)
        tensors = [n for n, a in enumerate(self.forward.arguments) if a.is_tensor]
        gradient_of: list[int | None] = [None] * len(self.forward.arguments)
        results = self.backward.results
        known = [result.name or str(n) for n, result in enumerate(results)]
        if strangers := [
            name for name in said if name not in known and not (name.isdigit() and int(name) < len(results))
        ]:
            raise self.refuse(f"-> {', '.join(strangers)}: its returns are {', '.join(known)}")
        for n, result in enumerate(results):
            target = self.target(n, result, said.get(known[n], said.get(str(n))), tensors)
            if target is None:
                inputs = ", ".join(self.forward.arguments[t].name for t in tensors)
                self.problems.append(
                    f"its output {known[n]} is the gradient of no input; name it grad_<input> or d<input> ({inputs})"
                )
                self.line = replace(self.line, returns=(*self.line.returns, (known[n], "…")))
                continue
            if gradient_of[target] is not None:
                raise self.refuse(f"two of its outputs are the gradient of {self.forward.arguments[target].name}")
            gradient_of[target] = n
            if not _fits(result.kind, self.forward.arguments[target].kind):
                raise self.refuse(
                    f"its output {known[n]} is {result.kind}, but {self.forward.arguments[target].name} of the forward "
                    f"operator is {self.forward.arguments[target].kind}"
                )
        return gradient_of

    def target(self, index: int, result: Result, said: str | None, tensors: list[int]) -> int | None:
        """The argument that a return is the gradient of."""
        arguments = self.forward.arguments
        if said is not None:
            named = [n for n in tensors if said in (arguments[n].name, arguments[n].also)]
            if not named:
                raise self.refuse(
                    f"-> {result.name or index}: {said}: {said} is no input ({', '.join(arguments[n].name for n in tensors)})"
                )
            return named[0]
        own = normalize(result.name)
        fitting = [n for n in tensors if any(own in gradient_names(name) for name in arguments[n].names)]
        if not fitting:
            open_ = [n for n in tensors if not self.is_listed(arguments[n], self.wiring.constant)]
            fitting = open_ if len(self.backward.results) == len(open_) == 1 else []
        return fitting[0] if len(fitting) == 1 else None

    # ------------------------------------------------------------------------------------------------------ nothing lost

    def check_attrs(self, arguments: list[Source | None]) -> None:
        used = {s.position for s in arguments if s is not None and s.feed is Feed.ATTR}
        for n, attr in enumerate(self.forward.arguments):
            said = self.is_listed(attr, self.wiring.unused)
            if said and n in used:
                raise self.refuse(f"unused: {attr.name}, but it feeds an argument")
            if not attr.is_tensor and n not in used and not said:
                self.problems.append(f"it does not take the attr {attr.name}")
                self.line = replace(self.line, unused=(*self.line.unused, attr.name))

    def check_outputs(self, arguments: list[Source | None], constant: set[int]) -> None:
        taken = {s.position for s in arguments if s is not None and s.feed is Feed.GRADIENT}
        for n, result in enumerate(self.forward.results):
            if n in taken and n in constant:
                raise self.refuse(f"constant: {result.name}, but its gradient feeds an argument")
            if result.differentiable and n not in taken and n not in constant:
                self.problems.append(f"it does not take the gradient of the output {result.name}")
                self.line = replace(self.line, constant=(*self.line.constant, result.name))


_NUMBERS = ("int", "float", "bool", "complex")


def _fits(given: str, wanted: str) -> bool:
    """Whether a value of one type may be given for another."""
    base, _, depth = given.partition("[")
    other, _, wanted_depth = wanted.partition("[")
    widens = (base, other) == ("int", "float") or (other == "Scalar" and base in _NUMBERS)
    return depth == wanted_depth and (base == other or widens)


def _mean_the_same(a: frozenset[str], b: frozenset[str]) -> bool:
    return any(are_synonyms(x, y) for x in a for y in b)
