"""Native sparse attention: to compressed keys, which blocks of keys follow from it, and to these, a pair of query and
head at a time.

Documented: https://gitcode.com/cann/ops-transformer, attention/nsa_compress_attention, nsa_compress_attention_infer,
nsa_selected_attention,
nsa_selected_attention_grad and nsa_selected_attention_infer; the numbers of blocks and compressed keys, and the blocks
that inference
always chooses: test/test_custom_ops/test_npu_nsa_compress_attention.py and …_infer.py of
https://gitcode.com/Ascend/op-plugin.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from operator_modes import check, run

T = torch.Tensor
I32 = torch.int32
npu = torch.ops.npu

#: The wheel has no meta functions of these.
MODES = "eager captured"


def softmax(scores: T) -> tuple[T, float, float]:
    """Probabilities, the largest score, and the sum; of nothing zeros."""
    largest = float(scores.detach().max())
    if largest == -math.inf:
        return torch.zeros_like(scores), largest, 0.0
    weights = torch.exp(scores - largest)
    return weights / weights.sum(), largest, float(weights.detach().sum())


def matters(probabilities: T, block: int, stride: int, selected: int, blocks: int) -> T:
    """Block j, from 1, has the compressed keys l'/d * j - m - n, from 0."""
    found = torch.zeros(blocks)
    for j in range(1, blocks + 1):
        for m in range(selected // stride):
            for n in range(block // stride):
                at = selected // stride * j - m - n
                if 0 <= at < len(probabilities):
                    found[j - 1] += probabilities[at]
    return found


def best(scores: T, count: int) -> list[int]:
    return sorted(range(len(scores)), key=lambda j: (-float(scores[j]), j))[:count]


def compress_attention(
    q: T, k: T, v: T, mask: T | None, first: T | None, ends: list[list[int]], sizes: tuple[int, int, int, int]
) -> tuple[T, T, T, T]:
    block, stride, selected, count = sizes
    group = q.size(1) // k.size(1)
    out, top, total = torch.zeros(*q.shape[:2], v.size(2)), torch.zeros(*q.shape[:2], 8), torch.zeros(*q.shape[:2], 8)
    chosen = torch.zeros(q.size(0), k.size(1), count, dtype=I32)
    for (a, b), (c, d), (e, f) in zip(*(pairwise([0, *x]) for x in ends), strict=True):
        for t in range(a, b):
            for h in range(k.size(1)):
                importance = torch.zeros(f - e)
                for n in range(h * group, (h + 1) * group):
                    scores = k[c:d, h].float() @ q[t, n].float() * 0.2
                    if mask is not None:
                        scores = scores.masked_fill(mask[t - a, : d - c], -math.inf)
                    p, top[t, n], total[t, n] = softmax(scores)
                    out[t, n] = p @ v[c:d, h].float()
                    importance += matters(p, block, stride, selected, f - e)
                if first is not None:
                    importance = importance.masked_fill(first[t - a, : f - e], math.inf)
                chosen[t, h] = torch.tensor(best(importance, count), dtype=I32)
    return out.to(q.dtype), chosen, top, total


SIZES = {"paper": (32, 16, 64, 3), "wide": (64, 32, 64, 2), "all": (16, 16, 16, 4)}


def compressed(name: str, dtype: torch.dtype = torch.float16) -> tuple[list[T], list[list[int]]]:
    block, stride, selected, _ = SIZES[name]
    del block
    queries, keys = [5, 12], [9, 14]
    blocks = [-(-n * stride // selected) for n in keys]
    ends = [[x[0], sum(x)] for x in (queries, keys, blocks)]
    q, k, v = torch.randn(17, 4, 24), torch.randn(23, 2, 24), torch.randn(23, 2, 16)
    return [x.to(dtype) for x in (q, k, v)], ends


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("masked", [False, True])
def test_compressed_keys_and_the_blocks_that_matter(name: str, masked: bool) -> None:
    tensors, ends = compressed(name, torch.bfloat16 if name == "wide" else torch.float16)
    # The first query sees nothing, and each chooses the first block, whatever it has.
    mask = torch.arange(14) >= torch.arange(12)[:, None] if masked else None
    first = torch.zeros(12, 14, dtype=torch.bool) if masked else None
    if first is not None:
        first[:, 0] = True
    block, stride, selected, count = SIZES[name]

    def call(q: T, k: T, v: T, *masks: T) -> Any:
        given = dict(zip(("atten_mask", "topk_mask"), masks, strict=False))
        return npu.npu_nsa_compress_attention(
            q,
            k,
            v,
            0.2,
            4,
            block,
            stride,
            selected,
            count,
            **given,
            actual_seq_qlen=ends[0],
            actual_cmp_seq_kvlen=ends[1],
            actual_sel_seq_kvlen=ends[2],
        )

    masks = [mask, first] if mask is not None and first is not None else []
    check(call, [*tensors, *masks], compress_attention(*tensors, mask, first, ends, SIZES[name]), MODES)


def test_gradients_of_compressed_keys() -> None:
    tensors, ends = compressed("paper")

    def call(q: T, k: T, v: T) -> Any:
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        out = npu.npu_nsa_compress_attention(
            *leaves,
            0.2,
            4,
            *SIZES["paper"],
            actual_seq_qlen=ends[0],
            actual_cmp_seq_kvlen=ends[1],
            actual_sel_seq_kvlen=ends[2],
            atten_mask=torch.zeros(12, 14, dtype=torch.bool).npu(),
        )[0]
        return torch.autograd.grad(out.float().square().sum(), leaves)

    leaves = [x.float().requires_grad_() for x in tensors]
    q, k, v = leaves
    parts = []
    for (a, b), (c, d) in zip(pairwise([0, *ends[0]]), pairwise([0, *ends[1]]), strict=True):
        keys, values = (x[c:d].repeat_interleave(2, 1).transpose(0, 1) for x in (k, v))
        parts.append(((q[a:b].transpose(0, 1) @ keys.mT * 0.2).softmax(-1) @ values).transpose(0, 1))
    out = torch.cat(parts)
    wanted = torch.autograd.grad(out, leaves, 2 * out.detach().half().float())
    check(call, tensors, [g.half() for g in wanted], "eager")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"blocks": [3, 6]}, r"14 compressed keys \(at most 14000\) in 3 blocks of 4"),
        ({"count": 4}, r"selectBlockCount=4: valid are 1 to 32, and the 3 blocks of a sequence"),
        ({"stride": 24}, r"compressStride=24: valid are multiples of 16 up to 64"),
        ({"keys": [9, 22]}, r"end at 17 and 22; there are 17 queries and 23 keys"),
        ({"heads": 3}, r"headNum 3, query"),
    ],
)
def test_what_documents_call_invalid_is_refused(change: dict[str, Any], message: str) -> None:
    (q, k, v), (queries, keys, blocks) = compressed("paper")
    with pytest.raises(RuntimeError, match=rf"(?s)161002.*{message}"):
        npu.npu_nsa_compress_attention(
            q.npu(),
            k.npu(),
            v.npu(),
            0.2,
            change.get("heads", 4),
            32,
            change.get("stride", 16),
            64,
            change.get("count", 3),
            actual_seq_qlen=queries,
            actual_cmp_seq_kvlen=change.get("keys", keys),
            actual_sel_seq_kvlen=change.get("blocks", blocks),
        )


def in_pages(sequences: list[T], table: T, page: int) -> T:
    """Tokens where the table says, and anything elsewhere."""
    kept = torch.randn(int(table.max()) + 1, page, *sequences[0].shape[1:]).to(sequences[0].dtype)
    for row, x in zip(table.tolist(), sequences, strict=True):
        for number, place in enumerate(row):
            part = x[number * page : (number + 1) * page]
            kept[place, : len(part)] = part
    return kept


@pytest.mark.parametrize("layout", ["TND", "BSND"])
def test_compressed_keys_in_pages(layout: str) -> None:
    lengths, page, count = [30, 21], 16, 5
    q = torch.randn(2, 4, 24).half()
    keys, values = ([torch.randn(n, 2, width).half() for n in lengths] for width in (24, 16))
    table = torch.tensor([[3, 1], [0, 2]], dtype=I32)
    out, chosen = torch.zeros(2, 4, 16), torch.zeros(2, 2, count, dtype=I32)
    for b, (k, v) in enumerate(zip(keys, values, strict=True)):
        blocks = math.ceil(((lengths[b] - 1) * 16 + 32) / 64)
        for h in range(2):
            importance = torch.zeros(blocks)
            for n in (2 * h, 2 * h + 1):
                p, _, _ = softmax(k[:, h].float() @ q[b, n].float() * 0.2)
                out[b, n] = p @ v[:, h].float()
                importance += matters(p, 32, 16, 64, blocks)
            middle = [j + 1 for j in best(importance[1:-2], count - 3)]
            chosen[b, h] = torch.tensor([0, blocks - 2, blocks - 1, *middle], dtype=I32)
    args = [q, *(in_pages(x, table, page).flatten(2) for x in (keys, values)), table]
    expected = [out.half(), chosen]
    if layout == "BSND":
        args[0], expected = q.unsqueeze(1), [x.unsqueeze(1) for x in expected]
    check(
        lambda q, k, v, t: npu.npu_nsa_compress_attention_infer(
            q, k, v, 0.2, 4, 2, 64, count, page, 32, 16, layout=layout, block_table=t, actual_cmp_seq_kvlen=lengths
        ),
        args,
        expected,
        MODES,
    )


def test_several_queries_of_a_sequence_are_refused_by_name() -> None:
    q, kv = torch.randn(2, 2, 4, 24).half().npu(), torch.randn(4, 16, 48).half().npu()
    with pytest.raises(RuntimeError, match=r"expected one query for every sequence on the host"):
        npu.npu_nsa_compress_attention_infer(
            q,
            kv,
            kv,
            0.2,
            4,
            2,
            64,
            3,
            16,
            32,
            16,
            layout="BSND",
            actual_cmp_seq_kvlen=[30, 30],
            block_table=torch.zeros(2, 2, dtype=I32).npu(),
        )


def selected_attention(q: T, k: T, v: T, rows: T, ends: list[list[int]], size: int, causal: bool) -> Any:
    """Each query and head alone, of tensors that need gradients, too."""
    group, parts, statistics = q.size(1) // k.size(1), [], torch.zeros(2, *q.shape[:2], 8)
    for (a, b), (c, d) in zip(*(pairwise([0, *x]) for x in ends), strict=True):
        for t in range(a, b):
            for n in range(q.size(1)):
                tokens = [int(r) * size + i for r in rows[t, n // group] for i in range(size)]
                assert max(tokens) < d - c
                scores = k[[c + x for x in tokens], n // group] @ q[t, n] * 0.1
                if causal:
                    scores = scores.masked_fill(torch.tensor(tokens) > t - a, -math.inf)
                p, statistics[0, t, n], statistics[1, t, n] = softmax(scores)
                parts.append(p @ v[[c + x for x in tokens], n // group])
    return torch.stack(parts).unflatten(0, q.shape[:2]), *statistics


def selections() -> tuple[list[T], T, list[list[int]]]:
    tensors = [torch.randn(7, 4, 192), torch.randn(144, 2, 192), torch.randn(144, 2, 128)]
    rows = torch.stack([torch.randperm(n // 16)[:3] for n in [64] * 6 + [80] * 8]).view(7, 2, 3).to(I32)
    rows[:, :, 0] = 0  # with a mask each query sees something
    return tensors, rows, [[3, 7], [64, 144]]


def select(q: T, k: T, v: T, rows: T, *mask: T) -> Any:
    ends = [[3, 7], [64, 144]]
    return npu.npu_nsa_select_attention(
        q,
        k,
        v,
        rows,
        0.1,
        4,
        16,
        3,
        atten_mask=mask[0] if mask else None,
        actual_seq_qlen=ends[0],
        actual_seq_kvlen=ends[1],
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_chosen_blocks(dtype: torch.dtype, causal: bool) -> None:
    tensors, rows, ends = selections()
    tensors = [x.to(dtype) for x in tensors]
    mask = [torch.ones(80, 80, dtype=torch.bool).triu(1)] if causal else []
    out, top, total = selected_attention(*(x.float() for x in tensors), rows, ends, 16, causal)
    check(select, [*tensors, rows, *mask], [out.to(dtype), top, total], MODES)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_chosen_blocks(causal: bool) -> None:
    tensors, rows, ends = selections()
    tensors, grad = [x.half() for x in tensors], torch.randn(7, 4, 128).half()
    mask = [torch.ones(80, 80, dtype=torch.bool).triu(1)] if causal else []
    leaves = [x.float().requires_grad_() for x in tensors]
    out, top, total = selected_attention(*leaves, rows, ends, 16, causal)
    wanted = [g.half() for g in torch.autograd.grad(out, leaves, grad.float())]

    def backward(q: T, k: T, v: T, rows: T, grad: T, *mask: T) -> Any:
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        return torch.autograd.grad(select(*leaves, rows, *mask)[0], leaves, grad)

    check(backward, [*tensors, rows, grad, *mask], wanted, "eager")
    check(
        lambda *args: npu.npu_nsa_select_attention_grad(
            *args[:8],
            0.1,
            4,
            16,
            3,
            atten_mask=args[8] if causal else None,
            actual_seq_qlen=ends[0],
            actual_seq_kvlen=ends[1],
        ),
        [grad, *tensors, out.detach().half(), top, total, rows, *mask],
        wanted,
        MODES,
    )


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"ends": [63, 144]}, 561000, r"a sequence has 63 keys; valid are multiples of 16 from 48 on"),
        ({"row": 5}, 561000, r"topkIndices: valid are 0 to \d for a sequence"),
        ({"mask": torch.zeros(80, 80, dtype=torch.bool)}, 561000, r"attenMask with sparseMode 2 must be a triangle"),
        ({"size": 24}, 161002, r"selectedBlockSize 24 is not supported; expected a positive multiple of 16 up to 128"),
        (
            {"ends": [64, 140]},
            161002,
            r"actualSeqKvLen \[64, 140\]: the ends of the sequences are needed, the last one 144",
        ),
    ],
)
def test_selections_that_are_none_are_refused(change: dict[str, Any], code: int, message: str) -> None:
    tensors, rows, _ = selections()
    rows[3, 0, 1] = change.get("row", 1)
    mask = change.get("mask")
    with pytest.raises(RuntimeError, match=rf"(?s){code}.*{message}"):
        npu.npu_nsa_select_attention(
            *(x.half().npu() for x in tensors),
            rows.npu(),
            0.1,
            4,
            change.get("size", 16),
            3,
            atten_mask=None if mask is None else mask.npu(),
            actual_seq_qlen=[3, 7],
            actual_seq_kvlen=change.get("ends", [64, 144]),
        )[0].cpu()


@pytest.mark.parametrize("layout", ["TND", "BSND", "BSH"])
def test_chosen_blocks_in_pages(layout: str) -> None:
    lengths, size, page = [150, 70], 32, 64
    q = torch.randn(2, 4, 192).half()
    keys, values = ([torch.randn(n, 2, width).half() for n in lengths] for width in (192, 128))
    table = torch.tensor([[4, 1, 3], [0, 2, 2]], dtype=I32)
    rows = torch.tensor(
        [[[4, 0, 2], [1, 3, -1]], [[2, -1, -1], [0, 1, 2]]], dtype=I32
    )  # the last block of each is not whole
    out = torch.zeros(2, 4, 128)
    for b, length in enumerate(lengths):
        for n in range(4):
            tokens = [int(r) * size + i for r in rows[b, n // 2] if r >= 0 for i in range(size)]
            tokens = [t for t in tokens if t < length]
            p, _, _ = softmax(keys[b][tokens, n // 2].float() @ q[b, n].float() * 0.1)
            out[b, n] = p @ values[b][tokens, n // 2].float()
    pages = [in_pages(x, table, page) for x in (keys, values)]
    expected, dense = out.half(), layout == "BSND"
    if layout != "TND":
        q, expected = (x.unsqueeze(1) if dense else x.reshape(2, 1, -1) for x in (q, expected))
    args = [q, *(x if dense else x.flatten(2) for x in pages), rows.unsqueeze(1) if dense else rows, table]

    def call(q: T, k: T, v: T, rows: T, table: T) -> T:
        return npu.npu_nsa_select_attention_infer(
            q, k, v, rows, 0.1, 4, 2, size, 3, page, layout=layout, block_table=table, actual_seq_kvlen=lengths
        )

    check(call, args, expected, MODES)
    args[3] = rows.clone().fill_(5) if layout != "BSND" else rows.clone().fill_(5).unsqueeze(1)
    with pytest.raises(RuntimeError, match=r"topkIndices \[5, 5, 5\]: valid are 0 to 4, at least one, and -1 behind"):
        run("eager", lambda *args: call(*args).cpu(), args)
