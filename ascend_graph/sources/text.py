"""C++ sources as the readers see them, with positions and diagnostics.

The readers of this package read ``SourceText.code``. It has the length and the lines of the file, with blanks for
everything else than code, so no reader needs to handle comments. An offset into the code is an offset into the file.
Only if macros that define ops were expanded, ``SourceText.origin`` must map one to the other.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ascend_graph.errors import AscendGraphError
from ascend_graph.sources.diagnostics import Diagnostic, Severity
from ascend_graph.sources.macros import (
    Budget,
    ExpandedSegment,
    Expander,
    Macro,
    WorkLimitError,
    constants,
    defining,
    in_force,
    op_defining,
    used_by,
)
from ascend_graph.sources.preprocessor import preprocess

#: Maximum size of a file. CANN's operator headers have 3 MB in total, so a larger file is something else.
MAX_FILE_BYTES = 128 * 1024 * 1024

#: Reading one file stops after this many diagnostics.
MAX_DIAGNOSTICS = 1000


class SourceError(AscendGraphError):
    """A source that cannot be read at all: a missing path, a binary file, a file that is too large."""


@dataclass(slots=True)
class SourceText:
    """A source, its code and its diagnostics."""

    text: str
    file: str = ""
    code: str = ""
    #: Start and end of each comment, in order.
    comments: list[tuple[int, int]] = field(default_factory=list)
    #: Start and end of each string that looks like a definition but is not one.
    strings: list[tuple[int, int]] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    _line_starts: list[int] | None = None
    #: Each macro and constant with its definitions in order; constants are added when they are first needed.
    _names: dict[str, list[Macro]] = field(default_factory=dict)
    _has_constants: bool = False
    _macros: dict[str, list[Macro]] = field(default_factory=dict)
    _remarked: set[tuple[str, int]] = field(default_factory=set)
    #: The origin of each segment of the code, if macros were expanded in it.
    _pieces: list[ExpandedSegment] = field(default_factory=list)
    _expander: Expander = field(init=False)

    def __post_init__(self) -> None:
        found = preprocess(self.text)
        self.code, self.comments, self.strings, self._names = found.code, found.comments, found.strings, found.macros
        self._macros = self._names
        self._expander = Expander(self._lookup, Budget(len(self.text)))
        for severity, offset, message, op_type in found.remarks[:MAX_DIAGNOSTICS]:
            self.report(severity, offset, message, op_type)
        names = (
            op_defining(found.macros)
            if any(
                "REG" in (m.body or "") or "GetWorkspaceSize" in (m.body or "")
                for ms in found.macros.values()
                for m in ms
            )
            else ()
        )
        if names:
            try:
                self.code, self._pieces = self._expander.code(self.code, names)
            except WorkLimitError as error:
                self.report(
                    Severity.ERROR, error.offset, f"{error}; no macro that defines ops was replaced. Correct it"
                )

    def origin(self, offset: int) -> int:
        """Map an offset in the code to the text; they differ only after expanded macros."""
        if not self._pieces:
            return offset
        piece = self._pieces[bisect.bisect_right(self._pieces, offset, key=lambda piece: piece.start) - 1]
        return piece.origin + offset - piece.start if piece.is_copy else piece.origin

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset in the code, both from 1; the column counts characters."""
        return self._text_position(self.origin(offset))

    def _text_position(self, offset: int) -> tuple[int, int]:
        if self._line_starts is None:
            self._line_starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        line = bisect.bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line_of(self, offset: int) -> int:
        """Return the line of an offset, from 1."""
        return self.position(offset)[0]

    def report(self, severity: Severity, offset: int, message: str, op_type: str = "") -> None:
        """Add a diagnostic for ``offset`` of the code."""
        self._report_at(severity, self.origin(offset), message, op_type)

    def _report_at(self, severity: Severity, offset: int, message: str, op_type: str = "") -> None:
        line, column = self._text_position(offset)
        assert self._line_starts is not None
        start = self._line_starts[line - 1]
        end = self.text.find("\n", start)
        # A line of megabytes is not kept whole for the sake of a caret.
        end = min(len(self.text) if end < 0 else end, start + column + 200)
        source_line = self.text[start:end].rstrip("\r") if column < 10_000 else ""
        self.diagnostics.append(Diagnostic(severity, message, self.file, line, column, source_line, op_type))

    @property
    def full(self) -> bool:
        """True if there are too many diagnostics to continue."""
        return len(self.diagnostics) >= MAX_DIAGNOSTICS

    def expanded(self, text: str, offset: int, *, constants_too: bool = True) -> str:
        """Return ``text``, found at ``offset``, with the file's macros (and constants) expanded."""
        if constants_too and not self._has_constants:
            self._has_constants = True
            declared: dict[str, list[Macro]] = {}
            for name, constant in constants(self.code):
                declared.setdefault(name, []).append(constant)
            self._names = declared | self._names  # a macro hides a constant of its name
        names = self._names if constants_too else self._macros
        if not names:
            return text
        place = self.origin(offset)
        try:
            return self._expander.text(text, place, names)
        except WorkLimitError as error:
            if not self.full:
                self.report(Severity.ERROR, offset, f"{error}; nothing more is replaced in this file. Correct it")
            self._names = self._macros = {}
            return text

    @property
    def macros(self) -> dict[str, list[Macro]]:
        """Macros of the file, each with its definitions in order."""
        return self._macros

    def with_definitions(self, word: str) -> str:
        """Return the code with the macros expanded whose bodies have a word, and with what these use.

        The macros are those of this file and of the headers that :meth:`add_included` added.
        """
        mark = re.compile(rf"\b{re.escape(word)}\b")
        names = defining(self._names, lambda macro: macro.body is not None and mark.search(macro.body) is not None)
        if not names:
            return self.code
        try:
            return self._expander.code(self.code, used_by(self._names, names))[0]
        except WorkLimitError as error:
            self.report(Severity.ERROR, error.offset, f"{error}; no macro with {word} was replaced. Correct it")
            return self.code

    def add_included(self, path: Path) -> None:
        """Add the macros and constants of headers that a file at ``path`` includes by relative path."""
        self._names = {name: list(definitions) for name, definitions in self._names.items()}
        for match in _INCLUDE.finditer(self.text):
            for name, macro in _declared_in(path.parent / match[1], set(), 0):
                mine = self._names.setdefault(name, [])
                mine.insert(0, Macro(match.start(), macro.parameters, macro.body))
                mine.sort(key=lambda one: one.offset)

    def _lookup(self, name: str, place: int) -> Macro | None:
        macro, doubtful = in_force(self._names.get(name, ()), place)
        if doubtful and macro is not None and not self.full and (name, place) not in self._remarked:
            self._remarked.add((name, place))
            line = self._text_position(macro.offset)[0]
            self._report_at(
                Severity.WARNING,
                place,
                f"{name} has several definitions, and nothing in this file decides between them; taken was the one a "
                f"compiler takes with nothing else defined, of line {line}",
            )
        return macro

    def is_string(self, offset: int) -> bool:
        """Return whether an offset of the code lies in one of the ``strings``."""
        if not self.strings:
            return False
        offset = self.origin(offset)
        index = bisect.bisect_right(self.strings, offset, key=lambda span: span[0]) - 1
        return index >= 0 and offset < self.strings[index][1]

    def comments_between(self, start: int, end: int) -> str:
        """Return the comments between two offsets of the code, as written."""
        first = bisect.bisect_left(self.comments, (self.origin(start), 0))
        last = bisect.bisect_left(self.comments, (self.origin(end), 0))
        return "\n".join([self.text[a:b] for a, b in self.comments[first:last]])

    def comment_before(self, offset: int) -> str:
        """Return the comment directly above ``offset``, undecorated; adjacent ``//`` lines count as one."""
        offset = self.origin(offset)
        index = bisect.bisect_left(self.comments, (offset, 0)) - 1
        parts: list[str] = []
        end = offset
        while index >= 0:
            comment_start, comment_end = self.comments[index]
            if _SPACE.match(self.text, comment_end).end() < end:  # type: ignore[union-attr]
                break
            gap = self.text[comment_end:end]
            comment = self.text[comment_start:comment_end]
            is_line = comment.startswith("//")
            if parts and (not is_line or gap.count("\n") > 1):
                break
            parts.append(comment)
            if not is_line:
                break
            end = comment_start
            index -= 1
        return "\n".join(_undecorate(part) for part in reversed(parts)).strip("\n")


_SPACE = re.compile(r"\s*")
_STAR = re.compile(r"^[ \t]*(?:\*+(?!/)[ \t]?)?", re.MULTILINE)


def _undecorate(comment: str) -> str:
    if comment.startswith("//"):
        return comment.lstrip("/").strip().removeprefix("< ")
    body = comment.removeprefix("/*").removesuffix("*/").strip("*! \t\r\n")
    if "\n" not in body:
        return body
    return "\n".join([line.rstrip() for line in _STAR.sub("", body).split("\n")])


def read_source(path: Path, limit: int | None = None) -> SourceText:
    """Read one file of at most ``limit`` bytes, ``MAX_FILE_BYTES`` by default.

    UTF-8 (with or without a byte order mark) and UTF-16 with one are decoded as such, everything else as GB18030, the
    encoding of older Chinese headers.

    Raises:
        SourceError: the file cannot be opened, is binary, or is larger than the limit.
    """
    try:
        size = path.stat().st_size
        limit = MAX_FILE_BYTES if limit is None else limit
        if size > limit:
            raise SourceError(
                f"{path}: {size:,} bytes are too many for an operator header; the limit is {limit:,}. "
                "Split the file, or pass its text to parse_text."
            )
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror or error}. Name a readable file") from error
    remark = ""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", errors="replace")
    elif b"\0" in data[:4096]:
        raise SourceError(f"{path}: is a binary file, not a C++ header; name a text")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            remark = f"byte {error.start} is not UTF-8; the file was read as GB18030"
            text = data.decode("gb18030", errors="replace")
    source = SourceText(text, str(path))
    if remark:
        source.diagnostics.insert(0, Diagnostic(Severity.WARNING, remark, str(path)))
    return source


_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_DEEPEST_INCLUDE = 8
_MOST_INCLUDED_BYTES = 1 << 20


def _declared_in(path: Path, seen: set[Path], depth: int) -> Iterator[tuple[str, Macro]]:
    """Yield the macros and constants of a header and its includes; skip missing files."""
    if depth > _DEEPEST_INCLUDE or path in seen:
        return
    seen.add(path)
    try:
        if path.stat().st_size > _MOST_INCLUDED_BYTES:
            return
        text = path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return
    for match in _INCLUDE.finditer(text):
        yield from _declared_in(path.parent / match[1], seen, depth + 1)
    found = preprocess(text)
    yield from constants(found.code)
    for name, definitions in found.macros.items():
        yield name, definitions[-1]
