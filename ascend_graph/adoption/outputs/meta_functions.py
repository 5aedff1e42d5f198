"""Meta functions in Python, for outputs that a shape relation does not express: other strides, lists, nested conditions."""

from __future__ import annotations

import keyword
from typing import Any

from ascend_graph.adoption.interpreter.evaluation import Outcome
from ascend_graph.adoption.interpreter.values import (
    ArgumentValue,
    Assembled,
    Choice,
    Constant,
    Dtype,
    DtypeOf,
    Input,
    NewTensor,
    Operation,
    Property,
    Repeated,
    Several,
    SizeRun,
    Sizes,
    SizeValue,
    Slice,
    Unknown,
    is_known,
)
from ascend_graph.adoption.outputs.input_patterns import UncertainError, not_followed
from ascend_graph.adoption.outputs.relations import NOTHING_RETURNED
from ascend_graph.binding.op_schema import ArgumentKind, OpSchema, SchemaReturn

#: Longest line of a body; a longer one is no line that anybody checks.
MAX_LINE = 1200
_ARITHMETIC = frozenset({"+", "-", "*", "//", "%"})
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})


def meta_function_of(outcome: Outcome, schema: OpSchema, name: str) -> list[str]:
    """Return the lines of a meta function that makes what a function returns.

    Args:
        outcome: The outcome of the function.
        schema: The schema; the meta function has its arguments.
        name: The name of the meta function.

    Raises:
        UncertainError: Some part is not certain; the message says which.
    """
    writer = _Writer(schema)
    returned = outcome.returned
    items = list(returned.items) if isinstance(returned, Several | Sizes) else [returned]
    if any(one.kind is not ArgumentKind.TENSOR for one in schema.returns):
        raise UncertainError("it returns something else than tensors")
    if len(schema.returns) == 1 and schema.returns[0].list_depth:
        items = [returned]
    if isinstance(returned, Unknown):
        raise not_followed(returned)
    if returned == Constant(None):
        raise UncertainError(NOTHING_RETURNED)
    if len(items) != len(schema.returns):
        raise UncertainError(f"{len(items)} value(s) are returned for {len(schema.returns)} return(s)")
    shown = []
    for item, declared in zip(items, schema.returns, strict=True):
        if declared.alias_of is not None and item != Input(declared.alias_of):
            raise UncertainError(f"the schema says that it returns {declared.alias_of} itself, and it does not")
        if declared.list_depth:
            shown.append(writer.tensors(item, declared))
        else:
            shown.append(writer.tensor(item, aliased=declared.alias_of is not None))
    body = f"    return {', '.join(shown)}"
    if len(body) > MAX_LINE:
        raise UncertainError("its meta function would be too long to read")
    return [f"def {name}({writer.parameters()}):", body]


class _Writer:
    """Writer of the values of one function as Python code."""

    def __init__(self, schema: OpSchema) -> None:
        self.schema = schema
        self.arguments = {one.name: one for one in schema.arguments}
        if any(keyword.iskeyword(one) or one in ("torch", "math", "len", "max", "min") for one in self.arguments):
            raise UncertainError("an argument has the name of something that its meta function needs")

    def parameters(self) -> str:
        parts = []
        keywords = False
        for one in self.schema.arguments:
            if one.kwarg_only and not keywords:
                keywords = True
                parts.append("*")
            value = list(one.default) if isinstance(one.default, tuple) else one.default
            parts.append(f"{one.name}={value!r}" if one.has_default else one.name)
        return ", ".join(parts)

    def source(self) -> str:
        """Return a tensor that every call has: new tensors are on its device."""
        for one in self.schema.arguments:
            if one.is_tensor and not one.optional and one.list_depth < 2 and not one.optional_elements:
                return f"{one.name}[0]" if one.list_depth else one.name
        raise UncertainError("no argument is certainly a tensor, whose device its outputs have")

    def tensor(self, value: Any, *, aliased: bool = False) -> str:
        if value == Constant(None):
            return "None"
        if isinstance(value, Input) and aliased:
            return value.name
        if isinstance(value, Choice):
            return (
                f"({self.tensor(value.then)} if {self.condition(value.condition)} else {self.tensor(value.otherwise)})"
            )
        if not isinstance(value, NewTensor) or not is_known(value):
            raise not_followed(value)
        if value.on_host:
            raise UncertainError("it is on the CPU")
        if value.view is not None:
            return self.view(value)
        if value.like and value.sizes == Sizes((Slice(value.like),)):
            self.known(value.like)
            dtype = "" if value.dtype == DtypeOf(value.like) else f", dtype={self.dtype(value.dtype)}"
            return f"torch.empty_like({value.like}{dtype})"
        return f"{self.source()}.new_empty({self.sizes(value.sizes)}, dtype={self.dtype(value.dtype)})"

    def tensors(self, value: Any, declared: SchemaReturn) -> str:
        """Return a list of new tensors."""
        if isinstance(value, Choice):
            then, otherwise = (self.tensors(one, declared) for one in (value.then, value.otherwise))
            return f"({then} if {self.condition(value.condition)} else {otherwise})"
        if isinstance(value, Assembled) and len(value.parts) == 1 and isinstance(value.parts[0], Repeated):
            repeated = value.parts[0]
            return f"[{self.tensor(repeated.item)} for _ in range({self.number(repeated.count)})]"
        if isinstance(value, Unknown):
            raise not_followed(value)
        if not isinstance(value, Several | Sizes) or declared.list_depth > 1 or declared.alias_of is not None:
            raise UncertainError("it returns a list of tensors whose length is not certain")
        if Constant(None) in value.items:
            raise UncertainError("a tensor of the list that it returns is undefined")
        return f"[{', '.join(map(self.tensor, value.items))}]"

    def view(self, value: NewTensor) -> str:
        assert value.view is not None
        base, name, arguments = value.view
        if isinstance(base, Input) and base.contiguous is None:
            raise UncertainError(f"the memory of {base.name} is contiguous in some calls")
        copied = ".contiguous()" if getattr(base, "contiguous", False) else ""
        owner = f"{base.name}{copied}" if isinstance(base, Input) else self.tensor(base)
        if name in ("view", "reshape", "permute"):
            return f"{owner}.{name}({self.sizes(arguments[0])})"
        if name == "to":
            return f"{owner}.to({self.dtype(arguments[0])})"
        return f"{owner}.{name}({', '.join(map(self.number, arguments))})"

    def sizes(self, value: Any) -> str:
        if isinstance(value, Choice):
            return f"({self.sizes(value.then)} if {self.condition(value.condition)} else {self.sizes(value.otherwise)})"
        if not isinstance(value, Sizes | Assembled):
            raise UncertainError("its shape is not certain")
        parts = []
        for one in value.items if isinstance(value, Sizes) else value.parts:
            if isinstance(one, SizeRun):
                start = "" if one.start == Constant(0) else self.number(one.start)
                stop = "" if one.stop is None else self.number(one.stop)
                parts.append(f"*{self.known(one.tensor)}.shape[{start}:{stop}]")
            elif isinstance(one, Repeated):
                parts.append(f"*({self.number(one.item)},) * {self.number(one.count)}")
            elif isinstance(one, Slice):
                whole = one == Slice(one.tensor)
                bounds = "" if whole else f"[{one.start or ''}:{'' if one.stop is None else one.stop}]"
                parts.append(f"*{self.known(one.tensor)}.shape{bounds}")
            elif isinstance(one, ArgumentValue) and self.is_shape(one.name):
                parts.append(f"*{one.name}")
            else:
                parts.append(self.number(one))
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def is_shape(self, name: str) -> bool:
        """Return whether an argument is a list of integers."""
        argument = self.arguments.get(name)
        return argument is not None and argument.kind is ArgumentKind.INT and argument.list_depth == 1

    def known(self, tensor: str) -> str:
        """Return a tensor's name if it is an argument."""
        argument = self.arguments.get(tensor.partition("[")[0])
        if argument is None or not argument.is_tensor or (argument.list_depth > 0) != ("[" in tensor):
            raise UncertainError(f"{tensor} is not a tensor of the schema")
        return tensor

    def dtype(self, value: Any) -> str:
        if isinstance(value, Dtype):
            return f"torch.{value.name}"
        if isinstance(value, DtypeOf):
            return f"{self.known(value.tensor)}.dtype"
        if isinstance(value, Choice) and value.condition == Operation("!=", (value.then, Constant(None))):
            argument = self.arguments.get(getattr(value.then, "name", ""))
            if argument is not None and argument.kind is ArgumentKind.DTYPE:
                return f"({argument.name} if {argument.name} is not None else {self.dtype(value.otherwise)})"
        if isinstance(value, Choice):
            return f"({self.dtype(value.then)} if {self.condition(value.condition)} else {self.dtype(value.otherwise)})"
        if isinstance(value, ArgumentValue):
            argument = self.arguments.get(value.name)
            if argument is not None and argument.kind is ArgumentKind.DTYPE and not argument.optional:
                return value.name
        raise UncertainError("its dtype is not certain")

    def number(self, value: Any) -> str:
        if isinstance(value, Constant) and isinstance(value.value, int):
            return repr(int(value.value))
        if isinstance(value, SizeValue):
            return f"{self.known(value.tensor)}.shape[{value.axis}]"
        if isinstance(value, ArgumentValue):
            argument = self.arguments.get(value.name)
            number = argument is not None and argument.kind in (ArgumentKind.INT, ArgumentKind.BOOL)
            if argument is None or not number or argument.list_depth:
                raise UncertainError(f"{value.name} is not certainly a number")
            return value.name
        if isinstance(value, Property) and value.what in ("rank", "numel", "len"):
            if value.what == "len":
                if value.tensor not in self.arguments:
                    raise UncertainError(f"{value.tensor} is not an argument")
                return f"len({value.tensor})"
            return f"{self.known(value.tensor)}.{'dim' if value.what == 'rank' else 'numel'}()"
        if isinstance(value, Operation):
            if value.operator == "prod" and isinstance(value.operands[0], ArgumentValue):
                return f"math.prod({value.operands[0].name})"
            if value.operator == "prod":
                return f"math.prod({self.sizes(value.operands[0])})"
            if value.operator == "size":
                return f"{self.known(value.operands[0].name)}.shape[{self.number(value.operands[1])}]"
            if value.operator in ("max", "min"):
                return f"{value.operator}({', '.join(map(self.number, value.operands))})"
            if value.operator == "item" and isinstance(value.operands[0], ArgumentValue):
                owner, index = value.operands
                if owner.name in self.arguments and self.arguments[owner.name].list_depth == 1:
                    return f"{owner.name}[{index.value}]"
            if value.operator in _ARITHMETIC:
                left, right = map(self.number, value.operands)
                return f"({left} {value.operator} {right})"
        if isinstance(value, Choice):
            return (
                f"({self.number(value.then)} if {self.condition(value.condition)} else {self.number(value.otherwise)})"
            )
        raise UncertainError("a size is not certain")

    def condition(self, value: Any) -> str:
        if isinstance(value, Property) and value.what == "present" and value.tensor in self.arguments:
            return f"{value.tensor} is not None"
        if isinstance(value, ArgumentValue):
            argument = self.arguments.get(value.name)
            if argument is None or argument.list_depth or argument.kind not in (ArgumentKind.BOOL, ArgumentKind.INT):
                raise UncertainError(f"{value.name} is not certainly true or false")
            return value.name
        if isinstance(value, Operation):
            if value.operator in ("and", "or"):
                return f"({f' {value.operator} '.join(map(self.condition, value.operands))})"
            if value.operator == "not":
                return f"(not {self.condition(value.operands[0])})"
            if value.operator in _COMPARISONS:
                left, right = value.operands
                if Constant(None) in (left, right):
                    other = left if right == Constant(None) else right
                    if not isinstance(other, ArgumentValue) or value.operator not in ("==", "!="):
                        raise UncertainError("a comparison with None")
                    return f"({other.name} is {'not ' if value.operator == '!=' else ''}None)"
                return f"({self.operand(left)} {value.operator} {self.operand(right)})"
        if isinstance(value, Constant) and isinstance(value.value, bool):
            return repr(value.value)
        if isinstance(value, Choice):
            return f"({self.condition(value.then)} if {self.condition(value.condition)} else {self.condition(value.otherwise)})"
        raise UncertainError("a condition is not expressible")

    def operand(self, value: Any) -> str:
        if isinstance(value, Constant) and isinstance(value.value, str | float) and not isinstance(value.value, bool):
            return repr(value.value)
        if isinstance(value, Dtype | DtypeOf):
            return self.dtype(value)
        if isinstance(value, ArgumentValue) and value.name in self.arguments:
            argument = self.arguments[value.name]
            if not argument.list_depth and argument.kind in (ArgumentKind.STR, ArgumentKind.FLOAT):
                return value.name
        return self.number(value)
