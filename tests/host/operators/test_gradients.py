"""Operators that autograd calls behind others, called themselves, and those that only say how large results are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from operator_modes import check, listed
from test_plain import ALL, EAGER, of

T = torch.Tensor
npu = torch.ops.npu
CAPTURED = "eager captured"


def fast_gelu(x: T) -> T:
    return x / (1 + torch.exp(-1.702 * x.abs())) * torch.exp(0.851 * (x - x.abs()))


def swiglu(x: T) -> T:
    gate, other = x.chunk(2, -1)
    return F.silu(gate) * other


def rstd_of(x: T) -> T:
    return torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


def rms_norm(x: T, gamma: T) -> T:
    return x * rstd_of(x) * gamma


def rotary(x: T, cos: T, sin: T) -> T:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def rotary_of_pairs(x: T, cos: T, sin: T) -> T:
    return x * cos + torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2) * sin


def unpermuted(x: T, places: T, probs: T) -> T:
    """Each token's rows, weighted and summed: ``places`` says where they are."""
    return (x[places.long()].unflatten(0, probs.shape) * probs.unsqueeze(-1)).sum(1)


def gathered(x: T, places: T, count: int) -> T:
    """Of each token ``count`` rows, at their places."""
    return torch.zeros(places.numel(), x.size(1)).index_copy(0, places.long(), x.repeat_interleave(count, 0))


def places(count: int = 10) -> T:
    return torch.randperm(count).to(torch.int32)


def sizes(results: Any) -> T:
    """How large results are, and of what dtype, as numbers."""
    return torch.tensor([[*t.shape, *[-1] * (8 - t.dim()), t.element_size()] for t in listed(results)])


def of_sizes(name: str, **options: Any) -> Callable[..., T]:
    return lambda *args: sizes(getattr(npu, name)(*args, **options))


def expected_sizes(*shapes: tuple[tuple[int, ...], int]) -> Callable[..., T]:
    return lambda *args: torch.tensor([[*shape, *[-1] * (8 - len(shape)), size] for shape, size in shapes])


def halves(*shape: int) -> T:
    return torch.randn(shape).half()


#: By name: the operator, its arguments, the reference, and the modes in which the wheel can run it.
CASES: dict[str, tuple[Callable[..., Any], Callable[[], list[Any]], Callable[..., Any], str]] = {
    "npu_fast_gelu_backward": (
        npu.npu_fast_gelu_backward,
        lambda: [torch.randn(3, 4), torch.randn(3, 4)],
        of(fast_gelu, 0),
        ALL,
    ),
    **{
        f"npu_gelu_backward-{kind}": (
            lambda g, x, k=kind: npu.npu_gelu_backward(g, x, approximate=k),
            lambda: [torch.randn(3, 4), torch.randn(3, 4)],
            of(lambda x, k=kind: F.gelu(x, approximate=k), 0),
            ALL,
        )
        for kind in ("none", "tanh")
    },
    "npu_swiglu_backward": (
        npu.npu_swiglu_backward,
        lambda: [torch.randn(3, 4), torch.randn(3, 8)],
        of(swiglu, 0),
        ALL,
    ),
    "npu_rms_norm_backward": (
        lambda g, x, w: npu.npu_rms_norm_backward(g, x, w, torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)),
        lambda: [torch.randn(3, 16), torch.randn(3, 16), torch.randn(16)],
        of(rms_norm, 0, 1),
        ALL,
    ),
    **{
        f"npu_rotary_mul_backward-{kind}": (
            lambda g, x, c, s, k=kind: npu.npu_rotary_mul_backward(g, x, c, s, k)[
                0
            ],  # the tables' need them to require it
            lambda: [
                torch.randn(2, 3, 4, 64),
                torch.randn(2, 3, 4, 64),
                torch.randn(1, 3, 1, 64),
                torch.randn(1, 3, 1, 64),
            ],
            # The wheel's converter drops the mode before Ascend950.
            of(function, 0),
            ALL if kind == "half" else "eager captured npugraph_ex",
        )
        for kind, function in (("half", rotary), ("interleave", rotary_of_pairs))
    },
    # Rows of tokens, given to experts and taken back
    "npu_moe_token_permute_grad_v2": (
        lambda g, n: npu.npu_moe_token_permute_grad_v2(g, n, 5, torch.float32, 2),
        lambda: [torch.randn(10, 8), places()],
        lambda g, n: of(lambda x: gathered(x, n, 2), 0)(g, torch.zeros(5, 8)),
        ALL,
    ),
    "npu_moe_token_unpermute_grad_v2": (
        lambda g, n, p, x: npu.npu_moe_token_unpermute_grad_v2(g, n, 10, torch.float32, p, permuted_tokens=x),
        lambda: [torch.randn(5, 8), places(), torch.rand(5, 2), torch.randn(10, 8)],
        lambda g, n, p, x: of(lambda x, p: unpermuted(x, n, p), 0, 1)(g, x, p),
        ALL,
    ),
    "_npu_moe_token_unpermute": (
        lambda x, n, p: npu._npu_moe_token_unpermute(x, n, p)[0],
        lambda: [torch.randn(10, 8), places(), torch.rand(5, 2)],
        unpermuted,
        CAPTURED,
    ),
    # How large results are
    "_npu_fusion_attention_v3_infer_output": (
        lambda q, k, v: sizes(npu._npu_fusion_attention_v3_infer_output(q, k, v, 4, "BSND")),
        lambda: [halves(2, 3, 4, 16), halves(2, 6, 2, 16), halves(2, 6, 2, 16)],
        expected_sizes(((2, 3, 4, 16), 2), ((2, 4, 3, 8), 4), ((2, 4, 3, 8), 4)),
        EAGER,
    ),
    "_npu_fusion_attention_grad_v3_infer_output": (
        lambda q, k, v: sizes(npu._npu_fusion_attention_grad_v3_infer_output(q, k, v)[:3]),
        lambda: [halves(2, 3, 4, 16), halves(2, 6, 2, 16), halves(2, 6, 2, 16)],
        expected_sizes(((2, 3, 4, 16), 2), ((2, 6, 2, 16), 2), ((2, 6, 2, 16), 2)),
        EAGER,
    ),
    "_npu_fused_infer_attention_score_infer_output": (
        lambda q, v: sizes(
            npu._npu_fused_infer_attention_score_infer_output(
                q, v, input_layout="BSND", num_heads=4, num_key_value_heads=2
            )[0]
        ),
        lambda: [halves(2, 3, 4, 16), halves(2, 6, 2, 16)],
        expected_sizes(((2, 3, 4, 16), 2)),
        EAGER,
    ),
    "_npu_fused_infer_attention_score_v2_infer_output": (
        lambda q, v: sizes(
            npu._npu_fused_infer_attention_score_v2_infer_output(
                q, v, input_layout="BSND", num_query_heads=4, num_key_value_heads=2
            )[0]
        ),
        lambda: [halves(2, 3, 4, 16), halves(2, 6, 2, 16)],
        expected_sizes(((2, 3, 4, 16), 2)),
        EAGER,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_operator_is_as_documented(name: str) -> None:
    function, arguments, reference, modes = CASES[name]
    args = arguments()
    expected = reference(*[a.clone() if isinstance(a, T) else a for a in args])
    check(function, args, [t.detach() for t in listed(expected)], modes)
