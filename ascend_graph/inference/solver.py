"""Solver from observations to the shapes that explain them: templates whose open sizes are solved for.

If one template does not explain every observation, the observations are split by an attr's value or an input's
presence. Pure logic.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ascend_graph.inference.domains import Domain, OperatorSignature
from ascend_graph.inference.templates import basics, templates, vocabulary
from ascend_graph.inference.terms import terms_for
from ascend_graph.shapes.errors import RelationError, ShapeError
from ascend_graph.shapes.relation import Relation

#: Number of sizes outside the vocabulary that are searched for in one domain.
MADE_UP = 8


#: Functions of the terms, on shapes as tuples.
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "prod": math.prod,
    "numel": math.prod,
    "rank": len,
    "len": len,
    "sum": sum,
    "min": min,
    "max": max,
    "ceildiv": lambda a, b: -(-a // b),
}


@dataclass(frozen=True, slots=True)
class Observation:
    """Observation of one run: the input shapes, the attrs, and the shape (for a list, the shapes) of each output."""

    shapes: Mapping[str, Any]
    attrs: Mapping[str, Any]
    outputs: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ShapeAlternatives:
    """Shape of one output as alternatives: texts of shapes, each but the last with its condition."""

    shapes: tuple[str, ...]
    conditions: tuple[str, ...] = ()

    def text(self, name: str, dtype: str, listed: str = "") -> str:
        """Return the output in the shape language."""
        if self.conditions and " if " in dtype:
            dtype = f"({dtype})"
        pieces = [f"{shape}{f': {dtype}' if dtype else ''}" for shape in self.shapes]
        if not self.conditions:
            return f"{name}{listed}{pieces[0]}"
        chain = "".join(
            f"{piece} if {condition} else " for piece, condition in zip(pieces, self.conditions, strict=False)
        )
        return f"{name}{listed}{chain}{pieces[-1]}"


class Solver:
    """Solver for observations of one operator within one domain."""

    def __init__(self, domain: Domain, signature: OperatorSignature) -> None:
        self.domain = domain
        self.signature = signature
        self.names = tuple(a.name for a in signature.attrs)
        self._relations: dict[str, Relation | None] = {}
        #: Values by output and observation id; the observation is kept, for a freed one could share its id.
        self._values: dict[tuple[str, int], tuple[Observation, Any]] = {}
        self._terms: list[str] | None = None
        self._made_up: dict[tuple[int, ...], list[str]] = {}
        self._codes: dict[str, Any] = {}
        self._names: dict[int, tuple[Observation, dict[str, Any]]] = {}
        #: The places of the terms by their value for an observation; that of those without one is None.
        self._places: dict[int, tuple[Observation, dict[Any, list[int]]]] = {}

    def value(self, output: str, observation: Observation) -> Any:
        """Evaluate the relation with this one output for an observation, or return ``None`` if it gives no shape."""
        key = (output, id(observation))
        if key not in self._values:
            self._values[key] = observation, self._evaluate(output, observation)
        return self._values[key][1]

    def _evaluate(self, output: str, observation: Observation) -> Any:
        if output not in self._relations:
            try:
                self._relations[output] = self.domain.relation(output)
            except RelationError:
                self._relations[output] = None
        relation = self._relations[output]
        if relation is None:
            return None
        shapes = {name: observation.shapes.get(name) for name in relation.inputs}
        dtypes = {
            n: None if s is None else (["float32"] * len(s) if isinstance(s, list) else "float32")
            for n, s in shapes.items()
        }
        try:
            result = relation.infer(shapes, dtypes, observation.attrs)[0]
        except (ShapeError, RelationError, TypeError):
            return None
        if result is None:
            return None
        return [shape for shape, _ in result] if isinstance(result, list) else tuple(result[0])

    def explain(
        self, output: int, observations: Sequence[Observation], selectors: Sequence[Selector]
    ) -> list[ShapeAlternatives]:
        """Return a few explanations of an output that hold for all observations, simplest first."""
        if self.signature.outputs[output]:
            return self.explain_list(output, observations)
        # Only one number of dimensions can mean a template; most are settled by the first observation.
        found = [ShapeAlternatives((shape,)) for shape in self.direct(output, observations)]
        if found or not selectors:
            return found
        for number, selector in enumerate(selectors):
            # Every split leaves fewer observations to each part; an integer's value decides at most once, and alone.
            rest = [] if selector.alone else [s for s in selectors[number + 1 :] if not s.alone]
            parts = selector.split(observations)
            if len(parts) < 2 or any(len(part) < 2 for _, part in parts):
                continue
            solved = []
            for condition, part in parts:
                explanations = self.explain(output, part, rest)
                if not explanations:
                    break
                solved.append((condition, explanations[0]))
            else:
                return [_join(solved)]
        return []

    def direct(self, output: int, observations: Sequence[Observation]) -> list[str]:
        """Return shapes without conditions that explain all observations."""
        found: list[str] = []
        for template, holes in templates(self.domain, self.signature):
            found += self.fill(template, holes, [(o, tuple(o.outputs[output])) for o in observations], "y[{}]")
            if len(found) > 6:
                break
        return found

    def fill(
        self,
        template: str,
        holes: int,
        wanted: Sequence[tuple[Observation, Any]],
        form: str,
        element: str | None = None,
    ) -> list[str]:
        """Return a few shapes that solve every open size of the template and match all observations."""
        if not holes:
            text = form.format(template)
            good = all(self.value(text, o) == w for o, w in wanted)
            return [text[text.index("[") if not element else text.index("]") + 1 :]] if good else []
        if element:
            return self.fill_list(template, holes, wanted, form, element)
        positions = self.hole_positions(template, holes, wanted)
        if positions is None:
            return []
        choices = []
        for hole in range(holes):
            targets = [(o, w[p[hole]]) for (o, w), p in zip(wanted, positions, strict=True)]
            largest = max(targets, key=lambda one: one[1])  # which the fewest terms have
            terms = [
                term
                for term in self.candidates(*largest)
                if all(self.may_be(term, o, size) for o, size in targets)
                and all(self.value(f"y[{term}]", o) == (size,) for o, size in targets)
            ]
            if not terms and len(targets) > 2 and len(sizes := {size for _, size in targets}) == 1:
                terms = [str(*sizes)]
            if not terms:
                terms = self.made_up(hole, wanted, positions)
            if not terms:
                return []
            choices.append(terms[:3])
        filled = []
        for terms_ in itertools.product(*choices):
            text = "[" + template.format(*(f"({t})" if "@" in template and " " in t else t for t in terms_)) + "]"
            if all(self.value(f"y{text}", o) == w for o, w in wanted):
                filled.append(text)
        return filled

    def candidates(self, observation: Observation, size: int) -> list[str]:
        """Return the terms of the vocabulary that may have this value for an observation, in order."""
        key = id(observation)
        if key not in self._places:
            places: dict[Any, list[int]] = {}
            for number, term in enumerate(self.terms()):
                value = self.plain_value(term, observation)
                if value is None or isinstance(value, int | float):
                    places.setdefault(value, []).append(number)
            self._places[key] = observation, places
        places = self._places[key][1]
        return [self.terms()[number] for number in sorted([*places.get(size, ()), *places.get(None, ())])]

    def may_be(self, term: str, observation: Observation, size: int) -> bool:
        """Return false if a term surely has another value for an observation."""
        value = self.plain_value(term, observation)
        return value is None or bool(value == size)

    def plain_value(self, term: str, observation: Observation) -> Any:
        """Return the value of a term for an observation by Python's arithmetic, or None if the relation decides.

        Compiling a relation for each of hundreds of terms would take most of a search; this does not.
        """
        if term not in self._codes:
            self._codes[term] = compile(term, "<term>", "eval")
        key = id(observation)
        if key not in self._names:
            self._names[key] = observation, self._namespace(observation)
        try:
            return eval(self._codes[term], {"__builtins__": {}}, self._names[key][1])
        except (NameError, TypeError, IndexError, ZeroDivisionError, ValueError):
            return None

    def _namespace(self, observation: Observation) -> dict[str, Any]:
        """Return the values of the names and functions that terms use."""
        names: dict[str, Any] = dict(_FUNCTIONS)
        names |= {name: shape for name, shape in observation.shapes.items() if shape is not None}
        names |= {name: value for name, value in observation.attrs.items() if value is not None}
        for name in self.domain.dims:
            value = self.value(f"y[{name}]", observation)
            if value is not None:
                names[name] = value[0]
        for name in self.domain.groups:
            value = self.value(f"y[*{name}]", observation)
            if value is not None:
                names[name] = value
        return names

    def terms(self) -> list[str]:
        """Return the vocabulary of this domain, built once."""
        if self._terms is None:
            self._terms = vocabulary(self.domain, self.signature)
        return self._terms

    def made_up(
        self, hole: int, wanted: Sequence[tuple[Observation, Any]], positions: Sequence[list[int]]
    ) -> list[str]:
        """Return terms outside the vocabulary: arithmetic of the dimensions, the attrs, and numbers in lists."""
        target = tuple(w[p[hole]] for (_, w), p in zip(wanted, positions, strict=True))
        if target not in self._made_up:
            if not self.domain.surveyed or len(self._made_up) >= MADE_UP:
                return []
            leaves: dict[str, tuple[int, ...]] = {}
            for leaf in basics(self.domain, self.signature):
                values = [self.value(f"y[{leaf}]", o) for o, _ in wanted]
                if all(v is not None for v in values):
                    leaves[leaf] = tuple(v[0] for v in values)
            self._made_up[target] = terms_for(target, leaves)
        return self._made_up[target]

    def hole_positions(
        self, template: str, holes: int, wanted: Sequence[tuple[Observation, Any]]
    ) -> list[list[int]] | None:
        """Return the positions of a template's open sizes in each observed shape, or ``None`` if it cannot fit."""
        # Marked by sizes that occur nowhere else; what the groups give must be as observed.
        marks = [1_000_003 + n for n in range(holes)]
        text = "y[" + template.format(*marks) + "]"
        positions = []
        for observation, shape in wanted:
            value = self.value(text, observation)
            if value is None or len(value) != len(shape):
                return None
            places = [value.index(mark) for mark in marks]
            if any(v != w for n, (v, w) in enumerate(zip(value, shape, strict=True)) if n not in places):
                return None
            positions.append(places)
        return positions

    # ------------------------------------------------------------------------------------------------- lists of tensors

    def explain_list(self, output: int, observations: Sequence[Observation]) -> list[ShapeAlternatives]:
        """Explain a list of tensors: its length, and the shape of each element."""
        wanted = [(o, [tuple(shape) for shape in o.outputs[output]]) for o in observations]
        counts = []
        inputs = next((t.name for t in self.signature.required if t.is_list), None)
        if inputs and "[i]" in self.domain.inputs and all(len(w) == len(o.shapes[inputs]) for o, w in wanted):
            counts.append(("[i]", "i"))
        counts += [
            (f"[j < {term}]", "j")
            for term in self.terms()
            if all(self.value(f"y[{term}]", o) == (len(w),) for o, w in wanted)
        ][:4]
        for listed, element in counts:
            for template, holes in itertools.chain([("*s[i]", 0)], templates(self.domain, self.signature)):
                form = f"y{listed}[{{}}]"
                found = self.fill(template, holes, wanted, form, element)
                if found:
                    return [ShapeAlternatives((f"{listed}{shape}",)) for shape in found[:3]]
        return []

    def fill_list(
        self, template: str, holes: int, wanted: Sequence[tuple[Observation, Any]], form: str, element: str
    ) -> list[str]:
        if holes > 1:
            return []
        for term in vocabulary(self.domain, self.signature, element=element):
            text = form.format(template.format(f"({term})" if "@" in template and " " in term else term))
            if all(self.value(text, o) == w for o, w in wanted):
                return [text[text.index("]") + 1 :]]
        return []


@dataclass(frozen=True, slots=True)
class Selector:
    """Condition that splits observations."""

    condition: str
    holds: Callable[[Observation], bool]
    #: True if it is not combined with others.
    alone: bool = False

    def split(self, observations: Sequence[Observation]) -> list[tuple[str, list[Observation]]]:
        """Split observations by the condition; the rest has the condition ``""``. Return nothing if a part is empty."""
        held = [o for o in observations if self.holds(o)]
        rest = [o for o in observations if not self.holds(o)]
        return [(self.condition, held), ("", rest)] if held and rest else []


def selectors(signature: OperatorSignature, observations: Sequence[Observation], domain: Domain) -> list[Selector]:
    """Return conditions to split by: flags, absent attrs, empty lists, values of an integer, optional inputs."""
    found: list[Selector] = []
    for attr in signature.attrs:
        name = attr.name
        values = [o.attrs.get(name) for o in observations]
        if attr.kind == "bool":
            found.append(Selector(name, partial(_attr_is, name, True)))
        if any(value is None for value in values) and any(value is not None for value in values):
            found.append(Selector(f"{name} is None", partial(_attr_is, name, None)))
        if attr.kind == "int[]":
            empty = f"{name} is not None and len({name}) == 0" if attr.optional else f"len({name}) == 0"
            found.append(Selector(empty, partial(_attr_is, name, [])))
        if attr.kind == "str":
            texts = sorted({value for value in values if isinstance(value, str)})
            found += [
                Selector(f'{name} == "{text}"', partial(_attr_in, name, (text,)), alone=True)
                for text in (texts if len(texts) > 1 else ())
            ]
        if attr.kind == "int" and name not in domain.roles:
            seen = sorted({value for value in values if isinstance(value, int)})
            if 2 <= len(seen) <= 8:
                found += [Selector(f"{name} == {v}", partial(_attr_in, name, (v,)), alone=True) for v in seen]
                pairs = itertools.combinations(seen, 2)
                found += [
                    Selector(f"{name} in ({a}, {b})", partial(_attr_in, name, (a, b)), alone=True) for a, b in pairs
                ]
    for tensor in signature.tensors:
        if tensor.optional:
            found.append(Selector(tensor.name, partial(_is_present, tensor.name)))
    return found


def _attr_is(name: str, value: Any, observation: Observation) -> bool:
    got = observation.attrs[name]
    return got is value if value is None or isinstance(value, bool) else got is not None and got == value


def _attr_in(name: str, values: Sequence[int | str], observation: Observation) -> bool:
    return observation.attrs[name] in values


def _is_present(name: str, observation: Observation) -> bool:
    return observation.shapes.get(name) is not None


def _join(parts: Sequence[tuple[str, ShapeAlternatives]]) -> ShapeAlternatives:
    """Join the explanations under each condition into one chain of alternatives."""
    shapes: list[str] = []
    conditions: list[str] = []
    for condition, explanation in parts:
        for n, shape in enumerate(explanation.shapes):
            inner = explanation.conditions[n] if n < len(explanation.conditions) else ""
            both = " and ".join(c if " and " not in c else f"({c})" for c in (condition, inner) if c)
            shapes.append(shape)
            conditions.append(both)
    # The last alternative holds for what is left, which its condition says anyway.
    return ShapeAlternatives(tuple(shapes), tuple(conditions[:-1]))
