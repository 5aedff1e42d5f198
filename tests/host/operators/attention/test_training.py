"""torch_npu.npu_fusion_attention and its gradients, against softmax(scale (q k + pse)) v of PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_npu
from attention_reference import EVERYTHING, allowed, to_layout
from operator_modes import assert_equal, check

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
        ({"atten_mask": torch.ones(2, 2, dtype=torch.bool)}, "atten_mask has the shape .*; expected at least"),
    ],
)
def test_what_is_documented_as_invalid_is_refused(options: dict[str, Any], text: str) -> None:
    q = torch.randn(2, 4, 3, 16).npu()
    given = {name: value.npu() if isinstance(value, T) else value for name, value in options.items()}
    with pytest.raises(RuntimeError, match=text):
        torch_npu.npu_fusion_attention(q, q, q, 4, "BNSD", **given)


def drawn_mask(like: T, count: int, keep_prob: float, seed: int, offset: int) -> T:
    """What the operator draws, by the one that draws masks: a bit for each probability, the lowest first."""
    mask = torch.ops.npu._npu_dropout_gen_mask(like, [count], 1 - keep_prob, seed, offset).cpu()
    return (mask.unsqueeze(1) >> torch.arange(8) & 1).flatten()[:count].bool()


#: Layouts, and where the queries and keys of sequences that follow each other end.
DROPPED = {"BNSD": None, "BSH": None, "SBH": None, "BSND": None, "TND": ([5, 12], [7, 20])}


@pytest.mark.parametrize("layout", DROPPED)
@pytest.mark.parametrize("keep_prob", [0.9, 0.25])
def test_dropout_and_its_gradients(layout: str, keep_prob: float) -> None:
    """https://gitcode.com/Ascend/op-plugin, npu_fusion_attention: Dropout(Softmax(scores), keep_prob) V by a mask of
    seed and offset."""
    ends = DROPPED[layout]
    sequences = [(5, 7), (7, 13)] if ends else [(5, 7)] * 2
    parts = [[torch.randn(4 if n == 0 else 2, s[0 if n == 0 else 1], 16) for s in sequences] for n in range(3)]

    def joined(tensors: list[T]) -> T:
        return torch.cat([x.transpose(0, 1) for x in tensors]) if ends else layout_of(torch.stack(tensors), layout)

    lengths = {"actual_seq_qlen": ends[0], "actual_seq_kvlen": ends[1]} if ends else {}
    torch.manual_seed(7)
    torch.npu.manual_seed(7)
    leaves = [joined(x).npu().requires_grad_() for x in parts]
    options = {"scale": 0.3, "keep_prob": keep_prob, **lengths}
    out, *_, seed, offset, count = torch_npu.npu_fusion_attention(*leaves, 4, layout, **options)
    grad = torch.randn(out.shape)
    grads = torch.autograd.grad(out, leaves, grad.npu())
    assert count == 4 * sum(s * t for s, t in sequences)
    kept = drawn_mask(leaves[0].detach(), count, keep_prob, seed, offset).split([4 * s * t for s, t in sequences])
    wanted = [[x.clone().requires_grad_() for x in tensors] for tensors in parts]
    results = []
    for n, (s, t) in enumerate(sequences):
        q, k, v = wanted[0][n], *(x[n].repeat_interleave(2, 0) for x in wanted[1:])
        results.append(((q @ k.mT * 0.3).softmax(-1) * kept[n].view(4, s, t) / keep_prob) @ v)
    expected = joined(results)
    every = [x for tensors in wanted for x in tensors]
    by_part = iter(torch.autograd.grad(expected, every, grad))
    assert_equal(
        [out, *grads], [expected.detach(), *(joined([next(by_part) for _ in sequences]) for _ in range(3))], "eager"
    )


def test_dropout_is_repeated_by_its_seed_and_drops_as_many_as_it_says() -> None:
    q = torch.ones(1, 8, 64, 16).npu()
    v = torch.eye(64, 64).expand(1, 8, 64, 64).contiguous().npu()

    def draw() -> T:
        return torch_npu.npu_fusion_attention(
            q, torch.ones(1, 8, 64, 16).npu(), v[..., :16], 8, "BNSD", keep_prob=0.75
        )[0].cpu()

    torch.npu.manual_seed(3)
    first, second = draw(), draw()
    torch.npu.manual_seed(3)
    assert torch.equal(draw(), first)
    assert not torch.equal(first, second)
    # Each probability is 1/64, of which 3/4 are left, divided by 3/4: 64 * 8 * 16 = 8192 of them are seen.
    assert abs(float((first > 0).float().mean()) - 0.75) < 0.02
    assert torch.allclose(first[first > 0], torch.tensor(1 / 48))


def test_a_mask_of_the_caller_is_taken_as_it_is() -> None:
    q, k, v = (torch.randn(1, 2, 8, 16) for _ in range(3))
    mask = torch_npu._npu_dropout_gen_mask(q.npu(), [128], 0.5, 5, 0)
    kept = drawn_mask(q.npu(), 128, 0.5, 5, 0).view(1, 2, 8, 8)
    expected = ((q @ k.mT).softmax(-1) * kept * 2) @ v
    out = torch_npu.npu_fusion_attention(
        q.npu(), k.npu(), v.npu(), 2, "BNSD", keep_prob=0.5, dropout_mask=mask, seed=5, offset=0
    )[0]
    assert_equal([out], [expected], "eager")
    with pytest.raises(RuntimeError, match=r"(?s)161002.*a mask of 15 bytes is too short for 128 elements"):
        torch_npu.npu_fusion_attention(
            q.npu(), k.npu(), v.npu(), 2, "BNSD", keep_prob=0.5, dropout_mask=mask[:15].clone(), seed=5, offset=0
        )[0].cpu()
