"""Program ``bisheng`` of the host toolkit: it compiles Ascend C sources for the host with g++.

It accepts the command lines that authors write for the device compiler, for instance
``bisheng -x asc --npu-arch=dav-2201 -shared -fPIC -std=c++17 kernel.asc -o libkernel.so``. Sources of the languages
``asc`` and ``cce`` (by ``-x``, or by the suffixes .asc and .cce) are preprocessed, their launches rewritten, and
compiled; everything else goes to g++ unchanged. Options that only concern the device are dropped.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ascend_graph.compilation.objects import ObjectCache, object_key
from ascend_graph.compilation.precompiled import PrecompiledHeaders, SplitSource, for_preprocessed, is_gcc, split
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.architecture import DAV_3510
from ascend_graph.host.ascendc import constructors, cores, kernel_handles, specializations, translate
from ascend_graph.host.ascendc.command import Command, CompilerOptionError, Home, parse
from ascend_graph.sources import kernels

#: Attribute for where a function may run: ``[aicore]``, ``[host, aicore]``.
_CORE_ATTRIBUTE = r"\[\s*(?:host\s*,\s*aicore|aicore(?:\s*,\s*host)?)\s*\]"


#: Message of g++ before version 14 for a specialization that clang++ accepts.
_INSIDE_CLASS = "explicit specialization in non-namespace scope"
#: Message of g++ when it fails itself, as version 12 does on a template's default argument that is a reference.
_BROKEN = "internal compiler error"
#: Message of g++ only, for a class that uses a name and then redefines it; -fpermissive makes it a warning.
_CHANGES_MEANING = "changes meaning of"
_ERROR = re.compile(r": (?:fatal )?error: ")
#: Message for a call ``ReduceSum<float>(tensor)`` that finds its function by argument types alone, as in C++20 and on devices.
_BY_ARGUMENTS = re.compile(r"error: \W(\w+)\W was not declared in this scope; did you mean \WAscendC::\1\W")
#: Message for a ``constexpr`` constructor that sets its members in its body, which C++20 allows and clang++ always takes.
_UNINITIALIZED = " called in a constant expression"
#: Options of g++ that clang++ does not know or need.
_OF_GCC_ALONE = frozenset({"-fno-gnu-unique"})
_CLANG = ("clang++", *(f"clang++-{version}" for version in range(25, 13, -1)))


class OtherCompilerError(AscendGraphError):
    """Source rejected by the compiler that another one may accept: the device's own is a clang."""

    @property
    def known(self) -> str:
        """Line that shows the compiler's own fault, an in-class specialization or an internal error; or empty."""
        return next((line for line in str(self).splitlines() if _INSIDE_CLASS in line or _BROKEN in line), "")


class Steps:
    """Runner of the compiler's steps; it stops at the first that fails, with its exit status."""

    def __init__(self, dry_run: bool, compiler: Sequence[str] = ()) -> None:
        self._dry_run = dry_run
        named = os.environ.get("ASCENDC_HOST_CXX")
        self._compiler = list(compiler) or shlex.split(named or "g++")
        self._may_choose = not compiler and named is None

    def run(self, arguments: Sequence[str]) -> None:
        command = [*self._compiler, *arguments]
        if self._dry_run:
            print(shlex.join(command), file=sys.stderr)
            return
        status = subprocess.run(command, check=False).returncode
        if status != 0:
            raise SystemExit(status if status > 0 else 1)

    def compile(self, arguments: Sequence[str]) -> str | None:
        """Run a compile step that may show that the source needs another compiler.

        Returns:
            The compiler's messages, or None if another option was needed or they are not known.

        Raises:
            OtherCompilerError: it fails, the user has not named a compiler, and another one may accept the source.
        """
        if self._dry_run or not self._may_choose:
            self.run(arguments)
            return None
        done = subprocess.run([*self._compiler, *arguments], check=False, stderr=subprocess.PIPE)
        said = done.stderr.decode(errors="replace")
        error = OtherCompilerError(said)
        if done.returncode != 0 and error.known:
            raise error
        if done.returncode != 0 and self.compiles_with_option(arguments, said):
            return None
        if done.returncode != 0 and _clang() is not None:
            raise error
        sys.stderr.write(said)
        if done.returncode != 0:
            raise SystemExit(done.returncode if done.returncode > 0 else 1)
        return said

    def refuse(self, said: str) -> bool:
        """Return whether no other option or compiler may accept a source of which g++ says this."""
        if OtherCompilerError(said).known or any(_options_for(said)):
            return False
        return not self._may_choose or _clang() is None

    @property
    def compiler(self) -> tuple[str, ...]:
        return tuple(self._compiler)

    def gcc_version(self) -> str | None:
        """Return the version text of a GCC; None for another compiler, or if nothing is run."""
        if self._dry_run:
            return None
        done = subprocess.run([*self._compiler, "--version"], check=False, capture_output=True, text=True)
        return done.stdout if is_gcc(done.stdout) else None

    def said_by(self, arguments: Sequence[str]) -> tuple[bool, str]:
        """Return whether a source compiles, and the compiler's messages; show them if it does."""
        done = subprocess.run([*self._compiler, *arguments], check=False, stderr=subprocess.PIPE)
        said = done.stderr.decode(errors="replace")
        if done.returncode == 0:
            sys.stderr.write(said)
        return done.returncode == 0, said

    def compiles_with_option(self, arguments: Sequence[str], said: str) -> bool:
        """Return whether a source compiles with an option that the messages of a first try ask for."""
        return any(self.said_by([*arguments, option])[0] for option in _options_for(said))

    def with_clang(self, error: OtherCompilerError) -> Steps:
        """Return the same steps with clang++.

        Raises:
            CompilerOptionError: clang++ is not installed.
        """
        clang = _clang()
        if clang is None:
            why = (
                "breaks on this source"
                if _BROKEN in error.known
                else "does not take a specialization inside a class in the form that this source has"
            )
            raise CompilerOptionError(
                f"bisheng: {self._compiler[0]} {why}; install clang++ (14 or newer), or name another compiler in "
                f"ASCENDC_HOST_CXX, such as g++ from version 14 on. What it said: {error.known}"
            )
        return _ClangSteps(self._dry_run, [clang], "" if error.known else str(error))


def _options_for(said: str) -> Iterator[str]:
    """Yield options with which g++ may accept a source that the device's compiler accepts, judged by g++'s message."""
    errors = [line for line in said.splitlines() if _ERROR.search(line)]
    if _BY_ARGUMENTS.search(said) or _UNINITIALIZED in said:
        yield "-std=gnu++20"
    if errors and all(_CHANGES_MEANING in line for line in errors):
        yield "-fpermissive"


def _filled_locals(version: str | None) -> list[str]:
    """Return the options that fill locals which a kernel does not set: blocks would differ by chance.

    The second keeps what is filled where a constructor begins.

    >>> _filled_locals("g++ (Debian 12.2.0-14) 12.2.0"), _filled_locals("g++ (GCC) 11.4.0")
    (['-ftrivial-auto-var-init=pattern', '-flifetime-dse=1'], [])
    """
    found = re.search(r"\) (\d+)\.", version or "")
    return ["-ftrivial-auto-var-init=pattern", "-flifetime-dse=1"] if found and int(found[1]) >= 12 else []


def _clang() -> str | None:
    return next(filter(None, map(shutil.which, _CLANG)), None)


class _ClangSteps(Steps):
    """Steps of a compilation with clang++ whose options were meant for g++.

    ``said`` is the message of g++ if it is more useful than that of clang++ for the same source, else empty.
    """

    def __init__(self, dry_run: bool, compiler: Sequence[str], said: str) -> None:
        super().__init__(dry_run, compiler)
        self._said = said

    def run(self, arguments: Sequence[str]) -> None:
        # Include directories are unused after preprocessing; g++ accepts them silently, clang++ warns.
        known = (argument for argument in arguments if argument not in _OF_GCC_ALONE)
        command = [*self._compiler, "-Wno-unused-command-line-argument", *known]
        done = subprocess.run(command, check=False, stderr=subprocess.PIPE)
        failed = done.returncode != 0
        sys.stderr.write(self._said if failed and self._said else done.stderr.decode(errors="replace"))
        if failed:
            raise SystemExit(done.returncode if done.returncode > 0 else 1)


@dataclass(frozen=True, slots=True)
class _KernelSource:
    """Compilation of one source with kernels to an object."""

    command: Command
    home: Home
    source: Path
    target: Path
    scratch: Path

    def compile(self, steps: Steps) -> None:
        """Compile the source; once for each kind of core if it needs that."""
        text = self._preprocess(steps, [])
        if text is None:
            return  # a dry run
        if self.command.preprocess_only or not self._needs_both_cores(steps, text):
            self._finish(steps, text, self.target, self.command.stubs)
            return
        table = cores.table_name(self.source, self.target)
        objects = {core: self.scratch / f"{self.source.stem}-{core}.o" for core in (cores.CUBE, cores.VECTOR)}
        for core, target in objects.items():
            text = self._preprocess(steps, cores.definitions(core, table)) or ""
            self._finish(steps, text, target, self.command.stubs if core == cores.CUBE else None)
        cores.join(objects[cores.CUBE], objects[cores.VECTOR], self.target, table, self.scratch, steps.run)

    def _needs_both_cores(self, steps: Steps, text: str) -> bool:
        if cores.needs_constant(text):
            return True
        if not cores.names_macros(text, self.home.path.resolve()):
            return False
        by_core = (self._preprocess(steps, cores.macros(core)) for core in (cores.CUBE, cores.VECTOR))
        return len(set(by_core)) == 2

    @property
    def _standard(self) -> list[str]:
        return [] if any(option.startswith("-std=") for option in self.command.options) else ["-std=gnu++17"]

    def _preprocess(self, steps: Steps, definitions: Sequence[str]) -> str | None:
        if not self.source.is_file():
            raise CompilerOptionError(f"bisheng: no such source: {self.source}; name a file that exists")
        preprocessed = self.scratch / f"{self.source.stem}.ii"
        dependencies = self.command.dependencies
        if dependencies and "-MT" not in dependencies and "-MQ" not in dependencies:
            dependencies = [*dependencies, "-MT", str(self.target)]
        if dependencies and "-MF" not in dependencies:
            dependencies = [*dependencies, "-MF", str(self.target.with_suffix(".d"))]
        steps.run(
            [
                *self._standard,
                *self.command.options,
                f"-D__NPU_ARCH__={self.command.architecture.number}",
                *definitions,
                *(f"-I{path}" for path in self.home.includes),
                *dependencies,
                f"-D__global__={kernels.GLOBAL_MARK}",
                *(f"-D{name}={mark}" for name, mark in (translate.CORE_MARKS | translate.THREAD_MARKS).items()),
                # Headers that every kernel source can do without including: qualifiers and launches.
                *("-include", "ascendc_host/internal/qualifiers.h", "-include", "ascendc_host/internal/runtime.h"),
                *("-E", "-x", "c++", str(self.source), "-o", str(preprocessed)),
            ]
        )
        if not preprocessed.is_file():
            return None
        return preprocessed.read_text(encoding="utf-8", errors="surrogateescape")

    def _finish(self, steps: Steps, text: str, target: Path, stubs: Path | None) -> None:
        """Translate preprocessed text and compile it to an object."""
        vector_code = cores.is_vector_code(text, self.home.path.resolve())
        if self.command.preprocess_only:
            translated = self._translate(text, vector_code, stubs)
            if self.command.output is None:
                sys.stdout.write(translated)
            else:
                Path(self.command.output).write_text(translated, encoding="utf-8", errors="surrogateescape")
            return
        # Kernels view the register of one type as another's.
        views = ["-fno-strict-aliasing"] if self.command.architecture is DAV_3510 else []
        version = steps.gcc_version()
        options = [*self._standard, *for_preprocessed(self.command.options), *views, *_filled_locals(version)]
        # Large locals must not reach over the page below a thread's stack, which reports an overflow.
        options += ["-fstack-clash-protection"]
        source = split(text, [f"{self.home.path}/", f"{self.home.path.resolve()}/"])
        ways = (_translators(), *self.command.translated_for)
        versions = [*steps.compiler, version or "", *ways, str(vector_code)]
        key = None if version is None else object_key(source, options, versions)
        objects = ObjectCache()
        if objects.restore(key, target):
            if stubs is not None:
                self._translate(source.rest, vector_code, stubs)
            return
        tried = None
        if version is not None:
            rest = SplitSource(source.headers, self._translate(source.rest, vector_code, stubs))
            headers = PrecompiledHeaders(steps.compiler, "\n".join([version, *ways]))
            tried = headers.compile(
                rest, options, target, self.scratch, lambda text: self._translate(text, False, None)
            )
        succeeded, said = tried or (False, None)
        if said is not None and (succeeded or steps.refuse(said)):
            sys.stderr.write(said)
            if not succeeded:
                raise SystemExit(1)
        else:
            whole = self.scratch / f"{self.source.stem}.ii"
            whole.write_text(self._translate(text, vector_code, stubs), encoding="utf-8", errors="surrogateescape")
            said = self._compiled(steps, whole, [*options, "-x", "c++-cpp-output", "-c", str(whole), "-o", str(target)])
        if said == "":  # a cached object has no messages
            objects.keep(key, target)

    def _compiled(self, steps: Steps, source: Path, arguments: Sequence[str]) -> str | None:
        """Run a compile step, if need be of a source without specializations inside classes."""
        try:
            return steps.compile(arguments)
        except OtherCompilerError as error:
            if _INSIDE_CLASS not in error.known:
                raise
            text = specializations.outside_of_classes(source.read_text(encoding="utf-8", errors="surrogateescape"))
            for _ in range(2):
                source.write_text(text, encoding="utf-8", errors="surrogateescape")
                done, said = steps.said_by(arguments)
                if done or steps.compiles_with_option(arguments, said):
                    return None
                text = constructors.with_initializers(text, said)
            raise

    def _translate(self, text: str, vector_code: bool, stubs: Path | None) -> str:
        """Return preprocessed text as C++ for the host, and write the headers of its kernels to ``stubs``."""
        text = translate.check_threads(translate.place_addresses(translate.end_assertions(text)))
        text = translate.declare_cores(text)
        if vector_code:
            text = translate.declare_vector_code(text)
        if self.command.device_only:
            text = translate.device_code(text)
        if self.command.stubs is not None:
            found = kernels.find_kernels(text)
            if stubs is not None:
                stubs.mkdir(parents=True, exist_ok=True)
                for kernel in found:
                    _write_if_changed(stubs / f"aclrtlaunch_{kernel.name}.h", translate.launch_header(kernel))
            text += "\n" + "".join(map(translate.launch_stub, found))
        if self.command.device_only or kernel_handles.finds_kernels_by_symbol(text):
            text += "\n" + kernel_handles.registrations(kernels.find_kernels(text))
        text = translate.rewrite_launches(text, untyped=self.command.stubs is not None)
        return re.sub(rf"\b{kernels.GLOBAL_MARK}\b|{_CORE_ATTRIBUTE}", "", text)


@cache
def _translators() -> str:
    """Return a digest of the modules that translate sources."""
    files = (*sorted(Path(__file__).parent.glob("*.py")), Path(kernels.__file__))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _write_if_changed(path: Path, text: str) -> None:
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def run(arguments: Sequence[str]) -> None:
    """Run one command line; raise SystemExit with the compiler's status when a step fails."""
    if "--version" in arguments or "-v" in arguments:
        print("bisheng of ascend_graph: Ascend C for the host, by", end=" ", flush=True)
        Steps(dry_run=False).run(["--version"])
        return
    command = parse(arguments)
    if not command.link:
        raise CompilerOptionError("bisheng: no input files; expected at least one source")
    home = Home.find()
    steps = Steps(command.dry_run)
    if (command.compile_only or command.preprocess_only) and command.output is not None and len(command.sources) > 1:
        raise CompilerOptionError("bisheng: -o with -c or -E takes one source; give one at a time")
    with tempfile.TemporaryDirectory(prefix="bisheng-") as directory:
        scratch = Path(directory)
        link = list(command.link)
        for number, (index, (source, kernel)) in enumerate(command.sources.items()):
            target = scratch / f"{number}-{source.stem}.o"
            if command.compile_only:
                target = Path(command.output or f"{source.stem}.o")
            if kernel:
                kernel_source = _KernelSource(command, home, source, target, scratch)
                try:
                    kernel_source.compile(steps)
                except OtherCompilerError as error:
                    kernel_source.compile(steps.with_clang(error))
            else:
                mode = "-E" if command.preprocess_only else "-c"
                includes = [f"-I{path}" for path in home.includes]
                steps.run([*command.options, *includes, *command.dependencies, mode, str(source), "-o", str(target)])
            link[index] = str(target)
        if command.compile_only or command.preprocess_only:
            return
        flags = [option for option in command.options if option.startswith(("-f", "-m", "-O", "-g", "-pthread"))]
        # The device compiler links what is named, in whatever order: its linker has no --as-needed of its own.
        inputs = [link[index] for index in command.sources]
        rest = [one for index, one in enumerate(link) if index not in command.sources]
        steps.run([*flags, "-Wl,--no-as-needed", *inputs, *rest, *_libraries(home), "-o", command.output or "a.out"])


def _libraries(home: Home) -> list[str]:
    """Return link options for the kernel runtime and, if present, the host runtime's ACL.

    The device compiler links these by default.
    """
    directory = home.libraries
    libraries = [f"-L{directory}", f"-Wl,-rpath,{directory}", "-lascendc_runtime", "-pthread"]
    if (directory / "libascendcl.so").exists():
        libraries.append("-lascendcl")
    return libraries


def main() -> None:
    """Run ``bisheng`` on this process's arguments; print errors as a compiler does and exit with its status."""
    os.environ["LC_ALL"] = "C"  # the compiler's messages are read, and may be in the user's language otherwise
    try:
        run(sys.argv[1:])
    except AscendGraphError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
