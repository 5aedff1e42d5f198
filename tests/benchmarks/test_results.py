"""Figures of benchmarks are recorded by one function, and docs/status.md is made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import __main__ as launcher
from benchmarks import _status
from benchmarks._common import record


def test_the_status_page_is_made_from_the_results() -> None:
    assert _status.DOCUMENT.read_text() == _status.current(), "renew it: make status"


def test_every_recorded_command_names_a_benchmark() -> None:
    known = launcher.programs()
    recorded = {name.partition(":")[0] for name in json.loads(_status.RESULTS.read_text())}
    assert sorted(recorded - known.keys()) == []


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"claim": "It runs", "figure": "{ran}", "by": "nothing"}, "nothing is not in results.json; run make bench"),
        ({"claim": "It runs", "figure": "{ran}", "by": "one"}, "one has no figure 'ran'; expected one of built"),
    ],
)
def test_a_claim_without_a_figure_is_refused(claim: dict[str, str], message: str) -> None:
    results = {"one": {"date": "2026-01-01", "command": "make bench NAME=one", "figures": {"built": 1}}}
    with pytest.raises(_status.StatusError, match=message):
        _status.page({"section": [{"title": "All", "claims": [claim]}]}, results)


def test_recorded_figures_take_the_place_of_earlier_ones(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    record("one", "make bench NAME=one", {"equal": 1, "failed": {"a": "why"}}, results)
    record("one", "make bench NAME=one", {"equal": 2}, results)
    record("survey:some", "make bench NAME=survey", {"a": {"found": 2, "built": 1}, "b": {"found": 3}}, results)
    written = json.loads(results.read_text())
    assert {name: entry["figures"] for name, entry in written.items()} == {
        "one": {"equal": 2},
        "survey:some": {"found": 5, "built": 1},
    }


def test_the_last_line_is_the_summary(capfd: pytest.CaptureFixture[str]) -> None:
    import sys

    program = "print('a table'); print('{\"equal\": 3}')"
    assert launcher.followed([sys.executable, "-c", program]) == (0, {"equal": 3})
    assert launcher.followed([sys.executable, "-c", "print('no figures')"]) == (0, {})
    assert "a table" in capfd.readouterr().out
