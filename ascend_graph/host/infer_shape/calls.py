"""Calls of InferShape functions through the host toolkit's C interface. Imports no torch.

``csrc/host/include/ascend_graph/host_kernel.h`` declares the structures. A call takes some ten microseconds, so that a search
for a relation can ask a thousand questions.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from ascend_graph.environment import toolkit_directory
from ascend_graph.prototypes import AttrType, DataType, OpPrototype
from ascend_graph.prototypes.naming import INFER_SUFFIX
from ascend_graph.shapes.functions import InferredOutput, InputSpec, ShapeFunctionError

#: Highest rank of a gert::Shape, and the int64 values of an answer: dtype, rank and sizes.
_MOST_DIMENSIONS = 25
ANSWER = 2 + _MOST_DIMENSIONS
_MESSAGE = 4096


class TensorDescription(ctypes.Structure):
    """``ascend_graph::host::Tensor``: a strided view of memory."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("sizes", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("format", ctypes.c_int32),
        ("kept_rank", ctypes.c_int32),
        ("kept", ctypes.c_void_p),
        ("view_offset", ctypes.c_int64),
    )


class _Content(ctypes.Union):
    _fields_ = (
        ("pointer", ctypes.c_void_p),
        ("i", ctypes.c_int64),
        ("f", ctypes.c_double),
        ("b", ctypes.c_bool),
        ("s", ctypes.c_char_p),
    )


class Value(ctypes.Structure):
    """``ascend_graph::host::Value``: one argument of an operator."""

    _fields_ = (("kind", ctypes.c_int32), ("count", ctypes.c_uint64), ("content", _Content))


_TENSOR, _TENSORS, _INT, _FLOAT, _BOOL, _STRING, _INTS, _FLOATS, _BOOLS = range(1, 10)
_LISTS: Mapping[AttrType, tuple[int, Any]] = {
    AttrType.LIST_INT: (_INTS, ctypes.c_int64),
    AttrType.LIST_FLOAT: (_FLOATS, ctypes.c_float),
    AttrType.LIST_BOOL: (_BOOLS, ctypes.c_bool),
}
#: Attr types whose values can be passed; for others the function sees an absent attr.
PASSED_ATTRS = frozenset((AttrType.INT, AttrType.TYPE, AttrType.FLOAT, AttrType.BOOL, AttrType.STRING, *_LISTS))
_VALUES: Mapping[DataType, Any] = {
    DataType.INT64: ctypes.c_int64,
    DataType.INT32: ctypes.c_int32,
    DataType.UINT64: ctypes.c_uint64,
    DataType.FLOAT: ctypes.c_float,
    DataType.BOOL: ctypes.c_bool,
}

_DTYPES = frozenset(map(int, DataType))
_CONTIGUOUS = tuple(ctypes.c_int64 * n for n in range(_MOST_DIMENSIONS + 1))


class CallValues:
    """Values of one call, with the memory that they point to."""

    def __init__(self, count: int) -> None:
        self.values = (Value * count)()
        self._kept: list[Any] = []
        self._at = 0

    def add_input(self, given: InputSpec | Sequence[InputSpec] | None) -> None:
        """Add an input: a tensor, a list of tensors, or None if it is absent."""
        value = self.values[self._at]
        self._at += 1
        if given is None:
            return
        specs = [given] if isinstance(given, InputSpec) else list(given)
        tensors = (TensorDescription * max(len(specs), 1))()
        for tensor, spec in zip(tensors, specs, strict=False):
            self._fill(tensor, spec)
        self._kept.append(tensors)
        value.kind = _TENSOR if isinstance(given, InputSpec) else _TENSORS
        value.count = len(specs)
        value.content.pointer = ctypes.addressof(tensors)

    def add_attr(self, kind: AttrType, given: Any) -> None:
        """Add an attr; a value of a type that cannot be passed stays absent."""
        value = self.values[self._at]
        self._at += 1
        if given is None or kind not in PASSED_ATTRS:
            return
        if kind in _LISTS:
            value.kind, element = _LISTS[kind]
            items = (element * max(len(given), 1))(*given)
            self._kept.append(items)
            value.count, value.content.pointer = len(given), ctypes.addressof(items)
        elif kind in (AttrType.INT, AttrType.TYPE):
            value.kind, value.content.i = _INT, int(given)
        elif kind is AttrType.FLOAT:
            value.kind, value.content.f = _FLOAT, given
        elif kind is AttrType.BOOL:
            value.kind, value.content.b = _BOOL, given
        else:
            text = given if isinstance(given, bytes) else str(given).encode()
            self._kept.append(text)
            value.kind, value.content.s = _STRING, text

    def add_answer(self) -> Any:
        """Add an output to which the function writes, and return its memory."""
        answer = (ctypes.c_int64 * ANSWER)()
        tensors = (TensorDescription * 1)()
        tensors[0].data, tensors[0].dtype = ctypes.addressof(answer), int(DataType.INT64)
        self._kept += [answer, tensors]
        value = self.values[self._at]
        self._at += 1
        value.kind, value.count, value.content.pointer = _TENSOR, 1, ctypes.addressof(tensors)
        return answer

    def _fill(self, tensor: TensorDescription, spec: InputSpec) -> None:
        rank = len(spec.shape)
        sizes = _CONTIGUOUS[rank](*spec.shape)
        strides = _CONTIGUOUS[rank](*(math.prod(spec.shape[axis + 1 :]) for axis in range(rank)))
        tensor.dtype, tensor.rank, tensor.format = int(spec.dtype), rank, 2
        tensor.sizes, tensor.strides = ctypes.addressof(sizes), ctypes.addressof(strides)
        self._kept += [sizes, strides]
        if spec.values is not None and spec.dtype in _VALUES:
            memory = (_VALUES[spec.dtype] * max(len(spec.values), 1))(*spec.values)
            tensor.data = ctypes.addressof(memory)
            self._kept.append(memory)


def values_of(
    prototype: OpPrototype,
    inputs: Sequence[InputSpec | Sequence[InputSpec] | None],
    attrs: Mapping[str, Any],
    outputs: int = 0,
) -> tuple[CallValues, list[Any]]:
    """Return a call's values, and the memory of the answers if the function has outputs among its values."""
    call = CallValues(len(prototype.inputs) + len(prototype.attrs) + outputs)
    for given in inputs:
        call.add_input(given)
    for attr in prototype.attrs:
        call.add_attr(attr.type, attrs.get(attr.name, attr.default))
    return call, [call.add_answer() for _ in range(outputs)]


def specs_of(answers: Sequence[Sequence[int]], what: str) -> list[InferredOutput]:
    """Decode answers: shape and dtype of each output, None as the dtype where no function says it.

    Raises:
        ShapeFunctionError: A size is unknown although all input sizes are known: it depends on values.
    """
    found = []
    for number, answer in enumerate(answers):
        rank = answer[1]  # -1 for what the function makes a scalar, 0 for what it may have left alone
        shape = tuple(answer[2 : 2 + max(rank, 0)])
        if any(size < 0 for size in shape):
            wrong = "made a negative size" if min(shape) < -2 else "left the shape unknown, as it depends on values"
            raise ShapeFunctionError(
                f"{what} {wrong}: output {number} is {list(shape)}. Give shape=, or correct the function",
                by_value=True,
            )
        if answer[0] not in _DTYPES:
            raise ShapeFunctionError(
                f"{what} makes the dtype of output {number} {answer[0]}, which is not a number of GE's dtypes; correct it, or "
                "give shape="
            )
        dtype = DataType(answer[0])
        found.append(InferredOutput(shape, None if dtype is DataType.UNDEFINED else dtype, rank != 0))
    return found


@cache
def toolkit_library(name: str) -> ctypes.CDLL:
    """Load a library of the toolkit, whose functions all others see."""
    return ctypes.CDLL(str(toolkit_directory() / "lib64" / name), ctypes.RTLD_GLOBAL)


def load_toolkit() -> None:
    """Load the toolkit's libraries that shape functions call."""
    for name in ("libascendcl.so", "libascendc_runtime.so", "libopapi.so"):
        toolkit_library(name)


def package_entry(op_type: str) -> Callable[[Any, int], int] | None:
    """Return the entry point of a loaded package that infers an operator's shapes, or None without one."""
    find = toolkit_library("libopapi.so").ascendgraphFindKernel
    find.restype, find.argtypes = ctypes.c_void_p, (ctypes.c_char_p,)
    address = find((op_type + INFER_SUFFIX).encode())
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)(address) if address else None


def recent_failure() -> ShapeFunctionError:
    """Return the last failure on this thread as that of a shape function: a refusal, or a crash.

    A dimension that stays unknown though all inputs are known is how many functions answer attrs that mean nothing.
    Dtypes that no kernel takes are refused by the definition, not by the function.
    """
    text = recent_error()
    refusals = "function returned", "function left dimension", "no kernel takes"
    return ShapeFunctionError(text, crashed=not any(refusal in text for refusal in refusals))


def recent_error() -> str:
    """Return the message of the last failure on this thread."""
    last = toolkit_library("libascendcl.so").aclGetRecentErrMsg
    last.restype = ctypes.c_char_p
    return (last() or b"").decode(errors="replace")
