"""Boxes in images and features of regions, from the documents of op-plugin and of CANN's operators of computer vision.

https://gitcode.com/Ascend/op-plugin/tree/master/docs/zh/custom_APIs/torch_npu (npu_iou, npu_giou, npu_diou, npu_ciou,
npu_bounding_box_encode, npu_bounding_box_decode, npu_anchor_response_flags, npu_yolo_boxes_encode, npu_nms_v4,
npu_batch_nms,
npu_roi_align, npu_random_choice_with_mask), with the values that its tests print; formulas of
https://gitcode.com/cann/ops-cv/tree/master/objdetect (iou_v2, ciou, d_io_u_grad, g_io_u_grad, bounding_box_encode,
anchor_response_flags, batch_multi_class_non_max_suppression, roi_align, roi_align_grad).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import pytest
import torch
from operator_modes import check, listed, run

T = torch.Tensor
npu = torch.ops.npu
EAGER = "eager"
#: What torch_npu launches as a single operator, which no capture records.
SINGLE = "eager ge"


def corners(count: int, size: float = 20.0) -> T:
    """Boxes as two corners, which overlap here and there."""
    first = torch.rand(count, 2) * size
    return torch.cat([first, first + 1 + torch.rand(count, 2) * size / 2], 1)


def centered(count: int) -> T:
    """(4, count): centers, widths and heights."""
    return torch.cat([torch.rand(2, count) * 10, 1 + torch.rand(2, count) * 10])


def edges(box: T) -> tuple[T, T, T, T]:
    x, y, width, height = box
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def shared_area(a: tuple[T, ...], b: tuple[T, ...]) -> T:
    width = torch.min(a[2], b[2]) - torch.max(a[0], b[0])
    height = torch.min(a[3], b[3]) - torch.max(a[1], b[1])
    return width.clamp(0) * height.clamp(0)


def area(a: tuple[T, ...], more: float = 0.0) -> T:
    return (a[2] - a[0] + more) * (a[3] - a[1] + more)


def enclosing(a: tuple[T, ...], b: tuple[T, ...]) -> tuple[T, T]:
    return torch.max(a[2], b[2]) - torch.min(a[0], b[0]), torch.max(a[3], b[3]) - torch.min(a[1], b[1])


def iou(boxes: T, truth: T, mode: int) -> T:
    """The wheel computes in half precision, with 0.01 for ``eps``."""
    result = torch.zeros(len(truth), len(boxes))
    for (i, b), (j, a) in product(enumerate(truth.half().float()), enumerate(boxes.half().float())):
        shared = shared_area(tuple(a), tuple(b))
        whole = area(tuple(b), 0.01) if mode else area(tuple(a), 0.01) + area(tuple(b), 0.01) - shared
        result[i, j] = shared / whole
    return result.half().float()


def giou(box: T, truth: T) -> T:
    a, b = edges(box), edges(truth)
    shared = shared_area(a, b)
    union = area(a) + area(b) - shared
    width, height = enclosing(a, b)
    return (shared / union - (width * height - union) / (width * height))[:, None]


def overlap_and_distance(box: T, truth: T) -> tuple[T, T]:
    a, b = edges(box), edges(truth)
    shared = shared_area(a, b)
    width, height = enclosing(a, b)
    distance = (box[0] - truth[0]) ** 2 + (box[1] - truth[1]) ** 2
    return shared / (area(a) + area(b) - shared), distance / (width**2 + height**2)


def diou(box: T, truth: T) -> T:
    overlap, distance = overlap_and_distance(box, truth)
    return (overlap - distance)[None]


def ciou(box: T, truth: T) -> tuple[T, T]:
    overlap, distance = overlap_and_distance(box, truth)
    angle = torch.atan(truth[2] / truth[3]) - torch.atan(box[2] / box[3])
    v = 4 / math.pi**2 * angle**2
    return (overlap - distance - v / (1 - overlap + v) * v)[None], angle[None]


def with_gradients(function: Callable[[T, T], T]) -> Callable[[T, T], list[T]]:
    """The result and the gradients of both inputs."""

    def run(box: T, truth: T) -> list[T]:
        box, truth = box.detach().requires_grad_(), truth.detach().requires_grad_()
        result = function(box, truth)
        weights = torch.arange(1.0, result.numel() + 1, device=result.device).reshape(result.shape)
        return [result.detach(), *torch.autograd.grad((result * weights).sum(), [box, truth])]

    return run


def encoded(boxes: T, truth: T) -> T:
    """Sides that count both of their ends."""
    rows = []
    for (x1, y1, x2, y2), (u1, v1, u2, v2) in zip(boxes.tolist(), truth.tolist(), strict=True):
        width, height = x2 - x1 + 1, y2 - y1 + 1
        rows.append(
            [
                (((u1 + u2) / 2 - (x1 + x2) / 2) / width - 0.1) / 0.5,
                (((v1 + v2) / 2 - (y1 + y2) / 2) / height - 0.2) / 0.6,
                (math.log((u2 - u1 + 1) / width) - 0.3) / 0.7,
                (math.log((v2 - v1 + 1) / height) - 0.4) / 0.8,
            ]
        )
    return torch.tensor(rows)


MEANS_AND_STDS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]


def decoded(boxes: T, deltas: T, height: int, width: int, ratio: float) -> T:
    rows = []
    for (x1, y1, x2, y2), moved in zip(boxes.tolist(), deltas.tolist(), strict=True):
        dx, dy, dw, dh = (d * s + m for d, m, s in zip(moved, MEANS_AND_STDS[:4], MEANS_AND_STDS[4:], strict=True))
        w = (x2 - x1 + 1) * min(max(math.exp(dw), ratio), 1 / ratio)
        h = (y2 - y1 + 1) * min(max(math.exp(dh), ratio), 1 / ratio)
        x, y = (x1 + x2) / 2 + (x2 - x1 + 1) * dx, (y1 + y2) / 2 + (y2 - y1 + 1) * dy
        row = [x - (w - 1) / 2, y - (h - 1) / 2, x + (w - 1) / 2, y + (h - 1) / 2]
        rows.append([min(max(v, 0), m - 1) for v, m in zip(row, [width, height] * 2, strict=True)])
    return torch.tensor(rows)


def yolo_encoded(boxes: T, truth: T, stride: T) -> T:
    """https://github.com/open-mmlab/mmdetection: YOLOBBoxCoder.encode."""
    x, y, w, h = (
        (boxes[:, 0] + boxes[:, 2]) / 2,
        (boxes[:, 1] + boxes[:, 3]) / 2,
        boxes[:, 2] - boxes[:, 0],
        boxes[:, 3] - boxes[:, 1],
    )
    u, v, s, t = (
        (truth[:, 0] + truth[:, 2]) / 2,
        (truth[:, 1] + truth[:, 3]) / 2,
        truth[:, 2] - truth[:, 0],
        truth[:, 3] - truth[:, 1],
    )
    inside = [((p - q) / stride + 0.5).clamp(1e-6, 1 - 1e-6) for p, q in ((u, x), (v, y))]
    return torch.stack([*inside, *((p / q).clamp(min=1e-6).log() for p, q in ((s, w), (t, h)))], 1)


def responsible(boxes: T, height: int, width: int, stride: int, anchors: int) -> T:
    flags = torch.zeros(height, width, anchors, dtype=torch.uint8)
    for x1, y1, x2, y2 in boxes.tolist():
        row = min(max(math.floor((y1 + y2) / 2 / stride), 0), height - 1)
        flags[row, min(max(math.floor((x1 + x2) / 2 / stride), 0), width - 1)] = 1
    return flags.flatten()


def suppressed(boxes: T, scores: T, overlap: float, least: float, most: int) -> list[int]:
    """What is left when each box, best first, removes those that it overlaps by more than allowed."""
    left = [n for n in scores.argsort(descending=True).tolist() if scores[n] > least]
    kept = []
    while left and len(kept) < most:
        best, *left = left
        kept.append(best)
        a = tuple(boxes[best])
        shared = {n: shared_area(a, tuple(boxes[n])) for n in left}
        left = [n for n in left if shared[n] / (area(a) + area(tuple(boxes[n])) - shared[n]) <= overlap]
    return kept


def nms_v4(boxes: T, scores: T, overlap: T, least: T, most: int) -> tuple[T, T]:
    kept = suppressed(boxes, scores, float(overlap), float(least), most)
    return torch.tensor(kept + [0] * (most - len(kept)), dtype=torch.int32), torch.tensor(len(kept), dtype=torch.int32)


def batch_nms(boxes: T, scores: T, least: float, overlap: float, per_class: int, most: int) -> tuple[T, T, T, T]:
    images, _, shared, _ = boxes.shape
    result = torch.zeros(images, most, 4), torch.zeros(images, most), torch.zeros(images, most)
    counts = []
    for n in range(images):
        found = []
        for kind in range(scores.size(2)):
            own = boxes[n, :, kind if shared > 1 else 0]
            found += [
                (float(scores[n, k, kind]), kind, own[k])
                for k in suppressed(own, scores[n, :, kind], overlap, least, per_class)
            ]
        found = sorted(found, key=lambda one: -one[0])[:most]
        for place, (score, kind, box) in enumerate(found):
            result[0][n, place], result[1][n, place], result[2][n, place] = box, score, kind
        counts.append(len(found))
    return *result, torch.tensor(counts, dtype=torch.int32)


def interpolated(image: T, y: float, x: float) -> T:
    """All channels at a place between pixels; nothing a pixel outside."""
    height, width = image.shape[1:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return image.new_zeros(len(image))
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    down, across = y - top, x - left
    upper = image[:, top, left] * (1 - across) + image[:, top, right] * across
    lower = image[:, bottom, left] * (1 - across) + image[:, bottom, right] * across
    return upper * (1 - down) + lower * down


def roi_align(x: T, rois: T, scale: float, height: int, width: int, samples: int, mode: int) -> T:
    """Averages over the points of a grid in each part of a region."""
    regions = []
    for number, *place in rois.tolist():
        x1, y1, x2, y2 = (v * scale - (0.5 if mode == 2 else 0) for v in place)
        w, h = (x2 - x1, y2 - y1) if mode == 2 else (max(x2 - x1, 1), max(y2 - y1, 1))
        down, across = samples or max(math.ceil(h / height), 1), samples or max(math.ceil(w / width), 1)
        values = [
            interpolated(
                x[int(number)],
                y1 + h / height * (row + (i + 0.5) / down),
                x1 + w / width * (column + (j + 0.5) / across),
            )
            for row, column, i, j in product(range(height), range(width), range(down), range(across))
        ]
        regions.append(torch.stack(values, 1).reshape(-1, height, width, down * across).mean(-1))
    return torch.stack(regions)


def roi_align_gradient(grad: T, rois: T, *options: float, shape: tuple[int, ...]) -> T:
    x = torch.zeros(shape, requires_grad=True)
    return torch.autograd.grad(roi_align(x, rois, *options), x, grad)[0]


REGIONS = torch.tensor([[0, -2.0, 1.0, 9.0, 14.0], [1, 3.0, 4.0, 18.0, 11.0], [1, 20.0, 20.0, 40.0, 26.0]])


def chosen_once(x: T, count: int) -> T:
    """How often each place was chosen; and the places' number."""
    places, mask = npu.npu_random_choice_with_mask(x, count, 1, 0)
    places, mask = places.cpu().long(), mask.cpu()
    return torch.zeros(x.shape, dtype=torch.int64).index_put(tuple(places[mask].t()), torch.tensor(1), accumulate=True)


#: By name: the operator, its arguments, the reference, and the modes in which the wheel can run it.
CASES: dict[str, tuple[Callable, Callable[[], list], Callable, str]] = {
    "npu_iou": (lambda a, b: npu.npu_iou(a, b, 0), lambda: [corners(5), corners(3)], lambda a, b: iou(a, b, 0), SINGLE),
    "npu_iou_of_truth": (
        lambda a, b: npu.npu_iou(a, b, 1),
        lambda: [corners(5), corners(3)],
        lambda a, b: iou(a, b, 1),
        SINGLE,
    ),
    "npu_ptiou": (
        lambda a, b: npu.npu_ptiou(a, b, 0),
        lambda: [corners(4).half(), corners(6).half()],
        lambda a, b: iou(a, b, 0).half(),
        EAGER,
    ),
    "npu_giou": (
        with_gradients(lambda a, b: npu.npu_giou(a, b, True, False, 0)),
        lambda: [centered(8), centered(8)],
        with_gradients(giou),
        EAGER,
    ),
    "npu_diou": (
        with_gradients(lambda a, b: npu.npu_diou(a, b, True, False, 0)),
        lambda: [centered(8), centered(8)],
        with_gradients(diou),
        EAGER,
    ),
    "npu_diou_crossed": (
        lambda a, b: npu.npu_diou(a, b, True, True, 0),
        lambda: [centered(4), centered(3)],
        lambda a, b: torch.cat([diou(a, truth[:, None]) for truth in b.t()]),
        EAGER,
    ),
    "npu_diou_of_corners": (
        lambda a, b: npu.npu_diou(a, b, False, False, 0),
        lambda: [torch.stack(edges(centered(5))), torch.stack(edges(centered(5)))],
        lambda a, b: diou(*(torch.cat([(c[:2] + c[2:]) / 2, c[2:] - c[:2]]) for c in (a, b))),
        EAGER,
    ),
    "npu_ciou": (
        lambda a, b: npu.npu_ciou(a, b, True, False, 0, True),
        lambda: [centered(8), centered(8)],
        lambda a, b: ciou(a, b)[0],
        SINGLE,
    ),
    "_npu_ciou": (
        lambda a, b: npu._npu_ciou(a, b, True, False, 0, True),
        lambda: [centered(8), centered(8)],
        ciou,
        SINGLE,
    ),
    "npu_bounding_box_encode": (
        lambda a, b: npu.npu_bounding_box_encode(a, b, *MEANS_AND_STDS),
        lambda: [corners(5), corners(5)],
        encoded,
        EAGER,
    ),
    "npu_bounding_box_decode": (
        lambda a, d: npu.npu_bounding_box_decode(a, d, *MEANS_AND_STDS, (24, 18), 0.3),
        lambda: [corners(9), torch.randn(9, 4)],
        lambda a, d: decoded(a, d, 24, 18, 0.3),
        EAGER,
    ),
    "npu_yolo_boxes_encode": (
        npu.npu_yolo_boxes_encode,
        lambda: [corners(5), corners(5), torch.tensor([8, 16, 32, 16, 8], dtype=torch.int32)],
        yolo_encoded,
        EAGER,
    ),
    "npu_anchor_response_flags": (
        lambda x: npu.npu_anchor_response_flags(x, [4, 6], [4, 4], 3),
        lambda: [corners(4)],
        lambda x: responsible(x, 4, 6, 4, 3),
        EAGER,
    ),
    "npu_nms_v4": (
        lambda x, s, o, least: npu.npu_nms_v4(x, s, 9, o, least, True),
        lambda: [corners(30), torch.rand(30), torch.tensor(0.2), torch.tensor(0.4)],
        lambda *args: nms_v4(*args, 9),
        EAGER,
    ),
    "npu_nms_v4_of_few": (
        lambda x, s, o, least: npu.npu_nms_v4(x, s, 20, o, least, True),
        lambda: [corners(9), torch.rand(9), torch.tensor(0.1), torch.tensor(0.3)],
        lambda *args: nms_v4(*args, 20),
        EAGER,
    ),
    "npu_batch_nms": (
        lambda x, s: npu.npu_batch_nms(x, s, 0.3, 0.2, 3, 5),
        lambda: [corners(24).reshape(2, 12, 1, 4), torch.rand(2, 12, 3)],
        lambda x, s: batch_nms(x, s, 0.3, 0.2, 3, 5),
        EAGER,
    ),
    "npu_batch_nms_of_own_boxes": (
        lambda x, s: npu.npu_batch_nms(x, s, 0.8, 0.5, 4, 9),
        lambda: [corners(24).reshape(2, 6, 2, 4), torch.rand(2, 6, 2)],
        lambda x, s: batch_nms(x, s, 0.8, 0.5, 4, 9),
        EAGER,
    ),
    "npu_roi_align": (
        lambda x, r: npu.npu_roi_align(x, r, 0.5, 2, 3, 2, 0),
        lambda: [torch.randn(2, 3, 8, 9), REGIONS],
        lambda x, r: roi_align(x, r, 0.5, 2, 3, 2, 0),
        EAGER,
    ),
    "npu_roi_align_of_pixels": (
        lambda x, r: npu.npu_roi_align(x, r, 0.5, 3, 2, 0, 2),
        lambda: [torch.randn(2, 3, 8, 9), REGIONS],
        lambda x, r: roi_align(x, r, 0.5, 3, 2, 0, 2),
        EAGER,
    ),
    "npu_roi_alignbk": (
        lambda g, r: npu.npu_roi_alignbk(g, r, [2, 3, 8, 9], 3, 2, 0.5, 2, 0),
        lambda: [torch.randn(3, 3, 2, 3), REGIONS],
        lambda g, r: roi_align_gradient(g, r, 0.5, 2, 3, 2, 0, shape=(2, 3, 8, 9)),
        EAGER,
    ),
    "npu_random_choice_with_mask": (
        lambda x: chosen_once(x, 12),
        lambda: [torch.rand(4, 5) < 0.4],
        lambda x: x.long(),
        EAGER,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_operator_is_as_documented(name: str) -> None:
    function, arguments, reference, modes = CASES[name]
    args = arguments()
    expected = reference(*[a.clone() for a in args])
    check(function, args, [t.detach() for t in listed(expected)], modes)


def test_values_that_the_documents_print() -> None:
    boxes = torch.tensor([[0, 0, 10, 10], [10, 10, 20, 20], [32, 32, 38, 42]]).half()
    truth = torch.tensor([[0, 0, 10, 20], [0, 10, 10, 10], [10, 10, 20, 20]]).half()
    printed = torch.tensor([[0.4985, 0, 0], [0, 0, 0], [0, 0.9961, 0]]).half()
    check(lambda a, b: npu.npu_iou(a, b, 0), [boxes, truth], printed, EAGER)
    rois, deltas = torch.tensor([[1.0, 2, 3, 4], [3, 4, 5, 6]]), torch.tensor([[5.0, 6, 7, 8], [7, 8, 9, 6]])
    check(
        lambda a, b: npu.npu_bounding_box_decode(a, b, 0, 0, 0, 0, 1, 1, 1, 1, (10, 10), 0.1),
        [rois, deltas],
        torch.tensor([[2.5, 6.5, 9, 9], [9, 9, 9, 9]]),
        EAGER,
    )
    yolo = torch.tensor(
        [[0.7921727, 0.5314963, -0.74224466, -13.815511], [0.7360072, 0.58343244, 4.3334002, -0.51378196]]
    )
    torch.manual_seed(1234)
    check(
        npu.npu_yolo_boxes_encode,
        [torch.rand(2, 4), torch.rand(2, 4), torch.tensor([2, 2], dtype=torch.int32)],
        yolo,
        EAGER,
    )
    image = torch.arange(1.0, 37).reshape(1, 1, 6, 6)
    check(
        lambda x, r: npu.npu_roi_align(x, r, 0.25, 3, 3, 2, 0),
        [image, torch.tensor([[0, -2.0, -2, 22, 22]])],
        torch.tensor([[[[4.5, 6.5, 8.5], [16.5, 18.5, 20.5], [28.5, 30.5, 32.5]]]]),
        EAGER,
    )


def test_regions_of_images_that_are_not_there_are_refused() -> None:
    images, rois = torch.randn(2, 3, 8, 9), torch.tensor([[0.0, 0, 0, 4, 4], [2, 0, 0, 4, 4]])
    with pytest.raises(RuntimeError, match=r"rois of image 0 to 2: valid are 0 to 1"):
        run("eager", lambda x, r: npu.npu_roi_align(x, r, 1.0, 2, 2, 2, 0).cpu(), [images, rois])


def test_another_choice_is_another_seed() -> None:
    mask = torch.ones(64, dtype=torch.bool).npu()
    first, again, other = (npu.npu_random_choice_with_mask(mask, 8, seed, 0)[0].cpu() for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
