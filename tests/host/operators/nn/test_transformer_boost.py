"""Operators of torch_npu that call CANN's library for transformers (libatb), which serving code of the first years
calls.

Their arguments are documented with torch_npu (``torch_npu/op_plugin/atb``), the operations in Ascend Transformer
Boost's
documentation: https://www.hiascend.com/document/detail/zh/canncommercial/82RC1/acce/ascendtb.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
import torch_npu
from operator_modes import check, to_npu

from ascend_graph.host.kernels.nn import transformer_boost

T = torch.Tensor
DTYPES = [torch.float16, torch.bfloat16]


def ints(*values: int) -> T:
    return torch.tensor(values, dtype=torch.int32)


def attended(q: T, k: T, v: T, bias: T | None = None) -> T:
    """A sequence, [tokens, heads, width]; query heads share those of keys."""
    k, v = (x.double().repeat_interleave(q.size(1) // x.size(1), 1) for x in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q.double(), k) / math.sqrt(q.size(-1))
    weights = torch.softmax(scores if bias is None else scores + bias, -1)
    return torch.einsum("hqk,khd->qhd", weights, v).to(q.dtype)


def causal(queries: int, keys: int) -> T:
    """0, and minus infinity behind a query's own place, the last query's being the last key."""
    return torch.full((queries, keys), -torch.inf).triu(keys - queries + 1)


def pages(lengths: Sequence[int], heads: int, width: int, dtype: torch.dtype) -> tuple[T, T, list[T]]:
    """A cache with blocks of four in any order, the table of them, and each sequence's rows."""
    counts = [-(-length // 4) for length in lengths]
    cache = torch.randn(sum(counts) + 1, 4, heads, width).to(dtype)
    order = torch.randperm(sum(counts) + 1)[: sum(counts)].tolist()
    table = torch.zeros(len(lengths), max(counts) + 1, dtype=torch.int32)
    rows = []
    for n, (count, length) in enumerate(zip(counts, lengths, strict=True)):
        own = [order.pop() for _ in range(count)]
        table[n, :count] = ints(*own)
        rows.append(cache[own].flatten(0, 1)[:length])
    return cache, table, rows


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int8])
def test_reshape_and_cache(dtype: torch.dtype) -> None:
    key, value = (torch.randint(-9, 9, (5, 2, 16)).to(dtype) for _ in range(2))
    keys, values = torch.zeros(3, 4, 2, 16, dtype=dtype), torch.ones(3, 4, 2, 16, dtype=dtype)
    slots = ints(11, 0, -1, 5, 4)

    def put(key: T, value: T, keys: T, values: T, slots: T) -> tuple[T, T]:
        torch_npu._npu_reshape_and_cache(key, value, keys, values, slots)
        return keys, values

    expected = []
    for rows, cache in ((key, keys), (value, values)):
        flat = cache.clone().flatten(0, 1)
        flat[slots[slots >= 0].long()] = rows[slots >= 0]
        expected.append(flat.reshape(cache.shape))
    check(put, (key, value, keys, values, slots), expected, "eager captured npugraph_ex")

    def put_keys(key: T, keys: T, slots: T) -> T:
        torch_npu._npu_reshape_and_cache_siso(key, keys, slots)
        return keys

    check(put_keys, (key, keys, slots), expected[0], "eager captured")


@pytest.mark.parametrize("neox", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rotary_embedding(dtype: torch.dtype, neox: bool) -> None:
    """The wheel keeps the first table of angles that it is given for good, so all calls have one."""
    width, positions = 8, torch.tensor([3, 0, 15, 3])
    query, key = torch.randn(4, 3 * width).to(dtype), torch.randn(4, width).to(dtype)
    angles = torch.outer(torch.arange(16), 100.0 ** (-torch.arange(width // 2) / 4))
    table = torch.cat([angles.cos(), angles.sin()], -1)

    def turn(positions: T, query: T, key: T, table: T) -> tuple[T, T]:
        torch_npu._npu_rotary_embedding(positions, query, key, width, table, neox)
        return query, key

    def turned(x: T) -> T:
        heads = x.double().unflatten(-1, (-1, width))
        a, b = heads.chunk(2, -1) if neox else (heads[..., ::2], heads[..., 1::2])
        c, s = (part[positions].double().unsqueeze(1) for part in (angles.cos(), angles.sin()))
        parts = (a * c - b * s, b * c + a * s)
        return (torch.cat(parts, -1) if neox else torch.stack(parts, -1)).reshape(x.shape).to(dtype)

    check(turn, (positions, query, key, table), (turned(query), turned(key)), "eager captured")


@pytest.mark.parametrize("value_width", [16, 8])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (4, 2), (4, 1)])
def test_paged_attention(dtype: torch.dtype, heads: int, kv_heads: int, value_width: int) -> None:
    lengths = (1, 9, 4)
    keys, table, rows = pages(lengths, kv_heads, 16, dtype)
    values = keys[..., :value_width].flip(-1).contiguous()
    query = torch.randn(3, heads, 16).to(dtype)
    out = torch.zeros(3, heads, value_width, dtype=dtype)

    def attend(query: T, keys: T, values: T, table: T, out: T) -> T:
        torch_npu._npu_paged_attention(query, keys, values, kv_heads, heads, 0.25, table, ints(*lengths), out)
        return out

    own = [r[..., :value_width].flip(-1) for r in rows]
    expected = torch.cat([attended(query[n : n + 1], rows[n], own[n]) for n in range(3)])
    check(attend, (query, keys, values, table, out), expected, "eager captured")

    def attend_to_keys(query: T, keys: T, table: T, out: T) -> T:
        torch_npu._npu_paged_attention_mla(query, keys, kv_heads, heads, 0.25, table, ints(*lengths), value_width, out)
        return out

    expected = torch.cat([attended(query[n : n + 1], r, r[..., :value_width]) for n, r in enumerate(rows)])
    check(attend_to_keys, (query, keys, table, out), expected, "eager captured")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("triangle", [True, False])
def test_paged_attention_of_several_queries(dtype: torch.dtype, triangle: bool) -> None:
    lengths, queries = (7, 5, 1), (3, 5, 1)
    keys, table, rows = pages(lengths, 2, 16, dtype)
    values, query = keys.flip(-1).contiguous(), torch.randn(sum(queries), 4, 16).to(dtype)
    masks = [causal(a, b) for a, b in zip(queries, lengths, strict=True)]
    mask = torch.cat([torch.nn.functional.pad(m, (0, 7 - m.size(1))) for m in masks]).to(dtype)
    given = torch.ones(2048, 2048, dtype=dtype).triu(1) if triangle else mask

    def attend(query: T, keys: T, values: T, table: T, mask: T) -> T:
        out = torch.empty_like(query)
        lists = (ints(*lengths), mask, ints(*queries))
        if triangle:
            torch_npu._npu_flash_attention_qlens(query, keys, values, table, mask, lists[2], lists[0], 2, 4, 0.25, out)
        else:
            torch_npu._npu_paged_attention_splitfuse(query, keys, values, table, *lists, 2, 4, 0.25, out)
        return out

    parts = zip(query.split(list(queries)), rows, masks, strict=True)
    expected = torch.cat([attended(q, r, r.flip(-1), m) for q, r, m in parts])
    check(attend, (query, keys, values, table, given), expected, "eager captured")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["none", "square", "batch", "triangle"])
def test_flash_attention(dtype: torch.dtype, kind: str) -> None:
    """A mask of float16 is added; one of bfloat16 has 1 where nothing is attended to."""
    lengths = (4, 1, 6)
    query = torch.randn(11, 4, 16).to(dtype)
    key, value = (torch.randn(11, 2, 16).to(dtype) for _ in range(2))
    places = torch.ones(3, 6, 6).triu(1) if kind == "batch" else torch.ones(6, 6).triu(1)
    mask = (places if dtype is torch.bfloat16 else torch.zeros(places.shape).masked_fill(places > 0, -torch.inf)).to(
        dtype
    )

    def attend(query: T, key: T, value: T, mask: T) -> T:
        out, lists = torch.empty_like(query), (ints(*lengths), 0.25, 4, 2)
        if kind == "none":
            torch_npu._npu_flash_attention_unpad(query, key, value, *lists, out)
        elif kind == "triangle":
            torch_npu._npu_flash_attention_v3(query, key, value, mask, *lists, mask_type=3, out=out)
        else:
            torch_npu._npu_flash_attention(query, key, value, mask, *lists, out)
        return out

    parts = zip(*(x.split(list(lengths)) for x in (query, key, value)), strict=True)
    expected = torch.cat([attended(q, k, v, None if kind == "none" else causal(len(q), len(q))) for q, k, v in parts])
    check(attend, (query, key, value, mask), expected, "eager captured")


@pytest.mark.parametrize(("group_num", "k", "n"), [(4, 2, 1), (4, 2, 3), (8, 3, 2), (2, 2, 1)])
def test_group_topk(group_num: int, k: int, n: int) -> None:
    x = torch.rand(5, 16).half()
    groups = x.unflatten(1, (group_num, -1)).clone()
    for row in groups:
        best = row.float().topk(n, -1).values.sum(-1).topk(k).indices.tolist()
        for number in set(range(group_num)) - set(best):
            row[number] = 0

    def chosen(x: T) -> T:
        torch_npu._npu_group_topk(x, k=k, group_num=group_num, n=n)
        return x

    check(chosen, (x,), groups.flatten(1), "eager captured")


def test_matmul_add_fp32() -> None:
    x, weight, total = torch.randn(6, 4).half(), torch.randn(6, 5).half(), torch.randn(4, 5)

    def added(x: T, weight: T, total: T) -> T:
        torch_npu._npu_matmul_add_fp32(x, weight, total)
        return total

    check(added, (x, weight, total), total + x.float().T @ weight.float(), "eager captured")


def test_quantization() -> None:
    x, scale, offset = torch.randn(3, 8).half() * 40, torch.rand(8).half() + 0.5, torch.arange(-4, 4).to(torch.int8)
    gamma, beta = torch.rand(8).half(), torch.rand(8).half()

    def quantized(x: T, scale: T, offset: T) -> T:
        out = torch.empty_like(x, dtype=torch.int8)
        torch_npu._npu_quantize_per_tensor(x, scale, offset, out)
        return out

    whole = torch.round(x.float() / scale.float()) + offset.float()
    check(quantized, (x, scale, offset), whole.clamp(-128, 127).to(torch.int8), "eager captured")

    def normalized(x: T, gamma: T, beta: T, scale: T, offset: T) -> T:
        out = torch.empty_like(x, dtype=torch.int8)
        torch_npu._npu_quant_rms_norm(x, gamma, beta, scale, offset, out, 1e-5)
        return out

    wide = x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-5) * gamma.float() + beta.float()
    expected = torch.round(wide / 0.0625 + 3).clamp(-128, 127).to(torch.int8)
    given = (x, gamma, beta, torch.tensor([0.0625]).half(), torch.tensor([3], dtype=torch.int8))
    check(normalized, given, expected, "eager captured")


def refused(*, lengths: T, kv_heads: int = 2, table: Sequence[int] = (0, 1)) -> None:
    cache, query = torch.zeros(2, 4, 2, 16).half(), torch.zeros(1, 4, 16).half()
    arguments: list[Any] = [query, cache, cache, kv_heads, 4, 0.25, ints(*table).reshape(1, -1), lengths, query]
    on_device = [to_npu(x) if number != 7 else x for number, x in enumerate(arguments)]
    torch_npu._npu_paged_attention(*on_device)
    torch.npu.synchronize()


def test_wrong_arguments_are_refused_with_a_reason() -> None:
    refused(lengths=ints(8))
    with pytest.raises(RuntimeError, match=r"PagedAttentionOperation \(.*lengths of keys \[9\]: there is room for 8"):
        refused(lengths=ints(9))
    with pytest.raises(RuntimeError, match="kvHeadNum 3: expected a divisor of headNum, 4"):
        refused(lengths=ints(8), kv_heads=3)
    with pytest.raises(RuntimeError, match="context_lens must be a tensor of the CPU"):
        refused(lengths=ints(8).npu())
    with pytest.raises(RuntimeError, match=r"block_table has 2; expected 0 to 1"):
        refused(lengths=ints(8), table=(0, 2))
    refused(lengths=ints(8))


@pytest.mark.parametrize("rows", [1, 2])
def test_masks_with_fewer_keys_are_refused(rows: int) -> None:
    """Also those with one row for all queries, which broadcasting would take with a single key."""
    with pytest.raises(ValueError, match=r"mask has the shape \[.*1\]; expected at least"):
        transformer_boost._mask(torch.zeros(1, rows, 1), transformer_boost._OF_SEQUENCES, 0, slice(0, 2), 5, 4)
