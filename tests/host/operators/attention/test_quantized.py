"""torch_npu.npu_quant_fusion_attention and its gradient: https://gitcode.com/cann/ops-transformer,
attention/flash_attention_score
(docs/aclnnQuantFlashAttentionScore.md) and experimental/attention/flash_attention_score_grad
(docs/aclnnQuantFlashAttentionScoreGrad.md), whose smaller scene this is, in double precision, of a few heads."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from float_codes import HIF8, hifloat8_of
from operator_modes import ASCEND_950, assert_equal, to_npu

pytestmark = ASCEND_950

T = torch.Tensor
npu = torch.ops.npu
QUERIES, KEYS, HEADS, SIZE = 7200, 512, 40, 128
SEEN = [0, 17]
SCALE = SIZE**-0.5
BFLOAT16 = (1.6e-2, 2e-3)


def drawn(tokens: int) -> T:
    """Codes of numbers that are not far apart."""
    usable = torch.tensor([c for c in range(256) if 2**-4 <= abs(hifloat8_of(c)) <= 2], dtype=torch.uint8)
    return usable[torch.randint(len(usable), (1, tokens, HEADS, SIZE))]


def factors(tokens: int, block: int) -> T:
    return torch.rand(1, HEADS, -(-tokens // block), 1) + 0.5


def numbers(codes: T, scale: T, block: int, head: int) -> T:
    """Of a head, a token's numbers times the factor of its block."""
    meaning = torch.tensor([hifloat8_of(c) for c in range(256)], dtype=torch.float64)
    of_tokens = torch.tensor([float(scale[0, head, t // block, 0]) for t in range(codes.size(1))], dtype=torch.float64)
    return meaning[codes[0, :, head].long()] * of_tokens[:, None]


def args(*blocks: int) -> tuple[list[T], list[T]]:
    lengths = (QUERIES, KEYS, KEYS)
    return [drawn(n) for n in lengths], [factors(n, b) for n, b in zip(lengths, blocks, strict=True)]


def test_attention() -> None:
    blocks = (128, 256, 512)
    tensors, scales = args(*blocks)
    names = ("d_scale_q", "d_scale_k", "d_scale_v")
    out, top, total, *_ = npu.npu_quant_fusion_attention(
        *to_npu(tensors),
        HEADS,
        "BSND",
        **dict(zip(names, to_npu(scales), strict=True)),
        p_scale=torch.full((1,), 32.0).npu(),
        scale=SCALE,
        query_dtype=HIF8,
    )
    assert (top.shape, total.shape, out.shape) == ((1, HEADS, QUERIES, 1),) * 2 + (tensors[0].shape,)
    for head in SEEN:
        q, k, v = (numbers(t, s, b, head) for t, s, b in zip(tensors, scales, blocks, strict=True))
        scores = q @ k.t() * SCALE
        wanted = [
            scores.amax(-1, keepdim=True),
            torch.exp(scores - scores.amax(-1, keepdim=True)).sum(-1, keepdim=True),
        ]
        assert_equal([top[0, head], total[0, head]], [w.float() for w in wanted], f"head {head}")
        assert_equal(out[0, :, head], (scores.softmax(-1) @ v).bfloat16(), f"head {head}")


def test_gradient() -> None:
    tensors, scales = args(512, 512, 512)
    dy, of_dy = drawn(QUERIES), factors(QUERIES, 512)
    out = torch.zeros(1, QUERIES, HEADS, SIZE, dtype=torch.bfloat16)
    top, total = torch.zeros(1, HEADS, QUERIES, 1), torch.ones(1, HEADS, QUERIES, 1)
    expected = {}
    for head in SEEN:
        q, k, v, g = (
            numbers(t, s, 512, head).requires_grad_() for t, s in zip([*tensors, dy], [*scales, of_dy], strict=True)
        )
        scores = q @ k.t() * SCALE
        y = scores.softmax(-1) @ v
        expected[head] = torch.autograd.grad(y, (q, k, v), g.detach())
        top[0, head] = scores.detach().amax(-1, keepdim=True).float()
        total[0, head] = torch.exp(scores.detach() - top[0, head]).sum(-1, keepdim=True).float()
        out[0, :, head] = y.detach().bfloat16()
    one = torch.ones(1).npu()
    results = npu.npu_quant_fusion_attention_backward(
        *to_npu([*tensors, dy]),
        HEADS,
        "BSND",
        *to_npu([*scales, of_dy]),
        p_scale=one,
        ds_scale=one,
        softmax_max=top.npu(),
        softmax_sum=total.npu(),
        attention_in=out.npu(),
        scale_value=SCALE,
        query_dtype=HIF8,
    )
    for head, wanted in expected.items():
        for result, gradient in zip(results[:3], wanted, strict=True):
            got = result.cpu()[0, :, head]
            assert got.dtype is torch.bfloat16
            # What is kept of the forward is of 8 bits, which errors of sums are measured by.
            torch.testing.assert_close(got.double(), gradient, rtol=2e-2, atol=1e-2 * float(gradient.abs().max()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_layout": "BNSD"}, "inputLayout 'BNSD'"),
        (
            {"query": torch.zeros(1, 7201, HEADS, SIZE, dtype=torch.uint8)},
            "expected the heads of query as headNum, and queries and keys",
        ),
        ({"d_scale_q": torch.ones(1, HEADS, 15, 1)}, "dScaleQ of shape"),
        ({"p_scale": torch.ones(2)}, "pScale has the shape"),
        ({"d_scale_k": torch.ones(1, HEADS, 2, 1).half()}, "dScaleK is FLOAT16"),
        ({"query_dtype": torch.uint8}, "HIFLOAT8"),
    ],
)
def test_what_is_refused(change: dict[str, Any], message: str) -> None:
    tensors = [torch.zeros(1, n, HEADS, SIZE, dtype=torch.uint8) for n in (QUERIES, KEYS, KEYS)]
    given: dict[str, Any] = dict(zip(("query", "key", "value"), tensors, strict=True))
    given |= {"d_scale_q": factors(QUERIES, 128), "d_scale_k": factors(KEYS, 256), "d_scale_v": factors(KEYS, 512)}
    given |= {"p_scale": torch.ones(1), "head_num": HEADS, "input_layout": "BSND", "query_dtype": HIF8} | change
    with pytest.raises(RuntimeError, match=message):
        npu.npu_quant_fusion_attention(**{name: v.npu() if isinstance(v, T) else v for name, v in given.items()})
