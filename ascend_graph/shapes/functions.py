"""Shape functions: what an author's InferShape or meta function answers to shapes, dtypes and attrs. Imports no torch.

A :class:`ShapeFunction` is asked with concrete sizes. :mod:`ascend_graph.inference.functions` finds the relation that it
follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import DataType, OpPrototype


class ShapeFunctionError(AscendGraphError):
    """Error of a shape function that refuses a call, fails, or cannot answer it."""

    def __init__(self, message: str, *, by_value: bool = False, crashed: bool = False) -> None:
        super().__init__(message)
        #: True if the answer depends on values that the call does not have.
        self.by_value = by_value
        #: True if the function faulted, hung, or threw.
        self.crashed = crashed


@dataclass(frozen=True, slots=True)
class InputSpec:
    """Shape and dtype of an input, and its values where they are known."""

    shape: tuple[int, ...]
    dtype: DataType
    values: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True)
class InferredOutput:
    """Shape and dtype of an output; the dtype is None where the function does not say it."""

    shape: tuple[int, ...]
    dtype: DataType | None
    #: False if it has no dimensions and the function may have left it so.
    is_set: bool = field(default=True, compare=False)


#: Output of a call: a tensor, a list of tensors, or None if it is absent.
Answer = InferredOutput | Sequence[InferredOutput] | None
#: Inputs in the order of the prototype: a tensor, a list of tensors, or None.
Inputs = Sequence[InputSpec | Sequence[InputSpec] | None]


@dataclass(frozen=True, slots=True)
class ShapeFunction:
    """Shape function of one operator.

    Attributes:
        prototype: The operator, in whose names and order the function is asked.
        source: The origin of the function, for messages: ``the InferShape function of …``.
        call: Function from inputs and all attrs to the outputs; it raises :class:`ShapeFunctionError`.
        texts: Strings that its source compares with, mostly values of attrs.
        data_inputs: Inputs whose values it reads.
        says_dtypes: True if it says the dtypes of the outputs.
        needs_memory: True if it is a kernel, which computes its outputs.
        value_inputs: Further inputs whose values the definition lets it read.
    """

    prototype: OpPrototype
    source: str
    call: Callable[[Inputs, Mapping[str, Any]], Sequence[Answer]] = field(compare=False)
    texts: tuple[str, ...] = ()
    data_inputs: tuple[str, ...] = ()
    says_dtypes: bool = True
    needs_memory: bool = False
    value_inputs: tuple[str, ...] = ()
