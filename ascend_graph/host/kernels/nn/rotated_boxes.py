"""Intersections of rotated boxes: the area of the convex polygon that two rectangles share."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

_TINY = 1e-9


def _corners(boxes: T, trans: bool) -> tuple[T, T]:
    """Return the corners of [batch, 5, count] boxes in order, [batch, count, 4, 2], and the areas."""
    x, y, w, h, angle = boxes.double().unbind(1)
    if trans:
        x, y, w, h = (x + w) / 2, (y + h) / 2, w - x, h - y
    turn = torch.deg2rad(angle)
    cos, sin = turn.cos(), turn.sin()
    across = torch.stack([w * cos, w * sin], -1) / 2
    along = torch.stack([-h * sin, h * cos], -1) / 2
    center = torch.stack([x, y], -1)
    ends = [center + a * across + b * along for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    return torch.stack(ends, -2), (w * h).abs()


def _cross(a: T, b: T) -> T:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _inside(points: T, corners: T) -> T:
    """Return whether points, [..., n, 2], are in rectangles, [..., 4, 2], or on their edges."""
    first, second, last = corners[..., 0, :], corners[..., 1, :], corners[..., 3, :]
    found = torch.ones_like(points[..., 0], dtype=torch.bool)
    for side in (second - first, last - first):
        along = ((points - first.unsqueeze(-2)) * side.unsqueeze(-2)).sum(-1)
        size = side.square().sum(-1, keepdim=True)
        found &= (along >= -_TINY * size) & (along <= size * (1 + _TINY))
    return found


def shared_area(a: T, b: T) -> T:
    """Return the area shared by rectangles given by their corners, [..., 4, 2]."""
    of_a, of_b = a.roll(-1, -2) - a, b.roll(-1, -2) - b
    between = b.unsqueeze(-3) - a.unsqueeze(-2)
    slope = _cross(of_a.unsqueeze(-2), of_b.unsqueeze(-3))
    are_parallel = slope.abs() < _TINY
    divisor = torch.where(are_parallel, 1, slope)
    at_a, at_b = _cross(between, of_b.unsqueeze(-3)) / divisor, _cross(between, of_a.unsqueeze(-2)) / divisor
    meet = ~are_parallel & (at_a >= 0) & (at_a <= 1) & (at_b >= 0) & (at_b <= 1)
    crossings = a.unsqueeze(-2) + at_a.unsqueeze(-1) * of_a.unsqueeze(-2)
    points = torch.cat([crossings.flatten(-3, -2), a, b], -2)
    counted = torch.cat([meet.flatten(-2), _inside(a, b), _inside(b, a)], -1)
    # What does not count lies where a point that does count is, so that it adds no area.
    number = counted.long().argmax(-1)[..., None, None].expand(*points.shape[:-2], 1, 2)
    points = torch.where(counted.unsqueeze(-1), points, points.gather(-2, number))
    center = (points * counted.unsqueeze(-1)).sum(-2) / counted.sum(-1, keepdim=True).clamp(min=1)
    moved = points - center.unsqueeze(-2)
    order = torch.atan2(moved[..., 1], moved[..., 0]).argsort(-1).unsqueeze(-1).expand_as(moved)
    turned = moved.gather(-2, order)
    area = _cross(turned, turned.roll(-1, -2)).sum(-1).abs() / 2
    return torch.where(counted.any(-1), area, 0)


def _of_pairs(boxes: T, query_boxes: T, trans: bool) -> tuple[T, T, T]:
    for name, given in (("boxes", boxes), ("query_boxes", query_boxes)):
        if given.dim() != 3 or given.size(1) != 5 or given.size(0) != boxes.size(0):
            raise ValueError(f"{name} of shape {tuple(given.shape)}: [batch, 5, count] is expected")
    (a, of_a), (b, of_b) = _corners(boxes, trans), _corners(query_boxes, trans)
    pairs = torch.broadcast_tensors(a.unsqueeze(2), b.unsqueeze(1))
    return shared_area(*pairs), of_a.unsqueeze(2), of_b.unsqueeze(1)


@host_kernel("RotatedOverlaps")
def rotated_overlaps(boxes: T, query_boxes: T, *, trans: bool = False) -> T:
    """Return the area that each box shares with each other one; angles are degrees."""
    return _of_pairs(boxes, query_boxes, trans)[0].to(boxes.dtype)


@host_kernel("RotatedIou")
def rotated_iou(
    boxes: T,
    query_boxes: T,
    *,
    trans: bool = False,
    mode: str = "iou",
    is_cross: bool = True,
    v_threshold: float = 0.0,
    e_threshold: float = 0.0,
    value: float = 0.0,
) -> T:
    """Divide the results of RotatedOverlaps by the area of the union.

    ``value`` is torch_npu's name for both thresholds.
    """
    thresholds = [v_threshold, e_threshold, value]
    if mode != "iou" or not is_cross or any(thresholds):
        raise ValueError(
            f"mode {mode!r} is_cross {is_cross}, thresholds {thresholds} are not documented together; expected mode "
            "'iou', is_cross True and thresholds 0"
        )
    shared, of_a, of_b = _of_pairs(boxes, query_boxes, trans)
    union = of_a + of_b - shared
    return torch.where(union > 0, shared / union, 0).to(boxes.dtype)
