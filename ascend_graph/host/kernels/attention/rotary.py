"""Rotary position embeddings."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import torch

from ascend_graph.host.kernels.checks import check_range
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


def _rotated(x: T, interleaved: bool) -> T:
    if interleaved:
        even, odd = x[..., ::2], x[..., 1::2]
        return torch.stack([-odd, even], -1).flatten(-2)
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1)


def _broadcasts(factor: T, x: T) -> bool:
    """Return whether a tensor broadcasts to the shape of another."""
    sizes = zip(reversed(factor.shape), reversed(x.shape), strict=False)
    return factor.dim() <= x.dim() and all(size in (1, wanted) for size, wanted in sizes)


def _rotary(x: T, cos: T, sin: T, mode: int) -> T:
    if mode not in (0, 1):
        raise ValueError(f"mode {mode} is not supported; 0, half, and 1, interleaved, are")
    if not all(_broadcasts(factor, x) for factor in (cos, sin)):
        raise ValueError(f"cos {tuple(cos.shape)} and sin {tuple(sin.shape)} must broadcast to {tuple(x.shape)}")
    wide = x.float()
    return (wide * cos.float()).addcmul_(_rotated(wide, mode == 1), sin.float()).to(x.dtype)


@host_kernel("RotaryMul")
def rotary_mul(x: T, r1: T, r2: T) -> T:
    return _rotary(x, r1, r2, 0)


@host_kernel("RotaryPositionEmbedding")
def rotary_position_embedding(x: T, cos: T, sin: T, rotate: T | None = None, *, mode: int = 0) -> T:
    if rotate is not None:
        return (x.float() * cos.float() + x.float() @ rotate.float() * sin.float()).to(x.dtype)
    return _rotary(x, cos, sin, mode)


@host_kernel("RotaryPositionEmbeddingGrad")
def rotary_position_embedding_grad(dy: T, cos: T, sin: T, x: T | None = None, *, mode: int = 0) -> tuple[T, T, T]:
    """Return the gradients of x, cos and sin; the last two only if x is given."""
    if mode not in (0, 1):
        raise ValueError(f"mode {mode} is not supported; 0, half, and 1, interleaved, are")
    grad = dy.float()
    dx = (grad * cos.float() - _rotated(grad * sin.float(), mode == 1)).to(dy.dtype)
    if x is None:
        return dx, cos.new_empty(0), sin.new_empty(0)
    wide = x.float()
    dcos = (grad * wide).sum_to_size(cos.shape).to(cos.dtype)
    dsin = (grad * _rotated(wide, mode == 1)).sum_to_size(sin.shape).to(sin.dtype)
    return dx, dcos, dsin


@host_kernel("RotaryMulGrad")
def rotary_mul_grad(x: T, r1: T, r2: T, dy: T, *, need_backward: bool = True) -> tuple[T, T, T]:
    """Return the gradients of x, r1 and r2; the last two are zeros unless requested."""
    dx, dr1, dr2 = rotary_position_embedding_grad(dy, r1, r2, x if need_backward else None)
    return (dx, dr1, dr2) if need_backward else (dx, torch.zeros_like(r1), torch.zeros_like(r2))


@host_kernel("InterleaveRope")
def interleave_rope(x: T, cos: T, sin: T) -> T:
    halves = x.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)
    return _rotary(halves, cos, sin, 0)


@host_kernel("ApplyRotaryPosEmb", writes=("query", "key"))
def apply_rotary_pos_emb(
    query: T, key: T, cos: T, sin: T, *, layout: int = 1, rotary_mode: str = "half"
) -> tuple[T, T]:
    del layout  # cosines and sines broadcast against heads whatever the layout is
    modes = {"half": 0, "interleave": 1}
    if rotary_mode not in modes:
        raise ValueError(f"rotary_mode {rotary_mode!r} is not supported; half and interleave are")
    mode, cos, sin = modes[rotary_mode], cos.float(), sin.float()
    return query.copy_(_rotary(query, cos, sin, mode)), key.copy_(_rotary(key, cos, sin, mode))


@host_kernel("RopeWithSinCosCache")
def rope_with_sin_cos_cache(
    positions: T,
    query: T,
    key: T,
    cos_sin_cache: T,
    *,
    mrope_section: list[int] | None = None,
    head_size: int,
    is_neox_style: bool = True,
) -> tuple[T, T]:
    """Rotate query and key by a table of cosines and sines.

    With several kinds of positions, each kind has a section of the table.
    """
    check_range("positions", positions, cos_sin_cache.size(0))
    cos, sin = cos_sin_cache.float()[positions.long()].chunk(2, -1)
    if positions.dim() == 2:
        sections = mrope_section or []
        if len(sections) != positions.size(0) or sum(sections) != cos.size(-1):
            raise ValueError(f"mrope_section {sections}: expected {positions.size(0)} parts, {cos.size(-1)} in all")
        cos, sin = (
            torch.cat([part[n] for n, part in enumerate(table.split(sections, -1))], -1) for table in (cos, sin)
        )

    def rotated(x: T) -> T:
        heads = x.float().unflatten(-1, (-1, head_size))
        size = 2 * cos.size(-1)
        turning, rest = heads[..., :size], heads[..., size:]
        first, second = turning.chunk(2, -1) if is_neox_style else (turning[..., ::2], turning[..., 1::2])
        c, s = cos.unsqueeze(-2), sin.unsqueeze(-2)
        pair = (first * c - second * s, second * c + first * s)
        done = torch.cat(pair, -1) if is_neox_style else torch.stack(pair, -1).flatten(-2)
        return torch.cat([done, rest], -1).flatten(-2).to(x.dtype)

    return rotated(query), rotated(key)
