"""C++ as far as bindings need it: functions with their bodies, calls with their arguments, strings.

Nothing is compiled. What a reader cannot follow it leaves out or reports.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ascend_graph.sources.kernels import LITERAL

_TOKEN = re.compile(LITERAL + r"|(?P<bracket>[()\[\]{}])")
_ANGLED = re.compile(LITERAL + r"|(?P<mark>[()\[\]{}<>,;])")
_HEAD_STOP = re.compile(LITERAL + r"|(?P<stop>[;{}])")
_NAMESPACE = re.compile(r"(?:\binline\s+)?\bnamespace\b\s*([\w:]*)\s*$")
#: Class of an autograd function, whose ``forward`` is what ``apply`` runs.
_AUTOGRAD = re.compile(r"\b(?:class|struct)\s+(\w+)\s*(?:final\s*)?:[^;{}]*\bFunction\s*<[^;{}]*>\s*$")
_EXTERN = re.compile(r'\bextern\s*"C(?:\+\+)?"\s*$')
_AFTER_PARAMETERS = re.compile(r"(?:const\b|noexcept\b|override\b|final\b|&&?|->[\w:<>,&*\s]+|\s)*")
#: Longest text between the parameters of a function and its body.
_LONGEST_TAIL = 300
_STRING = re.compile(
    r'\s*(?:(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\((?P<raw>(?:.|\n)*?)\)(?P=mark)"|(?:u8|[uUL])?"(?P<plain>(?:\\(?:.|\n)|[^"\\\n])*)"'
    r"(?:s|sv|_s)?)"
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
#: Maximum length of the text in front of a body: return type, name and parameters.
_LONGEST_HEAD = 20000


@dataclass(frozen=True, slots=True)
class CppParameter:
    """Parameter of a C++ function: its type as written, its name, and its default as written."""

    type: str
    name: str
    default: str = ""


@dataclass(frozen=True, slots=True)
class CppFunction:
    """A C++ function or lambda with its body, as written."""

    #: The name with its namespaces; empty for a lambda.
    name: str
    returns: str
    parameters: tuple[CppParameter, ...]
    body: str
    file: str = ""
    line: int = 0
    #: The line on which the body begins.
    body_line: int = 0
    #: True if conditions of the preprocessor choose among parts of it.
    is_conditional: bool = False
    #: Bodies of a conditional function, one for each choice of the preprocessor; empty if there are too many.
    variants: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def place(self) -> str:
        """Position of the definition as ``file:line``."""
        return f"{self.file}:{self.line}"

    @property
    def is_variadic(self) -> bool:
        """True if the last parameter is a pack, or an ellipsis."""
        return bool(self.parameters) and "..." in self.parameters[-1].type

    def takes(self, count: int) -> bool:
        """Return whether a call with a number of arguments can be one of this function; a header may have its defaults."""
        return self.is_variadic or count <= len(self.parameters)

    @property
    def last_line(self) -> int:
        """The line on which the body ends."""
        return self.body_line + self.body.count("\n")


def close_of(code: str, start: int) -> int:
    """Return the position of the bracket that closes the one at ``start``, or -1."""
    depth = 0
    for match in _TOKEN.finditer(code, start):
        bracket = match["bracket"]
        if bracket is None:
            continue
        depth += 1 if bracket in "([{" else -1
        if depth == 0:
            return match.start()
    return -1


def split(text: str, separator: str = ",") -> list[str]:
    """Return the parts between separators that are in no bracket; ``<`` counts as one where it closes.

    >>> split("a, std::map<int, int>{}, f(b, c), d < e")
    ['a', 'std::map<int, int>{}', 'f(b, c)', 'd < e']
    """
    parts, depth, start = [], 0, 0
    angles: list[int] = []
    for match in _ANGLED.finditer(text):
        mark = match["mark"]
        if mark is None:
            continue
        if mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth -= 1
            angles = [one for one in angles if one <= depth]
        elif mark == "<":
            if _closes(text, match.start()):
                angles.append(depth)
        elif mark == ">":
            if angles and text[match.start() - 1] not in "-=":
                angles.pop()
        elif mark == separator and depth == 0 and not angles:
            parts.append(text[start : match.start()].strip())
            start = match.end()
    last = text[start:].strip()
    return [*parts, last] if last or parts else []


def _closes(text: str, position: int) -> bool:
    """Return whether ``<`` opens template arguments: only types and numbers up to a ``>``."""
    if position == 0 or not (text[position - 1].isalnum() or text[position - 1] in "_ "):
        return False
    depth = 0
    for match in re.compile(r"[<>;{}&|=+]|\(").finditer(text, position, position + 400):
        mark = match.group()
        if mark == "<":
            depth += 1
        elif mark == ">":
            depth -= 1
            if depth == 0:
                return not text[match.end() : match.end() + 1].isdigit()
        elif mark in ";{}|=+" or (mark == "&" and text[match.start() : match.start() + 2] == "&&"):
            return False
    return False


def parameters_of(text: str) -> tuple[CppParameter, ...]:
    """Return the parameters between the brackets of a function's declaration."""
    found = []
    for number, piece in enumerate(split(" ".join(text.split()))):
        declared, _, default = piece.partition("=")
        match = re.fullmatch(
            r"(?P<type>.*?[\s&*>\].])(?P<name>[A-Za-z_]\w*)(?:\s*\[\d*\])?", declared.strip(), re.DOTALL
        )
        if declared.strip() in ("", "void"):
            continue
        if match is None:
            found.append(CppParameter(declared.strip(), f"_{number}", default.strip()))
        else:
            found.append(CppParameter(match["type"].strip(), match["name"], default.strip()))
    return tuple(found)


def functions(code: str, file: str) -> Iterator[CppFunction]:
    """Yield the functions that a text without comments defines, outside of classes."""
    starts = [0, *(match.end() for match in re.finditer("\n", code))]
    namespaces: list[str] = []
    head_start = position = 0
    while (match := _HEAD_STOP.search(code, position)) is not None:
        stop, position = match["stop"], match.end()
        if stop is None:
            continue
        if stop == "{":
            end = match.start()
            while end > head_start and code[end - 1].isspace():  # a long comment between the parameters and the body
                end -= 1
            head = code[max(head_start, end - _LONGEST_HEAD) : end]
            if _open_brackets(head):
                # A default of a parameter: f(Tensor x = at::zeros({1})).
                position = max(close_of(code, match.start()), match.start()) + 1
                continue
            opened = _NAMESPACE.search(head)
            made = _AUTOGRAD.search(head)
            if made is not None:
                namespaces.append(made[1])
            elif opened is not None or _EXTERN.search(head):
                namespaces.append(opened[1] if opened else "")
            else:
                close = close_of(code, match.start())
                if close < 0:
                    close = match.end()
                elif _ends_parameters(head[head.rfind(")") + 1 :] if ")" in head else "?"):
                    found = _function(head, code[match.end() : close], namespaces, file)
                    if found is not None:
                        name, returns, parameters, offset = found
                        line = _line(starts, end - len(head) + offset)
                        yield CppFunction(
                            name, returns, parameters, code[match.end() : close], file, line, _line(starts, match.end())
                        )
                position = close + 1
        elif stop == "}" and namespaces:
            namespaces.pop()
        head_start = position


def _open_brackets(text: str) -> bool:
    """Return whether a text opens more round brackets than it closes."""
    brackets = [one["bracket"] for one in _TOKEN.finditer(text)]
    return brackets.count("(") > brackets.count(")")


def _ends_parameters(tail: str) -> bool:
    """Return whether a text may stand between the parameters of a function and its body."""
    return len(tail) <= _LONGEST_TAIL and _AFTER_PARAMETERS.fullmatch(tail) is not None


def _line(starts: list[int], offset: int) -> int:
    return bisect.bisect_right(starts, offset)


def _function(
    head: str, body: str, namespaces: list[str], file: str
) -> tuple[str, str, tuple[CppParameter, ...], int] | None:
    for match in re.finditer(r"(?<![\w:])((?:[A-Za-z_]\w*\s*::\s*)*~?[A-Za-z_]\w*)\s*\(", head):
        close = close_of(head, match.end() - 1)
        if close < 0 or not _ends_parameters(head[close + 1 :]):
            continue
        name = re.sub(r"\s", "", match[1])
        returns = re.sub(
            r"\b(?:(?:public|protected|private)\s*:|static|inline|extern|__attribute__\s*\(\(.*?\)\))\s*",
            "",
            head[: match.start()],
        ).strip()
        if name in ("if", "for", "while", "switch", "catch") or not returns:
            return None
        space = "::".join(part for part in namespaces if part)
        return f"{space}::{name}" if space else name, returns, parameters_of(head[match.end() : close]), match.start()
    return None


def lambda_of(text: str, file: str, line: int) -> CppFunction | None:
    """Return a lambda that is written in place as a function, or None."""
    match = re.match(r"\s*\[[^\]]*\]\s*(\()?", text)
    if match is None:
        return None
    parameters: tuple[CppParameter, ...] = ()
    position = match.end()
    if match[1]:
        close = close_of(text, match.end() - 1)
        if close < 0:
            return None
        parameters, position = parameters_of(text[match.end() : close]), close + 1
    opening = text.find("{", position)
    close = close_of(text, opening) if opening >= 0 else -1
    if close < 0:
        return None
    arrow = re.search(r"->\s*([\w:<>,&*\s]+)$", text[position:opening].rstrip())
    returns = arrow[1].strip() if arrow else "auto"
    body_line = line + text[: opening + 1].count("\n")
    return CppFunction("", returns, parameters, text[opening + 1 : close], file, line, body_line)


def string_of(text: str) -> str | None:
    """Return the value of string literals that stand next to each other; None if it is anything else.

    >>> string_of('"a(Tensor x,"  R"(Tensor y))" " -> Tensor"')
    'a(Tensor x,Tensor y) -> Tensor'
    >>> string_of('prefix + "a"') is None
    True
    """
    parts, position = [], 0
    while (match := _STRING.match(text, position)) is not None:
        raw, plain = match["raw"], match["plain"]
        parts.append(raw if raw is not None else _unescaped(plain))
        position = match.end()
    return "".join(parts) if parts and not text[position:].strip() else None


def _unescaped(text: str) -> str:
    def value(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped in "\r\n":
            return ""
        return _ESCAPES.get(escaped, escaped)

    return re.sub(r"\\(\r?\n|.)", lambda m: "" if m[1].endswith("\n") else value(m), text)


def calls(code: str, name: re.Pattern[str]) -> Iterator[tuple[re.Match[str], list[str], int]]:
    """Yield the match of each called name, the arguments as written, and the offset after the call.

    ``name`` matches up to the opening bracket, which it includes.
    """
    for match in name.finditer(code):
        close = close_of(code, match.end() - 1)
        if close >= 0:
            yield match, split(code[match.end() : close]), close + 1
