"""Shares of a suite's files: each file is in one of them, and they take about as long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.suite import UNKNOWN_SECONDS, share


@given(st.lists(st.floats(0, 1000), max_size=40), st.integers(1, 5), st.integers(0, 3))
def test_each_file_is_in_one_share_and_none_takes_much_longer(seconds: list[float], count: int, unknown: int) -> None:
    known = {f"test_{number}.py": one for number, one in enumerate(sorted(seconds, reverse=True))}
    files = [*known, *(f"test_new_{number}.py" for number in range(unknown))]
    parts = [share(files, known, number, count) for number in range(1, count + 1)]
    assert sorted(file for part in parts for file in part) == sorted(files)
    totals = [sum(known.get(file, UNKNOWN_SECONDS) for file in part) for part in parts]
    assert max(totals) - min(totals) <= max([UNKNOWN_SECONDS, *seconds]) + 1e-6


@pytest.mark.parametrize("number", [0, 4])
def test_a_share_that_is_none_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=f"share {number}/3: the first number is not one of 1 to 3"):
        share(["a.py"], {}, number, 3)
