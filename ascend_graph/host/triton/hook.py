"""Patches of Triton-Ascend's modules; NumPy and what runs kernels are imported with the first of them."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from ascend_graph.import_patches import Patch, patch_modules


def use_host_backend(module: ModuleType) -> Iterator[None]:
    """Let ``triton.backends`` have the host's driver and compiler in the place of Ascend's."""
    yield
    from ascend_graph.host.triton.driver import host_backend, host_driver

    stock = module.backends.get("ascend")
    if stock is not None:
        module.backends["ascend"] = type(stock)(host_backend(stock.compiler), host_driver(stock.driver))


def use_host_utilities(module: ModuleType) -> Iterator[None]:
    """Let ``triton.backends.ascend.driver`` have the host's utilities, for programs that ask them for cores."""
    yield
    from ascend_graph.host.triton.driver import HostUtils

    module.NPUUtils = HostUtils  # type: ignore[attr-defined]


_PATCHES: dict[str, Patch] = {"triton.backends": use_host_backend, "triton.backends.ascend.driver": use_host_utilities}


def install() -> None:
    """Let Triton-Ascend run on the host, also if it was imported already.

    PyTorch's import calls it: libraries of kernels ask Triton's driver for the device while they are imported, when none
    is in use yet.
    """
    patch_modules(_PATCHES)
