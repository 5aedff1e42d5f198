"""Expressions of C++ as Python syntax trees, so that one interpreter reads metas of both languages.

Names keep their ``::``. What the grammar here does not have becomes the name :data:`UNKNOWN`, which has no value.
"""

from __future__ import annotations

import ast
import re

from ascend_graph.adoption.cpp.functions import close_of, string_of
from ascend_graph.sources.kernels import LITERAL

#: Name of an expression or statement that is not understood.
UNKNOWN = "<unknown>"
#: Name of the function that stands for ``for (i = a; i < b; ++i) v.push_back(f(i))``.
APPEND_RANGE = "<append range>"
#: Name of the function that stands for code which changes its arguments.
FORGET = "<forget>"
#: Name of the function that stands for ``v[i] = value``.
SET_ITEM = "<set item>"
#: Name of the function that makes a number with a fraction.
FLOAT = "<float>"
#: Name of the function that makes a reference to a variable.
REFERENCE = "<reference>"
#: Prefix of the names under which the constants of a file have its structures.
STRUCTURE = "struct "
#: Name of the function that makes a structure of its members.
RECORD = "<record>"
#: Name of the function that makes the value of a variable without one, of its type.
DEFAULT = "<default>"
#: Name of the function that makes an array, of the number of its items and those that are given.
ARRAY = "<array>"
#: Name of the function that makes a lambda, of its text.
LAMBDA = "<lambda>"
#: Maximum nesting of expressions and blocks.
MAX_DEPTH = 60

_TOKEN = re.compile(
    r"\s*(?:(?P<literal>(?:u8|[uUL])?"
    + LITERAL.replace("(?P<raw>", "(?P<mark>").replace("(?P=raw)", "(?P=mark)")
    + r")"
    r"|(?P<name>(?:::)?[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*)"
    r"|(?P<op>->|\+\+|--|<<=|>>=|<=|>=|==|!=|&&|\|\||<<|>>|[-+*/%&|^]=|[-+*/%<>=!&|^~?:.,;()\[\]{}]))"
)
#: Binary operators: precedence, and the node of the syntax tree.
BINARY: dict[str, tuple[int, type[ast.operator] | type[ast.cmpop] | type[ast.boolop]]] = {
    "||": (1, ast.Or), "&&": (2, ast.And), "==": (6, ast.Eq), "!=": (6, ast.NotEq), "<": (7, ast.Lt), "<=": (7, ast.LtE),
    ">": (7, ast.Gt), ">=": (7, ast.GtE), "+": (9, ast.Add), "-": (9, ast.Sub), "*": (10, ast.Mult),
    "/": (10, ast.FloorDiv), "%": (10, ast.Mod), "&": (5, ast.BitAnd), "|": (3, ast.BitOr), "^": (4, ast.BitXor),
    "<<": (8, ast.LShift), ">>": (8, ast.RShift),
}  # fmt: skip
_TYPE_WORDS = re.compile(
    r"\A(?:const\s+)?(?:void|bool|char|int|long|short|float|double|size_t|unsigned(?:\s+int)?|u?int(?:8|16|32|64)_t)(?:\s*\*)?\Z"
)
#: Types of numbers with fractions.
FLOATS = re.compile(r"\b(?:float|double)\b")
_CASTS = frozenset({"static_cast", "const_cast", "reinterpret_cast", "dynamic_cast"})


class _UnreadableError(Exception):
    """Expression outside the grammar here."""


#: What a text changes: ``n = 1``, ``n++``, ``one.rows = 1``, ``sizes[0] += 1``.
_CHANGED = re.compile(
    r"(?<![\w.>])([A-Za-z_]\w*)(?:\s*(?:\.|->)\s*\w+|\s*\[[^\[\]]*\])*\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?![=]))"
    r"|(?:\+\+|--)\s*([A-Za-z_]\w*)"
)


def unknown(text: str = "") -> ast.expr:
    """Return the expression that has no value; after it the names that ``text`` may change have none either."""
    names = dict.fromkeys(one[1] or one[2] for one in _CHANGED.finditer(text))
    changed: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
    kept = [ast.keyword("text", ast.Constant(text))]
    return ast.Call(ast.Name(FORGET), changed, kept) if changed else ast.Name(f"{UNKNOWN} {text}".strip())


def unread_text(node: ast.AST) -> str:
    """Return the text of an expression that is not understood; empty for every other node.

    >>> unread_text(expression("f(args...)")), unread_text(expression("g(n++)")), unread_text(expression("f(n)"))
    ('f(args...)', 'g(n++)', '')
    """
    if isinstance(node, ast.Name):
        return node.id.removeprefix(UNKNOWN).strip() if node.id.startswith(UNKNOWN) else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == FORGET:
        return next((str(one.value.value).strip() for one in node.keywords if isinstance(one.value, ast.Constant)), "")
    return ""


def expression(text: str) -> ast.expr:
    """Return the tree of a C++ expression.

    >>> ast.unparse(expression("x.sizes()[0] / 2 + (flag ? n->value() : 3)"))
    'x.sizes()[0] // 2 + (n.value() if flag else 3)'
    """
    try:
        parser = _Parser(text)
        tree = parser.ternary()
        return tree if parser.done else unknown(text)
    except (_UnreadableError, RecursionError):
        return unknown(text)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.position, self.depth = text, 0, 0

    @property
    def done(self) -> bool:
        return not self.text[self.position :].strip()

    def peek(self) -> re.Match[str] | None:
        return _TOKEN.match(self.text, self.position)

    def accept(self, op: str) -> bool:
        token = self.peek()
        if token is not None and token["op"] == op:
            self.position = token.end()
            return True
        return False

    def expect(self, op: str) -> None:
        if not self.accept(op):
            raise _UnreadableError

    def ternary(self) -> ast.expr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _UnreadableError
        test = self.binary(1)
        if self.accept("?"):
            body = self.ternary()
            self.expect(":")
            test = ast.IfExp(test, body, self.ternary())
        self.depth -= 1
        return test

    def binary(self, least: int) -> ast.expr:
        left = self.unary()
        while True:
            token = self.peek()
            found = BINARY.get(token["op"]) if token is not None and token["op"] else None
            if token is None or found is None or found[0] < least:
                return left
            self.position = token.end()
            right = self.binary(found[0] + 1)
            kind = found[1]
            if issubclass(kind, ast.boolop):
                left = ast.BoolOp(kind(), [left, right])
            elif issubclass(kind, ast.cmpop):
                left = ast.Compare(left, [kind()], [right])
            else:
                left = ast.BinOp(left, kind(), right)

    def unary(self) -> ast.expr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _UnreadableError
        try:
            if self.accept("!"):
                return ast.UnaryOp(ast.Not(), self.unary())
            if self.accept("-"):
                return ast.UnaryOp(ast.USub(), self.unary())
            if self.accept("+") or self.accept("*") or self.accept("&"):
                return self.unary()
            return self.postfix(self.primary())
        finally:
            self.depth -= 1

    def primary(self) -> ast.expr:
        token = self.peek()
        if token is None:
            raise _UnreadableError
        if token["literal"]:
            return self.literal(token)
        if token["name"]:
            self.position = token.end()
            name = re.sub(r"\s", "", token["name"]).removeprefix("::")
            if name in ("true", "false"):
                return ast.Constant(name == "true")
            if name in ("nullptr", "NULL"):
                return ast.Constant(None)
            if name == "sizeof" and self.peek_is("("):
                close = close_of(self.text, self.text.index("(", self.position))
                if close > 0:
                    inside = self.text[self.position : close + 1]
                    self.position = close + 1
                    return ast.Name(f"{UNKNOWN} sizeof{inside}")
            if name in ("new", "delete", "sizeof", "throw"):
                raise _UnreadableError
            angled = self.template_arguments()
            if name in _CASTS and angled:
                self.expect("(")
                inner = self.ternary()
                self.expect(")")
                # A cast is a value: functions cannot change what is in it.
                return ast.Call(ast.Name(FLOAT if FLOATS.search(angled) else "static_cast"), [inner], [])
            found: ast.expr = ast.Name(name)
            kept = angled and (name.endswith("::get") or re.fullmatch(r"[A-Z][A-Z0-9_]*|aclnn\w+", angled))
            return ast.Subscript(found, ast.Constant(angled)) if kept else found
        if token["op"] == "(":
            close = close_of(self.text, self.text.index("(", self.position))
            inside = self.text[token.end() : close]
            if close > 0 and _TYPE_WORDS.match(inside.strip()):
                self.position = close + 1
                return self.unary()
            self.position = token.end()
            inner = self.ternary()
            self.expect(")")
            return inner
        if token["op"] == "{":
            self.position = token.end()
            return ast.List(self.arguments("}"), ast.Load())
        if token["op"] == "[":
            return self.lambda_expression()
        raise _UnreadableError

    def lambda_expression(self) -> ast.expr:
        opening = self.text.find("{", self.position)
        close = close_of(self.text, opening) if opening >= 0 else -1
        if close < 0:
            raise _UnreadableError
        written = self.text[self.position : close + 1]
        self.position = close + 1
        if "&" not in written.partition("{")[0]:
            return ast.Call(ast.Name(LAMBDA), [ast.Constant(written)], [])
        # Captures by value cannot change what is outside.
        return unknown(written) if "&" in written.partition("]")[0] else ast.Name(f"{UNKNOWN} {written}")

    def literal(self, token: re.Match[str]) -> ast.expr:
        text, end = token["literal"], token.end()
        if text[0].isdigit():
            number = re.compile(r"\s*((?:0[xX][\da-fA-F']+|\d[\d']*(?:\.\d*)?(?:[eE][-+]?\d+)?))[uUlLfF]*").match(
                self.text, self.position
            )
            if number is None:
                raise _UnreadableError
            self.position = number.end()
            written = number[1].replace("'", "")
            try:
                count = int(written, 0) if re.fullmatch(r"0[xX][\da-fA-F]+|\d+", written) else float(written)
            except ValueError:
                raise _UnreadableError from None
            return ast.Constant(count)
        if text[0] == "'":
            raise _UnreadableError
        while (following := _TOKEN.match(self.text, end)) is not None and (following["literal"] or "")[:1] in (
            '"',
            "R",
        ):
            if not following["literal"]:
                break
            end = following.end()
        value = string_of(self.text[self.position : end])
        if value is None:
            raise _UnreadableError
        self.position = end
        return ast.Constant(value)

    def template_arguments(self) -> str:
        """Skip ``<…>`` behind a name if it can only be template arguments, and return what is in it."""
        match = re.compile(r"\s*<").match(self.text, self.position)
        if match is None:
            return ""
        depth = 0
        for one in re.compile(r"[<>;{}|=&]|\(|\)").finditer(self.text, match.end() - 1):
            mark = one.group()
            if mark in ";{}|=" or self.text[one.start() : one.start() + 2] == "&&":
                return ""
            depth += (mark == "<") - (mark == ">")
            if depth == 0:
                after = self.text[one.end() :].lstrip()[:1]
                if after not in ("(", "{"):
                    return ""
                self.position = one.end()
                return self.text[match.end() : one.start()].strip()
        return ""

    def arguments(self, stop: str) -> list[ast.expr]:
        found: list[ast.expr] = []
        while not self.accept(stop):
            if found:
                self.expect(",")
                if self.accept(stop):
                    break
            found.append(self.ternary())
        return found

    def postfix(self, value: ast.expr) -> ast.expr:
        while True:
            if self.accept("("):
                value = ast.Call(value, self.arguments(")"), [])
            elif isinstance(value, ast.Name | ast.Call) and self.peek_is("{") and self.is_type(value):
                self.accept("{")
                value = ast.Call(value, [ast.List(self.arguments("}"), ast.Load())], [])
            elif self.accept("["):
                index = self.ternary()
                self.expect("]")
                value = ast.Subscript(value, index, ast.Load())
            elif self.accept(".") or self.accept("->"):
                self.accept("template")
                token = self.peek()
                if token is None or not token["name"]:
                    raise _UnreadableError
                self.position = token.end()
                value = ast.Attribute(value, token["name"].strip(), ast.Load())
                self.template_arguments()
            elif self.peek_is("++") or self.peek_is("--"):
                raise _UnreadableError
            else:
                return value

    def peek_is(self, op: str) -> bool:
        token = self.peek()
        return token is not None and token["op"] == op

    @staticmethod
    def is_type(value: ast.expr) -> bool:
        return isinstance(value, ast.Name)
