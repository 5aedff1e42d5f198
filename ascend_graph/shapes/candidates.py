"""The finite family of relations that inference tries: which input patterns, which output shapes, which dtypes.

Pure logic. A *domain* says how the input shapes hang together (``x[*s, n@dim]``, ``x[m, k], w[k, n]``, …); within a
domain an output is a *template* (``[*s, ?@dim]``) whose open sizes are solved for from what was observed, over a finite
vocabulary of terms (dimensions, attrs, constants, products, halves, …). Where one template does not explain every
observation, the observations are split by an attr's value or an input's presence.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ascend_graph.shapes.errors import RelationError, ShapeError
from ascend_graph.shapes.relation import Relation, parse_relation
from ascend_graph.shapes.syntax import Dims, Ellipsis_, Group, Size

# ----------------------------------------------------------------------------------------------------------- signatures


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A tensor argument of the operator."""

    name: str
    optional: bool = False
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class AttrArgument:
    """An argument that is no tensor."""

    name: str
    #: ``int``, ``int[]``, ``bool``, ``float``, ``number``, ``dtype``, ``str`` or ``other``.
    kind: str
    optional: bool = False
    default: Any = None
    has_default: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """What inference must know of an operator; ``outputs`` says of each whether it is a list."""

    name: str
    tensors: tuple[TensorArgument, ...]
    attrs: tuple[AttrArgument, ...]
    outputs: tuple[bool, ...]

    @property
    def required(self) -> tuple[TensorArgument, ...]:
        """The tensor arguments of every call."""
        return tuple(t for t in self.tensors if not t.optional)


@dataclass(frozen=True, slots=True)
class Observation:
    """One run: what went in, and the shape of each output (a list of shapes for a list)."""

    shapes: Mapping[str, Any]
    attrs: Mapping[str, Any]
    outputs: tuple[Any, ...]


# The names that domains give to dimensions, groups and indices.
_DOMAIN_NAMES = frozenset("bcdehijklmnpqrstuvw")


def safe_name(name: str) -> str:
    """An argument's name while a relation is looked for: not that of a dimension of a domain."""
    return f"{name}_" if name in _DOMAIN_NAMES else name


def restored(text: str, arguments: Iterable[str]) -> str:
    """The text of a relation with the arguments' own names again, and the dimensions out of their way."""
    clashing = {name for name in arguments if name in _DOMAIN_NAMES}
    mapping = {name: f"{name}0" for name in clashing} | {f"{name}_": name for name in clashing}
    words = re.compile(r'"[^"]*"|\w+')
    return words.sub(lambda match: mapping.get(match.group(), match.group()), text)


# -------------------------------------------------------------------------------------------------------------- domains


@dataclass(frozen=True, slots=True)
class Domain:
    """Input patterns, and how the attrs they speak of are chosen."""

    inputs: str
    #: From attr to the way its values are chosen: ``axis``, ``axes``, ``permutation``, ``insert``, ``sizes``,
    #: ``reshape``, ``expand``, ``parts``.
    roles: Mapping[str, str] = field(default_factory=dict)

    def relation(self, outputs: str) -> Relation:
        """The relation with these inputs and the outputs given."""
        return parse_relation(f"{self.inputs} -> {outputs}")


_ONE = (
    "{0}[*s]",
    "{0}[*s, n]",
    "{0}[*s, m, n]",
    "{0}[b, *s]",
    "{0}[*s, n, n]",
    "{0}[n]",
    "{0}[m, n]",
    "{0}[n, n]",
    "{0}[c, h, w]",
    "{0}[b, c, h, w]",
    "{0}[b, c, *s]",
)
_TWO = (
    "{0}[...], {1}[...]",
    "{0}[*s], {1}[*t]",
    "{0}[*s], {1}[*s]",
    "{0}[..., m, k], {1}[..., k, n]",
    "{0}[*b, m, k], {1}[*b, k, n]",
    "{0}[*b, m, k], {1}[*b, n, k]",
    "{0}[m, k], {1}[k, n]",
    "{0}[b, m, k], {1}[b, k, n]",
    "{0}[*s, k], {1}[n, k]",
    "{0}[m, k], {1}[k]",
    "{0}[*b, m, k], {1}[*b, k]",
    "{0}[*s, k], {1}[k]",
    "{0}[n], {1}[n]",
    "{0}[m], {1}[n]",
    "{0}[m, n], {1}[p, q]",
    "{0}[n, d], {1}[*t]",
    "{0}[*s], {1}[n]",
    "{0}[*b, n, n], {1}[*b, n, k]",
    "{0}[*s, n], {1}[*s, m]",
    "{0}[n], {1}[*t]",
)
_THREE = (
    "{0}[...], {1}[...], {2}[...]",
    "{0}[*s], {1}[*s], {2}[*s]",
    "{0}[*s], {1}[*t], {2}[*u]",
    "{0}[m, n], {1}[m, k], {2}[k, n]",
    "{0}[b, m, n], {1}[b, m, k], {2}[b, k, n]",
    "{0}[m, n], {1}[b, m, k], {2}[b, k, n]",
    "{0}[m], {1}[m, k], {2}[k]",
    "{0}[m, n], {1}[m], {2}[n]",
    "{0}[*s, n], {1}[n], {2}[n]",
    "{0}[*b, l, e], {1}[*b, s, e], {2}[*b, s, v]",
    "{0}[*s, k], {1}[n, k], {2}[n]",
    "{0}[b, l, e], {1}[b, s, e], {2}[b, s, v]",
    "{0}[m, n], {1}[m, n], {2}[m]",
)
_LISTS = (
    "{0}[i][*s]",
    "{0}[i][...]",
    "{0}[i][*s[i]]",
    "{0}[i][n[i]]",
    "{0}[i][m[i], n[i]]",
    "{0}[i][n[i], *s]",
    "{0}[i][m, n[i], *s]",
)
_AXIS = {
    (False,): ("{0}[*s, n@{a}]", "{0}[*s, n@{a}, m@-1]"),
    (False, False): ("{0}[*s, n@{a}], {1}[*s, k@{a}]", "{0}[*s, n@{a}], {1}[k]", "{0}[*s, n@{a}], {1}[*t]"),
    (False, False, False): ("{0}[*s, n@{a}], {1}[*s, k@{a}], {2}[*s, k@{a}]", "{0}[*s, n@{a}], {1}[k], {2}[*s, k@{a}]"),
    (True,): ("{0}[i][*s, n[i]@{a}]",),
}


def domains(signature: Signature) -> list[Domain]:
    """The domains of an operator, those that demand less of the inputs first."""
    return sorted(_domains(signature), key=lambda domain: constraints(domain.inputs))


def constraints(inputs: str) -> int:
    """How much a domain demands: names that occur again, and inputs of a fixed number of dimensions."""
    patterns = [
        alternative
        for tensor in parse_relation(f"{inputs} ->").input_tensors
        for alternative in tensor.alternatives[:1]
    ]
    seen: set[str] = set()
    count = 0
    for pattern in patterns:
        assert isinstance(pattern.shape, Dims)
        items = [str(Size(i.value) if isinstance(i, Size) else i) for i in pattern.shape.items]
        count += sum(item in seen for item in items) + (len(items) - len(set(items)))
        count += not any(isinstance(i, Group | Ellipsis_) for i in pattern.shape.items)
        seen.update(items)
    return count


def _domains(signature: Signature) -> Iterator[Domain]:
    required = signature.required
    names = [t.name for t in required]
    lists = tuple(t.is_list for t in required)
    ints = [a.name for a in signature.attrs if a.kind == "int"]
    int_lists = [a.name for a in signature.attrs if a.kind == "int[]"]
    optional = {a.name for a in signature.attrs if a.optional}
    plain: Sequence[str] = ()
    if not names:
        plain = ("",)
    elif not any(lists):
        plain = {1: _ONE, 2: _TWO, 3: _THREE}.get(len(names), ())
        if len(names) > 3:
            plain = tuple(", ".join(f"{{{n}}}{pattern}" for n in range(len(names))) for pattern in ("[...]", "[*s]"))
    elif lists == (True,):
        plain = _LISTS
    elif len(lists) == 2 and any(lists):
        a, b = ("{0}[i]", "{1}") if lists[0] else ("{1}[i]", "{0}")
        plain = (
            (f"{a}[*s[i]], {b}[*t]",)
            if sum(lists) == 1
            else ("{0}[i][*s[i]], {1}[i][*s[i]]", "{0}[i][...], {1}[i][...]")
        )
    elif all(lists):
        plain = (", ".join(f"{{{n}}}[i][*s[i]]" for n in range(len(names))),)
    roles: list[dict[str, str]] = [{}]
    for name in int_lists:
        roles += [{name: role} for role in ("sizes", "reshape", "expand", "parts")]
    # Any rank first, then axes named by attrs, then fixed ranks: a narrow domain explains less than it seems to.
    wide = [p for p in plain if _any_rank(p)]
    for pattern, role in itertools.product(wide, roles):
        if not role or pattern in ("", "{0}[*s]"):
            yield Domain(pattern.format(*names), role)
    for name in ints:
        for pattern in _AXIS.get(lists, ()):
            text = pattern.format(*names, a=name)
            if name in optional and lists == (False,):
                text += f" if {name} is not None else [*s]"
            yield Domain(text, {name: "axis"})
            for sizes in int_lists:
                yield Domain(text, {name: "axis", sizes: "parts"})
        if lists in ((False,), (True,)):
            yield Domain(("{0}[i][*s]" if lists[0] else "{0}[*s]").format(*names), {name: "insert"})
    for name in int_lists:
        if lists == (False,):
            yield Domain(f"{names[0]}[*s, *r@{name}]", {name: "axes"})
            yield Domain(f"{names[0]}[*s@{name}]", {name: "permutation"})
    for a, b in itertools.permutations(ints, 2):
        if lists == (False,):
            yield Domain(f"{names[0]}[*s, m@{a}, n@{b}]", {a: "axis", b: "axis"})
            yield Domain(f"{names[0]}[*s]", {a: "insert", b: "insert"})
    for pattern in plain:
        if pattern not in wide:
            yield Domain(pattern.format(*names))


def _any_rank(pattern: str) -> bool:
    """Whether a domain lets every input have any number of dimensions."""
    return all(item.strip(" ]").split("[")[-1] in ("*s", "*t", "*u", "...", "i", "") for item in pattern.split(","))


# ------------------------------------------------------------------------------------------------------------ templates


def templates(domain: Domain, signature: Signature) -> Iterator[tuple[str, int]]:
    """Output shapes with numbered open sizes, ``[*s, {0}@dim]``, and how many there are."""
    groups = [g for g in ("*s", "*t", "*b", "*u", "...") if _has(domain.inputs, g)]
    axes = [name for name, role in domain.roles.items() if role == "axis"]
    yield "", 0
    for group in groups:
        yield group, 0
    for name, role in domain.roles.items():
        if role in ("axes", "axis") and "*s" in groups:
            if role == "axes":
                yield f"*s, *r@{name}", 0
                yield f"*s, *ones(r)@{name}", 0
                yield "*s, *r", 0
                yield "*ones(s), *ones(r)", 0
            yield "*ones(s)", 0
        if role == "permutation":
            yield "*s", 0
        if role in ("sizes", "expand"):
            yield f"*{name}", 0
            for group in groups:
                yield f"{group}, *{name}", 0
                yield f"*{name}, {group}", 0
        if role == "reshape" and "*s" in groups:
            yield f"*reshape(s, {name})", 0
        if role in ("axis", "insert"):
            for group in groups:
                yield f"{group}, {{0}}@{name}", 1
                yield f"{group}, {{0}}@{name}, {{1}}@-1", 2
    for a, b in itertools.permutations(axes, 2):
        yield f"*s, {{0}}@{a}, {{1}}@{b}", 2
    for a, b in itertools.permutations(groups, 2):
        yield f"{a}, {b}", 0
    for group in groups:
        yield f"{group}, {{0}}", 1
        yield f"{{0}}, {group}", 1
        yield f"{group}, {{0}}, {{1}}", 2
        yield f"{{0}}, {{1}}, {group}", 2
        yield f"{group}, {{0}}, {{1}}, {{2}}", 3
    for a, b in itertools.permutations(groups, 2):
        yield f"{a}, {b}, {{0}}", 1
        yield f"{a}, {b}, {{0}}, {{1}}", 2
    for count in range(1, 6):
        yield ", ".join(f"{{{n}}}" for n in range(count)), count


def _has(inputs: str, group: str) -> bool:
    return any(f"{group}{end}" in inputs for end in (",", "]")) and not (group != "..." and f"{group}[" in inputs)


def vocabulary(domain: Domain, signature: Signature, *, element: str | None = None) -> list[str]:
    """The terms an open size may be, simple ones first; ``element`` is the index of a list output."""
    dims = [d for d in "nmkpqbdcehwlv" if _names_dim(domain.inputs, d)]
    if "s" not in dims and _names_dim(domain.inputs, "s") and "*s" not in domain.inputs:
        dims.append("s")
    vectors = [v for v in "mn" if f"{v}[i]" in domain.inputs]
    dims = [d for d in dims if d not in vectors]
    groups = [g for g in "stbur" if _has(domain.inputs, f"*{g}") or f"*{g}@" in domain.inputs]
    ints = [a.name for a in signature.attrs if a.kind == "int" and a.name not in domain.roles]
    lists = [
        a.name for a in signature.attrs if a.kind == "int[]" and domain.roles.get(a.name) not in ("axes", "permutation")
    ]
    numbers = ints + [f"{name}[{n}]" for name in lists for n in (0, 1, 2)]
    terms = [*dims, *(f"prod({g})" for g in groups)]
    if "..." in domain.inputs:
        terms.append("prod(...)")
    tensors = [t.name for t in signature.required]
    terms += [f"numel({t.name})" for t in signature.required if not t.is_list]
    terms += [f"rank({t.name})" for t in signature.required if not t.is_list]
    for name in tensors:
        if f"{name}[i]" in domain.inputs:
            terms += [f"len({name})", f"2 * len({name})"]
    for vector in vectors:
        terms += [f"sum({vector})", f"prod({vector})", f"max({vector})", *([f"{vector}[{element}]"] if element else [])]
    terms += [f"len({name})" for name in lists]
    terms += [str(n) for n in range(9)]
    terms += numbers
    terms += [f"{name}[{n}]" for name in lists for n in (-1, -2)]
    terms += [f"{name}[{element}]" for name in lists if element]
    for d in (*dims, *(f"prod({g})" for g in groups)):
        terms += [f"{d} + 1", f"{d} - 1", f"2 * {d}", f"{d} // 2", f"{d} // 2 + 1", f"{d} * ({d} - 1) // 2"]
        terms += [
            f"{d} * {d}",
            f"{d} * ({d} + 1) // 2",
            f"2 * ({d} - 1)",
            f"4 * {d}",
            f"{d} // 4",
            f"3 * {d}",
            f"{d} // 3",
        ]
        for n in numbers:
            terms += [f"{d} + {n}", f"{d} - {n}", f"{d} * {n}", f"{d} // {n}", f"ceildiv({d}, {n})", f"min({d}, {n})"]
            terms.append(f"{d} + 2 * {n}")
            terms += [f"{d} * {n} * {n}", f"{d} // ({n} * {n})", f"{d} - {n} + 1"]
            if element:
                terms += [f"min({n}, {d} - {element} * {n})"]
                terms += [f"min(ceildiv({d}, {n}), {d} - {element} * ceildiv({d}, {n}))"]
        for a, b in itertools.combinations(numbers, 2):
            terms += [f"{d} + {a} + {b}", f"({d} - {a}) // {b} + 1"]
            terms += [f"({d} - {b}) // {a} + 1"]
    for a, b in itertools.combinations(dims, 2):
        terms += [f"{a} * {b}", f"{a} + {b}", f"min({a}, {b})", f"max({a}, {b})", f"{a} + {b} - 1", f"{a} - {b} + 1"]
    terms += [f"{a} * {b}" for a, b in itertools.combinations(numbers, 2)]
    terms += _windows(dims, lists)
    return list(dict.fromkeys(terms))


def _names_dim(inputs: str, name: str) -> bool:
    return any(f"{before}{name}{after}" in inputs for before in ("[", " ") for after in (",", "]", "@"))


def _windows(dims: Sequence[str], lists: Sequence[str]) -> list[str]:
    """Output sizes of convolutions and poolings: ``(h + 2p - d(k - 1) - 1) // s + 1``, the attrs in any roles."""
    found = []
    for d, axis in (("h", 0), ("w", 1), ("n", 0)):
        if d not in dims:
            continue
        for kernel, stride, padding in itertools.permutations(lists, 3):
            for dilation in (None, *(name for name in lists if name not in (kernel, stride, padding))):
                reach = f"({kernel}[{axis}] - 1)" + (f" * {dilation}[{axis}]" if dilation else "")
                found.append(f"({d} + 2 * {padding}[{axis}] - {reach} - 1) // {stride}[{axis}] + 1")
    return found


# -------------------------------------------------------------------------------------------------------------- solving


@dataclass(frozen=True, slots=True)
class Explanation:
    """The shape of one output as alternatives: texts of shapes, each but the last with its condition."""

    shapes: tuple[str, ...]
    conditions: tuple[str, ...] = ()

    def text(self, name: str, dtype: str, listed: str = "") -> str:
        """The output as the language writes it."""
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
    """Explains observations of one operator within one domain."""

    def __init__(self, domain: Domain, signature: Signature) -> None:
        self.domain = domain
        self.signature = signature
        self.names = tuple(a.name for a in signature.attrs)
        self._relations: dict[str, Relation | None] = {}
        self._values: dict[tuple[str, int], Any] = {}
        self._terms: list[str] | None = None

    def value(self, output: str, observation: Observation) -> Any:
        """What the relation with this one output gives for an observation, or ``None`` where it gives nothing."""
        key = (output, id(observation))
        if key not in self._values:
            self._values[key] = self._evaluate(output, observation)
        return self._values[key]

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
    ) -> list[Explanation]:
        """The explanations of an output that hold for all observations, simplest first; at most a few."""
        if self.signature.outputs[output]:
            return self.explain_list(output, observations)
        # Only one number of dimensions can mean a template; most are settled by the first observation.
        found = [Explanation((shape,)) for shape in self.direct(output, observations)]
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
        """Shapes without conditions that explain all observations."""
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
        """The template with every open size solved, in all ways that hold; not more than a few."""
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
            terms = [
                term
                for term in self.terms()
                if all(
                    self.value(f"y[{term}]", o) == (w[p[hole]],) for (o, w), p in zip(wanted, positions, strict=True)
                )
            ]
            if not terms:
                return []
            choices.append(terms[:3])
        filled = []
        for terms_ in itertools.product(*choices):
            text = "[" + template.format(*(f"({t})" if "@" in template and " " in t else t for t in terms_)) + "]"
            if all(self.value(f"y{text}", o) == w for o, w in wanted):
                filled.append(text)
        return filled

    def terms(self) -> list[str]:
        """The vocabulary of this domain."""
        if self._terms is None:
            self._terms = vocabulary(self.domain, self.signature)
        return self._terms

    def hole_positions(
        self, template: str, holes: int, wanted: Sequence[tuple[Observation, Any]]
    ) -> list[list[int]] | None:
        """Where the open sizes of a template lie in each observed shape, or ``None`` if it cannot be the template."""
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

    def explain_list(self, output: int, observations: Sequence[Observation]) -> list[Explanation]:
        """Explanations of a list of tensors: how many, and the shape of each."""
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
                    return [Explanation((f"{listed}{shape}",)) for shape in found[:3]]
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
    """A condition that splits observations."""

    condition: str
    holds: Callable[[Observation], bool]
    #: Whether it is not combined with others.
    alone: bool = False

    def split(self, observations: Sequence[Observation]) -> list[tuple[str, list[Observation]]]:
        """The observations for which the condition holds, and the rest, whose condition is ``""``."""
        held = [o for o in observations if self.holds(o)]
        rest = [o for o in observations if not self.holds(o)]
        return [(self.condition, held), ("", rest)] if held and rest else []


def selectors(signature: Signature, observations: Sequence[Observation], domain: Domain) -> list[Selector]:
    """What observations may be split by: flags, absent attrs, empty lists, values of an integer, optional inputs."""
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
        if attr.kind == "int" and name not in domain.roles:
            seen = sorted({value for value in values if isinstance(value, int)})
            if 2 <= len(seen) <= 6:
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


def _attr_in(name: str, values: Sequence[int], observation: Observation) -> bool:
    return observation.attrs[name] in values


def _is_present(name: str, observation: Observation) -> bool:
    return observation.shapes.get(name) is not None


def _join(parts: Sequence[tuple[str, Explanation]]) -> Explanation:
    """One chain of alternatives from the explanations under each condition."""
    shapes: list[str] = []
    conditions: list[str] = []
    for condition, explanation in parts:
        for n, shape in enumerate(explanation.shapes):
            inner = explanation.conditions[n] if n < len(explanation.conditions) else ""
            both = " and ".join(c if " and " not in c else f"({c})" for c in (condition, inner) if c)
            shapes.append(shape)
            conditions.append(both)
    # The last alternative holds for what is left, which its condition says anyway.
    return Explanation(tuple(shapes), tuple(conditions[:-1]))


# --------------------------------------------------------------------------------------------------------- attr values


def attr_values(
    signature: Signature, domain: Domain, shapes: Mapping[str, Any], rng: random.Random
) -> dict[str, Any] | None:
    """Random values of all attrs for inputs of these shapes; ``None`` if a role cannot be filled."""
    values: dict[str, Any] = {}
    first = next((t.name for t in signature.required), None)
    shape = shapes.get(first) if first else ()
    if isinstance(shape, list):
        shape = shape[0] if shape else ()
    for attr in signature.attrs:
        role = domain.roles.get(attr.name, "")
        value = _in_role(role, shape or (), rng) if role else _plain(attr, rng)
        if role and attr.optional and rng.random() < 0.25 and role in ("axis", "axes"):
            value = None
        if value is _IMPOSSIBLE:
            return None
        values[attr.name] = value
    axes = [
        values[n] % max(len(shape or ()), 1) for n, r in domain.roles.items() if r == "axis" and values[n] is not None
    ]
    return values if len(set(axes)) == len(axes) else None


_IMPOSSIBLE = object()


def _in_role(role: str, shape: Sequence[int], rng: random.Random) -> Any:
    rank = len(shape)
    if role == "axis":
        return rng.randrange(-rank, rank) if rank else _IMPOSSIBLE
    if role == "insert":
        return rng.randrange(-rank - 1, rank + 1)
    if role == "axes":
        count = rng.randint(0, rank) if rng.random() < 0.3 else rng.randint(min(rank, 1), rank)
        return [a - rank if rng.random() < 0.4 else a for a in rng.sample(range(rank), count)]
    if role == "permutation":
        return rng.sample(range(rank), rank)
    if role == "sizes":
        return [rng.randint(1, 7) for _ in range(rng.randint(1, 3))]
    if role == "parts":  # a division of the last dimension, or of the first
        size = shape[rng.choice((0, -1))] if rank else 0
        if size < 2:
            return _IMPOSSIBLE
        cuts = sorted(rng.sample(range(1, size), min(rng.randint(0, 3), size - 1)))
        return [b - a for a, b in itertools.pairwise([0, *cuts, size])]
    if role == "reshape":
        total = 1
        for size in shape:
            total *= size
        if not total:
            return _IMPOSSIBLE
        divisor = rng.choice([d for d in range(1, total + 1) if total % d == 0])
        return rng.choice(([divisor, total // divisor], [total], [divisor, -1], [-1]))
    assert role == "expand"
    return [rng.randint(1, 4) for _ in range(rng.randint(0, 2))] + list(shape)


def _plain(attr: AttrArgument, rng: random.Random) -> Any:
    if attr.optional and rng.random() < 0.4:
        return None
    match attr.kind:
        case "bool":
            return rng.random() < 0.5
        case "int":
            return rng.choice((0, 1, 2, 3, -1) if not attr.has_default else (attr.default, 0, 1, 2, 3))
        case "int[]":
            return rng.choice(([1], [2], [1, 1], [2, 2], [2, 1], [3, 2], [0, 0], [1, 1, 1]))
        case "float" | "number":
            return rng.choice((0.5, 2.0, 1.0)) if attr.kind == "float" else rng.choice((2, 0.5, 1.5, 3))
    return attr.default


def restrictions(signature: Signature, observations: Sequence[Observation], domain: Domain) -> list[str]:
    """Conditions for what no run has tried: an attr that only ran with one value, an input that was never there.

    An inferred relation claims nothing beyond what was seen: with another value it is an error, not a guess.
    """
    found: list[str] = []
    for attr in signature.attrs:
        seen = {repr(o.attrs.get(attr.name)): o.attrs.get(attr.name) for o in observations}
        if attr.kind == "int[]" and domain.roles.get(attr.name) not in ("axes", "permutation"):
            lengths = {None if value is None else len(value) for value in seen.values()}
            if len(lengths) == 1 and lengths != {None} and len(seen) > 1:
                found.append(f"len({attr.name}) == {lengths.pop()}")
        if len(seen) != 1 or attr.kind in ("other", "dtype", "float", "number"):
            continue
        value = next(iter(seen.values()))
        if value is None:
            found.append(f"{attr.name} is None")
        elif isinstance(value, bool):
            found.append(attr.name if value else f"not {attr.name}")
        elif isinstance(value, str):
            found.append(f'{attr.name} == "{value}"')
        elif isinstance(value, int):
            found.append(f"{attr.name} == {value}")
        elif isinstance(value, list | tuple):
            found.append(f"len({attr.name}) == {len(value)}")
            found += [f"{attr.name}[{n}] == {v}" for n, v in enumerate(value)]
    return found


# --------------------------------------------------------------------------------------------------------------- dtypes


def dtype_candidates(signature: Signature) -> Iterable[str]:
    """The dtypes an output may have, simple ones first."""
    tensors = [t.name for t in signature.required]
    numbers = [a.name for a in signature.attrs if a.kind == "number"]
    yield from tensors
    if len(tensors) > 1:
        yield f"promote({', '.join(tensors)})"
    for count in range(1, len(numbers) + 1):
        for chosen in itertools.combinations(numbers, count):
            yield f"promote({', '.join([*tensors, *chosen])})"
            yield f"floating({', '.join([*tensors, *chosen])})"
    for first, second in itertools.combinations(tensors, 2):
        if len(tensors) > 2:
            yield f"promote({first}, {second})"
    for tensor in tensors:
        yield f"floating({tensor})"
        yield f"integral_sum({tensor})"
        yield f"real({tensor})"
        yield f"real(floating({tensor}))"
        yield f"uint8 if dtype({tensor}) == uint8 else bool"
    if len(tensors) > 1:
        yield f"floating({', '.join(tensors)})"
    yield from ("bool", "int64", "int32", "float32", "float64", "uint8", "complex64")
