"""Relation or meta function of an operator from the InferShape function of its installed package.

InferShape is exact, cheap, and refuses what its author refuses; no kernel runs. A relation that explains it serves symbolic
sizes, and all rules that are made from relations. Where none does, the meta function calls InferShape itself, with sizes
that are numbers.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ascend_graph.binding.bound import Binding, Conversion, ValueSource
from ascend_graph.binding.dtype_ints import Numbers
from ascend_graph.binding.dtypes import ge_dtype
from ascend_graph.binding.op_schema import ArgumentKind
from ascend_graph.dispatch.fitting import MetaError
from ascend_graph.dispatch.meta import MetaFunction
from ascend_graph.inference.functions.questions import UNSET
from ascend_graph.inference.functions.search import infer_with_values
from ascend_graph.inference.functions.value_inputs import value_spec
from ascend_graph.inference.results import InferenceError
from ascend_graph.prototypes import Attr, AttrType, DataType, OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.dtypes import TORCH_NAMES
from ascend_graph.registration.author_shapes import VARIABLE
from ascend_graph.shapes import Relation, ShapeError
from ascend_graph.shapes.functions import Answer, InferredOutput, InputSpec, ShapeFunction, ShapeFunctionError


@dataclass(frozen=True, slots=True)
class AuthorEvidence:
    """Answer of an operator's author: a relation, or the function to call; why there is no relation, and notes."""

    relation: Relation | None
    source: str
    questions: int = 0
    function: ShapeFunction | None = None
    reason: str = ""
    notes: tuple[str, ...] = ()
    #: What the function takes beyond the relation.
    limits: tuple[str, ...] = ()
    #: True if the function crashed, hung or answered differently the second time.
    is_faulty: bool = False

    @property
    def reads_values(self) -> bool:
        """True if the function may read values of inputs, and refuse some of which the relation says nothing."""
        return self.function is not None and bool(self.function.data_inputs or self.function.value_inputs)

    def beyond(self, meta: MetaFunction, binding: Callable[[], Binding]) -> MetaFunction:
        """Return the relation's meta function, which asks InferShape of the calls that it refuses.

        A function that reads values is asked of every call with static sizes.
        The binding is made for the first such call.
        """
        function = self.function
        if function is None:
            return meta

        @functools.cache
        def asked() -> MetaFunction | None:
            bound = binding()
            return author_meta(function, bound) if calls_infer_shape(function, bound) else None

        return _asking_first(meta, asked) if self.reads_values else _asking_beyond(meta, asked)


_found: dict[Any, AuthorEvidence | None] = {}


def ask_author(prototype: OpPrototype, values: Mapping[str, AttrType] | None = None) -> AuthorEvidence | None:
    """Return what the installed package says of an operator's output shapes; None where nothing can be asked.

    On a device InferShape is in a library that only GE loads, and the result is None.

    Args:
        prototype: The operator.
        values: The types of the arguments that give inputs their values, see :func:`argument_types`. None if they are not
            known yet: a function that may read values is not asked then.
    """
    module = os.environ.get(VARIABLE)
    if not module:
        return None
    key = (os.environ.get("ASCEND_CUSTOM_OPP_PATH", ""), prototype, None if values is None else tuple(values.items()))
    if key not in _found:
        _found[key] = _ask(importlib.import_module(module), prototype, values)
    return _found[key]


def argument_types(binding: Binding) -> dict[str, AttrType]:
    """Return the types of the ``int[]`` and ``int`` arguments, always given as they are, that are values of inputs."""
    found = {}
    for parameter, source in zip(binding.prototype.inputs, binding.inputs, strict=True):
        if source is None or source.conversion is not Conversion.CONST or source.argument is None or source.hook:
            continue
        argument = binding.schema.arguments[source.argument]
        if argument.kind is ArgumentKind.INT and argument.list_depth <= 1 and not argument.optional:
            found[parameter.name] = AttrType.LIST_INT if argument.list_depth else AttrType.INT
    return found


def _ask(packages: Any, prototype: OpPrototype, values: Mapping[str, AttrType] | None) -> AuthorEvidence | None:
    given = packages.author_relation(prototype)
    if given is not None:
        return AuthorEvidence(given[1], f"the relation of {given[0]}")
    function = packages.author_function(prototype)
    if function is None:
        return None
    if values is None and (function.data_inputs or function.value_inputs):
        return AuthorEvidence(None, function.source, 0, function, "its arguments are not known yet")
    try:
        found, _ = infer_with_values(function, values or {})
    except InferenceError as error:
        text = str(error)
        faulty = any(words in text for words in ("ended the process", "did not answer in time", "not deterministic"))
        answers = not faulty and UNSET not in text
        return AuthorEvidence(None, function.source, 0, function if answers else None, text, is_faulty=faulty)
    asked = function if found.answers_all else None
    return AuthorEvidence(found.relation, function.source, found.runs, asked, notes=found.notes, limits=found.limits)


def calls_infer_shape(function: ShapeFunction, binding: Binding) -> bool:
    """Return whether a meta function can call InferShape: the values that it reads are arguments of the schema."""
    prototype = function.prototype
    known = {
        p.name
        for p, s in zip(prototype.inputs, binding.inputs, strict=True)
        if s is None or s.conversion is Conversion.CONST
    }
    lists = any(p.kind is ParameterKind.DYNAMIC for p in prototype.outputs)
    hooks = any(s is not None and (s.hook is not None or s.argument is None) for s in (*binding.inputs, *binding.attrs))
    return set(function.data_inputs) <= known and not lists and not hooks


def author_meta(function: ShapeFunction, binding: Binding) -> MetaFunction:
    """Return a meta function that calls InferShape.

    It refuses symbolic sizes by name: a number taken from them would hold for one size alone.
    """
    schema, prototype = binding.schema, function.prototype
    names = [argument.name for argument in schema.arguments]
    defaults = {a.name: a.default for a in schema.arguments}

    def meta(*args: Any, **kwargs: Any) -> Any:
        values = defaults | dict(zip(names, args, strict=False)) | kwargs
        given = [values[name] for name in names]
        inputs = [_input(p, s, given, schema.name) for p, s in zip(prototype.inputs, binding.inputs, strict=True)]
        attrs = {a.name: _attr(a, s, given, schema.name) for a, s in zip(prototype.attrs, binding.attrs, strict=True)}
        try:
            outputs = function.call(inputs, attrs)
        except ShapeFunctionError as error:
            raise MetaError(f"{schema.name}: {error}") from None
        device = next((t.device for t in _tensors(given)), torch.device("cpu"))
        made = [_returned(r, outputs, prototype, given, device, inputs) for r in binding.returns]
        return made[0] if len(made) == 1 else tuple(made)

    meta.__name__ = f"{prototype.op_type}_infer_shape_meta"
    meta.__doc__ = f"Meta function of {prototype.op_type}: calls {function.source}"
    return meta


class SymbolicSizeError(MetaError):
    """Error of a call with symbolic sizes, of which InferShape cannot be asked."""


def _asking_first(by_relation: MetaFunction, asked: Callable[[], MetaFunction | None]) -> MetaFunction:
    """Return a meta function that asks another one, if there is one, and follows a relation for symbolic sizes."""

    @functools.wraps(by_relation)
    def meta(*args: Any, **kwargs: Any) -> Any:
        by_function = asked()
        if by_function is not None:
            with contextlib.suppress(SymbolicSizeError):
                return by_function(*args, **kwargs)
        return by_relation(*args, **kwargs)

    return meta


def _asking_beyond(by_relation: MetaFunction, asked: Callable[[], MetaFunction | None]) -> MetaFunction:
    """Return a meta function that asks another one, if there is one, of the calls that a relation refuses.

    A call that both refuse gets the relation's message, which says more.
    """

    @functools.wraps(by_relation)
    def meta(*args: Any, **kwargs: Any) -> Any:
        try:
            return by_relation(*args, **kwargs)
        except ShapeError:
            by_function = asked()
            if by_function is not None:
                with contextlib.suppress(MetaError):
                    return by_function(*args, **kwargs)
            raise

    return meta


def _input(parameter: Parameter, source: ValueSource | None, given: Sequence[Any], subject: str) -> Any:
    value = None if source is None or source.argument is None else given[source.argument]
    if value is None:
        return None
    if isinstance(value, torch.Tensor):
        return InputSpec(_sizes(value, parameter.name, subject), DataType(int(ge_dtype(value.dtype))))
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor):
        return [InputSpec(_sizes(t, parameter.name, subject), DataType(int(ge_dtype(t.dtype)))) for t in value]
    if isinstance(value, (list, tuple)):
        return value_spec(parameter, [_number(item, parameter.name, subject) for item in value])
    return value_spec(parameter, _number(value, parameter.name, subject))


def _attr(attr: Attr, source: ValueSource | None, given: Sequence[Any], subject: str) -> Any:
    value = None if source is None or source.argument is None else given[source.argument]
    if value is None:
        value = attr.default if source is None or source.value is None else source.value
    elif isinstance(value, torch.dtype) or (source is not None and source.conversion is Conversion.DTYPE):
        numbered = source.numbers if source is not None else None
        value = value if numbered is Numbers.GE else int(ge_dtype(value))
    if isinstance(value, (list, tuple)):
        return tuple(_number(item, attr.name, subject) for item in value)
    return value if attr.type is AttrType.STRING or value is None else _number(value, attr.name, subject)


def _sizes(tensor: torch.Tensor, name: str, subject: str) -> tuple[int, ...]:
    return tuple(_number(size, name, subject) for size in tensor.shape)


def _number(value: Any, name: str, subject: str) -> Any:
    if not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value
    known = value.node.maybe_as_int() if isinstance(value, torch.SymInt) else None
    if known is None:
        raise SymbolicSizeError(
            f"{subject}: {name} has the symbolic size {value}, and its meta function calls InferShape, which takes numbers; "
            "expected static sizes. Write shape= (register_package: shapes=), or compile with dynamic=False"
        )
    return known


def _tensors(given: Sequence[Any]) -> list[torch.Tensor]:
    every = [item for value in given for item in (value if isinstance(value, (list, tuple)) else (value,))]
    return [item for item in every if isinstance(item, torch.Tensor)]


def _returned(
    source: Any,
    outputs: Sequence[Answer],
    prototype: OpPrototype,
    given: Sequence[Any],
    device: torch.device,
    inputs: Sequence[Any],
) -> Any:
    from ascend_graph.inference.functions.values import with_declared_dtypes

    if source.argument is not None:
        return given[source.argument]
    spec = with_declared_dtypes(prototype, inputs, outputs)[source.output]
    if not isinstance(spec, InferredOutput):
        return None
    assert spec.dtype is not None
    name = TORCH_NAMES.get(spec.dtype)
    if name is None or not hasattr(torch, name):
        raise MetaError(
            f"{prototype.op_type}: InferDataType gives {spec.dtype.ge_name}, which torch does not have; expected a "
            "dtype of torch"
        )
    return torch.empty(spec.shape, dtype=getattr(torch, name), device=device)
