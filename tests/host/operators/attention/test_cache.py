"""Writing keys and values into caches: torch_npu.npu_scatter_pa_kv_cache, npu_rope_quant_kvcache and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_npu
from operator_modes import check, naming_what_is_lacking

T = torch.Tensor


def written(cache: T, tokens: T, slots: list[int], packed: bool) -> T:
    """Each token to page slot // block, place slot % block."""
    result = cache.clone()
    block = cache.size(2) if packed else cache.size(1)
    for token, slot in zip(tokens, slots, strict=True):
        if slot < 0:
            continue
        if packed:
            result[slot // block, :, slot % block] = token.reshape(cache.size(1), cache.size(3))
        else:
            result[slot // block, slot % block] = token.reshape(cache.shape[2:])
    return result


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int8])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_tokens_go_to_their_slots(dtype: torch.dtype, packed: bool, index: torch.dtype) -> None:
    keys, values = (torch.randint(-100, 100, (4, 2, 32)).to(dtype) for _ in range(2))
    shape = (3, 4, 8, 16) if packed else (3, 8, 2, 32)
    caches = [torch.randint(-100, 100, shape).to(dtype) for _ in range(2)]
    slots = [5, 0, 23, 8]

    def run(key: T, value: T, key_cache: T, value_cache: T, slots: T) -> tuple[T, T]:
        mode = "PA_NZ" if packed else "Norm"
        torch_npu.npu_scatter_pa_kv_cache(key, value, key_cache, value_cache, slots, cache_mode=mode)
        return key_cache, value_cache

    expected = tuple(written(c, t, slots, packed) for c, t in zip(caches, (keys, values), strict=True))
    modes = "eager captured ge npugraph_ex" if index is torch.int32 and dtype is torch.float16 else "eager"
    check(run, [keys, values, *caches, torch.tensor(slots, dtype=index)], expected, modes)


@pytest.mark.parametrize("slot", [24, -2, 1 << 30])
def test_a_slot_out_of_range_is_refused_and_nothing_is_written(slot: int) -> None:
    key = torch.randn(2, 2, 32).half().npu()
    caches = [torch.zeros(3, 8, 2, 32, dtype=torch.float16).npu() for _ in range(2)]
    with pytest.raises(RuntimeError, match=f"slot_mapping has {slot}; expected -1 to 23"):
        torch_npu.npu_scatter_pa_kv_cache(
            key, key, *caches, torch.tensor([1, slot], dtype=torch.int32).npu(), cache_mode="Norm"
        )
    assert not any(bool(c.any()) for c in caches)


def test_a_cache_of_another_dtype_is_refused() -> None:
    key, cache = torch.randn(1, 2, 32).half().npu(), torch.zeros(3, 8, 2, 32).npu()
    with pytest.raises(
        RuntimeError,
        match=r"key_cache is torch.float32; expected the dtype of the tokens that are written to it, torch.float16",
    ):
        torch_npu.npu_scatter_pa_kv_cache(key, key, cache, cache, torch.tensor([0]).npu(), cache_mode="Norm")


def test_scatter_nd_update() -> None:
    cache, places, rows = torch.randn(5, 4, 3), torch.tensor([[0, 1], [4, 3], [2, 2]]), torch.randn(3, 3)
    expected = cache.clone()
    for place, row in zip(places.tolist(), rows, strict=True):
        expected[tuple(place)] = row
    check(
        lambda c, p, r: torch_npu.npu_scatter_nd_update_(c, p, r),
        [cache, places, rows],
        expected,
        "eager captured ge npugraph_ex",
    )


def test_scatter_update() -> None:
    """Each batch's rows to a place of its own along an axis."""
    cache, places, rows = torch.randn(3, 2, 8, 4), torch.tensor([5, 0, 7]), torch.randn(3, 2, 1, 4)
    expected = cache.clone()
    for batch, place in enumerate(places.tolist()):
        expected[batch, :, place : place + 1] = rows[batch]
    check(
        lambda c, p, r: torch_npu.scatter_update_(c, p, r, 2),
        [cache, places, rows],
        expected,
        "eager captured ge npugraph_ex",
    )


def turned(x: T, cos: T, sin: T) -> T:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def rope_and_cache(
    x: T, cos: T, sin: T, caches: list[T], places: list[int], scales: list[T], mode: str
) -> tuple[T, ...]:
    """Of [sequences, tokens, 4 + 2 + 2 heads of 64] the first two parts rotated, the last two, by their scales, in the
    caches.

    A token at a time; places are where sequences begin, or each token's place among all of the cache.
    """
    q, k, v = x.float().unflatten(-1, (8, 64)).split([4, 2, 2], 2)
    q, k = (turned(part, cos.float().unsqueeze(2), sin.float().unsqueeze(2)) for part in (q, k))
    results = [cache.clone() for cache in caches]
    for result, values, scale in zip(results, (k, v), scales, strict=True):
        numbers = torch.round(values / scale.float()).clamp(-128, 127).to(torch.int8)
        for b in range(x.size(0)):
            for s in range(x.size(1)):
                if mode == "contiguous":
                    result[b, places[b] + s] = numbers[b, s]
                else:
                    place = places[b * x.size(1) + s]
                    result[place // result.size(1), place % result.size(1)] = numbers[b, s]
    return (*(part.to(cos.dtype) for part in (q, k, v)), *results)


@pytest.mark.parametrize("mode", ["contiguous", "page"])
@pytest.mark.parametrize("integers", [False, True])
def test_rope_quant_kvcache(mode: str, integers: bool) -> None:
    """Formulas: posembedding/dequant_rope_quant_kvcache of https://gitcode.com/cann/ops-transformer."""
    x, cos, sin = torch.randn(2, 3, 512).half(), torch.randn(2, 3, 64).half(), torch.randn(2, 3, 64).half()
    caches = [torch.randint(-9, 9, (3, 8, 2, 64)).to(torch.int8) for _ in range(2)]
    places = [5, 0] if mode == "contiguous" else [23, 0, 7, 8, 12, 2]
    scales = [torch.rand(2, 64) / 20 + 0.01 for _ in range(2)]
    arguments = [cos, sin, *caches, torch.tensor(places, dtype=torch.int32), *scales]
    options = {"kv_output": True, "cache_mode": mode}
    if not integers:
        check(
            lambda x, *a: torch_npu.npu_rope_quant_kvcache(x, *a, [256, 128, 128], **options),
            [x, *arguments],
            rope_and_cache(x, cos, sin, caches, places, scales, mode),
            "eager captured ge npugraph_ex"
            if mode == "contiguous"
            else "eager captured",  # the wheel's converter knows no pages
        )
        return
    numbers, columns, rows = torch.randint(-90, 90, (2, 3, 512), dtype=torch.int32), torch.rand(512) / 50, torch.rand(6)
    wide = numbers.float() * columns * rows.reshape(2, 3, 1)
    check(
        lambda x, w, r, *a: torch_npu.npu_dequant_rope_quant_kvcache(
            x, *a, [256, 128, 128], weight_scale=w, activation_scale=r, **options
        ),
        [numbers, columns, rows, *arguments],
        rope_and_cache(wide, cos, sin, caches, places, scales, mode),
        "eager captured ge npugraph_ex"
        if mode == "contiguous"
        else "eager captured",  # the wheel's converter knows no pages
    )


@pytest.mark.parametrize(("mode", "places"), [("contiguous", [6, 0]), ("page", [24, 0, 1, 2, 3, 4]), ("page", [1])])
def test_places_beyond_the_cache_are_refused(mode: str, places: list[int]) -> None:
    factors = torch.randn(2, 3, 64).half().npu()
    caches = [torch.zeros(3, 8, 2, 64, dtype=torch.int8).npu() for _ in range(2)]
    with pytest.raises(RuntimeError, match=r"indices|index has 24"):
        torch_npu.npu_rope_quant_kvcache(
            torch.randn(2, 3, 512).half().npu(),
            factors,
            factors,
            *caches,
            torch.tensor(places, dtype=torch.int32).npu(),
            *[torch.rand(2, 64).npu() for _ in range(2)],
            [256, 128, 128],
            cache_mode=mode,
        )
    assert not any(bool(c.any()) for c in caches)


def normal_and_rotated(x: T, gamma: T, cos: T, sin: T) -> T:
    """A token and a head at a time."""
    out = torch.empty(x.shape)
    for t in range(x.size(0)):
        for head in range(x.size(1)):
            row = x[t, head].float()
            y = row / (row.square().mean() + 1e-6).sqrt() * gamma.float()
            half = y.numel() // 2
            out[t, head] = y * cos[t].float() + torch.cat([-y[half:], y[:half]]) * sin[t].float()
    return out


def in_numbers_of_8_bits(x: T, scale: T | None, offset: T | None) -> T:
    if scale is None:
        return x
    y = x / scale + (0 if offset is None else offset)
    return y.round().clamp(-128, 127)


QKV_SIZE, HEADS = [2, 3, 5, 128], [3, 1, 1]
QKV_SLOTS = [33, 0, 95, -1, 40, -1]


def qkv_args(dtype: torch.dtype, quantized: tuple[bool, bool], with_offsets: bool) -> list[Any]:
    tokens = [torch.randn(6, width).to(dtype) for width in (640, 128, 128)]
    gammas = [torch.rand(128).to(dtype) for _ in range(2)]
    caches = [
        torch.randint(-9, 9, (3, 4 if q else 8, 32, 32 if q else 16)).to(torch.int8 if q else dtype) for q in quantized
    ]
    scales = [torch.rand(1, 128) / 32 + 0.01 if q else None for q in quantized]
    offsets = [torch.randint(-9, 9, (1, 128)).float() if q and with_offsets else None for q in quantized]
    index = torch.tensor(QKV_SLOTS)
    return [tokens[0], *gammas, *tokens[1:], index, torch.zeros(6, 384, dtype=dtype), *caches, *scales, *offsets]


def qkv_expected(*args: Any) -> list[T]:
    """https://gitcode.com/cann/ops-transformer, posembedding/qkv_rms_norm_rope_cache
    (docs/aclnnQkvRmsNormRopeCache.md)."""
    qkv, q_gamma, k_gamma, cos, sin, _, _, k_cache, v_cache, *parameters = args
    heads = qkv.unflatten(1, (5, 128))
    q, k = normal_and_rotated(heads[:, :3], q_gamma, cos, sin), normal_and_rotated(heads[:, 3:4], k_gamma, cos, sin)
    results = [q.flatten(1).to(qkv.dtype)]
    for rows, cache, scale, offset in (
        (k, k_cache, *parameters[::2]),
        (heads[:, 4:].float(), v_cache, *parameters[1::2]),
    ):
        results.append(written(cache, in_numbers_of_8_bits(rows, scale, offset).to(cache.dtype), QKV_SLOTS, True))
    return results


def qkv_in_place(*args: Any) -> tuple[T, ...]:
    names = ("k_scale", "v_scale", "k_offset", "v_offset")
    torch_npu.npu_qkv_rms_norm_rope_cache(*args[:9], QKV_SIZE, HEADS, **{n: args[9 + i] for i, n in enumerate(names)})
    return args[6:9]


def qkv_functional(*args: Any) -> tuple[T, ...]:
    names = ("k_scale", "v_scale", "k_offset", "v_offset")
    given = {n: args[9 + i] for i, n in enumerate(names)}
    results = torch_npu.npu_qkv_rms_norm_rope_cache_functional(*args[:9], QKV_SIZE, HEADS, **given)
    return results[3:]  # type: ignore[no-any-return]


@pytest.mark.parametrize("quantized", [(False, False), (True, True), (True, False)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("call", [qkv_in_place, qkv_functional])
def test_qkv_rms_norm_rope_cache(call: Callable[..., Any], dtype: torch.dtype, quantized: tuple[bool, bool]) -> None:
    args = qkv_args(dtype, quantized, with_offsets=dtype is torch.float16)
    in_graphs = quantized[0] == quantized[1] == (dtype is torch.float16)
    modes = "eager captured ge npugraph_ex" if in_graphs else "eager captured"
    check(call, args, qkv_expected(*args), modes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"index": torch.tensor([0, 1, 96, 3, 4, 5])}, "index has 96; expected -1 to 95"),
        ({"index": torch.tensor([0, 1, 1, 3, 4, 5])}, "names a place twice"),
        ({"k_scale": torch.zeros(1, 128)}, "k_scale has a 0"),
        ({"v_scale": None}, "v_cache is torch.int8: int8 has a scale"),
        ({"qkv_size": [2, 3, 6, 128]}, r"head_nums \[3, 1, 1\]"),
        ({"head_nums": [2, 1, 2]}, "as many heads of keys as of values"),
        ({"cache_mode": "PA_BNSD"}, "cache_mode 'PA_BNSD'"),
        ({"is_output_qkv": True}, "qOutBeforeQuant"),
        ({"k_cache": torch.zeros(3, 4, 16, 32, dtype=torch.int8)}, "as many blocks of the same size"),
        ({"cos": torch.zeros(5, 128).half()}, r"cos\[t, d\]"),
        ({"q_out": torch.zeros(6, 256).half()}, "3 heads of 128"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
@naming_what_is_lacking()
def test_what_qkv_rms_norm_rope_cache_refuses(change: dict[str, Any], message: str) -> None:
    names = ("qkv", "q_gamma", "k_gamma", "cos", "sin", "index", "q_out", "k_cache", "v_cache")
    names += ("k_scale", "v_scale", "k_offset", "v_offset")
    given = dict(zip(names, qkv_args(torch.float16, (True, True), True), strict=True))
    given |= {"qkv_size": QKV_SIZE, "head_nums": HEADS} | change
    device = {name: value.npu() if isinstance(value, T) else value for name, value in given.items()}
    before = [device[name].clone() for name in ("q_out", "k_cache", "v_cache")]
    with pytest.raises(RuntimeError, match=message):
        torch_npu.npu_qkv_rms_norm_rope_cache(**device)
    for name, old in zip(("q_out", "k_cache", "v_cache"), before, strict=True):
        assert torch.equal(device[name], old)
