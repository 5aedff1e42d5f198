"""Keys and values compressed along a sequence.

Documented: https://gitcode.com/cann/ops-transformer, attention/nsa_compress, nsa_compress_grad and
nsa_compress_with_cache.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from operator_modes import check, run

T = torch.Tensor
npu = torch.ops.npu

HEADS, WIDTH, PAGE = 3, 16, 64
#: The wheel has no meta functions of these.
MODES = "eager captured"
#: Sequences' lengths, block and stride: some sequences are shorter than a block.
SHAPES = {"one": ([48], 16, 16), "several": ([40, 8, 64], 32, 16), "exact": ([32, 16], 16, 16)}


def ends(lengths: list[int]) -> list[int]:
    return [sum(lengths[: n + 1]) for n in range(len(lengths))]


def compressed(x: T, weight: T, lengths: list[int], block: int, stride: int) -> T:
    """A row for each whole window, sequence by sequence."""
    rows = []
    for sequence in x.split(lengths):
        for start in range(0, len(sequence) - block + 1, stride):
            rows.append((sequence[start : start + block] * weight[:, :, None]).sum(0))
    return torch.stack(rows)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_windows_of_sequences(name: str, dtype: torch.dtype) -> None:
    lengths, block, stride = SHAPES[name]
    x, weight = torch.randn(sum(lengths), HEADS, WIDTH).to(dtype), torch.rand(block, HEADS).to(dtype) / block

    def forward(x: T, weight: T) -> T:
        return npu.npu_nsa_compress(x, weight, block, stride, actual_seq_len=ends(lengths))

    expected = compressed(x.float(), weight.float(), lengths, block, stride)
    check(forward, [x, weight], expected.to(dtype), MODES)

    def backward(grad: T, x: T, weight: T) -> Any:
        return npu.npu_nsa_compress_grad(grad, x, weight, block, stride, actual_seq_len=ends(lengths))

    grad = torch.randn(expected.shape).to(dtype)
    leaves = [t.float().requires_grad_() for t in (x, weight)]
    wanted = torch.autograd.grad(compressed(*leaves, lengths, block, stride), leaves, grad.float())
    check(backward, [grad, x, weight], [g.to(dtype) for g in wanted], MODES)


def cache_and_expected(tokens: list[T], weight: T, slots: T, block: int, stride: int) -> tuple[T, T]:
    cache = torch.randn(2, 4, HEADS, WIDTH).half()
    expected = cache.clone().view(-1, HEADS, WIDTH)
    for sequence, slot in zip(tokens, slots.tolist(), strict=True):
        if len(sequence) >= block and (len(sequence) - block) % stride == 0:  # the newest token completes a window
            expected[slot] = (sequence[-block:].float() * weight.float()[:, :, None]).sum(0).half()
    return cache, expected.view(cache.shape)


def test_the_newest_window_goes_to_a_cache() -> None:
    block, stride, lengths = 32, 16, [32, 47, 8, 64]
    x, weight = torch.randn(sum(lengths), HEADS, WIDTH).half(), torch.rand(block, HEADS).half() / block
    slots = torch.tensor([5, 1, 2, 7], dtype=torch.int32)
    cache, expected = cache_and_expected(list(x.split(lengths)), weight, slots, block, stride)

    def call(x: T, weight: T, slots: T, cache: T) -> T:
        npu.npu_nsa_compress_infer(x, weight, slots, block, stride, PAGE, actual_seq_len=lengths, cache=cache)
        return cache

    check(call, [x, weight, slots, cache], expected, MODES)


def paged(x: T, weight: T, slots: T, table: T, cache: T) -> T:
    npu.npu_nsa_compress_infer(x, weight, slots, 32, 16, PAGE, block_table=table, actual_seq_len=[96, 48], cache=cache)
    return cache


def test_the_newest_window_of_pages() -> None:
    x, weight = torch.randn(5, PAGE, HEADS, WIDTH).half(), torch.rand(32, HEADS).half() / 32
    slots, table = torch.tensor([3, 0], dtype=torch.int32), torch.tensor([[4, 1], [2, 0]], dtype=torch.int32)
    sequences = [x[row].flatten(0, 1)[:length] for row, length in zip(table.tolist(), [96, 48], strict=True)]
    cache, expected = cache_and_expected(sequences, weight, slots, 32, 16)
    check(paged, [x, weight, slots, table, cache], expected, MODES)


@pytest.mark.parametrize(
    ("slot", "page", "message"),
    [
        (8, 1, "slot 8: valid are 0 to 7"),
        (3, 5, r"token 336: valid are 0 to 319"),
        (3, -1, r"token -\d+: valid are 0 to 319"),
    ],
)
def test_what_is_out_of_range_is_refused_and_nothing_is_written(slot: int, page: int, message: str) -> None:
    x, weight = torch.randn(5, PAGE, HEADS, WIDTH).half(), torch.rand(32, HEADS).half()
    slots, table = torch.tensor([0, slot], dtype=torch.int32), torch.tensor([[4, 1], [page, page]], dtype=torch.int32)
    cache = torch.zeros(2, 4, HEADS, WIDTH).half().npu()
    with pytest.raises(RuntimeError, match=message):
        run("eager", lambda *args: paged(*args, cache).cpu(), [x, weight, slots, table])
    assert not cache.cpu().any()


def test_lengths_that_are_not_those_of_the_tokens_are_refused() -> None:
    x, weight = torch.randn(40, HEADS, WIDTH).half().npu(), torch.rand(16, HEADS).half().npu()
    with pytest.raises(RuntimeError, match=r"ends of sequences \[16, 32\]: valid are ascending ones up to 40"):
        npu.npu_nsa_compress(x, weight, 16, 16, actual_seq_len=[16, 32])
