"""A C++ source as the readers see it: comments, directives and line splices blanked, every offset kept.

The readers of this package look at ``SourceText.code``, which has the length and the lines of the file but blanks for
all that is not code, so that no reader needs to know of comments. An offset into the code is an offset into the file;
only where macros that define ops were replaced, ``SourceText.origin`` has to tell one from the other.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field
from pathlib import Path

from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes.diagnostics import Diagnostic, Severity
from ascend_graph.prototypes.macros import Macro, Piece, expand, in_force

#: No operator header comes near this size (all of CANN's together have 3 MB); anything larger is some other file.
MAX_FILE_BYTES = 512 * 1024 * 1024

#: Reading one file stops after so many remarks.
MAX_DIAGNOSTICS = 1000


class PrototypeSourceError(AscendGraphError):
    """A source that cannot be read at all: a missing path, a binary file, a file that is too large."""


#: A type or default grows no longer than this by the replacing of names in it.
MAX_EXPANSION = 65536

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
#: ``static constexpr float EPSILON = 1e-8f;``, ``std::vector<ge::DataType> types = {…};``
_CONSTANT = re.compile(
    r"\b(?:const(?:expr)?\b[\w\s:<>,]{1,100}?|vector\s*<[^<>;]{1,50}>\s*)\b(?P<name>[A-Za-z_]\w*)\s*"
    r"(?:=\s*(?P<value>[^;=]{1,16384}?)|(?P<list>\{[^;{}]*(?:\{[^{}]*\}[^;{}]*)*\}))\s*;"
)
_LEXEME = re.compile(
    r"""
      /\*.*?\*/                                       # block comment
    | //[^\n\\]*(?:\\(?:\r?\n)?[^\n\\]*)*             # line comment, which a splice carries to the next line
    | /\*                                             # a block comment without its end
    | "[^"\\\n]*(?:\\(?:\r\n|.)[^"\\\n]*)*"           # string
    | '[^'\\\n]*(?:\\.[^'\\\n]*)*'                    # character
    | \\[ \t]*\r?\n                                   # line splice
    | \#(?:[^\n\\/]+|/(?![*/])|/\*.*?\*/|//[^\n\\]*|\\(?:\r\n|.)?)*   # directive, with splices and comments in it
    """,
    re.DOTALL | re.VERBOSE,
)
_SPLICE_OR_COMMENT = re.compile(r"\\\r?\n|/\*.*?\*/|//[^\n]*", re.DOTALL)
_DEFINE = re.compile(r"#\s*define\s+([A-Za-z_]\w*)(\([^)]*\))?(.*)", re.DOTALL)
_DIRECTIVE = re.compile(r"#\s*([a-z]+)\b\s*(.*)", re.DOTALL)


def _blank(text: str) -> str:
    return "\n".join([" " * len(line) for line in text.split("\n")])


@dataclass(slots=True)
class SourceText:
    """One source, the code in it, and the remarks made about it."""

    text: str
    file: str = ""
    code: str = ""
    #: Start and end of each comment, in order.
    comments: list[tuple[int, int]] = field(default_factory=list)
    #: Start and end of each string that has REG_OP in it: no definition begins there.
    strings: list[tuple[int, int]] = field(default_factory=list)
    #: Each macro name with its definitions in order.
    macros: dict[str, list[Macro]] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    _line_starts: list[int] | None = None
    _constants: dict[str, list[Macro]] | None = None
    #: Where the code comes from, if macros were replaced in it.
    _pieces: list[Piece] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.code = self._clean()
        if any(macro.defines_ops for macros in self.macros.values() for macro in macros):
            self.code, self._pieces = expand(self.code, self.macros)

    def origin(self, offset: int) -> int:
        """The offset in the text of an offset in the code: the same, unless macros were replaced before it."""
        if not self._pieces:
            return offset
        piece = self._pieces[bisect.bisect_right(self._pieces, offset, key=lambda piece: piece.start) - 1]
        return piece.origin + offset - piece.start if piece.is_copy else piece.origin

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset in the code, both from 1; the column counts characters."""
        offset = self.origin(offset)
        if self._line_starts is None:
            self._line_starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        line = bisect.bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line_of(self, offset: int) -> int:
        """The line of an offset, from 1."""
        return self.position(offset)[0]

    def report(self, severity: Severity, offset: int, message: str, op_type: str = "") -> None:
        """Remark on the place at ``offset``."""
        line, column = self.position(offset)
        assert self._line_starts is not None
        start = self._line_starts[line - 1]
        end = self.text.find("\n", start)
        # A line of megabytes is not kept whole for the sake of a caret.
        end = min(len(self.text) if end < 0 else end, start + column + 200)
        source_line = self.text[start:end].rstrip("\r") if column < 10_000 else ""
        self.diagnostics.append(Diagnostic(severity, message, self.file, line, column, source_line, op_type))

    @property
    def full(self) -> bool:
        """Whether so much was wrong that reading on serves nobody."""
        return len(self.diagnostics) >= MAX_DIAGNOSTICS

    def expanded(self, text: str, offset: int) -> str:
        """``text``, which stands at ``offset``, with the file's macros and constants replaced, in a few steps."""
        if self._constants is None:
            self._constants = {}
            for match in _CONSTANT.finditer(self.code):
                value = match["value"] or match["list"]
                body = value if value.startswith("{") else f"({value})"
                self._constants.setdefault(match["name"], []).append(Macro(self.origin(match.start()), None, body))
        if not self.macros and not self._constants:
            return text
        place = self.origin(offset)
        for _ in range(8):
            replaced = _IDENTIFIER.sub(lambda match: self._replacement(match.group(), place), text)
            if replaced == text or len(replaced) > MAX_EXPANSION:
                break
            text = replaced
        return text

    def _replacement(self, name: str, place: int) -> str:
        macro = in_force(self.macros.get(name) or (self._constants or {}).get(name) or (), place)
        return name if macro is None or macro.parameters is not None else macro.body

    def comment_before(self, offset: int) -> str:
        """The comment that ends right above ``offset``, without its decoration; adjoining ``//`` lines count as one."""
        offset = self.origin(offset)
        index = bisect.bisect_left(self.comments, (offset, 0)) - 1
        parts: list[str] = []
        end = offset
        while index >= 0:
            comment_start, comment_end = self.comments[index]
            gap = self.text[comment_end:end]
            comment = self.text[comment_start:comment_end]
            is_line = comment.startswith("//")
            if gap.strip() or (parts and (not is_line or gap.count("\n") > 1)):
                break
            parts.append(comment)
            if not is_line:
                break
            end = comment_start
            index -= 1
        return "\n".join(_undecorate(part) for part in reversed(parts)).strip("\n")

    def _clean(self) -> str:
        """Blank comments, directives, splices and regions under ``#if 0``; collect comments and macros."""
        text = self.text
        blanks: list[tuple[int, int]] = []
        conditionals: list[_Conditional] = []
        off_since: int | None = None  # where the region began that is switched off
        end = 0
        for match in _LEXEME.finditer(text):
            start, end = match.span()
            first = text[start]
            if first in "\"'":
                if text.find("REG_OP", start, end) >= 0:
                    self.strings.append((start, end))
                continue
            if first == "#":
                line_start = text.rfind("\n", 0, start) + 1
                if text[max(line_start, blanks[-1][1] if blanks else 0) : start].strip():
                    continue  # not the first thing on its line: no directive
                self._directive(match.group(), start, conditionals)
                is_off = any(conditional.off for conditional in conditionals)
                if is_off and off_since is None:
                    off_since = start
                elif off_since is not None and not is_off:
                    blanks.append((off_since, end))
                    off_since = None
                    continue
            if off_since is not None:
                continue
            if first == "/":
                if end - start == 2 and text.startswith("/*", start):
                    self.report(Severity.ERROR, start, "this comment has no end: nothing below it was read")
                    off_since = start
                    break
                self.comments.append((start, end))
            blanks.append((start, end))
        if off_since is not None:
            blanks.append((off_since, len(text)))

        pieces: list[str] = []
        kept = 0
        for start, end in blanks:
            pieces.append(text[kept:start])
            pieces.append(_blank(text[start:end]))
            kept = end
        pieces.append(text[kept:])
        return "".join(pieces)

    def _directive(self, directive: str, offset: int, conditionals: list[_Conditional]) -> None:
        match = _DIRECTIVE.match(directive)
        if match is None:
            return
        keyword = match.group(1)
        if keyword in ("if", "ifdef", "ifndef"):
            condition = _SPLICE_OR_COMMENT.sub(" ", match.group(2)).strip() if keyword == "if" else ""
            conditionals.append(_Conditional(_LITERAL_CONDITIONS.get(condition)))
        elif keyword in ("elif", "else") and conditionals:
            conditionals[-1].next_branch(
                _LITERAL_CONDITIONS.get(_SPLICE_OR_COMMENT.sub(" ", match.group(2)).strip())
                if keyword == "elif"
                else True
            )
        elif keyword == "endif" and conditionals:
            conditionals.pop()
        elif keyword in ("define", "undef") and not any(conditional.off for conditional in conditionals):
            self._define(directive, offset)

    def _define(self, directive: str, offset: int) -> None:
        match = _DEFINE.match(directive)
        if match is None:
            return
        name, parameters, body = match.groups()
        names = None if parameters is None else tuple(part.strip() for part in parameters[1:-1].split(","))
        body = _SPLICE_OR_COMMENT.sub(" ", body).strip()
        self.macros.setdefault(name, []).append(Macro(offset, names, body))


_LITERAL_CONDITIONS = {"0": False, "false": False, "1": True, "true": True}


class _Conditional:
    """One ``#if`` … ``#endif``. Only literal conditions are decided; of any other, every branch is read."""

    __slots__ = ("decided", "off", "taken")

    def __init__(self, condition: bool | None) -> None:
        self.decided = condition is not None
        self.taken = condition is True
        self.off = condition is False

    def next_branch(self, condition: bool | None) -> None:
        if not self.decided:
            return
        self.off = self.taken or condition is False
        self.taken = self.taken or condition is True


_STAR = re.compile(r"^[ \t]*(?:\*+(?!/)[ \t]?)?", re.MULTILINE)


def _undecorate(comment: str) -> str:
    if comment.startswith("//"):
        return comment.lstrip("/").strip().removeprefix("< ")
    body = comment.removeprefix("/*").removesuffix("*/").strip("*! \t\r\n")
    if "\n" not in body:
        return body
    return "\n".join([line.rstrip() for line in _STAR.sub("", body).split("\n")])


def read_source(path: Path) -> SourceText:
    """Read one file.

    UTF-8 (with or without a byte order mark) and UTF-16 with one are read as what they are, everything else as
    GB18030, the encoding of older Chinese headers.

    Raises:
        PrototypeSourceError: the file cannot be opened, is binary, or is larger than ``MAX_FILE_BYTES``.
    """
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise PrototypeSourceError(
                f"{path}: {size:,} bytes are no operator header; the limit is {MAX_FILE_BYTES:,}. "
                "Split the file, or pass its text to parse_text."
            )
        data = path.read_bytes()
    except OSError as error:
        raise PrototypeSourceError(f"{path}: cannot be read: {error.strerror or error}") from error
    remark = ""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", errors="replace")
    elif b"\0" in data[:4096]:
        raise PrototypeSourceError(f"{path}: is a binary file, not a C++ header")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            remark = f"byte {error.start} is no UTF-8; the file was read as GB18030"
            text = data.decode("gb18030", errors="replace")
    source = SourceText(text, str(path))
    if remark:
        source.diagnostics.insert(0, Diagnostic(Severity.WARNING, remark, str(path)))
    return source
