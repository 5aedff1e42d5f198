"""Overlaps of boxes and their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

#: Smallest addition that keeps denominators from being zero in the overlaps used by losses.
_TINY = 1e-9


@host_kernel("Iou")
def iou(bboxes: T, gtboxes: T, *, mode: str = "iou", eps: float = 1.0, aligned: bool = False) -> T:
    """Compute overlaps, a row for each ground truth and a column for each box.

    ``eps`` is added to the sides of the boxes, not to those of the intersection.
    """
    if aligned:
        raise ValueError("aligned=True is not supported; False is")
    if mode not in ("iou", "iof"):
        raise ValueError(f"mode '{mode}': valid are iou, iof")
    for name, boxes in (("bboxes", bboxes), ("gtboxes", gtboxes)):
        if boxes.dim() != 2 or boxes.size(1) != 4:
            raise ValueError(f"{name} of shape {tuple(boxes.shape)}: valid is (count, 4)")
    x1, y1, x2, y2 = bboxes.float().unbind(1)
    gx1, gy1, gx2, gy2 = gtboxes.float()[:, None].unbind(2)
    shared = _length(x1, x2, gx1, gx2) * _length(y1, y2, gy1, gy2)
    truth = (gx2 - gx1 + eps) * (gy2 - gy1 + eps)
    whole = truth if mode == "iof" else truth + (x2 - x1 + eps) * (y2 - y1 + eps) - shared
    return (shared / whole).to(bboxes.dtype)


def _length(first: T, last: T, other_first: T, other_last: T) -> T:
    """Return the length that two intervals share."""
    return (torch.minimum(last, other_last) - torch.maximum(first, other_first)).clamp(min=0)


class _Edges(NamedTuple):
    """Edges of boxes as coordinates."""

    x1: T
    y1: T
    x2: T
    y2: T

    @classmethod
    def of(cls, boxes: T, is_centered: bool) -> _Edges:
        """Return the edges of boxes, a row for each number: center, width and height, or the corners."""
        if not is_centered:
            return cls(*boxes)
        x, y, width, height = boxes
        return cls(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


class _Overlap(NamedTuple):
    """Common area of two sets of boxes."""

    iou: T
    union: T
    #: Width and height of the enclosing box.
    width: T
    height: T
    box: _Edges
    truth: _Edges

    @classmethod
    def of(cls, bboxes: T, gtboxes: T, is_centered: bool) -> _Overlap:
        a, b = _Edges.of(bboxes, is_centered), _Edges.of(gtboxes, is_centered)
        shared = _length(a.x1, a.x2, b.x1, b.x2) * _length(a.y1, a.y2, b.y1, b.y2)
        union = (a.x2 - a.x1) * (a.y2 - a.y1) + (b.x2 - b.x1) * (b.y2 - b.y1) - shared + _TINY
        width = torch.maximum(a.x2, b.x2) - torch.minimum(a.x1, b.x1)
        height = torch.maximum(a.y2, b.y2) - torch.minimum(a.y1, b.y1)
        return cls(shared / union, union, width, height, a, b)

    def distance(self) -> T:
        """Return the squared distance of the centers, relative to the squared diagonal of the enclosing box."""
        a, b = self.box, self.truth
        square = ((b.x1 + b.x2 - a.x1 - a.x2) ** 2 + (b.y1 + b.y2 - a.y1 - a.y2) ** 2) / 4
        return square / (self.width**2 + self.height**2 + _TINY)


def _paired(bboxes: T, gtboxes: T, is_cross: bool, mode: str) -> tuple[T, T]:
    """Return both sets of boxes, a row for each number, shaped to broadcast to the result."""
    if mode != "iou":
        raise ValueError(f"mode '{mode}' is not supported; iou is")
    for name, boxes in (("bboxes", bboxes), ("gtboxes", gtboxes)):
        if boxes.dim() != 2 or boxes.size(0) != 4:
            raise ValueError(f"{name} of shape {tuple(boxes.shape)}: valid is (4, count)")
    if not is_cross and bboxes.shape != gtboxes.shape:
        raise ValueError(
            f"{bboxes.size(1)} boxes and {gtboxes.size(1)} of ground truth: without is_cross they are pairs"
        )
    return bboxes[:, None], gtboxes[:, :, None] if is_cross else gtboxes[:, None]


def _giou(bboxes: T, gtboxes: T, is_centered: bool) -> T:
    overlap = _Overlap.of(bboxes, gtboxes, is_centered)
    enclosing = overlap.width * overlap.height
    return overlap.iou - (enclosing - overlap.union) / enclosing


def _diou(bboxes: T, gtboxes: T, is_centered: bool) -> T:
    overlap = _Overlap.of(bboxes, gtboxes, is_centered)
    return overlap.iou - overlap.distance()


@host_kernel("GIoU")
def giou(bboxes: T, gtboxes: T, *, trans: bool = False, is_cross: bool = True, mode: str = "iou") -> T:
    """Compute generalized IoU (https://arxiv.org/abs/1902.09630)."""
    return _giou(*_paired(bboxes, gtboxes, is_cross, mode), trans)


@host_kernel("DIoU")
def diou(bboxes: T, gtboxes: T, *, trans: bool = False, is_cross: bool = True, mode: str = "iou") -> T:
    """Compute distance IoU (https://arxiv.org/abs/1911.08287)."""
    return _diou(*_paired(bboxes, gtboxes, is_cross, mode), trans)


@host_kernel("CIoU", ignores=("atan_sub_flag",))
def ciou(bboxes: T, gtboxes: T, *, trans: bool = False, is_cross: bool = True, mode: str = "iou") -> tuple[T, T]:
    """Compute complete IoU (https://arxiv.org/abs/1911.08287), and the difference of the angles in it."""
    overlap = _Overlap.of(*_paired(bboxes, gtboxes, is_cross, mode), trans)
    angle = _angle(overlap.truth) - _angle(overlap.box)
    shape = 4 / math.pi**2 * angle**2
    return overlap.iou - overlap.distance() - shape * shape / (1 + _TINY - overlap.iou + shape), angle


def _angle(box: _Edges) -> T:
    return torch.atan((box.x2 - box.x1) / (box.y2 - box.y1 + _TINY))


@host_kernel("GIoUGrad")
def giou_grad(
    dy: T, bboxes: T, gtboxes: T, *, trans: bool = False, is_cross: bool = True, mode: str = "iou"
) -> tuple[T, T]:
    overlap = _Overlap.of(*_paired(bboxes, gtboxes, _not_crossed(is_cross), mode), trans)
    enclosing = overlap.width * overlap.height
    of_enclosing = -overlap.union / enclosing**2
    hull = (of_enclosing * overlap.height, of_enclosing * overlap.width)
    return _pulled_back(overlap, dy, trans, 1 / enclosing, hull, torch.zeros_like(enclosing))


@host_kernel("DIoUGrad")
def diou_grad(
    dy: T, bboxes: T, gtboxes: T, *, trans: bool = False, is_cross: bool = True, mode: str = "iou"
) -> tuple[T, T]:
    overlap = _Overlap.of(*_paired(bboxes, gtboxes, _not_crossed(is_cross), mode), trans)
    diagonal = overlap.width**2 + overlap.height**2 + _TINY
    of_diagonal = overlap.distance() / diagonal
    hull = (2 * overlap.width * of_diagonal, 2 * overlap.height * of_diagonal)
    return _pulled_back(overlap, dy, trans, torch.zeros_like(diagonal), hull, -1 / diagonal)


def _not_crossed(is_cross: bool) -> bool:
    if is_cross:
        raise ValueError("is_cross=True has no gradient; False has")
    return False


def _pulled_back(
    overlap: _Overlap, dy: T, is_centered: bool, of_union: T, of_hull: tuple[T, T], of_square: T
) -> tuple[T, T]:
    """Return the gradients of both sets of boxes.

    Args:
        overlap: the boxes, (1, count).
        dy: the result's gradient.
        is_centered: whether boxes are a center, a width and a height.
        of_union: derivative of the result by the union, other than through the IoU.
        of_hull: derivatives by the width and height of the enclosing box.
        of_square: derivative by the squared distance of the centers.
    """
    a, b, union = overlap.box, overlap.truth, overlap.union
    of_union = of_union - overlap.iou / union
    of_shared = 1 / union - of_union  # the union has what both share but once
    sides = ((a.x1, a.x2, b.x1, b.x2), (a.y1, a.y2, b.y1, b.y2))
    shared = [_length(*side) for side in sides]
    by_side = []
    for side, hull, across, n in zip(sides, of_hull, reversed(sides), (1, 0), strict=True):
        grads = _ends_grad(side, of_shared * shared[n] * (shared[1 - n] > 0), hull)
        first, last, truth_first, truth_last = side
        moved = of_square * (truth_first + truth_last - first - last) / 2
        areas = [of_union * (across[1] - across[0]), of_union * (across[3] - across[2])]
        more = [-areas[0] - moved, areas[0] - moved, -areas[1] + moved, areas[1] + moved]
        by_side.append([dy.reshape(1, -1) * (grad + other) for grad, other in zip(grads, more, strict=True)])
    (x1, x2, u1, u2), (y1, y2, v1, v2) = by_side
    found = []
    for left, top, right, bottom in ((x1, y1, x2, y2), (u1, v1, u2, v2)):
        rows = [left, top, right, bottom]
        if is_centered:
            rows = [left + right, top + bottom, (right - left) / 2, (bottom - top) / 2]
        found.append(torch.cat(rows))
    return found[0], found[1]


def _ends_grad(side: Sequence[T], of_shared: T, of_hull: T) -> list[T]:
    """Return the gradients of the ends of two intervals; ties count half.

    They come from the gradients of the shared length and of the enclosing length.
    """
    first, last, other_first, other_last = side
    is_later = (first > other_first) + 0.5 * (first == other_first)
    is_sooner = (last < other_last) + 0.5 * (last == other_last)
    return [
        -of_shared * is_later - of_hull * (1 - is_later),
        of_shared * is_sooner + of_hull * (1 - is_sooner),
        -of_shared * (1 - is_later) - of_hull * is_later,
        of_shared * (1 - is_sooner) + of_hull * is_sooner,
    ]
