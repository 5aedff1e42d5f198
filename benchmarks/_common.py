"""Shared part of all benchmarks: ``main() -> dict`` prints a table, and a script prints the dict as its last line.

``record`` writes such a dict into benchmarks/results.json, from which ``make status`` makes docs/status.md.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results.json")


def run(main: Callable[[], dict[str, Any]]) -> None:
    """Run a benchmark as a script."""
    summary = main()
    print(json.dumps(summary), flush=True)


def figures(summary: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of a summary: numbers, and lists of numbers; of a summary by directory their sums.

    Example:
        >>> figures({"built": 2, "failed": {"a": "why"}, "ranks": [1, 2]})
        {'built': 2, 'ranks': [1, 2]}
        >>> figures({"/one": {"found": 2, "built": 1}, "/two": {"found": 3, "built": 3}})
        {'found': 5, 'built': 4}
    """
    parts = list(summary.values())
    if parts and all(isinstance(part, dict) for part in parts):
        kept = [figures(part) for part in parts]
        return {name: sum(part.get(name, 0) for part in kept) for name in kept[0]}
    return {name: value for name, value in summary.items() if _is_figure(value)}


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) or (
        isinstance(value, list) and all(isinstance(v, int | float) for v in value)
    )


def record(name: str, command: str, summary: dict[str, Any], path: Path = RESULTS) -> None:
    """Write a benchmark's figures, with today's date and its command, in place of its earlier ones."""
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    results[name] = {"date": today, "command": command, "figures": figures(summary)}
    path.write_text(json.dumps(dict(sorted(results.items())), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
