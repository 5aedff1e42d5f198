"""Launches of Triton kernels: work of a stream, in its order, recorded by captures and run by each replay."""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ascend_graph.environment import HostRuntimeError, is_strict
from ascend_graph.host.time_limit import within_limit
from ascend_graph.host.triton.ir import Type
from ascend_graph.host.triton.memory import Extent, HostMemoryError, KernelMemory, TritonKernelError
from ascend_graph.host.triton.nested import is_nested
from ascend_graph.host.triton.program import Program

#: ACL's error of a kernel that failed, and of one that took too long.
_FAILED, _TIMED_OUT = 507015, 507014

_RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_DESTROY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

#: Launches that a stream or a captured graph still holds, by the number that stands for each in C.
_launches: dict[int, Launch] = {}
_numbers = itertools.count(1)


@dataclass
class Launch:
    """One launch: a program, a grid, and arguments of which the pointers are addresses."""

    program: Program
    grid: tuple[int, int, int]
    arguments: Sequence[Any]
    extents: dict[int, Extent]
    released: int = -1  # how many allocations were when the memory was last known to be there

    def run(self) -> None:
        """Run the kernel now.

        Raises:
            TritonKernelError: it failed.
        """
        if not is_nested():
            self._check_memory()
        memory = KernelMemory(self.extents, mapping if is_nested() else allocation, is_strict(os.environ))
        within_limit(f"kernel {self.program.name}", lambda: self.program.run(self.grid, self.arguments, memory))

    def _check_memory(self) -> None:
        released = int(_runtime().ascendgraphReleases())
        if released == self.released:
            return
        for extent in self.extents.values():
            found = allocation(extent.begin) if extent.size else (extent.begin, 0)
            if found is None or extent.end > found[0] + found[1]:
                raise TritonKernelError(
                    f"the memory of {extent.name} was released; keep the inputs of a captured graph alive as long as the graph"
                )
        self.released = released


@cache
def _runtime() -> ctypes.CDLL:
    library = ctypes.CDLL("libascendcl.so")
    library.ascendgraphEnqueue.argtypes = [ctypes.c_void_p, ctypes.c_char_p, _RUN, ctypes.c_void_p, _DESTROY]
    library.ascendgraphSetError.argtypes = [ctypes.c_int, ctypes.c_char_p]
    library.ascendgraphRecentError.restype = ctypes.c_char_p
    library.ascendgraphReleases.restype = ctypes.c_uint64
    library.ascendgraphAllocationExtent.restype = ctypes.c_bool
    library.ascendgraphAllocationExtent.argtypes = [
        ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t),
    ]  # fmt: skip
    return library


def allocation(address: int) -> tuple[int, int] | None:
    """Return begin and size of the live allocation of a device at an address; None if there is none."""
    base, size = ctypes.c_void_p(), ctypes.c_size_t()
    found = _runtime().ascendgraphAllocationExtent(address, ctypes.byref(base), ctypes.byref(size))
    return (base.value or 0, size.value) if found else None


def mapping(address: int) -> tuple[int, int] | None:
    """Return begin and size of the mapped memory at an address: all that is known of tensors that a Python kernel makes."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        begin, end = (int(text, 16) for text in line.split()[0].split("-"))
        if begin <= address < end and line.split()[1].startswith("rw"):
            return begin, end - begin
    return None


@cache
def _uncompiled() -> Callable[[int], None]:
    """Return the function that runs a launch where Dynamo does not look at it."""
    import torch

    disabled: Callable[[int], None] = torch.compiler.disable(_run_number)
    return disabled


def _run_number(number: int) -> None:
    launch = _launches[number]
    try:
        launch.run()
    except KeyboardInterrupt:
        raise
    except Exception as error:
        code = _TIMED_OUT if isinstance(error, HostRuntimeError) else _FAILED
        text = str(error) if code == _TIMED_OUT else f"kernel {launch.program.name}: {error}"
        _runtime().ascendgraphSetError(code, text.encode())


#: KeyboardInterrupt of a kernel: it leaves C by the launcher, where there is one.
_interrupts: list[BaseException] = []


def _run(number: int) -> int:
    try:
        _uncompiled()(number)
    except BaseException as error:
        _interrupts.append(error)
    return 0


def _destroy(number: int) -> None:
    _launches.pop(number, None)


# Kept, for C code calls them as long as the process lives.
_RUN_CALLBACK, _DESTROY_CALLBACK = _RUN(_run), _DESTROY(_destroy)


def enqueue(stream: int, launch: Launch) -> None:
    """Enqueue a launch on a stream: it runs in the stream's order, or is recorded by the stream's capture.

    Inside a Python kernel of an operator package it runs at once, as a part of that.

    Raises:
        RuntimeError: the stream refuses it.
        TritonKernelError: it failed inside a Python kernel.
    """
    if is_nested():
        launch.run()
        return
    number = next(_numbers)
    _launches[number] = launch
    error = _runtime().ascendgraphEnqueue(
        stream or None, launch.program.name.encode(), _RUN_CALLBACK, number, _DESTROY_CALLBACK
    )
    if _interrupts:
        raise _interrupts.pop()
    if error != 0:
        reason = (_runtime().ascendgraphRecentError() or b"").decode()
        raise RuntimeError(f"kernel {launch.program.name}: ACL error {error}: {reason}")


def bind(name: str, place: int, type_: Type, value: Any) -> tuple[Any, Extent | None]:
    """Return an argument as a program takes it, and the memory that it points to if it is a pointer.

    Raises:
        HostMemoryError: a tensor is not in device memory.
    """
    if not type_.is_pointer:
        return value, None
    if value is None:
        return 0, None
    if isinstance(value, int):
        found = allocation(value)
        return value, Extent(name, *found) if found else None
    tensor = getattr(value, "base", value)  # of triton.reinterpret
    address = int(value.data_ptr())
    if not hasattr(tensor, "untyped_storage"):
        found = allocation(address)
        return address, Extent(name, *found) if found else None
    device = tensor.device.type
    if device not in ("npu", "privateuseone") and not (is_nested() and device == "cpu"):
        raise HostMemoryError(
            f"argument {name} cannot be accessed from Triton (cpu tensor?): expected a tensor on npu, got one on {device}; move it "
            "with .npu()"
        )
    storage = tensor.untyped_storage()
    return address, Extent(name, int(storage.data_ptr()), int(storage.nbytes()))
