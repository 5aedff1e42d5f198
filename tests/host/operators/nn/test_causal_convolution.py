"""Causal convolutions with a cache: torch_npu.npu_fused_causal_conv1d and _v2.

https://gitcode.com/cann/ops-transformer, attention/fused_causal_conv1d and attention/inplace_fused_causal_conv1d
(docs/aclnnFusedCausalConv1d.md, docs/aclnnInplaceFusedCausalConv1d.md), a token at a time.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_npu
from operator_modes import ASCEND_950, check

pytestmark = ASCEND_950

T = torch.Tensor
I32 = torch.int32
DIM = 64
TENSORS = (
    "query_start_loc",
    "cache_indices",
    "num_accepted_tokens",
    "num_computed_tokens",
    "block_idx_first_scheduled_token",
    "block_idx_last_scheduled_token",
    "initial_state_idx",
)


def reference(x: T, w: T, states: T, lengths: list[int], options: dict[str, Any]) -> tuple[T, T]:
    """The result and the cache; of sequences that are passed over the input."""
    flat, out, cache = x.flatten(0, -2).float(), x.flatten(0, -2).float().clone(), states.clone()
    rows = options.get("cache_indices")
    computed, accepted = options.get("num_computed_tokens"), options.get("num_accepted_tokens")
    firsts, lasts, initial = (options.get(name) for name in TENSORS[4:])
    room, size, start = states.size(1), options.get("block_size", 128), 0
    for b, length in enumerate(lengths):
        own = flat[start : start + length]
        start += length
        row = b if rows is None else rows[b]
        if row == -1:
            continue
        read = row[initial[b]] if initial else row
        write = row[lasts[b]] if lasts else row
        offset = 0 if computed and computed[b] == 0 else accepted[b] - 1 if accepted else room - 2
        past = torch.zeros(2, DIM) if computed and computed[b] == 0 else states[read, : offset + 2].float()
        line = torch.cat([past, own])
        for i in range(min(room, len(line))):
            cache[write, room - 1 - i] = line[len(line) - 1 - i].to(cache.dtype)
        if firsts:
            rest = (length - (size - computed[b] % size)) % size
            last_full = length - rest - size if rest == 0 else length - rest
            for chunk in range(lasts[b] - firsts[b]):
                end = last_full - (lasts[b] - firsts[b] - chunk - 1) * size
                cache[row[firsts[b] + chunk], room - 2 :] = line[offset + end : offset + end + 2].to(cache.dtype)
        for i in range(length):
            y = sum(w[k].float() * line[offset + i + k] for k in range(3))
            if options.get("conv_mode") == "pangu" and computed[b] + i < 2:
                y = torch.zeros(DIM)
            out[start - length + i] = y + own[i] * options.get("residual_connection", 0)
    return out.view(x.shape).to(x.dtype), cache


def run(
    name: str, x: T, w: T, states: T, tensors: list[T], keys: tuple[str, ...], options: dict[str, Any]
) -> tuple[T, T]:
    given = {keys[i]: tensors[i] for i in range(len(keys))} | options
    if name.endswith("_v2"):
        torch_npu.npu_fused_causal_conv1d_v2(x, w, states, **given)
        return x, states
    return torch_npu.npu_fused_causal_conv1d(x, w, states, **given), states


#: What documents call prefill, prefill and decoding, decoding of several lengths, decoding of a batch, blocks, and
#: Pangu.
CASES: dict[str, tuple[list[int], int, bool, dict[str, Any]]] = {
    "prefill": (
        [10, 2, 9],
        2,
        False,
        {"cache_indices": [4, 0, 2], "num_computed_tokens": [0, 5, 1], "max_query_len": 10},
    ),
    "without a cache's rows": ([3, 12], 2, False, {"max_query_len": 12}),
    "mixed": (
        [12, 1, 2],
        4,
        False,
        {
            "cache_indices": [4, 0, 2],
            "num_computed_tokens": [0, 7, 9],
            "num_accepted_tokens": [1, 1, 2],
            "max_query_len": 12,
        },
    ),
    "lengths": (
        [1, 3, 2],
        5,
        False,
        {"cache_indices": [1, 5, 3], "num_accepted_tokens": [1, 3, 2], "max_query_len": 3, "residual_connection": 1},
    ),
    "lengths, all kept": ([1, 2], 4, False, {"cache_indices": [1, 5], "max_query_len": 2}),
    "batch": ([3, 3], 4, True, {"cache_indices": [3, 1], "num_accepted_tokens": [3, 1], "num_computed_tokens": [8, 0]}),
    "batch of one token": ([1, 1, 1], 2, True, {"residual_connection": 1}),
    "passed over": ([2, 3, 4], 6, False, {"cache_indices": [-1, 3, 1], "max_query_len": 4}),
    "pangu": (
        [9, 1, 3],
        2,
        False,
        {"num_computed_tokens": [0, 1, 4], "max_query_len": 9, "conv_mode": "pangu", "residual_connection": 1},
    ),
    "blocks": (
        [10, 9, 1],
        4,
        False,
        {
            "cache_indices": [[0, 1, 2, -1], [3, 4, 5, 6], [7, 8, -1, -1]],
            "num_computed_tokens": [0, 6, 3],
            "block_idx_first_scheduled_token": [0, 1, 0],
            "block_idx_last_scheduled_token": [2, 3, 0],
            "initial_state_idx": [0, 1, 0],
            "block_size": 4,
            "max_query_len": 10,
        },
    ),
    "blocks that end with the sequence": (
        [8, 3],
        2,
        False,
        {
            "cache_indices": [[0, 1], [5, 4]],
            "num_computed_tokens": [0, 5],
            "block_idx_first_scheduled_token": [0, 1],
            "block_idx_last_scheduled_token": [1, 1],
            "initial_state_idx": [0, 1],
            "block_size": 4,
            "max_query_len": 9,
        },
    ),
}


def arguments(
    case: str, dtype: torch.dtype
) -> tuple[list[Any], tuple[str, ...], dict[str, Any], list[int], dict[str, Any]]:
    lengths, rows, is_batch, options = CASES[case]
    x = torch.randn(*((len(lengths), lengths[0]) if is_batch else (sum(lengths),)), DIM).to(dtype)
    given = dict(options)
    if not is_batch:
        given["query_start_loc"] = [0, *torch.tensor(lengths).cumsum(0).tolist()]
    keys = tuple(name for name in TENSORS if name in given)
    tensors = [torch.tensor(given[name], dtype=I32) for name in keys]
    plain = {name: value for name, value in given.items() if name not in TENSORS}
    return (
        [x, torch.randn(3, DIM).to(dtype), torch.randn(12, rows, DIM).to(dtype), tensors],
        keys,
        plain,
        lengths,
        options,
    )


@pytest.mark.parametrize("name", ["npu_fused_causal_conv1d", "npu_fused_causal_conv1d_v2"])
@pytest.mark.parametrize("case", CASES)
def test_convolution(case: str, name: str) -> None:
    dtype = torch.bfloat16 if case in ("mixed", "batch") else torch.float16
    args, keys, plain, lengths, options = arguments(case, dtype)
    out, cache = reference(*args[:3], lengths, options)
    if case == "passed over" and name == "npu_fused_causal_conv1d":
        out[:2] = 0  # documents do not say; on the host zeros
    modes = "eager captured ge npugraph_ex" if case in ("mixed", "batch", "blocks") else "eager captured"
    check(lambda x, w, s, t: run(name, x, w, s, t, keys, plain), args, [out, cache], modes)


@pytest.mark.parametrize(
    ("case", "change", "message"),
    [
        ("prefill", {"cache_indices": [4, 4, 2]}, "a row of its own for each sequence"),
        ("prefill", {"cache_indices": [4, 12, 2]}, "from 0 to 11"),
        ("prefill", {"max_query_len": 9}, "the longest of query_start_loc"),
        ("prefill", {"max_query_len": -1}, "length of the longest sequence"),
        ("prefill", {"query_start_loc": [0, 10, 10, 21]}, "must begin with 0, grow"),
        ("prefill", {"query_start_loc": [0, 10, 12, 20]}, "number of tokens, 21"),
        ("prefill", {"residual_connection": 2}, "residual_connection 2"),
        ("pangu", {"num_computed_tokens": None}, "conv_mode 1 needs num_computed_tokens"),
        ("lengths", {"num_accepted_tokens": [1, 4, 1]}, "num_accepted_tokens 4 of sequence 1"),
        ("lengths", {"num_accepted_tokens": [0, 1, 1]}, "num_accepted_tokens 0 of sequence 0"),
        ("passed over", {"cache_indices": [3, -1, 1]}, "expected to leave out the first or the last ones"),
        ("blocks", {"initial_state_idx": None}, "must be given together"),
        ("blocks", {"block_idx_last_scheduled_token": [3, 3, 0]}, "must have a row for each block"),
        ("blocks", {"block_idx_last_scheduled_token": [2, 4, 0]}, "sequence 1: .* last < 4"),
        ("blocks", {"block_idx_last_scheduled_token": [2, 3, 1]}, "do not fill 1 blocks of 4"),
        ("blocks", {"block_size": 1}, "block_size 1"),
        ("batch", {"max_query_len": 9}, "max_query_len 9"),
        ("batch", {"max_query_len": 2}, "x of 3 tokens for each sequence, max_query_len 2"),
    ],
)
def test_what_is_refused(case: str, change: dict[str, Any], message: str) -> None:
    args, keys, plain, *_ = arguments(case, torch.float16)
    x, w, states, tensors = args
    given = dict(zip(keys, tensors, strict=True)) | plain | change
    given = {n: torch.tensor(v, dtype=I32) if isinstance(v, list) else v for n, v in given.items()}
    device = {n: v.npu() if isinstance(v, T) else v for n, v in given.items()}
    on_device = [t.npu() for t in (x, w, states)]
    with pytest.raises(RuntimeError, match=message):
        torch_npu.npu_fused_causal_conv1d_v2(*on_device, **device)
    assert torch.equal(on_device[0].cpu(), x)
    assert torch.equal(on_device[2].cpu(), states)


def test_shapes_and_dtypes_are_refused() -> None:
    args, keys, plain, *_ = arguments("prefill", torch.float16)
    given = dict(zip(keys, (t.npu() for t in args[3]), strict=True)) | plain
    x, w, states = (t.npu() for t in args[:3])
    for changed, message in (
        ((x, torch.randn(4, DIM).half().npu(), states), "weight"),
        ((x, w, states.bfloat16()), "conv_states is torch.bfloat16"),
        ((x[:, :32].contiguous(), w, states), "a multiple of 16 from 64 to 16384"),
        ((x, w, states[:2]), "conv_states has 2 rows"),
        ((x[:9].view(3, 3, DIM), w, states), "conv_states has 2 tokens: with 3 of each"),
        ((x.float(), w, states), "x is FLOAT; expected FLOAT16, BF16"),
    ):
        with pytest.raises(RuntimeError, match=message):
            torch_npu.npu_fused_causal_conv1d(
                *changed, **given | ({"max_query_len": -1} if changed[0].dim() == 3 else {})
            )


def test_memory_with_gaps() -> None:
    args, keys, plain, lengths, options = arguments("mixed", torch.float16)
    out, cache = reference(*args[:3], lengths, options)
    given = dict(zip(keys, (t.npu() for t in args[3]), strict=True)) | plain
    x, states = torch.zeros(15, 3 * DIM).half().npu(), torch.ones(12, 8, DIM).half().npu()
    x[:, DIM : 2 * DIM], states[:, ::2] = args[0].half().npu(), args[2].npu()
    assert torch.equal(
        torch_npu.npu_fused_causal_conv1d(x[:, DIM : 2 * DIM], args[1].npu(), states[:, ::2], **given).cpu(), out
    )
    assert torch.equal(states[:, ::2].cpu(), cache)
    assert bool((states[:, 1::2] == 1).all())
