"""Debug mode that compares every real result with what the operator's meta function promises.

A subtly wrong meta function causes errors far away, as a wrong shape in a compiled graph. Under the guard each
operator's kernel runs, and its outputs are compared with those of the meta function: number, shape, dtype, strides,
device and aliasing. The cost is one meta call per operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

from ascend_graph.errors import AscendGraphError


class MetaMismatchError(AscendGraphError):
    """Result of a kernel that differs from the promise of its meta function."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Difference between a result and the promise of the meta function."""

    operator: str
    output: int
    #: Kind of difference: ``count``, ``presence``, ``shape``, ``dtype``, ``strides``, ``aliasing`` or ``refusal``.
    what: str
    promised: str
    returned: str
    inputs: str

    def __str__(self) -> str:
        return (
            f"{self.operator}: {self.what} of output {self.output}: the meta function says {self.promised}, "
            f"the kernel returned {self.returned}; inputs: {self.inputs}"
        )


class MetaGuard(TorchDispatchMode):
    """Dispatch mode that compares results with meta functions while it is active.

    Args:
        operators: Overloads, packets or namespaces (``"npu"``) to watch; by default everything but torch's own
            (``aten``, ``prims``, ``prim``).
        strides: Also compare strides.
        collect: Keep the differences in :attr:`mismatches` instead of raising at the first.

    Raises:
        MetaMismatchError: On leaving an operator whose result differs.

    >>> with MetaGuard({"aten"}) as guard:
    ...     _ = torch.ones(2, 3) @ torch.ones(3, 4)
    >>> guard.checked > 0, guard.mismatches
    (True, [])
    """

    def __init__(
        self, operators: Iterable[object] | None = None, *, strides: bool = True, collect: bool = False
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.strides, self.collect = strides, collect
        self.mismatches: list[Mismatch] = []
        #: Number of compared calls.
        self.checked = 0
        self._operators = None if operators is None else frozenset(map(_key, operators))

    def watches(self, operator: torch._ops.OpOverload) -> bool:
        """Return whether the guard compares this operator."""
        if self._operators is None:
            return operator.namespace not in ("aten", "prims", "prim", "profiler")
        return not self._operators.isdisjoint((operator.namespace, str(operator.overloadpacket), str(operator)))

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if not isinstance(func, torch._ops.OpOverload) or not self.watches(func):
            return func(*args, **kwargs)
        # The shapes of before: an operator may resize what it is given.
        promise = Promise(func, args, kwargs)
        result = func(*args, **kwargs)
        self.checked += 1
        for mismatch in promise.compare(result, strides=self.strides):
            if not self.collect:
                raise MetaMismatchError(str(mismatch))
            self.mismatches.append(mismatch)
        return result


def _key(operator: object) -> str:
    if isinstance(operator, str):
        return operator
    if isinstance(operator, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return str(operator)
    raise AscendGraphError(f"expected an overload, a packet or a namespace such as 'npu', got {operator!r}")


class Promise:
    """Outputs or refusal that the meta function promises for one call."""

    def __init__(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.name = func.name()
        self.given = _tensors((args, kwargs))
        of_tensor: dict[int, torch.Tensor] = {}

        def meta_of(tensor: torch.Tensor) -> torch.Tensor:
            if id(tensor) not in of_tensor:
                of_tensor[id(tensor)] = torch.empty_strided(
                    tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta"
                )
            return of_tensor[id(tensor)]

        metas = tree_map_only(torch.Tensor, meta_of, (args, kwargs))
        self.inputs = ", ".join(f"{tuple(t.shape)} {t.dtype}" for t in self.given) or "none"
        self.refusal = ""
        self.outputs: list[Any] = []
        try:
            with torch.no_grad():
                self.outputs = _outputs(func(*metas[0], **metas[1]))
        except Exception as error:  # whatever a meta function raises is a refusal here
            self.refusal = f"{type(error).__name__}: {error}"
        self.sources = [_source(output, [of_tensor[id(t)] for t in self.given]) for output in self.outputs]

    def compare(self, result: Any, *, strides: bool) -> Iterable[Mismatch]:
        """Yield the differences between a result and the promise."""
        outputs = _outputs(result)
        if self.refusal:
            yield self.mismatch(0, "refusal", self.refusal, "a result")
            return
        if len(outputs) != len(self.outputs):
            yield self.mismatch(0, "count", str(len(self.outputs)), str(len(outputs)))
            return
        for number, (said, got, source) in enumerate(zip(self.outputs, outputs, self.sources, strict=True)):
            if not (isinstance(said, torch.Tensor) and isinstance(got, torch.Tensor)):
                if isinstance(said, torch.Tensor) != isinstance(got, torch.Tensor):
                    yield self.mismatch(number, "presence", type(said).__name__, type(got).__name__)
                continue
            if said.shape != got.shape:
                yield self.mismatch(number, "shape", str(tuple(said.shape)), str(tuple(got.shape)))
            elif said.dtype != got.dtype:
                yield self.mismatch(number, "dtype", str(said.dtype), str(got.dtype))
            elif strides and not _same_strides(said, got):
                yield self.mismatch(number, "strides", str(said.stride()), str(got.stride()))
            real = _source(got, self.given)
            if real != source and got.untyped_storage().nbytes():
                yield self.mismatch(number, "aliasing", _alias(source), _alias(real))

    def mismatch(self, output: int, what: str, promised: str, returned: str) -> Mismatch:
        return Mismatch(self.name, output, what, promised, returned, self.inputs)


def _outputs(result: Any) -> list[Any]:
    return tree_flatten(result, is_leaf=lambda leaf: leaf is None)[0] if result is not None else []


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(values)[0] if isinstance(leaf, torch.Tensor)]


def _source(output: Any, inputs: Sequence[torch.Tensor]) -> int | None:
    """Return the index of the input with which an output shares its storage, or None."""
    if not isinstance(output, torch.Tensor):
        return None
    storage = output.untyped_storage()._cdata
    return next((n for n, t in enumerate(inputs) if t.untyped_storage()._cdata == storage), None)


def _alias(source: int | None) -> str:
    return "a new tensor" if source is None else f"an alias of input {source}"


def _same_strides(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether strides are equal where they matter: not for dimensions of size 1 and not for empty tensors."""
    if a.numel() == 0:
        return True
    return all(x == y for x, y, size in zip(a.stride(), b.stride(), a.shape, strict=True) if size != 1)
