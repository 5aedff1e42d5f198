"""Calls of mindiesd's operators for Atlas A2."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch

from trials._wheel_calls import OperatorCall, Tensor, TriedOperator


def _mul_add() -> Iterable[OperatorCall]:
    for dtype in (torch.float16, torch.bfloat16):
        for batch, rows, width in ((2, 16, 512), (1, 33, 96)):
            a, b = (torch.randn(batch, rows, width).to(dtype) for _ in range(2))
            c = torch.randn(batch, 1, width).to(dtype)
            yield OperatorCall([a, b, c], [(a.float() + b.float() * c.float()).to(dtype)])


def _laser_preprocess() -> Iterable[OperatorCall]:
    for dtype in (torch.float16, torch.bfloat16):
        given = [torch.randn(1, 300, 2, 128).to(dtype) for _ in range(3)]
        expected = []
        for one in given:
            padded = torch.zeros(1, 2, 512, 128, dtype=torch.float16)
            padded[:, :, :300] = one.transpose(1, 2).half()
            expected.append(padded)
        yield OperatorCall(given, expected, {"align_len": 256})


def _sparse_estimate() -> Iterable[OperatorCall]:
    """Yield a call that keeps all of the four by four blocks; rows of the mask have room for 32."""
    query, key = (torch.randn(1, 2, 512, 128).half() for _ in range(2))
    mask = torch.zeros(1, 2, 4, 32, dtype=torch.int8)
    mask[..., :4] = 1
    attrs = {"lengths": [512], "lengths_kv": [512], "layout": "BNSD", "stride": 8, "size": 128, "heads": 2, "kv_heads": 2,
             "scale": 128**-0.5 / 8, "threshold": 1.0, "causal": False, "sink": True, "recent": True, "row_sparse": 1.0}  # fmt: skip
    counts = torch.full((1, 2, 4), 4, dtype=torch.int32)
    outputs = [torch.zeros_like(mask), torch.zeros_like(counts)]
    yield OperatorCall([query, key], [mask, counts], attrs, outputs)


def _attention(query: Tensor, key: Tensor, value: Tensor, hidden: Tensor | None = None) -> Tensor:
    """Return attention in float64, of keys that are not hidden."""
    scores = query.double() @ key.double().mT * query.shape[-1] ** -0.5
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    return scores.softmax(-1) @ value.double()


def _laser_attention() -> Iterable[OperatorCall]:
    for dtype in (torch.float16,):
        for heads, rows, columns in ((2, 256, 256), (1, 512, 1024)):
            query, key, value = (torch.randn(1, heads, n, 128).to(dtype) for n in (rows, columns, columns))
            attrs = {"scale": 128**-0.5, "heads": heads, "layout": "BNSD", "keep": 1.0, "pre": 2147483647, "next": 1,
                     "high": True}  # fmt: skip
            outputs = [torch.zeros(1, heads, rows), torch.zeros(1, heads, rows, 128)]
            expected = _attention(query, key, value).float()
            yield OperatorCall([query, key, value, None, None, None], [None, expected], attrs, outputs, 2e-3)


def _block_sparse_attention() -> Iterable[OperatorCall]:
    """Yield calls without a mask of blocks, and with one that hides a block of 128 by 128."""
    query, key, value = (torch.randn(1, 2, 256, 128).half() for _ in range(3))
    mask = torch.zeros(1, 2, 2, 32, dtype=torch.int8)
    mask[..., :2] = 1
    mask[0, 1, 0, 1] = 0
    counts = mask.sum(-1, dtype=torch.int32)
    hidden = torch.repeat_interleave(torch.repeat_interleave(mask[..., :2] == 0, 128, 2), 128, 3)
    attrs = {"heads": 2, "scale": 128**-0.5, "pre": 2147483647, "next": 2147483647, "layout": "BNSD", "kv_heads": 2,
             "sparse": 0, "precise": 1, "size": 128, "causal": False}  # fmt: skip
    lengths = [[256], [256]]
    expected = _attention(query, key, value, hidden).half()
    given = [query, key, value, None, None, *lengths, *[None] * 5, mask, counts]
    yield OperatorCall(given, [expected], attrs, [torch.zeros_like(expected)], 2e-3)


def _rotated(x: Tensor, sine: Tensor, cosine: Tensor) -> Tensor:
    turned = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return x * cosine + turned * sine


def _norm_rope_concat() -> Iterable[OperatorCall]:
    """Yield calls with layer norms, of the encoder's rows, too, and rotary embeddings of pairs."""
    for dtype in (torch.float32, torch.float16):
        own = [torch.randn(1, 32, 2, 128).to(dtype) for _ in range(3)]
        encoder = [torch.randn(1, 16, 2, 128).to(dtype) for _ in range(3)]
        sine, cosine = torch.randn(48, 128).to(dtype), torch.randn(48, 128).to(dtype)
        expected = []
        for number, pair in enumerate(zip(own, encoder, strict=True)):
            rows = torch.cat(pair, 1).transpose(1, 2).float()
            if number < 2:
                normed = torch.nn.functional.layer_norm(rows, (128,), eps=1e-5)
                rows = _rotated(normed, sine.float(), cosine.float())
            expected.append(rows.to(dtype))
        attrs = {"norm_type": 1, "norm_added_type": 1, "rope_type": 1, "concat_order": 0, "eps": 1e-5}
        tolerance = 1e-5 if dtype == torch.float32 else 2e-3
        yield OperatorCall([*own, *encoder, *[None] * 8, sine, cosine], [*expected, *[None] * 8], attrs, (), tolerance)


#: Statistics are for training alone; the package's InferDataType leaves their dtype out.
_NORM_ROPE = (
    "query[b, s, n, d], key[b, t, n, d], encoder_query[b, e, n, d], encoder_key[b, f, n, d] -> "
    "query_output[b, n, s + e, d]: query, key_output[b, n, t + f, d]: key, value_output[b, n, t + f, d]: key, "
    + ", ".join(
        f"norm_{name}_{kind}[]: float32"
        for name in ("query", "key", "added_query", "added_key")
        for kind in ("mean", "rstd")
    )
)

#: Operators by op type.
OPERATORS: Mapping[str, TriedOperator] = {
    "MulAdd": TriedOperator(_mul_add),
    "LaPreprocess": TriedOperator(_laser_preprocess),
    "LaserAttention": TriedOperator(_laser_attention, writes=True),
    "AdaBlockSparseAttention": TriedOperator(_block_sparse_attention, writes=True),
    "NormRopeConcat": TriedOperator(_norm_rope_concat, _NORM_ROPE),
    "SparseBlockEstimate": TriedOperator(_sparse_estimate, writes=True),
}
