"""Conditions on inputs: learned from those that a kernel took and those that it refused, and from the attrs seen. Pure logic.

A condition must hold for all inputs taken. Of these conditions, the few that explain the refusals are kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from ascend_graph.inference.domains import Domain, OperatorSignature
from ascend_graph.inference.solver import Observation, Solver

#: Number of inputs that the kernel must take before a condition is believed.
SUPPORT = 12
_DIVISORS = (2, 3, 4, 5, 6, 8, 12, 16, 32, 64, 128)

Row = Mapping[str, int | None]
Test = Callable[[Row], bool]


def learn(
    domain: Domain, signature: OperatorSignature, taken: Sequence[Observation], refused: Sequence[Observation]
) -> list[str]:
    """Return the conditions that separate inputs taken from inputs refused, the most telling first."""
    if len(taken) < SUPPORT or not refused:
        return []
    solver = Solver(domain, signature)
    good, bad = ([_row(solver, domain, signature, o) for o in some] for some in (taken, refused))
    names = list(good[0])
    optional = {a.name for a in signature.attrs if a.optional}
    candidates = []
    for text, about, test in _candidates(names):
        if all(test(row) for row in good) and (failing := {n for n, row in enumerate(bad) if not test(row)}):
            absent = [name for name in about if name in optional]
            candidates.append((" or ".join([*(f"{name} is None" for name in absent), text]), failing))
    chosen: list[str] = []
    open_ = set(range(len(bad)))
    while candidates:
        text, failing = max(candidates, key=lambda c: len(c[1] & open_))
        if len(failing & open_) < max(2, len(bad) // 20):
            break
        chosen.append(text)
        open_ -= failing
    return chosen


def _row(solver: Solver, domain: Domain, signature: OperatorSignature, seen: Observation) -> dict[str, int | None]:
    row: dict[str, int | None] = {}
    for dim in domain.dims:
        value = solver.value(f"y[{dim}]", seen)
        row[dim] = value[0] if value is not None else None
    for attr in signature.attrs:
        if attr.kind == "int" and domain.roles.get(attr.name, "cut") == "cut":
            row[attr.name] = seen.attrs[attr.name]
    if domain.groups or "..." in domain.inputs:
        for tensor in signature.required:
            shape = seen.shapes[tensor.name]
            if isinstance(shape, tuple):
                row[f"rank({tensor.name})"] = len(shape)
    if "..." in domain.inputs:
        value = solver.value("y[prod(...)]", seen)
        row["prod(...)"] = value[0] if value is not None else None
        for tensor in signature.required:
            shape = seen.shapes[tensor.name]
            if isinstance(shape, tuple):
                row[f"numel({tensor.name})"] = _product(shape)
    return row


def _product(shape: Sequence[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def _candidates(names: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...], Test]]:
    plain = [n for n in names if "(" not in n]
    for a in names:
        if a.startswith("rank("):
            for bound in (1, 2, 3, 4, 5):
                yield f"{a} <= {bound}", (a,), lambda r, a=a, b=bound: (v := r[a]) is None or v <= b  # type: ignore[misc]
                yield f"{a} >= {bound}", (a,), lambda r, a=a, b=bound: (v := r[a]) is None or v >= b  # type: ignore[misc]
    for a, b in itertools.permutations(names, 2):
        if a.startswith("rank(") and b.startswith("rank("):
            yield f"{a} >= {b}", (a, b), lambda r, a=a, b=b: _both(r, a, b, lambda x, y: x >= y)  # type: ignore[misc]
        if a.startswith("numel(") and b == "prod(...)":
            yield f"{a} == {b}", (a, b), lambda r, a=a, b=b: _both(r, a, b, lambda x, y: x == y)  # type: ignore[misc]
    for a in plain:
        for low in (0, 1, 2):
            yield f"{a} >= {low}", (a,), lambda r, a=a, low=low: (v := r[a]) is None or v >= low  # type: ignore[misc]
    for a, b in itertools.permutations(plain, 2):
        yield (
            f"{b} > 0 and {a} % {b} == 0",
            (a, b),
            lambda r, a=a, b=b: _both(  # type: ignore[misc]
                r, a, b, lambda x, y: y > 0 and x % y == 0
            ),
        )
        yield f"{a} >= 2 * {b}", (a, b), lambda r, a=a, b=b: _both(r, a, b, lambda x, y: x >= 2 * y)  # type: ignore[misc]
        yield f"{a} >= {b}", (a, b), lambda r, a=a, b=b: _both(r, a, b, lambda x, y: x >= y)  # type: ignore[misc]
        yield (
            f"{b} > 0 and {a} % ({b} * {b}) == 0",
            (a, b),
            lambda r, a=a, b=b: _both(  # type: ignore[misc]
                r, a, b, lambda x, y: y > 0 and x % (y * y) == 0
            ),
        )
    for a in plain:
        for divisor in _DIVISORS:
            yield f"{a} % {divisor} == 0", (a,), lambda r, a=a, d=divisor: (v := r[a]) is None or v % d == 0  # type: ignore[misc]
    for a, b, c in itertools.permutations(plain, 3):
        if a < b:
            yield (
                f"{a} + {b} >= {c}",
                (a, b, c),
                lambda r, a=a, b=b, c=c: _three(  # type: ignore[misc]
                    r, a, b, c, lambda x, y, z: x + y >= z
                ),
            )
        yield (
            f"{a} + 2 * {b} >= {c}",
            (a, b, c),
            lambda r, a=a, b=b, c=c: _three(  # type: ignore[misc]
                r, a, b, c, lambda x, y, z: x + 2 * y >= z
            ),
        )
        if b < c:
            yield (
                f"{b} * {c} > 0 and {a} % ({b} * {c}) == 0",
                (a, b, c),
                lambda r, a=a, b=b, c=c: _three(  # type: ignore[misc]
                    r, a, b, c, lambda x, y, z: y * z > 0 and x % (y * z) == 0
                ),
            )


def _both(row: Row, a: str, b: str, test: Callable[[int, int], bool]) -> bool:
    x, y = row[a], row[b]
    return x is None or y is None or test(x, y)


def _three(row: Row, a: str, b: str, c: str, test: Callable[[int, int, int], bool]) -> bool:
    x, y, z = row[a], row[b], row[c]
    return x is None or y is None or z is None or test(x, y, z)


def restrictions(signature: OperatorSignature, observations: Sequence[Observation], domain: Domain) -> list[str]:
    """Return conditions that exclude untried calls: another value of an attr that ran with one, or an untried input.

    An inferred relation claims nothing beyond the runs: another value is an error, not a guess.
    """
    found: list[str] = []
    for attr in signature.attrs:
        seen = {repr(o.attrs.get(attr.name)): o.attrs.get(attr.name) for o in observations}
        if attr.kind == "int[]" and domain.roles.get(attr.name) not in ("axes", "inserts", "permutation"):
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


def bounds(signature: OperatorSignature, observations: Sequence[Observation], domain: Domain) -> list[str]:
    """Return conditions for integers that never ran negative; a negative value often has a meaning of its own."""
    found: list[str] = []
    for attr in signature.attrs:
        values = {o.attrs.get(attr.name) for o in observations} if attr.kind == "int" else set()
        if domain.roles.get(attr.name, "cut") != "cut" or len(values) < 2:
            continue
        if all(value is None or value >= 0 for value in values):
            found.append(f"{attr.name} is None or {attr.name} >= 0" if None in values else f"{attr.name} >= 0")
    return found
