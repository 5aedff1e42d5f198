"""Operators that print: the form of torchair's npu_print in a graph.

Formats are those of npu_print outside graphs. ``summarize`` follows TensorFlow's StringFormat, the model of GE's: the
number of elements of each dimension shown at its beginning and at its end.
"""

from __future__ import annotations

import ctypes
import sys

import torch

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


def _number(value: bool | int | float) -> str:
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.9g}"
    return f"{value:.0f}" if isinstance(value, float) else str(int(value))


def _summary(x: T, count: int) -> str:
    if x.dim() == 0:
        return _number(x.item())
    whole = count < 0 or x.size(0) <= 2 * count
    shown = list(x) if whole else [*x[:count], *x[-count:]]
    parts = [_summary(element, count) for element in shown]
    if not whole:
        parts.insert(count, "...")
    return f"[{(' ' if x.dim() == 1 else chr(10) + ' ').join(parts)}]"


@host_kernel("StringFormat", dynamic=("x",), data_dependent=True)
def string_format(x: list[T], *, template: str = "%s", placeholder: str = "%s", summarize: int = 3) -> T:
    if summarize == 0 or summarize < -1:
        raise HostRuntimeError(f"summarize is {summarize}; expected -1 for all elements, or a positive number")
    pieces = template.split(placeholder)
    if len(pieces) != len(x) + 1:
        raise HostRuntimeError(
            f"template {template!r} has {len(pieces) - 1} placeholders for {len(x)} tensors; expected one for each"
        )
    text = pieces[0] + "".join(_summary(t, summarize) + piece for t, piece in zip(x, pieces[1:], strict=True))
    return torch.tensor(list(text.encode()), dtype=torch.uint8)


@host_kernel("PrintV2", communicates=True)
def print_v2(x: T, *, output_stream: str = "stderr") -> tuple[()]:
    if x.is_meta:
        return ()
    text = bytes(x.tolist())
    # torchair prints what it receives from the device on a thread of its own; a graph without it prints by itself.
    if output_stream != "stderr" or not _send(text):
        stream = {"stderr": sys.stderr, "stdout": sys.stdout}.get(output_stream)
        if stream is None:
            raise HostRuntimeError(f"output_stream is {output_stream!r}; expected stderr or stdout")
        print(text.decode(errors="replace"), file=stream, flush=True)
    return ()


def _send(text: bytes) -> bool:
    function = ctypes.CDLL("libacl_tdt_channel.so").ascendgraphPrint
    function.restype, function.argtypes = ctypes.c_bool, (ctypes.c_char_p, ctypes.c_size_t)
    return bool(function(text, len(text)))
