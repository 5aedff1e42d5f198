"""Interpreter of kernels and meta functions, in C++ and Python, that follows sizes, dtypes and arguments alone.

It knows what a function certainly does: a name that is assigned in a loop, a function that it does not know, a value that
data decides are unknown, and so is everything that is made of them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ascend_graph.adoption.cpp import lambda_of
from ascend_graph.adoption.cpp_syntax import APPEND_RANGE, FLOAT, FORGET, LAMBDA, SET_ITEM, statements
from ascend_graph.adoption.operations import (
    HOST_OPTIONS,
    SizesIterator,
    between,
    choice,
    combined,
    compared,
    cut,
    default_of,
    is_tensor,
    item_of,
    joined,
    length,
    negated,
    new_like,
    new_tensor,
    node_count,
    operation,
    range_of,
    sliced,
    truth,
    unpacked,
    with_option,
)
from ascend_graph.adoption.values import (
    UNDEFINED,
    UNKNOWN,
    ArgumentValue,
    Choice,
    Closure,
    Constant,
    Device,
    Dtype,
    DtypeOf,
    Element,
    Input,
    NewTensor,
    Operation,
    Options,
    Property,
    Several,
    Sizes,
    SizeValue,
    Slice,
    Unknown,
)

#: Maximum number of statements and expressions that are evaluated for one function.
MAX_STEPS = 20000
#: Maximum nesting of calls into helper functions.
MAX_CALLS = 4
#: Maximum number of nodes in a value; a larger one is unknown.
_MAX_SIZE = 400

_DTYPES = {
    "kFloat": "float32", "kHalf": "float16", "kBFloat16": "bfloat16", "kDouble": "float64", "kInt": "int32", "kLong": "int64",
    "kShort": "int16", "kChar": "int8", "kByte": "uint8", "kBool": "bool", "kFloat32": "float32", "kFloat16": "float16",
    "kInt8": "int8", "kInt16": "int16", "kInt32": "int32", "kInt64": "int64", "kUInt8": "uint8", "kFloat64": "float64",
    "Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Double": "float64", "Int": "int32", "Long": "int64",
    "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "kFloat8_e4m3fn": "float8_e4m3fn",
    "kFloat8_e5m2": "float8_e5m2", "Float8_e4m3fn": "float8_e4m3fn", "Float8_e5m2": "float8_e5m2",
    "half": "float16", "float": "float32", "double": "float64", "long": "int64", "int": "int32", "short": "int16",
}  # fmt: skip
_TORCH_DTYPES = frozenset(
    {
        "float32", "float16", "bfloat16", "float64", "int8", "int16", "int32", "int64", "uint8", "bool", "float8_e4m3fn",
        "float8_e5m2", "complex64", "complex128", "uint16", "uint32", "uint64",
    }
)  # fmt: skip
_SAME = frozenset(
    {
        "contiguous", "value", "c_str", "data", "to_contiguous", "get", "detach", "item_ptr", "vec", "toTensor",
        "expect_int", "guard_int", "sym_int",
    }
)  # fmt: skip
#: Functions that return their only argument as far as sizes are concerned.
_WRAPPERS = frozenset(
    {
        "move", "forward", "string", "SymInt", "int64_t", "int32_t", "uint32_t", "uint64_t", "size_t", "int", "IntArrayRef",
        "SymIntArrayRef", "vector", "SymDimVector", "DimVector", "SmallVector", "string_view", "tuple", "pair", "make_tuple",
        "forward_as_tuple", "make_pair", "tie", "as_const", "asIntArrayRefSlow", "fromIntArrayRefSlow", "Size", "list", "float",
        "double", "bool", "TensorList", "ref", "cref", "static_cast", "optional", "make_optional", "initializer_list", "array",
        "sym_int", "_sym_int",
    }
)  # fmt: skip
_TUPLES = frozenset({"tuple", "pair", "make_tuple", "forward_as_tuple", "make_pair", "tie"})
_MAKERS = frozenset(
    {
        "empty",
        "zeros",
        "ones",
        "empty_symint",
        "zeros_symint",
        "ones_symint",
        "new_empty",
        "new_zeros",
        "new_ones",
        "rand",
        "randn",
    }
)
_LIKE = frozenset({"empty_like", "zeros_like", "ones_like", "rand_like", "full_like"})
#: Allocators of torch_npu: ``(tensor)`` or ``(sizes, options)``.
_ALLOCATORS = frozenset(
    {
        "apply_tensor_without_format", "apply_tensor", "ApplyTensor", "ApplyTensorWithoutFormat", "apply_tensor_with_sizes",
        "ApplyTensorWithSizes", "empty_with_format", "ApplyTensorWithFormat", "apply_tensor_with_format",
    }
)  # fmt: skip
_INNER = frozenset({"begin", "end", "rbegin", "rend", "data", "back", "front", "at"})
_COMPARISONS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "==", ast.IsNot: "!=",
}  # fmt: skip
_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Div: "/"}
_CHECKS = frozenset({"TORCH_CHECK", "TORCH_CHECK_EQ", "_check", "TORCH_INTERNAL_ASSERT", "CHECK", "ASSERT"})


class _TooMuchError(Exception):
    """Function whose evaluation exceeds its limits."""


@dataclass(slots=True)
class Callee:
    """A helper function: its parameters with defaults, and its statements."""

    parameters: tuple[tuple[str, ast.expr | None], ...]
    statements: list[ast.stmt]
    #: True if an integer division is written ``/``.
    is_cpp: bool
    #: Positions of the parameters that the function may assign: references and pointers that are not const.
    written: frozenset[int] = frozenset()


#: Looks a helper function up by its name as written.
Lookup = Callable[[str], "Callee | None"]


@dataclass(slots=True)
class Outcome:
    """Result of a function: the returned value, and the arguments of the calls that were watched."""

    returned: Any = UNKNOWN
    calls: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    #: Ranks that checks at the top of the function require, by argument.
    ranks: dict[str, int] = field(default_factory=dict)
    #: Number of dimensions that every call certainly reads, by argument.
    read: dict[str, int] = field(default_factory=dict)
    #: Names that the function gives to sizes, as proposals.
    hints: dict[Any, str] = field(default_factory=dict)


_NOTHING = object()


def _never_holds(statement: ast.stmt) -> bool:
    """Return whether a statement is ``TORCH_CHECK(false, …)`` or ``assert False``."""
    test: ast.expr | None = None
    if isinstance(statement, ast.Assert):
        test = statement.test
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and statement.value.args:
        call = statement.value
        test = call.args[0] if isinstance(call.func, ast.Name) and call.func.id in _CHECKS else None
    return isinstance(test, ast.Constant) and test.value is False


class Interpreter:
    """Interpreter of one function."""

    def __init__(
        self,
        lookup: Lookup = lambda _: None,
        watched: Callable[[str, ast.Call], str | None] = lambda _, __: None,
        constants: Mapping[str, Any] | None = None,
    ) -> None:
        self.lookup, self.watched = lookup, watched
        self.constants = dict(constants or {})
        self.outcome = Outcome()
        self.steps = 0
        self.depth = 0
        #: Number of undecided conditions around the current statement.
        self.conditional = 0
        self.is_cpp = False

    def run(self, callee: Callee, arguments: list[Any]) -> Outcome:
        """Return the outcome of a call with these arguments; what exceeds the limits is unknown."""
        try:
            self.outcome.returned = self.call(callee, arguments)
        except (_TooMuchError, RecursionError):
            self.outcome.returned = UNKNOWN
            self.outcome.calls.clear()
        return self.outcome

    def call(self, callee: Callee, arguments: list[Any], captured: Mapping[str, Any] | None = None) -> Any:
        scope: dict[str, Any] = dict(captured or {})
        for number, (name, default) in enumerate(callee.parameters):
            if number < len(arguments):
                scope[name] = arguments[number]
            else:
                scope[name] = UNKNOWN if default is None else self.value(default, {})
        before, self.is_cpp = self.is_cpp, callee.is_cpp
        self.depth += 1
        try:
            result = self.block(callee.statements, scope)
        finally:
            self.depth -= 1
            self.is_cpp = before
        return Constant(None) if result is _NOTHING else result

    # ------------------------------------------------------------------------------------------------------- statements

    def step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise _TooMuchError

    def block(self, statements: list[ast.stmt], scope: dict[str, Any]) -> Any:
        """Return what the statements return; :data:`_NOTHING` if they come to their end."""
        for number, one in enumerate(statements):
            self.step()
            if isinstance(one, ast.Return):
                return Constant(None) if one.value is None else self.value(one.value, scope)
            if isinstance(one, ast.Raise) or _never_holds(one):
                return _RAISED
            if isinstance(one, ast.If):
                result = self.branch(one, statements[number + 1 :], scope)
                if result is not _CONTINUE:
                    return result
            elif isinstance(one, ast.While | ast.For | ast.Try | ast.With):
                if any(isinstance(inner, ast.Return) for inner in ast.walk(one)):
                    self.forget(one, scope)
                    return UNKNOWN
                self.watch_inside(one, scope)
                self.forget(one, scope)
            else:
                self.simple(one, scope)
        return _NOTHING

    def watch_inside(self, statement: ast.stmt, scope: dict[str, Any]) -> None:
        """Record watched calls in a loop, with what it assigns unknown."""
        inner = dict(scope)
        self.forget(statement, inner)
        for one in ast.walk(statement):
            if isinstance(one, ast.Call):
                name = self.watched(_called(one), one)
                if name is not None:
                    self.outcome.calls.append((name, tuple(self.value(a, inner) for a in one.args[1:])))

    def forget(self, statement: ast.stmt, scope: dict[str, Any]) -> None:
        for one in ast.walk(statement):
            if isinstance(one, ast.Name) and isinstance(getattr(one, "ctx", None), ast.Store):
                scope[one.id] = UNKNOWN
            elif isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
                held = [scope.get(a.id) if isinstance(a, ast.Name) else None for a in one.args]
                self.change(one.args, [n for n, a in enumerate(held) if not isinstance(a, Input | NewTensor)], scope)
            elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
                # Methods may write: v.push_back(n), y.fill_(0).
                root = one.func.value
                if isinstance(root, ast.Name) and not isinstance(scope.get(root.id), Input | ArgumentValue | NewTensor):
                    scope[root.id] = UNKNOWN

    def branch(self, one: ast.If, rest: list[ast.stmt], scope: dict[str, Any]) -> Any:
        condition = truth(self.value(one.test, scope))
        if isinstance(condition, Constant):
            result = self.block(one.body if condition.value else one.orelse, scope)
            return _CONTINUE if result is _NOTHING else result
        then_scope, else_scope = dict(scope), dict(scope)
        self.conditional += 1
        before = dict(self.outcome.read)
        then = self.block(one.body, then_scope)
        then_read, self.outcome.read = self.outcome.read, dict(before)
        otherwise = self.block(one.orelse, else_scope)
        self.conditional -= 1
        self.merge_reads(then_read, then is _RAISED, otherwise is _RAISED, then_scope, else_scope)
        if then is _RAISED or otherwise is _RAISED:
            # What raises does not return: the other branch is the function.
            taken, result = (else_scope, otherwise) if then is _RAISED else (then_scope, then)
            if then is _RAISED and otherwise is _RAISED:
                return _RAISED
            scope.clear()
            scope.update(taken)
            if then is _RAISED:
                self.learn(negated(condition))
            return _CONTINUE if result is _NOTHING else result
        if then is _NOTHING and otherwise is _NOTHING:
            for name in {*then_scope, *else_scope}:
                scope[name] = choice(condition, then_scope.get(name, UNKNOWN), else_scope.get(name, UNKNOWN))
            return _CONTINUE
        self.conditional += 1
        before = dict(self.outcome.read)
        if then is _NOTHING:
            then = self.block(rest, then_scope)
        elif otherwise is _NOTHING:
            otherwise = self.block(rest, else_scope)
        self.conditional -= 1
        if then is not _RAISED and otherwise is not _RAISED:
            self.outcome.read = before
        if then is _RAISED:
            return otherwise
        if otherwise is _RAISED:
            return then
        then = Constant(None) if then is _NOTHING else then
        otherwise = Constant(None) if otherwise is _NOTHING else otherwise
        return choice(condition, then, otherwise)

    def merge_reads(
        self,
        then_read: dict[str, int],
        then_raises: bool,
        else_raises: bool,
        then_scope: dict[str, Any],
        else_scope: dict[str, Any],
    ) -> None:
        """Keep the reads of both branches; one that raises, or leaves a variable undefined, is not taken by valid calls."""
        names = {*then_scope} & {*else_scope}
        then_bad = then_raises or any(then_scope[n] == UNDEFINED and else_scope[n] != UNDEFINED for n in names)
        else_bad = else_raises or any(else_scope[n] == UNDEFINED and then_scope[n] != UNDEFINED for n in names)
        else_read = self.outcome.read
        if then_bad and not else_bad:
            return
        if else_bad and not then_bad:
            self.outcome.read = then_read
            return
        self.outcome.read = {
            tensor: min(then_read[tensor], else_read[tensor]) for tensor in then_read if tensor in else_read
        }

    def unsure(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        """Return the value of an expression that is evaluated in some calls only."""
        before = dict(self.outcome.read)
        self.conditional += 1
        try:
            return self.value(node, scope)
        finally:
            self.conditional -= 1
            self.outcome.read = before

    def simple(self, one: ast.stmt, scope: dict[str, Any]) -> None:
        if isinstance(one, ast.Assign):
            value = self.value(one.value, scope)
            for target in one.targets:
                self.assign(target, value, scope)
        elif isinstance(one, ast.AnnAssign):
            if one.value is not None:
                self.assign(one.target, self.value(one.value, scope), scope)
        elif isinstance(one, ast.AugAssign):
            made = self.value(ast.BinOp(one.target, one.op, one.value), scope)
            self.assign(one.target, made, scope)
        elif isinstance(one, ast.Assert):
            self.learn(self.value(one.test, scope))
        elif isinstance(one, ast.Expr):
            self.expression_statement(one.value, scope)

    def expression_statement(self, value: ast.expr, scope: dict[str, Any]) -> None:
        if not isinstance(value, ast.Call):
            return
        name = _called(value)
        if name == APPEND_RANGE:
            self.append_range(value, scope)
        elif name == SET_ITEM:
            self.set_item(value, scope)
        elif name.rpartition("::")[2] in _CHECKS or name.endswith("_check"):
            if value.args:
                self.learn(self.value(value.args[0], scope))
        elif isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Name):
            self.method_statement(value, value.func, value.func.value.id, scope)
        else:
            self.value(value, scope)

    def method_statement(self, call: ast.Call, function: ast.Attribute, name: str, scope: dict[str, Any]) -> None:
        held = scope.get(name, UNKNOWN)
        arguments = [self.value(one, scope) for one in call.args]
        if function.attr in ("push_back", "emplace_back", "append") and len(arguments) == 1:
            if isinstance(held, Sizes) and not isinstance(arguments[0], NewTensor | Input):
                scope[name] = Sizes((*held.items, arguments[0]))
            elif isinstance(held, Several) or held == Sizes(()):
                scope[name] = Several((*held.items, arguments[0]))
            else:
                scope[name] = UNKNOWN
        elif function.attr in ("reserve", "clear") and isinstance(held, Sizes):
            scope[name] = Sizes(()) if function.attr == "clear" else held
        elif function.attr.endswith("_") or isinstance(held, Input | ArgumentValue | NewTensor | Element):
            self.value(call, scope)  # writes values, not sizes
            if function.attr in ("resize_", "set_", "unsqueeze_", "squeeze_", "transpose_", "t_", "swap_"):
                scope[name] = UNKNOWN
        else:
            if name in scope:
                scope[name] = UNKNOWN
            if self.is_cpp:
                self.change_numbers(call.args, arguments, scope)

    def set_item(self, call: ast.Call, scope: dict[str, Any]) -> None:
        target, index, value = call.args
        assert isinstance(target, ast.Name)
        held, position, made = scope.get(target.id), self.value(index, scope), self.value(value, scope)
        number = position.value if isinstance(position, Constant) else None
        if isinstance(held, Input | NewTensor):
            return  # values of a tensor
        if not isinstance(held, Sizes) or not isinstance(number, int) or isinstance(made, Unknown):
            scope[target.id] = UNKNOWN
            return
        items = list(held.items)
        if not any(isinstance(one, Slice) for one in items) and -len(items) <= number < len(items):
            items[number] = made
        elif number == -1 and items and isinstance(items[-1], Slice) and (items[-1].stop or 0) <= 0:
            last = items[-1]
            items[-1:] = [Slice(last.tensor, last.start, (last.stop or 0) - 1), made]
        elif number == -1 and items and not isinstance(items[-1], Slice):
            items[-1] = made
        else:
            scope[target.id] = UNKNOWN
            return
        scope[target.id] = Sizes(tuple(items))

    def append_range(self, call: ast.Call, scope: dict[str, Any]) -> None:
        variable, start, stop, *appended = call.args
        assert isinstance(variable, ast.Constant)
        first, last = self.value(start, scope), self.value(stop, scope)
        for one in appended:
            assert isinstance(one, ast.Tuple)
            target = one.elts[0]
            assert isinstance(target, ast.Name)
            held = scope.get(target.id, UNKNOWN)
            tensor = self.indexed_tensor(one.elts[1], str(variable.value), scope)
            items = range_of(tensor, first, last) if tensor is not None else None
            scope[target.id] = (
                Sizes((*held.items, *items)) if items is not None and isinstance(held, Sizes) else UNKNOWN
            )

    def indexed_tensor(self, value: ast.expr, variable: str, scope: dict[str, Any]) -> str | None:
        """Return the argument of ``x.size(i)`` or ``x.sizes()[i]``, or None."""
        owner: ast.expr
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr in ("size", "sym_size")
        ):
            owner, index = value.func.value, value.args[0] if value.args else value
        elif isinstance(value, ast.Subscript):
            owner, index = value.value, value.slice
        else:
            return None
        if not isinstance(index, ast.Name) or index.id != variable:
            return None
        found = self.value(owner, scope)
        if (
            isinstance(found, Sizes)
            and len(found.items) == 1
            and found.items[0] == Slice(getattr(found.items[0], "tensor", ""))
        ):
            return str(found.items[0].tensor)
        return found.name if isinstance(found, Input) else None

    def assign(self, target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            scope[target.id] = value if node_count(value) <= _MAX_SIZE else UNKNOWN
            if isinstance(value, SizeValue) and self.depth == 1 and not self.conditional:
                self.outcome.hints.setdefault(value, target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            items = unpacked(value, len(target.elts))
            for one, item in zip(target.elts, items, strict=True):
                self.assign(one, item, scope)
        else:
            root = target
            while isinstance(root, ast.Attribute | ast.Subscript | ast.Starred):
                root = root.value
            if isinstance(root, ast.Name) and not isinstance(scope.get(root.id), Input | NewTensor):
                scope[root.id] = UNKNOWN

    def learn(self, condition: Any) -> None:
        """Take the ranks from a condition that holds in every call."""
        if self.conditional:
            return
        if isinstance(condition, Operation) and condition.operator == "and":
            for one in condition.operands:
                self.learn(one)
        elif isinstance(condition, Operation) and condition.operator == "==":
            for left, right in (condition.operands, condition.operands[::-1]):
                known = isinstance(right, Constant) and isinstance(right.value, int)
                if known and isinstance(left, Property) and left.what == "rank":
                    self.outcome.ranks.setdefault(left.tensor, right.value)

    # ------------------------------------------------------------------------------------------------------ expressions

    def value(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        self.step()
        made = self.evaluated(node, scope)
        if isinstance(made, SizeValue) and isinstance(node, ast.Call | ast.Subscript):
            needed = made.axis + 1 if made.axis >= 0 else -made.axis
            self.outcome.read[made.tensor] = max(needed, self.outcome.read.get(made.tensor, 0))
        return made if node_count(made) <= _MAX_SIZE else UNKNOWN

    def evaluated(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        if isinstance(node, ast.Constant):
            return Constant(node.value) if isinstance(node.value, int | float | str | bool | None) else UNKNOWN
        if isinstance(node, ast.Name):
            return self.named(node.id, scope)
        if isinstance(node, ast.Attribute):
            return self.attribute(node, scope)
        if isinstance(node, ast.Call):
            return self.called(node, scope)
        if isinstance(node, ast.List | ast.Tuple):
            return self.listed(node, scope)
        if isinstance(node, ast.Subscript):
            return self.subscript(node, scope)
        if isinstance(node, ast.BinOp):
            return self.binary(node, scope)
        if isinstance(node, ast.UnaryOp):
            inner = self.value(node.operand, scope)
            if isinstance(node.op, ast.USub):
                if isinstance(inner, Constant) and isinstance(inner.value, int | float):
                    return Constant(-inner.value)
                return operation("-", Constant(0), inner)
            return negated(truth(inner)) if isinstance(node.op, ast.Not) else UNKNOWN
        if isinstance(node, ast.BoolOp):
            parts = [truth(self.value(node.values[0], scope))]
            parts += [truth(self.unsure(one, scope)) for one in node.values[1:]]
            return combined("and" if isinstance(node.op, ast.And) else "or", parts)
        if isinstance(node, ast.Compare):
            return self.compared(node, scope)
        if isinstance(node, ast.IfExp):
            condition = truth(self.value(node.test, scope))
            then, otherwise = self.unsure(node.body, scope), self.unsure(node.orelse, scope)
            return choice(condition, then, otherwise)
        return UNKNOWN

    def named(self, name: str, scope: dict[str, Any]) -> Any:
        if name in scope:
            return UNKNOWN if scope[name] == UNDEFINED else scope[name]
        last = name.rpartition("::")[2]
        if "::" in name and last in _DTYPES:
            return Dtype(_DTYPES[last])
        if last in ("kMeta", "kPrivateUse1", "PrivateUse1", "NPU", "Meta"):
            return Device(True)
        if last in ("kCPU", "CPU"):
            return Device(False)
        if last in ("nullopt", "None"):
            return Constant(None)
        found = self.constants.get(name, self.constants.get(last, UNKNOWN))
        return self.value(found, {}) if isinstance(found, ast.expr) else found

    def attribute(self, node: ast.Attribute, scope: dict[str, Any]) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id == "torch" and "torch" not in scope:
            return Dtype(_DTYPES.get(node.attr, node.attr)) if node.attr in {*_TORCH_DTYPES, *_DTYPES} else UNKNOWN
        owner = self.value(node.value, scope)
        if node.attr in ("first", "second") and isinstance(owner, Several):
            return item_of(owner, Constant(0 if node.attr == "first" else 1))
        return self.member(owner, node.attr)

    def member(self, owner: Any, name: str) -> Any:
        """Return ``owner.name`` or ``owner.name()``."""
        if isinstance(owner, Choice):
            return choice(owner.condition, self.member(owner.then, name), self.member(owner.otherwise, name))
        if isinstance(owner, Element):
            owner = Input(f"{owner.name}[{owner.index}]")
        if name in ("shape", "sizes", "sym_sizes"):
            if isinstance(owner, Input):
                return Sizes((Slice(owner.name),))
            return owner.sizes if isinstance(owner, NewTensor) else UNKNOWN
        if name in ("dtype", "scalar_type", "type"):
            if isinstance(owner, Input):
                return DtypeOf(owner.name)
            return owner.dtype if isinstance(owner, NewTensor) else owner if isinstance(owner, Dtype) else UNKNOWN
        if name in ("dim", "ndim", "ndimension"):
            if isinstance(owner, Input):
                return Property(owner.name, "rank")
            return length(owner.sizes) if isinstance(owner, NewTensor) else UNKNOWN
        if name == "options":
            if isinstance(owner, Input):
                return Options(DtypeOf(owner.name))
            return Options(owner.dtype) if isinstance(owner, NewTensor) else UNKNOWN
        if name == "device":
            return Device(True) if isinstance(owner, Input | NewTensor) else UNKNOWN
        if name in ("has_value", "defined"):
            if isinstance(owner, Input):
                return Property(owner.name, "present")
            if isinstance(owner, ArgumentValue):
                return Operation("!=", (owner, Constant(None)))
            return Constant(owner != Constant(None)) if isinstance(owner, NewTensor | Constant) else UNKNOWN
        if name in ("numel", "sym_numel", "nelement") and isinstance(owner, Input):
            return Property(owner.name, "numel")
        if name in ("strides", "sym_strides") and isinstance(owner, Input):
            return Property(owner.name, "strides")
        if name in ("size", "length"):
            return length(owner)
        if name == "back" and isinstance(owner, Sizes):
            return item_of(owner, Constant(-1))
        if name == "front" and isinstance(owner, Sizes):
            return item_of(owner, Constant(0))
        if name == "empty" and isinstance(owner, Input | ArgumentValue):
            return UNKNOWN
        return owner if name in _SAME else UNKNOWN

    def called(self, node: ast.Call, scope: dict[str, Any]) -> Any:
        name = _called(node)
        watched = self.watched(name, node)
        if watched is not None:
            self.outcome.calls.append((watched, tuple(self.value(one, scope) for one in node.args[1:])))
            return UNKNOWN
        if any(isinstance(one, ast.Starred) for one in node.args) and name.rpartition(".")[2] not in _MAKERS:
            return UNKNOWN
        last = name.rpartition("::")[2]
        keywords = {one.arg: self.value(one.value, scope) for one in node.keywords if one.arg}
        if isinstance(node.func, ast.Attribute):
            owner_node = node.func.value
            is_module = (
                isinstance(owner_node, ast.Name) and owner_node.id not in scope and owner_node.id not in self.constants
            )
            if not is_module:
                owner = self.value(owner_node, scope)
                made = self.method(owner, node, scope, keywords)
                if self.is_cpp and isinstance(owner, Unknown) and isinstance(made, Unknown):
                    self.change_numbers(node.args, [self.value(one, scope) for one in node.args], scope)
                return made
            last = node.func.attr
        if isinstance(node.func, ast.Subscript) and isinstance(node.func.value, ast.Name):
            index = node.func.slice  # std::get<1>(value), RUN<NAME>(…)
            if isinstance(index, ast.Constant) and isinstance(self.constants.get(str(index.value)), ast.expr):
                named = self.value(self.constants[str(index.value)], {})
                watched = self.watched(name, ast.Call(node.func, [ast.Name(str(getattr(named, "value", "")))], []))
                if watched is not None:
                    self.outcome.calls.append((watched, tuple(self.value(one, scope) for one in node.args)))
                    return UNKNOWN
            if isinstance(index, ast.Constant) and str(index.value).isdigit() and len(node.args) == 1:
                return item_of(self.value(node.args[0], scope), Constant(int(str(index.value))))
            return UNKNOWN
        return self.function(name, last, node, scope, keywords)

    def function(self, name: str, last: str, node: ast.Call, scope: dict[str, Any], keywords: Mapping[str, Any]) -> Any:
        if last in _MAKERS:
            return self.made(node.args, scope, keywords, None)
        arguments = [self.value(one, scope) for one in node.args]
        if last in ("full", "full_symint") and arguments:
            options = arguments[2:]
            return (
                new_tensor(arguments[0], keywords.get("dtype"), options, keywords)
                if "dtype" in keywords or len(arguments) > 2
                else UNKNOWN
            )
        if last in _LIKE or (last in _ALLOCATORS and len(arguments) == 1):
            return new_like(arguments, keywords)
        if last in _ALLOCATORS and len(arguments) >= 2:
            return new_tensor(arguments[0], None, arguments[1:2], keywords)
        if last == "<default>":
            return default_of(str(node.args[0].value) if isinstance(node.args[0], ast.Constant) else "")
        if last == "value_or_else" and arguments:
            return arguments[0]
        if last in ("dtype", "device") and len(arguments) == 1:
            return with_option(HOST_OPTIONS, arguments[0])
        if last == "TensorOptions":
            made: Any = HOST_OPTIONS
            for one in arguments:
                made = with_option(made, one)
            return made
        if last in ("Tensor", "nullopt_t") and (
            not arguments or arguments[0] in (Constant(None), Sizes((Constant(None),)))
        ):
            return Constant(None)
        if last in ("max", "min") and len(arguments) == 2:
            return operation(last, *arguments)
        if last == "len" and len(arguments) == 1:
            return length(arguments[0])
        if last in _TUPLES:
            if len(arguments) == 1 and isinstance(arguments[0], Sizes | Several):
                arguments = list(arguments[0].items)
            return Several(tuple(arguments))
        if last in _WRAPPERS or last.startswith(("SmallVector", "vector", "array")):
            return self.wrapped(last, arguments)
        if last == FLOAT:
            # Arithmetic with fractions is not that of sizes.
            return arguments[0] if isinstance(arguments[0], Constant | ArgumentValue) else UNKNOWN
        if last == LAMBDA:
            return Closure(str(node.args[0].value)) if isinstance(node.args[0], ast.Constant) else UNKNOWN
        if isinstance(scope.get(name), Closure):
            made = self.closure(scope[name].text)
            if made is None or len(made.parameters) != len(arguments) or self.depth >= MAX_CALLS:
                return UNKNOWN
            return self.call(made, arguments, scope)
        if last == FORGET:
            self.change(node.args, range(len(node.args)), scope)
            return UNKNOWN
        helper = self.lookup(name) if self.depth < MAX_CALLS else None
        if helper is not None and len(helper.parameters) >= len(arguments) and not keywords:
            result = self.call(helper, arguments)
            for position in helper.written:
                one = node.args[position] if position < len(node.args) else None
                if isinstance(one, ast.Name) and one.id in scope:
                    scope[one.id] = UNKNOWN  # a tensor, too: the helper may assign another
            self.change(node.args, helper.written, scope)
            return UNKNOWN if result is _RAISED else result
        if self.is_cpp:
            self.change_numbers(node.args, arguments, scope)
        return UNKNOWN

    @staticmethod
    def closure(text: str) -> Callee | None:
        """Return a lambda as a function, or None."""
        function = lambda_of(text, "", 0)
        if function is None:
            return None
        parameters = tuple((p.name, None) for p in function.parameters)
        return Callee(parameters, statements(function.body), True)

    def change_numbers(self, arguments: list[ast.expr], values: list[Any], scope: dict[str, Any]) -> None:
        """Make what an unknown function may take by reference unknown; kernels do not resize their tensors."""
        tensors = Input | Element | NewTensor
        self.change(arguments, [n for n, one in enumerate(values) if not isinstance(one, tensors)], scope)

    @staticmethod
    def change(arguments: list[ast.expr], positions: Iterable[int], scope: dict[str, Any]) -> None:
        """Make the variables that a call may assign unknown."""
        for position in positions:
            one = arguments[position] if position < len(arguments) else None
            # f(n), f(v[0]) and f(v.begin(), v.end()) may write.
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _INNER:
                one = one.func.value
            while isinstance(one, ast.Subscript):
                one = one.value
            if isinstance(one, ast.Name) and one.id in scope and not isinstance(scope[one.id], Input | NewTensor):
                scope[one.id] = UNKNOWN

    def wrapped(self, last: str, arguments: list[Any]) -> Any:
        if not arguments:
            return Sizes(()) if last not in ("string", "optional") else Constant(None)
        if len(arguments) == 1:
            return arguments[0]
        if len(arguments) == 2 and "ector" in last and isinstance(arguments[0], Constant):
            count = arguments[0].value  # vector(n, value)
            if isinstance(count, int) and 0 <= count <= 16:
                return Sizes((arguments[1],) * count)
        if len(arguments) == 2 and all(isinstance(one, SizesIterator) for one in arguments):
            begin, end = arguments
            return between(begin, end)
        return UNKNOWN

    def method(self, owner: Any, node: ast.Call, scope: dict[str, Any], keywords: Mapping[str, Any]) -> Any:
        assert isinstance(node.func, ast.Attribute)
        name = node.func.attr
        if name in _MAKERS:
            return self.made(node.args, scope, keywords, owner)
        arguments = [self.value(one, scope) for one in node.args]
        if isinstance(owner, Element):
            owner = Input(f"{owner.name}[{owner.index}]")
        if name in ("size", "sym_size") and arguments:
            return item_of(self.member(owner, "sizes"), arguments[0])
        if name in ("stride", "sym_stride"):
            axis = arguments[0] if arguments else None
            if isinstance(owner, Input) and axis is None:
                return Property(owner.name, "strides")
            if isinstance(owner, Input) and isinstance(axis, Constant) and isinstance(axis.value, int):
                return Property(owner.name, f"stride:{axis.value}")
            if isinstance(owner, Choice) and isinstance(axis, Constant):
                return UNKNOWN
            return UNKNOWN
        if name in ("begin", "end", "cbegin", "cend") and not arguments:
            items = (
                owner if isinstance(owner, Sizes) else self.member(owner, "sizes") if isinstance(owner, Input) else None
            )
            return SizesIterator(items, 0, name.endswith("end")) if isinstance(items, Sizes) else UNKNOWN
        if (
            name in ("dtype", "device", "layout", "pinned_memory", "requires_grad")
            and arguments
            and isinstance(owner, Options)
        ):
            return with_option(owner, arguments[0]) if name in ("dtype", "device") else UNKNOWN
        if name == "value_or" and len(arguments) == 1:
            if isinstance(owner, ArgumentValue):
                return choice(Operation("!=", (owner, Constant(None))), owner, arguments[0])
            return owner if isinstance(owner, Input) and arguments[0] == Constant(None) else UNKNOWN
        if name in ("slice", "vec") and isinstance(owner, Sizes):
            return sliced(owner, arguments) if name == "slice" else owner
        if name in ("clone", "contiguous") and isinstance(owner, Input):
            # As an argument of a call it is the argument; as a return it is a new tensor, which callers see to.
            return owner if name == "contiguous" else UNKNOWN
        if name in ("to",) and isinstance(owner, Input):
            return UNKNOWN
        return self.member(owner, name) if not arguments else UNKNOWN

    def made(self, nodes: list[ast.expr], scope: dict[str, Any], keywords: Mapping[str, Any], owner: Any) -> Any:
        """Return the tensor that ``empty``, ``zeros`` and the like make."""
        arguments: list[Any] = []
        for one in nodes:
            if isinstance(one, ast.Starred):
                inner = self.value(one.value, scope)
                if not isinstance(inner, Sizes):
                    return UNKNOWN
                arguments.append(inner)
            else:
                arguments.append(self.value(one, scope))
        sizes = [one for one in arguments if not isinstance(one, Options | Dtype | DtypeOf | Device)]
        options = [one for one in arguments if isinstance(one, Options | Dtype | DtypeOf | Device)]
        if "size" in keywords:
            sizes = [keywords["size"]]
        if not sizes or any(isinstance(one, Unknown | Several) for one in sizes):
            return UNKNOWN
        if any(isinstance(one, Choice) for one in arguments) and len(arguments) != len(sizes) + len(options):
            return UNKNOWN
        if len(sizes) > 1 and any(
            isinstance(one, Choice) and isinstance(one.then, Options | Dtype | DtypeOf) for one in sizes
        ):
            return UNKNOWN
        shape = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], Sizes | Choice) else joined(sizes)
        default: Any = Dtype("float32")
        if owner is not None:
            default = self.member(owner, "dtype")
        base = Options(default, owner is not None)
        return new_tensor(shape, keywords.get("dtype"), options, keywords, base)

    def listed(self, node: ast.List | ast.Tuple, scope: dict[str, Any]) -> Any:
        items: list[Any] = []
        for one in node.elts:
            if isinstance(one, ast.Starred):
                inner = self.value(one.value, scope)
                if not isinstance(inner, Sizes):
                    return UNKNOWN
                items += inner.items
            else:
                items.append(self.value(one, scope))
        if any(isinstance(one, NewTensor | Input) or (isinstance(one, Choice) and is_tensor(one)) for one in items):
            return Several(tuple(items))
        return Sizes(tuple(items))

    def subscript(self, node: ast.Subscript, scope: dict[str, Any]) -> Any:
        owner = self.value(node.value, scope)
        if isinstance(node.slice, ast.Slice):
            bounds = [None if one is None else self.value(one, scope) for one in (node.slice.lower, node.slice.upper)]
            if node.slice.step is not None or not isinstance(owner, Sizes):
                return UNKNOWN
            return cut(owner, bounds[0], bounds[1])
        return item_of(owner, self.value(node.slice, scope))

    def binary(self, node: ast.BinOp, scope: dict[str, Any]) -> Any:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        operator = _ARITHMETIC.get(type(node.op))
        if operator == "+" and isinstance(left, Sizes) and isinstance(right, Sizes):
            return Sizes((*left.items, *right.items))
        if operator == "/" and self.is_cpp:
            operator = "//"
        if operator is None or (operator == "/"):
            return UNKNOWN
        return operation(operator, left, right)

    def compared(self, node: ast.Compare, scope: dict[str, Any]) -> Any:
        if len(node.ops) != 1:
            return UNKNOWN
        left, right = self.value(node.left, scope), self.value(node.comparators[0], scope)
        if isinstance(node.ops[0], ast.In | ast.NotIn):
            items = right.items if isinstance(right, Sizes | Several) else ()
            found = combined("or", [compared("==", left, one) for one in items]) if items else UNKNOWN
            return found if isinstance(node.ops[0], ast.In) else negated(found)
        operator = _COMPARISONS.get(type(node.ops[0]))
        return UNKNOWN if operator is None else compared(operator, left, right)


_RAISED = object()
_CONTINUE = object()


def _called(node: ast.Call) -> str:
    function = node.func
    parts = []
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    function = function.value if isinstance(function, ast.Subscript) else function
    parts.append(function.id if isinstance(function, ast.Name) else "")
    return ".".join(reversed(parts))
