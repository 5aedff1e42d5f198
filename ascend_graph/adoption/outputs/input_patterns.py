"""Patterns of inputs in shape relations: which dimensions a function reads, and their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ascend_graph.adoption.interpreter.names import OF_DATA
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
    Several,
    Sizes,
    SizeValue,
    Slice,
    cause_of,
)
from ascend_graph.binding.op_schema import OpSchema


class UncertainError(Exception):
    """Reason why no relation is written."""


def comes_from_data(value: Any) -> bool:
    """Return whether a size is read from the values of a tensor."""
    if isinstance(value, Several):
        return any(map(comes_from_data, value.items))
    cause = cause_of(value)
    return (
        any(cause.endswith(f".{one}()") for one in OF_DATA)
        or re.search(r"\.(?:data_ptr|accessor)\b", cause) is not None
    )


def not_followed(value: Any) -> UncertainError:
    """Return the reason why a value has no relation: the expression that is not followed, where it is known."""
    cause = cause_of(value)
    if not cause:
        return UncertainError("its size or dtype is not stated in a form that is understood")
    if comes_from_data(value):
        return UncertainError(
            f"its size comes from the data, `{cause}`; write its largest size in a relation, as in x[n] -> y[k] where k <= n"
        )
    return UncertainError(f"its size or dtype comes from `{cause}`, which is not followed")


@dataclass(slots=True)
class _Pattern:
    """Dimensions of one input that the relation names."""

    front: int = 0
    back: int = 0
    whole: bool = False
    #: Dimensions that every call has: those of parts that no condition chooses.
    sure: int = 0


@dataclass(slots=True)
class InputPatterns:
    """Patterns of the inputs that a relation is written in, and the names of their dimensions."""

    schema: OpSchema
    ranks: Mapping[str, int]
    hints: Mapping[Any, str]
    patterns: dict[str, _Pattern] = field(default_factory=dict)
    names: dict[tuple[str, Any], str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    #: Optional arguments that the condition around the current part says are given.
    given: set[str] = field(default_factory=set)

    def collect(self, value: Any, *, sure: bool = True) -> None:
        """Note which dimensions of which inputs a value needs."""
        if isinstance(value, Constant | Dtype):
            return
        if isinstance(value, ArgumentValue):
            self.check_attr(value.name)
        elif isinstance(value, Input | DtypeOf):
            self.pattern(value.name if isinstance(value, Input) else value.tensor)
        elif isinstance(value, SizeValue):
            self.collect_size(value, sure=sure)
        elif isinstance(value, Slice):
            pattern = self.pattern(value.tensor)
            pattern.whole = True
            if value.start < 0:
                raise UncertainError(f"a part of the shape of {value.tensor} that counts from its end")
            pattern.front = max(pattern.front, value.start)
            if value.stop is not None:
                if value.stop >= 0:
                    raise UncertainError(f"a part of the shape of {value.tensor}")
                pattern.back = max(pattern.back, -value.stop)
                if sure:
                    pattern.sure = max(pattern.sure, value.start - value.stop)
        elif isinstance(value, Property):
            if value.what not in ("rank", "numel", "present"):
                raise UncertainError(f"it depends on {value.what} of {value.tensor}")
            if value.what == "present" and not any(a.name == value.tensor for a in self.schema.arguments):
                raise UncertainError(f"{value.tensor} is not an argument")
            if value.what == "rank" and value.tensor in self.ranks:
                return
            self.pattern(value.tensor)
        elif isinstance(value, Operation):
            if value.operator in ("prod", "size"):
                raise UncertainError("it depends on dimensions that only the call knows")
            for number, one in enumerate(value.operands):
                self.collect(one, sure=sure and (number == 0 or value.operator not in ("and", "or")))
        elif isinstance(value, Choice):
            self.collect(value.condition, sure=sure)
            self.collect(value.then, sure=False)
            self.collect(value.otherwise, sure=False)
        elif isinstance(value, Sizes | Several):
            for one in value.items:
                self.collect(one, sure=sure)
        elif isinstance(value, Assembled):
            raise UncertainError("only the call knows its number of dimensions")
        elif isinstance(value, NewTensor):
            if value.on_host:
                raise UncertainError("it is on the CPU")
            self.collect(value.sizes, sure=sure)
            self.collect(value.dtype, sure=sure)
        else:
            raise not_followed(value)

    def collect_size(self, value: SizeValue, *, sure: bool) -> None:
        """Note one dimension of an input."""
        pattern = self.pattern(value.tensor)
        rank = self.ranks.get(value.tensor)
        if rank is not None and not -rank <= value.axis < rank:
            raise UncertainError(f"{value.tensor} has {rank} dimensions, and the one at {value.axis} is read")
        if value.axis >= 0:
            pattern.front = max(pattern.front, value.axis + 1)
        else:
            pattern.back = max(pattern.back, -value.axis)
        if sure:
            pattern.sure = max(pattern.sure, value.axis + 1 if value.axis >= 0 else -value.axis)
        if max(pattern.front, pattern.back) > 12:
            raise UncertainError(f"{value.tensor}: dimension {value.axis} is read")

    def check_ranks(self, read: Mapping[str, int]) -> None:
        """Raise if a call that the function takes may have fewer dimensions than the relation names."""
        for tensor, pattern in self.patterns.items():
            needed = pattern.front + pattern.back
            # A tensor without any dimension is no input of such a function.
            if tensor not in self.ranks and needed > max(pattern.sure, read.get(tensor, 0), 1):
                raise UncertainError(
                    f"dimensions of {tensor} are read in some calls only, and others may not have them"
                )

    def pattern(self, tensor: str) -> _Pattern:
        base = tensor.partition("[")[0]
        argument = next((a for a in self.schema.arguments if a.name == base), None)
        if argument is None or not argument.is_tensor:
            raise UncertainError(f"{tensor} is not a tensor of the schema")
        if argument.list_depth:
            raise UncertainError(f"it depends on {tensor}, a tensor of a list")
        return self.patterns.setdefault(tensor, _Pattern())

    def check_attr(self, name: str) -> None:
        if not any(a.name == name and not a.is_tensor for a in self.schema.arguments):
            raise UncertainError(f"it depends on {name}, which is not an argument")

    def fresh(self, wanted: str) -> str:
        name = wanted
        number = 1
        while name in self.taken or not re.fullmatch(r"[A-Za-z]\w*", name):
            name = f"{wanted.strip('_') or 'd'}_{number}"
            number += 1
        self.taken.add(name)
        return name

    def dimension(self, tensor: str, axis: int) -> str:
        rank = self.ranks.get(tensor)
        if rank is not None and axis < 0:
            axis += rank
        key = (tensor, axis)
        if key not in self.names:
            hint = self.hints.get(SizeValue(tensor, axis))
            if hint is None and rank is not None:
                hint = self.hints.get(SizeValue(tensor, axis - rank))
            base = tensor if axis >= 0 else f"{tensor}_last" if axis == -1 else f"{tensor}_back"
            index = axis if axis >= 0 else "" if axis == -1 else -axis
            self.names[key] = self.fresh(
                hint.strip("_") if hint and hint.strip("_") else f"{base}{index}".replace("__", "_")
            )
        return self.names[key]

    def group(self, tensor: str) -> str:
        key = (tensor, "*")
        if key not in self.names:
            whole = self.patterns[tensor]
            base = "s" if not (whole.front or whole.back) and len(self.patterns) == 1 else f"{tensor}_rest"
            self.names[key] = self.fresh(base)
        return self.names[key]

    def items(self, tensor: str, start: int = 0, stop: int | None = None) -> list[str]:
        """Return the pattern items of an input from ``start`` to ``stop``."""
        pattern = self.patterns[tensor]
        rank = self.ranks.get(tensor)
        if rank is not None:
            axes = list(range(rank))[start:stop]
            return [self.dimension(tensor, axis) for axis in axes]
        front = [self.dimension(tensor, axis) for axis in range(start, pattern.front)]
        last = 0 if stop is None else stop
        back = [self.dimension(tensor, axis) for axis in range(-pattern.back, last)]
        return [*front, f"*{self.group(tensor)}", *back]
