"""Shared library of C++ sources: its inputs and its compilation."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ascend_graph.compilation import source_compiler
from ascend_graph.compilation.cache import (
    BuildDirectory,
    Entry,
    ReadFile,
    add_entry,
    build_directory,
    cache_directory,
    entries,
    files_of_rule,
    locked,
    writable_cache,
)
from ascend_graph.compilation.failures import build_error
from ascend_graph.compilation.processes import started
from ascend_graph.compilation.progress import BuildSteps, announced
from ascend_graph.compilation.toolchain import (
    BuildError,
    NoCompilerError,
    compiler,
    jobs,
    ninja,
    options_of,
    toolchain_key,
)
from ascend_graph.versions import cxx_flags

_NINJA_STATUS = re.compile(r"\[(\d+)/(\d+)\] ")

#: Number of attempts to compile a source that is edited during compilation.
_ATTEMPTS = 3


def package_directory(name: str) -> Path:
    """Return the directory of an installed package without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise BuildError(f"package {name!r} is not installed; install it with: pip install 'ascend-graph[torch]'")
    return Path(next(iter(spec.submodule_search_locations)))


@dataclass(frozen=True, slots=True)
class CppLibrary:
    """Shared library with its compiler options.

    Headers need no mention: the compiler lists those it read. ``headers`` are those that the next build will not find
    at the same place, such as generated ones in a temporary directory: they count by their contents alone.
    """

    name: str
    sources: tuple[Path, ...]
    headers: tuple[Path, ...] = ()
    include_directories: tuple[Path, ...] = ()
    library_directories: tuple[Path, ...] = ()
    libraries: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    #: Further values that the result depends on, e.g. versions of packages.
    depends_on: tuple[str, ...] = ()
    #: Link options before the libraries, for inputs that override functions of the libraries.
    link_first: tuple[str, ...] = ()
    #: Link options after the libraries.
    link_options: tuple[str, ...] = ()
    #: Command that compiles Ascend C sources (``.asc``).
    kernel_compiler: tuple[str, ...] = ()
    #: Purpose of the compilation, shown during the wait: ``for torch 2.13.0``.
    why: str = ""
    #: Directories whose headers ``depends_on`` covers.
    versioned_directories: tuple[Path, ...] = ()
    #: Directories of headers that change seldom: they are precompiled where a source begins with them.
    stable_directories: tuple[Path, ...] = ()
    #: ``$CXXFLAGS`` says nothing of its optimization and its debug information, which users choose for their own code.
    optimized_always: bool = False

    def key(self) -> str:
        """Return a digest of everything the compiled library depends on, except for headers that the compiler finds.

        Raises:
            BuildError: A source cannot be read, or there is no compiler.
        """
        digest = self._inputs()
        for text in (*toolchain_key(), *self._user_options(), "", *options_of("LDFLAGS")):
            digest.update(text.encode(errors="surrogateescape") + b"\0")
        return digest.hexdigest()[:16]

    def _inputs(self) -> hashlib._Hash:
        """Return a digest of the inputs that do not belong to the compiler."""
        digest = hashlib.sha256()
        for path in (*self.sources, *self.headers):
            try:
                digest.update(path.name.encode(errors="surrogateescape") + b"\0" + path.read_bytes() + b"\0")
            except OSError as error:
                raise BuildError(
                    f"{self.name}: the source {path} cannot be read: {error.strerror or error}; name another"
                ) from None
        options = (*self.link_first, *self.libraries, *self.flags, *self.link_options)
        for text in (*options, *self.depends_on, *self.kernel_compiler):
            digest.update(text.encode(errors="surrogateescape") + b"\0")
        return digest

    def cached(self) -> Path | None:
        """Return the compiled library if the cache has it and none of its inputs has changed, or None.

        On a machine without a compiler, a library that was compiled ahead from the same sources, for the same versions,
        is taken.
        """
        try:
            key = self.key()
        except NoCompilerError:
            return self._compiled_ahead()
        return self._cached(key)

    def _compiled_ahead(self) -> Path | None:
        """Return the newest library of the cache with these sources, flags and versions, of whatever compiler."""
        cache, file, inputs = cache_directory(), f"{self.name}.so", self._inputs().hexdigest()
        found = [
            cache / entry.directory / file
            for manifest in cache.glob(f"{self.name}-*.json")
            for entry in entries(manifest)
            if entry.inputs == inputs and entry.is_complete(cache, file)
        ]
        return max(found, key=lambda path: path.stat().st_mtime_ns, default=None)

    def _cached(self, key: str) -> Path | None:
        cache, file = cache_directory(), f"{self.name}.so"
        for entry in entries(cache / f"{self.name}-{key}.json"):
            if entry.is_valid(cache, file):
                return cache / entry.directory / file
        return None

    def build(self, *, time_limit: float | None = None) -> Path:
        """Compile the library unless the cache has it, and return its path.

        Args:
            time_limit: The time limit of the compilation, in seconds.

        Raises:
            BuildError: There is no compiler, it failed (with its messages), it took too long, or the cache cannot be
                written. Objects are left in the cache only if the next build may continue with them: it took too long,
                or had too little memory. A signal leaves them, too.
        """
        found = self.cached()
        if found is not None:
            return found
        with writable_cache() as cache:
            for _ in range(_ATTEMPTS):
                key = self.key()
                with locked(cache / f"{self.name}-{key}.lock", f"compiling {self.name}"):
                    found = self._cached(key)
                    if found is not None:  # another process made it meanwhile
                        return found
                    with build_directory(cache, self.name, key) as directory:
                        result = self._compiled(cache, directory, key, time_limit)
                        if result is not None:
                            return result
        raise BuildError(
            f"compiling {self.name}: its sources changed {_ATTEMPTS} times while they were compiled; run it again"
        )

    def _compiled(self, cache: Path, directory: BuildDirectory, key: str, time_limit: float | None) -> Path | None:
        """Compile the library and put it into the cache; return None if its sources changed meanwhile."""
        file, work = f"{self.name}.so", directory.path
        kept_objects = _unchanged_objects(directory)
        (work / "build.ninja").write_text(self._ninja_file(), errors="surrogateescape")
        shutil.rmtree(work / "tmp", ignore_errors=True)
        (work / "tmp").mkdir()
        goes_on = f"; goes on with {kept_objects} of {len(self.sources)} objects" if kept_objects else ""
        detail = f"once{f' {self.why}' if self.why else ''}; kept in {cache}{goes_on}"
        with announced(f"compiling {self.name}", detail, cache, whole=not kept_objects) as steps:
            steps.all = len(self.sources) - kept_objects + 1
            self._run_ninja(directory, time_limit, steps)
        _check_library(work / file, self.name)
        read = self._headers_read(work)
        if self.key() != key:
            return None
        contents = hashlib.sha256("".join(f"{r.path}\0{r.digest}\0" for r in read).encode(errors="surrogateescape"))
        target = cache / f"{self.name}-{key}-{contents.hexdigest()[:8]}"
        kept = work / "library"
        kept.mkdir(exist_ok=True)
        (work / file).rename(kept / file)
        if target.exists():  # made from the same bytes, but damaged
            target.rename(work / "damaged")
        kept.rename(target)
        entry = Entry(target.name, (target / file).stat().st_size, read, self.depends_on, self._inputs().hexdigest())
        add_entry(cache / f"{self.name}-{key}.json", entry, work)
        return target / file

    def _headers_read(self, work: Path) -> tuple[ReadFile, ...]:
        """Return the files that the compiler read, except for those that the key covers."""
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
            and path.is_file()  # what a driver wrote and took away is not one of the author's
        )

    def _run_ninja(self, directory: BuildDirectory, time_limit: float | None, steps: BuildSteps) -> None:
        work, what = directory.path, f"compiling {self.name}"
        command = [*ninja(), "-C", str(work), "-j", str(jobs())]
        # A killed compiler's files go with the directory.
        environment = {**os.environ, "TMPDIR": str(work / "tmp"), "NINJA_STATUS": "[%f/%t] "}
        output: list[str] = []

        def read(lines: Iterable[str]) -> None:
            for line in lines:
                output.append(line)
                if (status := _NINJA_STATUS.match(line)) is not None:
                    steps.done, steps.all = int(status[1]), int(status[2])

        # Where this process is killed, ninja goes on, and holds the directory until it ends.
        with started(
            command,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment,
            pass_fds=(directory.lock,),
        ) as process:  # fmt: skip
            reader = threading.Thread(target=read, args=(process.stdout,), daemon=True, name="ascend_graph ninja")
            reader.start()
            try:
                process.wait(time_limit)
            except subprocess.TimeoutExpired:
                error = BuildError(f"{what} took more than {time_limit:g} seconds; what is compiled is kept")
                error.may_go_on = True
                raise error from None
            reader.join()
        if process.returncode == 0:
            return
        for program in (compiler()[0], *self.kernel_compiler[:1]):
            if shutil.which(program) is None:
                raise BuildError(
                    f"{what} failed: the compiler {program} is gone; install it again, or set CXX to another"
                )
        raise build_error(what, "".join(output), self.name)

    def preprocessed(self, source: Path, *flags: str, time_limit: float | None = None) -> str:
        """Run the preprocessor on one of the sources, with additional flags.

        Raises:
            BuildError: There is no compiler, it failed (with its messages), or it took too long.
        """
        program = self.kernel_compiler if source.suffix == ".asc" else compiler()
        with tempfile.TemporaryDirectory(prefix="ascend-graph-preprocessed-") as directory:
            output = Path(directory) / "source.ii"
            command = [*program, *self._options(), *flags, "-E", str(source.absolute()), "-o", str(output)]
            _run(command, f"preprocessing {source}", self.name, time_limit)
            return output.read_text(errors="surrogateescape")

    def _user_options(self) -> list[str]:
        """Return the options of ``$CXXFLAGS`` that concern this library."""
        return [
            option
            for option in options_of("CXXFLAGS")
            if not (self.optimized_always and re.match(r"-O|-g(?!cc-)", option))
        ]

    def _options(self) -> list[str]:
        include = [f"-I{directory}" for directory in self.include_directories]
        standard = [] if any(flag.startswith("-std=") for flag in self.flags) else ["-std=c++17"]
        return [*standard, "-O2", "-fPIC", *self.flags, *self._user_options(), *include]

    def _ninja_file(self) -> str:
        search = [o for d in self.library_directories for o in (f"-L{d}", "-Xlinker", "-rpath", "-Xlinker", str(d))]
        objects = [f"{i}.o" for i in range(len(self.sources))]
        options = self._options()
        libraries = (f"-l{name}" for name in self.libraries)
        link = [*search, *self.link_first, *libraries, *self.link_options, *options_of("LDFLAGS")]
        program: Sequence[str] = compiler()
        if self.stable_directories:
            program = [*source_compiler.command(self.stable_directories), *program, "--"]
        lines = [
            "rule compile",
            f"  command = {_command(program, options)} -MD -MF ${{out}}.d -c $in -o $out",
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
    command: Sequence[str],
    what: str,
    name: str,
    time_limit: float | None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run a program to its end; if it fails, raise an error with its output."""
    with started(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment
    ) as process:
        try:
            output, _ = process.communicate(timeout=time_limit)
        except subprocess.TimeoutExpired:
            raise BuildError(f"{what} took more than {time_limit:g} seconds; try again with less work") from None
    if process.returncode != 0:
        raise build_error(what, output, name)


def _unchanged_objects(directory: BuildDirectory) -> int:
    """Remove the objects of an interrupted build whose inputs have changed, and count the others.

    A file whose contents or attributes changed after the build began may not be what the compiler read.
    """
    count = 0
    for compiled in directory.path.glob("*.o"):
        rule = compiled.with_name(f"{compiled.name}.d")
        try:
            files = [directory.path / path for path in files_of_rule(rule.read_text(errors="surrogateescape"))]
            unchanged = bool(files) and all(path.stat().st_ctime_ns < directory.began_ns for path in files)
        except OSError:
            unchanged = False
        if unchanged:
            count += 1
        else:
            compiled.unlink()
    return count


def _command(program: Sequence[str], arguments: Sequence[str]) -> str:
    """Return a command as ninja passes it to the shell."""
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
    """Return a library that is compiled against the installed torch and torch_npu."""
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
        depends_on=(*versions, sys.implementation.cache_tag or "", str(torch), str(torch_npu)),
        versioned_directories=(torch, torch_npu),
        why=f"for {' and '.join(f'{name} {importlib.metadata.version(name)}' for name in ('torch', 'torch_npu'))}",
    )


def _installed(package: str) -> str:
    """Return the identity of an installed package: two builds of one version differ in their file digests."""
    distribution = importlib.metadata.distribution(package)
    record = hashlib.sha256((distribution.read_text("RECORD") or "").encode()).hexdigest()[:16]
    return f"{package}={distribution.version} {record}"
