"""Writer of docs/status.md: the claims of data/claims.toml with the figures of results.json.

``python -m benchmarks._status --write`` (``make status``) updates the page; without the option it prints it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ascend_graph.errors import AscendGraphError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
CLAIMS = HERE / "data/claims.toml"
RESULTS = HERE / "results.json"
DOCUMENT = HERE.parent / "docs/status.md"
_HEAD = """# Status

After this page you know what works, how well, and which command measures it.

```
make bench NAME=raw_op_parity              # one of the commands below
make bench NAME=raw_op_parity RECORD=yes   # and write its figures into benchmarks/results.json
make status                                # and this page from them
```

Figures are of a shared machine with 2 cores, on the day in the third column. [Benchmarks](../benchmarks/README.md) tells how to
read them.
"""


class StatusError(AscendGraphError):
    """Claim whose figure is not among the results."""


def _figure(claim: dict[str, str], results: dict[str, Any]) -> tuple[str, str, str]:
    """Return the figure, date and command of a claim."""
    if "see" in claim:
        return "", "", claim["see"]
    name = claim["by"]
    if name not in results:
        raise StatusError(f"{claim['claim']}: {name} is not in {RESULTS.name}; run make bench NAME={name} RECORD=yes")
    result = results[name]
    try:
        figure = claim["figure"].format_map(result["figures"])
    except KeyError as error:
        known = ", ".join(result["figures"])
        raise StatusError(f"{claim['claim']}: {name} has no figure {error}; expected one of {known}") from None
    return figure, result["date"], f"`{result['command']}`"


def page(claims: dict[str, Any], results: dict[str, Any]) -> str:
    """Return the text of the page: a table for each section."""

    def lines() -> Iterator[str]:
        yield _HEAD
        for section in claims["section"]:
            yield f"## {section['title']}\n\n| claim | figure | date | measured by |\n|---|---|---|---|"
            for claim in section["claims"]:
                yield f"| {claim['claim']} | {' | '.join(_figure(claim, results))} |"
            yield ""

    return "\n".join(lines()).rstrip("\n") + "\n"


def current() -> str:
    """Return the page of the tree's claims and results."""
    return page(tomllib.loads(CLAIMS.read_text(encoding="utf-8")), json.loads(RESULTS.read_text(encoding="utf-8")))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        DOCUMENT.write_text(current(), encoding="utf-8")
    else:
        print(current(), end="")
