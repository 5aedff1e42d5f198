"""A shared library of C++ sources: what it is made from, and the making of it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ascend_graph.compilation.cache import (
    Entry,
    ReadFile,
    add_entry,
    cache_directory,
    entries,
    files_of_rule,
    locked,
    scratch_directory,
    writable_cache,
)
from ascend_graph.compilation.processes import started
from ascend_graph.compilation.progress import announced
from ascend_graph.compilation.toolchain import BuildError, compiler, jobs, ninja, options_of, toolchain_key
from ascend_graph.versions import cxx_flags

#: A source that somebody edits while it is compiled is compiled again so often.
_ATTEMPTS = 3


def package_directory(name: str) -> Path:
    """The directory of an installed package, found without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise BuildError(f"package {name!r} is not installed; install it with: pip install 'ascend-graph[torch]'")
    return Path(next(iter(spec.submodule_search_locations)))


@dataclass(frozen=True, slots=True)
class CppLibrary:
    """A shared library and how it is compiled.

    Headers need no mention: the compiler says which it read. ``headers`` are those that lie where the next build will not
    find them, such as generated ones in a temporary directory: they count by their contents alone.
    """

    name: str
    sources: tuple[Path, ...]
    headers: tuple[Path, ...] = ()
    include_directories: tuple[Path, ...] = ()
    library_directories: tuple[Path, ...] = ()
    libraries: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    #: Anything else the result depends on, e.g. versions of packages.
    depends_on: tuple[str, ...] = ()
    #: Options of the link, before the libraries: what has functions that these have, too.
    link_first: tuple[str, ...] = ()
    #: Options of the link, after the libraries.
    link_options: tuple[str, ...] = ()
    #: The command that compiles Ascend C sources (``.asc``).
    kernel_compiler: tuple[str, ...] = ()
    #: What it is compiled for, in words for whoever waits: ``for torch 2.13.0, one to three minutes``.
    why: str = ""
    #: Directories whose headers ``depends_on`` stands for.
    versioned_directories: tuple[Path, ...] = ()

    def key(self) -> str:
        """A digest of everything the compiled library depends on, but for the headers that the compiler finds.

        Raises:
            BuildError: a source cannot be read, or there is no compiler.
        """
        digest = hashlib.sha256()
        for path in (*self.sources, *self.headers):
            try:
                digest.update(path.name.encode(errors="surrogateescape") + b"\0" + path.read_bytes() + b"\0")
            except OSError as error:
                raise BuildError(f"{self.name}: the source {path} cannot be read: {error.strerror or error}") from None
        options = (*self.link_first, *self.libraries, *self.flags, *self.link_options)
        for text in (*options, *self.depends_on, *self.kernel_compiler, *toolchain_key()):
            digest.update(text.encode(errors="surrogateescape") + b"\0")
        return digest.hexdigest()[:16]

    def cached(self) -> Path | None:
        """The compiled library, if the cache has it and nothing it was made from has changed."""
        return self._cached(self.key())

    def _cached(self, key: str) -> Path | None:
        cache, file = cache_directory(), f"{self.name}.so"
        for entry in entries(cache / f"{self.name}-{key}.json"):
            if entry.is_valid(cache, file):
                return cache / entry.directory / file
        return None

    def build(self, *, time_limit: float | None = None) -> Path:
        """Compile unless the cache has it; return the library's path.

        Args:
            time_limit: seconds that compiling may take.

        Raises:
            BuildError: no compiler, its messages when it fails, it took too long, or the cache cannot be written. Nothing
                is left in the cache then.
        """
        found = self.cached()
        if found is not None:
            return found
        with writable_cache() as cache:
            for _ in range(_ATTEMPTS):
                key = self.key()
                with locked(cache / f"{self.name}-{key}.lock"):
                    found = self._cached(key)
                    if found is not None:  # another process made it meanwhile
                        return found
                    with scratch_directory(cache) as work:
                        result = self._compiled(cache, work, key, time_limit)
                        if result is not None:
                            return result
        raise BuildError(f"compiling {self.name}: its sources changed while they were compiled, {_ATTEMPTS} times")

    def _compiled(self, cache: Path, work: Path, key: str, time_limit: float | None) -> Path | None:
        """The library, compiled and put into the cache; None if its sources changed meanwhile."""
        file = f"{self.name}.so"
        (work / "build.ninja").write_text(self._ninja_file(), errors="surrogateescape")
        (work / "tmp").mkdir()
        with announced(self.name, self.why, cache):
            self._run_ninja(work, time_limit)
        _check_library(work / file, self.name)
        read = self._headers_read(work)
        if self.key() != key:
            return None
        contents = hashlib.sha256("".join(f"{r.path}\0{r.digest}\0" for r in read).encode(errors="surrogateescape"))
        target = cache / f"{self.name}-{key}-{contents.hexdigest()[:8]}"
        kept = work / "library"
        kept.mkdir()
        (work / file).rename(kept / file)
        if target.exists():  # made from the same bytes, but damaged
            target.rename(work / "damaged")
        kept.rename(target)
        entry = Entry(target.name, (target / file).stat().st_size, read, self.depends_on)
        add_entry(cache / f"{self.name}-{key}.json", entry, work)
        return target / file

    def _headers_read(self, work: Path) -> tuple[ReadFile, ...]:
        """The files that the compiler read, but for those that the key counts already."""
        counted = {path.resolve() for path in (*self.sources, *self.headers)}
        versioned = tuple(f"{directory.resolve()}{os.sep}" for directory in self.versioned_directories)
        found: dict[Path, None] = {}
        for rule in sorted(work.glob("*.d")):
            for path in files_of_rule(rule.read_text(errors="surrogateescape")):
                found[(work / path).resolve()] = None
        return tuple(
            ReadFile.of(path)
            for path in found
            if path not in counted
            and not str(path).startswith(versioned)
            and not path.is_relative_to(work.resolve())
            and path.is_file()  # what a driver wrote and took away is none of the author's
        )

    def _run_ninja(self, work: Path, time_limit: float | None) -> None:
        command = [*ninja(), "-C", str(work), "-j", str(jobs())]
        # A killed compiler's files go with the directory.
        _run(command, f"compiling {self.name}", time_limit, {**os.environ, "TMPDIR": str(work / "tmp")})

    def preprocessed(self, source: Path, *flags: str, time_limit: float | None = None) -> str:
        """One of the sources as the preprocessor makes it, with some flags more.

        Raises:
            BuildError: there is no compiler, its messages when it fails, or it took too long.
        """
        program = self.kernel_compiler if source.suffix == ".asc" else compiler()
        with tempfile.TemporaryDirectory(prefix="ascend-graph-preprocessed-") as directory:
            output = Path(directory) / "source.ii"
            command = [*program, *self._options(), *flags, "-E", str(source.absolute()), "-o", str(output)]
            _run(command, f"preprocessing {source}", time_limit)
            return output.read_text(errors="surrogateescape")

    def _options(self) -> list[str]:
        include = [f"-I{directory}" for directory in self.include_directories]
        standard = [] if any(flag.startswith("-std=") for flag in self.flags) else ["-std=c++17"]
        return [*standard, "-O2", "-fPIC", *self.flags, *options_of("CXXFLAGS"), *include]

    def _ninja_file(self) -> str:
        search = [o for d in self.library_directories for o in (f"-L{d}", "-Xlinker", "-rpath", "-Xlinker", str(d))]
        objects = [f"{i}.o" for i in range(len(self.sources))]
        options = self._options()
        libraries = (f"-l{name}" for name in self.libraries)
        link = [*search, *self.link_first, *libraries, *self.link_options, *options_of("LDFLAGS")]
        lines = [
            "rule compile",
            f"  command = {_command(compiler(), options)} -MD -MF ${{out}}.d -c $in -o $out",
            "rule compile_kernel",
            f"  command = {_command(self.kernel_compiler, options)} -MD -MF ${{out}}.d -c $in -o $out",
            "rule link",
            f"  command = {_command(compiler(), ['-shared'])} $in -o $out {_command((), link)}",
        ]
        rules = ["compile_kernel" if source.suffix == ".asc" else "compile" for source in self.sources]
        lines += [
            f"build {o}: {r} {_ninja_path(s.absolute())}" for o, r, s in zip(objects, rules, self.sources, strict=True)
        ]
        lines += [f"build {self.name}.so: link {' '.join(objects)}", ""]
        return "\n".join(lines)


def _run(
    command: Sequence[str], what: str, time_limit: float | None, environment: Mapping[str, str] | None = None
) -> None:
    """Run a program to its end; what it says is the error where it fails."""
    with started(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment
    ) as process:
        try:
            output, _ = process.communicate(timeout=time_limit)
        except subprocess.TimeoutExpired:
            raise BuildError(f"{what} took more than {time_limit:g} seconds") from None
    if process.returncode != 0:
        raise BuildError(f"{what} failed:\n{output.strip()}{_hint(output)}")


def _command(program: Sequence[str], arguments: Sequence[str]) -> str:
    """A command as ninja hands it to the shell."""
    return shlex.join([*program, *arguments]).replace("$", "$$")


def _ninja_path(path: Path) -> str:
    return str(path).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


def _check_library(path: Path, name: str) -> None:
    try:
        with path.open("rb") as file:
            is_library = file.read(4) == b"\x7fELF"
    except FileNotFoundError:
        is_library = False
    if not is_library:
        raise BuildError(
            f"compiling {name}: {shlex.join(compiler())} reported success but made no shared library; set CXX to another"
        )


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
    versions = tuple(map(_installed, ("torch", "torch_npu")))
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
        flags=(*cxx_flags(torch), f"-DTORCH_EXTENSION_NAME={name}", "-DTORCH_API_INCLUDE_EXTENSION_H", "-w"),
        depends_on=(*versions, sys.implementation.cache_tag or "", sys.prefix),
        versioned_directories=(torch, torch_npu),
        why=f"for {' and '.join(f'{name} {importlib.metadata.version(name)}' for name in ('torch', 'torch_npu'))}, one to three minutes",
    )


def _installed(package: str) -> str:
    """A package as it is installed: two builds of one version differ in their lists of files and digests."""
    distribution = importlib.metadata.distribution(package)
    record = hashlib.sha256((distribution.read_text("RECORD") or "").encode()).hexdigest()[:16]
    return f"{package}={distribution.version} {record}"


#: Libraries of headers that sources include and systems have as packages: how an include begins, the package of Debian.
_HEADER_PACKAGES = {
    "nlohmann/": "nlohmann-json3-dev",
    "Eigen/": "libeigen3-dev",
    "gtest/": "libgtest-dev",
    "Python.h": "python3-dev",
}
_NO_HEADER = re.compile(r"fatal error: (\S+): No such file")


#: How compilers say that they do not know a standard of C++.
_NO_STANDARD = re.compile(r"(?:unrecognized command[- ]line option .-std=|invalid value ')(c\+\+\d\d)")


def _hint(output: str) -> str:
    """What to do about a compiler's errors, as far as they say."""
    if "No space left on device" in output:
        return "\nThe disk is full: set ASCEND_GRAPH_CACHE to a directory on another"
    if (standard := _NO_STANDARD.search(output)) is not None:
        return f"\nThe installed torch asks for {standard[1]}, which this compiler does not know: set CXX to a newer one, g++ 10 or clang++ 14"
    packages = {
        f"{header} is in the package {package} of Debian and Ubuntu; a copy elsewhere is found by CPLUS_INCLUDE_PATH"
        for header in _NO_HEADER.findall(output)
        for begin, package in _HEADER_PACKAGES.items()
        if header.startswith(begin)
    }
    return "".join(f"\n{one}" for one in sorted(packages))
