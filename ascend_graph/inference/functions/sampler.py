"""Random calls of a shape function within a domain."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from ascend_graph.inference.calls import SIZES, CallSampler
from ascend_graph.inference.domains import Domain, OperatorSignature, safe_name
from ascend_graph.inference.functions.drawing import LARGE
from ascend_graph.inference.functions.values import input_dtypes
from ascend_graph.shapes import Relation
from ascend_graph.shapes.functions import ShapeFunction


class FunctionSampler(CallSampler):
    """Random calls of a shape function: tensors without memory, of the dtypes that the prototype has."""

    def __init__(self, signature: OperatorSignature, function: ShapeFunction, rng: random.Random) -> None:
        super().__init__(signature, rng)
        self._large = not function.needs_memory
        names = [safe_name(p.name) for p in function.prototype.inputs]
        self._dtypes = dict(zip(names, input_dtypes(function.prototype), strict=True))

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
        """Draw the arguments of one call, at times with sizes beyond those that kernels are run with."""
        if self._large and sizes is SIZES and self.rng.random() < 0.3:
            with contextlib.suppress(RuntimeError):  # more elements than torch counts
                return super().values(domain, relation, structure, kinds, mixed=mixed, sizes=LARGE)
        return super().values(domain, relation, structure, kinds, mixed=mixed, sizes=sizes)

    def plain(self, domain: Domain) -> dict[str, Any]:
        """Draw values of the attrs that have no role in a domain, at times the default of each that has one.

        Some functions take no other value, of several attrs.
        """
        values = super().plain(domain)
        if self.rng.random() < 0.3:
            values |= {a.name: a.default for a in self.signature.attrs if a.has_default and a.name in values}
        return values

    def kinds(self) -> Iterator[dict[str, str]]:
        """Yield the only choice: the function does not look at elements."""
        yield {t.name: "declared" for t in self.signature.required}

    def kind_dtypes(self, name: str, kind: str) -> Sequence[torch.dtype]:
        """Return the dtypes of an input in the prototype."""
        return self._dtypes[name]

    def dtype_choices(self, name: str, kind: str) -> Sequence[torch.dtype]:
        """Return the dtypes of an input in the prototype."""
        return self._dtypes[name]

    def combinations(self, choices: Sequence[Sequence[torch.dtype]]) -> list[tuple[torch.dtype, ...]]:
        """Return dtype combinations, each often enough that attrs take several values with it."""
        found = super().combinations(choices)
        return (found * 8)[:80]

    def tensor(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Build a tensor without memory."""
        return torch.empty(tuple(shape), dtype=dtype, device="meta")

    def permuted(self, value: Any) -> Any:
        """Return the tensors as they are: the function knows no strides."""
        return value
