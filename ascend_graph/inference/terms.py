"""Terms outside the vocabulary: arithmetic of dimensions and attrs, enumerated from small to large. Pure logic.

Terms with the same value in every observation are one term, the first and simplest. So the search stays small at any
depth, and a term found is checked on inputs that tell its rivals apart.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

Values = tuple[int, ...]

#: Number of terms kept per depth.
WIDTH = 1500
_LIMIT = 1 << 31


def _divided(up: bool) -> Callable[[int, int], int | None]:
    def divide(a: int, b: int) -> int | None:
        return None if b <= 0 or a < 0 else -(-a // b) if up else a // b

    return divide


_OPERATORS: Mapping[str, tuple[str, Callable[[int, int], int | None]]] = {
    "+": ("{} + {}", lambda a, b: a + b),
    "*": ("{} * {}", lambda a, b: a * b),
    "-": ("{} - {}", lambda a, b: a - b),
    "//": ("{} // {}", _divided(False)),
    "ceildiv": ("ceildiv({}, {})", _divided(True)),
}
_COMMUTATIVE = ("+", "*")


def terms_for(target: Values, leaves: Mapping[str, Values], wanted: int = 4) -> list[str]:
    """Return the simplest terms over ``leaves`` that equal ``target`` in every observation; empty if there are none.

    >>> terms_for((4, 8, 9), {"n": (3, 7, 9), "m": (4, 4, 3)})
    ['ceildiv(n, m) * m']
    """
    if len(set(target)) < 3:  # a number that hardly changes has too many explanations
        return []
    found: list[str] = []
    steps = dict(_steps(leaves))
    known: dict[Values, str] = {}
    for text, values in {**leaves, "1": (1,) * len(target), "2": (2,) * len(target)}.items():
        known.setdefault(values, text)
    first = list(known.items())
    levels = [first]
    for depth in range(3):
        before = levels[-1]
        fresh: dict[Values, str] = {}
        for values, text in _pairs(before, first, target if depth == 2 else None):
            if values == target:
                found.append(text)
                if len(found) >= wanted:
                    return found
            elif depth < 2 and values not in known and values not in fresh and len(fresh) < WIDTH:
                fresh[values] = text
        if found:
            return found
        if depth == 1:
            # Two terms of two leaves each, such as (h // p) * (w // q).
            small = levels[1][:200]
            for _, text in _pairs(small, small, target):
                found.append(text)
                if len(found) >= wanted:
                    return found
        known |= fresh
        levels.append(list(fresh.items()))
    if target in steps:
        return [steps[target]]
    quotient = _quotient(target, leaves)
    if quotient:
        return [quotient]
    packed = list(itertools.islice(_packed(target, leaves), wanted))
    if packed:
        return packed
    # As many as there are windows over two dimensions.
    for values, text in steps.items():
        if all(v and t % v == 0 for v, t in zip(values, target, strict=True)):
            other = steps.get(tuple(t // v for v, t in zip(values, target, strict=True)))
            if other is not None:
                return [f"({text}) * ({other})"]
    return found


#: Numbers that are packed into one, or alignments.
_BLOCKS = (4, 8, 16, 32, 64, 128, 256, 512)


def _packed(target: Values, leaves: Mapping[str, Values]) -> Iterator[str]:
    """Yield terms of one leaf and a block, alone or with another leaf: ``8 * n // size``, ``ceildiv(n, 32) * 32``."""
    blocks: list[tuple[Values, str]] = []
    for (name, values), block in itertools.product(leaves.items(), _BLOCKS):
        blocks += [
            (tuple(block * v for v in values), f"{block} * {name}"),
            (tuple(v // block for v in values), f"{name} // {block}"),
            (tuple(-(-v // block) for v in values), f"ceildiv({name}, {block})"),
            (tuple(-(-v // block) * block for v in values), f"ceildiv({name}, {block}) * {block}"),
        ]
    yield from (text for values, text in blocks if values == target)
    others = [(values, name) for name, values in leaves.items() if len(set(values)) > 1]
    yield from (text for _, text in _pairs(blocks, others, target))


def _quotient(target: Values, leaves: Mapping[str, Values]) -> str:
    """Return the target as a quotient of products of leaves, such as ``b * h * w // (p * p)``, or an empty text."""
    names = [name for name, values in leaves.items() if min(values) > 0 and max(values) > 1]
    if len(names) > 20:
        return ""

    def products(count: int) -> Iterator[tuple[Values, tuple[str, ...]]]:
        for chosen in itertools.combinations_with_replacement(names, count):
            yield tuple(map(math.prod, zip(*(leaves[name] for name in chosen), strict=True))), chosen

    tops: dict[Values, tuple[str, ...]] = {}
    for count in (2, 3):
        for values, chosen in products(count):
            tops.setdefault(values, chosen)
    for count in (1, 2):
        for values, below in products(count):
            above = tops.get(tuple(t * v for t, v in zip(target, values, strict=True)))
            if above is not None and not set(above) & set(below):
                return f"{' * '.join(above)} // {_grouped(' * '.join(below))}"
    return ""


#: Output sizes of windows that step over a dimension: convolutions, pooling, and their transposes.
_STEPS: Sequence[tuple[str, Callable[..., int]]] = (
    ("({0} - {1}) // {2} + 1", lambda n, k, s: (n - k) // s + 1),
    ("({0} + 2 * {3} - {1}) // {2} + 1", lambda n, k, s, p: (n + 2 * p - k) // s + 1),
    ("({0} + {3} - {1}) // {2} + 1", lambda n, k, s, p: (n + p - k) // s + 1),
    ("({0} - {3} * ({1} - 1) - 1) // {2} + 1", lambda n, k, s, d: (n - d * (k - 1) - 1) // s + 1),
    (
        "({0} + 2 * {3} - {4} * ({1} - 1) - 1) // {2} + 1",
        lambda n, k, s, p, d: (n + 2 * p - d * (k - 1) - 1) // s + 1,
    ),
    ("({0} - 1) * {2} + {1}", lambda n, k, s: (n - 1) * s + k),
    ("({0} - 1) * {2} - 2 * {3} + {1}", lambda n, k, s, p: (n - 1) * s - 2 * p + k),
    ("({0} - 1) * {2} - 2 * {3} + {1} + {4}", lambda n, k, s, p, o: (n - 1) * s - 2 * p + k + o),
)


def _steps(leaves: Mapping[str, Values]) -> Iterator[tuple[Values, str]]:
    """Yield the sizes of windows over the leaves, later ones simpler."""
    names = list(leaves)
    for form, function in reversed(_STEPS):
        count = function.__code__.co_argcount
        if math.perm(len(names), count) > 8000:
            continue
        for chosen in itertools.permutations(names, count):
            with contextlib.suppress(ZeroDivisionError):
                yield tuple(map(function, *(leaves[name] for name in chosen))), form.format(*chosen)


def _pairs(
    left: Sequence[tuple[Values, str]], right: Sequence[tuple[Values, str]], only: Values | None
) -> Iterator[tuple[Values, str]]:
    for a, a_text in left:
        for b, b_text in right:
            for name, (form, function) in _OPERATORS.items():
                orders = [(a, a_text, b, b_text)]
                if name not in _COMMUTATIVE:
                    orders.append((b, b_text, a, a_text))
                for x, x_text, y, y_text in orders:
                    if only is not None and function(x[0], y[0]) != only[0]:
                        continue
                    values = _all(function, x, y)
                    if values is not None and (only is None or values == only):
                        bare = form.startswith("ceildiv")
                        yield values, form.format(*(t if bare else _grouped(t) for t in (x_text, y_text)))


def _all(function: Callable[[int, int], int | None], a: Values, b: Values) -> Values | None:
    values = []
    for x, y in zip(a, b, strict=True):
        value = function(x, y)
        if value is None or abs(value) > _LIMIT:
            return None
        values.append(value)
    return tuple(values)


def _grouped(text: str) -> str:
    """Put a text in parentheses, unless it is a name or a call."""
    return f"({text})" if " " in text and not (text.startswith("ceildiv(") and text.count("(") == 1) else text
