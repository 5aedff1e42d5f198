"""Compiled eager kernel: built once against the installed torch and torch_npu, and loaded."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType

import ascend_graph.eager
from ascend_graph.binding.errors import EagerError
from ascend_graph.compilation import CppLibrary, torch_library
from ascend_graph.eager.errors import AclnnError, EagerArgumentError, MissingFunctionError

NAME = "ascend_graph_eager"
_TANGENTS = "ascend_graph_tangents"


def source_directory() -> Path:
    """Return the directory of the C++ sources: the kernel's, and ``aclnn.h``, which generated libraries include."""
    for directory in ascend_graph.eager.__path__:
        sources = Path(directory) / "csrc"
        if (sources / "aclnn.h").is_file():
            return sources
    raise EagerError(
        f"the eager kernel's C++ sources are not installed: expected csrc/aclnn.h in {', '.join(ascend_graph.eager.__path__)}; "
        "install ascend-graph from a wheel or with 'pip install -e .'"
    )


def eager_library() -> CppLibrary:
    """Return the library with the kernel's sources and compiler options."""
    sources = source_directory()
    library = torch_library(NAME, sorted(sources.glob("*.cpp")), headers=sorted(sources.glob("*.h")))
    return sanitized(replace(library, optimized_always=True))


#: Headers of csrc/eager that the kernels of authors' operators include.
_OF_TANGENTS = ("autograd", "tangents", "versions")


def tangent_library() -> CppLibrary:
    """Return the library of the kernels by which authors' operators refuse forward mode, and gradients; it compiles soon."""
    sources = source_directory()
    library = torch_library(
        _TANGENTS,
        sorted((sources / "tangents").glob("*.cpp")),
        headers=[*sorted((sources / "tangents").glob("*.h")), *(sources / f"{name}.h" for name in _OF_TANGENTS)],
    )
    return sanitized(replace(library, optimized_always=True))


def sanitized(library: CppLibrary) -> CppLibrary:
    """Return the library with the sanitizers that ``ASCEND_GRAPH_SANITIZE`` names, e.g. ``address,undefined``.

    Their run-time libraries must be preloaded (docs/eager.md).
    """
    names = os.environ.get("ASCEND_GRAPH_SANITIZE")
    if not names:
        return library
    # torch_npu exports its classes without their type_info, which the check of virtual calls asks for.
    flags = (f"-fsanitize={names}", "-fno-sanitize=vptr", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g")
    return replace(library, flags=(*library.flags, *flags))


@cache
def kernels() -> ModuleType:
    """Return the loaded library as a Python module, compiled if it is not in the cache.

    Raises:
        BuildError: There is no compiler, or it rejects the sources.
    """
    module = _module(eager_library())
    module.set_errors(AclnnError, MissingFunctionError, EagerArgumentError)
    return module


@cache
def tangent_refusals() -> ctypes.CDLL:
    """Return the loaded library of :func:`tangent_library`, compiled if it is not in the cache.

    Raises:
        BuildError: There is no compiler, or it rejects the sources.
    """
    library = ctypes.CDLL(str(_built(tangent_library())))
    library.ascendgraphRefuseTangents.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_bool, ctypes.c_bool)
    library.ascendgraphRefuseTangents.restype = ctypes.c_void_p
    library.ascendgraphRefusalFailure.restype = ctypes.c_char_p
    library.ascendgraphTakeBackRefusal.argtypes = (ctypes.c_void_p,)
    library.ascendgraphTakeBackRefusal.restype = None
    return library


def _built(library: CppLibrary) -> Path:
    import torch  # noqa: F401 - its libraries must be loaded first

    return library.build()


def _module(library: CppLibrary) -> ModuleType:
    path = _built(library)
    spec = importlib.util.spec_from_file_location(library.name, path)
    if spec is None or spec.loader is None:
        raise EagerError(f"{path} is not an extension module; name a .so file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def loaded() -> ModuleType | None:
    """Return the library if it is loaded, without compiling it."""
    return kernels() if kernels.cache_info().currsize else None
