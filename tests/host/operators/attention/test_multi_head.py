"""Attention of many heads with its projections, and gradients, against plain PyTorch in float32:
https://gitcode.com/Ascend/op-plugin,
docs/zh/custom_APIs/torch_npu (npu_multi_head_attention); https://gitcode.com/Ascend/pytorch,
test/custom_ops/test_npu_multi_head_attention.py."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_npu
from operator_modes import check

T = torch.Tensor

BATCH, HEADS, SIZE, SOURCE, TARGET = 2, 16, 16, 32, 16
WIDTH = HEADS * SIZE


def drawn() -> list[T]:
    rows = [torch.randn(BATCH * length, WIDTH) / 4 for length in (TARGET, SOURCE, SOURCE)]
    weights = [torch.randn(WIDTH, WIDTH) / 16 for _ in range(4)]
    mask = torch.where(torch.rand(BATCH, HEADS, TARGET, SOURCE) < 0.2, -100.0, 0)
    biases = [torch.randn(WIDTH) / 4 for _ in range(4)]
    return [x.half() for x in (*rows, *weights[:3], mask, weights[3], *biases)]


def reference(q: T, k: T, v: T, wq: T, wk: T, wv: T, mask: T, wo: T, *biases: T) -> T:
    def heads(x: T, w: T, b: T | None, length: int) -> T:
        y = x @ w.t() if b is None else x @ w.t() + b
        return y.reshape(BATCH, length, HEADS, SIZE).transpose(1, 2)

    bq, bk, bv, bo = biases or [None] * 4
    products = heads(q, wq, bq, TARGET) @ heads(k, wk, bk, SOURCE).transpose(-1, -2) * SIZE**-0.5
    found = torch.softmax(products + mask, -1) @ heads(v, wv, bv, SOURCE)
    y = found.transpose(1, 2).reshape(BATCH * TARGET, WIDTH) @ wo.t()
    return y if bo is None else y + bo


def attention(*tensors: T, precise: bool = True, dropout: float = 0.0) -> Any:
    biases = list(tensors[8:]) or [None] * 4
    sizes = [HEADS, SIZE, SOURCE, TARGET]
    return torch_npu.npu_multi_head_attention(*tensors[:8], *biases, None, *sizes, dropout, precise)


@pytest.mark.parametrize("precise", [True, False])
@pytest.mark.parametrize("biased", [True, False])
def test_attention_and_gradients(precise: bool, biased: bool) -> None:
    tensors = drawn() if biased else drawn()[:8]
    leaves = [t.float().requires_grad_() for t in tensors]
    y = reference(*leaves)
    close = {"rtol": 2e-2, "atol": 2e-2}
    on_device = [t.npu().requires_grad_(number != 6) for number, t in enumerate(tensors)]  # masks have no gradient
    found = attention(*on_device, precise=precise)
    torch.testing.assert_close(found[0].cpu().float(), y, **close)
    assert [t.dtype for t in found[5:7]] == [torch.float32 if precise else torch.float16, torch.float16]
    assert found[2].shape == (BATCH, HEADS, TARGET, SIZE)
    assert found[3].shape == (BATCH, HEADS, SOURCE, SIZE)
    if not biased:  # the wheel's gradient takes biases for there
        return
    given = torch.randn_like(y) / 16
    del leaves[6], on_device[6]
    expected = torch.autograd.grad(y, leaves, given)
    for got, wanted in zip(torch.autograd.grad(found[0], on_device, given.half().npu()), expected, strict=True):
        scale = wanted.abs().max().clamp(min=1)
        torch.testing.assert_close(got.cpu().float().reshape(wanted.shape) / scale, wanted / scale, **close)


def test_what_is_kept_is_what_the_document_names() -> None:
    tensors = drawn()
    y, _, q, k, v, scores, probs, context = attention(*(t.npu() for t in tensors))
    rows = probs.cpu().float() @ v.cpu().float()
    torch.testing.assert_close(scores.cpu().sum(-1), torch.ones(BATCH, HEADS, TARGET))
    torch.testing.assert_close(rows.transpose(1, 2).reshape(-1, WIDTH).half(), context.cpu(), rtol=2e-3, atol=2e-3)
    products = q.cpu().float() @ k.cpu().float().transpose(-1, -2) + tensors[6].float()
    torch.testing.assert_close(torch.softmax(products, -1), scores.cpu(), rtol=1e-2, atol=1e-3)
    check(lambda *t: attention(*t)[0], tensors, y.cpu(), "eager")


def test_what_is_refused() -> None:
    tensors = [t.npu() for t in drawn()]
    with pytest.raises(RuntimeError, match="dropout_prob 0 is supported"):
        attention(*tensors, dropout=0.5)
    biases = [tensors[8], None, tensors[10], tensors[11]]
    with pytest.raises(RuntimeError, match="four of \\[256\\] are expected"):
        attention(*tensors[:8], *biases)
