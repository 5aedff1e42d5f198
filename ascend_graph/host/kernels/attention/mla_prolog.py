"""Prolog of attention over latents (MLA): queries, and new tokens' latents and rotated keys in their caches."""

from __future__ import annotations

import functools
from typing import Any

import torch

from ascend_graph.host.kernels.attention.cache import places_of, put_tokens
from ascend_graph.host.kernels.checks import refuse_given
from ascend_graph.host.kernels.matmul.matmul import integer_product
from ascend_graph.host.kernels.quantization.quantize import dynamic
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


def _norm(x: T, gamma: T, epsilon: float) -> T:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * gamma.float()


def _turned(x: T, sin: T, cos: T) -> T:
    """Rotate interleaved pairs by angles, the first elements of all pairs placed before the second ones."""
    a, b = x[..., ::2], x[..., 1::2]
    return torch.cat([a, b], -1) * cos + torch.cat([-b, a], -1) * sin


def _product(x: T, weight: T, rows: T | None, columns: T | None) -> T:
    """Multiply float matrices, or integer ones by their scales."""
    if weight.dtype is not torch.int8:
        return x.float() @ weight.float()
    if rows is None or columns is None or x.dtype is not torch.int8:
        raise ValueError(f"a weight of int8 needs tokens of int8, not {x.dtype}, and the scales of rows and columns")
    return (integer_product(x, weight) * columns.double() * rows.double().reshape(-1, 1)).float()


def _computed(
    token_x: T,
    weights: tuple[T, T, T, T],
    gammas: tuple[T, T],
    sin: T,
    cos: T,
    caches: tuple[T, T],
    cache_index: T | None,
    scales: tuple[T | None, T | None, T | None, T | None],
    smooth: T | None,
    epsilons: tuple[float, float],
    cache_mode: str,
    factors: tuple[float, float] = (1.0, 1.0),
) -> tuple[T, T, T, T]:
    """Return queries, their rotated part, the normalized tokens, and the scales of these if they are integers.

    Latents and rotated keys are written to the caches.
    """
    weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr = weights
    if cache_mode != "PA_BSND" or cache_index is None:
        raise ValueError(f"cache_mode {cache_mode!r} is not supported on the host; PA_BSND, with cache_index, is")
    if token_x.dim() not in (2, 3) or weight_uk.dim() != 3 or sin.shape != cos.shape:
        raise ValueError(
            f"token_x {tuple(token_x.shape)}, weight_uk {tuple(weight_uk.shape)}: expected [(batch,) tokens, width] "
            "and [heads, size, latent], and sin of the shape of cos"
        )
    x, width = token_x.flatten(0, -2), sin.size(-1)
    sin, cos = (angles.float().reshape(-1, 1, width) for angles in (sin, cos))
    heads, inner, latent = weight_uk.shape
    if weight_uq_qr.size(1) != heads * (inner + width) or weight_dkv_kr.size(1) != latent + width:
        raise ValueError(
            f"weight_uq_qr {tuple(weight_uq_qr.shape)}, weight_dkv_kr {tuple(weight_dkv_kr.shape)}: columns for {heads} heads "
            f"of {inner} and {width}, and for {latent} and {width}, are expected"
        )
    narrow = gammas[0].dtype
    down = _product(x, weight_dq, scales[0], scales[1]).to(narrow).float()
    normed, own = _norm(down, gammas[0], epsilons[0]) * factors[0], x.new_empty(0, dtype=torch.float32)
    if weight_uq_qr.dtype is torch.int8:
        normed, own = dynamic(normed if smooth is None else normed * smooth.float())
    else:
        normed = normed.to(narrow)
    up = _product(normed, weight_uq_qr, own, scales[2]).to(narrow).float().unflatten(-1, (heads, inner + width))
    query = torch.einsum("tnd,ndh->tnh", up[..., :inner], weight_uk.float()).to(narrow)
    both = _product(x, weight_dkv_kr, scales[0], scales[3])
    latents = _norm(both[..., :latent], gammas[1], epsilons[1]) * factors[1]
    keys = _turned(both[..., latent:].unsqueeze(1), sin, cos)
    for name, rows, cache in (("kv_cache", latents.unsqueeze(1), caches[0]), ("kr_cache", keys, caches[1])):
        if cache.dim() != 4 or cache.shape[2:] != rows.shape[1:] or not cache.is_floating_point():
            raise ValueError(
                f"{name} is {cache.dtype} of shape {tuple(cache.shape)}; expected floats of [blocks, size, 1, {rows.size(2)}]"
            )
        if not cache.is_meta:
            put_tokens(rows.to(cache.dtype), cache, places_of(cache_index, cache, False), False)
    shape = token_x.shape[:-1]
    return (
        query.reshape(*shape, heads, latent),
        _turned(up[..., inner:], sin, cos).to(narrow).reshape(*shape, heads, width),
        normed.reshape(*shape, -1),
        own,
    )


@host_kernel("MlaProlog", writes={"kv_cache": 2, "kr_cache": 3})
def mla_prolog(
    token_x: T,
    weight_dq: T,
    weight_uq_qr: T,
    weight_uk: T,
    weight_dkv_kr: T,
    rmsnorm_gamma_cq: T,
    rmsnorm_gamma_ckv: T,
    rope_sin: T,
    rope_cos: T,
    cache_index: T,
    kv_cache: T,
    kr_cache: T,
    dequant_scale_x: T | None = None,
    dequant_scale_w_dq: T | None = None,
    dequant_scale_w_uq_qr: T | None = None,
    dequant_scale_w_dkv_kr: T | None = None,
    quant_scale_ckv: T | None = None,
    quant_scale_ckr: T | None = None,
    smooth_scales_cq: T | None = None,
    *,
    rmsnorm_epsilon_cq: float = 1e-5,
    rmsnorm_epsilon_ckv: float = 1e-5,
    cache_mode: str = "PA_BSND",
) -> tuple[T, T, T, T]:
    refuse_given("not supported on the host", quant_scale_ckv=quant_scale_ckv, quant_scale_ckr=quant_scale_ckr)
    query, rope, _, _ = _computed(
        token_x,
        (weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr),
        (rmsnorm_gamma_cq, rmsnorm_gamma_ckv),
        rope_sin,
        rope_cos,
        (kv_cache, kr_cache),
        cache_index,
        (dequant_scale_x, dequant_scale_w_dq, dequant_scale_w_uq_qr, dequant_scale_w_dkv_kr),
        smooth_scales_cq,
        (rmsnorm_epsilon_cq, rmsnorm_epsilon_ckv),
        cache_mode,
    )
    return query, rope, kv_cache, kr_cache


@host_kernel("MlaPrologV2", writes={"kv_cache": 2, "kr_cache": 3})
@functools.wraps(mla_prolog)
def mla_prolog_v2(*inputs: Any, **attrs: Any) -> tuple[T, ...]:
    """Compute MlaProlog; the last output, the scales of quantized queries, is a placeholder of one element."""
    query, *others = mla_prolog(*inputs, **attrs)
    return query, *others, query.new_zeros(1, dtype=torch.float32)


@host_kernel("MlaPrologV3", writes={"kv_cache": 2, "kr_cache": 3})
def mla_prolog_v3(
    token_x: T,
    weight_dq: T,
    weight_uq_qr: T,
    weight_uk: T,
    weight_dkv_kr: T,
    rmsnorm_gamma_cq: T,
    rmsnorm_gamma_ckv: T,
    rope_sin: T,
    rope_cos: T,
    kv_cache: T,
    kr_cache: T,
    cache_index: T | None = None,
    dequant_scale_x: T | None = None,
    dequant_scale_w_dq: T | None = None,
    dequant_scale_w_uq_qr: T | None = None,
    dequant_scale_w_dkv_kr: T | None = None,
    quant_scale_ckv: T | None = None,
    quant_scale_ckr: T | None = None,
    smooth_scales_cq: T | None = None,
    actual_seq_len: T | None = None,
    k_nope_clip_alpha: T | None = None,
    *,
    rmsnorm_epsilon_cq: float = 1e-5,
    rmsnorm_epsilon_ckv: float = 1e-5,
    cache_mode: str = "PA_BSND",
    query_norm_flag: bool = False,
    weight_quant_mode: int = 0,
    kv_cache_quant_mode: int = 0,
    query_quant_mode: int = 0,
    ckvkr_repo_mode: int = 0,
    quant_scale_repo_mode: int = 0,
    tile_size: int = 128,
    qc_qr_scale: float = 1.0,
    kc_scale: float = 1.0,
) -> tuple[T, T, T, T, T, T, T]:
    """Compute MlaProlog with float weights (mode 0), int8 weight_uq_qr (1) or int8 tokens and weights (2).

    The mode is weight_quant_mode; in mode 2 all weights but weight_uk are int8.
    """
    refuse_given(
        "not supported on the host",
        quant_scale_ckv=quant_scale_ckv,
        quant_scale_ckr=quant_scale_ckr,
        actual_seq_len=actual_seq_len,
        k_nope_clip_alpha=k_nope_clip_alpha,
        kv_cache_quant_mode=kv_cache_quant_mode,
        query_quant_mode=query_quant_mode,
        ckvkr_repo_mode=ckvkr_repo_mode,
        quant_scale_repo_mode=quant_scale_repo_mode,
    )
    del tile_size  # of quantized caches
    integers = tuple(w.dtype is torch.int8 for w in (weight_dq, weight_uq_qr, weight_dkv_kr))
    modes = {0: (False, False, False), 1: (False, True, False), 2: (True, True, True)}
    if modes.get(weight_quant_mode) != integers:
        raise ValueError(
            f"weight_quant_mode {weight_quant_mode} does not suit weights of {weight_dq.dtype}, {weight_uq_qr.dtype} and "
            f"{weight_dkv_kr.dtype}; 0 (floats), 1 (weight_uq_qr of int8) and 2 (all three) are supported"
        )
    query, rope, normed, own = _computed(
        token_x,
        (weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr),
        (rmsnorm_gamma_cq, rmsnorm_gamma_ckv),
        rope_sin,
        rope_cos,
        (kv_cache, kr_cache),
        cache_index,
        (dequant_scale_x, dequant_scale_w_dq, dequant_scale_w_uq_qr, dequant_scale_w_dkv_kr),
        smooth_scales_cq,
        (rmsnorm_epsilon_cq, rmsnorm_epsilon_ckv),
        cache_mode,
        (qc_qr_scale, kc_scale),
    )
    none = token_x.new_empty(0, dtype=torch.float32)
    if not query_norm_flag:
        normed, own = normed.new_empty(0), none
    return query, rope, kv_cache, kr_cache, none, normed, own
