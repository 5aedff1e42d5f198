"""Gradients of operators: which operator an autograd function of Python computes them with, and from which tensors."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from ascend_graph.adoption.annotations import last_name
from ascend_graph.adoption.model import SourcePlace

#: Methods that give the tensor itself in another form. A gradient takes the form of its tensor by itself.
_SAME = frozenset({"contiguous", "int", "long", "float", "half", "to", "type_as"})
#: Functions that make new tensors, to which an operator may write.
_FRESH = frozenset({"zeros_like", "empty_like", "ones_like"})
#: Methods and functions that a gradient may repeat: they read shapes, or give the same values in another form.
_PLAIN_CALLS = _SAME | _FRESH | {"size", "dim", "numel", "len", "list", "tuple", "permute", "reshape", "view", "get"}
_PLAIN = (
    ast.Name, ast.Attribute, ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Subscript, ast.BinOp, ast.UnaryOp,
    ast.operator, ast.unaryop, ast.expr_context, ast.Call, ast.Slice,
)  # fmt: skip
_IGNORED = frozenset({"mark_non_differentiable", "set_materialize_grads"})
#: Prefixes of the names that stand for parameters of ``forward``, results of its operator, and gradients.
_PARAMETER, _RESULT, _GRADIENT = "p:", "r:", "g:"
#: Prefix of the names that stand for values that are not followed.
_OTHER = "u:"


_numbers = count()


@dataclass(frozen=True, slots=True)
class WrittenGradient:
    """An autograd function whose ``forward`` and ``backward`` are one call of an operator each."""

    #: The operator of ``backward``.
    backward: str
    #: Arguments of the operator of ``forward``, by position or name.
    given: dict[int | str, ast.expr]
    #: Position of the operator's result that each gradient in ``backward`` is one of.
    outputs: tuple[int, ...]
    #: Arguments of the operator of ``backward``, in the names that stand for values of ``forward``.
    arguments: tuple[tuple[str | None, ast.expr], ...]
    #: Number of values that the operator of ``backward`` returns.
    count: int
    #: Position of the value that is the gradient of each parameter of ``forward``; None for one that has none.
    gradients: dict[str, int | None]


@dataclass(frozen=True, slots=True)
class GradientPair:
    """A Python autograd function: its name with its place, and the bound functions that its backward calls."""

    name: str
    place: SourcePlace
    backward: tuple[str, ...]
    #: None if the function does more than call one operator in each direction.
    plan: WrittenGradient | None = None
    #: True if ``backward`` returns None for every argument.
    is_none: bool = False


class _UnclearError(Exception):
    """Part of an autograd function that is more than one call of an operator."""


def read_gradients(nodes: Iterable[ast.AST], file: str, names: Collection[str]) -> Iterator[tuple[str, GradientPair]]:
    """Yield the autograd functions whose forward computes with one bound function, each after that function's name."""
    for node in nodes:
        if not isinstance(node, ast.ClassDef) or not any(last_name(base) == "Function" for base in node.bases):
            continue
        methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
        if "forward" not in methods or "backward" not in methods:
            continue
        forward, backward = (_called(methods[name], names) for name in ("forward", "backward"))
        if len(forward) != 1:
            continue
        plan = None
        if len(backward) == 1:
            try:
                plan = _plan(methods["forward"], methods["backward"], forward[0], backward[0])
            except _UnclearError:
                plan = None
        place = SourcePlace(file, methods["backward"].lineno)
        returned = [one.value for one in ast.walk(methods["backward"]) if isinstance(one, ast.Return)]
        is_none = not any(_has_gradient(one) for one in returned)
        yield forward[0], GradientPair(node.name, place, tuple(backward), plan, is_none)


def _called(function: ast.FunctionDef, names: Collection[str]) -> list[str]:
    found = (
        one.attr if isinstance(one, ast.Attribute) else one.id
        for one in ast.walk(function)
        if isinstance(one, ast.Attribute | ast.Name)
    )
    return list(dict.fromkeys(one for one in found if one in names))


class _Body:
    """Reader of the statements of ``forward`` or ``backward``: what each name stands for, and the one call."""

    def __init__(
        self, function: ast.FunctionDef, operator: str, values: dict[str, ast.expr], *, is_forward: bool
    ) -> None:
        self.operator, self.values, self.is_forward = operator, values, is_forward
        self.context = function.args.args[0].arg
        self.saved: list[ast.expr] = []
        self.arguments: list[tuple[str | None, ast.expr]] = []
        self.count = 0
        self.returned: list[ast.expr] = []
        #: Names that hold the operator.
        self.held: set[str] = {operator}
        for one in function.body:
            self.statement(one)

    def statement(self, one: ast.stmt) -> None:
        if isinstance(one, ast.Assert) or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)):
            return
        if isinstance(one, ast.Import | ast.ImportFrom):
            return
        if isinstance(one, ast.If):
            self.branch(one)
            return
        if isinstance(one, ast.Return):
            items = one.value.elts if isinstance(one.value, ast.Tuple) else [one.value or ast.Constant(None)]
            self.returned = [self.called_once(item) if self.is_call(item) else self.value(item) for item in items]
        elif isinstance(one, ast.Expr) and self.method(one.value) == "save_for_backward":
            self.saved += [self.value(item) for item in one.value.args]  # type: ignore[attr-defined]
        elif isinstance(one, ast.Expr) and self.method(one.value) in _IGNORED:
            return
        elif isinstance(one, ast.Assign) and len(one.targets) == 1:
            self.assign(one.targets[0], one.value)
        else:
            raise _UnclearError

    def branch(self, one: ast.If) -> None:
        """Forget what a branch assigns; one that returns, or holds the call, is not followed.

        A branch of ``forward`` that returns before the call says nothing of the operator.
        """
        left = not one.orelse and isinstance(one.body[-1], ast.Return) and not any(map(self.is_call, ast.walk(one)))
        if left and self.is_forward and not self.count:
            return
        raises = not one.orelse and all(isinstance(inner, ast.Raise) for inner in one.body)
        for inner in ast.walk(one):
            kept = isinstance(inner, ast.Return | ast.AugAssign) or self.is_call(inner) or self.method(inner)
            if kept and not raises:
                raise _UnclearError
            if isinstance(inner, ast.Assign) and not _keeps_value(inner):
                for target in inner.targets:
                    self.store_all(target, self.unknown())

    def unknown(self) -> ast.expr:
        """Return a name for a value that is not followed."""
        return ast.Name(f"{_OTHER}{next(_numbers)}", ast.Load())

    def store_all(self, target: ast.expr, value: ast.expr) -> None:
        """Assign a value to a name, or its items to several."""
        if not isinstance(target, ast.Tuple):
            self.store(target, value)
            return
        items = value.elts if isinstance(value, ast.Tuple) else []
        if items and len(items) != len(target.elts):
            raise _UnclearError
        for number, name in enumerate(target.elts):
            self.store(name, items[number] if items else ast.Subscript(value, ast.Constant(number), ast.Load()))

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if self.is_call(value):
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            self.call(value, len(names))
            for number, name in enumerate(names):
                self.store(name, ast.Name(f"{_RESULT}{number}", ast.Load()))
            return
        if isinstance(value, ast.Attribute) and value.attr == self.operator and isinstance(target, ast.Name):
            self.held.add(target.id)
            return
        self.store_all(target, self.value(value))

    def store(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name | ast.Attribute) and re.fullmatch(r"\w+(?:\.\w+)?", ast.unparse(target)):
            self.values[ast.unparse(target)] = value
        elif isinstance(target, ast.Subscript) and self.is_own(target.value):
            self.store(target.value, self.unknown())
        else:
            raise _UnclearError

    def is_own(self, node: ast.expr) -> bool:
        """Return whether a name holds a value that is not followed, or is new, so that writing to it changes no other."""
        found = self.values.get(ast.unparse(node))
        if found is not None and _is_fresh(found):
            return sum(one is found for one in self.values.values()) == 1
        return isinstance(found, ast.Name) and found.id.startswith(_OTHER)

    def is_call(self, node: ast.AST | None) -> bool:
        return isinstance(node, ast.Call) and last_name(node.func) in self.held

    def called_once(self, node: ast.expr) -> ast.expr:
        self.call(node, 1)
        return ast.Name(f"{_RESULT}0", ast.Load())

    def call(self, node: ast.expr, count: int) -> None:
        assert isinstance(node, ast.Call)
        if self.count or any(isinstance(one, ast.Starred) for one in node.args):
            raise _UnclearError
        self.count = count
        self.arguments = [(None, self.value(one)) for one in node.args]
        self.arguments += [(one.arg, self.value(one.value)) for one in node.keywords]

    def method(self, node: ast.AST) -> str:
        """Return the method of the context that a call names; empty if it is another call."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            return node.func.attr if isinstance(owner, ast.Name) and owner.id == self.context else ""
        return ""

    def value(self, node: ast.expr) -> ast.expr:
        """Return an expression in the names that stand for values of the call."""
        if any(map(self.is_call, ast.walk(node))):
            raise _UnclearError
        plain = all(
            isinstance(one, _PLAIN) and not (isinstance(one, ast.Call) and last_name(one.func) not in _PLAIN_CALLS)
            for one in ast.walk(node)
        )
        try:
            if plain:
                return _Names(self.values).visit(copy.deepcopy(node))  # type: ignore[no-any-return]
        except _UnclearError:
            pass
        for one in ast.walk(node):
            # What is not followed may write to a new tensor.
            if isinstance(one, ast.Name) and one.id in self.values and _is_fresh(self.values[one.id]):
                self.values[one.id] = self.unknown()
        return self.unknown()


class _Names(ast.NodeTransformer):
    """Replacement of expressions by what they stand for; a name that stands for nothing is an error."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = values

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and (found := self.values.get(ast.unparse(node))) is not None:
            return found
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
            return node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):  # len, list, tuple
            return ast.Call(node.func, [self.visit(one) for one in node.args], [])
        if isinstance(node, ast.Name):
            raise _UnclearError
        return self.generic_visit(node)


def _plan(forward: ast.FunctionDef, backward: ast.FunctionDef, operator: str, gradient: str) -> WrittenGradient:
    names = [one.arg for one in forward.args.args]
    if not names or forward.args.vararg or forward.args.kwonlyargs or backward.args.vararg or not backward.args.args:
        raise _UnclearError
    first = _Body(
        forward, operator, {name: ast.Name(_PARAMETER + name, ast.Load()) for name in names[1:]}, is_forward=True
    )
    values = {
        f"{backward.args.args[0].arg}.{key.partition('.')[2]}": one
        for key, one in first.values.items()
        if key.startswith(f"{names[0]}.")
    }
    values[f"{backward.args.args[0].arg}.saved_tensors"] = ast.Tuple(first.saved, ast.Load())
    grads = [one.arg for one in backward.args.args[1:]]
    values |= {name: ast.Name(f"{_GRADIENT}{number}", ast.Load()) for number, name in enumerate(grads)}
    second = _Body(backward, gradient, values, is_forward=False)
    outputs = [_number(one, _RESULT) for one in first.returned]
    if len(outputs) != len(grads) or len(second.returned) != len(names) - 1 or not (first.count and second.count):
        raise _UnclearError
    given = [None if _is_none(one) else _number(_itself(one), _RESULT) for one in second.returned]
    arguments: dict[int | str, ast.expr] = {
        keyword or number: one for number, (keyword, one) in enumerate(first.arguments)
    }
    gradients = dict(zip(names[1:], given, strict=True))
    return WrittenGradient(gradient, arguments, tuple(outputs), tuple(second.arguments), second.count, gradients)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _has_gradient(node: ast.expr | None) -> bool:
    items = node.elts if isinstance(node, ast.Tuple) else [] if node is None else [node]
    return not all(map(_is_none, items))


def _number(node: ast.expr, prefix: str) -> int:
    if not isinstance(node, ast.Name) or not node.id.startswith(prefix):
        raise _UnclearError
    return int(node.id.removeprefix(prefix))


def _itself(node: ast.expr) -> ast.expr:
    """Return the tensor that an expression gives in another form."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        node = node.func.value
    return node


def _keeps_value(one: ast.Assign) -> bool:
    """Return whether an assignment gives one name its own tensor in another form."""
    return len(one.targets) == 1 and ast.unparse(_itself(one.value)) == ast.unparse(one.targets[0])


def _parameter(node: ast.expr) -> tuple[str, str]:
    """Return the parameter of ``forward`` that an argument is, but for its form, and the call that permutes its axes.

    The parameter is empty for anything else.
    """
    node, moved = _itself(node), ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "permute":
        if node.keywords or not all(isinstance(one, ast.Constant) for one in node.args):
            return "", ""
        moved = f".permute({', '.join(map(ast.unparse, node.args))})"
        node = _itself(node.func.value)
    if isinstance(node, ast.Name) and node.id.startswith(_PARAMETER):
        return node.id.removeprefix(_PARAMETER), moved
    return "", ""


def _is_fresh(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in _FRESH


def backward_function(
    plan: WrittenGradient,
    name: str,
    arguments: Sequence[str],
    outputs: Sequence[str],
    operator: str,
    written_to: Collection[int | str] = (),
) -> list[str]:
    """Return the lines of a backward function for ``backward=``; none if it needs more than arguments and outputs.

    Args:
        plan: The autograd function.
        name: The name of the backward function.
        arguments: The arguments of the forward operator.
        outputs: Its outputs.
        operator: The expression of the operator that computes the gradients.
        written_to: The arguments that it writes to, by position and name; each must be a new tensor.
    """
    given = {
        arguments[key] if isinstance(key, int) else key: one
        for key, one in plan.given.items()
        if not isinstance(key, int) or key < len(arguments)
    }
    if any(number >= len(outputs) for number in plan.outputs):
        return []
    if any((keyword or n) in written_to and not _is_fresh(one) for n, (keyword, one) in enumerate(plan.arguments)):
        return []
    own, moved = {}, {}
    known: dict[str, ast.expr] = {ast.unparse(one): ast.Name(argument) for argument, one in given.items()}
    for argument, one in given.items():
        parameter, moved[argument] = _parameter(one)
        if parameter in own and plan.gradients.get(parameter) is not None:
            return []  # the gradient is that of both arguments
        if parameter:
            own[parameter] = argument
        if parameter and not moved[argument]:
            known[_PARAMETER + parameter] = ast.Name(argument)
    known |= {f"{_RESULT}{number}": ast.Name(one) for number, one in enumerate(outputs)}
    known |= {f"{_GRADIENT}{number}": ast.Name(f"grad_{outputs[one]}") for number, one in enumerate(plan.outputs)}
    written = []
    try:
        for keyword, one in plan.arguments:
            text = ast.unparse(_Names(known).visit(copy.deepcopy(one)))
            written.append(f"{keyword}={text}" if keyword else text)
    except _UnclearError:
        return []
    if any(number is not None and parameter not in own for parameter, number in plan.gradients.items()):
        return []
    by_argument = {own[parameter]: number for parameter, number in plan.gradients.items() if parameter in own}
    made = [f"gradient_{number}" for number in range(plan.count)]
    positions = [by_argument.get(argument) for argument in arguments]
    if any(number is not None and number >= plan.count for number in positions):
        return []
    returned = [
        "None" if number is None else made[number] + moved[argument]
        for number, argument in zip(positions, arguments, strict=True)
    ]
    used = {one for argument in written for one in re.findall(r"(?<![\w.])[A-Za-z_]\w*", argument)}
    needed = [one for one in (*arguments, *outputs) if one in used]
    if {*arguments} & {*made, *(f"grad_{one}" for one in outputs)}:
        return []
    keywords = f", *, {', '.join(needed)}" if needed else ""
    return [
        f"def {name}(ctx, {', '.join(f'grad_{one}' for one in outputs)}{keywords}):",
        f"    {', '.join(made)} = {operator}({', '.join(written)})",
        f"    return {', '.join(returned)}{',' if len(returned) == 1 else ''}",
    ]
