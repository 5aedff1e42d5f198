"""Files of the repository around an operator project: its projects, registrations, definitions and build files.

No build file is run: the facts about sources are read from the texts of the files. Includes are found by
:mod:`ascend_graph.host.projects.includes`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from ascend_graph.environment import toolkit_directory
from ascend_graph.host.projects.model import ARCHITECTURE_DIRECTORY, NO_OPTIONS, BuildOptions, is_other_architecture
from ascend_graph.host.projects.source_text import (
    CODE_SUFFIXES,
    REGISTERED_FUNCTIONS,
    SOURCE_SUFFIXES,
    aclnn_functions,
    code_of,
    defined_macros,
    defined_operators,
    defines_operators,
    macro_names,
    only_selected,
    registered,
    text_of,
)
from ascend_graph.prototypes import OpPrototype, read_prototypes
from ascend_graph.prototypes.naming import snake_case

#: Files that mark the upper directories of a repository without git.
_MARKS = ("CMakeLists.txt", "build.sh", "setup.py", "pyproject.toml", ".gitmodules")
#: Most directories without a build file between a project and the next one with a build file.
_MOST_UNMARKED = 6
#: Directories without code of an operator; they count if the project itself lies in one.
_ASIDE = frozenset({"tests", "test", "ut", "st", "docs", "doc", "build", "build_out", "output", "out"})
#: Directories of stand-ins, whose files come after any other of the same name.
_STAND_INS = frozenset({"stub", "stubs", "mock", "fake"})
#: Directories of examples and experiments; all other code does without them.
_TRIALS = frozenset({"example", "examples", "sample", "samples", "experimental"})
#: Directories of other forms of an operator: aclnn functions, AI CPU kernels; no part of its tiling or shapes.
OTHER_FORMS = frozenset({"op_api", "op_graph", "op_kernel_aicpu", "framework", "fusion_pass", "op_kernel"})
#: A macro with a number or text as value, as build files write it: NAME=1, -DNAME="TEXT".
_BUILD_DEFINITION = re.compile(r'(?:^|[\s"])(?:-D)?([A-Z][A-Z0-9_]{3,})=(\\?"[^"\n$]*"|\d+|\$<\S*>)(?=[\s)"])')
#: A macro that a target has where a variable is true, and a variable that is set so; those of the cache are a user's choice.
_SWITCHED_DEFINITION = re.compile(r"\$<\$<BOOL:\$\{(\w+)\}>:(?:-D)?([A-Z][A-Z0-9_]{3,})>")
_SWITCHED_ON = re.compile(r"\bset\s*\(\s*(\w+)\s+(?:ON|TRUE)\s*\)", re.IGNORECASE)
#: A text inside a generator expression.
_QUOTED = re.compile(r'"[^"\n$]*"')
#: Options of kernels in build files, by OP_NAME, COMPUTE_UNIT and OPTIONS.
_COMPILE_OPTIONS = re.compile(r"\badd_ops_compile_options\s*\(([^()]*)\)")
_KEYWORD = re.compile(r"[A-Z][A-Z_]+")
_CMAKE_COMMENT = re.compile(r"#[^\n]*")


@dataclass(frozen=True)
class Repository:
    """Files around an operator project."""

    root: Path
    #: Directory to build from; the path to it is searched, whatever its directories are called.
    start: Path
    options: BuildOptions = NO_OPTIONS

    @staticmethod
    def around(directory: Path, options: BuildOptions = NO_OPTIONS) -> Repository:
        """Return the repository around a directory: a git checkout, or as far up as build files go."""
        outer = [
            parent for parent in (directory, *directory.parents) if parent not in (Path.home(), *Path.home().parents)
        ]
        checkout = next((parent for parent in outer if (parent / ".git").exists()), None)
        if checkout is not None:
            return Repository(checkout, directory, options)
        root, unmarked = directory, 0
        for parent in outer:
            unmarked = 0 if any((parent / mark).is_file() for mark in _MARKS) else unmarked + 1
            if unmarked == 0:
                root = parent
            if unmarked > _MOST_UNMARKED:
                break
        return Repository(root, directory, options)

    # ---- places ------------------------------------------------------------------------------------------------------

    def is_other_architecture(self, path: Path) -> bool:
        """Return whether a file is for another architecture than the target."""
        return is_other_architecture(path, self.root, self.options.architecture)

    def other_architectures(self, directory: Path) -> tuple[str, ...]:
        """Return the architectures, other than the target, that a directory has sources for."""
        sources = (p for p in directory.rglob("*") if p.suffix in SOURCE_SUFFIXES and self.is_other_architecture(p))
        parts = {part for path in sources for part in self._parts(path) if ARCHITECTURE_DIRECTORY.fullmatch(part)}
        return tuple(sorted(parts - self.options.architecture.directories))

    def is_stand_in(self, path: Path) -> bool:
        """Return whether a path lies in a directory of stand-ins."""
        return path.is_relative_to(self.root) and not _STAND_INS.isdisjoint(self._parts(path))

    def distance(self, source: Path, path: Path) -> tuple[bool, bool, bool, int, int, str]:
        """Return a sort key that puts the nearest file first, and other operators' own files after shared ones."""
        common = Path(os.path.commonpath([source, path]))
        trial = not _TRIALS.isdisjoint(path.relative_to(common).parts)
        foreign = any(one in self._operators and not source.is_relative_to(one) for one in path.parents)
        return self.is_stand_in(path), trial, foreign, -len(common.parts), len(path.parts), str(path)

    def belongs_to(self, source: Path, header: Path) -> bool:
        """Return whether both lie in one part of the repository, and no other operator owns the source."""
        part = Path(os.path.commonpath([source, header]))
        between = source.relative_to(part).parents
        return part != self.root and not any(part / one in self._operators for one in between if one.name)

    def projects(self) -> tuple[Path, ...]:
        """Return the directories with ``op_kernel`` and with sources in ``op_host``, tests left out.

        An ``op_host`` with only headers holds code that other projects share.
        """
        sources = [file for file in self._files if file.suffix in SOURCE_SUFFIXES]
        found = {file.parents[i] for file in sources for i in range(len(file.parents)) if _is_host(file.parents, i)}
        return tuple(sorted(path for path in found if (path / "op_kernel").is_dir()))

    def named(self, name: str) -> Sequence[Path]:
        """Return the files with a name."""
        return self._by_name.get(name, ())

    def kernels_named(self, stem: str) -> tuple[Path, ...]:
        """Return the kernel sources with a stem, in any project, for the target architecture."""
        found = (path for suffix in sorted(SOURCE_SUFFIXES) for path in self.named(stem + suffix))
        return tuple(p for p in found if "op_kernel" in p.parts and not self.is_other_architecture(p))

    # ---- operators and functions -------------------------------------------------------------------------------------

    def registrations(self, operators: Iterable[str], known: Iterable[Path]) -> tuple[Path, ...]:
        """Return other sources that register the tiling and shape functions that no known source registers.

        Operators that share such functions register them together, in one of their projects or outside of all; the
        sources next to them hold what they call. A project's op_host comes first, then the nearest source.
        """
        has = {one for path in known for one in registered(code_of(path))}
        wanted = {(operator, function) for operator in operators for function in REGISTERED_FUNCTIONS} - has
        if not wanted:
            return ()
        helping = {path: found for path, found in self._registrations.items() if has.isdisjoint(found)}
        chosen = set()
        for one in wanted:
            registering = [path for path, found in helping.items() if one in found]
            if registering:
                nearest = min(
                    registering, key=lambda path: (not self._in_op_host(path), self.distance(self.start, path))
                )
                chosen.add(nearest.parent)
        return tuple(sorted(path for path in helping if path.parent in chosen))

    def defining(self, functions: Iterable[str], known: Iterable[Path], *, form: str | None = None) -> tuple[Path, ...]:
        """Return the sources that define functions of op_host, one for each; functions without one are left out.

        The repository comes before CANN, the target architecture before others, which shared tilings refer to. Then
        come methods of the named class, then the nearest source.

        Args:
            functions: names, with namespaces and classes as far as they are known; after ``::`` at the end any method.
            known: sources that are not searched again.
            form: directories of another form of an operator (``op_api``) to search instead.
        """
        if form is not None:
            places: list[Mapping[Path, str]] = [self._of_form(form)]
        else:
            code = self._host_code
            here = {path: text for path, text in code.items() if not self.is_other_architecture(path)}
            elsewhere = {path: text for path, text in code.items() if self.is_other_architecture(path)}
            places = [here, elsewhere]
        places += map(host_sources_below, self.options.cann)
        skipped = frozenset(known)
        found: dict[Path, None] = {}
        for function in functions:
            for texts in places:
                if candidates := _defining(function, texts, skipped):
                    nearest = min(candidates, key=lambda path: (not candidates[path], self.distance(self.start, path)))
                    found[nearest] = None
                    break
        return tuple(found)

    def prototypes(self, names: Collection[str]) -> tuple[OpPrototype, ...]:
        """Return the prototypes of operators of any project by their snake_case names, read from the definitions."""
        found: dict[str, OpPrototype] = {}
        for path in sorted(self._definitions, key=lambda path: self.distance(self.start, path)) if names else ():
            defined = {snake_case(op_type) for op_type in defined_operators(code_of(path))}
            if not defined.isdisjoint(names):
                for prototype in read_prototypes(path).prototypes:
                    name = snake_case(prototype.op_type)
                    if name in names and name in defined:
                        found.setdefault(name, prototype)
        return tuple(found.values())

    # ---- build files -------------------------------------------------------------------------------------------------

    def definitions(self, files: Iterable[Path]) -> tuple[str, ...]:
        """Return ``-D`` options for macros that files use without defining them, by the first value in build files.

        A header's definitions serve every source; a source's definitions serve that source alone. A name that only selections
        of template instances have stands for no number there: CANN takes the numbers of their preprocessed text.
        """
        codes = {path: code_of(path) for path in files}
        headers = [code for path, code in codes.items() if path.suffix not in SOURCE_SUFFIXES]
        sources = [code for path, code in codes.items() if path.suffix in SOURCE_SUFFIXES] or [""]
        shared = {name for code in headers for name in macro_names(code)}
        defined = {name for code in headers for name in defined_macros(code)}
        needed = {name for code in sources for name in (shared | macro_names(code)) - defined_macros(code)}
        found = {name: value for name, value in self._build_definitions.items() if name in needed - defined}
        if undefined := only_selected(codes.values()) - found.keys():
            found |= dict.fromkeys(sorted(undefined - _toolkit_names()), "ASCENDC_TPL_NO_NUMBER")
        chosen = dict(self.options.definitions)
        return tuple(f"-D{name}={value}" for name, value in (found | chosen).items())

    def kernel_definitions(self, project: Path, op_type: str) -> tuple[str, ...]:
        """Return the options that a project's CMakeLists.txt give to an operator's kernel, or to all: ``-D``, and who adds waits."""
        configs = tuple(self.options.architecture.configs)
        found: dict[str, None] = {}
        for path in sorted(project.rglob("CMakeLists.txt")):
            for call in _COMPILE_OPTIONS.findall(_cmake_code(path)):
                arguments = _by_keyword(call.split())
                units = arguments.get("COMPUTE_UNIT", [])
                is_meant = not units or any(unit.lower().startswith(configs) for unit in units)
                if is_meant and not {op_type, "ALL"}.isdisjoint(arguments.get("OP_NAME", arguments.get("", []))):
                    options = arguments.get("OPTIONS", [])
                    found |= dict.fromkeys(
                        o for o in options if o.startswith(("-D", "--cce-auto-sync")) and "$" not in o
                    )
        return tuple(found)

    def mentions(self, macro: str) -> bool:
        """Return whether a build file defines a macro for any target."""
        option = re.compile(rf"(?<!\w)-D\s*{macro}(?!\w)|\b(?:add|target)_compile_definitions\s*\([^()]*\b{macro}\b")
        return any(option.search(text) for text in self._build_texts)

    # ---- read once ---------------------------------------------------------------------------------------------------

    @cached_property
    def _operators(self) -> frozenset[Path]:
        """The projects that define operators; the code of all others is shared."""
        return frozenset(one for one in self.projects() if any(path.is_relative_to(one) for path in self._definitions))

    @cached_property
    def _definitions(self) -> tuple[Path, ...]:
        """The sources that define operators."""
        return tuple(p for p in self._files if p.suffix in SOURCE_SUFFIXES and defines_operators(code_of(p)))

    @cached_property
    def _registrations(self) -> dict[Path, frozenset[tuple[str, str]]]:
        """Registered functions by source; a source that defines an operator serves only its own project."""
        code = self._host_code
        return {path: registered(text) for path, text in code.items() if not self.is_other_architecture(path)}

    @cached_property
    def _host_code(self) -> dict[Path, str]:
        """Texts of the host sources without definitions, which may serve several projects."""
        found = {}
        for path in self._files:
            other = not OTHER_FORMS.isdisjoint(self._parts(path))
            if path.suffix in SOURCE_SUFFIXES and not other and not self.is_stand_in(path):
                text = text_of(path)
                if not defines_operators(text):
                    found[path] = text
        return found

    def _of_form(self, form: str) -> dict[Path, str]:
        """Return the texts of sources in directories of a name, but for those that define aclnn functions."""
        texts = {
            path: text_of(path)
            for path in self._files
            if path.suffix in SOURCE_SUFFIXES
            and form in self._parts(path)
            and not self.is_stand_in(path)
            and not self.is_other_architecture(path)
        }
        return {path: text for path, text in texts.items() if not aclnn_functions(text)}

    @cached_property
    def _files(self) -> tuple[Path, ...]:
        return tuple(path for path in self._walk() if path.suffix in CODE_SUFFIXES)

    @cached_property
    def _by_name(self) -> dict[str, list[Path]]:
        found: dict[str, list[Path]] = {}
        for path in self._files:
            found.setdefault(path.name, []).append(path)
        return found

    @cached_property
    def _build_texts(self) -> tuple[str, ...]:
        """The build files, without comments."""
        return tuple(_cmake_code(p) for p in self._walk() if p.name == "CMakeLists.txt" or p.name.endswith(".cmake"))

    @cached_property
    def _build_definitions(self) -> dict[str, str]:
        """The first value of each macro that build files define, or 1 for one that a variable switches on."""
        found: dict[str, str] = {}
        for text in self._build_texts:
            for macro, value in _BUILD_DEFINITION.findall(text):
                quoted = _QUOTED.search(value) if value.startswith("$") else None
                if quoted is not None or not value.startswith("$"):
                    found.setdefault(macro, quoted[0] if quoted is not None else value.replace("\\", ""))
        on = {name for text in self._build_texts for name in _SWITCHED_ON.findall(text)}
        switched = {macro: name for text in self._build_texts for name, macro in _SWITCHED_DEFINITION.findall(text)}
        return {macro: "1" for macro, name in switched.items() if name in on} | found

    def _walk(self) -> Iterator[Path]:
        """Yield the files of the searched directories, in order."""
        for directory, names, files in os.walk(self.root):
            here = Path(directory)
            names[:] = sorted(n for n in names if self._is_searched(here / n))
            yield from (here / name for name in sorted(files))

    def _is_searched(self, directory: Path) -> bool:
        name = directory.name
        return self.start.is_relative_to(directory) or not (name.startswith(".") or name in _ASIDE)

    def _parts(self, path: Path) -> tuple[str, ...]:
        return path.relative_to(self.root).parts

    def _in_op_host(self, path: Path) -> bool:
        return "op_host" in self._parts(path)


@cache
def files_below(root: Path) -> Mapping[str, Sequence[Path]]:
    """Return the code files of a CANN toolkit or checkout, by name."""
    by_name: dict[str, list[Path]] = {}
    for directory, names, files in os.walk(root, followlinks=True):
        names[:] = sorted(n for n in names if not n.startswith(".") and n not in _ASIDE | _STAND_INS)
        for name in sorted(files):
            if Path(name).suffix in CODE_SUFFIXES:
                by_name.setdefault(name, []).append(Path(directory) / name)
    return by_name


@cache
def host_sources_below(root: Path) -> Mapping[Path, str]:
    """Return the texts of the op_host sources in a checkout of CANN."""
    paths = [path for paths in files_below(root).values() for path in paths if path.suffix in SOURCE_SUFFIXES]
    return {path: text_of(path) for path in sorted(paths) if OTHER_FORMS.isdisjoint(path.relative_to(root).parts)}


@cache
def _toolkit_names() -> frozenset[str]:
    """Return the names in the toolkit's headers that look like macros."""
    return frozenset(
        name for path in (toolkit_directory() / "include").rglob("*.h") for name in macro_names(text_of(path))
    )


def _defining(function: str, texts: Mapping[Path, str], known: Collection[Path]) -> dict[Path, bool]:
    """Return the sources that define a function, each with true if it is a method of the named class."""
    qualifier, _, name = function.rpartition("::")
    inner = re.escape(qualifier.rpartition("::")[2])
    called = re.escape(name) if name else rf"{inner}\s*::\s*~?\w+"
    definition = re.compile(rf"\b{called}\s*\([^;{{}}]*\)\s*(?:const\s*|noexcept\s*)*\{{")
    method = re.compile(rf"\b{inner}\s*::\s*{re.escape(name)}\b")
    inside = re.compile(rf"\b(?:namespace|class|struct)\s+(?:\w+\s*::\s*)*{inner}\b")
    return {
        path: method.search(text) is not None
        for path, text in texts.items()
        if path not in known
        and name in text
        and (not inner or method.search(text) or inside.search(text))
        and definition.search(code_of(path))
    }


def _by_keyword(words: Iterable[str]) -> dict[str, list[str]]:
    """Return the arguments of a CMake command by the keyword before them; ``ALL`` is an argument."""
    found: dict[str, list[str]] = {}
    keyword = ""
    for word in words:
        if _KEYWORD.fullmatch(word) and word != "ALL":
            keyword = word
        else:
            found.setdefault(keyword, []).append(word)
    return found


def _cmake_code(path: Path) -> str:
    return _CMAKE_COMMENT.sub("", path.read_text(encoding="utf-8", errors="replace"))


def _is_host(parents: Sequence[Path], index: int) -> bool:
    return index > 0 and parents[index - 1].name == "op_host"
