"""The program ``bisheng`` of the host toolkit: compiles Ascend C sources for the host with g++.

Takes the command lines that authors write for the device compiler, for instance
``bisheng -x asc --npu-arch=dav-2201 -shared -fPIC -std=c++17 kernel.asc -o libkernel.so``. Sources of the languages
``asc`` and ``cce`` (by ``-x``, or by the suffixes .asc and .cce) are preprocessed, their launches rewritten, and
compiled; everything else goes to g++ as it is. Options that only concern the device are dropped.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ascend_graph.errors import AscendGraphError
from ascend_graph.host.architecture import DAV_2201, DAV_3510, Architecture, ArchitectureError, architecture
from ascend_graph.host.ascendc import cores, translate
from ascend_graph.sources import kernels


class CompilerOptionError(AscendGraphError):
    """An option of ``bisheng`` is incomplete or names something that does not exist."""


_KERNEL_LANGUAGES = frozenset({"asc", "cce"})
_KERNEL_SUFFIXES = frozenset({".asc", ".cce"})
_SOURCE_SUFFIXES = frozenset({".asc", ".cce", ".c", ".cc", ".cpp", ".cxx", ".C"})
_DEVICE_ONLY = re.compile(
    r"--cce-.*|-cce-.*|-fcce-.*|--cce|--asc-.*|-fasc-.*|--enable-simd|--enable-simt"
    r"|-mcpu=dav.*|--target=.*|--aicore-.*|-forward-options-to-host-compiler|--run-mode=.*|-O[456789]"
    # Which gcc's library a clang takes: the host compiler has its own.
    r"|--gcc-toolchain=.*"
)
_WITH_VALUE = frozenset(
    "-o -I -D -U -L -l -isystem -include -idirafter -iquote -MF -MT -MQ -Xlinker -T -u -z -e".split()  # noqa: SIM905
)
_ONLY_PREPROCESSING = frozenset({"-MD", "-MMD", "-MP"})
_ONLY_PREPROCESSING_WITH_VALUE = frozenset({"-MF", "-MT", "-MQ"})
#: Where a function may run: ``[aicore]``, ``[host, aicore]``.
_CORE_ATTRIBUTE = r"\[\s*(?:host\s*,\s*aicore|aicore(?:\s*,\s*host)?)\s*\]"
_NEWEST_HOME = "ASCEND_HOME_PATH"


@dataclass(slots=True)
class Command:
    """A command line of ``bisheng``, taken apart."""

    options: list[str] = field(default_factory=list)  # for every step
    dependencies: list[str] = field(default_factory=list)  # -MD and the like, for the preprocessor alone
    link: list[str] = field(default_factory=list)  # inputs, libraries and linker options, in their order
    sources: dict[int, tuple[Path, bool]] = field(
        default_factory=dict
    )  # index into `link` -> source, is it a kernel source
    output: str | None = None
    compile_only: bool = False
    preprocess_only: bool = False
    stubs: Path | None = None
    architecture: Architecture = DAV_2201
    device_only: bool = False
    dry_run: bool = False

    @property
    def shared(self) -> bool:
        return "-shared" in self.link


def parse(arguments: Sequence[str]) -> Command:
    """Takes a command line apart; raises CompilerOptionError for an option without its value."""
    command = Command()
    language: str | None = None
    rest = iter(arguments)

    def value(option: str) -> str:
        try:
            return next(rest)
        except StopIteration:
            raise CompilerOptionError(f"bisheng: option {option} needs a value") from None

    for argument in rest:
        if argument == "-x" or (argument.startswith("-x") and len(argument) > 2):
            chosen = argument[2:] or value("-x")
            language = None if chosen == "none" else chosen
        elif argument in (
            "-mllvm",
            "-Xasc",
            "-Xaicore",
            "-Xhost-start",
            "-Xhost-end",
            "-Xaicore-start",
            "-Xaicore-end",
        ):
            if argument in ("-mllvm", "-Xasc", "-Xaicore"):
                value(argument)
        elif argument.startswith("--launch-stubs="):
            command.stubs = Path(argument.partition("=")[2])
        elif argument == "--cce-aicore-only":
            command.device_only = True
        elif argument == "-###":
            command.dry_run = True
        elif argument.startswith(("--npu-arch=", "--npu-soc=")):
            command.architecture = _architecture(argument)
        elif _DEVICE_ONLY.fullmatch(argument):
            continue
        elif argument == "-o":
            command.output = value("-o")
        elif argument == "-c":
            command.compile_only = True
        elif argument == "-E":
            command.preprocess_only = True
        elif argument in _ONLY_PREPROCESSING:
            command.dependencies.append(argument)
        elif argument in _ONLY_PREPROCESSING_WITH_VALUE:
            command.dependencies += [argument, value(argument)]
        elif argument.startswith(("-l", "-L", "-Wl,")) or argument in (
            "-shared",
            "-static",
            "-rdynamic",
            "-Xlinker",
            "-T",
            "-u",
            "-z",
            "-e",
        ):
            command.link.append(argument)
            if argument in _WITH_VALUE:
                command.link.append(value(argument))
        elif argument in _WITH_VALUE:
            command.options += [argument, value(argument)]
        elif argument.startswith("-") and argument != "-":
            command.options.append(argument)
        elif Path(argument).suffix in _SOURCE_SUFFIXES or language is not None:
            kernel = language in _KERNEL_LANGUAGES or (language is None and Path(argument).suffix in _KERNEL_SUFFIXES)
            command.sources[len(command.link)] = (Path(argument), kernel)
            command.link.append(argument)
        else:
            command.link.append(argument)
    return command


#: What older compilers call the cores of an architecture: ``dav-c220-vec``.
_OLDER_NAMES = {"dav-c220": "dav-2201", "dav-c310": "dav-3510"}


def _architecture(option: str) -> Architecture:
    name = option.partition("=")[2]
    older = "-".join(name.split("-")[:2])
    try:
        return architecture(_OLDER_NAMES.get(older, name))
    except ArchitectureError as error:
        raise CompilerOptionError(f"bisheng: {option}: {error}") from None


@dataclass(frozen=True, slots=True)
class Home:
    """Where the toolkit lies: its headers and libraries."""

    path: Path

    @property
    def includes(self) -> list[Path]:
        candidates = [self.path / "compiler/tikcpp/tikcfw", self.path / "include"]
        return [path for path in candidates if path.is_dir()]

    @property
    def libraries(self) -> Path:
        return self.path / "lib64"

    @staticmethod
    def find() -> Home:
        """The toolkit this program belongs to: $ASCEND_HOME_PATH, as authors set it."""
        path = os.environ.get("ASCENDC_HOST_HOME") or os.environ.get(_NEWEST_HOME)
        if not path:
            raise CompilerOptionError(f"bisheng: {_NEWEST_HOME} is not set; set it to the host toolkit's directory")
        return Home(Path(path))


#: What g++ says before version 14 of a specialisation that clang++ takes.
_INSIDE_CLASS = "explicit specialization in non-namespace scope"
#: What g++ says where it fails itself, as its version 12 does of a template's default argument that is a reference.
_BROKEN = "internal compiler error"
#: A call ``ReduceSum<float>(tensor)`` that finds the function by its arguments alone, as C++20 and the device's compiler do.
_BY_ARGUMENTS = re.compile(r"error: \W(\w+)\W was not declared in this scope; did you mean \WAscendC::\1\W")
#: Options of g++ that clang++ does not know, and does without.
_OF_GCC_ALONE = frozenset({"-fno-gnu-unique"})
_CLANG = ("clang++", *(f"clang++-{version}" for version in range(25, 13, -1)))


class OtherCompilerError(AscendGraphError):
    """The compiler does not take a source; another one may: the device's own is a clang."""

    @property
    def known(self) -> str:
        """The line that says that it is the compiler's fault: a specialisation inside a class, or it breaks; or empty."""
        return next((line for line in str(self).splitlines() if _INSIDE_CLASS in line or _BROKEN in line), "")


class Steps:
    """Runs the compiler's steps; stops at the first that fails, with its exit status."""

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

    def compile(self, arguments: Sequence[str]) -> None:
        """A step that may show that the source needs another compiler.

        Raises:
            OtherCompilerError: it fails, the user has named no compiler, and another one may take it.
        """
        if self._dry_run or not self._may_choose:
            self.run(arguments)
            return
        done = subprocess.run([*self._compiler, *arguments], check=False, stderr=subprocess.PIPE)
        said = done.stderr.decode(errors="replace")
        error = OtherCompilerError(said)
        if done.returncode != 0 and error.known:
            raise error
        if done.returncode != 0 and _BY_ARGUMENTS.search(said):
            newer = subprocess.run([*self._compiler, *arguments, "-std=gnu++20"], check=False, stderr=subprocess.PIPE)
            if newer.returncode == 0:
                sys.stderr.write(newer.stderr.decode(errors="replace"))
                return
        if done.returncode != 0 and _clang() is not None:
            raise error
        sys.stderr.write(said)
        if done.returncode != 0:
            raise SystemExit(done.returncode if done.returncode > 0 else 1)

    def with_clang(self, error: OtherCompilerError) -> Steps:
        """The same with clang++.

        Raises:
            CompilerOptionError: there is none.
        """
        clang = _clang()
        if clang is None:
            why = (
                "breaks on this source"
                if _BROKEN in error.known
                else "does not take explicit specialisations inside a class, which this source has"
            )
            raise CompilerOptionError(
                f"bisheng: {self._compiler[0]} {why}; install clang++ (14 or newer), or name another compiler in "
                f"ASCENDC_HOST_CXX, such as g++ from version 14 on. What it said: {error.known}"
            )
        return _ClangSteps(self._dry_run, [clang], "" if error.known else str(error))


def _clang() -> str | None:
    return next(filter(None, map(shutil.which, _CLANG)), None)


class _ClangSteps(Steps):
    """The steps of a compilation whose options were meant for g++.

    ``said`` is what g++ had to say, where that is worth more than what clang++ says of the same source.
    """

    def __init__(self, dry_run: bool, compiler: Sequence[str], said: str) -> None:
        super().__init__(dry_run, compiler)
        self._said = said

    def run(self, arguments: Sequence[str]) -> None:
        # Directories of headers are no use to the step behind the preprocessor, which g++ takes without a word.
        known = (argument for argument in arguments if argument not in _OF_GCC_ALONE)
        command = [*self._compiler, "-Wno-unused-command-line-argument", *known]
        done = subprocess.run(command, check=False, stderr=subprocess.PIPE)
        failed = done.returncode != 0
        sys.stderr.write(self._said if failed and self._said else done.stderr.decode(errors="replace"))
        if failed:
            raise SystemExit(done.returncode if done.returncode > 0 else 1)


@dataclass(frozen=True, slots=True)
class _KernelSource:
    """One source with kernels on its way to an object."""

    command: Command
    home: Home
    source: Path
    target: Path
    scratch: Path

    def compile(self, steps: Steps) -> None:
        """Compile it; once for each kind of core where it needs that."""
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
            raise CompilerOptionError(f"bisheng: no such source: {self.source}")
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
                # What every kernel source can say without an include: the qualifiers, and launches.
                *("-include", "ascendc_host/qualifiers.h", "-include", "ascendc_host/runtime.h"),
                *("-E", "-x", "c++", str(self.source), "-o", str(preprocessed)),
            ]
        )
        if not preprocessed.is_file():
            return None
        return preprocessed.read_text(encoding="utf-8", errors="surrogateescape")

    def _finish(self, steps: Steps, text: str, target: Path, stubs: Path | None) -> None:
        """Make an object of preprocessed text."""
        text = translate.declare_cores(translate.check_threads(text))
        if cores.is_vector_code(text, self.home.path.resolve()):
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
        text = translate.rewrite_launches(text, untyped=self.command.stubs is not None)
        text = re.sub(rf"\b{kernels.GLOBAL_MARK}\b|{_CORE_ATTRIBUTE}", "", text)
        translated = self.scratch / f"{self.source.stem}.ii"
        translated.write_text(text, encoding="utf-8", errors="surrogateescape")
        if self.command.preprocess_only:
            if self.command.output is None:
                sys.stdout.write(text)
            else:
                Path(self.command.output).write_text(text, encoding="utf-8", errors="surrogateescape")
            return
        options = [option for option in self.command.options if not option.startswith(("-D", "-U"))]
        # Kernels view the register of one type as another's.
        views = ["-fno-strict-aliasing"] if self.command.architecture is DAV_3510 else []
        steps.compile(
            [*self._standard, *options, *views, "-x", "c++-cpp-output", "-c", str(translated), "-o", str(target)]
        )


def _write_if_changed(path: Path, text: str) -> None:
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def run(arguments: Sequence[str]) -> None:
    """Carries out one command line; raises SystemExit with the compiler's status when a step fails."""
    if "--version" in arguments or "-v" in arguments:
        print("bisheng of ascend_graph: Ascend C for the host, by", end=" ", flush=True)
        Steps(dry_run=False).run(["--version"])
        return
    command = parse(arguments)
    if not command.link:
        raise CompilerOptionError("bisheng: no input files")
    home = Home.find()
    steps = Steps(command.dry_run)
    if (command.compile_only or command.preprocess_only) and command.output is not None and len(command.sources) > 1:
        raise CompilerOptionError("bisheng: -o with -c or -E and several sources")
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
    """What the device compiler links by itself: the runtime of kernels and, where it exists, the host runtime's ACL."""
    directory = home.libraries
    libraries = [f"-L{directory}", f"-Wl,-rpath,{directory}", "-lascendc_runtime", "-pthread"]
    if (directory / "libascendcl.so").exists():
        libraries.append("-lascendcl")
    return libraries


def main() -> None:
    """The entry of ``bisheng``: prints errors as a compiler does and exits with its status."""
    try:
        run(sys.argv[1:])
    except AscendGraphError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
