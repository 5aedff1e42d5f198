"""On-disk format of operator packages: their files, the content of these, and opening a package."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import OpPrototype, parse_file
from ascend_graph.shapes import Relation
from ascend_graph.shapes.declared_dtypes import complete_relation
from ascend_graph.sources.installed import HOST_METADATA

#: Path in a package of the library with its aclnn functions.
LIBRARY = Path("op_api/lib/libcust_opapi.so")

#: Path in a package of the metadata that the graph engine reads about its operators.
METADATA = HOST_METADATA


class OperatorPackageError(AscendGraphError):
    """Failure to build an operator package, or an installed package that is not usable."""


@dataclass(frozen=True, slots=True)
class OperatorPackage:
    """Installed operator package that has host kernels."""

    directory: Path
    metadata: Mapping[str, Mapping[str, Any]]

    def relation(self, op_type: str) -> Relation | None:
        """Return the operator's shape relation with the prototype's dtypes, or None if the package does not have one."""
        text = self.metadata.get(op_type, {}).get("relation")
        return complete_relation(package_prototype(self.directory, op_type), text) if text else None

    def infers_shapes(self, op_type: str) -> bool:
        """Return whether the package's library has the author's InferShape function for the operator."""
        return bool(self.metadata.get(op_type, {}).get("infer_shape"))

    def inputs_of_infer_shape(self, prototype: OpPrototype) -> frozenset[str]:
        """Return the inputs whose values the operator's InferShape function may read."""
        metadata = self.metadata[prototype.op_type]
        positions = {*(metadata.get("data_inputs") or ()), *(metadata.get("value_inputs") or ())}
        return frozenset(p.name for n, p in enumerate(prototype.inputs) if n in positions)

    def python_function(self, op_type: str) -> Callable[..., Any] | None:
        """Return the operator's kernel if it is a Python function, else None."""
        reference = self.metadata.get(op_type, {}).get("python")
        return _load_function(self.directory, *reference) if reference else None


@cache
def _load_function(directory: Path, file: str, function: str) -> Callable[..., Any]:
    path = directory / file
    spec = importlib.util.spec_from_file_location(f"_ascend_graph_package_{path.stem}_{abs(hash(path))}", path)
    if spec is None or spec.loader is None:
        raise OperatorPackageError(f"{path} is not a Python module; name a .py file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    loaded: Callable[..., Any] = getattr(module, function)
    return loaded


@cache
def open_package(directory: Path) -> OperatorPackage | None:
    """Return the package in ``directory``, or None if it contains no host kernels."""
    path = directory / METADATA
    if not path.exists():
        return None
    try:
        return OperatorPackage(directory, json.loads(path.read_text()))
    except (OSError, ValueError) as error:
        raise OperatorPackageError(f"{path}: not readable: {error}") from error


@cache
def package_prototype(directory: Path, op_type: str) -> OpPrototype:
    for header in sorted((directory / "op_proto/inc").glob("*.h")):
        for prototype in parse_file(header).prototypes:
            if prototype.op_type == op_type:
                return prototype
    raise OperatorPackageError(f"{directory}/op_proto/inc has no prototype of {op_type}; write its REG_OP there")
