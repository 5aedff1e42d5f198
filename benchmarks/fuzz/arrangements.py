"""Unusual memory of a drawn program's inputs, sizes of one in later calls, and recomputed gradients.

They have a random source of their own, so that the lines of a seed stay the same where these can take them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

import torch

from benchmarks.fuzz.programs import FuzzProgram, Input, make_arguments


def expanded(values: torch.Tensor) -> torch.Tensor:
    """Return the first row for all of them, with a stride of 0."""
    return values[:1].expand(values.shape) if values.dim() and values.shape[0] else values


def windows(values: torch.Tensor) -> torch.Tensor:
    """Return rows that overlap in memory: each begins at the second element of the one before."""
    if values.dim() != 2 or not values.numel():
        return values
    rows, columns = values.shape
    return values.reshape(-1)[: rows + columns - 1].clone().as_strided((rows, columns), (1, 1))


def stepped(values: torch.Tensor) -> torch.Tensor:
    """Return the values in every third element of memory that begins elsewhere."""
    if not values.dim():
        return values
    filled = torch.ones_like(values)
    return torch.stack([filled, values, filled], -1).flatten(-2)[..., 1::3]


def negated(values: torch.Tensor) -> torch.Tensor:
    """Return the values by the negative bit of their negation."""
    if values.dtype in (torch.bool, torch.uint8):
        return values
    return torch._neg_view(values.neg())


#: Arrangements of an input in memory, next to those of every draw.
ARRANGEMENTS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "expanded": expanded,
    "windows": windows,
    "stepped": stepped,
    "negated": negated,
}


def arranged(program: FuzzProgram, r: Random) -> FuzzProgram:
    """Return the program with some inputs arranged anew, and sometimes with a size of one, or other values, in a later call."""
    bases = {i.alias for i in program.inputs}

    def change(i: Input) -> Input:
        if i.alias or i.name in bases or r.random() > 0.15:
            return i
        return replace(i, layout=r.choice(list(ARRANGEMENTS)))

    sizes = program.sizes
    if program.dynamic and r.random() < 0.2:
        *others, last = sizes
        sizes = (*others, {**last, r.choice(sorted(last)): 1})
    inputs = tuple(map(change, program.inputs))
    if not program.dynamic and r.random() < 0.5:
        sizes = (*sizes, sizes[0])
    return replace(program, inputs=inputs, sizes=sizes)


def recomputed(program: FuzzProgram, r: Random) -> FuzzProgram:
    """Return the program under activation checkpointing, sometimes: one with gradients that writes to no argument."""
    chosen = program.grad and r.random() < 0.25
    return replace(program, checkpoint=True) if chosen and not _writes_arguments(program) else program


def _writes_arguments(program: FuzzProgram) -> bool:
    arguments = make_arguments(program, 0)
    tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
    before = [t._version for t in tensors]
    program.function()(*arguments)
    return before != [t._version for t in tensors]
