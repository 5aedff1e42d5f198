"""Causal convolutions of continued sequences: a cache holds the tokens before and is updated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from ascend_graph.host.kernels.checks import check_choice, check_count, check_dtype
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

_WIDTH = 3
_BEFORE = _WIDTH - 1
#: Longest sequence of decoding: a call with longer ones is a prefill, alone or mixed with decoding.
_LONGEST_OF_DECODING = 8


@dataclass(frozen=True)
class _Sequence:
    """Position of a sequence's tokens, and the cache rows that it reads and writes."""

    number: int
    tokens: slice
    read: int
    write: int
    #: Rows of the cache that receive the state at the end of each full block, first to last.
    filled: tuple[int, ...] = ()


def _blocks_of_states(
    residual_connection: int,
    conv_mode: int,
    num_computed_tokens: T | None,
    block_idx_first_scheduled_token: T | None,
    block_idx_last_scheduled_token: T | None,
    initial_state_idx: T | None,
    cache_indices: T | None,
    block_size: int,
) -> tuple[tuple[T | None, ...], bool]:
    """Return the blocks of each sequence's states, and whether there are any.

    Contradictory arguments raise a ValueError.
    """
    check_choice("residual_connection", residual_connection, 0, 1)
    check_choice("conv_mode", conv_mode, 0, 1)
    if conv_mode == 1 and num_computed_tokens is None:
        raise ValueError("conv_mode 1 needs num_computed_tokens")
    blocks = (block_idx_first_scheduled_token, block_idx_last_scheduled_token, initial_state_idx)
    in_blocks = cache_indices is not None and cache_indices.dim() == 2
    if any((b is not None) != in_blocks for b in blocks) or (in_blocks and num_computed_tokens is None):
        raise ValueError(
            "cache_indices of two dimensions, block_idx_first_scheduled_token, block_idx_last_scheduled_token and "
            "initial_state_idx must be given together, with num_computed_tokens, or not at all"
        )
    if in_blocks and block_size < 2:
        raise ValueError(f"block_size {block_size} must be at least 2")
    return blocks, in_blocks


def _write(y: T, results: Sequence[tuple[slice, T]], states: Sequence[tuple[int, int, T]], conv_states: T) -> None:
    """Write the results, and the states into the cache."""
    rows = y.view(-1, y.size(-1))
    for tokens, out in results:
        rows[tokens] = out.to(y.dtype)
    for row, first, values in states:
        conv_states[row, first : first + len(values)] = values.to(conv_states.dtype)


def _convolved(seen: T, own: T, weight: T, conv_mode: int, done: int | None) -> T:
    """Return one sequence's convolution."""
    out = sum((seen[k : k + len(own)] * weight[k].float() for k in range(_WIDTH)), torch.zeros_like(own))
    if conv_mode == 1 and done is not None:
        out[: max(_BEFORE - done, 0)] = 0
    return out


def _token_numbers(
    num_accepted_tokens: T | None, starts: Sequence[int], num_computed_tokens: T | None
) -> tuple[list[int] | None, list[int] | None]:
    """Return the accepted and the computed tokens of each sequence."""
    accepted = _numbers("num_accepted_tokens", num_accepted_tokens, len(starts) - 1)
    computed = _numbers("num_computed_tokens", num_computed_tokens, len(starts) - 1)
    if computed is not None and min(computed) < 0:
        raise ValueError(f"num_computed_tokens {computed}: expected numbers of 0 or more")
    return accepted, computed


@host_kernel("FusedCausalConv1d", writes={"conv_states": 0}, ignores=("activation_mode", "run_mode"))
def fused_causal_conv1d(
    x: T,
    weight: T,
    conv_states: T,
    query_start_loc: T | None = None,
    cache_indices: T | None = None,
    initial_state_mode: T | None = None,
    bias: T | None = None,
    num_accepted_tokens: T | None = None,
    num_computed_tokens: T | None = None,
    block_idx_first_scheduled_token: T | None = None,
    block_idx_last_scheduled_token: T | None = None,
    initial_state_idx: T | None = None,
    *,
    pad_slot_id: int = -1,
    max_query_len: int = -1,
    residual_connection: int = 1,
    block_size: int = 128,
    conv_mode: int = 0,
) -> tuple[T, T]:
    """Convolve each channel and update the cache; outputs of skipped sequences are 0."""
    del initial_state_mode, bias  # documented: without effect
    _check_shapes(x, weight, conv_states, query_start_loc, cache_indices, max_query_len)
    blocks, in_blocks = _blocks_of_states(
        residual_connection,
        conv_mode,
        num_computed_tokens,
        block_idx_first_scheduled_token,
        block_idx_last_scheduled_token,
        initial_state_idx,
        cache_indices,
        block_size,
    )
    y = x.new_zeros(x.shape)
    if x.is_meta:
        return conv_states, y
    flat = x.reshape(-1, x.size(-1))
    starts = _starts(x, query_start_loc, max_query_len, conv_states.size(1))
    sequences = _sequences(starts, cache_indices, blocks if in_blocks else (), conv_states.size(0), pad_slot_id)
    accepted, computed = _token_numbers(num_accepted_tokens, starts, num_computed_tokens)
    # All is computed before anything is written: what is refused leaves the cache as it was.
    results, states = [], []
    for sequence in sequences:
        done = None if computed is None else computed[sequence.number]
        own = flat[sequence.tokens].float()
        skipped = _skipped(conv_states, accepted, sequence, max_query_len, len(own))
        before = conv_states[sequence.read, : skipped + _BEFORE].float()
        if done == 0:
            skipped, before = 0, own.new_zeros(_BEFORE, own.size(1))
        padded = torch.cat([before, own])
        kept = min(conv_states.size(1), len(padded))
        states.append((sequence.write, conv_states.size(1) - kept, padded[len(padded) - kept :]))
        seen = padded[skipped:]
        for row, end in zip(sequence.filled, _block_ends(len(own), done, block_size, sequence), strict=True):
            states.append((row, conv_states.size(1) - _BEFORE, seen[end : end + _BEFORE]))
        out = _convolved(seen, own, weight, conv_mode, done)
        results.append((sequence.tokens, out + own if residual_connection else out))
    _write(y, results, states, conv_states)
    return conv_states, y


@host_kernel("InplaceFusedCausalConv1d", writes={"conv_states": 0, "x": 1}, ignores=("activation_mode", "run_mode"))
def inplace_fused_causal_conv1d(
    x: T,
    weight: T,
    conv_states: T,
    query_start_loc: T | None = None,
    cache_indices: T | None = None,
    initial_state_mode: T | None = None,
    bias: T | None = None,
    num_accepted_tokens: T | None = None,
    num_computed_tokens: T | None = None,
    block_idx_first_scheduled_token: T | None = None,
    block_idx_last_scheduled_token: T | None = None,
    initial_state_idx: T | None = None,
    *,
    pad_slot_id: int = -1,
    max_query_len: int = -1,
    residual_connection: int = 1,
    block_size: int = 128,
    conv_mode: int = 0,
) -> tuple[T, T]:
    """Compute FusedCausalConv1d in place; skipped sequences keep their input."""
    _, y = fused_causal_conv1d(
        x,
        weight,
        conv_states,
        query_start_loc,
        cache_indices,
        initial_state_mode,
        bias,
        num_accepted_tokens,
        num_computed_tokens,
        block_idx_first_scheduled_token,
        block_idx_last_scheduled_token,
        initial_state_idx,
        pad_slot_id=pad_slot_id,
        max_query_len=max_query_len,
        residual_connection=residual_connection,
        block_size=block_size,
        conv_mode=conv_mode,
    )
    if not x.is_meta:
        starts = _starts(x, query_start_loc, max_query_len, conv_states.size(1))
        computed = torch.ones(y.reshape(-1, y.size(-1)).size(0), 1, dtype=torch.bool)
        for number in _passed_over(cache_indices, pad_slot_id):
            computed[starts[number] : starts[number + 1]] = False
        x.copy_(torch.where(computed.view(*x.shape[:-1], 1), y, x))
    return conv_states, x


def _check_shapes(x: T, weight: T, states: T, starts: T | None, indices: T | None, longest: int) -> None:
    width = x.size(-1)
    if x.dim() not in (2, 3) or not 64 <= width <= 16384 or width % 16:
        raise ValueError(
            f"x {tuple(x.shape)} is not valid; expected [tokens, d] or [batch, tokens, d] with d a multiple of 16 from "
            "64 to 16384"
        )
    if weight.shape != (_WIDTH, width) or weight.dtype != x.dtype:
        raise ValueError(f"weight {tuple(weight.shape)}, {weight.dtype}: valid is {(_WIDTH, width)}, {x.dtype}")
    if states.dim() != 3 or states.size(2) != width or not _BEFORE <= states.size(1) <= _BEFORE + 7:
        raise ValueError(
            f"conv_states {tuple(states.shape)} is not valid; expected [rows, {_BEFORE} to {_BEFORE + 7}, {width}]"
        )
    check_dtype("conv_states", states, "x", x.dtype)
    if x.dim() == 2 and (starts is None or starts.dim() != 1 or starts.numel() < 2):
        raise ValueError("x of two dimensions needs query_start_loc, where each sequence begins and the last one ends")
    if x.dim() == 2 and longest < 1:
        raise ValueError(f"max_query_len {longest}: with x of two dimensions it is the length of the longest sequence")
    if x.dim() == 3:
        tokens = x.size(1)
        if not 1 <= tokens <= _LONGEST_OF_DECODING or (longest != -1 and not tokens <= longest <= _LONGEST_OF_DECODING):
            raise ValueError(
                f"x of {tokens} tokens for each sequence, max_query_len {longest}: there are 1 to {_LONGEST_OF_DECODING}, max_query_len "
                "says how many, or is -1"
            )
        if states.size(1) != tokens + 1:
            raise ValueError(
                f"conv_states has {states.size(1)} tokens: with {tokens} of each sequence of x it has one more"
            )
    batch = x.size(0) if x.dim() == 3 or starts is None else starts.numel() - 1
    if starts is not None and starts.numel() != batch + 1:
        raise ValueError(
            f"query_start_loc has {starts.numel()} elements; expected {batch + 1}, one more than sequences"
        )
    if not 1 <= batch <= 256:
        raise ValueError(f"{batch} sequences: 1 to 256 are supported")
    if indices is not None and (indices.dim() not in (1, 2) or indices.size(0) != batch or indices[0].numel() > 1024):
        raise ValueError(
            f"cache_indices {tuple(indices.shape)} is not valid; expected [{batch}] or [{batch}, 1 to 1024]"
        )
    least = max(batch, 0 if indices is None else indices.numel())
    if states.size(0) < least:
        raise ValueError(
            f"conv_states has {states.size(0)} rows; expected at least {least}, one for each sequence and cache index"
        )


def _starts(x: T, query_start_loc: T | None, longest: int, rows: int) -> list[int]:
    """Return the start of each sequence, and the end of the last one."""
    count = x.numel() // x.size(-1)
    if query_start_loc is None:
        return list(range(0, count + 1, x.size(1)))
    starts = [int(start) for start in query_start_loc.tolist()]
    lengths = [end - start for start, end in pairwise(starts)]
    if starts[0] != 0 or starts[-1] != count or min(lengths) < 1:
        raise ValueError(
            f"query_start_loc {starts} must begin with 0, grow, and end with the number of tokens, {count}"
        )
    if x.dim() == 3 and set(lengths) != {x.size(1)}:
        raise ValueError(f"query_start_loc {starts}: expected sequences of {x.size(1)} tokens each, as x has")
    if max(lengths) > longest != -1:
        raise ValueError(
            f"max_query_len {longest}: expected at least {max(lengths)}, the longest of query_start_loc {starts}, or -1"
        )
    if longest <= _LONGEST_OF_DECODING and max(lengths) >= rows:
        raise ValueError(
            f"conv_states has {rows} tokens: of decoding it has more than the longest sequence, {max(lengths)}"
        )
    return starts


def _numbers(name: str, values: T | None, batch: int) -> list[int] | None:
    if values is None:
        return None
    check_count(name, values, batch, "sequence")
    return [int(value) for value in values.tolist()]


def _passed_over(indices: T | None, pad: int) -> list[int]:
    """Return the sequences without a row of the cache."""
    if indices is None or indices.dim() == 2:
        return []
    return [number for number, row in enumerate(indices.tolist()) if row == pad]


def _sequences(
    starts: list[int], indices: T | None, blocks: tuple[T | None, ...], rows: int, pad: int
) -> list[_Sequence]:
    batch = len(starts) - 1
    passed = _passed_over(indices, pad)
    used = [number for number in range(batch) if number not in passed]
    if used and used != list(range(used[0], used[-1] + 1)):
        raise ValueError(
            f"cache_indices leave out sequences {passed} of {batch}: expected to leave out the first or the last ones "
            "only"
        )
    named = [row for row in ([] if indices is None else indices.flatten().tolist()) if row != pad]
    if any(not 0 <= row < rows for row in named) or len(set(named)) != len(named):
        raise ValueError(
            f"cache_indices {indices.tolist() if indices is not None else []}: expected a row of its own for each "
            f"sequence, from 0 to {rows - 1}"
        )
    places = [slice(starts[number], starts[number + 1]) for number in range(batch)]
    if not blocks:
        lines = list(range(batch)) if indices is None else indices.tolist()
        return [_Sequence(number, places[number], lines[number], lines[number]) for number in used]
    assert indices is not None
    first, last, initial = (_numbers("the blocks of a sequence", b, batch) or [] for b in blocks)
    found = []
    for number in used:
        a, z, i, count = first[number], last[number], initial[number], indices.size(1)
        if not (0 <= a <= z < count and 0 <= i <= min(z, a + 1)):
            raise ValueError(
                f"sequence {number}: block_idx_first_scheduled_token {a}, block_idx_last_scheduled_token {z}, "
                f"initial_state_idx {i}: valid is first <= last < {count} and initial <= last, first + 1"
            )
        line = [int(row) for row in indices[number].tolist()]
        if pad in (line[i], *line[a : z + 1]):
            raise ValueError(
                f"sequence {number}: cache_indices {line} must have a row for each block that is read or written"
            )
        found.append(_Sequence(number, places[number], line[i], line[z], tuple(line[a:z])))
    return found


def _skipped(states: T, accepted: list[int] | None, sequence: _Sequence, longest: int, length: int) -> int:
    """Return the number of tokens in the cache before those that the convolution begins with."""
    room = states.size(1) - _BEFORE
    if accepted is None or (room == 0 and longest > _LONGEST_OF_DECODING):  # documented: without effect in a prefill
        return room
    count = accepted[sequence.number]
    if not 1 <= count <= min(length, room + 1):
        raise ValueError(
            f"num_accepted_tokens {count} of sequence {sequence.number}: it is from 1 to its {length} tokens, and to {room + 1} "
            "by conv_states"
        )
    return count - 1


def _block_ends(length: int, done: int | None, size: int, sequence: _Sequence) -> list[int]:
    """Return the number of a sequence's tokens up to the end of each full block."""
    count = len(sequence.filled)
    if not count:
        return []
    rest = (length - (size - (done or 0) % size)) % size
    last = length - rest - (0 if rest else size)
    ends = [last - (count - chunk - 1) * size for chunk in range(count)]
    if not 0 <= ends[0] <= ends[-1] <= length:
        raise ValueError(
            f"sequence {sequence.number}: {length} tokens after {done} do not fill {count} blocks of {size}; expected "
            "the blocks "
            "that block_idx_first_scheduled_token and block_idx_last_scheduled_token name"
        )
    return ends
