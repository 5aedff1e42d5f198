"""Shares of a suite: each test is in one of them, and they take about as long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.suite import UNKNOWN_SECONDS, Piece, share


@given(st.lists(st.floats(0, 1000), max_size=40), st.integers(1, 12), st.integers(0, 3))
def test_each_test_is_in_one_share_and_none_takes_much_longer(seconds: list[float], count: int, unknown: int) -> None:
    known = {f"test_{number}.py": one for number, one in enumerate(seconds)}
    files = [*known, *(f"test_new_{number}.py" for number in range(unknown))]
    parts = [share(files, known, number, count) for number in range(1, count + 1)]
    for file in files:
        for place in range(30):
            assert [any(p.file == file and p.holds(place) for p in part) for part in parts].count(True) == 1
    totals = [sum(known.get(p.file, UNKNOWN_SECONDS) / p.count for p in part) for part in parts]
    assert max(totals) - min(totals) <= sum(known.get(file, UNKNOWN_SECONDS) for file in files) / count / 2 + 1e-6


def test_a_file_that_takes_longer_than_half_a_share_is_cut() -> None:
    """Its tests alternate, as those of one function take about as long; short files stay whole."""
    seconds = {"long.py": 90.0, "short.py": 10.0, "other.py": 20.0}
    parts = [share(seconds, seconds, number, 2) for number in (1, 2)]
    assert sorted(p.number for part in parts for p in part if p.file == "long.py") == [0, 1, 2]
    assert sorted(p for part in parts for p in part if p.file != "long.py") == [Piece("other.py"), Piece("short.py")]
    assert [place for place in range(7) if Piece("long.py", 1, 3).holds(place)] == [1, 4]


@pytest.mark.parametrize("number", [0, 4])
def test_a_share_that_is_none_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=f"share {number}/3: the first number is not one of 1 to 3"):
        share(["a.py"], {}, number, 3)
