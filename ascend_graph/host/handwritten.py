"""The aclnn functions that an operator project's authors wrote themselves, in ``op_api`` or ``op_host/op_api``.

They are C++ over an executor: they check their arguments, make tensors and launch operators by their types. They are
compiled against the headers of ``opdev/`` into a library beside that of the generated functions; the generated ones of
the same operators are called ``aclnnInner<Op>`` then, and may be called here: ``#include "aclnnInner_<op>.h"``.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ascend_graph.compilation import CppLibrary
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.repository import ACLNN_FUNCTION, Includes, Repository, code_of, headers_beside
from ascend_graph.host.toolkit import toolkit_directory
from ascend_graph.prototypes.naming import snake_case

_DIRECTORIES = (Path("op_api"), Path("op_host/op_api"))
_INNER = re.compile(r"aclnnInner_(\w+)\.h")
_INNER_CALL = re.compile(r"\baclnnInner([A-Z]\w*?)GetWorkspaceSize\s*\(")
_FORM = "op_api"
#: Where CANN's build of these functions defines it, ``log/log.h`` leaves them the logging macros of ``opdev/op_log.h``.
_THEIR_LOG = "OP_LOG_LIBOPAPI_ONLY"
_SUFFIXES = (".cpp", ".cc", ".cxx")
_LOAD_LIMIT = 60.0


class LeftOutError(AscendGraphError):
    """The library of hand-written functions does not load: what it calls is nowhere."""


@dataclass(frozen=True, slots=True)
class HandWritten:
    """The sources of a project's own aclnn functions."""

    project: Path
    repository: Repository
    sources: tuple[Path, ...]
    #: The functions, by the names of their second halves: ``aclnnAdd``.
    functions: frozenset[str]

    @staticmethod
    def of(project: Path, repository: Repository) -> HandWritten | None:
        """Those of a project; None where it has none."""
        found = [
            path
            for directory in _DIRECTORIES
            for path in sorted((project / directory).rglob("*"))
            if path.suffix in _SUFFIXES and path.is_file() and not repository.is_other_architecture(path)
        ]
        return HandWritten.among(tuple(found), project, repository)

    @staticmethod
    def among(sources: tuple[Path, ...], project: Path, repository: Repository) -> HandWritten | None:
        """Those that some sources define; None where they define none."""
        functions = frozenset(name for code in map(code_of, sources) for name in ACLNN_FUNCTION.findall(code))
        return HandWritten(project, repository, sources, functions) if functions else None

    def beneath(self, toolkit: Sequence[Path]) -> frozenset[str]:
        """The operators whose generated functions these call, by the names of their headers: ``aclnnInner_<name>.h``."""
        includes = self._includes(toolkit, self.sources)
        missing = (Path(text).name for text, _ in includes.missing)
        included = {found[1] for name in missing if (found := _INNER.fullmatch(name))}
        codes = (code_of(path) for path in (*self.sources, *includes.helpers))
        return frozenset(included | {snake_case(op_type) for code in codes for op_type in _INNER_CALL.findall(code)})

    def build(self, generated: Path, toolkit: Sequence[Path], time_limit: float) -> Path:
        """Compile the functions and what they call of the repository.

        Args:
            generated: the directory with the headers of the generated functions.
            toolkit: the toolkit's directories of headers.
            time_limit: seconds that it may take.

        Raises:
            BuildError: a source does not compile.
        """
        more: tuple[Path, ...] = ()
        while True:
            sources = (*self.sources, *more)
            includes = self._includes((generated, *toolkit), sources)
            library = self._library(sources, includes, generated, toolkit).build(time_limit=time_limit)
            missing = undefined_functions(library)
            known = (*sources, *includes.helpers)
            others = self.repository.defining(missing, known, form=_FORM) if missing else ()
            if not others:
                return library
            more = (*more, *others)

    def _library(
        self, sources: tuple[Path, ...], includes: Includes, generated: Path, toolkit: Sequence[Path]
    ) -> CppLibrary:
        common = toolkit_directory() / "include/op_host/ascend_graph/op_api/op_api.cpp"
        digest = hashlib.sha256(str(self.project).encode()).hexdigest()[:8]
        return CppLibrary(
            name=f"libcust_aclnn_{self.project.name}_{digest}",
            sources=(common, *sources, *includes.helpers),
            headers=tuple(sorted(generated.glob("*.h"))),
            include_directories=(*self._directories, self.project, *includes.directories, generated, *toolkit),
            library_directories=(toolkit_directory() / "lib64",),
            libraries=("opapi", "ascendcl"),
            flags=(
                "-fno-gnu-unique",
                "-w",
                f"-DASCEND_GRAPH_NPU_ARCH={self.repository.given.architecture.number}",
                *self._definitions(includes),
                *headers_beside(self.repository, includes, toolkit),
            ),
            # Other packages have functions of the same names, each its own.
            link_options=("-Wl,-Bsymbolic",),
        )

    def install_headers(self, directory: Path) -> None:
        """Copy the headers that declare the functions."""
        places = dict.fromkeys([*(self.project / place for place in _DIRECTORIES), *(p.parent for p in self.sources)])
        for header in dict.fromkeys(path for place in places for path in sorted(place.rglob("*.h"))):
            code = code_of(header)
            if any(f"{name}GetWorkspaceSize" in code for name in self.functions):
                shutil.copyfile(header, directory / header.name)

    @property
    def _directories(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(path.parent for path in self.sources))

    def _includes(self, toolkit: Sequence[Path], sources: tuple[Path, ...]) -> Includes:
        return self.repository.includes(sources, self._directories, toolkit, form=_FORM)

    def _definitions(self, includes: Includes) -> tuple[str, ...]:
        found = self.repository.definitions((*self.sources, *includes.files))
        own_log = (f"-D{_THEIR_LOG}",) if self.repository.mentions(_THEIR_LOG) else ()
        return (*own_log, *(f"-D{name}={value}" for name, value in found))


def check_loads(library: Path) -> None:
    """Load a library in a process of its own.

    Raises:
        LeftOutError: it does not load; the message names what is missing.
    """
    load = "import ctypes, os, sys; ctypes.CDLL(sys.argv[1], os.RTLD_NOW)"
    done = subprocess.run([sys.executable, "-c", load, str(library)], capture_output=True, text=True, check=False,
                          timeout=_LOAD_LIMIT)  # fmt: skip
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:] or [f"ended with status {done.returncode}"]
        symbol = re.search(r"undefined symbol: (\S+)", said[0])
        if symbol is None:
            raise LeftOutError(said[0])
        readable = subprocess.run(["c++filt", symbol[1]], capture_output=True, text=True, check=False).stdout.strip()
        raise LeftOutError(f"undefined symbol: {readable or symbol[1]}")


def undefined_functions(library: Path) -> tuple[str, ...]:
    """The functions that a library calls and nobody defines, by their names with namespaces and classes.

    None where it loads, and where the tools that say it (ldd, c++filt) are missing: loading it says one of them then.
    """
    if shutil.which("ldd") is None or shutil.which("c++filt") is None:
        return ()
    found = subprocess.run(
        ["ldd", "-r", str(library)], capture_output=True, text=True, check=False, timeout=_LOAD_LIMIT
    )
    symbols = re.findall(r"undefined symbol: (\S+)", found.stdout + found.stderr)
    if not symbols:
        return ()
    readable = subprocess.run(["c++filt", *symbols], capture_output=True, text=True, check=False).stdout
    names = (line.partition("(")[0].strip() for line in readable.splitlines() if "(" in line)
    return tuple(dict.fromkeys(name for name in names if name.rpartition("::")[2].isidentifier()))


def announce(text: str) -> None:
    """A line for who waits for a build."""
    print(f"ascend_graph: {text}", file=sys.stderr, flush=True)


def first_line(error: str) -> str:
    """The line of a compiler's output that says what is wrong."""
    lines = error.splitlines()
    return next((line.strip() for line in lines if " error: " in line), lines[0] if lines else "")
