"""Domains that inference tries: the relation between input shapes, and the choice of attrs.

A *domain* is a pattern for the inputs (``x[*s, n@dim]``, ``x[m, k], w[k, n]``, …) with the roles of the attrs that it
uses. Pure logic.
"""

from __future__ import annotations

import functools
import itertools
import keyword
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ascend_graph.shapes.parsing.grammar import KEYWORDS
from ascend_graph.shapes.relation import Relation, parse_relation
from ascend_graph.shapes.syntax import Binary, DimensionGroup, Dims, Ellipsis_, Expr, Name, Size

# ----------------------------------------------------------------------------------------------------------- signatures


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """Tensor argument of the operator."""

    name: str
    optional: bool = False
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class AttrArgument:
    """Argument other than a tensor."""

    name: str
    #: ``int``, ``int[]``, ``bool``, ``float``, ``number``, ``dtype``, ``str`` or ``other``.
    kind: str
    optional: bool = False
    default: Any = None
    has_default: bool = False
    #: Values to try of a ``str``, beside the default; of a ``dtype``, names of torch's dtypes.
    choices: tuple[str, ...] = ()
    #: Number of items that an ``int[]`` must have, 0 if any.
    length: int = 0


@dataclass(frozen=True, slots=True)
class OperatorSignature:
    """Operator signature as inference needs it; ``outputs`` tells for each output whether it is a list."""

    name: str
    tensors: tuple[TensorArgument, ...]
    attrs: tuple[AttrArgument, ...]
    outputs: tuple[bool, ...]

    @property
    def required(self) -> tuple[TensorArgument, ...]:
        """Tensor arguments that every call has."""
        return tuple(t for t in self.tensors if not t.optional)


# The names that domains give to dimensions, groups and indices.
_DOMAIN_NAMES = frozenset("bcdehijklmnpqrstuvw")


def safe_name(name: str) -> str:
    """Return an argument's name for use during inference, distinct from the dimension names of domains, and no keyword."""
    return f"{name}_" if name in _DOMAIN_NAMES | KEYWORDS or keyword.iskeyword(name) else name


def restored(text: str, arguments: Iterable[str]) -> str:
    """Restore the arguments' own names in a relation's text, and rename dimensions that clash with them."""
    clashing = {name for name in arguments if name in _DOMAIN_NAMES}
    mapping = {name: f"{name}0" for name in clashing} | {safe_name(name): name for name in arguments}
    words = re.compile(r'"[^"]*"|\w+')
    return words.sub(lambda match: mapping.get(match.group(), match.group()), text)


# -------------------------------------------------------------------------------------------------------------- domains


@functools.cache
def _named_items(inputs: str) -> tuple[list[str], list[str]]:
    dims: dict[str, None] = {}
    groups: dict[str, None] = {}
    for tensor in parse_relation(f"{inputs} ->").input_tensors:
        for alternative in tensor.alternatives:
            for item in alternative.shape.items if isinstance(alternative.shape, Dims) else ():
                if isinstance(item, DimensionGroup) and isinstance(item.value, Name):
                    groups[item.value.id] = None
                elif isinstance(item, Size) and item.value is not None:
                    dims |= dict.fromkeys(name.id for name in _names(item.value))
    return list(dims), list(groups)


def _names(expression: Expr) -> Iterator[Name]:
    match expression:
        case Name():
            yield expression
        case Binary(_, left, right):
            yield from _names(left)
            yield from _names(right)


@dataclass(frozen=True, slots=True)
class Domain:
    """Input patterns, and the roles of the attrs that they use."""

    inputs: str
    #: Role by attr, which decides its random values: ``axis``, ``axes``, ``permutation``, ``insert``, ``inserts``,
    #: ``sizes``, ``reshape``, ``expand``, ``parts``, ``trailing``, ``cut``.
    roles: Mapping[str, str] = field(default_factory=dict)
    #: Further conditions.
    where: tuple[str, ...] = ()
    #: True if a survey of the operator found this domain.
    surveyed: bool = False

    def relation(self, outputs: str) -> Relation:
        """Build the relation with these inputs and the given outputs."""
        return parse_relation(f"{self.inputs} -> {outputs}" + (f" where {', '.join(self.where)}" if self.where else ""))

    @property
    def dims(self) -> list[str]:
        """Single dimensions that its patterns name, in order, except those that differ per list element."""
        return _named_items(self.inputs)[0]

    @property
    def form(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Form of the domain: equal for two domains that differ only in the names of dimensions."""
        names = {name: f"#{n}" for n, name in enumerate([*self.dims, *self.groups])}
        items = re.sub(r"\[[^\]]*\]", lambda m: re.sub(r"\w+", lambda w: names.get(w[0], w[0]), m[0]), self.inputs)
        return items, tuple(sorted(self.roles.items()))

    @property
    def groups(self) -> list[str]:
        """Groups that its patterns name, in order."""
        return _named_items(self.inputs)[1]


_ONE = (
    "{0}[*s]",
    "{0}[*s, n]",
    "{0}[*s, m, n]",
    "{0}[b, *s]",
    "{0}[*s, c, h, w]",
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
    "{0}[*s, *t], {1}[*t]",
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
    "{0}[*s, n], {1}[*s, 2 * n]",
    "{0}[*s, 2 * n], {1}[*s, n]",
    "{0}[m, n], {1}[m, n]",
    "{0}[b, c, h, w], {1}[b, c, h, w]",
    "{0}[b, c, h, w], {1}[d, c, p, q]",
    "{0}[b, c, *s], {1}[b, c, *t]",
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
    "{0}[m], {1}[m, n], {2}[m, n]",
    "{0}[m, n], {1}[m, k], {2}[n, k]",
    "{0}[b, c, *s], {1}[c], {2}[c]",
    "{0}[b, c, h, w], {1}[b, c, h, w], {2}[b, c, h, w]",
)
_FOUR = (
    "{0}[...], {1}[...], {2}[...], {3}[...]",
    "{0}[*s], {1}[*s], {2}[*s], {3}[*s]",
    "{0}[*s], {1}[*t], {2}[*u], {3}[*v]",
    "{0}[*s, n], {1}[*s, n], {2}[n], {3}[*s, 1]",
    "{0}[*s, n], {1}[*s, n], {2}[n], {3}[*s]",
    "{0}[*s, n], {1}[*s, n], {2}[n], {3}[n]",
    "{0}[b, c, h, w], {1}[b, c, h, w], {2}[b, c, h, w], {3}[b, c, h, w]",
)
#: Inputs of which leading sizes are read, whatever the rank is, as functions of shapes do.
_LEADING = {2: "{0}[m, n, *s], {1}[k, *t]", 3: "{0}[m, n, *s], {1}[k, *t], {2}[d, *u]"}
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
    (False, False): (
        "{0}[*s, n@{a}], {1}[*s, k@{a}]",
        "{0}[*s, n@{a}], {1}[k]",
        "{0}[*s, n@{a}], {1}[*t]",
        "{0}[*s, n@{a}], {1}[*s, (2 * n)@{a}]",
    ),
    (False, False, False): (
        "{0}[*s, n@{a}], {1}[*s, k@{a}], {2}[*s, k@{a}]",
        "{0}[*s, n@{a}], {1}[k], {2}[*s, k@{a}]",
        "{0}[*s, n@{a}], {1}[*s, (2 * n)@{a}], {2}[*s, n@{a}]",
    ),
    (True,): ("{0}[i][*s, n[i]@{a}]",),
}


def domains(signature: OperatorSignature, *, shapes_alone: bool = False) -> list[Domain]:
    """Return the domains of an operator, less demanding ones first: those whose lists have tensors of several shapes.

    Args:
        signature: The operator's signature.
        shapes_alone: Whether it is a function of shapes, which may read sizes whatever the rank is.
    """
    alike = re.compile(r"\[i\]\[(?:\*s|\.\.\.)\]")
    found = list(_domains(signature))
    required = signature.required
    if shapes_alone and len(required) in _LEADING and not any(t.is_list for t in required):
        found.append(Domain(_LEADING[len(required)].format(*(t.name for t in required))))
    return sorted(found, key=lambda one: (constraints(one.inputs), alike.search(one.inputs) is not None))


def constraints(inputs: str) -> int:
    """Count the demands of a domain: names that occur again, and inputs of a fixed number of dimensions."""
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
        count += not any(isinstance(i, DimensionGroup | Ellipsis_) for i in pattern.shape.items)
        seen.update(items)
    return count


def _domains(signature: OperatorSignature) -> Iterator[Domain]:
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
        plain = {1: _ONE, 2: _TWO, 3: _THREE, 4: _FOUR}.get(len(names), ())
        if len(names) > 4:
            groups = [("...",) * len(names), ("*s",) * len(names), tuple(f"*{group}" for group in "stuvwpqr")]
            fitting = [given[: len(names)] for given in groups if len(given) >= len(names)]
            plain = tuple(", ".join(f"{{{n}}}[{group}]" for n, group in enumerate(given)) for given in fitting)
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
        roles += [{name: role} for role in ("sizes", "reshape", "expand", "parts", "trailing")]
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
        if 0 < len(names) < 4 and not any(lists):
            others = (f"{other}[*s[{name}:]]" for other in names[1:])
            yield Domain(", ".join((f"{names[0]}[*s]", *others)), {name: "cut"})
        if lists in ((False,), (True,)):
            yield Domain(("{0}[i][*s]" if lists[0] else "{0}[*s]").format(*names), {name: "insert"})
    for name in int_lists:
        if lists == (False,):
            yield Domain(f"{names[0]}[*s, *r@{name}]", {name: "axes"})
            yield Domain(f"{names[0]}[*s@{name}]", {name: "permutation"})
            yield Domain(f"{names[0]}[*s]", {name: "inserts"})
    for a, b in itertools.permutations(ints, 2):
        if lists == (False,):
            yield Domain(f"{names[0]}[*s, m@{a}, n@{b}]", {a: "axis", b: "axis"})
            yield Domain(f"{names[0]}[*s]", {a: "insert", b: "insert"})
    for pattern in plain:
        if pattern not in wide:
            yield Domain(pattern.format(*names))


def _any_rank(pattern: str) -> bool:
    """Return whether a domain lets every input have any number of dimensions."""
    return all(item.strip(" ]").split("[")[-1] in ("*s", "*t", "*u", "...", "i", "") for item in pattern.split(","))


# ------------------------------------------------------------------------------------------------------------- neighbors


def neighbors(
    signature: OperatorSignature, shapes: Mapping[str, Any], attrs: Mapping[str, Any], rng: random.Random
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield variations of a call as shapes and attrs.

    Most differ in one thing: a size, a dimension more or less, an attr, an optional input. Some change several at once.
    """
    given = [t.name for t in signature.tensors if isinstance(shapes.get(t.name), tuple)]
    for name in given:
        shape = shapes[name]
        for axis, size in enumerate(shape):
            for other in {1, size + 1, 2 * size, size - 1} - {size, 0, -1}:
                yield {**shapes, name: (*shape[:axis], other, *shape[axis + 1 :])}, dict(attrs)
            yield {**shapes, name: (*shape[:axis], *shape[axis + 1 :])}, dict(attrs)
            yield {**shapes, name: (*shape[:axis], rng.choice((2, 3)), *shape[axis:])}, dict(attrs)
        yield {**shapes, name: (*shape, rng.choice((2, 3)))}, dict(attrs)
    for some in itertools.chain(itertools.combinations(given, 2), [given] if len(given) > 2 else []):
        for size in (1, 2):
            yield {**shapes, **{name: (size, *shapes[name]) for name in some}}, dict(attrs)
            yield {**shapes, **{name: (*shapes[name], size) for name in some}}, dict(attrs)
        # Two dimensions that are alike, of another size.
        a, b = some[0], some[-1]
        for (i, size), (j, other) in itertools.product(enumerate(shapes[a]), enumerate(shapes[b])):
            if size == other:
                changed = {a: (*shapes[a][:i], size + 1, *shapes[a][i + 1 :])}
                changed[b] = (*shapes[b][:j], size + 1, *shapes[b][j + 1 :])
                yield {**shapes, **changed}, dict(attrs)
    for attr in signature.attrs:
        value = attrs[attr.name]
        others: Iterable[Any] = ()
        if attr.kind == "int":
            others = {-1, 0, 1, 2, 4, *((value + 1, value - 1) if value is not None else ())} - {value}
        elif attr.kind == "bool":
            others = (not value,)
        elif attr.kind == "int[]" and value:
            others = ([*value, value[-1]], value[:-1], [n + 1 for n in value], [*value[:-1], value[-1] + 1])
        for changed_value in (*others, *((None,) if attr.optional and value is not None else ())):
            yield dict(shapes), {**attrs, attr.name: changed_value}
    # Several attrs at once, also with larger tensors.
    ints = [a for a in signature.attrs if a.kind == "int" and attrs[a.name] is not None]
    for times in (1, 3, 4) if ints else ():
        larger = {**shapes, **{name: tuple(times * size for size in shapes[name]) for name in given}}
        for _ in range(5):
            yield dict(larger), {**attrs, **{a.name: rng.randint(0, 6) for a in ints if rng.random() < 0.7}}
    sizes = sorted({size for name in given for size in shapes[name]})
    for tensor in signature.tensors:
        if tensor.optional and not tensor.is_list and shapes.get(tensor.name) is None:
            for shape in ((), *((size,) for size in sizes), *(shapes[name] for name in given)):
                yield {**shapes, tensor.name: shape}, dict(attrs)
