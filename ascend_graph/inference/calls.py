"""Random calls: arguments of the shapes that a domain describes, with attrs in their roles."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import torch

from ascend_graph.inference.attr_draws import attr_values, plain_values
from ascend_graph.inference.domains import AttrArgument, Domain, OperatorSignature
from ascend_graph.inference.observed import valid
from ascend_graph.shapes import Relation, RelationError
from ascend_graph.shapes.samples import RelationSampleError, sample

SIZES = (2, 3, 4, 5, 6, 7, 9, 11, 13)
#: Sizes that are often equal, or multiples of each other.
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
#: Further dtypes to try for an input that runs as one of the last kinds.
_OTHERS: Mapping[str, Sequence[torch.dtype]] = {
    "half": KINDS["float"],
    "complex": (),
    **dict.fromkeys(("int32", "uint8", "int8"), (torch.uint8, torch.int8, torch.int16, torch.int32)),
}


class CallSampler:
    """Random generator of calls to one operator."""

    def __init__(self, signature: OperatorSignature, rng: random.Random) -> None:
        self.signature, self.rng = signature, rng

    def kinds(self) -> Iterator[dict[str, str]]:
        """Yield the kinds of the tensors' elements: all floating first, then one or more as integers, then as flags."""
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

    def kind_dtypes(self, name: str, kind: str) -> Sequence[torch.dtype]:
        """Return the dtypes to draw for an input of a kind, the usual one first."""
        return KINDS[kind]

    def dtype_choices(self, name: str, kind: str) -> Sequence[torch.dtype]:
        """Return the dtypes to try for an input that ran as a kind."""
        return dtype_choices(kind)

    def plain(self, domain: Domain) -> dict[str, Any]:
        """Draw values of the attrs that have no role in a domain."""
        return plain_values(self.signature, domain, self.rng)

    def readable(self, domain: Domain) -> bool:
        """Return whether the shape language can read a domain's patterns.

        Of several groups in one tensor, all but one must be known.
        """
        try:
            plain = self.plain(domain)
            sample(
                domain.relation(""),
                plain | {n: guessed(r, self.rng) for n, r in domain.roles.items()},
                self.rng,
                tries=3,
            )
        except RelationSampleError:
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
        """Draw the arguments of one call, attrs in their roles, or return None if no attempt fits."""
        attrs: dict[str, Any] | None = None
        shapes: Mapping[str, Any] = {}
        for number in range(12 if domain.where else 10):
            if number == 6 and domain.where and sizes is SIZES:
                sizes = ROUND
            # Where axes come from attrs, and attrs from ranks, each is chosen in turn until they agree.
            plain = self.plain(domain)
            guess = plain | {name: guessed(role, self.rng) for name, role in domain.roles.items()}
            try:
                found = sample(relation, guess, self.rng, sizes=sizes, structure=structure, tries=20)
            except RelationSampleError:
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
                # Without roles the attrs are those of the sample, which the relation took.
                if not domain.roles or valid(relation, shapes, attrs):
                    break
                attrs = None
        if attrs is None:
            return None
        known = {k: self.kind_dtypes(k, kind) for k, kind in kinds.items()}
        dtypes = {k: self.rng.choice(some) if mixed else some[0] for k, some in known.items()}
        return self.arguments(shapes, attrs, dtypes)

    def arguments(
        self, shapes: Mapping[str, Any], attrs: Mapping[str, Any], dtypes: Mapping[str, torch.dtype]
    ) -> dict[str, Any]:
        """Build the arguments of a call from shapes, attrs and dtypes."""
        values = dict(attrs)
        for attr in self.signature.attrs:
            if attr.kind == "dtype" and not attr.optional and not attr.has_default:
                values[attr.name] = self.rng.choice(attr_dtypes(attr))
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
        """Build a tensor that most kernels take: small positive numbers, indices 0 and 1; at times all equal."""
        alike = self.rng.random()
        if alike < 0.2:  # so that a shape that depends on values shows
            return torch.full(tuple(shape), alike < 0.1, dtype=dtype)
        generator = torch.Generator().manual_seed(self.rng.randrange(2**31))
        if dtype.is_floating_point or dtype.is_complex:
            return torch.rand(tuple(shape), generator=generator).mul_(0.8).add_(0.1).to(dtype)
        return torch.randint(0, 2, tuple(shape), generator=generator).to(dtype)

    def permuted(self, value: Any) -> Any:
        """Return the tensors with the same sizes, dense, in another memory order; at times leave one as it is."""
        if isinstance(value, list):
            return [self.permuted(item) for item in value]
        if not isinstance(value, torch.Tensor) or value.dim() < 2 or self.rng.random() < 0.2:
            return value
        order = self.rng.sample(range(value.dim()), value.dim())
        inverse = [order.index(n) for n in range(value.dim())]
        return value.permute(order).contiguous().permute(inverse)

    def combinations(self, choices: Sequence[Sequence[torch.dtype]]) -> list[tuple[torch.dtype, ...]]:
        """Return dtype combinations for some inputs: one dtype for all first, then one input in another, then others."""
        count = len(choices)
        if count < 3:
            combinations = list(product(*choices))
            self.rng.shuffle(combinations)
            combinations.sort(key=lambda c: len(set(c)) > 1)
            return combinations[:60]
        alike = [(dtype,) * count for dtype in choices[0]]
        # One input in another dtype, or all but one: what must have one dtype together is seen beside what need not.
        apart = [
            tuple(dtype if (n == one) == alone else choices[0][0] for n in range(count))
            for one, alone in product(range(count if count < 5 else 0), (True, False))
            for dtype in choices[one][1:]
        ]
        mixed = [tuple(map(self.rng.choice, choices)) for _ in range(40)]
        return list(dict.fromkeys([*alike, *apart, *mixed]))


def attr_dtypes(attr: AttrArgument) -> tuple[torch.dtype, ...]:
    """Return the dtypes to try for an attr that is one."""
    return tuple(getattr(torch, name) for name in attr.choices) or ATTR_DTYPES


def guessed(role: str, rng: random.Random) -> Any:
    """Return a provisional value for an attr, so that shapes can be chosen before it."""
    if role == "permutation":
        rank = rng.randint(0, 4)
        return rng.sample(range(rank), rank)
    return (
        rng.choice((0, -1, 1, -2)) if role in ("axis", "insert", "cut") else [] if role in ("axes", "inserts") else [1]
    )


def dtype_choices(kind: str) -> tuple[torch.dtype, ...]:
    """Return the dtypes to try for an input that ran as ``kind``."""
    if kind == "float":
        return (*KINDS["float"], torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64)
    if kind == "int":
        return (torch.int64, torch.int32, torch.uint8, torch.bool)
    return (torch.bool, torch.uint8) if kind == "bool" else tuple(dict.fromkeys((*KINDS[kind], *_OTHERS[kind])))
