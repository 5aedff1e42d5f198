"""Differences between versions of torch and torch_npu, and the tested versions: all other modules ask here.

The counterpart for C++ is ``csrc/eager/versions.h``.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ascend_graph.errors import AscendGraphError

#: Tested versions of torch_npu, each with the torch of the same number: docs/versions.md.
TESTED = (
    "2.14.0", "2.13.0", "2.12.0.post3", "2.11.0.post3", "2.10.0.post7", "2.9.1", "2.9.0.post9", "2.8.0.post5", "2.7.1.post11",
)  # fmt: skip

#: The version that a project uses of which nothing else is known; pyproject.toml's test stack.
USUAL = "2.13.0"

#: Variable that allows an untested version if it is 1.
UNTESTED_VARIABLE = "ASCEND_GRAPH_UNTESTED"


_OLDEST = (2, 7, 1)
_TOO_OLD = (
    " and is older than what the host runtime has libraries for: 2.5 and 2.6 link classes of GE (ge::OperatorCreatorRegister, …) that "
    "it lacks, on x86_64 with the ABI of strings that PyTorch had then"
)


class VersionError(AscendGraphError):
    """Error of an installed torch and torch_npu that do not fit together, or were not tested."""


@dataclass(frozen=True, slots=True)
class Installed:
    """Installed package, read without importing it."""

    name: str
    directory: Path
    #: Version by its own files.
    version: str
    #: Versions by the installation records; two if one was installed over the other.
    recorded: tuple[str, ...]


def installed(name: str) -> Installed | None:
    """Return an installed package with a ``version.py``, as torch and torch_npu have, or None."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    directory = Path(next(iter(spec.submodule_search_locations)))
    recorded = tuple(
        dict.fromkeys(
            distribution.version
            for distribution in importlib.metadata.distributions(name=name, path=[str(directory.parent)])
        )
    )
    try:
        text = (directory / "version.py").read_text()
    except OSError:
        text = ""
    own = re.search(r"^__version__ = '([^']+)'", text, re.MULTILINE)
    return Installed(name, directory, own[1] if own else (*recorded, "unknown")[0], recorded)


def release(version: str) -> str:
    """Return the numbers that a version begins with, without its post release and build.

    >>> release("2.12.0.post3"), release("2.13.0+cpu")
    ('2.12.0', '2.13.0')
    """
    found = re.match(r"\d+(\.\d+)*", version)
    return found[0] if found else version


def _series(version: str) -> str:
    return ".".join(release(version).split(".")[:2])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", release(version))))


def requirement() -> str:
    """Return the tested range of torch and torch_npu as a requirement: ``>=2.13,<2.15``."""
    numbers = sorted(map(_numbers, TESTED))
    lowest = ".".join(map(str, numbers[0] if numbers[0][2] else numbers[0][:2]))
    return f">={lowest},<{numbers[-1][0]}.{numbers[-1][1] + 1}"


def check(environment: Mapping[str, str]) -> str | None:
    """Refuse a torch and torch_npu that cannot work or were not tested.

    Returns:
        A remark on another untested version, or None.

    Raises:
        VersionError: Two versions of one package are installed over each other, torch is a CUDA build, torch_npu is
            made for another torch, or its version is untested and ``ASCEND_GRAPH_UNTESTED`` is not 1.
    """
    torch, torch_npu = installed("torch"), installed("torch_npu")
    if torch is None or torch_npu is None:
        return None
    for package in (torch, torch_npu):
        if len(package.recorded) > 1 or any(release(v) != release(package.version) for v in package.recorded):
            raise VersionError(
                f"{package.directory.parent} has {package.name} {' and '.join(package.recorded)} installed over each other, "
                f"and files of {package.version}: remove it until pip finds none (pip uninstall {package.name}), then install one"
            )
    number = release(torch_npu.version)
    cuda = re.search(r"^cuda\b.*= '(.+)'", (torch.directory / "version.py").read_text(), re.MULTILINE)
    if cuda is not None:
        raise VersionError(
            f"the installed torch is built for CUDA {cuda[1]}; torch_npu loads only with PyTorch's CPU build. "
            f"Install that: pip install --force-reinstall torch=={number}+cpu --index-url <PyTorch's CPU wheels>"
        )
    if release(torch.version) != number:
        raise VersionError(
            f"torch_npu {torch_npu.version} is made for torch {number}, and torch {torch.version} is installed; "
            f"install that: pip install torch=={number}, or the torch_npu of torch {release(torch.version)}"
        )
    if torch_npu.version in TESTED:
        return None
    tested = f"tested are torch_npu {', '.join(TESTED)}, each with the torch of its number"
    if _series(number) in map(_series, TESTED):
        return f"torch_npu {torch_npu.version} was not tested; {tested}"
    if environment.get(UNTESTED_VARIABLE) == "1":
        return f"torch_npu {torch_npu.version} was not tested and may not work ({UNTESTED_VARIABLE}=1); {tested}"
    why = _TOO_OLD if _numbers(number) < _OLDEST else ""
    raise VersionError(
        f"torch_npu {torch_npu.version} was not tested{why}; {tested}. To try it all the same, set {UNTESTED_VARIABLE}=1"
    )


#: Name with compiler properties under which pybind11 before 3 keeps the Python classes that modules share.
_PYBIND11_NAME = re.compile(
    rb"\0__pybind11_internals_v\d+(?P<COMPILER_TYPE>_gcc|_clang|_icc)(?P<STDLIB>_libstdcpp|_libcpp)(?P<BUILD_ABI>_cxxabi\d+)__\0"
)


def cxx_flags(torch: Path) -> tuple[str, ...]:
    """Return the C++ flags for linking the torch in the directory ``torch``: standard, string ABI, pybind11's names.

    With other names than torch's a module does not know torch's own Python classes (process groups, streams).
    """
    extensions = _content(torch / "utils/cpp_extension.py").decode()
    # What it compiles with, not what an example in its documentation does.
    standard = max(map(int, re.findall(r"cflags\b.*-std=c\+\+(\d\d)\b", extensions)), default=17)
    # An exception's constructor that takes a string, as its mangled name says.
    old = b"_ZN3c105ErrorC2ENS_14SourceLocationESs" in _content(torch / "lib/libc10.so")
    names = _PYBIND11_NAME.search(_content(torch / "lib/libtorch_python.so"))
    return (
        f"-std=c++{standard}",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(not old)}",
        *(f'-DPYBIND11_{what}="{name.decode()}"' for what, name in (names.groupdict() if names else {}).items()),
    )


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


# ------------------------------------------------------------------------------------------------- torch's tables

# A meta function can be put over another from torch 2.13 on without a word, from 2.8 on with one, and before that not at
# all: there an operator's entry holds one function, and the dispatcher alone takes a second.


def fake_kernels(entry: Any) -> list[Any]:
    """Return the meta functions in an operator's entry (``FakeImplHolder``); the last one is active."""
    kernels = getattr(entry, "kernels", None)
    if kernels is not None:
        return list(kernels)
    return [] if entry.kernel is None else [entry.kernel]


def register_fake(library: Any, name: str, function: Callable[..., Any]) -> None:
    """Register a meta function over existing ones of the operator ``name``, for the lifetime of a library."""
    from torch._library.fake_impl import construct_meta_kernel
    from torch._library.simple_registry import singleton
    from torch._library.utils import Kernel, RegistrationHandle

    qualified = f"{library.ns}::{name}"
    entry = singleton.find(qualified).fake_impl
    code = getattr(function, "__code__", None)
    source = repr(function) if code is None else f"{code.co_filename}:{code.co_firstlineno}"
    if _takes_override(library._register_fake):
        # What library._register_fake does, without a look through the caller's stack.
        library._registration_handles.append(entry.register(function, source, library, allow_override=True))
        return
    kernel = Kernel(function, source)
    entry.kernels = [*fake_kernels(entry), kernel]
    entry.kernel = kernel

    def forget() -> None:
        entry.kernels.remove(kernel)
        entry.kernel = entry.kernels[-1] if entry.kernels else None
        if not entry.kernels:
            del entry.kernels

    library._registration_handles.append(RegistrationHandle(forget))
    override_kernel(library, qualified, construct_meta_kernel(qualified, entry), "Meta")


def override_kernel(
    library: Any, name: str, function: Callable[..., Any], key: str, *, with_keyset: bool = False
) -> None:
    """Register a Python kernel over one that Python registered before."""
    if _takes_override(library.impl):
        library.impl(name, function, key, with_keyset=with_keyset, allow_override=True)
    else:
        library.m.impl(name, key, function, with_keyset)  # what library.impl does when it has nothing to refuse


def _takes_override(method: Any) -> bool:
    return _has_override(method.__func__)


@lru_cache(maxsize=8)
def _has_override(function: Callable[..., Any]) -> bool:
    return "allow_override" in inspect.signature(function).parameters


def forget_sharding() -> None:
    """Clear DTensor's cache of placements, so that an operator's rule is evaluated again.

    torch 2.8 has the cache but no function that clears it.
    """
    from torch.distributed.tensor import DTensor, debug

    clear = getattr(debug, "_clear_sharding_prop_cache", None)
    if clear is not None:
        clear()
    else:
        DTensor._op_dispatcher.sharding_propagator.propagate_op_sharding.cache.cache_clear()


def guard_or_false(condition: Any) -> bool:
    """Return whether a condition over symbolic sizes is known to hold; torch 2.7 calls it ``definitely_true``."""
    from torch.fx.experimental import symbolic_shapes

    name = "guard_or_false" if hasattr(symbolic_shapes, "guard_or_false") else "definitely_true"
    return bool(getattr(symbolic_shapes, name)(condition))
