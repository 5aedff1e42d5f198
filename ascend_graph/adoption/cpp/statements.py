"""Statements of C++ as Python syntax trees."""

from __future__ import annotations

import ast
import re
from functools import partial

from ascend_graph.adoption.cpp.arrays import array_of
from ascend_graph.adoption.cpp.expressions import (
    APPEND_RANGE,
    BINARY,
    DEFAULT,
    FLOAT,
    FLOATS,
    FORGET,
    MAX_DEPTH,
    REFERENCE,
    SET_ITEM,
    UNKNOWN,
    expression,
    unknown,
)
from ascend_graph.adoption.cpp.functions import close_of, split
from ascend_graph.adoption.cpp.switches import run_once
from ascend_graph.sources.kernels import LITERAL

_DECLARED = re.compile(
    r"(?:(?:static|const|constexpr|volatile|thread_local)\s+)*"
    r"(?:(?:unsigned|signed|long)\s+)*[A-Za-z_][\w:]*(?:\s*<[^;={}]*>)?(?:\s*::\s*\w+)?(?:\s+const)?[\s*&]+"
    r"(?P<name>[A-Za-z_]\w*)\s*(?P<rest>[=({;\[]|\Z)"
)
_UNPACKED = re.compile(r"(?:const\s+)?auto\s*&{0,2}\s*\[(?P<names>[\w\s,]+)\]\s*=(?P<rest>.*)", re.DOTALL)
_EACH = re.compile(
    r"(?P<kind>[^;?]*?[\s&*])(?:(?P<name>[A-Za-z_]\w*)|\[(?P<names>[\w\s,]+)\])\s*:(?!:)(?P<items>[^;]*)", re.DOTALL
)
#: Mark of an assignment that declares its variable.
_DECLARATION = "declaration"
_NOT_A_TYPE = re.compile(r"\A(?:return|delete|throw|else|case|goto|new|using|typedef)\b")
_ASSIGNS = re.compile(
    LITERAL + r"|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<compare>[=!<>]=)|(?P<assign>(?:[-+*/%&|^]|<<|>>)?=)"
)


def statements(body: str) -> list[ast.stmt]:
    """Return the statements of a function's body; one that declares a variable has a mark, as a comment on its type.

    >>> print("\\n".join(ast.unparse(s) for s in statements("auto n = x.size(0); if (n > 1) { return x; } return y;")))
    n = x.size(0) # type: declaration
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
    if depth > MAX_DEPTH:
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
        found = _block(text[position + 1 : close], depth)
        # A variable of the block may hide one of the same name, which has its own value after it.
        declared = dict.fromkeys(name for one in found for name in _declared_by(one))
        hidden: list[ast.expr] = [ast.Name(name, ast.Load()) for name in declared]
        after: list[ast.stmt] = [ast.Expr(ast.Call(ast.Name(FORGET), hidden, []))] if hidden else []
        return [*found, *after], close + 1
    word = re.compile(r"(if(?:\s+constexpr)?|for|while|switch|do|try|catch)\b\s*(\(|\{)?").match(text, position)
    if word is not None and word[1].startswith("if") and word[2] == "(":
        return _if(text, word.end() - 1, depth)
    if word is not None:
        return _loop(text, position, word, depth)
    end = _end_of_statement(text, position)
    return _simple(text[position:end]), end + 1


def _declared_by(statement: ast.stmt) -> list[str]:
    """Return the names that a statement declares."""
    if not isinstance(statement, ast.Assign) or statement.type_comment != _DECLARATION:
        return []
    return [one.id for target in statement.targets for one in ast.walk(target) if isinstance(one, ast.Name)]


def declared_names(nodes: list[ast.stmt]) -> set[str]:
    """Return the variables that statements declare, in inner blocks, too.

    >>> sorted(declared_names(statements("int n = 1; m = 2; if (n) { auto k = n; }")))
    ['k', 'n']
    """
    inner = [one for part in nodes for one in ast.walk(part) if isinstance(one, ast.stmt)]
    return {name for one in inner for name in _declared_by(one)}


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
    """Return what a loop assigns as unknown; one that appends sizes, and what runs once, are understood."""
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
        last = _end_of_statement(text, end)
        header, end = re.sub(r"\A\s*while\b", "", text[end:last]), last + 1
    read = partial(_statement, text, depth=depth), partial(_block, depth=depth)
    if (once := run_once(word[1], header, text, (after, body, end), *read)) is not None:
        return once
    if word[1] == "for":
        if (understood := _append_range(header, body)) is not None:
            return [understood], end
        if (counted := _counted(header, body)) is not None:
            # The number is the loop's own, and may hide a variable.
            return [counted, ast.Expr(ast.Call(ast.Name(FORGET), [counted.target], []))], end
    # Its body may run or not: each assignment is one to an unknown value.
    test, first = _read_header(word[1], header, body)
    return [ast.While(test, [*first, *body] or [ast.Pass()], [])], end


def _read_header(word: str, header: str, body: list[ast.stmt]) -> tuple[ast.expr, list[ast.stmt]]:
    """Return the condition of a loop, and what its header assigns."""
    if word in ("catch", "try") or not header.strip():
        return unknown(), []
    if word != "for":
        return expression(header), []
    each = _EACH.fullmatch(header)
    if each is None:
        parts = split(header, ";")
        inner = [one for part in (*parts[:1], *parts[2:]) for piece in split(part) for one in _simple(piece)]
        return expression(parts[1]) if len(parts) > 1 and parts[1] else unknown(), inner
    names = [ast.Name(one.strip(), ast.Store()) for one in (each["name"] or each["names"]).split(",")]
    target = ast.Tuple([*names], ast.Store()) if each["names"] else names[0]
    items = expression(each["items"])
    if "&" in each["kind"] and "const" not in each["kind"] and _stores(body) & {one.id for one in names}:
        items = ast.Call(ast.Name(REFERENCE), [items, *(ast.Name(one.id, ast.Load()) for one in names)], [])
    return unknown(), [_assign(target, items)]


def _stores(body: list[ast.stmt]) -> set[str]:
    """Return the names that statements assign, or store through."""
    found = {
        one.id
        for part in body
        for one in ast.walk(part)
        if isinstance(one, ast.Name) and isinstance(getattr(one, "ctx", None), ast.Store)
    }
    for part in body:
        for one in ast.walk(part):
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in (FORGET, SET_ITEM):
                found |= {a.id for a in one.args[: None if one.func.id == FORGET else 1] if isinstance(a, ast.Name)}
    return found


def _header(header: str) -> tuple[str, ast.expr, ast.expr] | None:
    """Return the variable, the start and the end of ``for (int i = a; i < b; i++)``, also of ``i + 1 < b``, or None."""
    parts = header.split(";")
    if len(parts) != 3:
        return None
    start = re.fullmatch(r"\s*[\w:]+\s+(\w+)\s*=(.*)", parts[0], re.DOTALL)
    limit = re.fullmatch(r"\s*(\w+)\s*(?:\+\s*(\d+)\s*)?(<=|<|!=)(.*)", parts[1], re.DOTALL)
    if (
        start is None
        or limit is None
        or start[1] != limit[1]
        or not re.fullmatch(rf"\s*(?:\+\+\s*{start[1]}|{start[1]}\s*\+\+|{start[1]}\s*\+=\s*1)\s*", parts[2])
    ):
        return None
    last = expression(limit[4])
    after = int(limit[2] or 0) - (limit[3] == "<=")
    if after:
        last = ast.BinOp(last, ast.Sub() if after > 0 else ast.Add(), ast.Constant(abs(after)))
    return start[1], expression(start[2]), last


def _counted(header: str, body: list[ast.stmt]) -> ast.For | None:
    """Return a loop that counts up by one as a loop over a range."""
    read = _header(header)
    if read is None:
        return None
    variable, start, last = read
    target = ast.Name(variable, ast.Store())
    return ast.For(target, ast.Call(ast.Name("range"), [start, last], []), body or [ast.Pass()], [])


def _append_range(header: str, body: list[ast.stmt]) -> ast.stmt | None:
    read = _header(header)
    if read is None or not body:
        return None
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
    variable, start, last = read
    arguments = [ast.Constant(variable), start, last, *found]
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
        jumps: dict[str, ast.stmt] = {"break": ast.Break(), "continue": ast.Continue()}
        kept = jumps.get(text, ast.Expr(unknown()))
        return [] if re.match(r"(?:using|typedef|static_assert)\b", text) else [kept]
    unpacked = _UNPACKED.fullmatch(text)
    if unpacked is not None:
        names: list[ast.expr] = [ast.Name(name.strip(), ast.Store()) for name in unpacked["names"].split(",")]
        return [_declares(_assign(ast.Tuple(names, ast.Store()), expression(unpacked["rest"])))]
    declared = None if _NOT_A_TYPE.match(text) else _DECLARED.match(text)
    several = _several(text)
    if several:
        return [one for part in several for one in _simple(part)]
    if declared is not None:
        made = _declaration(text, declared)
        if made is not None:
            return [_declares(one) for one in made]
    depth = 0
    for match in _ASSIGNS.finditer(text):
        depth += bool(match["open"]) - bool(match["close"])
        if match["assign"] and depth == 0:
            return [_assignment(text[: match.start()], match["assign"], text[match.end() :])]
    if re.fullmatch(r"(?:\+\+|--)\s*\w+|\w+\s*(?:\+\+|--)", text):
        return [ast.Expr(unknown(text))]
    return [ast.Expr(expression(text))]


def _several(text: str) -> list[str]:
    """Return the declarations of ``int64_t n = 1, m;`` one by one; none for any other statement."""
    first, *others = split(text) or [""]
    declared = None if not others or _NOT_A_TYPE.match(first) else _DECLARED.match(first)
    if declared is None or not all(
        re.fullmatch(r"[*&\s]*[A-Za-z_]\w*\s*(?:[={(].*)?", one, re.DOTALL) for one in others
    ):
        return []
    kind = first[: declared.start("name")].rstrip("*& \n\t")
    return [first, *(f"{kind} {one}" for one in others)]


def _declares(statement: ast.stmt) -> ast.stmt:
    """Return a statement with the mark of a declaration."""
    if isinstance(statement, ast.Assign):
        statement.type_comment = _DECLARATION
    return statement


def _assign(target: ast.expr, value: ast.expr) -> ast.stmt:
    return ast.Assign([target], value, lineno=1)


def _assignment(target: str, operator: str, value: str) -> ast.stmt:
    """Return an assignment; the target of one that stores into what a name refers to is ``*name``."""
    written = target.strip()
    name = written.lstrip("*").strip()
    made = expression(value)
    if operator != "=":
        kind = BINARY.get(operator[:-1], (0, ast.BitXor))[1]
        made = ast.BinOp(expression(name), kind(), made)  # type: ignore[arg-type]
    if re.fullmatch(r"[A-Za-z_]\w*", name):
        plain = operator == "=" and written == name
        stored = ast.Name(name, ast.Store())
        return _assign(stored if plain else ast.Starred(stored, ast.Store()), made)
    item = re.fullmatch(r"([A-Za-z_]\w*)\s*(?:\.\s*(?P<end>back|front)\s*\(\s*\)|\[(?P<index>[^\[\]]*)\])", name)
    if item is not None:
        index = ast.Constant(-1 if item["end"] == "back" else 0) if item["end"] else expression(item["index"])
        return ast.Expr(ast.Call(ast.Name(SET_ITEM), [ast.Name(item[1], ast.Load()), index, made], []))
    # An item that a string names is one of a map, and no tensor's: ctx->saved_data["n"] = n.
    member = re.fullmatch(r"([A-Za-z_]\w*)((?:\s*(?:\.|->)\s*[A-Za-z_]\w*)+)(?:\s*\[\s*\"[^\"]*\"\s*\])?", name)
    if member is not None:
        owner: ast.expr = ast.Name(member[1], ast.Load())
        *inner, last = re.findall(r"\w+", member[2])
        for one in inner:
            owner = ast.Attribute(owner, one, ast.Load())
        return _assign(ast.Attribute(owner, last, ast.Store()), made)
    tied = re.fullmatch(r"(?:std\s*::\s*)?tie\s*\(([\w\s,:]+)\)", name)
    if tied is not None and operator == "=":
        # std::ignore takes a value too, and has none.
        stored_names: list[ast.expr] = [ast.Name(one.strip(), ast.Store()) for one in tied[1].split(",")]
        return _assign(ast.Tuple(stored_names, ast.Store()), made)
    # x.select(0, i) = y, x[i][j] = y, std::get<0>(t) = y
    root = re.match(r"[(\s*]*([A-Za-z_]\w*)\b(?!\s*::)", name)
    names = [root[1]] if root else re.findall(r"(?<![\w:.])[A-Za-z_]\w*(?!\s*::|\w)", name) or [UNKNOWN]
    targets: list[ast.expr] = [ast.Starred(ast.Name(one, ast.Store()), ast.Store()) for one in dict.fromkeys(names)]
    return _assign(targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store()), ast.Starred(made, ast.Load()))


def _refers(value: ast.expr, kind: str) -> bool:
    """Return whether a declaration names what its value refers to: ``auto &n = m``, ``int64_t *p = v.data()``."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        inner = isinstance(value.func.value, ast.Name) and value.func.attr in (
            "data",
            "begin",
            "end",
            "back",
            "front",
            "at",
        )
        return inner and (re.search(r"[&*]", kind) is not None or value.func.attr in ("data", "begin", "end"))
    if isinstance(value, ast.Subscript):
        return isinstance(value.value, ast.Name) and re.search(r"[&*]", kind) is not None
    return isinstance(value, ast.Name) and re.search(r"[&*]", kind) is not None


def _declaration(text: str, declared: re.Match[str]) -> list[ast.stmt] | None:
    name, rest = ast.Name(declared["name"], ast.Store()), declared["rest"]
    kind = text[: declared.start("name")]
    after = text[declared.end() :]
    if rest == "=":
        value = expression(after)
        if _refers(value, kind) and not re.search(r"\bconst\b", kind):
            value = ast.Call(ast.Name(REFERENCE), [value, ast.Name(name.id, ast.Load())], [])
        is_float = FLOATS.search(kind.partition("<")[0]) is not None
        return [_assign(name, ast.Call(ast.Name(FLOAT), [value], []) if is_float else value)]
    if rest in ("", ";"):
        return [_assign(name, ast.Call(ast.Name(DEFAULT), [ast.Constant(" ".join(kind.split()))], []))]
    if rest == "[":
        return [_assign(name, array_of(kind, after))]
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
