"""The written module: one marked region an operator, which a second run replaces only if nobody has changed it."""

from __future__ import annotations

import ast
import hashlib
import keyword
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ascend_graph.adoption.decision import Decision, RegistrationForm, State
from ascend_graph.adoption.ge_binding import Code
from ascend_graph.errors import AscendGraphError

#: Longest line of the written code, where it can be broken.
WIDTH = 118

_MARK = re.compile(r"^# adopt: (?P<name>.+?) (?P<digest>[0-9a-f]{12})(?: (?P<schema>[0-9a-f]{8}))?$", re.MULTILINE)
_END = re.compile(r"^# adopt: end(?: (?P<names>.*))?$", re.MULTILINE)
_LAST = re.compile(r"^# adopt: end .*\n?", re.MULTILINE)
_HEAD = "(head)"
_LINE_NUMBER = re.compile(r"(?<=\w):\d+\b")


class AdoptedModuleError(AscendGraphError):
    """File that adopt did not write, or that is not Python."""


@dataclass(frozen=True, slots=True)
class Region:
    """Marked part of a module, and the author's text after it."""

    name: str
    text: str
    #: Digest of the text as adopt wrote it.
    digest: str
    after: str = ""
    #: Digest of the operator's schema; empty in modules that were written before there was one.
    schema: str = ""

    @property
    def is_edited(self) -> bool:
        """True if the author changed it."""
        return digest_of(self.text) != self.digest


@dataclass(frozen=True, slots=True)
class Existing:
    """A module that an earlier run wrote."""

    regions: tuple[Region, ...] = ()
    before: str = ""
    #: The operators of which the earlier run wrote a region.
    written: frozenset[str] = frozenset()

    def region(self, name: str) -> Region | None:
        """Return the region of that name, or None."""
        return next((one for one in self.regions if one.name == name), None)


@dataclass(slots=True)
class Merged:
    """A module's new text, and what became of the regions."""

    text: str = ""
    #: Regions that the author changed: kept.
    kept: list[str] = field(default_factory=list)
    #: Regions that the author removed: not written again.
    removed: list[str] = field(default_factory=list)
    #: Regions of operators that are no longer in the sources.
    gone: list[str] = field(default_factory=list)
    #: Those of them that the author changed: kept until the author deletes them.
    orphaned: list[str] = field(default_factory=list)
    #: Regions that are new, or differ from the earlier ones.
    changed: list[str] = field(default_factory=list)
    #: Regions that the author changed although adopt would now write something else than it did, with what that is.
    outdated: dict[str, str] = field(default_factory=dict)


def digest_of(text: str) -> str:
    """Return the digest of a region's text; empty lines at its ends and line numbers in comments do not count."""
    lines = [
        _LINE_NUMBER.sub("", line) if line.lstrip().startswith("#") else line for line in text.strip("\n").split("\n")
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def read_module(path: Path, other: str = "--output") -> Existing:
    """Return the regions of a module that an earlier run wrote; nothing for a file that does not exist.

    Raises:
        AdoptedModuleError: The file is not one that adopt wrote, or not Python.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return Existing()
    except (OSError, UnicodeDecodeError) as error:
        raise AdoptedModuleError(f"{path}: cannot be read: {error}. Name another {other}") from None
    try:
        ast.parse(text, str(path))
    except (SyntaxError, ValueError) as error:
        raise AdoptedModuleError(f"{path}: is not Python: {error}. Correct it: what it says is kept") from None
    marks = list(_MARK.finditer(text))
    if not marks:
        if not text.strip():
            return Existing()
        raise AdoptedModuleError(
            f"{path}: has no region of adopt; expected a module that it wrote. Name another {other}"
        )
    ends = {match.start(): match for match in _END.finditer(text)}
    _check_marks(path, text, marks, ends)
    regions = []
    written: set[str] = set()
    for number, mark in enumerate(marks):
        limit = marks[number + 1].start() if number + 1 < len(marks) else len(text)
        end = next((match for start, match in sorted(ends.items()) if mark.end() <= start < limit), None)
        stop = end.start() if end is not None else limit
        after = _LAST.sub("", text[end.end() : limit]).strip("\n") if end is not None else ""
        region = text[mark.end() : stop].strip("\n")
        regions.append(Region(mark["name"], region, mark["digest"], after, mark["schema"] or ""))
    for match in ends.values():
        written = set(match["names"].split(", ")) if match["names"] else written
    return Existing(tuple(regions), text[: marks[0].start()].strip("\n"), frozenset(written - {""}))


def _check_marks(path: Path, text: str, marks: Sequence[re.Match[str]], ends: Iterable[int]) -> None:
    """Raise an error if a region is there twice, or the last mark is not there: a part of the file would be lost."""
    lines: dict[str, int] = {}
    for mark in marks:
        line = text.count("\n", 0, mark.start()) + 1
        if (first := lines.setdefault(mark["name"], line)) != line:
            raise AdoptedModuleError(
                f"{path}:{line}: {mark['name']} has another region in line {first}; expected one. "
                "Delete one: what the other says is kept"
            )
    if not any(start > marks[-1].start() for start in ends):
        raise AdoptedModuleError(
            f"{path}: ends within the region of {marks[-1]['name']}; expected '# adopt: end' after it. "
            "Restore the file, or delete that region's mark and what follows, and add the line"
        )


def merge(
    existing: Existing, head: str, regions: Sequence[tuple[str, str]], schemas: Mapping[str, str] | None = None
) -> Merged:
    """Return the module of new regions over an earlier one; the author's changes are kept.

    Args:
        existing: The earlier module.
        head: The new head: imports and prototypes.
        regions: Name and text of each new region.
        schemas: Schema of each operator that has one: a call may stay as it is where its schema changes.
    """
    merged = Merged()
    parts = [existing.before, ""] if existing.before else []
    names = [name for name, _ in regions]
    for name, proposed in [(_HEAD, head), *regions]:
        earlier = existing.region(name)
        after = earlier.after if earlier is not None else ""
        if earlier is None and name in existing.written:
            merged.removed.append(name)
            continue
        text, digest, schema = proposed, digest_of(proposed), (schemas or {}).get(name, "")
        schema = hashlib.sha256("".join(schema.split()).encode()).hexdigest()[:8] if schema else ""
        differs = earlier is None or digest != earlier.digest or bool(earlier.schema and earlier.schema != schema)
        if earlier is not None and earlier.is_edited:
            merged.kept.append(name)
            if differs:
                merged.outdated[name] = proposed
            # The digests are those of the sources: the next run compares with what this one has told.
            text = earlier.text
        elif differs:
            merged.changed.append(name)
        parts += _written(name, digest, text, after, schema)
    for region in existing.regions:
        if region.name not in names and region.name != _HEAD:
            merged.gone.append(region.name)
            if region.is_edited:
                merged.orphaned.append(region.name)
                parts += _written(region.name, region.digest, region.text, region.after, region.schema)
            elif region.after:
                parts += [region.after, ""]
    parts.append(
        f"# adopt: end {', '.join(dict.fromkeys([*names, *(r.name for r in existing.regions if r.name in merged.removed)]))}"
    )
    merged.text = "\n".join(parts).rstrip("\n") + "\n"
    return merged


def _written(name: str, digest: str, text: str, after: str, schema: str) -> list[str]:
    end = ["# adopt: end", after, ""] if after else [""]
    return [f"# adopt: {name} {digest} {schema}".rstrip(), text.strip("\n"), *end]


def head_of(decisions: Iterable[Decision], root: Path, output: Path, title: str) -> str:
    """Return the head of a module: its docstring, imports, and the loading of prototypes and headers."""
    decisions = tuple(decisions)
    sources = sorted({source for one in decisions if one.form is RegistrationForm.OP for source in one.sources})
    needs_torch = any(one.needs_operator or "torch." in "".join(one.meta + one.backward) for one in decisions)
    lines = [
        f'"""Operators of {_comment(title)}, registered with ascend_graph.',
        "",
        "Written by ``ascend-graph adopt``. Import the library that defines the operators first. A region that is changed",
        "is kept when adopt runs again; complete the lines that are marked as undecided.",
        '"""',
        "",
    ]
    standard = ["import math"] if any("math." in "".join(one.meta) for one in decisions) else []
    standard += ["from pathlib import Path"] if sources else []
    lines += [*standard, ""] if standard else []
    if needs_torch:
        lines += ["import torch", ""]
    lines.append("import ascend_graph")
    if sources:
        here = os.path.relpath(root, output.resolve().parent).replace(os.sep, "/")
        lines += [
            "",
            "# An installed operator package has the prototypes; a checkout is read where there is one.",
            f"_SOURCES = Path(__file__).resolve().parent / {literal(here)}",
        ]
        lines += [
            "for _source in (",
            *(f"    {literal(one)}," for one in sources),
            "):",
            "    if (_SOURCES / _source).exists():",
            "        ascend_graph.load_prototypes(_SOURCES / _source)",
        ]
    return "\n".join(lines)


def region_of(decision: Decision) -> str:
    """Return the code of one decision, with its evidence."""
    lines = [f"# {_comment(one)}" for one in decision.evidence]
    functions = [line for one in (decision.meta, decision.backward) if one for line in (*one, "")]
    if decision.conditions:
        lines.append(f"# only with {_comment(' and '.join(decision.conditions))}")
    if decision.state is State.IMPOSSIBLE:
        return "\n".join([*lines, f"# impossible: {_comment(decision.reason)}"])
    call = call_of(decision)
    if decision.state is State.UNDECIDED:
        lines.append(f"# undecided: {_comment(decision.reason)}")
        return "\n".join([*lines, *(f"# {line}" for line in call)])
    if decision.conditions and decision.needs_operator:
        owner, _, name = decision.eager.rpartition(".")
        lines += [*functions, f"if hasattr({owner}, {literal(name)}):"]
        return "\n".join([*lines, *(f"    {line}" for line in call)])
    return "\n".join([*lines, *functions, *call])


def call_of(decision: Decision) -> list[str]:
    """Return the lines of the registering call; what is undecided stands as ``"…"``."""
    form = decision.form or RegistrationForm.KERNEL
    parts = [literal(decision.subject)] if form is not RegistrationForm.KERNEL and decision.subject else []
    if decision.defined_from:
        text, function = decision.defined_from
        source = literal(function) if function else _operator(decision.eager)
        parts.append(f"eager=ascend_graph.define_from_function({literal(text)}, {source})")
    elif decision.eager:
        parts.append(f"eager={_operator(decision.eager)}")
    shape = decision.relation if decision.state is not State.UNDECIDED or decision.meta else decision.relation or "…"
    if decision.meta:
        parts.append(f"meta={_name_of(decision.meta)}")
    elif shape is not None:
        parts.append(f"shape={literal(shape)}")
    if decision.arguments:
        parts.append(f"arguments={arguments_text(decision.arguments)}")
    if decision.override:
        parts.append("override=True")
    if decision.backward and decision.registers:
        parts.append(f"backward={_name_of(decision.backward)}")
    one = f"ascend_graph.{form.value}({', '.join(parts)})"
    if len(one) <= WIDTH:
        return [one]
    lines = [f"ascend_graph.{form.value}("]
    line = "   "
    for part in parts:
        if len(line) + len(part) + 2 > WIDTH and line.strip():
            lines.append(line)
            line = "   "
        line += f" {part},"
    return [*lines, line, ")"]


def _name_of(function: Sequence[str]) -> str:
    """Return the name of a function of these lines."""
    return function[0].removeprefix("def ").partition("(")[0]


def _operator(path: str) -> str:
    """Return an operator's expression; a name that is a keyword needs ``getattr``."""
    found = "torch.ops"
    for part in path.split(".")[2:]:
        found = f"getattr({found}, {part!r})" if keyword.iskeyword(part) else f"{found}.{part}"
    return found


def _comment(text: str) -> str:
    """Return a text as one line of a comment."""
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return (text if len(text) <= 400 else text[:399] + "…").replace('"""', "'''")


def code_lines(text: str) -> int:
    """Return the number of lines that are neither empty nor a comment, nor part of the docstring."""
    body = ast.parse(text)
    documented = 0
    if body.body and isinstance(body.body[0], ast.Expr) and isinstance(body.body[0].value, ast.Constant):
        documented = body.body[0].end_lineno or 0
    lines = text.splitlines()[documented:]
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in lines)


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Return ``arguments=`` as Python code.

    >>> print(arguments_text({"self": "x", "->": ("y", "z"), "stride": Code("lambda arguments: 1")}))
    {"self": "x", "->": ("y", "z"), "stride": lambda arguments: 1}
    """
    return f"{{{', '.join(f'{literal(key)}: {literal(value)}' for key, value in arguments.items())}}}"


def literal(value: Any) -> str:
    """Return a value as Python code; strings are in double quotes where nothing needs to be escaped.

    >>> print(literal("x -> y"), literal('mode == "BSND"'), literal(("y",)))
    "x -> y" 'mode == "BSND"' ("y",)
    """
    if isinstance(value, Code):
        return value.text
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    shown = repr(value)
    plain = isinstance(value, str) and shown.startswith("'") and '"' not in shown and "\\'" not in shown
    return f'"{shown[1:-1]}"' if plain else shown
