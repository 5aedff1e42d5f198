"""Writing keys and values into pages: torch_npu.npu_scatter_pa_kv_cache."""

from __future__ import annotations

import pytest
import torch
import torch_npu
from npu_ways import check

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
    ways = "eager captured ge npugraph_ex" if index is torch.int32 and dtype is torch.float16 else "eager"
    check(run, [keys, values, *caches, torch.tensor(slots, dtype=index)], expected, ways)


@pytest.mark.parametrize("slot", [24, -2, 1 << 30])
def test_a_slot_out_of_range_is_refused_and_nothing_is_written(slot: int) -> None:
    key = torch.randn(2, 2, 32).half().npu()
    caches = [torch.zeros(3, 8, 2, 32, dtype=torch.float16).npu() for _ in range(2)]
    with pytest.raises(RuntimeError, match="slot_mapping .* slots 0 to 23"):
        torch_npu.npu_scatter_pa_kv_cache(
            key, key, *caches, torch.tensor([1, slot], dtype=torch.int32).npu(), cache_mode="Norm"
        )
    assert not any(bool(c.any()) for c in caches)


def test_a_cache_of_another_dtype_is_refused() -> None:
    key, cache = torch.randn(1, 2, 32).half().npu(), torch.zeros(3, 8, 2, 32).npu()
    with pytest.raises(RuntimeError, match=r"key_cache is torch.float32, what is written to it torch.float16"):
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
