"""Argument values that a Python function names: in comparisons, lookups, defaults or ``Literal``."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: Maximum depth to which called functions are followed.
_DEEPEST = 4
_UNKNOWN = object()


@dataclass
class Constants:
    """Facts that a function states about its arguments, by the names that a caller uses."""

    #: Values that an argument is compared with, in order.
    values: dict[str, list[Any]] = field(default_factory=dict)
    #: Arguments that are read at all; None if that is unknown.
    read: set[str] | None = field(default_factory=set)


def constants_of(function: Callable[..., Any], names: Sequence[str]) -> Constants:
    """Return the values that a function names for its arguments.

    Args:
        function: The function; its source is read if it exists.
        names: The caller's names of the arguments, in order: a parameter with another name is matched by position.

    >>> def scale(x, *, mode="once"):
    ...     return x * 2 if mode == "twice" else x
    >>> constants_of(scale, ["x", "mode"]).values
    {'mode': ['once', 'twice']}
    """
    found = Constants()
    bound, rest = _unbound(function)
    parameters = _parameters(rest)
    if parameters is None:
        found.read = None
        return found
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][len(bound) :]
    aliases = dict(zip(positional, names, strict=False))
    aliases |= {p.name: p.name for p in parameters if p.name in names}
    _Reading(found, set(names)).follow(rest, aliases, _DEEPEST)
    return found


def _unbound(function: Callable[..., Any]) -> tuple[tuple[Any, ...], Callable[..., Any]]:
    """Return the arguments that partials bind, and the function under partials and wrappers."""
    bound: tuple[Any, ...] = ()
    while True:
        if isinstance(function, functools.partial):
            bound, function = (*function.args, *bound), function.func
        elif isinstance(function, types.MethodType):
            bound, function = (function.__self__, *bound), function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, types.FunctionType | types.BuiltinFunctionType | type):
            return bound, function
        elif isinstance(call := vars(type(function)).get("__call__"), types.FunctionType):
            bound, function = (function, *bound), call
        else:
            return bound, function


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        return None


class _Reading:
    def __init__(self, found: Constants, names: set[str]) -> None:
        self.found, self.names = found, names
        self.seen: set[Any] = set()

    def follow(self, function: Callable[..., Any], aliases: Mapping[str, str], depth: int) -> None:
        """Read a function whose parameters stand for arguments as ``aliases`` says."""
        key = (getattr(function, "__code__", function), tuple(sorted(aliases.items())))
        if key in self.seen:
            return
        self.seen.add(key)
        self.annotations(function, aliases)
        node = _definition(function)
        if node is None or depth == 0:
            self.found.read = None
            return
        _Body(self, function, node, aliases, depth).read()

    def annotations(self, function: Callable[..., Any], aliases: Mapping[str, str]) -> None:
        """Add the defaults and the values that ``Literal`` lists."""
        try:
            hints = typing.get_type_hints(function)
        except (NameError, TypeError, AttributeError):
            hints = {}
        for parameter in _parameters(function) or []:
            name = aliases.get(parameter.name)
            if name is None:
                continue
            if parameter.default is not parameter.empty:
                self.add(name, [parameter.default])
            self.add(name, _literals(hints.get(parameter.name)))

    def add(self, name: str, values: Iterable[Any]) -> None:
        known = self.found.values.setdefault(name, [])
        for value in values:
            if not any(type(value) is type(one) and value == one for one in known):
                known.append(value)
        if not known:
            del self.found.values[name]

    def reads(self, name: str) -> None:
        if self.found.read is not None:
            self.found.read.add(name)


def _literals(hint: Any) -> Iterator[Any]:
    if typing.get_origin(hint) is typing.Literal:
        yield from typing.get_args(hint)
    else:
        for part in typing.get_args(hint):
            yield from _literals(part)


def _definition(function: Callable[..., Any]) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
    """Return the syntax tree of a function, or None if it has no source or if several lambdas on its line fit."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    lines = linecache.getlines(code.co_filename, getattr(function, "__globals__", None))
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return None
    named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    fitting = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        and code.co_firstlineno in _first_lines(node)
        and (getattr(node, "name", "<lambda>") == code.co_name)
        and tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)) == named
    ]
    return fitting[0] if len(fitting) == 1 else None


def _first_lines(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[int]:
    decorators = [] if isinstance(node, ast.Lambda) else [d.lineno for d in node.decorator_list]
    return [node.lineno, *decorators]


class _Body:
    """Body of one function, whose parameters and local names stand for arguments as ``aliases`` says."""

    def __init__(
        self,
        reading: _Reading,
        function: Callable[..., Any],
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        aliases: Mapping[str, str],
        depth: int,
    ) -> None:
        self.reading, self.function, self.node, self.depth = reading, function, node, depth
        self.aliases = dict(aliases)
        #: Parameter that receives keywords without a parameter of their own.
        self.keywords = None if node.args.kwarg is None else node.args.kwarg.arg

    def read(self) -> None:
        """Read all statements in order."""
        body = self.node.body if isinstance(self.node.body, list) else [self.node.body]
        nodes = [node for statement in body for node in ast.walk(statement)]
        for node in nodes:
            self.name(node)
        for node in nodes:
            self.visit(node)

    def name(self, node: ast.AST) -> None:
        """Record a local name of an argument."""
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=target)], value=value)
                | ast.NamedExpr(target=ast.Name(id=target), value=value)
            ) if (name := self.argument(value)) is not None:
                self.aliases[target] = name

    def visit(self, node: ast.AST) -> None:
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                if name in self.aliases:
                    self.reading.reads(self.aliases[name])
                elif name == self.keywords:
                    self.reading.found.read = None  # all that is in it may be read
            case ast.Compare(left=left, ops=operators, comparators=others):
                sides = [left, *others]
                for a, operator, b in zip(sides, operators, others, strict=False):
                    self.compared(a, operator, b)
            case ast.Subscript(value=table, slice=index):
                self.looked_up(index, table)
            case ast.Call(func=ast.Attribute(value=table, attr="get" | "index" | "count"), args=[key, *_]):
                self.looked_up(key, table)
            case ast.Call():
                self.call(node)
            case ast.Match(subject=subject, cases=cases) if (matched := self.argument(subject)) is not None:
                self.reading.add(matched, self.known(v.value for c in cases for v in _values(c.pattern)))

    def argument(self, node: ast.AST) -> str | None:
        """Return the argument that an expression reads: a name or a keyword's entry, possibly stripped or converted."""
        match node:
            case ast.Name(id=name):
                return self.aliases.get(name)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))) if name == self.keywords:
                return self.named(key)
            case ast.Call(func=ast.Attribute(value=value, attr="lower" | "upper" | "strip"), args=[]):
                return self.argument(value)
            case ast.Call(func=ast.Name(id="str" | "int" | "float"), args=[value]):
                return self.argument(value)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="get" | "pop"), args=[ast.Constant(value=str(key)), *_]
            ) if name == self.keywords:
                return self.named(key)
        return None

    def named(self, key: str) -> str | None:
        return key if key in self.reading.names else None

    def compared(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> None:
        for one, other in ((left, right), (right, left)):
            if (name := self.argument(one)) is None:
                continue
            inside = isinstance(operator, ast.In | ast.NotIn) and one is left
            values = self.items(other) if inside else self.known([other])
            for value in values:
                around = isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE) and type(value) is int
                self.reading.add(name, [value - 1, value, value + 1] if around else [value])

    def looked_up(self, key: ast.expr, table: ast.expr) -> None:
        name = self.argument(key)
        if name is not None:
            self.reading.add(name, self.items(table))

    def call(self, node: ast.Call) -> None:
        """Follow a called function that receives an argument."""
        passed = {n: name for n, a in enumerate(node.args) if (name := self.argument(a)) is not None}
        named = {k.arg: name for k in node.keywords if k.arg and (name := self.argument(k.value)) is not None}
        function = self.resolve(node.func)
        if not (passed or named) or not isinstance(function, types.FunctionType):
            return
        if (function.__module__ or "").partition(".")[0] == "torch":
            return  # PyTorch's own constants are of its own business
        parameters = [p.name for p in _parameters(function) or []]
        aliases = {parameters[n]: name for n, name in passed.items() if n < len(parameters)}
        aliases |= {key: name for key, name in named.items() if key in parameters}
        before = self.reading.found.read
        self.reading.follow(function, aliases, self.depth - 1)
        self.reading.found.read = before  # it is read here, whatever the other does with it

    # ----------------------------------------------------------------------------------------------------- values

    def known(self, nodes: Iterable[ast.expr]) -> list[Any]:
        return [value for node in nodes if (value := self.resolve(node)) is not _UNKNOWN and _is_plain(value)]

    def items(self, node: ast.expr) -> list[Any]:
        """Return the constants in a collection, or the keys of a mapping."""
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return self.known(node.elts)
        if isinstance(node, ast.Dict):
            return self.known(key for key in node.keys if key is not None)
        found = self.resolve(node)
        if isinstance(found, Mapping | tuple | list | set | frozenset | range) and len(found) <= 64:
            return [value for value in found if _is_plain(value)]
        return []

    def resolve(self, node: ast.AST) -> Any:
        """Return the value of an expression that does not depend on the call, or ``_UNKNOWN``."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                values = [self.resolve(one) for one in elements]
                return _UNKNOWN if any(value is _UNKNOWN for value in values) else type_of(node)(values)
            case ast.Name(id=name) if name not in self.aliases:
                return self.outside(name)
            case ast.Attribute(value=value, attr=attr):
                holder = self.resolve(value)
                if isinstance(holder, types.ModuleType | type):
                    return getattr(holder, attr, _UNKNOWN)
        return _UNKNOWN

    def outside(self, name: str) -> Any:
        code = getattr(self.function, "__code__", None)
        cells = getattr(self.function, "__closure__", None) or ()
        if code is not None and name in code.co_freevars:
            cell = cells[code.co_freevars.index(name)]
            return _UNKNOWN if cell == types.CellType() else cell.cell_contents
        if code is not None and name in code.co_varnames:
            return _UNKNOWN
        return getattr(self.function, "__globals__", {}).get(name, _UNKNOWN)


def type_of(node: ast.Tuple | ast.List) -> type[tuple[Any, ...]] | type[list[Any]]:
    """Return the class of a tuple or list display."""
    return tuple if isinstance(node, ast.Tuple) else list


def _values(pattern: ast.pattern) -> Iterator[ast.MatchValue]:
    return (node for node in ast.walk(pattern) if isinstance(node, ast.MatchValue))


def _is_plain(value: Any) -> bool:
    """Return whether a value may be the value of an attr."""
    if isinstance(value, tuple | list):
        return all(_is_plain(item) for item in value)
    return isinstance(value, str | bool | int | float) or type(value).__name__ == "dtype"
