"""Plan of a gradient: the source of each argument of the gradient operator, and the destination of its returns.

The plan is made once, by names and by the author's wiring; Python's autograd and generated C++ both follow it.
Nothing is dropped silently. An unused attr of the forward operator, an argument of the gradient without a source, and a
differentiable output whose gradient is not taken are refused, with the line to write.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from ascend_graph.autograd.signature import Signature, SignatureArgument, SignatureReturn
from ascend_graph.autograd.wiring import GradientError, Wiring
from ascend_graph.binding.synonyms import are_synonyms, normalize


class Feed(enum.Enum):
    """Kind of source of an argument of a gradient operator."""

    INPUT = "input"
    OUTPUT = "output"
    GRADIENT = "gradient of an output"
    ATTR = "attr"


@dataclass(frozen=True, slots=True)
class GradientSource:
    """Argument, output, or gradient of an output, by its position in the forward operator."""

    feed: Feed
    position: int


@dataclass(frozen=True, slots=True)
class GradientPlan:
    """Call plan of a gradient operator, with the destinations of its returns."""

    #: Source of each argument of the gradient operator; None for an argument that stays at its default.
    arguments: tuple[GradientSource | None, ...]
    #: Return that is the gradient, per argument of the forward operator.
    gradient_of: tuple[int | None, ...]
    #: Outputs marked as not differentiable.
    constant: tuple[int, ...]
    #: Tensor arguments without a gradient that the author did not mark constant: a call must not require one.
    undifferentiated: tuple[int, ...]

    def saved(self, feed: Feed) -> tuple[int, ...]:
        """Return the positions that must be saved of the forward call, each once."""
        return tuple(sorted({s.position for s in self.arguments if s is not None and s.feed is feed}))


#: Forms of the line that a refusal proposes: in operators.ini, and in a call of ``register_op``.
IN_INI, IN_PYTHON = "backward = {}", 'backward="{}"'


def plan_gradient(forward: Signature, backward: Signature, wiring: Wiring, form: str = IN_INI) -> GradientPlan:
    """Bind a gradient operator to its forward operator.

    Args:
        forward: The operator that is differentiated.
        backward: The operator that computes the gradients.
        wiring: The author's wiring. Without it an argument is matched by its name: an input, output or attr of the
            forward operator, or the gradient of an output (``grad_y``, ``y_grad``, ``dy``; of the only one also
            ``grad``, ``grad_output`` and the like); a return is the gradient of an input (``grad_x``, ``x_grad``,
            ``dx``). Synonyms such as ``eps`` and ``epsilon`` count if they are the only possible ones.
        form: The form in which the author writes it.

    Raises:
        GradientError: Something is left over, ambiguous or contradictory; the message has the line to write.
    """
    return _Planner(forward, backward, wiring, form).plan()


def gradient_names(name: str) -> frozenset[str]:
    """Return the names of a tensor's gradient, normalized.

    >>> sorted(gradient_names("y_0"))
    ['dy0', 'dy0out', 'grady0', 'grady0out', 'y0grad', 'y0gradout']
    """
    own = own_gradient_names(name)
    return own | {f"{gradient}out" for gradient in own}


def own_gradient_names(name: str) -> frozenset[str]:
    """Return the gradient names without the ending that a header may add.

    >>> sorted(own_gradient_names("yOut"))
    ['dyout', 'gradyout', 'youtgrad']
    """
    base = normalize(name)
    return frozenset({f"grad{base}", f"{base}grad", f"d{base}"})


def _named_after(names: Collection[str], owners: Sequence[str]) -> list[int]:
    """Return the positions of the owners that a gradient is named after, preferring names without an ending."""
    own = [n for n, owner in enumerate(owners) if owner and own_gradient_names(owner) & {*names}]
    return own or [n for n, owner in enumerate(owners) if owner and gradient_names(owner) & {*names}]


class _Planner:
    def __init__(self, forward: Signature, backward: Signature, wiring: Wiring, form: str) -> None:
        self.forward, self.backward, self.wiring, self.form = forward, backward, wiring, form
        self.problems: list[str] = []
        self.line = wiring
        #: Tensor arguments without a source.
        self.unfed: list[SignatureArgument] = []

    def plan(self) -> GradientPlan:
        for side in (self.forward, self.backward):
            if written := [a.name for a in side.arguments if a.written]:
                raise self.refuse(f"{side.name} writes {', '.join(written)} in place; expected one that writes nothing")
        self.check_names()
        constant = {n for n, r in enumerate(self.forward.results) if r.name in self.wiring.constant}
        self.check_constants(constant)
        arguments = self.arguments(constant)
        gradient_of = self.gradient_of()
        self.check_attrs(arguments)
        self.check_outputs(arguments, constant)
        if self.problems:
            raise self.refuse("; ".join(self.problems), f"\nWrite: {self.form.format(self.line)}")
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
    def is_listed(argument: SignatureArgument, names: tuple[str, ...]) -> bool:
        return argument.name in names or (bool(argument.also) and argument.also in names)

    def check_names(self) -> None:
        """Refuse unknown names in the wiring."""
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
                raise self.refuse(f"{section} names {', '.join(strangers)}; expected one of {valid}")

    def source_named(self, argument: str, name: str) -> GradientSource:
        """Return the source that the author names for an argument."""
        for n, given in enumerate(self.forward.arguments):
            if name in (given.name, given.also):
                return GradientSource(Feed.INPUT if given.is_tensor else Feed.ATTR, n)
        for n, result in enumerate(self.forward.results):
            if name == result.name:
                return GradientSource(Feed.OUTPUT, n)
        for n in _named_after({normalize(name)}, [result.name for result in self.forward.results]):
            return GradientSource(Feed.GRADIENT, n)
        raise self.refuse(f"({argument}: {name}): {name} is not one of {', '.join(self.source_names())}")

    def source_names(self) -> Iterator[str]:
        yield from (a.name for a in self.forward.arguments)
        yield from (r.name for r in self.forward.results)
        yield from (f"grad_{r.name}" for r in self.forward.results)

    # -------------------------------------------------------------------------------------------------------- arguments

    def arguments(self, constant: set[int]) -> list[GradientSource | None]:
        said = dict(self.wiring.arguments)
        arguments = self.backward.arguments
        found: list[GradientSource | None] = [None] * len(arguments)
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

    def by_name(self, argument: SignatureArgument, constant: set[int]) -> GradientSource | None:
        """Find an input or attr of the same name, or else an output of that name."""
        names = argument.names
        given = [
            GradientSource(Feed.INPUT if a.is_tensor else Feed.ATTR, n)
            for n, a in enumerate(self.forward.arguments)
            if a.is_tensor == argument.is_tensor and a.names & names
        ]
        if not given and argument.is_tensor:
            given = [
                GradientSource(Feed.OUTPUT, n) for n, r in enumerate(self.forward.results) if normalize(r.name) in names
            ]
        return given[0] if len(given) == 1 else None

    def by_output(self, argument: SignatureArgument, constant: set[int]) -> GradientSource | None:
        """Find the gradient of the output that it is named after, or of the only differentiable one."""
        if not argument.is_tensor:
            return None
        results = self.forward.results
        named = _named_after(argument.names, [r.name for r in results])
        if len(named) == 1 and not argument.names & (own := own_gradient_names(results[named[0]].name)):
            # An ending was cut off: not for what another argument is by its own name.
            named = [] if any(other.names & own for other in self.backward.arguments) else named
        if not named and any(are_synonyms(name, "grad_output") for name in argument.names):
            named = [n for n, r in enumerate(results) if r.differentiable and n not in constant]
        return GradientSource(Feed.GRADIENT, named[0]) if len(named) == 1 else None

    def by_synonym(self, argument: SignatureArgument, constant: set[int]) -> GradientSource | None:
        """Find the only input or attr with a synonymous name."""
        given = [
            n
            for n, a in enumerate(self.forward.arguments)
            if a.is_tensor == argument.is_tensor and _mean_the_same(a.names, argument.names)
        ]
        if len(given) != 1:
            return None
        return GradientSource(Feed.INPUT if argument.is_tensor else Feed.ATTR, given[0])

    def leftover(self, argument: SignatureArgument) -> None:
        given = ", ".join(a.name for a in self.forward.arguments)
        what = f"its argument {argument.name} is not an input or attr ({given})"
        if argument.is_tensor:
            outputs = ", ".join(r.name for r in self.forward.results)
            gradients = ", ".join(f"grad_{r.name}" for r in self.forward.results)
            what = f"its argument {argument.name} is not an argument ({given}), no output ({outputs}) and no gradient of one ({gradients})"
        self.problems.append(what)
        if argument.is_tensor:
            self.unfed.append(argument)
        elif argument.optional:
            self.line = replace(self.line, default=(*self.line.default, argument.name))
        else:
            self.line = replace(self.line, arguments=(*self.line.arguments, (argument.name, "…")))

    def check_kind(self, argument: SignatureArgument, source: GradientSource) -> None:
        if source.feed in (Feed.OUTPUT, Feed.GRADIENT):
            result = self.forward.results[source.position]
            name, kind = result.name, result.kind
        else:
            given = self.forward.arguments[source.position]
            name, kind = given.name, given.kind
        if not _fits(kind, argument.kind):
            raise self.refuse(
                f"its argument {argument.name} is {argument.kind}; expected {kind}, as {name} of the forward operator is"
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
            raise self.refuse(f"-> {', '.join(strangers)}: expected one of its returns, {', '.join(known)}")
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
                raise self.refuse(
                    f"two of its outputs are the gradient of {self.forward.arguments[target].name}; expected one"
                )
            gradient_of[target] = n
            if not _fits(result.kind, self.forward.arguments[target].kind):
                raise self.refuse(
                    f"its output {known[n]} is {result.kind}, but {self.forward.arguments[target].name} of the forward "
                    f"operator is {self.forward.arguments[target].kind}; expected one type for both"
                )
        return gradient_of

    def target(self, index: int, result: SignatureReturn, said: str | None, tensors: list[int]) -> int | None:
        """Find the argument that a return is the gradient of."""
        arguments = self.forward.arguments
        if said is not None:
            named = [n for n in tensors if said in (arguments[n].name, arguments[n].also)]
            if not named:
                raise self.refuse(
                    f"-> {result.name or index}: {said}: expected an input ({', '.join(arguments[n].name for n in tensors)})"
                )
            return named[0]
        own = normalize(result.name)
        named = _named_after({own}, [arguments[n].name for n in tensors])
        named = named or _named_after({own}, [arguments[n].also for n in tensors])
        fitting = [tensors[n] for n in named]
        if not fitting:
            open_ = [n for n in tensors if not self.is_listed(arguments[n], self.wiring.constant)]
            fitting = open_ if len(self.backward.results) == len(open_) == 1 else []
        return fitting[0] if len(fitting) == 1 else None

    # ------------------------------------------------------------------------------------------------------ nothing lost

    def check_attrs(self, arguments: list[GradientSource | None]) -> None:
        used = {s.position for s in arguments if s is not None and s.feed is Feed.ATTR}
        for n, attr in enumerate(self.forward.arguments):
            said = self.is_listed(attr, self.wiring.unused)
            if said and n in used:
                raise self.refuse(f"unused: {attr.name}, but it feeds an argument")
            if not attr.is_tensor and n not in used and not said:
                self.problems.append(f"it does not take the attr {attr.name}")
                self.line = replace(self.line, unused=(*self.line.unused, attr.name))

    def check_constants(self, constant: set[int]) -> None:
        """Refuse a line that leaves no output differentiable."""
        differentiable = [n for n, result in enumerate(self.forward.results) if result.differentiable]
        if differentiable and constant.issuperset(differentiable):
            names = ", ".join(self.forward.results[n].name for n in differentiable)
            raise self.refuse(
                f"constant: {names}: then nothing of {self.forward.name} is differentiated; leave backward out, or name the "
                f"argument that takes the gradient of {names}"
            )

    def check_outputs(self, arguments: list[GradientSource | None], constant: set[int]) -> None:
        taken = {s.position for s in arguments if s is not None and s.feed is Feed.GRADIENT}
        left = []
        for n, result in enumerate(self.forward.results):
            if n in taken and n in constant:
                raise self.refuse(f"constant: {result.name}, but its gradient feeds an argument; leave it out")
            if result.differentiable and n not in taken and n not in constant:
                self.problems.append(f"it does not take the gradient of the output {result.name}")
                left.append(result.name)
        feeding = zip(self.backward.arguments, arguments, strict=True)
        free = [a for a, s in feeding if a.is_tensor and (s is None or s.feed is not Feed.GRADIENT)]
        self.propose(left, free, nothing_taken=not any(self.forward.results[n].differentiable for n in taken))

    def propose(self, left: list[str], free: list[SignatureArgument], *, nothing_taken: bool) -> None:
        """Add the likely meaning of tensor arguments without a source, and of outputs that are left, to the line.

        Args:
            left: The outputs whose gradient is not taken.
            free: The tensor arguments that take no gradient.
            nothing_taken: True if no output's gradient is taken.
        """
        line, required = self.line, [argument for argument in self.unfed if not argument.optional]
        candidates = required or (self.unfed if nothing_taken else [])
        if not candidates and nothing_taken and len(free) == 1:
            candidates = free
        if len(candidates) == len(left) == 1:
            line = replace(line, arguments=(*line.arguments, (candidates[0].name, f"grad_{left[0]}")))
        else:
            line = replace(line, arguments=(*line.arguments, *((argument.name, "…") for argument in candidates)))
            if nothing_taken and not candidates and left:
                names = ", ".join(argument.name for argument in free) or "none"
                raise self.refuse(
                    f"{'; '.join(self.problems)}; expected an argument that takes it, of {names}: say (argument: grad_{left[0]}), or "
                    "take another operator, or a function"
                )
            if not candidates:
                line = replace(line, constant=(*line.constant, *left))
        defaults = [argument.name for argument in self.unfed if argument not in candidates]
        self.line = replace(line, default=(*line.default, *defaults))


_NUMBERS = ("int", "float", "bool", "complex")


def _fits(given: str, wanted: str) -> bool:
    """Return whether a value of one type may be given for another."""
    base, _, depth = given.partition("[")
    other, _, wanted_depth = wanted.partition("[")
    widens = (base, other) == ("int", "float") or (other == "Scalar" and base in _NUMBERS)
    return depth == wanted_depth and (base == other or widens)


def _mean_the_same(a: frozenset[str], b: frozenset[str]) -> bool:
    return any(are_synonyms(x, y) for x in a for y in b)
