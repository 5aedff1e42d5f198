"""Function ``adopt``: read a repository, decide on each operator, write or check the module."""

from __future__ import annotations

import keyword
import os
import re
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_graph.adoption.decision import Decision, RegistrationForm, State, count
from ascend_graph.adoption.decisions import decide_all
from ascend_graph.adoption.module import Existing, Merged, code_lines, head_of, merge, read_module, region_of
from ascend_graph.adoption.passed_types import check_passed_types
from ascend_graph.adoption.repository import AdoptionError, own_files, read_repository
from ascend_graph.adoption.tests_file import find_references, tests_of
from ascend_graph.sources import Diagnostic

_OTHER_TESTS = "--output, or write no tests (--no-tests)"


@dataclass(frozen=True, slots=True)
class AdoptionReport:
    """Result of an adoption."""

    root: Path
    output: Path
    decisions: tuple[Decision, ...]
    diagnostics: tuple[Diagnostic, ...]
    #: The module, as it is written.
    text: str
    merged: Merged
    lines_theirs: int
    lines_ours: int
    seconds: float
    #: True if the module lacks, or differs from, what would be written now.
    drifted: bool
    #: The test file, if one is written.
    tests: Path | None = None
    #: Number of op types that the repository has prototypes of.
    prototypes: int = 0

    @property
    def undecided(self) -> tuple[Decision, ...]:
        """The operators with a line to complete that the author has not completed."""
        edited = {*self.merged.kept, *self.merged.removed}
        return tuple(one for one in self.decisions if one.state is State.UNDECIDED and one.name not in edited)

    @property
    def impossible(self) -> tuple[Decision, ...]:
        """The operators that cannot be registered."""
        return tuple(one for one in self.decisions if one.state is State.IMPOSSIBLE)

    def as_json(self) -> dict[str, Any]:
        """Return the report as the command prints it."""
        registered = [one for one in self.decisions if one.registers]
        return {
            "root": str(self.root),
            "module": str(self.output),
            "operators": len(self.decisions),
            "registered": len(registered),
            "by_names": count(self.decisions, State.BY_NAMES),
            "with_arguments": count(self.decisions, State.WITH_ARGUMENTS),
            "undecided": [{"name": one.name, "place": one.place, "why": one.reason} for one in self.undecided],
            "impossible": [{"name": one.name, "place": one.place, "why": one.reason} for one in self.impossible],
            "by_prototype": sum(one.form is RegistrationForm.OP for one in registered),
            "with_relation": sum(one.relation is not None for one in registered),
            "prototypes": self.prototypes,
            "with_meta": sum(bool(one.meta) for one in registered),
            "lines_theirs": self.lines_theirs,
            "lines_ours": self.lines_ours,
            "seconds": round(self.seconds, 2),
            "drifted": self.drifted,
            "changed": self.merged.changed,
            "kept": self.merged.kept,
            "outdated": list(self.merged.outdated),
            "removed": self.merged.removed,
            "gone": self.merged.gone,
            "diagnostics": [one.as_json() for one in self.diagnostics],
        }


def adopt(
    directory: str | Path, output: str | Path, *, write: bool = True, tests: bool = True, title: str = ""
) -> AdoptionReport:
    """Write a module that registers the operators of a repository.

    Args:
        directory: The repository, or a part of one. It is read, and never written to unless ``output`` lies in it.
        output: The module. Regions of it that an author changed are kept.
        write: If false, nothing is written: the report says what would change.
        tests: If true, ``test_<module>`` is written next to it.
        title: The name in the module's docstring; that of the directory by default.

    Raises:
        AdoptionError: The directory does not exist, or the output cannot be written.
        ModuleError: The output is a file that adopt did not write.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> _ = (root / "ops.cpp").write_text('''
    ... at::Tensor twice(const at::Tensor &x) { at::Tensor y = at::empty_like(x); launch(x, y); return y; }
    ... TORCH_LIBRARY(mine, m) { m.def("twice(Tensor x) -> Tensor"); }
    ... TORCH_LIBRARY_IMPL(mine, PrivateUse1, m) { m.impl("twice", &twice); }
    ... ''')
    >>> report = adopt(root, root / "operators.py", tests=False)
    >>> print(report.text.splitlines()[-3])
    ascend_graph.register_kernel(eager=torch.ops.mine.twice, shape="x[*s] -> y like x")
    """
    started = time.perf_counter()
    root, path = Path(directory).resolve(), Path(output)
    if not path.stem.isidentifier() or keyword.iskeyword(path.stem) or path.suffix != ".py":
        raise AdoptionError(f"{path}: no module's name; expected a file such as operators.py. Name another --output")
    existing = read_module(path)
    findings, known = read_repository(root)
    check_passed_types(findings, known)
    decisions = decide_all(findings, known)
    regions = [(one.name, region_of(one)) for one in decisions]
    head = head_of(decisions, root, path, title or root.name)
    merged = merge(existing, head, regions, {one.name: one.schema for one in decisions})
    texts = {path: merged.text}
    tests_path = path.with_name(f"test_{path.name}") if tests else None
    if tests_path is not None:
        references = find_references(own_files(root, tests=True), root, decisions)
        written = read_module(tests_path, _OTHER_TESTS)
        texts[tests_path] = merge(written, tests_of(path.stem, decisions, references), []).text
    for file, text in (texts if write else {}).items():
        _write(file, text)
    return AdoptionReport(
        root,
        path,
        tuple(decisions),
        tuple(findings.diagnostics),
        merged.text,
        merged,
        _lines(decisions),
        code_lines(merged.text),
        time.perf_counter() - started,
        existing == Existing() or bool(merged.changed or merged.gone or merged.outdated),
        tests_path,
        len(known.prototypes),
    )


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all; a link keeps its target."""
    try:
        path = path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(draft).chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
            Path(draft).replace(path)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise AdoptionError(f"{path}: cannot be written: {error.strerror or error}. Name another --output") from None


def _lines(decisions: Iterable[Decision]) -> int:
    """Return the number of lines that the registrations stand for; a line counts once."""
    found: dict[str, set[int]] = {}
    for one in decisions:
        if one.registers:
            for file, first, last in one.replaced:
                found.setdefault(file, set()).update(range(first, last + 1))
    return sum(map(len, found.values()))


def default_output(directory: Path) -> Path:
    """Return the module's path where none is given: in the current directory, named after the repository.

    >>> default_output(Path("/src/my-ops")).name
    'my_ops_operators.py'
    """
    stem = re.sub(r"\W+", "_", directory.resolve().name).strip("_").lower()
    return Path(f"{stem if stem and not stem[0].isdigit() else f'adopted_{stem}'.rstrip('_')}_operators.py")
