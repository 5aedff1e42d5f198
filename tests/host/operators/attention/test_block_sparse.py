"""Attention to blocks of keys by a mask, and its gradients, a head and a query at a time.

Documented: https://gitcode.com/cann/ops-transformer, attention/block_sparse_attention and block_sparse_attention_grad.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_npu
from operator_modes import check

T = torch.Tensor

#: Sequences' queries and keys, and the blocks' rows.
LENGTHS, ROWS = ((5, 150), (7, 300)), 3


def drawn(layout: str, width: int, dtype: torch.dtype) -> tuple[list[T], T]:
    """Queries, keys and values, and which blocks count: three of keys, some of them for each of queries."""
    mask = torch.rand(2, 2, 3, 3) < 0.5
    mask[..., 0] = True
    queries, keys = zip(*LENGTHS, strict=True)
    if layout == "TND":
        shapes = [(sum(n), 2, width) for n in (queries, keys, keys)]
    else:
        sizes = [(2, 2, max(n), width) for n in (queries, keys, keys)]
        shapes = sizes if layout == "BNSD" else [(b, s, n, d) for b, n, s, d in sizes]
    return [(torch.randn(shape) / 2).to(dtype) for shape in shapes], mask.to(torch.int8)


def sequence(x: T, layout: str, number: int, which: int) -> T:
    """[heads, tokens, …]."""
    if layout == "TND":
        start = sum(n[which] for n in LENGTHS[:number])
        return x[start : start + LENGTHS[number][which]].transpose(0, 1)
    part = x[number] if layout == "BNSD" else x[number].transpose(0, 1)
    return part[:, : LENGTHS[number][which]]


def attended(q: T, k: T, v: T, mask: T) -> tuple[T, T]:
    rows, sums = [], []
    for head in range(q.size(0)):
        for n in range(q.size(1)):
            there = [m for m in range(k.size(1)) if mask[head, n // ROWS, m // 128]]
            scores = k[head, there] @ q[head, n] * 0.1
            rows.append(scores.softmax(-1) @ v[head, there])
            sums.append(scores.logsumexp(-1))
    return torch.stack(rows).view(q.shape), torch.stack(sums).view(*q.shape[:2], 1)


@pytest.mark.parametrize("layout", ["TND", "BNSD", "BSND"])
@pytest.mark.parametrize(("dtype", "precision"), [(torch.float16, 1), (torch.bfloat16, 0)])
def test_blocks_that_a_mask_names(layout: str, dtype: torch.dtype, precision: int) -> None:
    tensors, mask = drawn(layout, 64, dtype)
    out, lse = torch.zeros_like(tensors[0]), torch.zeros(*tensors[0].shape[:-1], 1)
    for number in range(2):
        q, k, v = (sequence(x.float(), layout, number, min(i, 1)) for i, x in enumerate(tensors))
        found = attended(q, k, v, mask[number])
        for target, part in zip((out, lse), found, strict=True):
            sequence(target, layout, number, 0).copy_(part)

    def call(q: T, k: T, v: T, m: T) -> Any:
        return torch_npu.npu_block_sparse_attention(
            q,
            k,
            v,
            m,
            [ROWS, 128],
            q_input_layout=layout,
            kv_input_layout=layout,
            num_key_value_heads=2,
            scale_value=0.1,
            inner_precise=precision,
            actual_seq_lengths=[5, 7],
            actual_seq_lengths_kv=[150, 300],
            softmax_lse_flag=1,
        )

    check(call, [*tensors, mask], [out, lse], "eager captured ge npugraph_ex" if layout == "TND" else "eager captured")


@pytest.mark.parametrize("layout", ["TND", "BNSD"])
def test_gradients(layout: str) -> None:
    tensors, mask = drawn(layout, 128, torch.float16)
    grad = torch.randn(tensors[0].shape).half()
    leaves, total = [x.float().requires_grad_() for x in tensors], torch.zeros(())
    for number in range(2):
        q, k, v = (sequence(x, layout, number, min(i, 1)) for i, x in enumerate(leaves))
        total = total + (attended(q, k, v, mask[number])[0] * sequence(grad.float(), layout, number, 0)).sum()
    wanted = [g.half() for g in torch.autograd.grad(total, leaves)]

    def forward(*tensors: T) -> Any:
        return torch_npu.npu_block_sparse_attention(
            *tensors,
            [ROWS, 128],
            q_input_layout=layout,
            kv_input_layout=layout,
            num_key_value_heads=2,
            scale_value=0.1,
            actual_seq_lengths=[5, 7],
            actual_seq_lengths_kv=[150, 300],
            softmax_lse_flag=1,
        )

    def call(q: T, k: T, v: T, m: T, grad: T) -> Any:
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        return torch.autograd.grad(forward(*leaves, m)[0], leaves, grad)

    def backward(grad: T, q: T, k: T, v: T, out: T, lse: T, m: T) -> Any:
        return torch.ops.npu.npu_block_sparse_attention_backward(
            grad, q, k, v, out, lse, m, [ROWS, 128], [5, 7], [150, 300], layout, layout, 2, 0.1
        )

    check(call, [*tensors, mask, grad], wanted, "eager")
    kept = [x.cpu() for x in forward(*(x.npu() for x in (*tensors, mask)))]
    check(
        backward,
        [grad, *tensors, *kept, mask],
        wanted,
        "eager captured ge npugraph_ex" if layout == "TND" else "captured",
    )


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (
            {"block_shape": [3, 64]},
            161002,
            r"blockShape \[3, 64\]: expected two sizes above 0, the second a multiple of 128",
        ),
        ({"inner_precise": 4}, 161002, r"innerPrecise 4 \(of torch.float16 on this SoC \(0, 1\)\)"),
        ({"actual_seq_lengths": [5, 6]}, 161002, r"there are 12 queries and 450 keys"),
        ({"actual_seq_lengths_kv": None}, 161002, r"both or neither, and both with TND"),
        ({"num_key_value_heads": 1}, 161002, r"numKeyValueHeads 1 is not supported; expected 2"),
        ({"block_shape": [4, 128]}, 161002, r"blockSparseMask has the shape \[2, 2, 3, 3\]; expected \[2, 2, 2, 3\]"),
        (
            {"key": torch.zeros(450, 1, 64).half(), "value": torch.zeros(450, 1, 64).half()},
            161002,
            "expected as many on the host",
        ),
        (
            {"block_sparse_mask": torch.zeros(2, 2, 3, 3, dtype=torch.int8)},
            561000,
            "expected a block of keys for each",
        ),
    ],
)
def test_what_documents_leave_out_is_refused(change: dict[str, Any], code: int, message: str) -> None:
    (q, k, v), mask = drawn("TND", 64, torch.float16)
    valid = {
        "query": q,
        "key": k,
        "value": v,
        "block_sparse_mask": mask,
        "block_shape": [ROWS, 128],
        "num_key_value_heads": 2,
        "scale_value": 0.1,
        "actual_seq_lengths": [5, 7],
        "actual_seq_lengths_kv": [150, 300],
    }
    given = {name: x.npu() if isinstance(x, T) else x for name, x in {**valid, **change}.items()}
    with pytest.raises(RuntimeError, match=rf"(?s){code}.*{message}"):
        torch_npu.npu_block_sparse_attention(**given)[0].cpu()
