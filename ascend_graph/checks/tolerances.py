"""Tolerances for comparing results of two computations: by output, by dtype, or for all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch

from ascend_graph.checks.calls.samples import SampleError

#: Number for all results, or numbers by the name of an output or of a written argument, or by dtype.
Tolerance: TypeAlias = float | Mapping[str | torch.dtype, float]

#: Relative and absolute tolerances between two ways of computing, by the dtype of a result; integers must be equal.
TOLERANCES = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1e-4, 1e-5),
    torch.float16: (4e-3, 4e-3),
    torch.bfloat16: (3e-2, 3e-2),
    torch.complex64: (1e-4, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Relative and absolute tolerances of an operator's results.

    A name takes precedence over a dtype, a dtype over the number for all, and that over ``TOLERANCES``.
    """

    rtol: Tolerance | None = None
    atol: Tolerance | None = None
    #: All names of each return of the schema.
    returns: tuple[frozenset[str], ...] = field(default=())

    def of_return(self, position: int, value: Any) -> tuple[float, float]:
        """Return the tolerances of a value of the schema's return at ``position``."""
        names = self.returns[position] if position < len(self.returns) else frozenset()
        return self._of(names, value)

    def of_argument(self, name: str | None, value: Any) -> tuple[float, float]:
        """Return the tolerances of a written argument."""
        return self._of(frozenset() if name is None else frozenset({name}), value)

    def overall(self, rtol: float, atol: float) -> Tolerances:
        """Return the tolerances of values that are not results, such as gradients: the numbers for all, or these."""
        relative = rtol if self.rtol is None or isinstance(self.rtol, Mapping) else self.rtol
        absolute = atol if self.atol is None or isinstance(self.atol, Mapping) else self.atol
        return Tolerances(relative, absolute)

    def _of(self, names: frozenset[str], value: Any) -> tuple[float, float]:
        dtype = value.dtype if isinstance(value, torch.Tensor) else None
        usual = TOLERANCES.get(dtype, (0.0, 0.0)) if dtype is not None else (0.0, 0.0)
        return _chosen(self.rtol, names, dtype, usual[0]), _chosen(self.atol, names, dtype, usual[1])


def _chosen(given: Tolerance | None, names: frozenset[str], dtype: torch.dtype | None, usual: float) -> float:
    if given is None:
        return usual
    if not isinstance(given, Mapping):
        return given
    named = next((value for key, value in given.items() if key in names), None)
    if named is not None:
        return named
    return next((value for key, value in given.items() if dtype is not None and _dtype(key) is dtype), usual)


def _dtype(key: object) -> torch.dtype | None:
    """Return the dtype that a key is or names (``torch.float16``, ``"float16"``, ``"torch.float16"``), or None."""
    found = getattr(torch, key.removeprefix("torch."), None) if isinstance(key, str) else key
    return found if isinstance(found, torch.dtype) else None


def read_tolerances(rtol: Any, atol: Any, returns: Sequence[frozenset[str]], written: Sequence[str]) -> Tolerances:
    """Check and return the tolerances that a caller gives for an operator.

    Args:
        rtol: The relative ones: None, a number, or numbers by name or dtype.
        atol: The absolute ones.
        returns: All names of each return of the schema.
        written: The arguments that the operator writes.

    Raises:
        SampleError: A value is not a tolerance, or a key is neither an output nor a dtype.
    """
    known = [*dict.fromkeys([*(name for names in returns for name in sorted(names)), *written])]
    for what, given in (("rtol", rtol), ("atol", atol)):
        for key, value in given.items() if isinstance(given, Mapping) else [] if given is None else [(None, given)]:
            place = what if key is None else f"{what}[{key!r}]"
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise SampleError(f"{place} must be a finite number of 0 or more, got {value!r}")
            if key is not None and key not in known and _dtype(key) is None:
                raise SampleError(
                    f"{what} has the key {key!r}, which is neither an output nor a dtype; expected one of the outputs "
                    f"({', '.join(known) or 'none has a name'}) or a dtype such as torch.float16"
                )
    return Tolerances(rtol, atol, tuple(returns))
