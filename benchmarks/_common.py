"""What all benchmarks share: ``main() -> dict`` prints a table, and a script ends with that dict as a line of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def run(main: Callable[[], dict[str, Any]]) -> None:
    """Run a benchmark as a script."""
    summary = main()
    print(json.dumps(summary), flush=True)
