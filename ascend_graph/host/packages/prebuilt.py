"""InferShape functions of operator packages that CANN built: their prototype libraries are loaded and called as they are.

``csrc/host/exe_graph`` builds the contexts in CANN's layout. A library whose table of functions has another layout is
refused.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ascend_graph.host.infer_shape.calls import (
    load_toolkit,
    recent_error,
    recent_failure,
    specs_of,
    toolkit_library,
    values_of,
)
from ascend_graph.host.packages.format import OperatorPackageError, open_package
from ascend_graph.prototypes import OpPrototype, ParameterKind, package_directories, parse_file
from ascend_graph.shapes.functions import InferredOutput, Inputs, ShapeFunction


class _Functions(ctypes.Structure):
    """``PackageFunctions`` of package_functions.cpp."""

    _fields_ = (
        ("op_type", ctypes.c_char_p),
        ("infer_shape", ctypes.c_void_p),
        ("infer_dtype", ctypes.c_void_p),
        ("tiling", ctypes.c_void_p),
        ("tiling_parse", ctypes.c_void_p),
        ("data_inputs", ctypes.c_uint64),
        ("tiling_data_inputs", ctypes.c_uint64),
        ("outputs_by_kernel", ctypes.c_uint64),
    )


_SINK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Functions))


@dataclass(frozen=True, slots=True)
class PrebuiltFunctions:
    """Functions that a library of a package registered for one operator; addresses, None where it has none."""

    infer_shape: int | None
    infer_dtype: int | None
    tiling: int | None
    #: Positions of the inputs whose values InferShape reads, and of the outputs whose shape only the kernel knows.
    data_inputs: tuple[int, ...]
    outputs_by_kernel: tuple[int, ...]
    #: Positions of the inputs whose values the tiling function reads.
    tiling_data_inputs: tuple[int, ...] = ()


def prototype_library(directory: Path) -> Path | None:
    """Return the prototype library of a package for this machine, or None without one."""
    found = sorted((directory / "op_proto/lib/linux" / platform.machine()).glob("*.so"))
    return found[0] if found else None


@cache
def registered_functions(library: Path) -> Mapping[str, PrebuiltFunctions]:
    """Load a library of a package and return the functions that it registers, by op type.

    Raises:
        OperatorPackageError: The library does not load, or its table of functions has another layout.
    """
    load_toolkit()
    try:
        # Each library has its own registry: its own symbols go before those of other packages.
        loaded = ctypes.CDLL(str(library), mode=os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
        entries = [
            ctypes.cast(loaded[name], ctypes.c_void_p) for name in ("GetRegisteredOpNum", "GetOpImplFunctionsV2")
        ]
    except (OSError, AttributeError) as error:
        raise OperatorPackageError(
            f"{library}: does not load as a library of operators: {error}; build it for this machine"
        ) from error
    found: dict[str, PrebuiltFunctions] = {}

    def add(_context: Any, functions: Any) -> None:
        one = functions[0]
        found[one.op_type.decode()] = PrebuiltFunctions(
            one.infer_shape,
            one.infer_dtype,
            one.tiling,
            _bits(one.data_inputs),
            _bits(one.outputs_by_kernel),
            _bits(one.tiling_data_inputs),
        )

    if toolkit_library("libexe_graph.so").ascendgraphPackageFunctions(*entries, None, _SINK(add)):
        raise OperatorPackageError(f"{library}: {recent_error()}")
    return found


def _bits(mask: int) -> tuple[int, ...]:
    return tuple(n for n in range(64) if mask >> n & 1)


def prebuilt_function(prototype: OpPrototype) -> ShapeFunction | None:
    """Return the InferShape function of an operator of the first installed package with it that CANN built, or None."""
    directory = prebuilt_package(prototype.op_type, infers=True)
    library = None if directory is None else prototype_library(directory)
    if library is None:
        return None
    functions = registered_functions(library).get(prototype.op_type)
    return None if functions is None else shape_function(prototype, functions, library)


def prebuilt_package(op_type: str, *, infers: bool = False) -> Path | None:
    """Return the first installed package that CANN built and that has an operator, or None.

    Args:
        op_type: The operator.
        infers: If true, only packages with a library of prototypes for this machine count, else those with kernels.
    """
    for headers in package_directories():
        directory = headers.parent.parent
        has_part = prototype_library(directory) is not None if infers else (directory / "op_impl/ai_core/tbe").is_dir()
        if has_part and open_package(directory) is None and op_type in _op_types(headers):
            return directory
    return None


@cache
def _op_types(headers: Path) -> frozenset[str]:
    return frozenset(p.op_type for header in sorted(headers.glob("*.h")) for p in parse_file(header).prototypes)


def shape_function(prototype: OpPrototype, functions: PrebuiltFunctions, library: Path) -> ShapeFunction | None:
    """Return an operator's InferShape function as a ShapeFunction; None if it has none, or cannot answer for an output.

    A dynamic output has as many tensors as a graph says, and the shape of others is known to their kernel alone.
    """
    dynamic = any(p.kind is ParameterKind.DYNAMIC for p in prototype.outputs)
    if functions.infer_shape is None or dynamic or functions.outputs_by_kernel:
        return None
    infer = toolkit_library("libexe_graph.so").ascendgraphInferPackageShape
    sizes = [ctypes.c_size_t(len(prototype.inputs)), ctypes.c_size_t(len(prototype.attrs))]
    called = (ctypes.c_void_p(functions.infer_shape), ctypes.c_void_p(functions.infer_dtype))

    def call(inputs: Inputs, attrs: Mapping[str, Any]) -> list[InferredOutput | None]:
        given, answers = values_of(prototype, inputs, attrs, len(prototype.outputs))
        count = ctypes.c_size_t(len(given.values))
        if infer(prototype.op_type.encode(), *called, *sizes, given.values, count):
            raise recent_failure()
        return list(specs_of(answers, "InferShape"))

    return ShapeFunction(
        prototype,
        f"the InferShape function of {library}",
        call,
        data_inputs=tuple(prototype.inputs[n].name for n in functions.data_inputs if n < len(prototype.inputs)),
        says_dtypes=functions.infer_dtype is not None,
    )
