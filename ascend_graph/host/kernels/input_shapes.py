"""Input shapes of GE's operators from public documents: ``input_shapes.txt``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("input_shapes.txt")


@cache
def documented_shapes() -> Mapping[str, str]:
    """Return the shape relation of inputs and attrs by GE operator, without outputs.

    Operators without a rule are left out.

    >>> documented_shapes()["RmsNorm"]
    'x[*s, *r], gamma[*r] ->'
    """
    rules: dict[str, str] = {}
    op_type = ""
    for line in TABLE.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace():
            rules[op_type] = f"{rules[op_type]} {line.strip()}".strip()
        else:
            op_type, _, relation = line.partition(":")
            rules[op_type] = relation.strip()
    return rules
