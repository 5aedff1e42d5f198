"""Ties between dimensions, seen with tensors of some numbers of dimensions each → input patterns for any number. Pure logic.

Of one *structure*, a number of dimensions for every tensor, it is known which dimensions only change together. Runs of
dimensions that are alike in all tensors that have them may be a group; the patterns that are made so are judged by how many
of the structures that ran they cover, and how many of those that did not.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

Ranks = tuple[int, ...]

#: Names of groups and dimensions.
GROUPS = "stu"
DIMS = "nmkdchwpqbelv"
#: What stands for a dimension before it has a name.
SYMBOLS = tuple(f"#{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True, slots=True)
class Structure:
    """One structure that ran: an item per dimension of every tensor, and which items broadcast.

    An item is a symbol that is the same for dimensions that only change together, or a text of the language (``4``, ``2 * #a``, an
    attr's name) in which ``#a`` is a symbol.
    """

    items: tuple[tuple[str, ...], ...]
    broadcast: Collection[str] = ()

    @property
    def ranks(self) -> Ranks:
        return tuple(map(len, self.items))


@dataclass(frozen=True, slots=True)
class Pattern:
    """Items of every tensor, in which ``*0`` is a group and ``...`` what broadcasts."""

    items: tuple[tuple[str, ...], ...]

    @property
    def groups(self) -> list[str]:
        return sorted({i for items in self.items for i in items if i.startswith("*")})

    def covers(self, highest: int) -> set[Ranks]:
        """The structures that it describes, of tensors with at most so many dimensions."""
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
        """The inputs as the language writes them; with ``axis`` the last dimensions are at the axis that this attr names."""
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


def patterns(ran: Sequence[Structure], accepted: set[Ranks], failed: set[Ranks], highest: int) -> list[Pattern]:
    """The patterns of any number of dimensions that the structures suggest, those first that describe most of what ran."""
    scores: dict[Pattern, tuple[float, int, int]] = {}
    for structure in ran:
        for pattern in _generalised(Pattern(structure.items), structure, 0):
            canonical = _renamed(pattern)
            if canonical in scores:
                continue
            covered = canonical.covers(highest)
            right, wrong = len(covered & accepted), len(covered & failed)
            symbols = {i for items in canonical.items for i in items if i.startswith("#")}
            scores[canonical] = (-(right - 0.4 * wrong), len(canonical.groups), len(symbols))
    return sorted(scores, key=lambda pattern: scores[pattern])


def _generalised(pattern: Pattern, structure: Structure, number: int) -> Iterator[Pattern]:
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
                    yield from _generalised(replaced, structure, number + 1)
            elif all(i in structure.broadcast for i in run):
                replaced = _replaced(pattern, run, "...")
                if replaced is not None:
                    yield from _generalised(replaced, structure, number + 1)
                replaced = _replaced(pattern, run, f"*{number}")
                if replaced is not None:
                    yield from _generalised(replaced, structure, number + 1)


def _replaced(pattern: Pattern, run: tuple[str, ...], group: str) -> Pattern | None:
    """The pattern with a run replaced wherever it is; None where one of its symbols stands anywhere else."""
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
    return Pattern(tuple(result))


def _renamed(pattern: Pattern) -> Pattern:
    """The pattern with its symbols numbered in order."""
    names: dict[str, str] = {}

    def symbol(name: str) -> str:
        return names.setdefault(name, SYMBOLS[len(names)])

    return Pattern(tuple(tuple(_named(i, symbol) for i in items) for items in pattern.items))
