"""Tiling structures that a package's library registers: kernels are compiled with them.

CANN's packages do not carry their headers. The library is loaded in a process of its own, as its constructors are authors'
code.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_graph.codegen.operator_package import TilingField, TilingStructure
from ascend_graph.host.infer_shape.calls import toolkit_library
from ascend_graph.host.packages.format import OperatorPackageError
from ascend_graph.host.packages.prebuilt import PrebuiltFunctions, registered_functions

_LIMIT = 120.0
#: Without the working directory, where anything may lie.
_ASK = "import sys; sys.path.pop(0); from ascend_graph.host.prebuilt.tiling_structures import main; main()"
_NUMBERS = frozenset(
    ["bool", "float", "double", *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64))]
)
_SINK = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, *(ctypes.c_char_p,) * 2, ctypes.c_size_t, *(ctypes.c_char_p,) * 3, ctypes.c_size_t
)


@dataclass(frozen=True, slots=True)
class TilingLibraryFacts:
    """Facts about one operator that a library of a package tells once it is loaded."""

    #: Structures of its tiling data, each after those that it contains; the operator's own is the last.
    structures: tuple[TilingStructure, ...]
    #: Positions of the inputs whose values its tiling function reads.
    data_inputs: tuple[int, ...]


def library_facts(library: Path, op_type: str) -> TilingLibraryFacts:
    """Load a library of tiling functions in another process and return what it tells about an operator.

    Raises:
        OperatorPackageError: The library does not load or ends that process, or registers no tiling function of the operator.
    """
    try:
        run = subprocess.run(
            [sys.executable, "-c", _ASK, str(library)],
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT,
        )
    except subprocess.TimeoutExpired:
        raise OperatorPackageError(
            f"{library}: it did not load in {_LIMIT:g} seconds; expected a library without work of its own at loading"
        ) from None
    if run.returncode != 0:
        ended = f"loading it ended by signal {-run.returncode}" if run.returncode < 0 else "it does not load"
        raise OperatorPackageError(
            f"{library}: {ended}; install the package for this machine again: {run.stderr.strip()[-1500:]}"
        )
    found = json.loads(run.stdout)
    if op_type not in found["tiling"]:
        known = ", ".join(sorted(found["tiling"])) or "none"
        raise OperatorPackageError(f"{library}: has no tiling function of {op_type}; expected one of {known}")
    structures = {one["name"]: _structure(one, library) for one in found["structures"]}
    return TilingLibraryFacts(_of_operator(structures, op_type), tuple(found["tiling"][op_type]))


def _structure(found: Mapping[str, Any], library: Path) -> TilingStructure:
    fields = tuple(TilingField(one["type"], one["name"], one["count"]) for one in found["fields"])
    for one in fields:
        if not one.type.isidentifier() or not one.name.isidentifier():
            raise OperatorPackageError(
                f"{library}: {found['name']} has a field {one.type} {one.name}; expected a C++ name"
            )
    return TilingStructure(tuple(found["ops"]), found["name"], found["size"], fields)


def _of_operator(known: Mapping[str, TilingStructure], op_type: str) -> tuple[TilingStructure, ...]:
    """Return the structures of an operator (or of it for a tiling key), each after those that it contains."""
    ordered: dict[str, TilingStructure] = {}

    def add(one: TilingStructure) -> None:
        for member in one.fields:
            if member.type not in _NUMBERS and member.type in known and member.type != one.name:
                add(known[member.type])
        ordered.setdefault(one.name, one)

    for structure in known.values():
        if any(name == op_type or name.startswith(f"{op_type}_") for name in structure.ops):
            add(structure)
    return tuple(ordered.values())


def _registered_structures() -> Sequence[Mapping[str, Any]]:
    """Return the structures that the libraries loaded in this process register."""
    found: dict[str, dict[str, Any]] = {}

    def add(
        _: Any, op_type: bytes, name: bytes, size: int, kind: bytes, type_: bytes, field: bytes, count: int
    ) -> None:
        one = found.setdefault(name.decode(), {"name": name.decode(), "size": size, "ops": [], "fields": []})
        if op_type.decode() not in one["ops"]:
            one["ops"].append(op_type.decode())
        # A structure that is registered twice tells its fields twice; padding is laid out again by the compiler.
        known = {other["name"] for other in one["fields"]}
        if kind and field.decode() not in known and not (type_ == b"uint8_t" and field.endswith(b"PH")):
            one["fields"].append(
                {"type": type_.decode(), "name": field.decode(), "count": count if kind == b"1" else 0}
            )

    toolkit_library("libregister.so").ascendgraphTilingStructures(None, _SINK(add))
    return list(found.values())


def _values_read(functions: PrebuiltFunctions) -> list[int]:
    return sorted({*functions.data_inputs, *functions.tiling_data_inputs})


def main() -> None:
    """Print what the library that this process's argument names registers, or exit with 1 and say why it does not load."""
    try:
        registered = registered_functions(Path(sys.argv[1]))
    except OperatorPackageError as error:
        print(error, file=sys.stderr)
        raise SystemExit(1) from None
    tiling = {name: _values_read(one) for name, one in registered.items() if one.tiling is not None}
    print(json.dumps({"tiling": tiling, "structures": _registered_structures()}))
