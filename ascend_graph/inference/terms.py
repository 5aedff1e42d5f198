"""Terms outside the vocabulary: arithmetic of dimensions and attrs, enumerated from small to large. Pure logic.

Terms with the same value in every observation are one term, the first and simplest. So the search stays small at any
depth, and a term found is checked on inputs that tell its rivals apart.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

Values = tuple[int, ...]
Term = tuple[Values, str]

#: Number of terms kept per depth.
WIDTH = 1500
_LIMIT = 1 << 31
#: Number of terms that are combined with all leaves at once.
_CHUNK = 64
#: Number of observations that a combination is compared with the target in before all are.
_FIRST = 3
#: Number of combinations that are compared in all observations at once.
_PLACES = 2048


def _quotients(a: Any, b: Any) -> Any:
    return a // np.where(b > 0, b, 1)


#: Combinations of two terms as they are written, with their values, and true if they need a >= 0 and b > 0.
_OPERATIONS: Sequence[tuple[str, Callable[[Any, Any], Any], bool]] = (
    ("{0} + {1}", lambda a, b: a + b, False),
    ("{0} * {1}", lambda a, b: a * b, False),
    ("{0} - {1}", lambda a, b: a - b, False),
    ("{1} - {0}", lambda a, b: b - a, False),
    ("{0} // {1}", _quotients, True),
    ("{1} // {0}", lambda a, b: _quotients(b, a), True),
    ("ceildiv({0}, {1})", lambda a, b: -_quotients(-a, b), True),
    ("ceildiv({1}, {0})", lambda a, b: -_quotients(-b, a), True),
)


def terms_for(target: Values, leaves: Mapping[str, Values], wanted: int = 4) -> list[str]:
    """Return the simplest terms over ``leaves`` that equal ``target`` in every observation; empty if there are none.

    >>> terms_for((4, 8, 9), {"n": (3, 7, 9), "m": (4, 4, 3)})
    ['ceildiv(n, m) * m']
    """
    if len(set(target)) < 3:  # a number that hardly changes has too many explanations
        return []
    found: list[str] = []
    known: dict[Values, str] = {}
    for text, values in {**leaves, "1": (1,) * len(target), "2": (2,) * len(target)}.items():
        known.setdefault(values, text)
    first = list(known.items())
    levels = [first]
    for depth in range(3):
        before = levels[-1]
        fresh: dict[Values, str] = {}
        for values, text in _level(before, first, target, fresh if depth < 2 else None):
            if values == target:
                found.append(text)
                if len(found) >= wanted:
                    return found
            elif values not in known and values not in fresh:
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
    steps = dict(_steps(leaves))
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


def _level(
    before: Sequence[Term], first: Sequence[Term], target: Values, fresh: Mapping[Values, str] | None
) -> Iterator[Term]:
    """Yield combinations as long as fresh ones are kept, and then those that are the target."""
    for start in range(0, len(before), _CHUNK):
        full = fresh is None or len(fresh) >= WIDTH
        yield from _pairs(before[start : None if full else start + _CHUNK], first, target if full else None)
        if full:
            return


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
    for (name, values), block in itertools.product(leaves.items(), _BLOCKS):  # such as the 16 bytes of 128 bits
        counts = [-(-v // block) for v in values]
        times = target[0] // counts[0] if counts[0] > 0 else 0
        if times not in (0, 1, block) and all(times * n == t for n, t in zip(counts, target, strict=True)):
            yield f"ceildiv({name}, {block}) * {times}"
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


def _pairs(left: Sequence[Term], right: Sequence[Term], only: Values | None) -> Iterator[Term]:
    """Yield the combinations of a left and a right term, all or those of some values, in order."""
    if not left or not right:
        return
    length = len(right[0][0]) if only is None else min(_FIRST, len(only))
    b = np.array([values[:length] for values, _ in right], dtype=np.int64)[None]
    for start in range(0, len(left), _CHUNK):
        some = left[start : start + _CHUNK]
        a = np.array([values[:length] for values, _ in some], dtype=np.int64)[:, None]
        results, fits = _combined(a, b)
        found: Iterable[tuple[Any, Any]]
        if only is None:
            found = zip(np.argwhere(fits), results[fits], strict=True)
        else:
            fits &= (results == np.array(only[:length], dtype=np.int64)).all(-1)
            found = _equal(np.argwhere(fits), some, right, only)
        for (i, j, number), values in found:
            form, x_text, y_text = _OPERATIONS[number][0], some[i][1], right[j][1]
            texts = (x_text, y_text) if form.startswith("ceildiv") else (_grouped(x_text), _grouped(y_text))
            yield tuple(values.tolist()), form.format(*texts)


def _equal(places: Any, left: Sequence[Term], right: Sequence[Term], target: Values) -> Iterator[tuple[Any, Any]]:
    """Yield those of the places (left term, right term, operation) that equal the target in all observations, and it."""
    for start in range(0, len(places), _PLACES):
        some = places[start : start + _PLACES]
        a = np.array([left[i][0] for i in some[:, 0]], dtype=np.int64)
        b = np.array([right[j][0] for j in some[:, 1]], dtype=np.int64)
        results, fits = _combined(a, b)
        each = np.arange(len(some))
        values = results[each, some[:, 2]]
        keep = fits[each, some[:, 2]] & (values == np.array(target, dtype=np.int64)).all(-1)
        yield from zip(some[keep], values[keep], strict=True)


def _combined(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the values of every operation on two arrays, and in which of them all observations have one."""
    results, fits = [], []
    small = np.abs(a.astype(np.float64) * b) <= _LIMIT
    for form, function, divides in _OPERATIONS:
        values = function(a, b)
        fit = np.abs(values) <= _LIMIT
        if divides:
            over, under = (a, b) if form.index("{0}") < form.index("{1}") else (b, a)
            fit = fit & (over >= 0) & (under > 0)
        elif "*" in form:
            fit = fit & small
        results.append(values)
        fits.append(fit.all(-1))
    return np.stack(results, -2), np.stack(fits, -1)


def _grouped(text: str) -> str:
    """Put a text in parentheses, unless it is a name or a call."""
    return f"({text})" if " " in text and not (text.startswith("ceildiv(") and text.count("(") == 1) else text
