"""What rotated rectangles share, by cutting one along the other's sides (Sutherland and Hodgman).

Documented: https://gitcode.com/Ascend/op-plugin, docs/zh/custom_APIs/torch_npu (npu_rotated_overlaps, npu_rotated_iou);
that angles are degrees
follows from the numbers that its tests (test_rotated_overlaps.py, test_rotated_iou.py) expect of a device.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch_npu
from operator_modes import check

T = torch.Tensor
Point = tuple[float, float]

pytestmark = pytest.mark.filterwarnings("ignore:torch_npu.npu_rotated")


def corners(box: list[float], trans: bool) -> list[Point]:
    x, y, w, h, angle = box
    if trans:
        x, y, w, h = (x + w) / 2, (y + h) / 2, w - x, h - y
    turn = math.radians(angle)
    found = []
    for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
        along, across = a * w / 2, b * h / 2
        found.append(
            (x + along * math.cos(turn) - across * math.sin(turn), y + along * math.sin(turn) + across * math.cos(turn))
        )
    return found


def side(a: Point, b: Point, p: Point) -> float:
    return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])


def shared(a: list[Point], b: list[Point]) -> float:
    for start, end in zip(b, [*b[1:], b[0]], strict=True):
        kept: list[Point] = []
        for p, q in zip(a, [*a[1:], *a[:1]], strict=True):
            at_p, at_q = side(start, end, p), side(start, end, q)
            if at_p >= 0:
                kept.append(p)
            if at_p * at_q < 0:
                t = at_p / (at_p - at_q)
                kept.append((p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])))
        a = kept
    return abs(sum(p[0] * q[1] - p[1] * q[0] for p, q in zip(a, [*a[1:], *a[:1]], strict=True))) / 2


def drawn(batch: int, count: int, trans: bool) -> T:
    center, size = 30 + 10 * torch.rand(batch, count, 2), 1 + 15 * torch.rand(batch, count, 2)
    angle = 360 * torch.rand(batch, count, 1) - 180
    return torch.cat([center, center + size if trans else size, angle], -1)


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("is_iou", [False, True])
def test_pairs(trans: bool, is_iou: bool) -> None:
    a, b = drawn(2, 5, trans), drawn(2, 4, trans)
    a[0, 0] = b[0, 0]  # the same
    a[0, 1] = b[0, 1] + torch.tensor([100.0, 0, 100, 0, 0] if trans else [100.0, 0, 0, 0, 0])  # far away
    expected = torch.zeros(2, 5, 4)
    for n, i, j in np.ndindex(2, 5, 4):
        one, other = corners(a[n, i].tolist(), trans), corners(b[n, j].tolist(), trans)
        areas = [math.dist(p[0], p[1]) * math.dist(p[1], p[2]) for p in (one, other)]
        common = shared(one, other)
        expected[n, i, j] = common / (sum(areas) - common) if is_iou else common
    operator = torch_npu.npu_rotated_iou if is_iou else torch_npu.npu_rotated_overlaps
    check(lambda a, b: operator(a, b, trans), (a, b), expected, "eager")


def as_on_a_device(shapes: list[list[int]], least: int) -> list[T]:
    """What the tests of op-plugin draw."""
    rng, found = np.random.RandomState(1234), []
    for batch, count in shapes:
        center = rng.uniform(least, 60, [batch, count, 2]).astype(np.float32)
        size, angle = rng.randint(1, 20, size=[batch, count, 2]), rng.randint(-180, 180, size=[batch, count, 1])
        found.append(torch.from_numpy(np.concatenate([center, size, angle], -1).astype(np.float32)))
    return found


def test_numbers_of_a_device() -> None:
    a, b = (t.npu() for t in as_on_a_device([[1, 3], [1, 2]], 30))
    expected = torch.zeros(1, 3, 2)
    expected[0, 0, 1] = 10.289731
    torch.testing.assert_close(torch_npu.npu_rotated_overlaps(a, b).cpu(), expected, rtol=1e-4, atol=1e-4)
    a, b = (t.npu() for t in as_on_a_device([[4, 2], [4, 3]], 20))
    expected = torch.zeros(4, 2, 3)
    expected[0, 0, 1], expected[2, 1, 0], expected[2, 1, 1] = 0.00045966, 0.00600622, 0.10504241
    torch.testing.assert_close(torch_npu.npu_rotated_iou(a, b).cpu(), expected, rtol=1e-3, atol=1e-4)


def test_what_is_refused() -> None:
    a = drawn(1, 2, False).npu()
    for options in ({"mode": 1}, {"is_cross": False}, {"e_threshold": 0.5}):
        with pytest.raises(RuntimeError, match="are not documented together"):
            torch_npu.npu_rotated_iou(a, a, **options)
