"""torch_npu.npu_swiglu_group_quant and its gradient: https://gitcode.com/cann/ops-nn, activation/swiglu_group_quant
(docs/aclnnSwigluGroupQuant.md) and activation/swiglu_group_quant_grad (docs/aclnnSwigluGroupQuantGrad.md).

torch_npu has the modes of HiFloat8; those of blocks are called as libopapi calls them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from float_codes import hifloat8_of
from operator_modes import ASCEND_950, check

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.runtime.aclnn_functions.call import prepare

pytestmark = ASCEND_950

T = torch.Tensor
npu = torch.ops.npu
WIDTH = 512
NUMBERS = np.array(sorted(n for c in range(256) if math.isfinite(n := hifloat8_of(c))))
CODES = {n: c for c in range(256) if math.isfinite(n := hifloat8_of(c))}


def codes_of(x: T) -> T:
    """The nearest numbers' codes, of two that are as near that of the one further from 0."""
    wide = x.double().numpy()
    place = np.clip(np.searchsorted(NUMBERS, wide), 1, len(NUMBERS) - 1)
    low, high = NUMBERS[place - 1], NUMBERS[place]
    near = np.where(
        wide - low == high - wide, np.where(wide > 0, high, low), np.where(wide - low < high - wide, low, high)
    )
    return torch.tensor([CODES[float(n)] for n in near.ravel()], dtype=torch.uint8).view(x.shape)


def unit(x: T, limit: float) -> T:
    gate, other = x.float()[..., : x.size(-1) // 2], x.float()[..., x.size(-1) // 2 :]
    if limit > 0:
        gate = torch.where(gate < limit, gate, limit)  # at the limit there is no gradient
        other = torch.where(other.abs() < limit, other, limit * other.sign().detach())
    return gate / (1 + torch.exp(-gate)) * other


def rows_of(counts: list[int] | None, count: int) -> list[slice]:
    ends = [count] if counts is None else [min(sum(counts[: i + 1]), count) for i in range(len(counts))]
    return [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def as_numbers(codes: T) -> T:
    return torch.tensor([hifloat8_of(int(c)) for c in codes.flatten()]).view(codes.shape)


def within_a_step(codes: T, wanted: T) -> bool:
    """Errors of rounding before it is quantized move a number to its neighbor, seldom."""
    places = [torch.from_numpy(np.searchsorted(NUMBERS, as_numbers(c).numpy())) for c in (codes, wanted)]
    apart = (places[0] - places[1]).abs()
    return int(apart.max()) <= 1 and float((apart != 0).float().mean()) < 1e-3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("counts", [None, [3, 0, 4], [5, 9]])
@pytest.mark.parametrize("mode", [2, 3])
@pytest.mark.parametrize("with_weight", [False, True])
def test_hifloat8(dtype: torch.dtype, counts: list[int] | None, mode: int, with_weight: bool) -> None:
    x, weight = torch.randn(9, 2 * WIDTH).to(dtype), torch.rand(9) if with_weight else None
    limit = 0.75 if with_weight else -1.0
    scale = torch.rand(len(counts or [0])) * 4 if mode == 2 else None
    group_index = None if counts is None else torch.tensor(counts)
    y = unit(x, limit)
    weighted = y if weight is None else y * weight[:, None]
    groups = rows_of(counts, 9)
    tops = [max(float(weighted[rows].abs().max()) if weighted[rows].numel() else 0.0, 1e-8) / 56 for rows in groups]
    scaled = [
        weighted[rows] * scale[i] if scale is not None else weighted[rows] / tops[i] for i, rows in enumerate(groups)
    ]
    wanted, last = torch.cat([codes_of(s) for s in scaled]), groups[-1].stop
    given = {"weight": weight, "group_index": group_index, "scale": scale}

    def run(x: T, *tensors: T) -> tuple[T, T, T]:
        names = [name for name, tensor in given.items() if tensor is not None]
        return npu.npu_swiglu_group_quant(  # type: ignore[no-any-return]
            x,
            **{names[i]: tensors[i] for i in range(len(names))},
            quant_mode=mode,
            clamp_limit=limit,
            dst_type_max=56.0,
            output_origin=True,
        )

    tensors = [t for t in given.values() if t is not None]
    codes, own, origin = run(x.npu(), *(t.npu() for t in tensors))
    assert codes.dtype is torch.uint8
    assert within_a_step(codes.cpu()[:last], wanted)
    torch.testing.assert_close(
        origin.cpu()[:last], y.to(dtype)[:last], rtol=1e-2 if dtype is torch.bfloat16 else 2e-3, atol=1e-3
    )
    if mode == 3:
        torch.testing.assert_close(own.cpu(), torch.tensor(tops))
    else:
        assert own.numel() == 0
    check(lambda *a: run(*a)[0][:last], [x, *tensors], codes.cpu()[:last], "eager captured")


def test_tokens_of_sequences() -> None:
    x, weight = torch.randn(2, 3, 2 * WIDTH).half(), torch.rand(2, 3)
    codes, own, origin = npu.npu_swiglu_group_quant(x.npu(), weight=weight.npu(), quant_mode=3)
    y = unit(x, -1) * weight[..., None]
    assert codes.shape == (2, 3, WIDTH)
    assert origin.numel() == 0
    torch.testing.assert_close(own.cpu(), y.abs().max().reshape(1) / 15)
    assert within_a_step(codes.cpu(), codes_of(y / own.cpu()))


@pytest.mark.parametrize("dst_type", [35, 36])
@pytest.mark.parametrize(("mode", "rounded"), [(0, False), (0, True), (1, True)])
def test_blocks(mode: int, rounded: bool, dst_type: int) -> None:
    dtype = {35: torch.float8_e5m2, 36: torch.float8_e4m3fn}[dst_type]
    x, weight, size = torch.randn(2, 3, 768).half(), torch.rand(6), {0: 128, 1: 32}[mode]
    x[0, 0, :512] = 0  # blocks whose maximum is below the least
    y, scale, origin = blocks_of(x, mode, dtype)
    prepare(
        "SwigluGroupQuant", [x, weight, None, None, dst_type, mode, 0, rounded, -1.0, 15.0, False, y, scale, origin]
    )()
    wanted = unit(x, -1) * weight.view(2, 3, 1)
    for row in range(6):
        numbers = wanted.view(6, -1)[row]
        for block in range(numbers.numel() // size):
            part = numbers[block * size : (block + 1) * size]
            raw = max(float(part.abs().max()), 1e-4) / {35: 57344.0, 36: 448.0}[dst_type]
            factor = 2.0 ** math.ceil(math.log2(raw)) if rounded else raw
            own = scale.view(6, -1)[row, block]
            assert own.float().item() == pytest.approx(factor, rel=1e-6)
            got = y.view(6, -1)[row, block * size : (block + 1) * size].float() * own.float()
            torch.testing.assert_close(got, part, rtol=0.13 if dst_type == 35 else 0.07, atol=factor * 2**-8)
    if mode == 1:
        assert scale.shape == (2, 3, 6, 2)


def blocks_of(x: T, mode: int, dtype: torch.dtype) -> list[T]:
    y = torch.empty(*x.shape[:-1], x.size(-1) // 2, dtype=dtype)
    blocks = x.size(-1) // 2 // {0: 128, 1: 32}[mode]
    shape = (*x.shape[:-1], blocks) if mode == 0 else (*x.shape[:-1], -(-blocks // 2), 2)
    return [y, torch.empty(shape, dtype=torch.float32 if mode == 0 else torch.float8_e8m0fnu), x.new_empty(0)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((36, 1, 0, False, -1.0), "round_scale False with quant_mode 1 is not supported; expected True"),
        ((36, 0, 32, False, -1.0), "block_size 32 with quant_mode 0 is not supported; expected 0 or 128"),
        ((40, 1, 0, True, -1.0), "dst_type 40"),
        ((36, 4, 0, True, -1.0), "quant_mode 4"),
        ((36, 0, 0, True, 0.0), "clamp_limit 0.0"),
    ],
)
def test_options_are_refused(options: tuple[Any, ...], message: str) -> None:
    x = torch.randn(3, 768).half()
    with pytest.raises(HostRuntimeError, match=message):
        prepare("SwigluGroupQuant", [x, None, None, None, *options, 15.0, False, *blocks_of(x, 0, torch.float8_e4m3fn)])


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((4, 2 * WIDTH), {"quant_mode": 3, "dst_type_max": 16.0}, "dst_type_max 16"),
        ((4, 2 * 640), {"quant_mode": 3}, "d twice one of 512"),
        ((2, 2, 2 * WIDTH), {"quant_mode": 3, "group_index": torch.tensor([2])}, "whether groups count rows or tokens"),
        ((4, 2 * WIDTH), {"quant_mode": 2}, "expected a scale of .* with quant_mode 2"),
        ((4, 2 * WIDTH), {"quant_mode": 3, "weight": torch.ones(3)}, "weight has 3 elements; expected 4"),
        ((4, 2 * WIDTH), {"quant_mode": 3, "group_index": torch.tensor([2, -1])}, "expected groups of 0 rows or more"),
        ((4, 2 * WIDTH), {"quant_mode": 2, "scale": torch.full((1,), 1e9)}, "beyond the largest of hifloat8"),
        ((4, 2 * WIDTH), {"quant_mode": 3, "weight": torch.full((4,), torch.inf)}, "infinite"),
    ],
)
def test_calls_are_refused(shape: tuple[int, ...], options: dict[str, Any], message: str) -> None:
    given = {name: value.npu() if isinstance(value, T) else value for name, value in options.items()}
    with pytest.raises(RuntimeError, match=message):
        npu.npu_swiglu_group_quant(torch.randn(shape).half().npu(), **given)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("counts", [None, [3, 0, 4]])
@pytest.mark.parametrize("with_weight", [False, True])
@pytest.mark.parametrize("limit", [-1.0, 0.75])
def test_gradient(dtype: torch.dtype, counts: list[int] | None, with_weight: bool, limit: float) -> None:
    shape = (9,) if counts else (3, 3)
    x, grad = torch.randn(*shape, 2 * WIDTH).to(dtype), torch.randn(*shape, WIDTH).to(dtype)
    leaf, weight = x.float().requires_grad_(), torch.rand(shape).requires_grad_()
    y = unit(leaf, limit)
    total = (y * weight[..., None] if with_weight else y) * grad.float()
    last = sum(counts) if counts else 9
    total.view(9, -1)[:last].sum().backward()
    tensors = {"weight": weight.detach(), "y_origin": y.detach().to(dtype)} if with_weight else {}
    tensors |= {"group_index": torch.tensor(counts)} if counts else {}
    expected = [
        leaf.grad.to(dtype),
        (grad.float() * y.detach().to(dtype).float()).sum(-1) if with_weight else torch.empty(0),
    ]
    if with_weight:
        expected[1].view(-1)[last:] = 0
        torch.testing.assert_close(expected[1], weight.grad, rtol=1e-2, atol=0.3)
    check(
        lambda g, x, *t: npu.npu_swiglu_group_quant_backward(
            g, x, **{name: t[i] for i, name in enumerate(tensors)}, clamp_limit=limit
        ),
        [grad, x, *tensors.values()],
        expected,
        "eager captured",
    )


def test_gradients_are_refused() -> None:
    grad, x = torch.randn(4, WIDTH).half().npu(), torch.randn(4, 2 * WIDTH).half().npu()
    for options, message in (
        ({}, "clamp_limit 0.0: it is above 0, or -1"),  # torch_npu's default
        ({"clamp_limit": -1.0, "weight": torch.ones(4).npu()}, "weight needs y_origin"),
    ):
        with pytest.raises(RuntimeError, match=message):
            npu.npu_swiglu_group_quant_backward(grad, x, **options)
    with pytest.raises(RuntimeError, match="half as wide"):
        npu.npu_swiglu_group_quant_backward(grad[:, :256].contiguous(), x, clamp_limit=-1.0)
