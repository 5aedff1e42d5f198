"""torch_npu.npu_fusion_attention and its gradients, against softmax(scale (q k + pse)) v of PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_npu
from attention_reference import EVERYTHING, allowed, to_layout
from npu_ways import check

T = torch.Tensor


def masked_out(queries: int, keys: int, mode: int, mask: T | None, before: int, after: int) -> T:
    return torch.tensor(
        [[not allowed(i, j, queries, keys, mode, mask, before, after) for j in range(keys)] for i in range(queries)]
    )


def attention(q: T, k: T, v: T, scale: float, out: T | None = None, bias: T | None = None) -> T:
    """[batch, heads, length, dimension]; ``out`` is true where nothing counts."""
    groups = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = (q @ k.transpose(-1, -2) + (0 if bias is None else bias)) * scale
    if out is not None:
        scores = scores.masked_fill(out, -torch.inf)
    return torch.nan_to_num(scores.softmax(-1)) @ v


def from_layout(x: T, layout: str, heads: int) -> T:
    match layout:
        case "BSH":
            return x.unflatten(2, (heads, -1)).transpose(1, 2)
        case "SBH":
            return x.unflatten(2, (heads, -1)).permute(1, 2, 0, 3)
        case "BSND":
            return x.transpose(1, 2)
    return x


def layout_of(x: T, layout: str) -> T:
    return x.permute(2, 0, 1, 3).flatten(2).contiguous() if layout == "SBH" else to_layout(x, layout)


@pytest.mark.parametrize("layout", ["BSH", "SBH", "BNSD", "BSND"])
@pytest.mark.parametrize("mode", [0, 1, 2, 3, 4])
def test_layouts_and_sparse_modes(layout: str, mode: int) -> None:
    heads, kv_heads, queries, keys = 4, 2, 4, 6
    q, k, v, grad = (
        torch.randn(2, n, s, 16) for n, s in ((heads, queries), (kv_heads, keys), (kv_heads, keys), (heads, queries))
    )
    before, after = (3, 1) if mode in (0, 4) else (EVERYTHING, EVERYTHING)
    mask = torch.rand(queries, keys) > 0.7 if mode < 2 else torch.ones(2048, 2048, dtype=torch.bool).triu(1)
    out = masked_out(queries, keys, mode, mask, before, after)

    def run(q: T, k: T, v: T, grad: T, mask: T) -> tuple[T, ...]:
        q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
        if q.device.type == "npu":
            y = torch_npu.npu_fusion_attention(
                q,
                k,
                v,
                heads,
                layout,
                atten_mask=mask,
                scale=0.25,
                sparse_mode=mode,
                pre_tockens=before,
                next_tockens=after,
            )[0]
        else:
            parts = (from_layout(x, layout, n) for x, n in ((q, heads), (k, kv_heads), (v, kv_heads)))
            y = layout_of(attention(*parts, 0.25, out), layout)
        return (y.detach(), *torch.autograd.grad(y, (q, k, v), grad))

    inputs = [*(layout_of(x, layout) for x in (q, k, v, grad)), mask]
    check(run, inputs, run(*inputs), "eager captured" if layout == "BNSD" else "eager")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_statistics_of_the_softmax(dtype: torch.dtype) -> None:
    q, k, v = (torch.randn(2, 4, s, 16).to(dtype) for s in (3, 5, 5))
    scores = q.float() @ k.float().transpose(-1, -2) * 0.25
    top = scores.max(-1, keepdim=True).values
    total = (scores - top).exp().sum(-1, keepdim=True)
    y = attention(q.float(), k.float(), v.float(), 0.25).to(dtype)
    check(
        lambda q, k, v: torch_npu.npu_fusion_attention(q, k, v, 4, "BNSD", scale=0.25)[:3],
        [q, k, v],
        (y, *(x.expand(-1, -1, -1, 8) for x in (top, total))),
        "eager captured ge npugraph_ex" if dtype is torch.float16 else "eager captured",
    )


@pytest.mark.parametrize("causal", [False, True])
def test_sequences_that_follow_each_other(causal: bool) -> None:
    lengths, kv_lengths = [3, 1, 4], [5, 2, 4]
    q, k, v, grad = (torch.randn(s, n, 16) for s, n in ((8, 4), (11, 2), (11, 2), (8, 4)))
    ends = torch.tensor(lengths).cumsum(0).tolist(), torch.tensor(kv_lengths).cumsum(0).tolist()
    mask = torch.ones(2048, 2048, dtype=torch.bool).triu(1)

    def run(q: T, k: T, v: T, grad: T, mask: T) -> tuple[T, ...]:
        q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
        if q.device.type == "npu":
            options: dict[str, Any] = {"atten_mask": mask, "sparse_mode": 3} if causal else {}
            y = torch_npu.npu_fusion_attention(
                q, k, v, 4, "TND", scale=0.25, actual_seq_qlen=ends[0], actual_seq_kvlen=ends[1], **options
            )[0]
        else:
            parts = []
            for a, b, c in zip(q.split(lengths), k.split(kv_lengths), v.split(kv_lengths), strict=True):
                out = masked_out(a.size(0), b.size(0), 3, mask, EVERYTHING, EVERYTHING) if causal else None
                parts.append(
                    attention(*(x.transpose(0, 1).unsqueeze(0) for x in (a, b, c)), 0.25, out)[0].transpose(0, 1)
                )
            y = torch.cat(parts)
        return (y.detach(), *torch.autograd.grad(y, (q, k, v), grad))

    check(run, [q, k, v, grad, mask], run(q, k, v, grad, mask), "eager captured")


@pytest.mark.parametrize("generation", [1, 2])
def test_a_bias_of_positions(generation: int) -> None:
    """The first generation scales the bias, too; the second (pse_type 1) does not."""
    q, k, v, bias = (
        torch.randn(2, 4, 3, 16),
        torch.randn(2, 4, 5, 16),
        torch.randn(2, 4, 5, 16),
        torch.randn(2, 4, 3, 5),
    )

    def run(q: T, k: T, v: T, bias: T) -> T:
        if q.device.type != "npu":
            return attention(q, k, v, 0.25, bias=bias if generation == 1 else bias / 0.25)
        function = torch_npu.npu_fusion_attention if generation == 1 else torch_npu.npu_fusion_attention_v2
        return function(q, k, v, 4, "BNSD", pse=bias, scale=0.25)[0]

    check(run, [q, k, v, bias], run(q, k, v, bias), "eager captured")


def test_a_sink_takes_a_share() -> None:
    q, k, v, grad, sink = (*(torch.randn(2, 4, 3, 16) for _ in range(4)), torch.randn(4))

    def run(q: T, k: T, v: T, grad: T, sink: T) -> tuple[T, ...]:
        q, k, v, sink = (x.detach().requires_grad_() for x in (q, k, v, sink))
        if q.device.type == "npu":
            y = torch_npu.npu_fusion_attention(q, k, v, 4, "BNSD", scale=0.25, sink=sink)[0]
        else:
            scores = torch.cat([q @ k.transpose(-1, -2) * 0.25, sink.reshape(1, 4, 1, 1).expand(2, 4, 3, 1)], -1)
            y = scores.softmax(-1)[..., :-1] @ v
        return (y.detach(), *torch.autograd.grad(y, (q, k, v, sink), grad))

    check(run, [q, k, v, grad, sink], run(q, k, v, grad, sink), "eager")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"sparse_mode": 3}, "sparse_mode 3 needs atten_mask"),
        ({"sparse_mode": 9}, "sparse_mode"),
        ({"atten_mask": torch.ones(2, 2, dtype=torch.bool)}, "atten_mask of shape .* is smaller"),
    ],
)
def test_what_is_documented_as_invalid_is_refused(options: dict[str, Any], text: str) -> None:
    q = torch.randn(2, 4, 3, 16).npu()
    given = {name: value.npu() if isinstance(value, T) else value for name, value in options.items()}
    with pytest.raises(RuntimeError, match=text):
        torch_npu.npu_fusion_attention(q, q, q, 4, "BNSD", **given)
