"""Texts that the product raises, warns with or reports: collected from Python by AST and from C++ by a scan.

A text has ``{}`` in place of each value. Adjacent literals, f-strings and concatenations are one text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Phrases that messages say otherwise: "is not a", "must be one of", "expected", "was not found".
_REFUSED_PHRASES = re.compile(
    r"\b(?:is|are|was|were|be) (?:no|none)\b(?! (?:longer|more than))"
    r"|\b(?:has|have) none of\b"
    r"|\b(?:beside|twin)\b"
)
#: Signs of a subject in a text without a value: a name of an interface, an option, something quoted.
_NAMED = re.compile(
    r"\{\}|\w_\w|\w=|--?[a-z]|'[^']+'|\"[^\"]+\"|\b[A-Z]{2,}|[a-z][A-Z]|\w\(|\b[A-Z]\w+:|\b\w+\d|%[a-z]"
)
#: Words that begin what to write instead.
_INSTEAD = re.compile(
    r"\b(?:expected|must|needs?|required|supported|valid|known|write|pass|give|install|choose|use|set|unset|call|name|"
    r"register|start|build|run|leave|split|see|add|take|fix|unsupported|profile|declare|make|give|export|source|there are|these are|"
    r"it has|those are|(?:the )?\w+s are)\b",
    re.IGNORECASE,
)
#: Functions, other than exceptions' classes, that are given the text of an error or a warning.
_REPORTERS = frozenset(
    [
        "warn",
        "_warn",
        "fault",
        "refuse",
        "problem",
        "_problem",
        "report",
        "_remark",
        "beyond",
        "error",
        "fail",
        "explain",
    ]
)
#: Exceptions that are an answer within the program, and what is raised with them is a reason in a table.
_INNER = frozenset(
    ["NotApplicable", "UncertainError", "NoBindingError", "AssertionError", "SystemExit", "StopIteration"]
)
_CPP_SUFFIXES = frozenset([".cpp", ".h", ".jinja"])


@dataclass(frozen=True)
class Message:
    """A text with ``{}`` for values, and the place it comes from."""

    place: str
    text: str
    raised: bool  #: whether it is given to an exception, a warning or a report; any other literal otherwise

    def faults(self) -> list[str]:
        """Return what is wrong with the form; empty if nothing is."""
        found = [f"says {match.group()!r}" for match in _REFUSED_PHRASES.finditer(self.text)]
        if self.raised and not _NAMED.search(self.text) and not _INSTEAD.search(self.text):
            found.append("names neither a subject nor a value")
        return found

    def says_what_to_write(self) -> bool:
        """Return whether the text goes on to what is expected, or what to write instead."""
        return bool(_INSTEAD.search(self.text))


def _text(node: ast.expr, first: bool) -> str | None:
    """Return the text of a string expression, with ``{}`` for values; None if it has no literal.

    Of a conditional expression it has the first alternative, or the second.
    """
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.IfExp):
        return _text(node.body if first else node.orelse, first)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, first) if isinstance(node.value, ast.IfExp) else None
    if isinstance(node, ast.JoinedStr):
        parts = [_text(part, first) for part in node.values]
        return "".join("{}" if part is None else part for part in parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left, first), _text(node.right, first)
        return None if left is None and right is None else f"{left or '{}'}{right or '{}'}"
    return None


def _nested(tree: ast.Module) -> set[ast.AST]:
    """Return the string nodes that are docstrings, or parts of another text."""
    found: set[ast.AST] = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.JoinedStr, ast.BinOp, ast.IfExp)):
            found.update(inner for inner in ast.walk(node) if inner is not node)
    return found


def _raises(node: ast.AST) -> ast.Call | None:
    """Return the call that is given a message: of an exception that is raised, or of a reporter."""
    call = node.exc if isinstance(node, ast.Raise) else node
    if not isinstance(call, ast.Call):
        return None
    name = ast.unparse(call.func).rpartition(".")[2]
    return call if name not in _INNER and (isinstance(node, ast.Raise) or name in _REPORTERS) else None


def python_messages(path: Path) -> Iterator[Message]:
    """Yield the texts of a Python file; those that are raised or reported are marked."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    place, nested, raised = path.relative_to(ROOT).as_posix(), _nested(tree), set()
    for node in ast.walk(tree):
        if call := _raises(node):
            raised.update([*call.args[:1], *(keyword.value for keyword in call.keywords[:1])])
            if isinstance(node, ast.Call):
                raised.update(call.args)
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and node not in nested:
            for text in dict.fromkeys([_text(node, True), _text(node, False)]):
                if text:
                    yield Message(f"{place}:{node.lineno}", text, node in raised and " " in text)


#: What begins a statement that refuses: an exception, a check, or a function that records an error.
_CPP_RAISES = re.compile(r"\b(?:throw|TORCH_CHECK\w*|refuse|invalid|fail|reject|broken)\b")
_CPP = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<raw>R\"(\w*)\(.*?\)\3\")|(?P<text>\"(?:[^\"\\\n]|\\.)*\")|'(?:[^'\\\n]|\\.)+'",
    re.S,
)


def _value_after(source: str, end: int) -> str:
    """Return ``{}`` if a value is joined to the text that ends here."""
    return "{}" if re.match(r"\s*[+,]\s*[\w(]", source[end : end + 40]) else ""


def cpp_messages(path: Path) -> Iterator[Message]:
    """Yield the texts of a C++ file: adjacent literals, and those that ``+`` or ``<<`` joins, are one text."""
    source = path.read_text(encoding="utf-8")
    place = path.relative_to(ROOT).as_posix()
    end, text, start, raised = -1, "", 0, False
    for match in _CPP.finditer(source):
        if match.group("text") is None:
            continue
        between = re.sub(r"//[^\n]*", "", source[end : match.start()]) if end >= 0 else ";"
        if not between.strip():
            joint = ""
        elif re.fullmatch(r"[^;{}\"#]{1,120}", between) and re.match(r"\s*\)?\s*(\+|<<|,)", between):
            joint = "{}" if between.strip(" \n+<,") else ""
        else:
            if text:
                yield Message(f"{place}:{start}", text + _value_after(source, end), raised)
            before = re.split(r"[;{}]", source[max(0, match.start() - 400) : match.start()])[-1]
            raised = place.startswith(("csrc/host", "csrc/eager")) and _CPP_RAISES.search(before) is not None
            joint, text = "", "{}" if match.group("text")[1] in " :" or re.search(r"\+ *(\(|$)", before) else ""
            start = source.count("\n", 0, match.start()) + 1
        text += joint + match.group("text")[1:-1]
        end = match.end()
    if text:
        yield Message(f"{place}:{start}", text + _value_after(source, end), raised)


def messages() -> Iterator[Message]:
    """Yield all texts of the product, Python's first."""
    for package in ("ascend_graph", "codegen"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield from python_messages(path)
    for directory in ("csrc", "codegen/templates"):
        for path in sorted((ROOT / directory).rglob("*")):
            if path.suffix in _CPP_SUFFIXES:
                yield from cpp_messages(path)
