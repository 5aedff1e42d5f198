"""Repositories of operator projects: which projects lie in one, and where the files are that their sources include.

A repository's build files name include directories by variables and functions of their own. What they amount to is in
the sources themselves: an include names the end of a path, and the repository has the file or has not. So the
directories are found from the includes, the nearest file first, and no build file is run.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

from ascend_graph.compilation import compiler
from ascend_graph.host.architecture import DAV_2201, Architecture
from ascend_graph.prototypes import OpPrototype, read_prototypes
from ascend_graph.prototypes.naming import snake_case

#: Directories with the code of one architecture of NPUs are called arch22, arch35 and so on.
_ARCHITECTURE = re.compile(r"arch\d+")

#: What marks the upper directories of a repository that is no git checkout.
_MARKS = ("CMakeLists.txt", "build.sh", "setup.py", "pyproject.toml", ".gitmodules")
#: Between a project and the next build file there are at most so many directories of categories.
_MOST_UNMARKED = 6
_SUFFIXES = frozenset({".h", ".hpp", ".hh", ".inl", ".inc", ".cuh", ".cpp", ".cc", ".cxx", ".asc", ".cce"})
_SOURCES = (".cpp", ".cc", ".cxx")
#: Directories without code of an operator; they count where the project itself lies in one.
_ASIDE = frozenset({"tests", "test", "ut", "st", "docs", "doc", "build", "build_out", "output", "out"})
#: Directories of stand-ins, whose files come after any other of the same name.
_STAND_INS = frozenset({"stub", "stubs", "mock", "fake"})
#: Directories that show or try something out; what else there is does without them.
_TRIALS = frozenset({"example", "examples", "sample", "samples", "experimental"})
#: Hand-written aclnn functions and other forms of an operator; none is a part of its tiling, shapes or kernel.
_OTHER_FORMS = frozenset({"op_api", "op_graph", "op_kernel_aicpu", "framework", "fusion_pass", "op_kernel"})
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"(?P<own>[^"\n]+)"|<(?P<system>[^>\n]+)>)', re.MULTILINE)
#: A definition with a value, a number or a text, as build files write it: NAME=1, -DNAME="TEXT".
_BUILD_DEFINITION = re.compile(r'(?:^|[\s"])(?:-D)?([A-Z][A-Z0-9_]{3,})=(\\?"[^"\n$]*"|\d+|\$<\S*>)(?=[\s)"])')
#: A text inside a generator expression.
_TEXT = re.compile(r'"[^"\n$]*"')
_MACRO_NAME = re.compile(r"\b[A-Z][A-Z0-9_]{3,}\b")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_OP_ADD = re.compile(r"\bOP_ADD\s*\(\s*(\w+)")
_OP_DEF = re.compile(r"\bOP_ADD\b|\bpublic\s+(?:ops::)?OpDef\b|\bAICore\s*\(\s*\)")
#: The definition of an aclnn function's first half, and the function's name.
ACLNN_FUNCTION = re.compile(r"\baclnnStatus\s+(aclnn\w+?)GetWorkspaceSize\s*\([^;{}]*\)\s*\{")
#: The functions of an operator that a source registers: each by a macro of its own, or all by IMPL_OP.
_FUNCTIONS = ("TILING", "INFERSHAPE")
_IMPL_OP = re.compile(r"^[ \t]*IMPL_OP(?:_(?:OP)?(TILING|INFERSHAPE))?\s*\(\s*(\w+)", re.MULTILINE)
#: What build files of kernels say of an operator's: OP_NAME, COMPUTE_UNIT, OPTIONS.
_COMPILE_OPTIONS = re.compile(r"\badd_ops_compile_options\s*\(([^()]*)\)")
_KEYWORD = re.compile(r"[A-Z][A-Z_]+")
_CMAKE_COMMENT = re.compile(r"#[^\n]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def code_of(path: Path) -> str:
    """A source's text without comments."""
    return _COMMENT.sub(" ", path.read_text(encoding="utf-8", errors="replace"))


def _by_keyword(words: Iterable[str]) -> dict[str, list[str]]:
    """The arguments of a command of CMake by the word in capitals before them; ``ALL`` is an argument."""
    found: dict[str, list[str]] = {}
    keyword = ""
    for word in words:
        if _KEYWORD.fullmatch(word) and word != "ALL":
            keyword = word
        else:
            found.setdefault(keyword, []).append(word)
    return found


@dataclass(frozen=True, slots=True)
class Includes:
    """What sources include from their repository."""

    #: Where the compiler is to look, in this order.
    directories: tuple[Path, ...] = ()
    #: Where it is to look last, for what the toolkit has not: directories of stand-ins.
    stand_ins: tuple[Path, ...] = ()
    #: The repository's files that they include, directly or not.
    files: tuple[Path, ...] = ()
    #: Sources of the helpers whose headers they include.
    helpers: tuple[Path, ...] = ()
    #: What an include finds only where CANN's build puts the kernels: ``../<operator>/…``, by operator.
    siblings: tuple[tuple[str, Path], ...] = ()
    #: Includes that neither the repository nor the toolkit has, with the file that has them.
    missing: tuple[tuple[str, Path], ...] = ()


@dataclass(frozen=True, slots=True)
class Given:
    """What the caller of a build adds to what a repository says itself."""

    #: Directories that the compiler looks in first (-I).
    directories: tuple[Path, ...] = ()
    #: Macros and their values (-D).
    definitions: tuple[tuple[str, str], ...] = ()
    #: CANN toolkits, or checkouts of their sources: host sources find there what the host toolkit has no header for.
    cann: tuple[Path, ...] = ()
    #: What is built for.
    architecture: Architecture = DAV_2201


@dataclass(frozen=True)
class Repository:
    """The files around an operator project."""

    root: Path
    #: What of it is built; the way there is looked at, whatever its directories are called.
    start: Path
    given: Given = Given()

    @staticmethod
    def around(directory: Path, given: Given = Given()) -> Repository:
        """The repository that a directory lies in: a git checkout, or as far up as build files go."""
        outer = [
            parent for parent in (directory, *directory.parents) if parent not in (Path.home(), *Path.home().parents)
        ]
        checkout = next((parent for parent in outer if (parent / ".git").exists()), None)
        if checkout is not None:
            return Repository(checkout, directory, given=given)
        root, unmarked = directory, 0
        for parent in outer:
            unmarked = 0 if any((parent / mark).is_file() for mark in _MARKS) else unmarked + 1
            if unmarked == 0:
                root = parent
            if unmarked > _MOST_UNMARKED:
                break
        return Repository(root, directory, given=given)

    def is_other_architecture(self, path: Path) -> bool:
        """Whether a file of the repository is for another architecture than the one that is built for."""
        path = Path(os.path.normpath(path))
        return path.is_relative_to(self.root) and any(
            _ARCHITECTURE.fullmatch(part) and part not in self.given.architecture.directories
            for part in path.relative_to(self.root).parts[:-1]
        )

    def other_architectures(self, directory: Path) -> tuple[str, ...]:
        """The architectures other than the one that is built for that a directory has sources for."""
        sources = (p for p in directory.rglob("*") if p.suffix in _SOURCES and self.is_other_architecture(p))
        named = {
            part for path in sources for part in path.relative_to(self.root).parts if _ARCHITECTURE.fullmatch(part)
        }
        return tuple(sorted(named - self.given.architecture.directories))

    def projects(self) -> tuple[Path, ...]:
        """The directories with sources in ``op_host``, and ``op_kernel``, but for those in directories of tests.

        One whose ``op_host`` has headers alone holds what other projects share.
        """
        sources = [file for file in self._files if file.suffix in _SOURCES]
        found = {file.parents[i] for file in sources for i in range(len(file.parents)) if _is_host(file.parents, i)}
        return tuple(sorted(path for path in found if (path / "op_kernel").is_dir()))

    @cached_property
    def _operators(self) -> frozenset[Path]:
        """The projects that define operators; what others hold is for all."""
        defining = self._definitions
        return frozenset(one for one in self.projects() if any(path.is_relative_to(one) for path in defining))

    @cached_property
    def _definitions(self) -> tuple[Path, ...]:
        """The sources that define operators."""
        return tuple(path for path in self._files if path.suffix in _SOURCES and _OP_DEF.search(code_of(path)))

    def registrations(self, operators: Iterable[str], known: Iterable[Path]) -> tuple[Path, ...]:
        """The other sources that register the tiling and shapes of these operators, where no known one does.

        Operators that share such functions register them together, in the sources of one of the projects or of no
        project; those beside them hold what they call. Of several a project's op_host comes first, then the nearest.
        """
        has = {one for path in known for one in _registered(code_of(path))}
        wanted = {(operator, function) for operator in operators for function in _FUNCTIONS} - has
        if not wanted:
            return ()
        helping = {path: found for path, found in self._registrations.items() if has.isdisjoint(found)}
        chosen = set()
        for one in wanted:
            registering = [path for path, found in helping.items() if one in found]
            if registering:
                nearest = min(
                    registering, key=lambda path: (not self._in_op_host(path), self._distance(self.start, path))
                )
                chosen.add(nearest.parent)
        return tuple(sorted(path for path in helping if path.parent in chosen))

    @cached_property
    def _registrations(self) -> dict[Path, frozenset[tuple[str, str]]]:
        """What each source registers; those that define an operator are its project's alone."""
        return {path: _registered(text) for path, text in self._host_code.items()}

    def _is_stand_in(self, path: Path) -> bool:
        return path.is_relative_to(self.root) and not _STAND_INS.isdisjoint(path.relative_to(self.root).parts)

    def _in_op_host(self, path: Path) -> bool:
        return "op_host" in path.relative_to(self.root).parts

    def defining(self, functions: Iterable[str], known: Iterable[Path], *, form: str | None = None) -> tuple[Path, ...]:
        """The sources that define functions of op_host, one for each; none for what only known sources do.

        The repository's own come before those of CANN, and those of the architecture that is built for before those of
        others, which tilings for several refer to; then those of a method's class, then the nearest.

        Args:
            functions: names with their namespaces and classes, as far as they are known.
            known: sources that are there already.
            form: the directories of another form of an operator (``op_api``) in which they are looked for instead.
        """
        found: dict[Path, None] = {}
        here, elsewhere = self._host_code, self._host_code_elsewhere
        if form is not None:
            here, elsewhere = self._of_form(form), {}
        for function in functions:
            qualifier, _, name = function.rpartition("::")
            inner = re.escape(qualifier.rpartition("::")[2])
            definition = re.compile(rf"\b{re.escape(name)}\s*\([^;{{}}]*\)\s*(?:const\s*|noexcept\s*)*\{{")
            method = re.compile(rf"\b{inner}\s*::\s*{re.escape(name)}\b")
            inside = re.compile(rf"\b(?:namespace|class|struct)\s+(?:\w+\s*::\s*)*{inner}\b")
            for texts in (here, elsewhere, *map(_sources_below, self.given.cann)):
                candidates = [
                    path
                    for path, text in texts.items()
                    if path not in known
                    and name in text
                    and (not inner or method.search(text) or inside.search(text))
                    and definition.search(code_of(path))
                ]
                if candidates:
                    found[
                        min(
                            candidates,
                            key=lambda path: (not method.search(texts[path]), self._distance(self.start, path)),
                        )
                    ] = None
                    break
        return tuple(found)

    @cached_property
    def _host_code(self) -> dict[Path, str]:
        """The sources beside those of definitions, which may serve several projects, with their texts."""
        return {path: text for path, text in self._any_host_code.items() if not self.is_other_architecture(path)}

    @cached_property
    def _host_code_elsewhere(self) -> dict[Path, str]:
        """The same for other architectures."""
        return {path: text for path, text in self._any_host_code.items() if self.is_other_architecture(path)}

    @cached_property
    def _any_host_code(self) -> dict[Path, str]:
        found = {}
        for path in self._files:
            inside = path.relative_to(self.root).parts
            if path.suffix in _SOURCES and not _OTHER_FORMS.intersection(inside) and not self._is_stand_in(path):
                text = path.read_text(encoding="utf-8", errors="replace")
                if not _OP_DEF.search(text):
                    found[path] = text
        return found

    def _of_form(self, form: str) -> dict[Path, str]:
        """The sources in directories of this name, with their texts, but for those of aclnn functions themselves."""
        texts = {
            path: path.read_text(encoding="utf-8", errors="replace")
            for path in self._files
            if path.suffix in _SOURCES
            and form in path.relative_to(self.root).parts
            and not self._is_stand_in(path)
            and not self.is_other_architecture(path)
        }
        return {path: text for path, text in texts.items() if not ACLNN_FUNCTION.search(text)}

    def prototypes(self, names: Collection[str]) -> tuple[OpPrototype, ...]:
        """The operators of any project with these names, in lower case with underscores, as their definitions say."""
        found: dict[str, OpPrototype] = {}
        for path in sorted(self._definitions, key=lambda path: self._distance(self.start, path)) if names else ():
            registered = {snake_case(op_type) for op_type in defined_operators(code_of(path))}
            if not registered.isdisjoint(names):
                for prototype in read_prototypes(path).prototypes:
                    name = snake_case(prototype.op_type)
                    if name in names and name in registered:
                        found.setdefault(name, prototype)
        return tuple(found.values())

    def submodules(self) -> tuple[Path, ...]:
        """The submodules that are not checked out."""
        modules = self.root / ".gitmodules"
        if not modules.is_file():
            return ()
        paths = re.findall(r"^\s*path\s*=\s*(\S+)\s*$", modules.read_text(errors="replace"), re.MULTILINE)
        directories = (self.root / path for path in paths)
        return tuple(path for path in directories if not path.is_dir() or not any(path.iterdir()))

    def includes(
        self, sources: Sequence[Path], given: Sequence[Path], toolkit: Sequence[Path], *, form: str | None = None
    ) -> Includes:
        """What sources include.

        Args:
            sources: where to begin.
            given: directories that the compiler looks in before any that is found here.
            toolkit: the toolkit's directories; what they have is not looked for in the repository.
            form: the directories of other forms of an operator (``op_api``) whose sources are helpers here.
        """
        directories: dict[Path, None] = dict.fromkeys(given)
        files: dict[Path, None] = {}
        helpers: dict[Path, None] = {}
        siblings: dict[str, Path] = {}
        missing: dict[str, Path] = {}
        toolkit = (*self.given.directories, *toolkit)
        todo = list(sources)
        while todo:
            source = todo.pop(0)
            for text, is_system in _included(source):
                path = self._near(source, text, (one for one in directories if not self._is_stand_in(one)))
                if path is None and not _in_any(text, (*toolkit, *(_system_directories() if is_system else ()))):
                    path = self._by_its_end(source, text, directories)
                if path is None and text.startswith("../"):
                    operator, path = self._beside(text)
                    if path is not None and operator is not None:
                        siblings[operator] = path.parents[len(PurePosixPath(text.lstrip("./")).parts) - 2]
                if path is None:
                    if not _in_any(text, (*toolkit, *_system_directories())):
                        missing.setdefault(text, source)
                    continue
                if path in files or (self.is_other_architecture(path) and not _names_architecture(text)):
                    continue
                files[path] = None
                todo.append(path)
                for helper in self._helpers(path, form):
                    if helper not in helpers and helper not in sources:
                        helpers[helper] = None
                        todo.append(helper)
        found = [path for path in directories if path not in set(given)]
        return Includes(
            (*self.given.directories, *(path for path in found if not self._is_stand_in(path))),
            tuple(path for path in found if self._is_stand_in(path)),
            tuple(files),
            tuple(helpers),
            tuple(siblings.items()),
            tuple(missing.items()),
        )

    def definitions(self, files: Iterable[Path]) -> tuple[tuple[str, str], ...]:
        """Macros that files use without defining them, with the first value that the repository's build files give.

        What a header defines serves every source; what a source defines serves that source alone.
        """
        codes = {path: code_of(path) for path in files}
        headers = [code for path, code in codes.items() if path.suffix not in _SOURCES]
        sources = [code for path, code in codes.items() if path.suffix in _SOURCES] or [""]
        shared = {name for code in headers for name in _MACRO_NAME.findall(code)}
        given = {name for code in headers for name in _DEFINE.findall(code)}
        needed = {
            name for code in sources for name in (shared | set(_MACRO_NAME.findall(code))) - set(_DEFINE.findall(code))
        }
        chosen = dict(self.given.definitions)
        found = {name: value for name, value in self._build_definitions.items() if name in needed - given}
        return tuple((found | chosen).items())

    def kernel_definitions(self, project: Path, op_type: str) -> tuple[str, ...]:
        """The compiler's ``-D`` options that a project's CMakeLists.txt give for an operator's kernel, or for all kernels."""
        chips = tuple(self.given.architecture.configs)
        found: dict[str, None] = {}
        for path in sorted(project.rglob("CMakeLists.txt")):
            text = _CMAKE_COMMENT.sub("", path.read_text(errors="replace"))
            for call in _COMPILE_OPTIONS.findall(text):
                given = _by_keyword(call.split())
                units = given.get("COMPUTE_UNIT", [])
                is_meant = not units or any(unit.lower().startswith(chips) for unit in units)
                if is_meant and not {op_type, "ALL"}.isdisjoint(given.get("OP_NAME", given.get("", []))):
                    options = given.get("OPTIONS", [])
                    found |= dict.fromkeys(o for o in options if o.startswith("-D") and "$" not in o)
        return tuple(found)

    def mentions(self, macro: str) -> bool:
        """Whether a build file of the repository defines a macro, for whatever it builds with it."""
        option = re.compile(rf"(?<!\w)-D\s*{macro}(?!\w)|\b(?:add|target)_compile_definitions\s*\([^()]*\b{macro}\b")
        return any(option.search(text) for text in self._build_texts)

    @cached_property
    def _build_texts(self) -> tuple[str, ...]:
        """The repository's build files, without comments."""
        found: list[str] = []
        for directory, names, files in os.walk(self.root):
            here = Path(directory)
            names[:] = sorted(n for n in names if self._is_looked_at(here / n))
            cmake = (n for n in sorted(files) if n == "CMakeLists.txt" or n.endswith(".cmake"))
            found += (_CMAKE_COMMENT.sub("", (here / name).read_text(errors="replace")) for name in cmake)
        return tuple(found)

    @cached_property
    def _build_definitions(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for text in self._build_texts:
            for macro, value in _BUILD_DEFINITION.findall(text):
                quoted = _TEXT.search(value) if value.startswith("$") else None
                if quoted is not None or not value.startswith("$"):
                    found.setdefault(macro, quoted[0] if quoted is not None else value.replace("\\", ""))
        return found

    def _is_looked_at(self, directory: Path) -> bool:
        name = directory.name
        return self.start.is_relative_to(directory) or not (name.startswith(".") or name in _ASIDE)

    def _near(self, source: Path, text: str, directories: Iterable[Path]) -> Path | None:
        for directory in (source.parent, *directories):
            path = Path(os.path.normpath(directory / text))
            if path.is_relative_to(self.root) and path.is_file():
                return path
        return None

    def _by_its_end(self, source: Path, text: str, directories: dict[Path, None]) -> Path | None:
        """The nearest file whose path ends like the include; the directory above is one to look in from then on."""
        if text.startswith("../"):
            return None
        parts = PurePosixPath(os.path.normpath(text)).parts
        candidates = [path for path in self._by_name.get(parts[-1], ()) if path.parts[-len(parts) :] == parts]
        if not candidates:
            return None
        path = min(candidates, key=lambda one: self._distance(source, one))
        # What says itself that it is another architecture's is meant: tiling functions choose between them as they run.
        if not self.is_other_architecture(path) or _names_architecture(text):
            directories[path.parents[len(parts) - 1]] = None
        return path

    def _beside(self, text: str) -> tuple[str | None, Path | None]:
        """The file of ``../<operator>/<file>`` where CANN's build puts the ``op_kernel`` of all operators side by side."""
        operator, *rest = PurePosixPath(text.lstrip("./")).parts
        if not rest:
            return None, None
        end = (operator, "op_kernel", *rest)
        found = [path for path in self._by_name.get(rest[-1], ()) if path.parts[-len(end) :] == end]
        return operator, min(found, default=None)

    def _helpers(self, header: Path, form: str | None) -> Iterator[Path]:
        """The sources of what a header declares: those with its name, the nearest directory with any."""
        if header.suffix in _SOURCES or "op_kernel" in header.parts:
            return
        beside = [header.with_suffix(suffix) for suffix in _SOURCES]
        if form is not None and form in header.relative_to(self.root).parts:
            yield from [path for path in beside if path.is_file()][:1]
            return
        candidates = [
            path
            for suffix in _SOURCES
            for path in self._by_name.get(header.stem + suffix, ())
            if not _OTHER_FORMS.intersection(path.relative_to(self.root).parts)
            and not self._is_stand_in(path)
            and not self.is_other_architecture(path)
            and self._belongs_to(path, header)
        ]
        if candidates:
            yield min(candidates, key=lambda one: self._distance(header, one))

    def _belongs_to(self, source: Path, header: Path) -> bool:
        """Whether they lie in one part of the repository, and the source is no other operator's own."""
        part = Path(os.path.commonpath([source, header]))
        between = source.relative_to(part).parents
        return part != self.root and not any(part / one in self._operators for one in between if one.name)

    def _distance(self, source: Path, path: Path) -> tuple[bool, bool, bool, int, int, str]:
        """The least is the nearest; what other operators have for themselves comes after what is for all."""
        common = Path(os.path.commonpath([source, path]))
        trial = not _TRIALS.isdisjoint(path.relative_to(common).parts)
        foreign = any(one in self._operators and not source.is_relative_to(one) for one in path.parents)
        return self._is_stand_in(path), trial, foreign, -len(common.parts), len(path.parts), str(path)

    @cached_property
    def _files(self) -> tuple[Path, ...]:
        found = []
        for directory, names, files in os.walk(self.root):
            here = Path(directory)
            names[:] = sorted(n for n in names if self._is_looked_at(here / n))
            found += [here / name for name in sorted(files) if Path(name).suffix in _SUFFIXES]
        return tuple(found)

    def kernels_named(self, stem: str) -> tuple[Path, ...]:
        """The sources of kernels of that name in any project, for the architecture that is built for."""
        found = (path for suffix in sorted(_SOURCES) for path in self._by_name.get(stem + suffix, ()))
        return tuple(p for p in found if "op_kernel" in p.parts and not self.is_other_architecture(p))

    @cached_property
    def _by_name(self) -> dict[str, list[Path]]:
        found: dict[str, list[Path]] = {}
        for path in self._files:
            found.setdefault(path.name, []).append(path)
        return found


def headers_beside(repository: Repository, includes: Includes, toolkit: Sequence[Path]) -> tuple[str, ...]:
    """The compiler's options for the headers of CANN that the host toolkit lacks, and for what those include.

    They come after all others: what the host toolkit has is taken from there, for it is what runs. A repository's
    stand-ins for what CANN has come last.
    """
    roots = repository.given.cann
    directories: dict[Path, None] = {}
    seen: set[Path] = set()
    todo = list(includes.missing) if roots else []
    while todo:
        text, source = todo.pop(0)
        near = source.parent / text
        if near.is_file():
            path = near
        elif _in_any(text, (*toolkit, *_system_directories())):
            continue
        else:
            found = next((one for root in roots if (one := _below(root, text, source)) is not None), None)
            if found is None:
                continue
            path = found[0]
            directories[found[1]] = None
        if path not in seen:
            seen.add(path)
            todo += [(name, path) for name, _ in _included(path)]
    return tuple(f"-idirafter{directory}" for directory in (*directories, *includes.stand_ins))


def has_headers(root: Path) -> bool:
    """Whether there is any header below a directory that is said to be CANN's."""
    return bool(_headers_below(root))


@cache
def _headers_below(root: Path) -> Mapping[str, Sequence[Path]]:
    """The headers of a CANN toolkit or checkout, by their names."""
    by_name: dict[str, list[Path]] = {}
    for directory, names, files in os.walk(root, followlinks=True):
        names[:] = sorted(n for n in names if not n.startswith(".") and n not in _ASIDE | _STAND_INS)
        for name in sorted(files):
            if Path(name).suffix in _SUFFIXES:
                by_name.setdefault(name, []).append(Path(directory) / name)
    return by_name


@cache
def _sources_below(root: Path) -> Mapping[Path, str]:
    """The sources of op_host in a checkout of CANN's, with their texts."""
    paths = [path for paths in _headers_below(root).values() for path in paths if path.suffix in _SOURCES]
    return {
        path: path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(paths)
        if not _OTHER_FORMS.intersection(path.relative_to(root).parts)
    }


def _below(root: Path, text: str, source: Path) -> tuple[Path, Path] | None:
    """The header whose path ends like an include, the nearest to its source; and the directory above that end."""
    parts = PurePosixPath(os.path.normpath(text)).parts
    candidates = [path for path in _headers_below(root).get(parts[-1], ()) if path.parts[-len(parts) :] == parts]
    if not candidates:
        return None

    def order(path: Path) -> tuple[int, int, str]:
        return -len(Path(os.path.commonpath([source, path])).parts), len(path.parts), str(path)

    path = min(candidates, key=order)
    return path, path.parents[len(parts) - 1]


def defined_operators(code: str) -> frozenset[str]:
    """The operators that a source defines, with OP_ADD."""
    return frozenset(_OP_ADD.findall(code))


def _registered(code: str) -> frozenset[tuple[str, str]]:
    """What a source registers: operators, each with one of their functions."""
    found = _IMPL_OP.findall(code)
    return frozenset((operator, one) for what, operator in found for one in ([what] if what else _FUNCTIONS))


def _names_architecture(include: str) -> bool:
    return any(_ARCHITECTURE.fullmatch(part) for part in PurePosixPath(include).parts[:-1])


def _is_host(parents: Sequence[Path], index: int) -> bool:
    return index > 0 and parents[index - 1].name == "op_host"


@cache
def _included(path: Path) -> tuple[tuple[str, bool], ...]:
    return tuple((m["own"] or m["system"], m["own"] is None) for m in _INCLUDE.finditer(code_of(path)))


def _in_any(text: str, directories: Iterable[Path]) -> bool:
    return any((directory / text).is_file() for directory in directories)


@cache
def _system_directories() -> tuple[Path, ...]:
    """Where the compiler finds headers by itself."""
    done = subprocess.run(
        [*compiler(), "-x", "c++", "-E", "-v", os.devnull], capture_output=True, text=True, check=False
    )
    _, _, listed = done.stderr.partition("search starts here:")
    return tuple(Path(line.strip()) for line in listed.splitlines() if line.startswith(" /"))
