"""Survey of the inputs that an operator takes, before any formula: probes that change one dimension at a time.

For every combination of ranks, the survey searches for one call that runs. Then it changes the call's sizes, alone
and together. A dimension that changes alone is free, and dimensions that only change together are one. A dimension that
never changes is a constant or an attr. :mod:`ascend_graph.inference.structures` generalizes the result to any rank.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from ascend_graph.inference.attr_draws import attr_value
from ascend_graph.inference.domains import AttrArgument, Domain, OperatorSignature
from ascend_graph.inference.structures import SYMBOLS, Ranks, ShapePattern, Structure, patterns
from ascend_graph.inference.terms import terms_for

#: Sizes of all dimensions in a first call: values that most conditions on single sizes, and boxes, allow.
BASES = (8, 4, 2, 16, 64, 3, 5, 128)
#: Highest rank of a tensor, by number of tensors.
HIGHEST = {1: 5, 2: 5, 3: 4, 4: 4}
#: Number of structures checked closely, and number of calls that a survey may make.
CLOSE, CALLS = 16, 6000
#: Draws of attrs for a structure that runs with none of the first, if there are at most so many structures;
#: with more structures, three.
DRAWS, FEW = 16, 36
#: Highest number of elements of a tensor.
LARGEST = 1 << 16

#: One number of a call: a dimension of a tensor, or an attr.
Slot = tuple[str, int]
#: Function that runs a call with shapes and attrs, and returns whether it succeeded.
Runs = Callable[[Mapping[str, tuple[int, ...]], Mapping[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class Seed:
    """Call that ran."""

    sizes: Mapping[Slot, int]
    attrs: Mapping[str, Any]


class PatternSurvey:
    """Survey of an operator's input patterns; its tensors are all required, none of them a list."""

    def __init__(self, signature: OperatorSignature, runs: Runs, rng: random.Random) -> None:
        self.signature, self.runs, self.rng = signature, runs, rng
        self.names = [t.name for t in signature.required]
        self.highest = HIGHEST[len(self.names)]
        self.calls = 0
        #: Attrs of calls that ran, the latest first.
        self.good: list[dict[str, Any]] = []
        #: Sizes of those calls.
        self.bases: list[int] = []
        self.seeds: dict[Ranks, Seed] = {}
        self.failed: set[Ranks] = set()
        #: Attr that names an axis of the tensors, or "".
        self.axis = ""

    @classmethod
    def fits(cls, signature: OperatorSignature) -> bool:
        """Return whether a survey supports the operator: few enough required tensors, none of them a list."""
        return len(signature.required) in HIGHEST and not any(t.is_list for t in signature.required)

    def domains(self) -> list[Domain]:
        """Survey the operator and return the domains that its inputs suggest, the likeliest first."""
        ranks = [r for r in itertools.product(range(self.highest + 1), repeat=len(self.names)) if sum(r) <= 13]
        ranks.sort(key=lambda r: (sum(r), r))
        # One size for all first; where hardly anything runs, several. Every structure is tried with few attrs before one is with many.
        for few, draws in (
            ((True, 1), (True, DRAWS), (False, DRAWS)) if self.signature.attrs else ((True, 1), (False, 1))
        ):
            if self.seeds and not few:
                break
            # Every structure with one size before any with the next: among many structures the right one is not late then.
            for base in BASES if few else (0,) * 6:
                if base and self.bases and base not in self.bases[:2]:
                    continue  # what worked for one structure works for others
                for structure in ranks:
                    self.look(structure, base, draws if len(ranks) <= FEW else min(draws, 3))
        # What attrs did for the last structure may do for the first.
        for structure in ranks if self.bases else ():
            self.look(structure, self.bases[0], 0)
        if not self.seeds:
            return []
        self.find_axis()
        self.raise_attrs()
        close = [self.structure(ranks, self.seeds[ranks]) for ranks in self.close()]
        found = patterns(close, set(self.seeds), self.failed, self.highest)
        return list(self.written(found[:8]))

    def written(self, found: list[ShapePattern]) -> Iterator[Domain]:
        for pattern in found:
            if self.axis:
                text = pattern.text(self.names, self.axis)
                if "@" in text:
                    yield Domain(text, {self.axis: "axis"})
            yield Domain(pattern.text(self.names))

    # ------------------------------------------------------------------------------------------------------- the calls

    def ran(self, sizes: Mapping[Slot, int], attrs: Mapping[str, Any]) -> bool:
        self.calls += 1
        given = dict(attrs)
        for (name, _), value in sizes.items():
            if name in given:
                given[name] = value
        shapes = {
            name: tuple(sizes[name, n] for n in range(sum(slot[0] == name for slot in sizes))) for name in self.names
        }
        if (
            any(size < 0 for shape in shapes.values() for size in shape)
            or max(map(prod, shapes.values()), default=0) > LARGEST
        ):
            return False
        return self.runs(shapes, given)

    def look(self, structure: Ranks, base: int, draws: int) -> None:
        """Search for a first call of a structure that has none."""
        if structure in self.seeds or self.calls > CALLS // 2:
            return
        seed = self.seed(structure, base, draws)
        if seed is None:
            self.failed.add(structure)
        else:
            self.seeds[structure] = seed
            self.failed.discard(structure)

    def seed(self, ranks: Ranks, base: int, draws: int) -> Seed | None:
        """Return a call that runs with tensors of these ranks, or None.

        All sizes are ``base``, or random ones if it is 0. Attrs of earlier calls come first, then ``draws`` others.
        """
        slots = [(name, axis) for name, rank in zip(self.names, ranks, strict=True) for axis in range(rank)]
        for attrs in [*self.good[:2], *(self.attrs(base or 8) for _ in range(draws))]:
            sizes = {slot: base or self.rng.choice((8, 8, 4, 2, 16)) for slot in slots}
            if self.ran(sizes, attrs):
                if attrs not in self.good:
                    self.good.insert(0, attrs)
                if base and base not in self.bases:
                    self.bases.append(base)
                return Seed(sizes, attrs)
        return None

    def attrs(self, base: int) -> dict[str, Any]:
        length = self.rng.choice((1, 2, 2, 3))
        return {a.name: self.attr(a, base, length) for a in self.signature.attrs}

    def attr(self, attr: AttrArgument, base: int, length: int) -> Any:
        if attr.kind == "int" and not (attr.optional and self.rng.random() < 0.4):
            return self.rng.choice((*((attr.default,) * 2 if attr.has_default else ()), 1, 1, 2, 2, 4, base, 0, -1))
        return attr_value(attr, self.rng, length)

    def find_axis(self) -> None:
        """Find the int attr, if any, that takes the axes of the first tensor and no other number."""
        if not self.names:
            return
        for attr in self.signature.attrs:
            if attr.kind != "int":
                continue
            checked = 0
            for ranks, seed in self.seeds.items():
                rank = ranks[0]
                if not 2 <= rank <= 3 or checked > 6:
                    continue
                runs = [
                    self.ran(seed.sizes, {**seed.attrs, attr.name: n})
                    for n in (-rank - 1, -rank, -1, 0, rank - 1, rank)
                ]
                if runs != [False, True, True, True, True, False]:
                    break
                checked += 1
            else:
                if checked:
                    self.axis = attr.name
        if self.axis:
            for ranks, seed in list(self.seeds.items()):
                attrs = {**seed.attrs, self.axis: -1}
                if self.ran(seed.sizes, attrs):
                    self.seeds[ranks] = Seed(seed.sizes, attrs)

    def raise_attrs(self) -> None:
        """Find calls with a larger value of attrs that are 1 everywhere, for 1 shows no tie.

        Such an attr is a block, a factor, or a number of groups.
        """
        for attr in self.signature.attrs:
            if (
                attr.kind != "int"
                or attr.name == self.axis
                or any(s.attrs[attr.name] != 1 for s in self.seeds.values())
            ):
                continue
            for ranks, seed in list(self.seeds.items()):
                if self.ran(seed.sizes, {**seed.attrs, attr.name: 2}):
                    break
                for _ in range(32):
                    sizes = {slot: self.rng.choice((8, 8, 4, 2, 16)) for slot in seed.sizes}
                    attrs = {**seed.attrs, attr.name: self.rng.choice((2, 4))}
                    if sizes and self.ran(sizes, attrs):
                        self.seeds[ranks] = Seed(sizes, attrs)
                        break

    def close(self) -> list[Ranks]:
        """Return the structures to check closely: small ones, and some larger ones."""
        ranks = sorted(self.seeds, key=lambda r: (sum(r), r))
        if len(ranks) <= CLOSE:
            return ranks
        small, rest = ranks[: CLOSE // 2], ranks[CLOSE // 2 :]
        step = len(rest) / (CLOSE // 2)
        return small + [rest[int(n * step)] for n in range(CLOSE // 2)]

    # --------------------------------------------------------------------------------------------------- one structure

    def structure(self, ranks: Ranks, seed: Seed) -> Structure:
        """Find the ties between the dimensions and attrs of one structure."""
        slots = list(seed.sizes)
        attrs = [
            (a.name, 0)
            for a in self.signature.attrs
            if a.kind == "int"
            and a.name != self.axis
            and isinstance(seed.attrs[a.name], int)
            and seed.attrs[a.name] > 1
        ]
        start = {**seed.sizes, **{slot: seed.attrs[slot[0]] for slot in attrs}}
        symbols = iter(SYMBOLS)
        items: dict[Slot, str] = {}
        tied = []
        for slot in start:
            if any(self.changed(start, (slot,), change, seed) for change in CHANGES):
                if slot in slots:
                    items[slot] = next(symbols)
            else:
                tied.append(slot)
        broadcast = set()
        for slot in tied:
            if slot in items:
                continue
            together = self.together(start, slot, [s for s in tied if s not in items], seed)
            if together is None:
                symbol = slot[0] if slot in attrs else next(symbols)
                if self.factor(start, slot, symbol, items, seed):
                    items[slot] = symbol
                elif slot in slots:
                    items[slot] = self.depends(start, slot, items, attrs, seed) or str(start[slot])
                continue
            name = next((s[0] for s in together if s in attrs), None) or next(symbols)
            least = min(start[s] for s in together)
            for member in together:
                times = start[member] // least
                items[member] = name if times == 1 else f"{times} * {name}"
            if name.startswith("#") and len({s[0] for s in together}) > 1:
                ones = [self.ran({**start, member: 1}, seed.attrs) for member in together]
                if any(ones):
                    broadcast.add(name)
        texts = tuple(
            tuple(items[name, axis] for axis in range(rank)) for name, rank in zip(self.names, ranks, strict=True)
        )
        return Structure(texts, frozenset(broadcast))

    def changed(self, start: Mapping[Slot, int], slots: tuple[Slot, ...], change: Change, seed: Seed) -> bool:
        sizes = {**start, **{slot: change(start[slot]) for slot in slots}}
        return all(sizes[s] != start[s] and sizes[s] > 1 for s in slots) and self.ran(sizes, seed.attrs)

    def together(self, start: Mapping[Slot, int], slot: Slot, others: list[Slot], seed: Seed) -> list[Slot] | None:
        """Return the fewest dimensions that change together with this one, itself included, or None."""
        rest = [s for s in others if s != slot]
        for count in (1, 2):
            for chosen in itertools.combinations(rest, count):
                if any(
                    self.changed(start, (slot, *chosen), change, seed) for change in CHANGES[: 7 if count == 1 else 3]
                ):
                    return [slot, *chosen]
        for change in CHANGES:
            if self.changed(start, tuple(others), change, seed):
                kept = list(others)
                # What is another dimension is taken out whole: up to three tensors that have it, or all.
                for count in range(1, max(3, len(self.names)) + 1):
                    for chosen in itertools.combinations(rest, count):
                        fewer = tuple(s for s in kept if s not in chosen)
                        if len(fewer) == len(kept) - count and self.changed(start, fewer, change, seed):
                            kept = list(fewer)
                return kept
        for chosen in itertools.combinations(rest, 3):
            if self.changed(start, (slot, *chosen), CHANGES[0], seed):
                return [slot, *chosen]
        return None

    def factor(self, start: Mapping[Slot, int], slot: Slot, symbol: str, items: dict[Slot, str], seed: Seed) -> bool:
        """Return whether dimensions taken for a constant times another are this dimension times the other.

        If so, their items are rewritten. A pattern with this constant would be narrower than the operator.
        """
        for item in dict.fromkeys(items.values()):
            times, _, rest = item.partition(" * ")
            members = [s for s in items if items[s] == item]
            ran = any(self.changed(start, (slot, *members), change, seed) for change in CHANGES[:3])
            if ran and times.isdigit() and rest and int(times) % start[slot] == 0:
                left = int(times) // start[slot]
                for member in members:
                    items[member] = " * ".join([*([str(left)] if left > 1 else []), symbol, rest])
                return True
        return False

    def depends(
        self, start: Mapping[Slot, int], slot: Slot, items: Mapping[Slot, str], attrs: list[Slot], seed: Seed
    ) -> str:
        """Return a dimension's size as a term of a free dimension and the attrs, or an empty text."""
        for other, symbol in items.items():
            if not symbol.startswith("#") or not self.changed(start, (slot, other), CHANGES[0], seed):
                continue
            targets: list[int] = []
            leaves: dict[str, list[int]] = {symbol: [], **{name: [] for name, _ in attrs}}
            for _ in range(14):
                sizes = {**start, other: self.rng.randint(3, 20), **{a: self.rng.randint(1, 6) for a in attrs}}
                right = [n for n in range(1, 28) if self.ran({**sizes, slot: n}, seed.attrs)]
                if len(right) == 1:
                    targets += right
                    for leaf, values in leaves.items():
                        values.append(sizes[other] if leaf == symbol else sizes[leaf, 0])
            if len(targets) >= 6:
                terms = terms_for(tuple(targets), {leaf: tuple(values) for leaf, values in leaves.items()}, wanted=1)
                if terms:
                    return terms[0]
        return ""


Change = Callable[[int], int]
CHANGES: tuple[Change, ...] = (
    lambda n: 2 * n,
    lambda n: 3 * n,
    lambda n: n // 2,
    lambda n: n + 4,
    lambda n: n // 4,
    lambda n: n + 1,
    lambda n: n - 1,
)
