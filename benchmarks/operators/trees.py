"""Arguments and results as trees of tensors: exact copies on another device, and strict comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

#: Units in the last place by which numbers may differ, in addition to one unit of the largest number next to them: a kernel
#: sums in another order if memory is aligned differently.
ULPS = 16


def map_leaves(f: Callable[[Any], Any], tree: Any) -> Any:
    """Return the tree with every leaf replaced; tuples, named tuples, lists and dicts are its branches."""
    if isinstance(tree, torch.Size):
        return tree
    if isinstance(tree, tuple):
        parts = [map_leaves(f, part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    if isinstance(tree, list):
        return [map_leaves(f, part) for part in tree]
    if isinstance(tree, dict):
        return {key: map_leaves(f, part) for key, part in tree.items()}
    return f(tree)


def tensors(tree: Any) -> list[torch.Tensor]:
    """Return the tensors in a tree, in order."""
    found: list[torch.Tensor] = []
    map_leaves(lambda leaf: found.append(leaf) if isinstance(leaf, torch.Tensor) else None, tree)
    return found


def memory(t: torch.Tensor) -> torch.Tensor:
    """Return the whole memory that a tensor is a part of, as bytes."""
    storage = t.untyped_storage()
    return torch.empty(0, dtype=torch.uint8, device=t.device).set_(storage, 0, (storage.nbytes(),), (1,))


class Mover:
    """Copier of trees to a device that keeps memory, strides, offsets, aliasing, conjugate and negative bits.

    Args:
        stay: indices of the tree's tensors, in its order, that stay on the CPU.
    """

    def __init__(self, device: str, stay: frozenset[int] = frozenset()) -> None:
        self.device = device
        self._stay = stay
        self._seen = 0
        self._storages: dict[int, torch.Tensor] = {}
        self._tensors: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __call__(self, tree: Any) -> Any:
        """Return a copy of the tree on the device; devices and generators in it become those of that device."""
        return map_leaves(self._leaf, tree)

    def _leaf(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            self._seen += 1
            return leaf.clone() if self._seen - 1 in self._stay else self._tensor(leaf)
        if isinstance(leaf, torch.device) and leaf.type == "cpu":
            return torch.device(self.device)
        if isinstance(leaf, torch.Generator):
            return torch.Generator(self.device).manual_seed(leaf.initial_seed())
        return self.device if isinstance(leaf, str) and leaf == "cpu" else leaf

    def _tensor(self, t: torch.Tensor) -> torch.Tensor:
        if id(t) not in self._tensors:
            moved = self._moved(t)
            if t.requires_grad and not moved.requires_grad:
                moved.requires_grad_()
            self._tensors[id(t)] = (t, moved)  # kept, so that nothing else gets its identity
        return self._tensors[id(t)][1]

    def _moved(self, t: torch.Tensor) -> torch.Tensor:
        if t.is_meta:
            return t.detach()
        if t.layout is not torch.strided or t.is_quantized or t.is_nested:
            return t.detach().to(self.device, copy=True)
        if t._is_zerotensor():
            return torch.zeros(t.shape, dtype=t.dtype, device=self.device)
        plain = t.detach()
        if t.is_conj():
            plain = plain.conj()
        if t.is_neg():
            plain = torch._neg_view(plain)
        moved = torch.empty(0, dtype=t.dtype, device=self.device)
        moved.set_(self._storage(plain).untyped_storage(), plain.storage_offset(), plain.size(), plain.stride())
        if t.is_conj():
            moved = moved.conj()
        return torch._neg_view(moved) if t.is_neg() else moved

    def _storage(self, t: torch.Tensor) -> torch.Tensor:
        storage = t.untyped_storage()
        if storage._cdata not in self._storages:
            self._storages[storage._cdata] = memory(t).to(self.device, copy=True)
        return self._storages[storage._cdata]


def _strided(t: torch.Tensor) -> torch.Tensor:
    return t.to_dense() if t.layout is not torch.strided else t


def values(t: torch.Tensor) -> torch.Tensor:
    """Return a tensor's values as a plain CPU tensor."""
    return _strided(Mover("cpu")(t.detach())).resolve_conj().resolve_neg()


def _values_differ(actual: torch.Tensor, expected: torch.Tensor) -> str | None:
    a, e = values(actual), values(expected)
    if a.is_complex():
        a, e = torch.view_as_real(a), torch.view_as_real(e)
    if torch.equal(a, e):
        return None
    if not a.is_floating_point():
        wrong = a != e
    else:
        a, e = a.double(), e.double()
        finite = e.isfinite()
        scale = e[finite].abs().max().item() if finite.any() else 0.0
        tolerance = torch.finfo(expected.dtype).eps * (ULPS * e.abs() + scale)
        near = (a - e).abs() <= tolerance
        same = (a == e) | (a.isnan() & e.isnan())
        wrong = ~(same | (near & finite))
    count = int(wrong.sum())
    if count == 0:
        return None
    first = tuple(wrong.nonzero()[0].tolist())
    return f"{count} of {a.numel()} values differ, at {first}: {a[first].item()!r}, not {e[first].item()!r}"


def _tensors_differ(actual: torch.Tensor, expected: torch.Tensor, device: str, with_values: bool) -> str | None:
    for what in ("dtype", "shape", "layout", "requires_grad"):
        if getattr(actual, what) != getattr(expected, what):
            return f"{what} is {getattr(actual, what)}, not {getattr(expected, what)}"
    if actual.device.type != (device if expected.device.type == "cpu" else expected.device.type):
        return f"device is {actual.device}, not {device}"
    for bit in ("is_conj", "is_neg"):
        if getattr(actual, bit)() != getattr(expected, bit)():
            return f"{bit} is {getattr(actual, bit)()}"
    return _values_differ(actual, expected) if with_values else None


def _leaves_differ(actual: Any, expected: Any, device: str, with_values: bool) -> str | None:
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        return _tensors_differ(actual, expected, device, with_values)
    if type(actual) is not type(expected):
        return f"is a {type(actual).__name__}, not a {type(expected).__name__}"
    if isinstance(expected, torch.device):
        return None if actual.type == (device if expected.type == "cpu" else expected.type) else f"is {actual}"
    if isinstance(expected, float) and math.isnan(expected) and math.isnan(actual):
        return None
    if isinstance(expected, bool | int | float | complex | str | torch.dtype | torch.Size) and with_values:
        return None if actual == (device if expected == "cpu" else expected) else f"is {actual!r}, not {expected!r}"
    return None


def _differences(actual: Any, expected: Any, device: str, with_values: bool, path: str) -> Iterator[str]:
    branch = isinstance(expected, tuple | list) and not isinstance(expected, torch.Size)
    if branch and isinstance(actual, type(expected)):
        if len(actual) != len(expected):
            yield f"{path} has {len(actual)} elements, not {len(expected)}"
            return
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            yield from _differences(a, e, device, with_values, f"{path}[{i}]")
    elif isinstance(expected, dict) and isinstance(actual, dict):
        if actual.keys() != expected.keys():
            yield f"{path} has the keys {list(actual)}, not {list(expected)}"
            return
        for key in expected:
            yield from _differences(actual[key], expected[key], device, with_values, f"{path}.{key}" if path else key)
    else:
        message = _leaves_differ(actual, expected, device, with_values)
        if message:
            yield f"{path}: {message}"


def difference(actual: Any, expected: Any, device: str, *, with_values: bool = True) -> str | None:
    """Return the first difference of a tree on `device` from the CPU's tree; None if they are equal."""
    return next(_differences(actual, expected, device, with_values, ""), None)
