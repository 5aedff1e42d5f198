"""What differs between versions of torch and torch_npu, and with which this was tested: everything else asks here.

What C++ has to know of a version stands in ``csrc/eager/versions.h``.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_graph.errors import AscendGraphError

#: The versions of torch_npu that were tested, each beside the torch of its number: docs/versions.md.
TESTED = (
    "2.14.0", "2.13.0", "2.12.0.post3", "2.11.0.post3", "2.10.0.post7", "2.9.1", "2.9.0.post9", "2.8.0.post5", "2.7.1.post11",
)  # fmt: skip

#: Set to 1, another version is tried all the same.
UNTESTED_VARIABLE = "ASCEND_GRAPH_UNTESTED"


_OLDEST = (2, 7, 1)
_TOO_OLD = (
    " and is older than what the host runtime has libraries for: 2.5 and 2.6 link classes of GE (ge::OperatorCreatorRegister, …) that "
    "it lacks, on x86_64 with the ABI of strings that PyTorch had then"
)


class VersionError(AscendGraphError):
    """The installed torch and torch_npu do not go together, or are none that was tested."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A package as it is installed, read without importing it."""

    name: str
    directory: Path
    #: As its own files say.
    version: str
    #: As the installation says; two where one was installed over the other.
    recorded: tuple[str, ...]


def installed(name: str) -> Installed | None:
    """An installed package that has a ``version.py``, as torch and torch_npu have; None where there is none."""
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
    """The numbers that a version begins with, without its post release and build.

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
    """The range of torch and torch_npu that was tested, as requirements write it: ``>=2.13,<2.15``."""
    numbers = sorted(map(_numbers, TESTED))
    lowest = ".".join(map(str, numbers[0] if numbers[0][2] else numbers[0][:2]))
    return f">={lowest},<{numbers[-1][0]}.{numbers[-1][1] + 1}"


def check(environment: Mapping[str, str]) -> str | None:
    """Refuse an installation of torch and torch_npu that cannot work or was not tested; a remark on another post release.

    Raises:
        VersionError: two versions of one package are installed over each other, torch is a CUDA build, torch_npu is made
            for another torch, or nobody tested its version and ``ASCEND_GRAPH_UNTESTED`` is not 1.
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
            f"the installed torch is built for CUDA {cuda[1]}; torch_npu loads beside PyTorch's CPU build only. "
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


#: pybind11 before 3 keeps the classes of Python that modules share under a name that says how it was compiled.
_PYBIND11_NAME = re.compile(
    rb"\0__pybind11_internals_v\d+(?P<COMPILER_TYPE>_gcc|_clang|_icc)(?P<STDLIB>_libstdcpp|_libcpp)(?P<BUILD_ABI>_cxxabi\d+)__\0"
)


def cxx_flags(torch: Path) -> tuple[str, ...]:
    """How C++ is compiled that links the torch in the directory ``torch``: standard, ABI of strings, pybind11's names.

    With other names than torch's a module does not know torch's own classes of Python (process groups, streams).
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
    """The meta functions that an operator's entry (``FakeImplHolder``) holds; the last one is in force."""
    kernels = getattr(entry, "kernels", None)
    if kernels is not None:
        return list(kernels)
    return [] if entry.kernel is None else [entry.kernel]


def register_fake(library: Any, name: str, function: Callable[..., Any]) -> None:
    """Put a meta function over those that the operator ``name`` of a library's namespace has, until the library goes."""
    if _takes_override(library._register_fake):
        library._register_fake(name, function, _stacklevel=2, allow_override=True)
        return
    from torch._library.fake_impl import construct_meta_kernel
    from torch._library.simple_registry import singleton
    from torch._library.utils import Kernel, RegistrationHandle, get_source

    qualified = f"{library.ns}::{name}"
    entry = singleton.find(qualified).fake_impl
    kernel = Kernel(function, get_source(2))
    entry.kernels = [*fake_kernels(entry), kernel]
    entry.kernel = kernel

    def forget() -> None:
        entry.kernels.remove(kernel)
        entry.kernel = entry.kernels[-1] if entry.kernels else None
        if not entry.kernels:
            del entry.kernels

    library._registration_handles.append(RegistrationHandle(forget))
    override_kernel(library, qualified, construct_meta_kernel(qualified, entry), "Meta")


def override_kernel(library: Any, name: str, function: Callable[..., Any], key: str) -> None:
    """Register a kernel in Python over one that Python registered before."""
    if _takes_override(library.impl):
        library.impl(name, function, key, allow_override=True)
    else:
        library.m.impl(name, key, function, False)  # what library.impl does when it has nothing to refuse


def _takes_override(method: Callable[..., Any]) -> bool:
    return "allow_override" in inspect.signature(method).parameters


def forget_sharding() -> None:
    """Drop what DTensor has derived of the placements of calls, so that an operator's rule is asked anew.

    torch 2.8 has the cache and no function that empties it.
    """
    from torch.distributed.tensor import DTensor, debug

    clear = getattr(debug, "_clear_sharding_prop_cache", None)
    if clear is not None:
        clear()
    else:
        DTensor._op_dispatcher.sharding_propagator.propagate_op_sharding.cache.cache_clear()


def guard_or_false(condition: Any) -> bool:
    """Whether a condition over symbolic sizes is known to hold; ``definitely_true`` is what torch 2.7 calls it."""
    from torch.fx.experimental import symbolic_shapes

    name = "guard_or_false" if hasattr(symbolic_shapes, "guard_or_false") else "definitely_true"
    return bool(getattr(symbolic_shapes, name)(condition))
