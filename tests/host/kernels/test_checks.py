"""Checks of kernels' inputs and attrs refuse with the value that was given and the valid ones."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch

from ascend_graph.host.kernels import checks

_REFUSED: list[tuple[Callable[[], None], str]] = [
    (lambda: checks.check_choice("mode", 3, 0, 1, 2), "mode 3 is not supported; expected 0, 1 or 2"),
    (lambda: checks.check_choice("layout", "X", "TND"), "layout 'X' is not supported; expected 'TND'"),
    (
        lambda: checks.check_between("k", 9, 1, 8, "the number of experts"),
        "k 9 is out of range; expected 1 to 8, the number of experts",
    ),
    (
        lambda: checks.check_multiple("block", 24, 16, 128),
        "block 24 is not supported; expected a positive multiple of 16 up to 128",
    ),
    (
        lambda: checks.check_multiple("block", 144, 16, 128),
        "block 144 is not supported; expected a positive multiple of 16 up to 128",
    ),
    (
        lambda: checks.check_shape("scale", torch.ones(2, 3), (1,), ("groups", 4)),
        "scale has the shape [2, 3]; expected [1] or [groups, 4]",
    ),
    (
        lambda: checks.check_shape("scale", None, (1,), why="one for all"),
        "scale is not given; expected [1], one for all",
    ),
    (
        lambda: checks.check_count("slots", torch.ones(3), 4, "token"),
        "slots has 3 elements; expected 4, one for each token",
    ),
    (
        lambda: checks.check_dtype("cache", torch.ones(1), "key", torch.float16),
        "cache is torch.float32; expected the dtype of key, torch.float16",
    ),
    (
        lambda: checks.check_matrices("x1", torch.ones(2, 3), "x2", torch.ones(2, 3)),
        "x1 [2, 3] and x2 [2, 3] cannot be multiplied; expected the columns of x1 to be as many as the rows of x2",
    ),
    (
        lambda: checks.check_last("gamma", torch.ones(3), torch.ones(3, 4)),
        "gamma has the shape [3]; expected the last dimensions of x, [4]",
    ),
    (
        lambda: checks.check_covers("mask", torch.ones(2, 3), 2, 4),
        "mask has the shape [2, 3]; expected at least 2 rows and 4 columns, one for each query and key",
    ),
    (lambda: checks.check_range("index", torch.tensor([0, 5]), 5), "index has 5; expected 0 to 4"),
    (lambda: checks.refuse_given("not supported", bias=torch.ones(1), scale=None), "bias: not supported; leave it out"),
    (lambda: checks.refuse_given("not supported", bias=torch.ones(0)), "bias: not supported; leave it out"),
    (
        lambda: checks.refuse_given("not supported", bias=torch.ones(1), flag=True),
        "bias, flag: not supported; leave all of them out",
    ),
]


@pytest.mark.parametrize(("check", "message"), _REFUSED)
def test_a_check_names_the_value_and_the_valid_ones(check: Callable[[], None], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        check()
    assert str(caught.value) == message


def test_what_is_valid_passes() -> None:
    meta, empty = torch.ones(4, device="meta"), torch.ones(0)
    checks.check_choice("mode", 1, 0, 1)
    checks.check_between("k", 8, 1, 8)
    checks.check_multiple("block", 128, 16, 128)
    checks.check_shape("scale", torch.ones(2, 4), (1,), ("groups", 4))
    checks.check_count("slots", [1, 2], 2, "token")
    checks.check_dtype("cache", None, "key", torch.float16)
    checks.check_matrices("x1", torch.ones(2, 3), "x2", torch.ones(5, 3, 2))
    checks.check_last("gamma", torch.ones(4), torch.ones(3, 4))
    checks.check_covers("mask", torch.ones(1, 2, 4), 2, 4)
    checks.check_range("index", meta, 0)
    checks.check_range("index", empty, 0)
    checks.refuse_given("not supported", bias=None, weights=[], flag=False, number=0)
