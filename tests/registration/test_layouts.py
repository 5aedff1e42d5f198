"""Layouts of views: what is said of two of them against the elements that they have, and views of compact bases
against PyTorch."""

from __future__ import annotations

import random

import pytest
import torch

from ascend_graph.registration.writing.layouts import Layout, are_apart, in_compact, layout_of

T = torch.Tensor


def drawn_view(x: T) -> T:
    """Some views of a tensor, one of another."""
    for _ in range(random.randint(0, 4)):
        if x.dim() == 0:
            break
        dim = random.randrange(x.dim())
        size = x.size(dim)
        match random.randrange(6):
            case 0 if x.dim() > 1 and size:
                x = x.select(dim, random.randrange(size))
            case 1:
                start = random.randint(0, size)
                x = x.narrow(dim, start, random.randint(0, size - start))
            case 2:
                x = x.transpose(dim, random.randrange(x.dim()))
            case 3 if size:
                steps = slice(random.randrange(size), None, random.randint(1, 3))
                x = x[(*[slice(None)] * dim, steps)]
            case 4:
                x = x.unsqueeze(dim)
            case 5 if x.dim() > 1:
                x = x.diagonal(0, 0, 1)
    return x


def test_views_that_are_said_to_be_apart_share_no_element() -> None:
    said = missed = 0
    for _ in range(3000):
        base = torch.arange(8 * 6 * 4).reshape(8, 6, 4)
        a, b = drawn_view(base), drawn_view(base)
        shared = bool({*a.flatten().tolist()} & {*b.flatten().tolist()})
        apart = are_apart(layout_of(a), layout_of(b), bool)
        assert not (apart and shared), (layout_of(a), layout_of(b))
        said += apart
        missed += not apart and not shared
    assert said > 5 * missed, (said, missed)


def test_views_of_compact_bases_have_the_same_elements() -> None:
    found = missed = 0
    for _ in range(3000):
        base = drawn_view(torch.arange(8 * 6 * 4).reshape(8, 6, 4))
        view = drawn_view(base)
        if not view.numel():
            continue
        layout = in_compact(layout_of(base), layout_of(view), bool)
        if layout is None:
            missed += 1
            continue
        found += 1
        compact = base.contiguous().clone()
        assert torch.equal(torch.as_strided(compact, layout.size, layout.stride, layout.offset), view), (base, view)
    assert found > 50 * missed, (found, missed)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Layout((3, 6), (6, 1), 0), Layout((3, 6), (6, 1), 6)),  # windows
        (Layout((4, 6), (6, 1), 0), Layout((6,), (1,), 12)),  # a tensor and its row
        (Layout((4,), (0,), 3), Layout((1,), (1,), 3)),  # one element repeated
    ],
)
def test_what_overlaps_is_never_apart(a: Layout, b: Layout) -> None:
    assert not are_apart(a, b, bool)
    assert not are_apart(b, a, bool)


def test_what_is_not_known_is_not_apart() -> None:
    assert not are_apart(Layout((4,), (1,), 0), Layout((4,), (1,), 8), lambda condition: False)
