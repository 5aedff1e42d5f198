"""A preprocessor in one pass: comments, directives, splices and inactive code become blanks, offsets stay.

A header is read alone. Conditions that it decides itself are followed. If a condition depends on names from
elsewhere, every branch is read: this finds the operators of all configurations. Inside one operator definition or one
aclnn declaration, all branches together are not a valid configuration. There only the branch is read that a compiler
takes when it is given this file alone, and a diagnostic says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ascend_graph.sources.conditions import ALWAYS, Condition, defined, evaluate, opposite
from ascend_graph.sources.diagnostics import Severity
from ascend_graph.sources.macros import Branch, Macro, in_force

_LEXEME = re.compile(
    r"""
      /\*.*?\*/                                       # block comment
    | //[^\n\\]*(?:\\(?:\r?\n)?[^\n\\]*)*             # line comment, which a splice carries to the next line
    | /\*                                             # a block comment without its end
    | "[^"\\\n]*(?:\\(?:\r\n|.)[^"\\\n]*)*"?          # string
    | '[^'\\\n]*(?:\\.[^'\\\n]*)*'?                   # character
    | \\[ \t]*\r?\n                                   # line splice
    | \#                                              # directive, with as many of _DIRECTIVE_PIECES as follow
    """,
    re.DOTALL | re.VERBOSE,
)
# Some at a time: the engine keeps a state for every repetition, hundreds of bytes each.
_DIRECTIVE_PIECES = re.compile(
    r"""(?:[^\n\\/"]+|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|"|/(?![*/])|/\*.*?\*/|//[^\n\\]*|\\(?:\r\n|.)?){1,1000}""", re.DOTALL
)
_RAW_STRING = re.compile(r'(?<![A-Za-z0-9_])(?:u8|[uUL])?R"([^()\\\s]{0,16})\(')
_COMMENT_START = re.compile(r"/[*/]")
#: A comment or splice in a directive; quoted text is matched too, so that neither is found inside it.
_SPLICE_OR_COMMENT = re.compile(
    r"""\\\r?\n|/\*.*?\*/|//[^\n]*|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|'(?:[^'\\\n]|\\.){1,10}'""", re.DOTALL
)
_DIRECTIVE = re.compile(r"#\s*([a-z]+)\b\s*(.*)", re.DOTALL)
_DEFINE = re.compile(r"([A-Za-z_]\w*)(\([^)]*\))?(.*)", re.DOTALL)
_NOTHING = Condition(None, False)
_FIRST_NAME = re.compile(r"[A-Za-z_]\w*")
_DEFINED_BELOW = re.compile(r"\s*#\s*define\s+([A-Za-z_]\w*)")
_DEFINITION = re.compile(
    r"\bREG_OP\s*\(\s*(?P<op>\w+)|(?P<end>\bOP_END_FACTORY_REG|\bOP_ADD\s*\()"
    r"|\bclass\s+(?P<class>\w+)[\w\s:]{1,100}\bOpDef\s*\{"
    r"|\b(?P<function>aclnn\w{1,250}?GetWorkspaceSize)\s*\([^;{}]{0,65536}"
)

#: Names that every operator compiler defines (their text), or that none defines (False).
_COMPILERS: dict[str, str | bool] = {"__cplusplus": "201703L", "_WIN32": False, "_MSC_VER": False, "__APPLE__": False}

#: Maximum nesting of conditionals; no real header exceeds it.
MAX_NESTING = 256
#: Characters of conditions that are computed in one file; each condition counts as at least 32.
MAX_CONDITIONS = 1 << 20

Span = tuple[int, int]


@dataclass(slots=True)
class Preprocessed:
    """Result of one pass over a text."""

    code: str = ""
    #: Start and end of each comment, in order.
    comments: list[Span] = field(default_factory=list)
    #: Start and end of each string that looks like a definition but is not one.
    strings: list[Span] = field(default_factory=list)
    #: Each macro name with its definitions in order.
    macros: dict[str, list[Macro]] = field(default_factory=dict)
    #: Severity, offset, message and operator of each diagnostic.
    remarks: list[tuple[Severity, int, str, str]] = field(default_factory=list)


@dataclass(slots=True)
class _Conditional:
    """One ``#if`` … ``#endif`` during the pass."""

    start: int
    directive: str
    #: True if this branch or an earlier one is certainly taken; taken by a compiler that has only this file.
    taken: bool = False
    taken_alone: bool = False
    #: True if the current branch is inactive.
    off: bool = False
    has_else: bool = False
    branch: Branch | None = None
    #: The undecided branches.
    branches: list[Branch] = field(default_factory=list)


def preprocess(text: str) -> Preprocessed:
    """Read a text in one pass; the work grows only with its length."""
    return _Pass(text).run()


class _Pass:
    def __init__(self, text: str) -> None:
        self.text = text
        self.result = Preprocessed()
        self.open: list[_Conditional] = []
        self.undecided: list[_Conditional] = []
        #: The undecided branches around the current position, the innermost last.
        self.branches: list[Branch] = []
        #: The result of each condition since the last #define or #undef.
        self.known: dict[tuple[str, str, str], Condition] = {}
        self.left = MAX_CONDITIONS
        #: Number of open conditionals whose current branch is inactive.
        self.off = 0

    def _finish(self, text: str, result: Preprocessed, blanks: list[Span]) -> None:
        """Close what is still open at the end, and blank the inactive code."""
        for conditional in reversed(self.open):
            if conditional.off:
                self._remark(
                    Severity.ERROR,
                    conditional.start,
                    f"this {_shortened(conditional.directive)} has no #endif: it hides all below it; add one",
                )
            self._close_branch(conditional, len(text))
        result.code = _blanked(text, blanks)
        if self.undecided:
            result.code = _blanked(result.code, self._branches_inside_definitions(result.code))

    def run(self) -> Preprocessed:
        text, result = self.text, self.result
        blanks: list[Span] = []
        off_since: int | None = None  # where the region began that is switched off
        position = broken_until = 0
        search = _LEXEME.search
        while (match := search(text, position)) is not None:
            start, position = span = match.span()
            first = text[start]
            if first in "\"'":
                if first == '"' and start and text[start - 1] == "R" and (end := self._raw_string(start)):
                    position = end
                elif position == start + 1 or text[position - 1] != first:  # it has no end on its line
                    comment = None if start < broken_until else _COMMENT_START.search(text, start, position)
                    broken_until = position
                    position = comment.start() if comment else position
                if any(text.find(word, start, position) >= 0 for word in ("REG_OP", "GetWorkspaceSize")):
                    result.strings.append((start, position))
                continue
            if first == "#":
                while (pieces := _DIRECTIVE_PIECES.match(text, position)) is not None:
                    position = pieces.end()
                span = (start, position)
                line_start = text.rfind("\n", 0, start) + 1
                if text[max(line_start, blanks[-1][1] if blanks else 0) : start].strip():
                    continue  # not the first thing on its line: no directive
                self._directive(text[start:position], start, position)
                if len(self.open) > MAX_NESTING:
                    message = f"conditionals may be nested {MAX_NESTING} deep: nothing below this was read"
                    self._remark(Severity.ERROR, start, message)
                    self.open.clear()
                    off_since = start if off_since is None else off_since
                    break
                if self.off and off_since is None:
                    off_since = start
                elif off_since is not None and not self.off:
                    blanks.append((off_since, position))
                    off_since = None
                    continue
            if off_since is not None:
                continue
            if first == "/":
                if position - start == 2 and text.startswith("/*", start):
                    self._remark(
                        Severity.ERROR, start, "this comment has no end; expected */. Nothing below it was read"
                    )
                    off_since = start
                    break
                result.comments.append(span)
            blanks.append(span)
        if off_since is not None:
            blanks.append((off_since, len(text)))
        self._finish(text, result, blanks)
        return result

    def _remark(self, severity: Severity, offset: int, message: str, op_type: str = "") -> None:
        self.result.remarks.append((severity, offset, message, op_type))

    def _raw_string(self, quote: int) -> int:
        """Return the end of the raw string that this quote opens, or 0 if it opens none."""
        opening = _RAW_STRING.match(self.text, max(0, quote - 3)) or _RAW_STRING.match(self.text, max(0, quote - 2))
        opening = opening or _RAW_STRING.match(self.text, quote - 1)
        if opening is None or opening.start(1) != quote + 1:
            return 0
        closing = f'){opening.group(1)}"'
        end = self.text.find(closing, opening.end())
        if end < 0:
            self._remark(
                Severity.ERROR,
                quote,
                "this raw string has no end: write its delimiter and a quote; nothing below it was read",
            )
            return len(self.text)
        return end + len(closing)

    def _directive(self, directive: str, start: int, end: int) -> None:
        match = _DIRECTIVE.match(directive)
        if match is None:
            return
        keyword, rest = match.group(1), match.group(2)
        if keyword in ("define", "undef"):
            if not self.off:
                self._define(keyword, _without_comments(rest), start)
        elif keyword in ("if", "ifdef", "ifndef"):
            conditional = _Conditional(start, directive)
            self.open.append(conditional)
            self._enter(conditional, keyword, rest, start, end)
        elif not self.open:
            return
        elif keyword in ("else", "elif", "elifdef", "elifndef"):
            conditional = self.open[-1]
            self._close_branch(conditional, start)
            if conditional.has_else:
                self._remark(
                    Severity.WARNING, start, f"this #{keyword} comes after the #else of its #if; leave one out"
                )
            conditional.has_else |= keyword == "else"
            self._enter(conditional, keyword, rest, start, end)
        elif keyword == "endif":
            conditional = self.open.pop()
            self._close_branch(conditional, end)
            if conditional.branches:
                self.undecided.append(conditional)

    def _enter(self, conditional: _Conditional, keyword: str, rest: str, start: int, end: int) -> None:
        """Begin the branch that a directive opens."""
        is_live = self.off == 0
        condition = self._condition(keyword, rest, start, end) if is_live else ALWAYS
        conditional.off = is_live and (conditional.taken or condition.decided is False)
        alone = condition.as_alone and not conditional.taken_alone
        if is_live and not conditional.off and (condition.decided is None or conditional.branches):
            outer = self.branches[-1] if self.branches else None
            conditional.branch = Branch(start, alone and (outer is None or outer.as_alone))
            conditional.branches.append(conditional.branch)
            self.branches.append(conditional.branch)
        conditional.taken |= condition.decided is True
        conditional.taken_alone |= condition.as_alone
        self.off += conditional.off

    def _close_branch(self, conditional: _Conditional, end: int) -> None:
        self.off -= conditional.off
        conditional.off = False
        if conditional.branch is not None:
            conditional.branch.end = end
            conditional.branch = None
            self.branches.pop()
            self.known.clear()  # what it defined is doubtful from here on

    def _condition(self, keyword: str, rest: str, start: int, end: int) -> Condition:
        if keyword == "else":
            return ALWAYS
        text = _without_comments(rest).strip()
        condition = self._decided(keyword, text, start, "")
        if condition.decided is None:
            below = _DEFINED_BELOW.match(self.text, end)
            if below is not None and self._decided(keyword, text, start, below.group(1)).decided:
                return ALWAYS  # an include guard, or a default: the name is not defined above
        return condition

    def _decided(self, keyword: str, text: str, start: int, undefined: str) -> Condition:
        key = (keyword, text, undefined)
        known = self.known.get(key)
        if known is not None:
            return known
        cost = max(32, len(text))
        if self.left < 0:
            return _NOTHING
        self.left -= cost
        if self.left < 0:
            self._remark(
                Severity.ERROR,
                start,
                f"more than {MAX_CONDITIONS:,} characters of conditions: all below this count as undecided. Split the "
                "file",
            )
            return _NOTHING
        lookup = _Lookup(self.result.macros, start, undefined)
        if keyword in ("if", "elif"):
            condition = evaluate(text, lookup)
        else:
            name = _FIRST_NAME.match(text)
            condition = _NOTHING if name is None else defined(name.group(), lookup)
            condition = opposite(condition) if keyword.endswith("ndef") else condition
        self.known[key] = condition
        return condition

    def _define(self, keyword: str, text: str, offset: int) -> None:
        match = _DEFINE.match(text.strip())
        if match is None:
            return
        name, parameters, body = match.groups()
        names = None if parameters is None else tuple(part.strip() for part in parameters[1:-1].split(","))
        branch = self.branches[-1] if self.branches else None
        macro = Macro(offset, None, None, branch) if keyword == "undef" else Macro(offset, names, body.strip(), branch)
        self.result.macros.setdefault(name, []).append(macro)
        self.known.clear()

    def _branches_inside_definitions(self, code: str) -> list[Span]:
        """Return the undecided branches to blank, those inside one definition."""
        blanks: list[Span] = []
        self.undecided.sort(key=lambda conditional: conditional.start)
        waiting = iter(self.undecided)
        conditional = next(waiting, None)
        inside = ""
        done = 0
        for here, next_inside in (*_definitions(code), (len(code), "")):
            while conditional is not None and conditional.start < here:
                if inside and conditional.start >= done:
                    left_out = [(branch.start, branch.end) for branch in conditional.branches if not branch.as_alone]
                    self._remark(
                        Severity.WARNING,
                        conditional.start,
                        f"{inside}: {_shortened(conditional.directive)} is inside the definition, and this file alone does "
                        "not decide it: it is read as if nothing else were defined. Write the definition without it",
                        inside,
                    )
                    blanks += left_out
                    done = max([done, *(end for _, end in left_out)])
                conditional = next(waiting, None)
            inside = next_inside
        return sorted(blanks)


def _definitions(code: str) -> Iterator[tuple[int, str]]:
    """Yield the offset of each start of a definition with its name, and of each known end with an empty name."""
    for match in _DEFINITION.finditer(code):
        yield match.start(), match["op"] or match["class"] or match["function"] or ""
        if match["function"]:
            yield match.end(), ""


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Lookup of a name in a condition at one position of the file."""

    macros: dict[str, list[Macro]]
    offset: int
    #: A name that counts as undefined if the file does not define it.
    undefined: str

    def __call__(self, name: str) -> str | bool | None:
        macro, doubtful = in_force(self.macros.get(name, ()), self.offset)
        if doubtful:
            return None
        if macro is None:
            return False if name == self.undefined else _COMPILERS.get(name)
        return False if macro.body is None else macro.body


def _without_comments(text: str) -> str:
    if "/" not in text and "\\" not in text:
        return text
    return _SPLICE_OR_COMMENT.sub(lambda match: match.group() if match.group()[0] in "\"'" else " ", text)


def _shortened(text: str) -> str:
    text = " ".join(_without_comments(text[:200]).split())
    return text if len(text) <= 60 else f"{text[:57]}…"


def _blanked(text: str, spans: list[Span]) -> str:
    """Return the text with the spans (sorted, not nested) replaced by blanks; line ends stay."""
    pieces: list[str] = []
    kept = 0
    for start, end in spans:
        if end <= kept:
            continue
        pieces += [text[kept:start], _blank(text[start:end])]
        kept = end
    pieces.append(text[kept:])
    return "".join(pieces)


def _blank(text: str) -> str:
    return "\n".join([" " * len(line) for line in text.split("\n")])
