"""Texts that the product raises, warns with or reports: collected from Python by AST and from C++ by a scan.

A text has ``{}`` in place of each value. Adjacent literals, f-strings and concatenations are one text.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

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
#: Phrases that lead to the valid set. "not supported" alone does not: what is supported must follow.
_VALID = re.compile(
    r"\b(?:expected|must|valid|allowed|accepted|required|requires?|needs?|needed|unused|reserved)\b"
    r"|\b(?:not|neither) (?:one )?of (?=\S)|\bmay (?:only )?(?:be|have|hold|start|stand|take)\b|\bcan (?:only )?be (?=\S+ or )"
    r"|\bat (?:least|most)\b|\bdid you mean\b|\bthe (?:limit|largest|only one) (?:is|of)\b"
    r"|(?<!\bnot )\b(?:supported|known)\b|; [^;.]*\b(?:is|are|can|do|does|has|have)$"
    r"|\b(?:these|those|they|there|it|aclnn functions|the \w+s|\w+ (?:kernel|parser|library) knows) "
    r"(?:are|is|has|have|takes?|ends?|defines?|gives?)\b|\bknows: |\btakes (?:\{\}|tensors|an?|only|one|two|no) ?"
)
#: Texts that need not say what to write, by place and text, and why. A text without a place is that of PyTorch or Python, which
#: programs expect word by word.
EXPLAINED = {
    ("", "Expected a '{}' device type for generator but found '{}'"): "PyTorch's",
    ("", "preserve memory format is unsupported by the contiguous operator"): "PyTorch's",
    ("ascend_graph/raw_ops/__init__.py", "module {} has no attribute {}"): "Python's; only names with __ come there",
    ("ascend_graph/adoption/bound/writes.py", ""): "a reason in a report, whose last line says what to complete",
    (
        "ascend_graph/packages/missing.py",
        "{} is not registered. {}",
    ): "each hint has the line to write, or relays an error",
    ("ascend_graph/host/triton/launch.py", "kernel {}: ACL error {}: {}"): "relays the stream's error",
    (
        "ascend_graph/host/triton/operations/access.py",
        "device_assert at {}, program {}: {}",
    ): "the author's own assertion",
    ("csrc/host/include/ascend_graph/aclnn_adapter.h", "{}: the host kernel {}"): "relays the kernel's error",
    ("csrc/host/exe_graph/package_tiling.cpp", "{}: the TilingParse function{}"): "failure_text goes on",
    ("csrc/host/exe_graph/package_tiling.cpp", "{}: the tiling function{}"): "failure_text goes on",
    ("csrc/host/acl/refused.h", "{} is not implemented by the host runtime; {}"): "each list says what to write",
    ("csrc/host/opapi/companion.cpp", "{}: its kernel is not there: {}"): "relays the build's error",
}
#: Verbs that tell what to do, where a clause begins.
_VERBS = (
    "adapt add align allocate annotate ask attach build call capture cast change check choose close compare compile convert "
    "copy correct create declare define delete describe destroy drop end enter export fix free generate give import "
    "include increase initialize install join keep leave link list load look lower make map mark match move name open "
    "pad pass profile pull put raise rebuild record reduce register remove rename replace report rerun reserve reset "
    "reshape restart retry return run save say see set shorten simplify source specify spell split start store "
    "subscribe switch synchronize take transpose try unmap unset update upgrade use wait wrap write"
)
_DO = re.compile(
    rf"(?:^|[.;:,(?!]\s+|\\n|\n| (?:or|and|then|first|instead) |\()(?:{'|'.join(_VERBS.split())})\b", re.IGNORECASE
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
        "unexpected",
    ]
)
#: Exceptions that are an answer within the program, and what is raised with them is a reason in a table.
_INNER = frozenset(
    ["NotApplicable", "UncertainError", "NoBindingError", "AssertionError", "SystemExit", "StopIteration"]
)
#: Findings of opcheck, to which its report adds the advice of the check.
_ADVISED = frozenset(["Violation", "Undecided"])
_CPP_SUFFIXES = frozenset([".cpp", ".h", ".jinja"])


@dataclass(frozen=True)
class Message:
    """A text with ``{}`` for values, and the place it comes from."""

    place: str
    text: str
    raised: bool  #: whether it is given to an exception, a warning or a report; any other literal otherwise
    completed: bool = False  #: whether the function that it is given to adds what to write instead

    @property
    def explanation(self) -> tuple[str, str] | None:
        """The key in EXPLAINED of this text; None if it has none."""
        file = self.place.rpartition(":")[0]
        return next((key for key in (("", self.text), (file, self.text), (file, "")) if key in EXPLAINED), None)

    def faults(self) -> list[str]:
        """Return what is wrong with the form; empty if nothing is."""
        found = [f"says {match.group()!r}" for match in _REFUSED_PHRASES.finditer(self.text)]
        if self.raised and not (_NAMED.search(self.text) or self.says_what_to_write() or self.only_relays()):
            found.append("names neither a subject nor a value")
        return found

    def says_what_to_write(self) -> bool:
        """Return whether the text goes on to what is expected, or what to do instead."""
        return self.completed or bool(_VALID.search(self.text) or _DO.search(self.text))

    def only_relays(self) -> bool:
        """Return whether the text is that of another message, or has no more than the name of a subject before it."""
        if self.explanation is not None:
            return True
        own = re.sub(r"\\[nt]", "", self.text.replace("{}", ""))
        return len(re.findall(r"[A-Za-z]{2,}", own)) <= (2 if self.text.rstrip().endswith(": {}") else 0)


#: Expressions of the names that a function or its module assigns once.
Names = Mapping[str, ast.expr]


def _text(node: ast.expr, first: bool, names: Names = MappingProxyType({})) -> str | None:
    """Return the text of a string expression, with ``{}`` for values; None if it has no literal.

    Of a conditional expression it has the first alternative, or the second; of ``a or b`` the one with a literal.
    """
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.IfExp):
        return _text(node.body if first else node.orelse, first, names)
    if isinstance(node, ast.BoolOp):
        return next((text for one in node.values if (text := _text(one, first, names)) is not None), None)
    if isinstance(node, ast.Name) and node.id in names:
        return _text(names[node.id], first, {name: one for name, one in names.items() if name != node.id})
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, first, names) if isinstance(node.value, ast.IfExp | ast.BoolOp | ast.Name) else None
    if isinstance(node, ast.JoinedStr):
        parts = [_text(part, first, names) for part in node.values]
        return "".join("{}" if part is None else part for part in parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left, first, names), _text(node.right, first, names)
        return None if left is None and right is None else f"{left or '{}'}{right or '{}'}"
    return None


def _assigned_once(nodes: Sequence[ast.AST]) -> dict[ast.AST, Names]:
    """Return, by node of a module, the names that the innermost function and the module assign once."""
    found: dict[ast.AST, Names] = {}
    module: dict[str, ast.expr] = {}
    for scope in nodes:
        if isinstance(scope, ast.Module | ast.FunctionDef):
            inside = nodes if isinstance(scope, ast.Module) else list(ast.walk(scope))
            stored = Counter(one.id for one in inside if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
            names = {
                one.targets[0].id: one.value
                for one in (scope.body if isinstance(scope, ast.Module) else inside)
                if isinstance(one, ast.Assign)
                and isinstance(one.targets[0], ast.Name)
                and stored[one.targets[0].id] == 1
            }
            module = module or names
            visible = {**module, **names}
            found.update((node, visible) for node in inside)
    return found


def _nested(nodes: Sequence[ast.AST]) -> set[ast.AST]:
    """Return the string nodes that are docstrings, or parts of another text."""
    found: set[ast.AST] = {node.value for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
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


@functools.cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a Python file, outer ones first."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@functools.cache
def _completing(directory: Path) -> dict[tuple[str, str], bool]:
    """Return, by file and name, whether a reporter that a directory defines adds what to write instead.

    The file "" stands for all of the directory: true if each function of that name does.
    """
    found: dict[tuple[str, str], bool] = {}
    for path in sorted(directory.glob("*.py")):
        for node in _nodes(path):
            if isinstance(node, ast.FunctionDef) and node.name in _REPORTERS:
                adds = any(
                    Message("", text, raised=True).says_what_to_write()
                    for one in node.body
                    if isinstance(one, ast.Return) and one.value is not None
                    for part in ast.walk(one.value)
                    if isinstance(part, ast.JoinedStr) and (text := _text(part, True))
                )
                for name in (path.name, ""):
                    found[name, node.name] = adds and found.get((name, node.name), True)
    return found


def python_messages(path: Path) -> Iterator[Message]:
    """Yield the texts of a Python file; those that are raised or reported are marked."""
    nodes = _nodes(path)
    names = _assigned_once(nodes)
    place, nested, raised, completed = path.relative_to(ROOT).as_posix(), _nested(nodes), set(), set()
    completing = _completing(path.parent)
    for node in nodes:
        if call := _raises(node):
            given = [*call.args[:1], *(keyword.value for keyword in call.keywords[:1])]
            raised.update(given)
            if isinstance(node, ast.Call):
                raised.update(call.args)
            name = ast.unparse(call.func).rpartition(".")[2]
            if name in _ADVISED or completing.get((path.name, name), completing.get(("", name), False)):
                completed.update(given)
    for node in nodes:
        if isinstance(node, ast.expr) and node not in nested:
            for text in dict.fromkeys([_text(node, True, names[node]), _text(node, False, names[node])]):
                if text:
                    yield Message(f"{place}:{node.lineno}", text, node in raised and " " in text, node in completed)


#: What begins a statement that refuses: an exception, a check, or a function that records an error.
_CPP_RAISES = re.compile(r"\b(?:throw|TORCH_CHECK\w*|refuse|invalid|fail|ascendgraphFail|not_there|reject|broken)\b")
_CPP = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<raw>R\"(\w*)\(.*?\)\3\")|(?P<text>\"(?:[^\"\\\n]|\\.)*\")|'(?:[^'\\\n]|\\.)+'",
    re.S,
)


_CONSTANT = re.compile(r"constexpr const char\* (k\w+) =((?:\s*\"(?:[^\"\\]|\\.)*\")+);")


@functools.cache
def _constants() -> dict[str, str]:
    """Return the texts of C++ constants, by name."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "csrc").rglob("*")):
        if path.suffix in _CPP_SUFFIXES:
            for name, text in _CONSTANT.findall(path.read_text(encoding="utf-8")):
                found[name] = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))
    return found


def _value(between: str) -> str:
    """Return the text of a value that is joined to a text: that of a constant, or ``{}``."""
    return next((_constants()[name] for name in re.findall(r"\bk[A-Z]\w*", between) if name in _constants()), "{}")


def _value_after(source: str, end: int) -> str:
    """Return the text of a value that is joined to the text that ends here; empty if there is none."""
    found = re.match(r"\s*\)?\s*[+,]\s*([\w(][^;\"]*)", source[end : end + 80])
    return _value(found[1]) if found else ""


def cpp_messages(path: Path) -> Iterator[Message]:
    """Yield the texts of a C++ file: adjacent literals, and those that ``+`` or ``<<`` joins, are one text."""
    source = path.read_text(encoding="utf-8")
    place = path.relative_to(ROOT).as_posix()
    end, text, start, raised = -1, "", 0, False
    for match in _CPP.finditer(source):
        if match.group("text") is None:
            continue
        between = " ".join(re.sub(r"//[^\n]*", "", source[end : match.start()]).split()) if end >= 0 else ";"
        if not between.strip():
            joint = ""
        elif between == ":":  # the other alternative of a conditional expression
            end = match.end()
            continue
        elif re.fullmatch(r"[^;{}\"#]{1,120}", between) and re.match(r"\s*(?:: \w+)?\)?\s*(\+|<<|,)", between):
            joint = _value(between) if between.strip(" \n+<,)") and not between.endswith("?") else ""
        else:
            if text:
                yield Message(f"{place}:{start}", text + _value_after(source, end), raised and " " in text)
            before = re.split(r"[;{}]", source[max(0, match.start() - 400) : match.start()])[-1]
            raised = place.startswith(("csrc/host", "csrc/eager")) and _CPP_RAISES.search(before) is not None
            joint, text = "", "{}" if match.group("text")[1] in " :" or re.search(r"\+ *(\(|$)", before) else ""
            start = source.count("\n", 0, match.start()) + 1
        text += joint + match.group("text")[1:-1]
        end = match.end()
    if text:
        yield Message(f"{place}:{start}", text + _value_after(source, end), raised and " " in text)


def messages() -> Iterator[Message]:
    """Yield all texts of the product, Python's first."""
    for package in ("ascend_graph", "codegen"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield from python_messages(path)
    for directory in ("csrc", "codegen/templates"):
        for path in sorted((ROOT / directory).rglob("*")):
            if path.suffix in _CPP_SUFFIXES:
                yield from cpp_messages(path)
