"""Which keys an attention reads, of quantized numbers, and how it is trained: gradients and losses, with autograd in
PyTorch.

Documented: https://gitcode.com/Ascend/op-plugin, docs/zh/custom_APIs/torch_npu (npu_quant_lightning_indexer,
npu_sparse_lightning_indexer_grad_kl_loss, npu_dense_lightning_indexer_softmax_lse,
npu_dense_lightning_indexer_grad_kl_loss), and
https://gitcode.com/cann/ops-transformer, attention/lightning_indexer_grad.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_npu
from float_codes import E4M3, HIF8, drawn
from operator_modes import ASCEND_950, check, run

T = torch.Tensor
I32 = torch.int32
npu = torch.ops.npu

#: Operators without a converter run in GE graphs as classes that TorchAir compiles (graph/custom_op.h).
EVERY = "eager captured ge npugraph_ex"


def index_scores(q: T, k: T, w: T) -> T:
    """The indexer's sums of a sequence, [queries, keys]."""
    return sum(w[:, n, None] * F.relu(q[:, n] @ k[:, 0].t()) for n in range(q.size(1)))  # type: ignore[return-value]


def seen(queries: int, keys: int) -> T:
    return torch.arange(keys) <= torch.arange(queries)[:, None] + keys - queries


def in_order(indices: T) -> T:
    ordered = torch.where(indices < 0, 1 << 20, indices).float().sort(-1).values
    return torch.where(ordered == 1 << 20, -1, ordered).to(I32)


def chosen_of(q: T, k: T, w: T, count: int, mode: int) -> T:
    scores = index_scores(q.double(), k.double(), w.double())
    if mode == 3:
        scores = scores.masked_fill(~seen(*scores.shape), -torch.inf)
    rows = torch.full((len(q), count), -1)
    for n, row in enumerate(scores.tolist()):
        there = [m for m in sorted(range(len(row)), key=lambda m: -row[m]) if row[m] > float("-inf")][:count]
        rows[n, : len(there)] = torch.tensor(sorted(there))
    return rows.to(I32)


def quantized(scales: tuple[torch.dtype, torch.dtype], *shape: int) -> list[T]:
    numbers = torch.randint(-128, 128, (*shape, 128)).to(torch.int8)
    return [numbers, (torch.rand(shape) * 4).to(scales[1]), torch.rand(shape).to(scales[0])]


@pytest.mark.parametrize("mode", [0, 3])
@pytest.mark.parametrize("layout", ["BSND", "PA_BSND"])
def test_quantized_indexer(mode: int, layout: str) -> None:
    half = (torch.float16, torch.float16)
    (q, q_scale, w), (k, k_scale, _), lengths = quantized(half, 2, 3, 8), quantized(half, 2, 48, 1), [17, 40]
    wide = [q.double() * q_scale.double().unsqueeze(-1), k.double() * k_scale.double().unsqueeze(-1)]
    expected = torch.stack([chosen_of(wide[0][b], wide[1][b, : lengths[b]], w[b], 12, mode) for b in range(2)])
    table = torch.tensor([[3, 5, 1], [0, 2, 4]], dtype=I32)
    if layout == "PA_BSND":
        pages = [torch.zeros(6, 16, *x.shape[2:], dtype=x.dtype) for x in (k, k_scale)]
        for stored, x in zip(pages, (k, k_scale), strict=True):
            for b in range(2):
                stored[table[b].long()] = x[b].unflatten(0, (3, 16))
        k, k_scale = pages

    def call(q: T, k: T, w: T, q_scale: T, k_scale: T, n: T, t: T) -> T:
        return in_order(
            torch_npu.npu_quant_lightning_indexer(
                q,
                k,
                w,
                q_scale,
                k_scale,
                0,
                0,
                actual_seq_lengths_key=n,
                block_table=t if layout == "PA_BSND" else None,
                layout_key=layout,
                sparse_count=12,
                sparse_mode=mode,
            )
        )

    args = [q, k, w, q_scale, k_scale, torch.tensor(lengths, dtype=I32), table]
    check(call, args, expected.unsqueeze(2), EVERY if layout == "PA_BSND" and mode == 3 else "eager captured")


@ASCEND_950
@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e4m3fn, halves", "hifloat8"])
def test_quantized_indexer_of_floats(kind: str) -> None:
    types = (torch.float16, torch.float16) if "halves" in kind else (torch.bfloat16, torch.float32)
    (_, q_scale, w), (_, k_scale, _) = quantized(types, 5, 8), quantized(types, 30, 1)
    dtype = HIF8 if kind == "hifloat8" else E4M3
    (q, queries), (k, keys) = (drawn(dtype, *scale.shape, 128) for scale in (q_scale, k_scale))
    wide = [torch.from_numpy(x) * s.double().unsqueeze(-1) for x, s in ((queries, q_scale), (keys, k_scale))]
    expected = torch.cat(
        [
            chosen_of(wide[0][a:b], wide[1][c:d], w[a:b], 6, 3)
            for (a, b), (c, d) in (((0, 2), (0, 12)), ((2, 5), (12, 30)))
        ]
    )
    given = {"query_dtype": HIF8, "key_dtype": HIF8} if kind == "hifloat8" else {}

    def call(q: T, k: T, w: T, q_scale: T, k_scale: T, m: T, n: T) -> T:
        return in_order(
            torch_npu.npu_quant_lightning_indexer(
                q,
                k,
                w,
                q_scale,
                k_scale,
                0,
                0,
                actual_seq_lengths_query=m,
                actual_seq_lengths_key=n,
                layout_query="TND",
                layout_key="TND",
                sparse_count=6,
                **given,
            )
        )

    ends = [torch.tensor(x, dtype=I32) for x in ([2, 5], [12, 30])]
    check(call, [q, k, w, q_scale, k_scale, *ends], expected.unsqueeze(1), "eager captured")


def test_dtypes_that_do_not_go_together_are_refused() -> None:
    (q, q_scale, w), (k, k_scale, _) = (quantized((torch.float16, torch.float16), 1, n, h) for n, h in ((3, 8), (9, 1)))
    with pytest.raises(RuntimeError, match=r"(?s)161002.*expected int8 with"):
        torch_npu.npu_quant_lightning_indexer(*(x.npu() for x in (q, k, w.bfloat16(), q_scale, k_scale)), 0, 0)
    with pytest.raises(RuntimeError, match=r"(?s)161002.*queryQuantMode 1, keyQuantMode 0"):
        torch_npu.npu_quant_lightning_indexer(*(x.npu() for x in (q, k, w, q_scale, k_scale)), 1, 0)


LAYOUTS = {"BSND": None, "TND": ([2, 5], [2050, 4110])}


def indexer(layout: str, heads: int, keys: int, dtype: torch.dtype, weights: torch.dtype) -> list[T]:
    """Queries, keys and weights: two sequences of 3 queries, or of 2 and 3."""
    if layout == "TND":
        shapes: list[tuple[int, ...]] = [(5, heads, 128), (2 * keys + 10, 1, 128), (5, heads)]
    else:
        shapes = [(2, 3, heads, 128), (2, keys, 1, 128), (2, 3, heads)]
    q, k, w = (torch.randn(shape) for shape in shapes)
    return [(q / 4).to(dtype), (k / 4).to(dtype), w.to(weights)]


def parts(layout: str, ends: Any) -> list[tuple[Any, Any]]:
    """How to take each sequence of queries, and of keys."""
    if layout == "BSND":
        return [(b, b) for b in range(2)]
    return [(slice(a, b), slice(c, d)) for (a, b), (c, d) in zip(*(pairwise([0, *x]) for x in ends), strict=True)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_of_the_indexer(layout: str, dtype: torch.dtype) -> None:
    ends = ([2, 5], [2050, 4110]) if layout == "TND" else None
    args = indexer(layout, 4, 2050, dtype, dtype)
    rows = torch.stack([torch.randperm(2050)[:2048] for _ in range(args[0][..., 0, 0].numel())])
    rows = rows.view(*args[0].shape[:-2], 2048).to(I32)
    rows[..., -3:] = -1
    dy = torch.randn(rows.shape).to(dtype)
    leaves = [x.float().requires_grad_() for x in args]
    total = torch.zeros(())
    for a, b in parts(layout, ends):
        scores = index_scores(leaves[0][a], leaves[1][b], leaves[2][a])
        there = rows[a].long().clamp(0)
        total = total + (scores.gather(1, there) * dy[a].float() * (rows[a] >= 0)).sum()
    wanted = [g.to(dtype) for g in torch.autograd.grad(total, leaves)]

    def call(q: T, k: T, dy: T, rows: T, w: T, *ends: T) -> Any:
        lengths = {"actual_seq_lengths_query": ends[0], "actual_seq_lengths_key": ends[1]} if ends else {}
        return npu.npu_lightning_indexer_grad(q, k, dy, rows, w, layout=layout, **lengths)

    given = [torch.tensor(x, dtype=I32) for x in ends] if ends else []
    check(call, [args[0], args[1], dy, rows, args[2], *given], wanted, EVERY if layout == "BSND" else "eager captured")


def test_the_indexer_with_autograd() -> None:
    q, k, w = indexer("BSND", 4, 2050, torch.float16, torch.float16)
    leaves = [x.float().requires_grad_() for x in (q, k, w)]
    total = torch.zeros(())
    for b in range(2):
        scores = index_scores(leaves[0][b], leaves[1][b], leaves[2][b]).masked_fill(~seen(3, 2050), -torch.inf)
        total = total + scores.topk(2048, -1).values.sum()
    wanted = [g.half() for g in torch.autograd.grad(total, leaves)]

    def call(*args: T) -> Any:
        leaves = [x.detach().requires_grad_() for x in args]
        values = torch_npu.npu_lightning_indexer(*leaves, return_value=True, sparse_count=2048)[1]
        return torch.autograd.grad(values.float().sum(), leaves)

    check(call, [q, k, w], wanted, "eager")


def test_less_than_the_documented_number_of_keys_is_refused() -> None:
    q, k, w = (x.npu() for x in indexer("BSND", 4, 2050, torch.float16, torch.float16))
    rows = torch.zeros(2, 3, 16, dtype=I32).npu()
    with pytest.raises(
        RuntimeError, match=r"(?s)161002.*sparseIndices \(2, 3, 16\), dy \(2, 3, 16\): expected 2048 for each"
    ):
        npu.npu_lightning_indexer_grad(q, k, rows.half(), rows, w)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("weights", [torch.float16, torch.float32])
def test_statistics_of_the_softmax(layout: str, weights: torch.dtype) -> None:
    ends = ([2, 5], [10, 30]) if layout == "TND" else None
    args = indexer(layout, 8, 10, torch.float16, weights)
    top, total = (torch.zeros((1, 5) if ends else (2, 1, 3)) for _ in range(2))
    for a, b in parts(layout, ends):
        scores = index_scores(*(x.float() for x in (args[0][a], args[1][b], args[2][a])))
        scores = scores.masked_fill(~seen(*scores.shape), -torch.inf)
        at: Any = (0, a) if ends else (a, 0)
        top[at] = scores.max(-1).values
        total[at] = torch.exp(scores - scores.max(-1, keepdim=True).values).sum(-1)
    lengths = {"actual_seq_qlen": ends[0], "actual_seq_klen": ends[1]} if ends else {}
    check(
        lambda q, k, w: torch_npu.npu_dense_lightning_indexer_softmax_lse(q, k, w, layout=layout, **lengths),
        args,
        [top, total],
        EVERY,
    )


def attention(layout: str, heads: tuple[int, int], width: int, keys: int, dtype: torch.dtype) -> list[T]:
    """Queries and keys, and what is rotated of them."""
    rows = ((5,), (2 * keys + 10,)) if layout == "TND" else ((2, 3), (2, keys))
    shapes = [(*r, n, d) for d in (width, 64) for r, n in zip(rows, heads, strict=True)]
    return [(torch.randn(shape) / 3).to(dtype) for shape in shapes]


def kl(target: T, sums: T) -> T:
    """KL divergence of a row's sums from a target, over what is not -inf."""
    there = sums > -torch.inf
    return (target[there] * (target[there].log() - sums.masked_select(there).log_softmax(-1))).sum()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("dtype", "weights"), [(torch.float16, torch.float32), (torch.bfloat16, torch.bfloat16)])
@pytest.mark.parametrize("rotated", [True, False])
def test_training_on_all_keys(layout: str, dtype: torch.dtype, weights: torch.dtype, rotated: bool) -> None:
    ends = ([2, 5], [10, 30]) if layout == "TND" else None
    index, main = indexer(layout, 8, 10, dtype, weights), attention(layout, (32, 32), 128, 10, dtype)
    leaves = [x.float().requires_grad_() for x in index]
    shape = (32, 5, 1) if ends else (2, 32, 3, 1)
    statistics = [torch.zeros(s) for s in (shape, shape, shape[:-1], shape[:-1])]
    statistics[2:] = [torch.zeros((1, 5) if ends else (2, 1, 3)) for _ in range(2)]
    loss = torch.zeros(1)
    for a, b in parts(layout, ends):
        q, k = (
            torch.cat([x, y][: 1 + rotated], -1).float()
            for x, y in ((main[0][a], main[2][a]), (main[1][b], main[3][b]))
        )
        hidden = ~seen(q.size(0), k.size(0))
        scores = torch.stack([q[:, n] @ k[:, n].t() * 0.1 for n in range(32)]).masked_fill(hidden, -torch.inf)
        sums = index_scores(leaves[0][a], leaves[1][b], leaves[2][a]).masked_fill(hidden, -torch.inf)
        at: Any = (slice(None), a) if ends else a
        for place, rows in ((0, scores), (2, sums.detach().unsqueeze(0))):
            largest = rows.max(-1, keepdim=True).values
            below = torch.exp(rows - largest).sum(-1, keepdim=True)
            statistics[place][at], statistics[place + 1][at] = (
                (largest, below) if place == 0 else (largest[..., 0], below[..., 0])
            )
        target = scores.softmax(-1).mean(0)
        loss = loss + sum(kl(p, s) for p, s in zip(target, sums, strict=True))
    grads = torch.autograd.grad(loss.sum(), leaves)
    expected = [*(g.to(x.dtype) for g, x in zip(grads, index, strict=True)), loss.detach()]

    def call(q: T, k: T, q_rope: T, k_rope: T, *others: T) -> Any:
        ropes = {"query_rope": q_rope, "key_rope": k_rope} if rotated else {}
        lengths = {"actual_seq_qlen": ends[0], "actual_seq_klen": ends[1]} if ends else {}
        return torch_npu.npu_dense_lightning_indexer_grad_kl_loss(q, k, *others, 0.1, layout=layout, **ropes, **lengths)

    check(call, [*main, *index, *statistics], expected, EVERY if rotated and ends else "eager captured")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_training_on_chosen_keys(layout: str) -> None:
    ends = ([2, 5], [1030, 2060]) if layout == "TND" else None
    index, main = (
        indexer(layout, 8, 1025, torch.float16, torch.float16),
        attention(layout, (32, 1), 512, 1025, torch.float16),
    )
    rows = torch.stack([torch.randperm(1020)[: 1024 - 10] for _ in range(5 if ends else 6)])
    rows = F.pad(rows, (0, 10), value=-1).view(*index[0].shape[:-2], 1, 1024).to(I32)
    leaves = [x.float().requires_grad_() for x in index]
    top, total = (torch.zeros((1, 5, 32) if ends else (2, 1, 3, 32)) for _ in range(2))
    loss = torch.zeros(1)
    for a, b in parts(layout, ends):
        q, k = (torch.cat(x, -1).float() for x in ((main[0][a], main[2][a]), (main[1][b], main[3][b])))
        sums = index_scores(leaves[0][a], leaves[1][b], leaves[2][a])
        for t in range(q.size(0)):
            there = [int(r) for r in rows[a][t, 0] if r >= 0]
            scores = q[t] @ k[there, 0].t() * 0.05
            at: Any = (0, a.start + t) if ends else (a, 0, t)
            top[at] = scores.max(-1).values
            total[at] = torch.exp(scores - scores.max(-1, keepdim=True).values).sum(-1)
            loss = loss + kl(scores.softmax(-1).mean(0), sums[t, there])
    expected = [*(g.half() for g in torch.autograd.grad(loss.sum(), leaves)), loss.detach()]

    def call(q: T, k: T, q_rope: T, k_rope: T, *others: T) -> Any:
        lengths = {"actual_seq_qlen": ends[0], "actual_seq_klen": ends[1]} if ends else {}
        return torch_npu.npu_sparse_lightning_indexer_grad_kl_loss(
            q, k, *others, 0.05, query_rope=q_rope, key_rope=k_rope, layout=layout, **lengths
        )

    check(call, [*main, *index, rows, top, total], expected, EVERY if ends else "eager captured")


def test_what_training_has_no_room_for_is_refused() -> None:
    index, main = (
        indexer("BSND", 8, 2, torch.float16, torch.float16),
        attention("BSND", (32, 32), 128, 2, torch.float16),
    )
    statistics = [torch.ones(s) for s in ((2, 32, 3, 1), (2, 32, 3, 1), (2, 1, 3), (2, 1, 3))]
    call = torch_npu.npu_dense_lightning_indexer_grad_kl_loss
    with pytest.raises(RuntimeError, match=r"a sequence of 3 queries and 2 keys: there are at least as many keys"):
        run("eager", lambda *args: call(*args, 0.1)[0].cpu(), [*main[:2], *index, *statistics])
    with pytest.raises(
        RuntimeError, match=r"(?s)161002.*softmax_max has the shape \[2, 32, 3\]; expected \[2, 32, 3, 1\]"
    ):
        run("eager", lambda *args: call(*args, 0.1), [*main[:2], *index, statistics[0][..., 0], *statistics[1:]])
    with pytest.raises(RuntimeError, match=r"(?s)161002.*sparseMode 0 is not supported; expected 3"):
        run("eager", lambda *args: call(*args, 0.1, sparse_mode=0), [*main[:2], *index, *statistics])
