"""Command lines of Ascend C compilers, and the toolkit they compile against."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ascend_graph.errors import AscendGraphError
from ascend_graph.host.architecture import DAV_2201, Architecture, ArchitectureError, architecture


class CompilerOptionError(AscendGraphError):
    """Option of ``bisheng`` that is incomplete or names something that does not exist."""


_KERNEL_LANGUAGES = frozenset({"asc", "cce"})


_KERNEL_SUFFIXES = frozenset({".asc", ".cce"})


_SOURCE_SUFFIXES = frozenset({".asc", ".cce", ".c", ".cc", ".cpp", ".cxx", ".C"})


_DEVICE_ONLY = re.compile(
    r"--cce-.*|-cce-.*|-fcce-.*|--cce|--asc-.*|-fasc-.*|--enable-simd|--enable-simt|--sanitizer"
    r"|-mcpu=dav.*|--target=.*|--aicore-.*|-forward-options-to-host-compiler|--run-mode=.*|-O[456789]"
    # Which gcc's library a clang takes: the host compiler has its own.
    r"|--gcc-toolchain=.*"
)


_WITH_VALUE = frozenset(
    "-o -I -D -U -L -l -isystem -include -idirafter -iquote -MF -MT -MQ -Xlinker -T -u -z -e".split()  # noqa: SIM905
)


#: Options of compilers that bisheng runs, whose value this host has no use for.
_PASSED_ON_WITH_VALUE = frozenset({"-mllvm", "-Xasc", "-Xaicore"})


#: Marks around options of the host's or the device's compiler.
_PASSED_ON_BRACKETS = frozenset({"-Xhost-start", "-Xhost-end", "-Xaicore-start", "-Xaicore-end"})


_FOR_LINKER = frozenset({"-shared", "-static", "-rdynamic", "-Xlinker", "-T", "-u", "-z", "-e"})


_ONLY_PREPROCESSING = frozenset({"-MD", "-MMD", "-MP"})


_ONLY_PREPROCESSING_WITH_VALUE = frozenset({"-MF", "-MT", "-MQ"})


_SYNC_BY_HAND = "-DASCENDC_HOST_MANUAL_SYNC"


_NEWEST_HOME = "ASCEND_HOME_PATH"


@dataclass(slots=True)
class Command:
    """Parsed command line of ``bisheng``."""

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
    def translated_for(self) -> tuple[str, ...]:
        """Options that change the translation of a source."""
        return str(self.device_only), str(self.stubs is not None)

    @property
    def shared(self) -> bool:
        return "-shared" in self.link


def parse(arguments: Sequence[str]) -> Command:
    """Parse a command line; raise CompilerOptionError for an option without its value."""
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
        elif argument in _PASSED_ON_WITH_VALUE:
            value(argument)
        elif argument in _PASSED_ON_BRACKETS:
            continue
        elif argument.startswith("--launch-stubs="):
            command.stubs = Path(argument.partition("=")[2])
        elif argument == "--cce-aicore-only":
            command.device_only = True
        elif argument == "-###":
            command.dry_run = True
        elif argument.startswith(("--npu-arch=", "--npu-soc=")):
            command.architecture = _architecture(argument)
        elif argument.startswith("--cce-auto-sync"):
            # Kernels whose pipes are checked say so (csrc/ascendc/runtime/pipes.cpp).
            by_hand = argument == "--cce-auto-sync=off"
            command.options = [option for option in command.options if option != _SYNC_BY_HAND]
            command.options += [_SYNC_BY_HAND] if by_hand else []
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
        elif argument.startswith(("-l", "-L", "-Wl,")) or argument in _FOR_LINKER:
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


def is_for_device(argument: str) -> bool:
    """Return whether an option concerns only the device, so that a host compiler does not know it.

    >>> is_for_device("--npu-arch=dav-3510"), is_for_device("-O2")
    (True, False)
    """
    return argument.startswith(("--npu-arch=", "--npu-soc=")) or _DEVICE_ONLY.fullmatch(argument) is not None


#: Architectures by the prefix of the core names in older compilers, such as ``dav-c220-vec``.
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
    """Directories of the toolkit's headers and libraries."""

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
        """Return this program's toolkit, from ``ASCENDC_HOST_HOME`` or, as authors set it, ``ASCEND_HOME_PATH``."""
        path = os.environ.get("ASCENDC_HOST_HOME") or os.environ.get(_NEWEST_HOME)
        if not path:
            raise CompilerOptionError(f"bisheng: {_NEWEST_HOME} is not set; set it to the host toolkit's directory")
        return Home(Path(path))
