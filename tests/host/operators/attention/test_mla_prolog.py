"""npu_mla_prolog and its versions, formula by formula.

Documented: https://gitcode.com/cann/ops-transformer, attention/mla_prolog, mla_prolog_v2 and mla_prolog_v3 (README.md).
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_npu
from operator_modes import check

T = torch.Tensor

HEADS, INNER, LATENT, TURNED, MODEL, DOWN = 2, 16, 32, 8, 48, 24
NAMES = [
    "token_x",
    "weight_dq",
    "weight_uq_qr",
    "weight_uk",
    "weight_dkv_kr",
    "rmsnorm_gamma_cq",
    "rmsnorm_gamma_ckv",
    "rope_sin",
    "rope_cos",
    "kv_cache",
    "kr_cache",
    "cache_index",
]


def arguments(*shape: int) -> dict[str, T]:
    """Tokens of a shape, and places for them in two caches."""
    count = torch.Size(shape).numel()
    drawn = {
        "token_x": torch.randn(*shape, MODEL),
        "weight_dq": torch.randn(MODEL, DOWN) / 7,
        "weight_uq_qr": torch.randn(DOWN, HEADS * (INNER + TURNED)) / 5,
        "weight_uk": torch.randn(HEADS, INNER, LATENT) / 4,
        "weight_dkv_kr": torch.randn(MODEL, LATENT + TURNED) / 7,
        "rmsnorm_gamma_cq": torch.rand(DOWN) + 0.5,
        "rmsnorm_gamma_ckv": torch.rand(LATENT) + 0.5,
        "rope_sin": torch.randn(*shape, TURNED),
        "rope_cos": torch.randn(*shape, TURNED),
        "kv_cache": torch.randn(3, 4, 1, LATENT),
        "kr_cache": torch.randn(3, 4, 1, TURNED),
    }
    return {n: x.bfloat16() for n, x in drawn.items()} | {"cache_index": torch.randperm(12)[:count].reshape(shape)}


def by_columns(weight: T) -> tuple[T, T]:
    """A weight as integers, each column by its scale."""
    scale = weight.float().abs().amax(0, keepdim=True) / 127
    return torch.round(weight.float() / scale).to(torch.int8), scale


def by_rows(x: T) -> tuple[T, T]:
    scale = x.float().abs().amax(-1, keepdim=True) / 127
    return torch.round(x.float() / scale).to(torch.int8), scale


def norm(x: T, gamma: T) -> T:
    return x / torch.sqrt((x**2).mean(-1, keepdim=True) + 1e-5) * gamma.double()


def turned(x: T, sin: T, cos: T) -> T:
    """[tokens, heads, dimension]: pairs of neighbors, whose first ones come first."""
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    c, s = cos.double().reshape(-1, 1, TURNED), sin.double().reshape(-1, 1, TURNED)
    half = TURNED // 2
    return torch.cat([a * c[..., :half] - b * s[..., :half], b * c[..., half:] + a * s[..., half:]], -1)


def reference(g: dict[str, T], mode: int, scales: dict[str, T], factors: tuple[float, float] = (1, 1)) -> list[T]:
    """Query, its turned part, the caches, and the normed tokens with their scales."""
    shape = g["token_x"].shape[:-1]
    x = g["token_x"].flatten(0, -2).double()
    rows = scales["dequant_scale_x"].double() if mode == 2 else 1

    def weight(name: str) -> T:
        scale = scales.get(f"dequant_scale_w_{name}")
        w = g[f"weight_{name}"].double()
        return w if scale is None else w * scale.double()

    down = (x @ weight("dq") * rows).bfloat16().double()
    normed, own = (norm(down, g["rmsnorm_gamma_cq"]) * factors[0]).float(), torch.empty(0)
    if mode:
        normed, own = by_rows(normed)
        up = normed.double() * own.double() @ weight("uq_qr")
    else:
        normed = normed.bfloat16()
        up = normed.double() @ weight("uq_qr")
    up = up.bfloat16().double().reshape(-1, HEADS, INNER + TURNED)
    query = torch.stack([up[:, n, :INNER] @ g["weight_uk"][n].double() for n in range(HEADS)], 1)
    both = x @ weight("dkv_kr") * rows
    caches = []
    latents = norm(both[:, :LATENT], g["rmsnorm_gamma_ckv"]) * factors[1]
    keys = turned(both[:, None, LATENT:], g["rope_sin"], g["rope_cos"])[:, 0]
    for name, values in (("kv_cache", latents), ("kr_cache", keys)):
        cache = g[name].clone().flatten(0, 2)
        cache[g["cache_index"].flatten()] = values.bfloat16()
        caches.append(cache.reshape(g[name].shape))
    rope = turned(up[..., INNER:], g["rope_sin"], g["rope_cos"])
    results = [query.reshape(*shape, HEADS, LATENT), rope.reshape(*shape, HEADS, TURNED)]
    return [*(r.bfloat16() for r in results), *caches, normed.reshape(*shape, DOWN), own]


def quantized(g: dict[str, T], mode: int) -> dict[str, T]:
    """What a mode has as integers, made so, and the scales."""
    scales = {}
    if mode == 2:
        g["token_x"], rows = by_rows(g["token_x"])
        scales["dequant_scale_x"] = rows.reshape(-1, 1)
    for name in [(), ("uq_qr",), ("dq", "uq_qr", "dkv_kr")][mode]:
        g[f"weight_{name}"], scales[f"dequant_scale_w_{name}"] = by_columns(g[f"weight_{name}"])
    return scales


@pytest.mark.parametrize("shape", [(5,), (2, 3)])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_mla_prolog_v3(shape: tuple[int, ...], mode: int) -> None:
    g = arguments(*shape)
    scales = quantized(g, mode)
    factors = (1.5, 0.75)

    def prolog(given: list[T], scaled: list[T]) -> Any:
        named = dict(zip([*NAMES, *scales], [*given, *scaled], strict=True))
        found = torch_npu.npu_mla_prolog_v3(
            **named, query_norm_flag=True, weight_quant_mode=mode, qc_qr_scale=factors[0], kc_scale=factors[1]
        )
        return found[0], found[1], named["kv_cache"], named["kr_cache"], found[3], found[4]

    given = [g[name] for name in NAMES]
    check(prolog, (given, list(scales.values())), reference(g, mode, scales, factors))


def test_mla_prolog_v3_that_leaves_its_caches() -> None:
    g = arguments(2, 3)

    def prolog(*given: T) -> Any:
        named = dict(zip(NAMES, given, strict=True))
        found = torch_npu.npu_mla_prolog_v3_functional(**named, query_norm_flag=True)
        return found[0], found[1], found[5], found[6], found[3], named["kv_cache"], named["kr_cache"]

    expected = reference(g, 0, {})
    given = [g[name] for name in NAMES]
    check(prolog, given, [*expected[:5], g["kv_cache"], g["kr_cache"]])


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_mla_prolog_v2(mode: int) -> None:
    g = arguments(2, 3)
    scales = quantized(g, mode)

    def prolog(given: list[T], scaled: list[T]) -> Any:
        named = dict(zip([*NAMES, *scales], [*given, *scaled], strict=True))
        return torch_npu.npu_mla_prolog_v2(**named)[:4]

    given = [g[name] for name in NAMES]
    check(prolog, (given, list(scales.values())), reference(g, mode, scales)[:4])


def test_mla_prolog() -> None:
    g = arguments(2, 3)

    def prolog(*given: T) -> Any:
        return torch_npu.npu_mla_prolog(**dict(zip(NAMES, given, strict=True)))

    check(prolog, [g[name] for name in NAMES], reference(g, 0, {})[:4], "eager ge")  # a single operator: no capture


def test_what_is_not_supported_is_refused() -> None:
    g = {name: x.npu() for name, x in arguments(3).items()}
    with pytest.raises(RuntimeError, match="cache_mode 'PA_NZ' is not supported"):
        torch_npu.npu_mla_prolog_v3(**g, cache_mode="PA_NZ")
    with pytest.raises(RuntimeError, match="weight_quant_mode 1 does not suit weights of torch.bfloat16"):
        torch_npu.npu_mla_prolog_v3(**g, weight_quant_mode=1)
