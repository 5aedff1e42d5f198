"""C++ that is compiled on this machine: once, with ninja, under a lock, and cached.

What links PyTorch must match the PyTorch that is installed, so it is compiled against it ahead (``ascend-graph build``) or
on first use. The cache key covers sources, headers, flags, compiler, Python, torch and torch_npu: a change of any of them
compiles anew, and nothing stale is ever loaded.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ascend_graph.errors import AscendGraphError


class BuildError(AscendGraphError):
    """A compiler is missing or rejects a source."""


def cache_directory() -> Path:
    """Where compiled libraries are kept: ``$ASCEND_GRAPH_CACHE``, or ``ascend_graph`` in the user's cache directory."""
    override = os.environ.get("ASCEND_GRAPH_CACHE")
    if override:
        return Path(override)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ascend_graph"


@cache
def compiler() -> str:
    """The C++ compiler's path: ``$CXX``, or the first of g++, c++ and clang++ on PATH."""
    candidates = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "c++", "clang++"]
    for name in candidates:
        found = shutil.which(name)
        if found:
            return found
    raise BuildError(
        f"no C++ compiler: looked for {', '.join(candidates)} on PATH; install one with C++17 (on Debian: g++), or set CXX"
    )


@cache
def _compiler_version() -> str:
    return subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def package_directory(name: str) -> Path:
    """The directory of an installed package, found without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise BuildError(f"package {name!r} is not installed; install it with: pip install 'ascend-graph[torch]'")
    return Path(next(iter(spec.submodule_search_locations)))


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path`` between processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True, slots=True)
class CppLibrary:
    """A shared library and how it is compiled."""

    name: str
    sources: tuple[Path, ...]
    headers: tuple[Path, ...] = ()
    include_directories: tuple[Path, ...] = ()
    library_directories: tuple[Path, ...] = ()
    libraries: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    #: Anything else the result depends on, e.g. versions of packages.
    depends_on: tuple[str, ...] = ()
    #: The command that compiles Ascend C sources (``.asc``).
    kernel_compiler: tuple[str, ...] = ()

    def key(self) -> str:
        """A digest of everything the compiled library depends on."""
        digest = hashlib.sha256()
        for path in (*self.sources, *self.headers):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        for text in (*self.libraries, *self.flags, *self.depends_on, compiler(), _compiler_version()):
            digest.update(text.encode() + b"\0")
        return digest.hexdigest()[:16]

    def path(self) -> Path:
        """Where the compiled library is, or will be."""
        return cache_directory() / f"{self.name}-{self.key()}" / f"{self.name}.so"

    def build(self, *, time_limit: float | None = None) -> Path:
        """Compile unless the cache has it; return the library's path.

        Args:
            time_limit: seconds that compiling may take.

        Raises:
            BuildError: no compiler, its messages when it fails, or it took too long. Nothing is left in the cache then.
        """
        result = self.path()
        if result.exists():
            return result
        with locked(result.parent.with_suffix(".lock")):
            if result.exists():
                return result
            work = result.parent.with_name(f"{result.parent.name}.{os.getpid()}")
            work.mkdir(parents=True, exist_ok=True)
            try:
                (work / "build.ninja").write_text(self._ninja_file())
                ninja = self._run_ninja(work, time_limit)
                if ninja.returncode != 0:
                    raise BuildError(f"compiling {self.name} failed:\n{ninja.stdout}{ninja.stderr}")
                shutil.rmtree(result.parent, ignore_errors=True)
                work.rename(result.parent)
            finally:
                shutil.rmtree(work, ignore_errors=True)
        return result

    def _run_ninja(self, work: Path, time_limit: float | None) -> subprocess.CompletedProcess[str]:
        command = [*_ninja_command(), "-C", str(work), "-j", str(jobs())]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            try:
                output, errors = process.communicate(timeout=time_limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # the compiler too, not ninja alone
                raise BuildError(f"compiling {self.name} took more than {time_limit:g} seconds") from None
        return subprocess.CompletedProcess(command, process.returncode, output, errors)

    def _ninja_file(self) -> str:
        escape = _ninja_escape
        include = " ".join(f"-I{escape(d)}" for d in self.include_directories)
        search = " ".join(f"-L{escape(d)} -Wl,-rpath,{escape(d)}" for d in self.library_directories)
        libraries = " ".join(f"-l{name}" for name in self.libraries)
        objects = [f"{i}-{source.stem}.o" for i, source in enumerate(self.sources)]
        options = f"-std=c++17 -O2 -fPIC {' '.join(map(escape, self.flags))} {include} -c $in -o $out"
        lines = [
            "rule compile",
            f"  command = {escape(compiler())} {options}",
            "rule compile_kernel",
            f"  command = {' '.join(map(escape, self.kernel_compiler))} {options}",
            "rule link",
            f"  command = {escape(compiler())} -shared $in -o $out {search} {libraries}",
        ]
        rules = ["compile_kernel" if source.suffix == ".asc" else "compile" for source in self.sources]
        lines += [f"build {o}: {r} {escape(s)}" for o, r, s in zip(objects, rules, self.sources, strict=True)]
        lines += [f"build {self.name}.so: link {' '.join(objects)}", ""]
        return "\n".join(lines)


def _ninja_escape(value: Path | str) -> str:
    return str(value).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


def _ninja_command() -> list[str]:
    if importlib.util.find_spec("ninja") is not None:
        return [sys.executable, "-m", "ninja"]
    found = shutil.which("ninja")
    if found:
        return [found]
    raise BuildError("ninja is not installed; install it with: pip install ninja")


def jobs() -> int:
    """How many compilers may run at a time: ``$MAX_JOBS``, or one for each processor."""
    return int(os.environ.get("MAX_JOBS") or len(os.sched_getaffinity(0)))


def torch_library(
    name: str,
    sources: Iterable[Path],
    *,
    headers: Iterable[Path] = (),
    include_directories: Iterable[Path] = (),
    library_directories: Iterable[Path] = (),
    libraries: Iterable[str] = (),
) -> CppLibrary:
    """A library that is compiled against the installed torch and torch_npu."""
    torch = package_directory("torch")
    torch_npu = package_directory("torch_npu")
    versions = tuple(f"{p}={importlib.metadata.version(p)}" for p in ("torch", "torch_npu"))
    return CppLibrary(
        name=name,
        sources=tuple(sources),
        headers=tuple(headers),
        include_directories=(
            *include_directories,
            torch / "include",
            torch / "include/torch/csrc/api/include",
            torch_npu / "include",
            torch_npu / "include/third_party/acl/inc",
            torch_npu / "include/third_party/hccl/inc",
            torch_npu / "include/third_party/op-plugin",
            Path(sysconfig.get_paths()["include"]),
        ),
        library_directories=(*library_directories, torch / "lib", torch_npu / "lib"),
        libraries=(*libraries, "torch_npu", "torch_python", "torch", "torch_cpu", "c10"),
        flags=(f"-DTORCH_EXTENSION_NAME={name}", "-DTORCH_API_INCLUDE_EXTENSION_H", "-w"),
        depends_on=(*versions, sys.implementation.cache_tag or "", sys.prefix),
    )
