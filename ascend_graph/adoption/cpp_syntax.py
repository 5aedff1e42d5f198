"""Bodies of C++ functions as Python syntax trees, so that one interpreter reads metas of both languages.

Names keep their ``::``. What the grammar here does not have becomes the name :data:`UNKNOWN`, which has no value.
"""

from __future__ import annotations

import ast
import re

from ascend_graph.adoption.cpp import close_of, split, string_of
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
#: Name of the function that makes a lambda, of its text.
LAMBDA = "<lambda>"
#: Maximum nesting of expressions and blocks.
_MAX_DEPTH = 60

_TOKEN = re.compile(
    r"\s*(?:(?P<literal>(?:u8|[uUL])?"
    + LITERAL.replace("(?P<raw>", "(?P<mark>").replace("(?P=raw)", "(?P=mark)")
    + r")"
    r"|(?P<name>(?:::)?[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*)"
    r"|(?P<op>->|\+\+|--|<<=|>>=|<=|>=|==|!=|&&|\|\||<<|>>|[-+*/%&|^]=|[-+*/%<>=!&|^~?:.,;()\[\]{}]))"
)
_BINARY: dict[str, tuple[int, type[ast.operator] | type[ast.cmpop] | type[ast.boolop]]] = {
    "||": (1, ast.Or), "&&": (2, ast.And), "==": (6, ast.Eq), "!=": (6, ast.NotEq), "<": (7, ast.Lt), "<=": (7, ast.LtE),
    ">": (7, ast.Gt), ">=": (7, ast.GtE), "+": (9, ast.Add), "-": (9, ast.Sub), "*": (10, ast.Mult),
    "/": (10, ast.FloorDiv), "%": (10, ast.Mod), "&": (5, ast.BitAnd), "|": (3, ast.BitOr), "^": (4, ast.BitXor),
    "<<": (8, ast.LShift), ">>": (8, ast.RShift),
}  # fmt: skip
_TYPE_WORDS = re.compile(
    r"\A(?:const\s+)?(?:void|bool|char|int|long|short|float|double|size_t|unsigned(?:\s+int)?|u?int(?:8|16|32|64)_t)(?:\s*\*)?\Z"
)
_CASTS = frozenset({"static_cast", "const_cast", "reinterpret_cast", "dynamic_cast"})
_DECLARED = re.compile(
    r"(?:(?:static|const|constexpr|volatile|thread_local)\s+)*"
    r"(?:(?:unsigned|signed|long)\s+)*[A-Za-z_][\w:]*(?:\s*<[^;={}]*>)?(?:\s*::\s*\w+)?(?:\s+const)?[\s*&]+"
    r"(?P<name>[A-Za-z_]\w*)\s*(?P<rest>[=({;\[]|\Z)"
)
_UNPACKED = re.compile(r"(?:const\s+)?auto\s*&{0,2}\s*\[(?P<names>[\w\s,]+)\]\s*=(?P<rest>.*)", re.DOTALL)
_NOT_A_TYPE = re.compile(r"\A(?:return|delete|throw|else|case|goto|new|using|typedef)\b")


_ASSIGNS = re.compile(
    LITERAL + r"|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<compare>[=!<>]=)|(?P<assign>(?:[-+*/%&|^]|<<|>>)?=)"
)


class _UnreadableError(Exception):
    """Expression outside the grammar here."""


_FLOATS = re.compile(r"\b(?:float|double)\b")
_CHANGED = re.compile(
    r"(?<![\w.>])([A-Za-z_]\w*)\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?![=]))|(?:\+\+|--)\s*([A-Za-z_]\w*)"
)


def unknown(text: str = "") -> ast.expr:
    """Return the expression that has no value; after it the names that ``text`` may change have none either."""
    names = dict.fromkeys(one[1] or one[2] for one in _CHANGED.finditer(text))
    changed: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
    return ast.Call(ast.Name(FORGET), changed, []) if changed else ast.Name(UNKNOWN)


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
        if self.depth > _MAX_DEPTH:
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
            found = _BINARY.get(token["op"]) if token is not None and token["op"] else None
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
        if self.depth > _MAX_DEPTH:
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
            if name in ("new", "delete", "sizeof", "throw"):
                raise _UnreadableError
            angled = self.template_arguments()
            if name in _CASTS and angled:
                self.expect("(")
                inner = self.ternary()
                self.expect(")")
                # A cast is a value: functions cannot change what is in it.
                return ast.Call(ast.Name(FLOAT if _FLOATS.search(angled) else "static_cast"), [inner], [])
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
        return unknown(written[written.find("{") :] if "&" in written.partition("]")[0] else "")

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


def statements(body: str) -> list[ast.stmt]:
    """Return the statements of a function's body.

    >>> print("\\n".join(ast.unparse(s) for s in statements("auto n = x.size(0); if (n > 1) { return x; } return y;")))
    n = x.size(0)
    if n > 1:
        return x
    return y
    """
    try:
        return _block(body, 0)
    except RecursionError:
        return [ast.Expr(unknown())]


def _block(text: str, depth: int) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    position = 0
    while True:
        while position < len(text) and text[position] in " \t\r\n;":
            position += 1
        if position >= len(text):
            return found
        made, position = _statement(text, position, depth + 1)
        found += made


def _statement(text: str, start: int, depth: int) -> tuple[list[ast.stmt], int]:
    if depth > _MAX_DEPTH:
        return [ast.Expr(unknown())], len(text)
    position = start
    while position < len(text) and text[position] in " \t\r\n;":
        position += 1
    if position >= len(text):
        return [], position
    if text[position] == "{":
        close = close_of(text, position)
        if close < 0:
            return [ast.Expr(unknown())], len(text)
        return _block(text[position + 1 : close], depth), close + 1
    word = re.compile(r"(if(?:\s+constexpr)?|for|while|switch|do|try|catch)\b\s*(\(|\{)?").match(text, position)
    if word is not None and word[1].startswith("if") and word[2] == "(":
        return _if(text, word.end() - 1, depth)
    if word is not None:
        return _loop(text, position, word, depth)
    end = _end_of_statement(text, position)
    return _simple(text[position:end]), end + 1


def _end_of_statement(text: str, start: int) -> int:
    depth = 0
    for match in re.compile(LITERAL + r"|(?P<mark>[()\[\]{};])").finditer(text, start):
        mark = match["mark"]
        if mark is None:
            continue
        if mark == ";" and depth == 0:
            return match.start()
        depth += (mark in "([{") - (mark in ")]}")
    return len(text)


def _if(text: str, opening: int, depth: int) -> tuple[list[ast.stmt], int]:
    close = close_of(text, opening)
    if close < 0:
        return [ast.Expr(unknown())], len(text)
    condition = split(text[opening + 1 : close], ";")
    body, position = _statement(text, close + 1, depth)
    otherwise: list[ast.stmt] = []
    following = re.compile(r"\s*else\b").match(text, position)
    if following is not None:
        otherwise, position = _statement(text, following.end(), depth)
    test = expression(condition[-1]) if condition else unknown()
    setup = [one for part in condition[:-1] for one in _simple(part)]
    return [*setup, ast.If(test, body or [ast.Pass()], otherwise)], position


def _loop(text: str, position: int, word: re.Match[str], depth: int) -> tuple[list[ast.stmt], int]:
    """Return what a loop, a switch or a try assigns as unknown; a loop that appends sizes is understood."""
    header = ""
    after = word.end()
    if word[2] == "(":
        close = close_of(text, word.end() - 1)
        if close < 0:
            return [ast.Expr(unknown())], len(text)
        header, after = text[word.end() : close], close + 1
    elif word[2] == "{":
        after = word.end() - 1
    body, end = _statement(text, after, depth)
    if word[1] == "do":
        end = _end_of_statement(text, end) + 1
    if word[1] == "for":
        understood = _append_range(header, body)
        if understood is not None:
            return [understood], end
    # Its body may run or not: each assignment is one to an unknown value.
    return [ast.While(unknown(), body or [ast.Pass()], [])], end


def _append_range(header: str, body: list[ast.stmt]) -> ast.stmt | None:
    parts = header.split(";")
    if len(parts) != 3 or not body:
        return None
    start = re.fullmatch(r"\s*[\w:]+\s+(\w+)\s*=(.*)", parts[0], re.DOTALL)
    limit = re.fullmatch(r"\s*(\w+)\s*(<=|<|!=)(.*)", parts[1], re.DOTALL)
    if (
        start is None
        or limit is None
        or start[1] != limit[1]
        or not re.fullmatch(rf"\s*(?:\+\+\s*{start[1]}|{start[1]}\s*\+\+|{start[1]}\s*\+=\s*1)\s*", parts[2])
    ):
        return None
    last = expression(limit[3])
    if limit[2] == "<=":
        last = ast.BinOp(last, ast.Add(), ast.Constant(1))
    found: list[ast.expr] = []
    for one in body:
        call = one.value if isinstance(one, ast.Expr) else None
        if (
            not isinstance(call, ast.Call)
            or not isinstance(call.func, ast.Attribute)
            or call.func.attr not in ("push_back", "emplace_back")
            or len(call.args) != 1
            or not isinstance(call.func.value, ast.Name)
        ):
            return None
        found.append(ast.Tuple([call.func.value, call.args[0]], ast.Load()))
    arguments = [ast.Constant(start[1]), expression(start[2]), last, *found]
    return ast.Expr(ast.Call(ast.Name(APPEND_RANGE), arguments, []))


def _simple(text: str) -> list[ast.stmt]:
    text = text.strip()
    macro = re.match(r"[A-Z][A-Z0-9_]+\s*\(", text)
    if macro is not None:
        # A macro may stand without a semicolon.
        close = close_of(text, macro.end() - 1)
        if close > 0 and re.match(r"\s*[A-Za-z_]", text[close + 1 :]):
            return [ast.Expr(expression(text[: close + 1])), *_simple(text[close + 1 :])]
    if re.match(r"return\b", text):
        rest = text[6:].strip()
        return [ast.Return(expression(rest) if rest else None)]
    if re.match(r"throw\b", text):
        return [ast.Raise()]
    label = re.match(r"(?:case\b(?:[^:;]|::)*|default\s*):(?!:)", text)
    if label is not None:
        return _simple(text[label.end() :])
    if re.match(r"(?:using|typedef|static_assert|break|continue|goto)\b", text):
        return [] if re.match(r"(?:using|typedef|static_assert)\b", text) else [ast.Expr(unknown())]
    unpacked = _UNPACKED.fullmatch(text)
    if unpacked is not None:
        names: list[ast.expr] = [ast.Name(name.strip(), ast.Store()) for name in unpacked["names"].split(",")]
        return [_assign(ast.Tuple(names, ast.Store()), expression(unpacked["rest"]))]
    declared = None if _NOT_A_TYPE.match(text) else _DECLARED.match(text)
    if declared is not None:
        made = _declaration(text, declared)
        if made is not None:
            return made
    depth = 0
    for match in _ASSIGNS.finditer(text):
        depth += bool(match["open"]) - bool(match["close"])
        if match["assign"] and depth == 0:
            return [_assignment(text[: match.start()], match["assign"], text[match.end() :])]
    if re.fullmatch(r"(?:\+\+|--)\s*\w+|\w+\s*(?:\+\+|--)", text):
        return [ast.Expr(unknown(text))]
    return [ast.Expr(expression(text))]


def _assign(target: ast.expr, value: ast.expr) -> ast.stmt:
    return ast.Assign([target], value, lineno=1)


def _assignment(target: str, operator: str, value: str) -> ast.stmt:
    name = target.strip().lstrip("*").strip()
    made = expression(value)
    if operator != "=":
        kind = _BINARY.get(operator[:-1], (0, ast.BitXor))[1]
        made = ast.BinOp(expression(name), kind(), made)  # type: ignore[arg-type]
    if re.fullmatch(r"[A-Za-z_]\w*", name):
        return _assign(ast.Name(name, ast.Store()), made)
    item = re.fullmatch(r"([A-Za-z_]\w*)\s*(?:\.\s*(?P<end>back|front)\s*\(\s*\)|\[(?P<index>[^\[\]]*)\])", name)
    if item is not None:
        index = ast.Constant(-1 if item["end"] == "back" else 0) if item["end"] else expression(item["index"])
        return ast.Expr(ast.Call(ast.Name(SET_ITEM), [ast.Name(item[1], ast.Load()), index, made], []))
    root = re.match(r"\(?\s*\*?\s*([A-Za-z_]\w*)", name)
    return _assign(ast.Name(root[1] if root else UNKNOWN, ast.Store()), unknown())


def _declaration(text: str, declared: re.Match[str]) -> list[ast.stmt] | None:
    name, rest = ast.Name(declared["name"], ast.Store()), declared["rest"]
    kind = text[: declared.start("name")]
    after = text[declared.end() :]
    if rest == "=":
        value = expression(after)
        is_float = _FLOATS.search(kind.partition("<")[0]) is not None
        return [_assign(name, ast.Call(ast.Name(FLOAT), [value], []) if is_float else value)]
    if rest in ("", ";"):
        return [_assign(name, ast.Call(ast.Name("<default>"), [ast.Constant(" ".join(kind.split()))], []))]
    if rest == "[":
        return [_assign(name, unknown())]
    opening = declared.end() - 1
    close = close_of(text, opening)
    if close < 0 or text[close + 1 :].strip():
        return None
    arguments = [expression(one) for one in split(text[opening + 1 : close])]
    if rest == "(" and not arguments:
        return None
    constructed = re.sub(r"\b(?:const|static|constexpr)\b|[&*]|<.*>", " ", kind).strip()
    given: list[ast.expr] = [ast.List(arguments, ast.Load())] if rest == "{" else arguments
    return [_assign(name, ast.Call(ast.Name("".join(constructed.split()) or UNKNOWN), given, []))]
