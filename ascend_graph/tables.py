"""Tables of facts, stored as TOML next to the module that reads them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_table(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        OSError: The file cannot be read.
        tomllib.TOMLDecodeError: It is not TOML.
    """
    return tomllib.loads(path.read_text(encoding="utf-8"))
