"""Generalization of ties between dimensions, seen at some ranks, to input patterns of any rank. Pure logic.

In one *structure*, a number of dimensions for every tensor, it is known which dimensions only change together. A run of
dimensions that is alike in all tensors that have it may be a group. The resulting patterns are scored by the number of
structures they cover among those that ran, and among those that did not.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

Ranks = tuple[int, ...]

#: Names of groups and dimensions.
GROUPS = "stu"
DIMS = "nmkdchwpqbelv"
#: Placeholders for dimensions that have no name yet.
SYMBOLS = tuple(f"#{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True, slots=True)
class Structure:
    """Structure that ran: an item per dimension of every tensor, and the items that broadcast.

    An item is a symbol, or a text of the language with a symbol such as ``#a`` in it: ``4``, ``2 * #a``, an attr's
    name. Dimensions that only change together have the same symbol.
    """

    items: tuple[tuple[str, ...], ...]
    broadcast: Collection[str] = ()

    @property
    def ranks(self) -> Ranks:
        return tuple(map(len, self.items))


@dataclass(frozen=True, slots=True)
class ShapePattern:
    """Items of every tensor, in which ``*0`` is a group and ``...`` a group that broadcasts."""

    items: tuple[tuple[str, ...], ...]

    @property
    def groups(self) -> list[str]:
        return sorted({i for items in self.items for i in items if i.startswith("*")})

    def covers(self, highest: int) -> set[Ranks]:
        """Return the structures that it describes, of tensors with at most ``highest`` dimensions."""
        found = set()
        free = [n for n, items in enumerate(self.items) if "..." in items]
        groups = self.groups
        for lengths in itertools.product(range(highest + 1), repeat=len(groups) + len(free)):
            long = dict(zip(groups, lengths, strict=False))
            ellipses = dict(zip(free, lengths[len(groups) :], strict=True))
            ranks = tuple(
                sum(long.get(i, ellipses.get(n, 0) if i == "..." else 1) for i in items)
                for n, items in enumerate(self.items)
            )
            if max(ranks, default=0) <= highest:
                found.add(ranks)
        return found

    def text(self, names: Sequence[str], axis: str = "") -> str:
        """Return the inputs in the shape language; ``axis`` is an attr that names the axis of the last dimensions."""
        known: dict[str, str] = {}
        dims, groups = iter(DIMS), iter(GROUPS)

        def symbol(name: str) -> str:
            if name not in known:
                known[name] = next(dims, f"n{len(known)}")
            return known[name]

        texts = []
        for name, items in zip(names, self.items, strict=True):
            written = []
            grouped = any(i.startswith("*") for i in items)
            for number, item in enumerate(items):
                if item.startswith("*"):
                    if item not in known:
                        known[item] = f"*{next(groups)}"
                    written.append(known[item])
                    continue
                shown = item if item == "..." else _named(item, symbol)
                if axis and grouped and number == len(items) - 1:
                    shown = f"({shown})@{axis}" if " " in shown else f"{shown}@{axis}"
                written.append(shown)
            texts.append(f"{name}[{', '.join(written)}]")
        return ", ".join(texts)


def _named(item: str, symbol: Callable[[str], str]) -> str:
    start = item.find("#")
    if start < 0:
        return item
    return item[:start] + symbol(item[start : start + 2]) + _named(item[start + 2 :], symbol)


def patterns(ran: Sequence[Structure], accepted: set[Ranks], failed: set[Ranks], highest: int) -> list[ShapePattern]:
    """Return the patterns of any rank that the structures suggest, those that cover most of the runs first."""
    scores: dict[ShapePattern, tuple[float, int, int]] = {}
    for structure in ran:
        for pattern in _generalized(ShapePattern(structure.items), structure, 0):
            canonical = _renamed(pattern)
            if canonical in scores:
                continue
            covered = canonical.covers(highest)
            right, wrong = len(covered & accepted), len(covered & failed)
            symbols = {i for items in canonical.items for i in items if i.startswith("#")}
            scores[canonical] = (-(right - 0.4 * wrong), len(canonical.groups), len(symbols))
    return sorted(scores, key=lambda pattern: scores[pattern])


def _generalized(pattern: ShapePattern, structure: Structure, number: int) -> Iterator[ShapePattern]:
    yield pattern
    if number >= 2:
        return
    tried = set()
    for items in pattern.items:
        for start, end in itertools.combinations(range(len(items) + 1), 2):
            run = items[start:end]
            if end - start > 3 or run in tried or not all(i.startswith("#") for i in run) or len(set(run)) < len(run):
                continue
            tried.add(run)
            if any("..." in i for i in pattern.items) or not any(i in structure.broadcast for i in run):
                replaced = _replaced(pattern, run, f"*{number}")
                if replaced is not None:
                    yield from _generalized(replaced, structure, number + 1)
            elif all(i in structure.broadcast for i in run):
                replaced = _replaced(pattern, run, "...")
                if replaced is not None:
                    yield from _generalized(replaced, structure, number + 1)
                replaced = _replaced(pattern, run, f"*{number}")
                if replaced is not None:
                    yield from _generalized(replaced, structure, number + 1)


def _replaced(pattern: ShapePattern, run: tuple[str, ...], group: str) -> ShapePattern | None:
    """Replace every occurrence of a run; return None if one of its symbols occurs anywhere else."""
    result = []
    for items in pattern.items:
        found: list[str] = []
        at = 0
        while at < len(items):
            if items[at : at + len(run)] == run:
                found.append(group)
                at += len(run)
                continue
            if any(symbol in items[at] for symbol in run):
                return None
            found.append(items[at])
            at += 1
        if found.count(group) > 1:
            return None
        result.append(tuple(found))
    return ShapePattern(tuple(result))


def _renamed(pattern: ShapePattern) -> ShapePattern:
    """Renumber the symbols of a pattern in order."""
    names: dict[str, str] = {}

    def symbol(name: str) -> str:
        return names.setdefault(name, SYMBOLS[len(names)])

    return ShapePattern(tuple(tuple(_named(i, symbol) for i in items) for items in pattern.items))
