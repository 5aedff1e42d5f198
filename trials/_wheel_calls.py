"""Call of an operator of a wheel, and how the operator is tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

Tensor = torch.Tensor


@dataclass(frozen=True)
class OperatorCall:
    """One call: inputs in the prototype's order, attrs by name, and what each output has to be."""

    inputs: Sequence[Any]
    expected: Sequence[Tensor | None]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    #: What the outputs hold before: a kernel that adds to them, or writes a part, leaves that to its caller.
    outputs: Sequence[Tensor] = ()
    #: Largest relative error; 0 for equal.
    tolerance: float = 0.0


@dataclass(frozen=True)
class TriedOperator:
    """Calls of an operator, and what its registration needs to be told."""

    calls: Callable[[], Iterable[OperatorCall]]
    #: Shape relation where the package does not tell dtypes.
    relation: str | None = None
    #: True if the caller passes the outputs in. A GE graph gives the kernel fresh memory instead.
    writes: bool = False
    #: False if the package has no InferShape function, or no InferDataType and kernels for several dtypes of an output.
    tells_dtypes: bool = True
