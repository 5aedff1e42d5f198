"""Hardware without an aclnn function or a format of numbers, from public documents: ``unsupported_socs.txt``."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from ascend_graph.environment import PROCESSOR_VARIABLE, HostRuntimeError, processor
from ascend_graph.processors import PROCESSORS
from ascend_graph.prototypes import DataType

TABLE = Path(__file__).with_name("unsupported_socs.txt")

#: Number formats that only the cores of Ascend 950 have among the SoCs here.
NEW_FORMATS = frozenset(d for d in DataType if d.name.startswith(("HIFLOAT", "FLOAT8", "FLOAT6", "FLOAT4")))
_HAVE_NEW_FORMATS = frozenset(name for name, one in PROCESSORS.items() if one.has_8_bit_floats)


@cache
def lacking_processors() -> Mapping[str, frozenset[str]]:
    """Return, by function (``aclnnDynamicMxQuant``), the SoCs whose series its document excludes.

    >>> sorted(lacking_processors()["aclnnDynamicMxQuant"])
    ['Ascend310P3', 'Ascend910B1', 'Ascend910_9391']
    """
    lines = (line.partition(": ") for line in TABLE.read_text().splitlines() if line and not line.startswith("#"))
    return {symbol: frozenset(names.split()) for symbol, _, names in lines}


def check_function(symbol: str) -> None:
    """Refuse a function that the SoC does not support by the documents.

    Raises:
        HostRuntimeError: with the SoCs that have it.
    """
    lacking = lacking_processors().get(symbol, frozenset())
    if (name := processor(os.environ)) in lacking:
        raise HostRuntimeError(f"{symbol}: {_not_there(name, [p for p in PROCESSORS if p not in lacking])}")


def check_format(symbol: str, parameter: str, dtype: int) -> None:
    """Refuse a format of numbers that the SoC does not support.

    Raises:
        HostRuntimeError: with the SoCs that have it.
    """
    if dtype in NEW_FORMATS and (name := processor(os.environ)) not in _HAVE_NEW_FORMATS:
        raise HostRuntimeError(
            f"{symbol}: {parameter} is {DataType(dtype).name}: {_not_there(name, sorted(_HAVE_NEW_FORMATS))}"
        )


def _not_there(name: str, others: Collection[str]) -> str:
    text = f"{name} ({PROCESSORS[name].series}), which the host stands for, does not have it by the documents"
    have = " or ".join(f"{other} ({PROCESSORS[other].series})" for other in others)
    return (
        f"{text}; {have} has: set {PROCESSOR_VARIABLE}" if others else f"{text}; no processor has that the host knows"
    )
