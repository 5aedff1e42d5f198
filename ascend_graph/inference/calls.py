"""Calls that are drawn: arguments of the shapes that a domain describes, with attrs in their roles."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import torch

from ascend_graph.inference.observed import valid
from ascend_graph.shapes import Relation, RelationError
from ascend_graph.shapes.domains import Domain, Signature, attr_values, plain_values
from ascend_graph.shapes.samples import SampleError, sample

SIZES = (2, 3, 4, 5, 6, 7, 9, 11, 13)
#: Sizes that are often multiples of each other, or alike.
ROUND = (1, 2, 2, 4, 4, 4, 8, 8, 12, 3, 6, 16)
ATTR_DTYPES = (torch.float32, torch.float64, torch.float16, torch.int64, torch.int32)
KINDS: Mapping[str, Sequence[torch.dtype]] = {
    "float": (torch.float32, torch.float64, torch.bfloat16, torch.float16),
    "int": (torch.int64, torch.int32, torch.uint8),
    "bool": (torch.bool,),
    "complex": (torch.complex64, torch.complex128),
    # For kernels that take no others.
    "half": (torch.float16, torch.bfloat16),
    "int32": (torch.int32,),
    "uint8": (torch.uint8,),
    "int8": (torch.int8,),
}
#: What an input that runs as one of the last may be tried with besides.
_OTHERS: Mapping[str, Sequence[torch.dtype]] = {
    "half": KINDS["float"],
    "complex": (),
    **dict.fromkeys(("int32", "uint8", "int8"), (torch.uint8, torch.int8, torch.int16, torch.int32)),
}


class Calls:
    """Draws the calls of one operator."""

    def __init__(self, signature: Signature, rng: random.Random) -> None:
        self.signature, self.rng = signature, rng

    def kinds(self) -> Iterator[dict[str, str]]:
        """Choices of what the tensors hold: all floating first, then one or more as integers, then as flags."""
        names = [t.name for t in self.signature.required]
        choices = list(product(("float", "int", "bool"), repeat=len(names))) if len(names) <= 3 else []
        choices.sort(key=lambda c: (sum(k != "float" for k in c), sum(k == "bool" for k in c)))
        if len(names) > 3:
            choices = [("float",) * len(names), ("int",) * len(names)]
        if 3 < len(names) <= 5:
            choices += [tuple("int" if n == k else "float" for n in range(len(names))) for k in range(len(names))]
        for kind, others in (("float", ("half",)), ("int", ("int32", "uint8", "int8"))):
            some = [c for c in choices if kind in c and "bool" not in c and sum(k != "float" for k in c) <= 1]
            choices += [tuple(other if k == kind else k for k in c) for other in others for c in some]
        for choice in choices:
            yield dict(zip(names, choice, strict=True))

    def readable(self, domain: Domain) -> bool:
        """Whether the language has a meaning for a domain's patterns: of several groups in a tensor all but one must be known."""
        try:
            plain = plain_values(self.signature, domain, self.rng)
            sample(
                domain.relation(""),
                plain | {n: guessed(r, self.rng) for n, r in domain.roles.items()},
                self.rng,
                tries=3,
            )
        except SampleError:
            return True
        except RelationError:
            return False
        return True

    def values(
        self,
        domain: Domain,
        relation: Relation,
        structure: int | None,
        kinds: Mapping[str, str],
        *,
        mixed: bool = False,
        sizes: Sequence[int] = SIZES,
    ) -> dict[str, Any] | None:
        """Arguments of one call: tensors of the domain's shapes, attrs in their roles."""
        attrs: dict[str, Any] | None = None
        shapes: Mapping[str, Any] = {}
        for number in range(12 if domain.where else 10):
            if number == 6 and domain.where and sizes is SIZES:
                sizes = ROUND
            # Where axes come from attrs, and attrs from ranks, each is chosen in turn until they agree.
            plain = plain_values(self.signature, domain, self.rng)
            guess = plain | {name: guessed(role, self.rng) for name, role in domain.roles.items()}
            try:
                found = sample(relation, guess, self.rng, sizes=sizes, structure=structure, tries=20)
            except SampleError:
                continue
            shapes = found.shapes
            attrs = attr_values(self.signature, domain, shapes, self.rng)
            if attrs is not None:
                attrs |= plain
                attrs |= {
                    n: guess[n]
                    for n, role in domain.roles.items()
                    if role == "axis" and len(domain.roles) > 1 and n in guess
                }
                if valid(relation, shapes, attrs):
                    break
                attrs = None
        if attrs is None:
            return None
        dtypes = {k: self.rng.choice(KINDS[kind]) if mixed else KINDS[kind][0] for k, kind in kinds.items()}
        return self.arguments(shapes, attrs, dtypes)

    def arguments(
        self, shapes: Mapping[str, Any], attrs: Mapping[str, Any], dtypes: Mapping[str, torch.dtype]
    ) -> dict[str, Any]:
        """The arguments of a call: tensors of these shapes and dtypes."""
        values = dict(attrs)
        for attr in self.signature.attrs:
            if attr.kind == "dtype" and not attr.optional and not attr.has_default:
                values[attr.name] = self.rng.choice(ATTR_DTYPES)
        for tensor in self.signature.tensors:
            shape = shapes.get(tensor.name)
            if shape is None:
                values[tensor.name] = None
            elif tensor.is_list:
                values[tensor.name] = [self.tensor(s, dtypes[tensor.name]) for s in shape]
            else:
                values[tensor.name] = self.tensor(shape, dtypes.get(tensor.name, torch.float32))
        return values

    def tensor(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """A tensor of content that most kernels take: small positive numbers, indices 0 and 1; at times all alike."""
        alike = self.rng.random()
        if alike < 0.2:  # so that a shape that depends on values shows
            return torch.full(tuple(shape), alike < 0.1, dtype=dtype)
        generator = torch.Generator().manual_seed(self.rng.randrange(2**31))
        if dtype.is_floating_point or dtype.is_complex:
            return torch.rand(tuple(shape), generator=generator).mul_(0.8).add_(0.1).to(dtype)
        return torch.randint(0, 2, tuple(shape), generator=generator).to(dtype)

    def permuted(self, value: Any) -> Any:
        """A tensor with the same sizes, dense, in another order of memory; most of the time."""
        if isinstance(value, list):
            return [self.permuted(item) for item in value]
        if not isinstance(value, torch.Tensor) or value.dim() < 2 or self.rng.random() < 0.2:
            return value
        order = self.rng.sample(range(value.dim()), value.dim())
        inverse = [order.index(n) for n in range(value.dim())]
        return value.permute(order).contiguous().permute(inverse)

    def combinations(self, choices: Sequence[Sequence[torch.dtype]]) -> list[tuple[torch.dtype, ...]]:
        """Dtypes for some inputs: one for all first, then others, at most 60."""
        if len(choices) > 3:
            alike = [(dtype,) * len(choices) for dtype in choices[0]]
            return alike + [tuple(map(self.rng.choice, choices)) for _ in range(40)]
        combinations = list(product(*choices))
        self.rng.shuffle(combinations)
        combinations.sort(key=lambda c: len(set(c)) > 1)
        return combinations[:60]


def guessed(role: str, rng: random.Random) -> Any:
    """A value that lets shapes be chosen before the attr is."""
    if role == "permutation":
        rank = rng.randint(0, 4)
        return rng.sample(range(rank), rank)
    return rng.choice((0, -1, 1, -2)) if role in ("axis", "insert") else [] if role == "axes" else [1]


def dtype_choices(kind: str) -> tuple[torch.dtype, ...]:
    """The dtypes that an input may be tried with that ran as ``kind``."""
    if kind == "float":
        return (*KINDS["float"], torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64)
    if kind == "int":
        return (torch.int64, torch.int32, torch.uint8, torch.bool)
    return (torch.bool, torch.uint8) if kind == "bool" else tuple(dict.fromkeys((*KINDS[kind], *_OTHERS[kind])))
