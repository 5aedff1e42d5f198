"""8-bit floats by scales of blocks of groups of rows, and by given scales with what was the largest.

Documented: https://gitcode.com/cann/ops-nn, quant/grouped_dynamic_block_quant/docs/aclnnGroupedDynamicBlockQuantV2.md,
quant/quant_max/docs/aclnnQuantMax.md and quant/grouped_quant_max/docs/aclnnGroupedQuantMax.md.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
import torch_npu
from float_codes import HIF8, MEANING
from operator_modes import ASCEND_950, assert_equal, check, run

from ascend_graph.host.runtime.aclnn_functions.call import prepare

pytestmark = ASCEND_950

T = torch.Tensor
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
LARGEST = {E4M3: 448.0, E5M2: 57344.0, HIF8: 32768.0}


def nearest(y: T, dtype: Any) -> T:
    """Codes as numbers; of HiFloat8 halves away from zero."""
    if dtype != HIF8:
        return y.clamp(-LARGEST[dtype], LARGEST[dtype]).to(dtype)
    table = torch.tensor(MEANING[HIF8]).nan_to_num(nan=torch.inf)
    finite = torch.where(table.isfinite(), table, torch.inf)
    distance = (finite - y.double().reshape(-1, 1)).abs()
    near = distance == distance.amin(1, keepdim=True)
    return torch.where(near, finite.abs() + 1, 0).argmax(1).reshape(y.shape).to(torch.uint8)


def by_blocks(
    x: T, ends: list[int], dtype: Any, block: tuple[int, int], least: float = 0, largest: float = 0
) -> list[T]:
    """Block by block of each group of each batch; nothing of the scales that no group has."""
    batches = x.float().reshape(-1, *x.shape[-2:])
    rows, columns = block
    scales = torch.full((len(batches), x.size(-2) // rows + len(ends), -(-x.size(-1) // columns)), torch.nan)
    y = torch.zeros_like(batches)
    for n, batch in enumerate(batches):
        for number, (start, end) in enumerate(itertools.pairwise([0, *ends])):
            for i, j in itertools.product(range(start, end, rows), range(0, x.size(-1), columns)):
                part = slice(i, min(i + rows, end)), slice(j, j + columns)
                scale = batch[part].abs().max() / (largest or LARGEST[dtype])
                scale = torch.minimum(scale, torch.tensor(1 / least)) if least else scale
                y[n][part] = batch[part] / scale if scale else 0
                scales[n, start // rows + number + (i - start) // rows, j // columns] = scale
    return [nearest(y, dtype).reshape(x.shape), scales.reshape(*x.shape[:-2], *scales.shape[1:])]


@pytest.mark.parametrize("source", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("dtype", LARGEST)
@pytest.mark.parametrize(
    ("shape", "ends", "block"),
    [
        ((5, 130), [2, 2, 5], (1, 128)),
        ((2, 300, 70), [130, 300], (128, 64)),
        ((600, 200), [10, 600], (256, 192)),
        ((4, 6), [4], (512, 256)),
    ],
)
def test_blocks_of_groups(source: torch.dtype, dtype: Any, shape: Any, ends: list[int], block: tuple[int, int]) -> None:
    x = (torch.randn(shape) * torch.exp(3 * torch.randn(*shape[:-1], 1))).clamp(-6e4, 6e4).to(source)
    x[..., : ends[0], :64] = 0
    expected = by_blocks(x, ends, dtype, block)

    def quantized(x: T, ends: T) -> Any:
        mode = "round" if dtype == HIF8 else "rint"
        return torch_npu.npu_grouped_dynamic_block_quant(
            x, ends, dst_type=dtype, round_mode=mode, row_block_size=block[0], col_block_size=block[1]
        )

    for mode in ["eager", "captured", "npugraph_ex"] + ([] if dtype == HIF8 else ["ge"]):
        y, scales = run(mode, quantized, (x, torch.tensor(ends, dtype=torch.int32)))
        known = ~expected[1].isnan()
        assert scales.shape == expected[1].shape
        scales = torch.where(known, scales.cpu(), torch.nan)
        assert_equal([y.view(torch.uint8), scales], [expected[0].view(torch.uint8), expected[1]], mode)


@pytest.mark.parametrize(
    ("dtype", "least", "largest"), [(E4M3, 2.0, 0.0), (E5M2, 5e4, 0.0), (HIF8, 0.0, 15.0), (HIF8, 0.0, 224.0)]
)
def test_bounds_of_scales(dtype: Any, least: float, largest: float) -> None:
    """1 / min_scale is the largest scale: what it does not suit is cut."""
    x, ends = (torch.randn(4, 64) * torch.tensor([[1.0], [100.0], [1000.0], [10.0]])).half(), [1, 4]
    check(
        lambda x, ends: torch_npu.npu_grouped_dynamic_block_quant(
            x,
            ends,
            dst_type=dtype,
            min_scale=least,
            dst_type_max=largest,
            round_mode="round" if dtype == HIF8 else "rint",
            row_block_size=1,
            col_block_size=64,
        )[0].view(torch.uint8),
        (x, torch.tensor(ends, dtype=torch.int32)),
        by_blocks(x, ends, dtype, (1, 64), least, largest)[0].view(torch.uint8),
        "eager",
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"dst_type": HIF8}, "expected 35 or 36 with rint, or round with 34"),
        ({"dst_type": HIF8, "round_mode": "hybrid"}, "hybrid, which is documented by its name alone"),
        ({"dst_type": E4M3, "round_mode": "round"}, "expected 35 or 36 with rint"),
        ({"dst_type": HIF8, "round_mode": "round", "min_scale": 0.5}, "min_scale 0.5 with hifloat8"),
        ({"dst_type_max": 15.0}, "dst_type_max 15.0 with dst_type 35"),
        ({"row_block_size": 64}, "row_block_size 64"),
        ({"col_block_size": 32}, "col_block_size 32"),
        ({"ends": [2, 5]}, "must not fall, and end with the number of rows, 4"),
        ({"ends": [3, 2, 4]}, "must not fall, and end with the number of rows, 4"),
    ],
)
def test_blocks_that_are_refused(options: dict[str, Any], text: str) -> None:
    ends = torch.tensor(options.pop("ends", [1, 4]), dtype=torch.int32)
    with pytest.raises(RuntimeError, match=text):
        torch_npu.npu_grouped_dynamic_block_quant(torch.ones(4, 64).half().npu(), ends.npu(), **options)


def test_the_first_version_of_the_function() -> None:
    """Programs in C++ call it; torch_npu takes the second where there is one."""
    x, ends = torch.randn(5, 64).half(), [2, 5]
    y, scales = torch.empty(5, 64, dtype=E4M3), torch.empty(7, 1)
    arguments = [x, torch.tensor(ends, dtype=torch.int32), 0.0, "rint", 36, 1, 64, 0, y, scales]
    prepare("GroupedDynamicBlockQuant", arguments)()
    expected = by_blocks(x, ends, E4M3, (1, 64))
    known = ~expected[1].isnan()
    assert_equal([y, scales[known]], [expected[0], expected[1][known]], "aclnn")


@pytest.mark.parametrize("source", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("dtype", [E4M3, E5M2])
@pytest.mark.parametrize("shape", [(7,), (2, 3, 5)])
def test_the_largest_of_all(source: torch.dtype, dtype: Any, shape: tuple[int, ...]) -> None:
    x, scale = (torch.randn(shape) * 100).to(source), torch.tensor([7.0])
    check(
        lambda x, s: torch_npu.npu_quant_max(x, s, dst_dtype=dtype),
        (x, scale),
        [nearest(x.float() * 7, dtype), x.abs().max().reshape(1)],
        "eager captured npugraph_ex ge",
    )


@pytest.mark.parametrize("dtype", [E4M3, E5M2])
@pytest.mark.parametrize("ends", [[5], [1, 3, 5]])
def test_the_largest_of_each_group(dtype: Any, ends: list[int]) -> None:
    x, scale = torch.randn(5, 4, 2).half(), torch.rand(len(ends)) * 9
    groups = list(itertools.pairwise([0, *ends]))
    y = torch.cat([x[a:b].float() * s for (a, b), s in zip(groups, scale, strict=True)])
    check(
        lambda x, s, ends: torch_npu.npu_quant_max(x, s, dst_dtype=dtype, group_list=ends),
        (x, scale, torch.tensor(ends)),
        [nearest(y, dtype), torch.stack([x[a:b].abs().max() for a, b in groups])],
        "eager captured npugraph_ex ge",
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"dst_dtype": HIF8, "round_mode": "round"}, "hifloat8.* by given scales"),
        ({"round_mode": "floor"}, "round_mode 'floor'"),
        ({"scale": torch.ones(2)}, r"scale of shape \(2,\)"),
        ({"x": torch.ones(0, 3)}, "has no elements"),
        (
            {"scale": torch.ones(2), "group_list": torch.tensor([2, 5])},
            "must not fall, and end with the number of rows, 4",
        ),
        ({"scale": torch.ones(3), "group_list": torch.tensor([2, 2, 4])}, r"groups of rows \(2, 2\) are empty"),
        ({"scale": torch.ones(3), "group_list": torch.tensor([2, 4])}, "for 2 groups"),
    ],
)
def test_scales_that_are_refused(options: dict[str, Any], text: str) -> None:
    given = {"x": torch.ones(4, 3), "scale": torch.ones(1), **options}
    with pytest.raises(RuntimeError, match=text):
        torch_npu.npu_quant_max(**{k: v.npu() if isinstance(v, T) else v for k, v in given.items()})
