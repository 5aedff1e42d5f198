"""Boxes in images: overlaps and their gradients, encodings, suppression of those that overlap, and features of regions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from ascend_graph.host.ops.registry import host_kernel

T = torch.Tensor

#: What keeps denominators from being zero in the overlaps that losses are made of.
_TINY = 1e-9


@host_kernel("Iou")
def iou(bboxes: T, gtboxes: T, *, mode: str = "iou", eps: float = 1.0, aligned: bool = False) -> T:
    """Row by ground truth, column by box. ``eps`` is added to the sides of the boxes, not to those of what they share."""
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
    """How much two intervals share."""
    return (torch.minimum(last, other_last) - torch.maximum(first, other_first)).clamp(min=0)


class _Edges(NamedTuple):
    """Boxes by the places of their edges."""

    x1: T
    y1: T
    x2: T
    y2: T

    @classmethod
    def of(cls, boxes: T, is_centred: bool) -> _Edges:
        """Of a row for each number: centre, width and height, or the corners."""
        if not is_centred:
            return cls(*boxes)
        x, y, width, height = boxes
        return cls(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


class _Overlap(NamedTuple):
    """What two sets of boxes have in common."""

    iou: T
    union: T
    #: Width and height of what encloses both.
    width: T
    height: T
    box: _Edges
    truth: _Edges

    @classmethod
    def of(cls, bboxes: T, gtboxes: T, is_centred: bool) -> _Overlap:
        a, b = _Edges.of(bboxes, is_centred), _Edges.of(gtboxes, is_centred)
        shared = _length(a.x1, a.x2, b.x1, b.x2) * _length(a.y1, a.y2, b.y1, b.y2)
        union = (a.x2 - a.x1) * (a.y2 - a.y1) + (b.x2 - b.x1) * (b.y2 - b.y1) - shared + _TINY
        width = torch.maximum(a.x2, b.x2) - torch.minimum(a.x1, b.x1)
        height = torch.maximum(a.y2, b.y2) - torch.minimum(a.y1, b.y1)
        return cls(shared / union, union, width, height, a, b)

    def distance(self) -> T:
        """The square of the centres' distance, in squares of the diagonal of what encloses both."""
        a, b = self.box, self.truth
        square = ((b.x1 + b.x2 - a.x1 - a.x2) ** 2 + (b.y1 + b.y2 - a.y1 - a.y2) ** 2) / 4
        return square / (self.width**2 + self.height**2 + _TINY)


def _paired(bboxes: T, gtboxes: T, is_cross: bool, mode: str) -> tuple[T, T]:
    """Both with a row for each number, shaped so that they broadcast to the result."""
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


def _giou(bboxes: T, gtboxes: T, is_centred: bool) -> T:
    overlap = _Overlap.of(bboxes, gtboxes, is_centred)
    enclosing = overlap.width * overlap.height
    return overlap.iou - (enclosing - overlap.union) / enclosing


def _diou(bboxes: T, gtboxes: T, is_centred: bool) -> T:
    overlap = _Overlap.of(bboxes, gtboxes, is_centred)
    return overlap.iou - overlap.distance()


@host_kernel("GIoU")
def giou(bboxes: T, gtboxes: T, *, trans: bool = False, is_cross: bool = True, mode: str = "iou") -> T:
    """Generalized IoU (https://arxiv.org/abs/1902.09630)."""
    return _giou(*_paired(bboxes, gtboxes, is_cross, mode), trans)


@host_kernel("DIoU")
def diou(bboxes: T, gtboxes: T, *, trans: bool = False, is_cross: bool = True, mode: str = "iou") -> T:
    """Distance-IoU (https://arxiv.org/abs/1911.08287)."""
    return _diou(*_paired(bboxes, gtboxes, is_cross, mode), trans)


@host_kernel("CIoU", ignores=("atan_sub_flag",))
def ciou(bboxes: T, gtboxes: T, *, trans: bool = False, is_cross: bool = True, mode: str = "iou") -> tuple[T, T]:
    """Complete IoU (https://arxiv.org/abs/1911.08287), and the difference of the angles in it."""
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
    overlap: _Overlap, dy: T, is_centred: bool, of_union: T, of_hull: tuple[T, T], of_square: T
) -> tuple[T, T]:
    """The gradients of both sets of boxes.

    Args:
        overlap: the boxes, (1, count).
        dy: the result's gradient.
        is_centred: whether boxes are a centre, a width and a height.
        of_union: what the result grows by with the union, other than by the IoU.
        of_hull: with width and height of what encloses both.
        of_square: with the square of the centres' distance.
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
        if is_centred:
            rows = [left + right, top + bottom, (right - left) / 2, (bottom - top) / 2]
        found.append(torch.cat(rows))
    return found[0], found[1]


def _ends_grad(side: Sequence[T], of_shared: T, of_hull: T) -> list[T]:
    """The gradients of the ends of two intervals, from those of what they share and of what encloses them; ties count half."""
    first, last, other_first, other_last = side
    is_later = (first > other_first) + 0.5 * (first == other_first)
    is_sooner = (last < other_last) + 0.5 * (last == other_last)
    return [
        -of_shared * is_later - of_hull * (1 - is_later),
        of_shared * is_sooner + of_hull * (1 - is_sooner),
        -of_shared * (1 - is_later) - of_hull * is_later,
        of_shared * (1 - is_sooner) + of_hull * is_sooner,
    ]


@host_kernel("BoundingBoxEncode")
def bounding_box_encode(
    anchor_box: T, ground_truth_box: T, *, means: Sequence[float] = (0.0,) * 4, stds: Sequence[float] = (1.0,) * 4
) -> T:
    """Sides are inclusive: a box from 1 to 3 is 3 wide."""
    place, side = _inclusive(anchor_box.float())
    truth_place, truth_side = _inclusive(ground_truth_box.float())
    deltas = torch.cat([(truth_place - place) / side, (truth_side / side).log()], 1)
    return ((deltas - deltas.new_tensor(means)) / deltas.new_tensor(stds)).to(anchor_box.dtype)


def _inclusive(boxes: T) -> tuple[T, T]:
    """Centres and sides of boxes that have their last pixels."""
    first, last = boxes.split(2, 1)
    return (first + last) / 2, last - first + 1


@host_kernel("BoundingBoxDecode")
def bounding_box_decode(
    rois: T,
    deltas: T,
    *,
    max_shape: Sequence[int],
    means: Sequence[float] = (0.0,) * 4,
    stds: Sequence[float] = (1.0,) * 4,
    wh_ratio_clip: float = 0.016,
) -> T:
    """What ``BoundingBoxEncode`` encoded, within an image of ``max_shape``, its height and width; no side grows by more than
    1 / ``wh_ratio_clip``."""
    place, side = _inclusive(rois.float())
    moved = deltas.float() * deltas.new_tensor(stds).float() + deltas.new_tensor(means).float()
    most = abs(math.log(wh_ratio_clip))
    place = place + side * moved[:, :2]
    side = side * moved[:, 2:].clamp(-most, most).exp()
    height, width = max_shape
    corners = torch.cat([place - side / 2 + 0.5, place + side / 2 - 0.5], 1)
    limits = corners.new_tensor([width - 1, height - 1] * 2)
    return torch.minimum(corners.clamp(min=0), limits).to(rois.dtype)


@host_kernel("YoloBoxesEncode", ignores=("performance_mode",))
def yolo_boxes_encode(anchor_boxes: T, gt_bboxes: T, stride: T) -> T:
    """As MMDetection's YOLOBBoxCoder: the centre within a cell of the grid, and logarithms of sides."""
    least = 1e-6
    first, last = anchor_boxes.float().split(2, 1)
    truth_first, truth_last = gt_bboxes.float().split(2, 1)
    moved = ((truth_first + truth_last) / 2 - (first + last) / 2) / stride.float()[:, None] + 0.5
    sides = ((truth_last - truth_first) / (last - first)).clamp(min=least).log()
    return torch.cat([moved.clamp(least, 1 - least), sides], 1).to(gt_bboxes.dtype)


@host_kernel("AnchorResponseFlags")
def anchor_response_flags(
    gt_bboxes: T, *, featmap_size: Sequence[int], strides: Sequence[int], num_base_anchors: int
) -> T:
    height, width = featmap_size
    first, last = gt_bboxes.float().split(2, 1)
    cell = ((first + last) / 2 / gt_bboxes.new_tensor(strides).float()).floor().long()
    x, y = cell[:, 0].clamp(0, width - 1), cell[:, 1].clamp(0, height - 1)
    flags = torch.zeros(height * width, dtype=torch.uint8, device=gt_bboxes.device)
    flags = flags.index_fill(0, y * width + x, 1)
    return flags.repeat_interleave(num_base_anchors)


@host_kernel("NonMaxSuppressionV4", values=("max_output_size",), ignores=("pad_to_max_output_size",))
def non_max_suppression_v4(
    boxes: T, scores: T, max_output_size: T, iou_threshold: T, score_threshold: T
) -> tuple[T, T]:
    """Always as many places as may be selected, with zeros behind the valid ones."""
    most = int(max_output_size)
    kept = _suppressed(boxes.float(), scores.float(), float(iou_threshold), float(score_threshold), most)
    selected = torch.zeros(most, dtype=torch.int32)
    selected[: len(kept)] = torch.tensor(kept, dtype=torch.int32)
    return selected, torch.tensor(len(kept), dtype=torch.int32)


def _suppressed(boxes: T, scores: T, iou_threshold: float, score_threshold: float, most: int) -> list[int]:
    """The boxes with scores above the threshold, best first, without those that overlap a better one by more than the other."""
    low, high = torch.minimum(boxes[:, :2], boxes[:, 2:]), torch.maximum(boxes[:, :2], boxes[:, 2:])
    areas = (high - low).prod(1)
    kept: list[int] = []
    for place in scores.argsort(descending=True, stable=True).tolist():
        if len(kept) == most or not scores[place] > score_threshold:
            break
        shared = (torch.minimum(high[place], high[kept]) - torch.maximum(low[place], low[kept])).clamp(min=0).prod(1)
        overlaps = shared / (areas[place] + areas[kept] - shared).clamp(min=1e-12)
        if not (overlaps > iou_threshold).any():
            kept.append(place)
    return kept


@host_kernel("BatchMultiClassNonMaxSuppression")
def batch_multi_class_non_max_suppression(
    boxes: T,
    scores: T,
    clip_window: T | None = None,
    num_valid_boxes: T | None = None,
    *,
    score_threshold: float,
    iou_threshold: float,
    max_size_per_class: int,
    max_total_size: int,
    change_coordinate_frame: bool = False,
    transpose_box: bool = False,
    image_size: Sequence[int] = (),
) -> tuple[T, T, T, T]:
    """The classes of each image by themselves, and then the best of all of them; zeros behind."""
    if clip_window is not None or num_valid_boxes is not None or change_coordinate_frame or image_size:
        raise ValueError("clip_window, num_valid_boxes, change_coordinate_frame and image_size are not supported")
    if transpose_box:
        boxes = boxes.permute(0, 3, 1, 2)
    count, classes = boxes.size(2), scores.size(2)
    if count not in (1, classes):
        raise ValueError(f"boxes for {count} classes, and scores for {classes}: valid are 1 and {classes}")
    places = (boxes.size(0), max_total_size)
    found = boxes.new_zeros(*places, 4), boxes.new_zeros(places), boxes.new_zeros(places)
    counts = torch.zeros(boxes.size(0), dtype=torch.int32, device=boxes.device)
    if boxes.is_meta:
        return *found, counts
    for image in range(boxes.size(0)):
        best = [
            (scores[image, place, kind], kind, boxes[image, place, kind if count > 1 else 0])
            for kind in range(classes)
            for place in _suppressed(
                boxes[image, :, kind if count > 1 else 0].float(),
                scores[image, :, kind].float(),
                iou_threshold,
                score_threshold,
                max_size_per_class,
            )
        ]
        best = sorted(best, key=lambda one: -float(one[0]))[:max_total_size]
        counts[image] = len(best)
        for n, (score, kind, box) in enumerate(best):
            found[0][image, n], found[1][image, n], found[2][image, n] = box, score, float(kind)
    return *found, counts


@host_kernel("ROIAlign")
def roi_align(
    features: T,
    rois: T,
    rois_n: T | None = None,
    *,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sample_num: int = 2,
    roi_end_mode: int = 1,
) -> T:
    """Averages of interpolated features (https://arxiv.org/abs/1703.06870). A region is its image's number and two corners."""
    image, rows, columns = _pooling(
        rois, rois_n, features.shape, spatial_scale, (pooled_height, pooled_width), sample_num, roi_end_mode
    )
    pooled = torch.einsum("nph,nchw,nqw->ncpq", rows, features.float()[image], columns)
    return pooled.to(features.dtype)


@host_kernel("ROIAlignGrad")
def roi_align_grad(
    ydiff: T,
    rois: T,
    rois_n: T | None = None,
    *,
    xdiff_shape: Sequence[int],
    pooled_width: int,
    pooled_height: int,
    spatial_scale: float,
    sample_num: int = 2,
    roi_end_mode: int = 1,
) -> T:
    image, rows, columns = _pooling(
        rois, rois_n, xdiff_shape, spatial_scale, (pooled_height, pooled_width), sample_num, roi_end_mode
    )
    spread = torch.einsum("nph,ncpq,nqw->nchw", rows, ydiff.float(), columns)
    return spread.new_zeros(tuple(xdiff_shape)).index_add(0, image, spread).to(ydiff.dtype)


def _pooling(
    rois: T, rois_n: T | None, shape: Sequence[int], scale: float, pooled: tuple[int, int], samples: int, mode: int
) -> tuple[T, T, T]:
    """Each region's image, and the weights of that image's rows and columns in what is pooled."""
    if rois_n is not None:
        raise ValueError("rois_n is reserved; null is supported")
    if mode not in (0, 2):
        raise ValueError(f"roi_end_mode={mode} is not supported; 0 (not aligned) and 2 (aligned as PyTorch does) are")
    if rois.dim() != 2 or rois.size(1) != 5:
        raise ValueError(f"rois of shape {tuple(rois.shape)}: valid is (count, 5), the image and two corners")
    image = rois[:, 0].long()
    if not rois.is_meta and rois.numel() and not 0 <= int(image.min()) <= int(image.max()) < shape[0]:
        raise ValueError(f"rois of image {int(image.min())} to {int(image.max())}: valid are 0 to {shape[0] - 1}")
    corners = rois[:, 1:].float() * scale - (0.5 if mode == 2 else 0.0)
    x1, y1, x2, y2 = corners.unbind(1)
    least = -math.inf if mode == 2 else 1.0  # a region that is not aligned is at least a pixel
    rows = _weights(y1, (y2 - y1).clamp(min=least), pooled[0], shape[2], samples)
    columns = _weights(x1, (x2 - x1).clamp(min=least), pooled[1], shape[3], samples)
    return image, rows, columns


def _weights(start: T, length: T, pooled: int, size: int, samples: int) -> T:
    """The part of each place in each pooled value, along one dimension: (regions, pooled, size).

    Averages of products are products of averages here, because the points of a region are a grid.
    """
    if samples == 0:  # as many as there are pixels, region by region
        counts = (length / pooled).ceil().long().clamp(min=1).tolist()
        parts = [_weights(start[n : n + 1], length[n : n + 1], pooled, size, count) for n, count in enumerate(counts)]
        return torch.cat(parts) if parts else start.new_zeros(0, pooled, size)
    points = (torch.arange(pooled * samples, device=start.device) + 0.5) / (pooled * samples)
    places = start[:, None] + length[:, None] * points
    inside = (places >= -1) & (places <= size)
    near = 1 - (places.clamp(0, size - 1)[..., None] - torch.arange(size, device=start.device)).abs()
    weights: T = near.clamp(min=0) * inside[..., None]
    return weights.reshape(len(start), pooled, samples, size).mean(2)


@host_kernel("RandomChoiceWithMask", data_dependent=True)
def random_choice_with_mask(x: T, *, count: int = 0, seed: int = 0, seed2: int = 0) -> tuple[T, T]:
    """Places that are true, in any order; zeros behind them, where the mask is false. Without seeds PyTorch's generator chooses."""
    generator = torch.Generator().manual_seed((seed2 << 32 ^ seed) % 2**63) if seed or seed2 else None
    places = x.nonzero()
    places = places[torch.randperm(len(places), generator=generator)][: count or None]
    chosen = torch.zeros(count or len(places), x.dim(), dtype=torch.int32)
    chosen[: len(places)] = places.int()
    return chosen, torch.arange(len(chosen)) < len(places)
