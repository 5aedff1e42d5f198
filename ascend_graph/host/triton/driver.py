"""Triton-Ascend's driver and compiler on the host runtime.

The wheel's own front end compiles a kernel to Triton's IR, and its own adapter lowers that as for a device: what the
adapter refuses there, it refuses here. In the place of the device's compiler, which is no part of the wheel, the IR is
kept in MLIR's generic form. A launch runs it (``program.py``) as work of the stream (``launch.py``).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ascend_graph.environment import processor
from ascend_graph.host.triton.ir import TritonProgramError
from ascend_graph.host.triton.launch import Launch, bind, enqueue
from ascend_graph.host.triton.memory import HostMemoryError
from ascend_graph.host.triton.program import Program
from ascend_graph.processors import PROCESSORS

#: Version of what a compiled kernel is: it is part of the key in Triton's own cache.
_FORMAT = "ascend_graph 1"


class HostUtils:
    """Properties of the device, and the loading of compiled kernels; it has the interface of ``NPUUtils``."""

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, Program, int, int]:
        program = Program(kernel.decode())
        return program, program, 0, 0

    def get_device_properties(self, device: Any) -> dict[str, int]:
        one = PROCESSORS[processor(os.environ)]
        return {"max_shared_mem": 1, "num_aicore": one.cube_cores, "num_vectorcore": one.vector_cores}

    def get_arch(self) -> str:
        return processor(os.environ)

    def get_aicore_num(self) -> int:
        return self.get_device_properties(0)["num_aicore"]

    def get_aivector_core_num(self) -> int:
        return self.get_device_properties(0)["num_vectorcore"]

    def set_device_limit(self, device: Any, kind: Any, value: Any) -> None:
        """Do nothing: the host has none of these limits."""


class HostLauncher:
    """Launcher of one compiled kernel; Triton calls it with the grid, the stream, and the arguments."""

    def __init__(self, src: Any, metadata: Any) -> None:
        names = list(src.signature)
        constants = set(getattr(src, "constants", None) or ())
        self._names = [str(name) for name in names]
        self._kept = [place for place, name in enumerate(names) if name not in constants and place not in constants]

    def __call__(
        self,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        stream: int,
        program: Program,
        packed_metadata: Any,
        launch_metadata: Any,
        enter_hook: Any,
        exit_hook: Any,
        *arguments: Any,
    ) -> None:
        if enter_hook is not None:
            enter_hook(launch_metadata)
        if min(grid_x, grid_y, grid_z) > 0:
            self._launch((int(grid_x), int(grid_y), int(grid_z)), stream, program, arguments)
        if exit_hook is not None:
            exit_hook(launch_metadata)

    def _launch(self, grid: tuple[int, int, int], stream: int, program: Program, arguments: tuple[Any, ...]) -> None:
        bound: list[Any] = []
        extents = {}
        for place, (at, type_) in enumerate(zip(self._kept, program.parameters, strict=True)):
            try:
                value, extent = bind(self._names[at], place, type_, arguments[at])
            except HostMemoryError as error:
                raise HostMemoryError(f"kernel {program.name}: {error}") from None
            bound.append(value)
            if extent is not None:
                extents[place] = extent
        enqueue(stream, Launch(program, grid, bound, extents))


def generic_form(ttir: str, adapter: str) -> str:
    """Return Triton's IR in MLIR's generic form, as the wheel's adapter prints it.

    Raises:
        RuntimeError: the adapter does not accept it.
    """
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "kernel.ttir.mlir"
        source.write_text(ttir, encoding="utf-8")
        command = [adapter, str(source), "--mlir-print-op-generic", "--mlir-print-debuginfo"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{adapter}: {done.stderr.strip()}")
    return done.stdout


def host_backend(stock: type[Any]) -> type[Any]:
    """Return the wheel's backend with the host's last stage."""

    class HostBackend(stock):  # type: ignore[misc]
        """Backend whose binaries are IR."""

        def add_stages(self, stages: dict[str, Any], options: Any) -> None:
            super().add_stages(stages, options)
            kept: list[str] = []
            to_ttir = stages["ttir"]

            def ttir(source: Any, metadata: dict[str, Any]) -> Any:
                module = to_ttir(source, metadata)
                kept[:] = [str(module)]
                return module

            stages["ttir"] = ttir
            stages["npubin"] = lambda lowered, metadata: _binary(lowered, metadata, kept)

        @lru_cache  # noqa: B019 - as in the wheel
        def hash(self) -> str:
            return f"{super().hash()}-{_FORMAT}"

    return HostBackend


def _binary(lowered: Any, metadata: dict[str, Any], kept: list[str]) -> bytes:
    """Return the kernel in the generic form; its metadata is read as the wheel reads it.

    Raises:
        TritonProgramError: the kernel has an operation that the host does not know.
    """
    compiler = import_module("triton.backends.ascend.compiler")
    adapter = import_module("triton.backends.ascend.utils")._get_triton_adapter_opt_path()
    text = str(lowered)
    if kept:
        compiler._parse_linalg_metadata(text, metadata)
    else:
        kept = [text]
        compiler._parse_ttir_metadata(text, metadata)
    generic = generic_form(kept[0], adapter)
    Program(generic)
    return generic.encode()


def host_driver(stock: type[Any]) -> type[Any]:
    """Return the wheel's driver with the host's utilities and launcher."""

    class HostDriver(stock):  # type: ignore[misc]
        """Driver of the host's devices."""

        def __init__(self) -> None:
            self.utils = HostUtils()
            self.launcher_cls = HostLauncher

        @classmethod
        def is_active(cls) -> bool:
            return True

        def get_benchmarker(self) -> Callable[..., Any]:
            """Return the wheel's benchmark, which waits for the device and is refused by name where a capture cannot."""
            measure = super().get_benchmarker()

            def bench(*arguments: Any, **options: Any) -> Any:
                if import_module("torch").npu.is_current_stream_capturing():
                    raise TritonProgramError(
                        "triton.autotune: a kernel measures its configurations at its first launch for a key, which a "
                        "stream that captures cannot; launch it once with these sizes before the capture (call the "
                        "function once before torch.compile or NPUGraph), or give it one configuration"
                    )
                return measure(*arguments, **options)

            return bench

        def get_empty_cache_for_benchmark(self) -> Any:
            """Return what autotuning clears before each run: next to nothing, for the host has no cache of the device's."""
            torch = import_module("torch")
            return torch.empty(1, dtype=torch.int, device="npu")

    return HostDriver
