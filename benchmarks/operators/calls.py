"""Compared calls: forward, backward, with out=, in-place, captured.

Each takes the arguments (input, args, kwargs) on one device, and returns everything that must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch.autograd import forward_ad

from benchmarks.operators.trees import map_leaves, memory, tensors


def _like(t: torch.Tensor) -> torch.Tensor:
    """Return random numbers with a tensor's shape, dtype and device, the same on every device."""
    generator = torch.Generator().manual_seed(t.numel() + 1)
    return torch.randn(t.shape, dtype=t.dtype, generator=generator).to(t.device)


def differentiable(t: torch.Tensor) -> bool:
    return t.requires_grad and (t.is_floating_point() or t.is_complex())


def _aliases(result: Any, arguments: Any) -> list[tuple[bool, list[bool]]]:
    """Return for every tensor of the result whether it is a view, and with which arguments it shares memory."""

    def address(t: torch.Tensor) -> int:
        return t.untyped_storage().data_ptr() if t.layout is torch.strided and not t._is_zerotensor() else 0

    sources = [address(t) for t in tensors(arguments)]
    return [(t._is_view(), [address(t) == s != 0 for s in sources]) for t in tensors(result)]


def forward(op: Callable[..., Any], tree: Any) -> Any:
    value, args, kwargs = tree
    result = op(value, *args, **kwargs)
    return {"result": result, "arguments": tree, "aliases": _aliases(result, tree)}


def gradients(op: Callable[..., Any], process: Callable[[Any], Any], tree: Any) -> Any:
    leaves = [t for t in tensors(tree) if differentiable(t)]
    value, args, kwargs = tree
    outputs = [t for t in tensors(process(op(value, *args, **kwargs))) if differentiable(t)]
    if not outputs or not leaves:
        return {"gradients": []}
    return {"gradients": torch.autograd.grad(outputs, leaves, [_like(t) for t in outputs], allow_unused=True)}


def tangents(op: Callable[..., Any], tree: Any) -> Any:
    with forward_ad.dual_level():
        dual = map_leaves(
            lambda t: (
                forward_ad.make_dual(t.detach(), _like(t)) if isinstance(t, torch.Tensor) and differentiable(t) else t
            ),
            tree,
        )
        value, args, kwargs = dual
        pairs = [forward_ad.unpack_dual(t) for t in tensors(op(value, *args, **kwargs))]
        return {"tangents": [(p.primal, p.tangent) for p in pairs]}


def with_out(op: Callable[..., Any], tree: Any) -> Any:
    (value, args, kwargs), out = tree
    before = [t.data_ptr() for t in tensors(out)]
    result = op(value, *args, **kwargs, out=out)
    same = [r is o for r, o in zip(tensors(result), tensors(out), strict=True)]
    kept = [
        t.data_ptr() == address or t.numel() == 0 or address == 0
        for t, address in zip(tensors(out), before, strict=True)
    ]
    return {"out": out, "same": same, "kept": kept, "strides": [t.stride() for t in tensors(out)]}


def with_gapped_out(op: Callable[..., Any], tree: Any) -> Any:
    """Return what :func:`with_out` does, on the CPU with the values of outputs without gaps.

    Some of PyTorch's CPU kernels (gelu, narrow_copy, avg_pool3d) write an output with gaps as if it had none.
    """
    given, out = tree
    if any(t.device.type != "cpu" for t in tensors(out)):
        return with_out(op, tree)
    dense = with_out(op, (given, map_leaves(lambda leaf: leaf.contiguous(), out)))["out"]
    found = with_out(op, tree)
    for target, values in zip(tensors(out), tensors(dense), strict=True):
        target.copy_(values)
    return found


def in_place(op: Callable[..., Any], tree: Any) -> Any:
    value, args, kwargs = tree
    result = op(value, *args, **kwargs)
    return {"result": result, "input": value, "same": result is value}


def in_place_gradients(op: Callable[..., Any], process: Callable[[Any], Any], tree: Any) -> Any:
    return gradients(lambda value, *args, **kwargs: op(value.clone(), *args, **kwargs), process, tree)


@contextmanager
def _unseeded() -> Iterator[None]:
    """Disable seeding and state changes in the block: the database does both for some operators, a capture cannot."""
    seed, restore = torch.manual_seed, torch.npu.set_rng_state
    torch.manual_seed = lambda value: torch.default_generator
    torch.npu.set_rng_state = lambda state, device=None: None
    try:
        yield
    finally:
        torch.manual_seed, torch.npu.set_rng_state = seed, restore


def captured(op: Callable[..., Any], tree: Any) -> Any:
    """Capture the call on the device while the arguments' memory is zero, and replay it twice with their values."""
    arguments, device = tree
    value, args, kwargs = arguments
    if device.type == "cpu":
        with _unseeded():
            return {"result": op(value, *args, **kwargs), "arguments": arguments}
    memories = [memory(t) for t in tensors(arguments) if t.device.type == device.type and t.layout is torch.strided]
    contents = [m.clone() for m in memories]
    for m in memories:
        m.zero_()
    graph = torch.npu.NPUGraph()
    with torch.npu.stream(torch.npu.Stream(device)), _unseeded():
        graph.capture_begin()
        try:
            result = op(value, *args, **kwargs)
        except Exception:
            with suppress(RuntimeError):  # it says once more that the capture has failed
                graph.capture_end()
            raise
        graph.capture_end()
    for _ in range(2):
        for m, content in zip(memories, contents, strict=True):
            m.copy_(content)
        graph.replay()
    torch.npu.synchronize()
    return {"result": result, "arguments": arguments}
