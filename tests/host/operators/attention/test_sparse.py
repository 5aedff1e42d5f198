"""Operators of long contexts: which keys an attention reads (npu_lightning_indexer), that attention
(npu_sparse_flash_attention), and linear attention of whole sequences
(npu_chunk_gated_delta_rule), by the formulas of their pages (docs/zh/custom_APIs/torch_npu of
https://gitee.com/ascend/op-plugin)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_npu
from float_codes import E4M3, HIF8, drawn
from operator_modes import ASCEND_950, check

T = torch.Tensor
I32 = torch.int32


def best(q: T, k: T, w: T, count: int, mode: int) -> list[list[int]]:
    """For each query the numbers of its best keys, a pair of query and key at a time; as sets, for equal scores have
    no order."""
    found = []
    for n in range(q.size(0)):
        last = k.size(0) - q.size(0) + n if mode == 3 else k.size(0) - 1
        scores = [float((F.relu(q[n].float() @ k[m].float()) * w[n].float()).sum()) for m in range(last + 1)]
        found.append(sorted(sorted(range(last + 1), key=lambda m: -scores[m])[:count]))
    return [row + [-1] * (count - len(row)) for row in found]


def in_order(indices: T) -> T:
    """Each row in order, what is not there behind."""
    ordered = torch.where(indices < 0, 1 << 20, indices).float().sort(-1).values
    return torch.where(ordered == 1 << 20, -1, ordered).to(I32)


@pytest.mark.parametrize("mode", [0, 3])
@pytest.mark.parametrize("layout", ["BSND", "PA_BSND"])
def test_lightning_indexer(mode: int, layout: str) -> None:
    q, w, lengths = torch.randn(2, 3, 8, 128).half(), torch.rand(2, 3, 8).half(), [17, 40]
    keys = torch.randn(2, 48, 1, 128).half()
    expected = [best(q[b], keys[b, : lengths[b], 0], w[b], 16, mode) for b in range(2)]
    table = torch.tensor([[3, 5, 1], [0, 2, 4]], dtype=I32)
    pages = torch.empty(6, 16, 1, 128).half()
    for b in range(2):
        pages[table[b].long()] = keys[b].unflatten(0, (3, 16))

    def run(q: T, k: T, w: T, n: T, *t: T) -> T:
        options = {"block_table": t[0]} if t else {}
        return torch_npu.npu_lightning_indexer(
            q, k, w, actual_seq_lengths_key=n, layout_key=layout, sparse_count=16, sparse_mode=mode, **options
        )[0]

    args = [q, keys if layout == "BSND" else pages, w, torch.tensor(lengths, dtype=I32)]
    args += [table] if layout == "PA_BSND" else []
    check(
        lambda *a: in_order(run(*a)),
        args,
        torch.tensor(expected, dtype=I32).unsqueeze(2),
        "eager captured ge npugraph_ex" if layout == "PA_BSND" and mode == 3 else "eager captured",
    )


def test_tokens_in_a_row() -> None:
    q, k, w = torch.randn(5, 4, 128).half(), torch.randn(9, 1, 128).half(), torch.rand(5, 4).half()
    expected = [*best(q[:2], k[:4, 0], w[:2], 3, 3), *best(q[2:], k[4:, 0], w[2:], 3, 3)]
    check(
        lambda q, k, w, m, n: in_order(
            torch_npu.npu_lightning_indexer(
                q,
                k,
                w,
                actual_seq_lengths_query=m,
                actual_seq_lengths_key=n,
                layout_query="TND",
                layout_key="TND",
                sparse_count=3,
            )[0]
        ),
        [q, k, w, torch.tensor([2, 5], dtype=I32), torch.tensor([4, 9], dtype=I32)],
        torch.tensor(expected, dtype=I32).unsqueeze(1),
        "eager captured",
    )


def test_a_page_out_of_range_is_refused() -> None:
    q, k, w = (
        torch.randn(1, 1, 4, 128).half().npu(),
        torch.randn(2, 16, 1, 128).half().npu(),
        torch.rand(1, 1, 4).half().npu(),
    )
    with pytest.raises(RuntimeError, match=r"block_table \[0, 2\] for 20 tokens: there are 2 blocks of 16"):
        torch_npu.npu_lightning_indexer(
            q,
            k,
            w,
            actual_seq_lengths_key=torch.tensor([20], dtype=I32).npu(),
            block_table=torch.tensor([[0, 2]], dtype=I32).npu(),
            layout_key="PA_BSND",
            sparse_count=4,
        )


def attended(q: T, k: T, v: T, rows: T, scale: float, size: int, mode: int, sinks: T | None) -> T:
    """Each query's softmax over the tokens of its blocks, and over a sink that has no value, a head at a time."""
    out = torch.zeros(q.size(0), q.size(1), v.size(1))
    for n in range(q.size(0)):
        last = k.size(0) - q.size(0) + n if mode == 3 else k.size(0) - 1
        tokens = [b * size + t for b in rows[n].tolist() if b >= 0 for t in range(size) if b * size + t <= last]
        for head in range(q.size(1)):
            scores = k[tokens].float() @ q[n, head].float() * scale
            below = torch.exp(scores).sum() + (0 if sinks is None else torch.exp(sinks[head]))
            out[n, head] = (torch.exp(scores) / below) @ v[tokens].float()
    return out.to(q.dtype)


@pytest.mark.parametrize(("layout", "size", "mode"), [("BSND", 1, 3), ("PA_BSND", 1, 3), ("PA_BSND", 4, 0)])
@pytest.mark.parametrize("with_sinks", [False, True])
def test_sparse_flash_attention(layout: str, size: int, mode: int, with_sinks: bool) -> None:
    q, q_rope, lengths = torch.randn(2, 3, 4, 512).half() / 4, torch.randn(2, 3, 4, 64).half(), [17, 40]
    k, k_rope = torch.randn(2, 48, 1, 512).half(), torch.randn(2, 48, 1, 64).half()
    chosen = torch.stack([torch.stack([torch.randperm(16 // size)[:4] for _ in range(3)]) for _ in range(2)]).to(I32)
    chosen[0, 0, 3] = -1
    sinks = torch.randn(4) if with_sinks else None
    expected = torch.stack(
        [
            attended(
                torch.cat([q[b], q_rope[b]], -1),
                torch.cat([k[b], k_rope[b]], -1)[: lengths[b], 0],
                k[b, : lengths[b], 0],
                chosen[b],
                0.05,
                size,
                mode,
                sinks,
            )
            for b in range(2)
        ]
    )
    table = torch.tensor([[3, 5, 1], [0, 2, 4]], dtype=I32)
    stored = [k, k_rope]
    if layout == "PA_BSND":
        stored = [torch.empty(6, 16, *x.shape[2:]).half() for x in stored]
        for pages, x in zip(stored, (k, k_rope), strict=True):
            for b in range(2):
                pages[table[b].long()] = x[b].unflatten(0, (3, 16))

    def run(q: T, q_rope: T, k: T, k_rope: T, rows: T, n: T, t: T, *sinks: T) -> T:
        return torch_npu.npu_sparse_flash_attention(
            q,
            k,
            k,
            rows,
            0.05,
            block_table=t if layout == "PA_BSND" else None,
            actual_seq_lengths_kv=n,
            query_rope=q_rope,
            key_rope=k_rope,
            sparse_block_size=size,
            layout_kv=layout,
            sparse_mode=mode,
            attention_mode=2,
            sinks=sinks[0] if sinks else None,
        )[0]

    args = [q, q_rope, *stored, chosen.unsqueeze(2), torch.tensor(lengths, dtype=I32), table]
    args += [] if sinks is None else [sinks]
    modes = (
        "eager captured ge npugraph_ex" if layout == "PA_BSND" and size == 1 and not with_sinks else "eager captured"
    )
    check(run, args, expected, modes)


def test_gradients_of_sparse_flash_attention() -> None:
    """https://gitcode.com/cann/ops-transformer, attention/sparse_flash_attention_grad; the softmax's statistics are
    the forward's."""
    half = torch.float16
    for layout, ends in (("BSND", None), ("TND", ([2, 5], [1030, 2060]))):
        rows = ((5,), (2060,)) if ends else ((2, 3), (2, 1030))
        sizes = ((0, 4, 512), (1, 1, 512), (0, 4, 64), (1, 1, 64))
        q, k, q_rope, k_rope = ((torch.randn(*rows[i], n, d) / 4).to(half) for i, n, d in sizes)
        chosen = (
            torch.stack([torch.randperm(1030)[:1024] for _ in range(5 if ends else 6)]).view(*rows[0], 1, 1024).to(I32)
        )
        grad = torch.randn(q.shape).to(half)
        leaves = [x.float().requires_grad_() for x in (q, k, q_rope, k_rope)]
        value = k.float().requires_grad_()
        parts = (
            [(b, b) for b in range(2)]
            if ends is None
            else [(slice(0, 2), slice(0, 1030)), (slice(2, 5), slice(1030, 2060))]
        )
        total = torch.zeros(())
        for a, b in parts:
            queries, keys = (torch.cat(x, -1) for x in ((leaves[0][a], leaves[2][a]), (leaves[1][b], leaves[3][b])))
            for t in range(len(queries)):
                there = [c for c in chosen[a][t, 0].tolist() if c <= 1030 - len(queries) + t]
                p = (queries[t] @ keys[there, 0].t() * 0.05).softmax(-1)
                total = total + (p @ value[b][there, 0] * grad[a][t].float()).sum()
        wanted = [g.to(half) for g in torch.autograd.grad(total, [*leaves, value])]

        def call(q: T, k: T, q_rope: T, k_rope: T, chosen: T, grad: T, *ends: T, layout: str = layout) -> list[T]:
            lengths = dict(zip(("actual_seq_lengths_query", "actual_seq_lengths_kv"), ends, strict=False))
            leaves = [x.detach().requires_grad_() for x in (q, k, q_rope, k_rope, k)]
            out = torch_npu.npu_sparse_flash_attention(
                leaves[0],
                leaves[1],
                leaves[4],
                chosen,
                0.05,
                query_rope=leaves[2],
                key_rope=leaves[3],
                layout_query=layout,
                layout_kv=layout,
                attention_mode=2,
                return_softmax_lse=True,
                **lengths,
            )[0]
            return list(torch.autograd.grad(out, leaves, grad))

        def forward(q: T, k: T, v: T, q_rope: T, k_rope: T, chosen: T, *ends: T, layout: str = layout) -> Any:
            return torch_npu.npu_sparse_flash_attention(
                q,
                k,
                v,
                chosen,
                0.05,
                query_rope=q_rope,
                key_rope=k_rope,
                layout_query=layout,
                layout_kv=layout,
                attention_mode=2,
                return_softmax_lse=True,
                actual_seq_lengths_query=ends[0] if ends else None,
                actual_seq_lengths_kv=ends[1] if ends else None,
            )

        def backward(q: T, k: T, q_rope: T, k_rope: T, chosen: T, grad: T, *kept: T, layout: str = layout) -> list[T]:
            dq, dk, dv, dq_rope, dk_rope = torch.ops.npu.npu_sparse_flash_attention_grad(
                q,
                k,
                k,
                chosen,
                grad,
                *kept[:3],
                0.05,
                1,
                q_rope,
                k_rope,
                kept[3] if len(kept) > 3 else None,
                kept[4] if len(kept) > 3 else None,
                layout,
                attention_mode=2,
            )
            return [dq, dk, dq_rope, dk_rope, dv]

        given = [torch.tensor(x, dtype=I32) for x in ends] if ends else []
        check(call, [q, k, q_rope, k_rope, chosen, grad, *given], wanted, "eager")
        kept = [x.cpu() for x in forward(*(x.npu() for x in (q, k, k, q_rope, k_rope, chosen, *given)))]
        modes = "captured" if ends is None else "eager captured ge npugraph_ex"
        check(backward, [q, k, q_rope, k_rope, chosen, grad, *kept, *given], wanted, modes)


def test_gradients_without_statistics_are_refused() -> None:
    q, k = (torch.randn(1, 1, n, 512).half().npu().requires_grad_() for n in (2, 1))
    ropes = [torch.randn(1, 1, n, 64).half().npu() for n in (2, 1)]
    out = torch_npu.npu_sparse_flash_attention(
        q,
        k,
        k,
        torch.zeros(1, 1, 1, 1024, dtype=I32).npu(),
        0.05,
        query_rope=ropes[0],
        key_rope=ropes[1],
        attention_mode=2,
    )[0]
    with pytest.raises(RuntimeError, match="as the attention gives them with return_softmax_lse"):
        out.sum().backward()


def rows_of_bytes(dtype: torch.dtype, numbers: T, scales: T, rope: T) -> T:
    """Numbers of 8 bits, what is rotated, and scales, side by side."""
    parts = [numbers.view(torch.uint8), rope.to(dtype).view(torch.uint8), scales.view(torch.uint8)]
    return torch.cat(parts, -1).view(numbers.dtype)


@pytest.mark.parametrize(("layout", "size"), [("BSND", 1), ("PA_BSND", 1), ("PA_BSND", 4)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_attention_to_quantized_keys(layout: str, size: int, dtype: torch.dtype) -> None:
    attend_to_quantized(torch.randint(-127, 128, (2, 48, 1, 512)).to(torch.int8), None, layout, size, dtype)


@ASCEND_950
@pytest.mark.parametrize("kind", [E4M3, HIF8])
def test_attention_to_keys_of_floats(kind: Any) -> None:
    codes, numbers = drawn(kind, 2, 48, 1, 512)
    attend_to_quantized(codes, torch.from_numpy(numbers), "PA_BSND", 1, torch.bfloat16, kind)


def attend_to_quantized(
    codes: T, numbers: T | None, layout: str, size: int, dtype: torch.dtype, kind: Any = None
) -> None:
    lengths = [17, 40]
    q, rope, scales = (
        torch.randn(2, 3, 4, 576).to(dtype),
        torch.randn(2, 48, 1, 64).to(dtype),
        torch.rand(2, 48, 1, 4) / 64,
    )
    wide = (codes if numbers is None else numbers).double() * scales.double().repeat_interleave(128, -1)
    k = torch.cat([wide, rope.double()], -1).float()
    chosen = torch.stack([torch.stack([torch.randperm(16 // size)[:4] for _ in range(3)]) for _ in range(2)]).to(I32)
    expected = torch.stack(
        [
            attended(q[b], k[b, : lengths[b], 0], wide[b, : lengths[b], 0].float(), chosen[b], 0.05, size, 3, None)
            for b in range(2)
        ]
    )
    stored, table = rows_of_bytes(dtype, codes, scales, rope), torch.tensor([[3, 5, 1], [0, 2, 4]], dtype=I32)
    if layout == "PA_BSND":
        pages = torch.zeros(6, 16, 1, 656, dtype=torch.uint8)
        for b in range(2):
            pages[table[b].long()] = stored.view(torch.uint8)[b].unflatten(0, (3, 16))
        stored = pages.view(stored.dtype)
    given = {"key_dtype": kind, "value_dtype": kind} if kind == HIF8 else {}

    def call(q: T, k: T, v: T, rows: T, n: T, t: T) -> T:
        return torch_npu.npu_kv_quant_sparse_flash_attention(
            q,
            k,
            v,
            rows,
            0.05,
            2,
            2,
            block_table=t if layout == "PA_BSND" else None,
            actual_seq_lengths_kv=n,
            sparse_block_size=size,
            layout_kv=layout,
            attention_mode=2,
            **given,
        )

    args = [q, stored, stored[..., :512].contiguous(), chosen.unsqueeze(2), torch.tensor(lengths, dtype=I32), table]
    modes = "eager captured ge npugraph_ex" if layout == "PA_BSND" and size == 1 and kind is None else "eager captured"
    check(call, args, expected.to(dtype), modes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key_quant_mode": 0}, r"valid are \(2, 2, 1, 128, 64\)"),
        ({"attention_mode": 0}, r"attention_mode 0 is not supported; expected 2"),
        ({"sparse_block_size": 32}, r"sparse_block_size 32: valid are 1 to 16"),
        ({"value": torch.ones(1, 16, 1, 512, dtype=torch.int8)}, r"value must be the first 512 elements of each key"),
    ],
)
def test_other_quantized_keys_are_refused(change: dict[str, Any], message: str) -> None:
    key = rows_of_bytes(
        torch.float16, torch.zeros(1, 16, 1, 512, dtype=torch.int8), torch.ones(1, 16, 1, 4), torch.ones(1, 16, 1, 64)
    )
    valid = {
        "query": torch.ones(1, 1, 2, 576).half(),
        "key": key,
        "value": key[..., :512].contiguous(),
        "scale_value": 1.0,
        "sparse_indices": torch.zeros(1, 1, 1, 4, dtype=I32),
        "key_quant_mode": 2,
        "value_quant_mode": 2,
        "attention_mode": 2,
    }
    given = {name: x.npu() if isinstance(x, T) else x for name, x in {**valid, **change}.items()}
    with pytest.raises(RuntimeError, match=message):
        torch_npu.npu_kv_quant_sparse_flash_attention(**given).cpu()


def delta_rule(q: T, k: T, v: T, beta: T, state: T, lengths: list[int], g: T, scale: float) -> tuple[T, T]:
    """S <- exp(g) S + beta (v - exp(g) S k) k^T and o = S q, a token and a head at a time."""
    y, final, start, repeats = torch.zeros_like(v), state.clone(), 0, v.size(1) // k.size(1)
    for sequence, length in enumerate(lengths):
        for head in range(v.size(1)):
            s = state[sequence, head].float()
            for n in range(start, start + length):
                key, query = k[n, head // repeats].float(), q[n, head // repeats].float()
                s = torch.exp(g[n, head]) * s
                s = s + torch.outer(beta[n, head].float() * (v[n, head].float() - s @ key), key)
                y[n, head] = (s @ query * scale).to(y.dtype)
            final[sequence, head] = s.to(final.dtype)
        start += length
    return y, final


def delta_args() -> list[T]:
    half = torch.bfloat16
    q, k = (F.normalize(torch.randn(7, 2, 16), dim=-1).to(half) for _ in range(2))
    state, lengths = torch.randn(3, 4, 8, 16).to(half), torch.tensor([4, 0, 3], dtype=I32)
    return [q, k, torch.randn(7, 4, 8).to(half), torch.rand(7, 4).to(half), state, lengths, -torch.rand(7, 4)]


def test_chunk_gated_delta_rule() -> None:
    q, k, v, beta, state, lengths, g = delta_args()
    check(
        lambda q, k, v, b, s, n, g: torch_npu.npu_chunk_gated_delta_rule(
            q, k, v, beta=b, initial_state=s, actual_seq_lengths=n, scale=0.25, g=g
        ),
        [q, k, v, beta, state, lengths, g],
        delta_rule(q, k, v, beta, state, lengths.tolist(), g, 0.25),
        "eager captured npugraph_ex",  # TorchAir refuses it in GE graphs
    )


@pytest.mark.skipif(
    not hasattr(torch_npu, "npu_chunk_gated_delta_rule"),
    reason=f"torch_npu {torch_npu.__version__} has no npu_chunk_gated_delta_rule",
)
def test_lengths_that_are_not_the_tokens_are_refused() -> None:
    q, k, v, beta, state, lengths, g = (x.npu() for x in delta_args())
    with pytest.raises(RuntimeError, match=r"actual_seq_lengths \[5, 1, 4\]: there are 7 tokens"):
        torch_npu.npu_chunk_gated_delta_rule(
            q, k, v, beta=beta, initial_state=state, actual_seq_lengths=lengths + 1, scale=1.0, g=g
        )
