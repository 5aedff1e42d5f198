"""Dtypes that aclnn functions take and return, from public documents: ``dtypes.txt``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ascend_graph.prototypes import DataType

TABLE = Path(__file__).with_name("dtypes.txt")


@cache
def documented_dtypes() -> Mapping[str, Mapping[str, frozenset[DataType]]]:
    """Return the tensor dtypes by function (``aclnnRmsNorm``) and parameter, without parameters that have no rule.

    >>> sorted(d.name for d in documented_dtypes()["aclnnRmsNorm"]["x"])
    ['BF16', 'FLOAT', 'FLOAT16']
    """
    rules = {}
    for line in TABLE.read_text().splitlines():
        if line and not line.startswith("#"):
            symbol, _, parts = line.partition(": ")
            rules[symbol] = {
                name: frozenset(DataType[dtype] for dtype in dtypes)
                for name, *dtypes in (part.split() for part in parts.split(", "))
            }
    return rules


def line_of(symbol: str, rules: Mapping[str, frozenset[DataType]]) -> str:
    """Format a function's line of the table.

    >>> line_of("aclnnX", {"x": frozenset({DataType.INT8, DataType.FLOAT})})
    'aclnnX: x FLOAT INT8'
    """
    parts = (" ".join([name, *(DataType(d).name for d in sorted(dtypes))]) for name, dtypes in rules.items())
    return f"{symbol}: {', '.join(parts)}"
