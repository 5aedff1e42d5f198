"""Encoding and suppression of boxes in images, and features of their regions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ascend_graph.host.kernels.checks import refuse_given
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


@host_kernel("BoundingBoxEncode")
def bounding_box_encode(
    anchor_box: T, ground_truth_box: T, *, means: Sequence[float] = (0.0,) * 4, stds: Sequence[float] = (1.0,) * 4
) -> T:
    """Encode boxes relative to anchors; sides are inclusive: a box from 1 to 3 is 3 wide."""
    place, side = _inclusive(anchor_box.float())
    truth_place, truth_side = _inclusive(ground_truth_box.float())
    deltas = torch.cat([(truth_place - place) / side, (truth_side / side).log()], 1)
    return ((deltas - deltas.new_tensor(means)) / deltas.new_tensor(stds)).to(anchor_box.dtype)


def _inclusive(boxes: T) -> tuple[T, T]:
    """Return centers and sides of boxes whose last pixels are inclusive."""
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
    """Decode the output of ``BoundingBoxEncode`` within an image of ``max_shape``, its height and width.

    No side grows by more than 1 / ``wh_ratio_clip``.
    """
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
    """Encode boxes as MMDetection's YOLOBBoxCoder: centers within a grid cell, and logarithms of sides."""
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
    """Select boxes; the result always has the maximum length, with zeros after the valid ones."""
    most = int(max_output_size)
    kept = _suppressed(boxes.float(), scores.float(), float(iou_threshold), float(score_threshold), most)
    selected = torch.zeros(most, dtype=torch.int32)
    selected[: len(kept)] = torch.tensor(kept, dtype=torch.int32)
    return selected, torch.tensor(len(kept), dtype=torch.int32)


def _suppressed(boxes: T, scores: T, iou_threshold: float, score_threshold: float, most: int) -> list[int]:
    """Return the boxes with scores above the threshold, best first.

    Boxes that overlap a better one by more than the other threshold are left out.
    """
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
    """Suppress boxes in each class of an image, then return the best of all classes; the rest is zeros."""
    refuse_given(
        "not supported",
        clip_window=clip_window,
        num_valid_boxes=num_valid_boxes,
        change_coordinate_frame=change_coordinate_frame,
        image_size=image_size,
    )
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
    """Average interpolated features of regions (https://arxiv.org/abs/1703.06870).

    A region is its image's number and two corners.
    """
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
    """Return each region's image, and the weights of that image's rows and columns in the pooled values."""
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
    """Return the weight of each position in each pooled value, along one dimension: (regions, pooled, size).

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
    """Return shuffled indices of true elements, padded with zeros, and a mask that is false in the padding.

    Without seeds PyTorch's generator chooses.
    """
    generator = torch.Generator().manual_seed((seed2 << 32 ^ seed) % 2**63) if seed or seed2 else None
    places = x.nonzero()
    places = places[torch.randperm(len(places), generator=generator)][: count or None]
    chosen = torch.zeros(count or len(places), x.dim(), dtype=torch.int32)
    chosen[: len(places)] = places.int()
    return chosen, torch.arange(len(chosen)) < len(places)
