"""Values of attrs that inference tries: by their role in a domain, or by their kind."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from ascend_graph.inference.domains import AttrArgument, Domain, OperatorSignature


def attr_values(
    signature: OperatorSignature, domain: Domain, shapes: Mapping[str, Any], rng: random.Random
) -> dict[str, Any] | None:
    """Draw values of the attrs with a role, for inputs of these shapes; return ``None`` if a role cannot be filled."""
    values: dict[str, Any] = {}
    first = next((t.name for t in signature.required), None)
    shape = shapes.get(first) if first else ()
    if isinstance(shape, list):
        shape = shape[0] if shape else ()
    for attr in signature.attrs:
        role = domain.roles.get(attr.name, "")
        if not role:
            continue
        value = _in_role(role, shape or (), rng)
        if attr.optional and rng.random() < 0.25 and role in ("axis", "axes"):
            value = None
        if value is _IMPOSSIBLE:
            return None
        values[attr.name] = value
    axes = [
        values[n] % max(len(shape or ()), 1) for n, r in domain.roles.items() if r == "axis" and values[n] is not None
    ]
    return values if len(set(axes)) == len(axes) else None


def plain_values(signature: OperatorSignature, domain: Domain, rng: random.Random) -> dict[str, Any]:
    """Draw values of the attrs without a role."""
    length = rng.choice((1, 2, 2, 2, 3))  # strides and paddings are as many
    return {a.name: attr_value(a, rng, length) for a in signature.attrs if not domain.roles.get(a.name)}


_IMPOSSIBLE = object()


def _in_role(role: str, shape: Sequence[int], rng: random.Random) -> Any:
    rank = len(shape)
    if role in ("axis", "cut"):
        return rng.randrange(-rank, rank) if rank else _IMPOSSIBLE
    if role == "insert":
        return rng.randrange(-rank - 1, rank + 1)
    if role == "inserts":
        rank += rng.randint(1, 3)
        return [a - rank if rng.random() < 0.4 else a for a in rng.sample(range(rank), rank - len(shape))]
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
    if role == "trailing":  # the last dimensions
        return list(shape[rank - rng.randint(1, rank) :]) if rank else _IMPOSSIBLE
    if role == "reshape":
        total = math.prod(shape)
        if not total:
            return _IMPOSSIBLE
        divisor = math.prod(rng.choice([d for d in range(1, size + 1) if size % d == 0]) for size in shape)
        return rng.choice(([divisor, total // divisor], [total], [divisor, -1], [-1]))
    assert role == "expand"
    return [rng.randint(1, 4) for _ in range(rng.randint(0, 2))] + list(shape)


#: Integers that are drawn for attrs without a role.
USUAL_INTEGERS = frozenset((-1, 0, 1, 2, 3, 4, 5, 6, 8))


def attr_value(attr: AttrArgument, rng: random.Random, length: int) -> Any:
    """Draw a value of an attr by its kind; ``length`` is that of lists."""
    if attr.optional and rng.random() < 0.4:
        return None
    match attr.kind:
        case "bool":
            return rng.random() < 0.5
        case "int":
            usual = (attr.default, 0, 1, 2, 3, -1) if attr.has_default else (0, 1, 1, 2, 3, -1)
            return rng.choice(usual if rng.random() < 0.7 else (1, 2, 4, 5, 6, 8))
        case "int[]":
            length = attr.length or (len(attr.default or ()) if rng.random() < 0.5 else 0) or length
            alike = rng.random()
            if alike < 0.35:
                return [int(alike < 0.15)] * length
            return [rng.choice((1, 1, 2, 2, 3)) for _ in range(length)]
        case "float" | "number":
            return rng.choice((0.5, 2.0, 1.0)) if attr.kind == "float" else rng.choice((2, 0.5, 1.5, 3))
        case "str" if attr.choices:
            return rng.choice((attr.default, *attr.choices)) if attr.has_default else rng.choice(attr.choices)
    return attr.default
