"""Memory that nobody has: a kernel that writes past a tensor which its binding allocates writes there."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from typing import Any

import torch

from ascend_graph.checks.calls.samples import Sample
from ascend_graph.checks.kinds.subject import Subject, Violation
from ascend_graph.environment import is_active, is_strict

#: Begin of each message about memory outside a tensor that was written.
OUTSIDE = "bytes"
_FILL = 0x5A
#: Maximum number of bytes of a free block that are filled: calls of checks are small.
_MOST = 1 << 21


def behind_allocations(subject: Subject, sample: Sample) -> None:
    """Check on the host runtime that a call writes nowhere but to its arguments and to what it allocates.

    Tensors that a binding allocates for itself, a workspace, lie where memory was free before. All of that is filled; what
    is no part of an allocation of the call must not change.
    """
    if subject.device.type == "cpu" or not is_active() or is_strict(os.environ):
        return
    module = torch.get_device_module(subject.device)
    placed = sample.on(subject.device)
    subject.synchronize()
    free = list(_free_blocks(module.memory._snapshot(), module.current_device()))
    for start, size in free:
        ctypes.memset(start, _FILL, size)
    module.memory._record_memory_history(enabled="all", context=None, stacks="python", max_entries=10_000)
    try:
        with torch.no_grad():
            returned = subject.call(placed)
        subject.synchronize()
        traces = module.memory._snapshot()["device_traces"]
    finally:
        module.memory._record_memory_history(enabled=None)
    made = [(one["addr"], one["size"]) for trace in traces for one in trace if one["action"] == "alloc"]
    del returned
    for start, size in free:
        _check_block(start, size, made)


def _free_blocks(snapshot: dict[str, Any], device: int) -> Iterator[tuple[int, int]]:
    """Yield address and size of each free block of the allocator; those of captured graphs are theirs."""
    for segment in snapshot["segments"]:
        if segment["device"] == device and tuple(segment["segment_pool_id"]) == (0, 0):
            for block in segment["blocks"]:
                if block["state"] == "inactive":
                    yield block["address"], min(block["size"], _MOST)


def _check_block(start: int, size: int, made: list[tuple[int, int]]) -> None:
    """Raise Violation if a block that was filled differs outside of what was allocated in it."""
    inside = sorted((at - start, at - start + count) for at, count in made if start <= at < start + size)
    if not inside:
        return
    data = bytearray(ctypes.string_at(start, size))
    for begin, end in inside:
        data[begin:end] = bytes([_FILL]) * (min(end, size) - begin)
    first = size - len(data.lstrip(bytes([_FILL])))
    if first == size:
        return
    begin, end = max((one for one in inside if one[0] <= first), key=lambda one: one[1], default=inside[0])
    raise Violation(
        f"{OUTSIDE} outside a tensor of {end - begin} bytes that the operator allocates, such as its workspace, are written: "
        f"byte {first - begin}; write within it only, or allocate more"
    )
