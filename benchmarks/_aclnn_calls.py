"""Calls of bound aclnn functions through the eager path, with a check that every parameter received its bound value."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from _aclnn_recorder import WRITTEN, RecordingPackage

from ascend_graph import register_aclnn
from ascend_graph.aclnn import AclnnFunction, AclnnParameter, CType, ValueKind, find_aclnn
from ascend_graph.binding import AclnnCall, BindingError, CallArgument, Part
from ascend_graph.binding.calls.from_declaration import derive
from ascend_graph.binding.dtypes import scalar_types
from ascend_graph.binding.generated_schema import AclnnArgumentKind, GeneratedArgument, OperatorSchema
from ascend_graph.dispatch.meta_dtypes import TORCH
from ascend_graph.eager import EagerError, EagerOperator, define_operator
from ascend_graph.prototypes import Attr, AttrType, DataType, OpPrototype, Parameter, ParameterKind


@dataclass(frozen=True)
class FunctionVerdict:
    """Verdict on one function."""

    #: Verdict: bound, refused or wrong.
    kind: str
    text: str = ""

    @property
    def has_proposal(self) -> bool:
        """True if a refusal proposes what to write."""
        return "Write: " in self.text


#: Part and name in the prototype by parameter of the function; None for a parameter that is not part of it.
Truth = Mapping[str, "tuple[Part, str] | None"]


def check(
    recorder: RecordingPackage,
    prototype: OpPrototype,
    function: AclnnFunction,
    arguments: Mapping[str, Any] | None = None,
    truth: Truth | None = None,
) -> FunctionVerdict:
    """Bind a function, call it and compare the received values."""
    try:
        operator = define_operator(
            prototype, _results(prototype), namespace="aclnn_calls", aclnn=function.name, aclnn_arguments=arguments
        )
    except (BindingError, EagerError) as error:
        return FunctionVerdict("refused", str(error))
    try:
        problems = _misbound(prototype, operator, truth) if truth is not None else []
        problems += _called(recorder, prototype, operator)
    except Exception as error:  # whatever stops a call of a bound function is what is looked for
        problems = [f"{type(error).__name__}: {error}"]
    finally:
        operator.remove()
    return FunctionVerdict("wrong", "; ".join(problems)) if problems else FunctionVerdict("bound")


def check_derived(recorder: RecordingPackage, function: AclnnFunction) -> FunctionVerdict:
    """Make an operator from the declaration alone, call it and compare the received values."""
    try:
        declared = derive(find_aclnn(function.name))
        registered = register_aclnn(
            function.name, shape=_results(declared.schema.prototype), name=f"aclnn_derived::{declared.schema.name}"
        )
    except (BindingError, EagerError) as error:
        return FunctionVerdict("refused", str(error))
    try:
        problems = _called(recorder, registered.called, Called(declared.schema, registered.overload, declared.call))
    except Exception as error:  # whatever stops a call is what is looked for
        problems = [f"{type(error).__name__}: {error}"]
    finally:
        registered.unregister()
    return FunctionVerdict("wrong", "; ".join(problems)) if problems else FunctionVerdict("bound", str(declared.schema))


@dataclass(frozen=True)
class Called:
    """Operator with the call plan of its function."""

    schema: OperatorSchema
    overload: Any
    call: AclnnCall


def _results(prototype: OpPrototype) -> Callable[..., Any] | None:
    """Return a meta function that returns tensors of one element, and two for a list; None without returns."""
    returned = [p for p in prototype.outputs if p.name not in prototype.in_place]
    if not returned:
        return None

    def meta(*args: Any, **kwargs: Any) -> Any:
        first = next(
            t for a in args for t in (a if isinstance(a, list | tuple) else [a]) if isinstance(t, torch.Tensor)
        )
        made = [
            [first.new_empty(1), first.new_empty(1)] if p.kind is ParameterKind.DYNAMIC else first.new_empty(1)
            for p in returned
        ]
        return made[0] if len(made) == 1 else tuple(made)

    return meta


def _misbound(prototype: OpPrototype, operator: EagerOperator, truth: Truth) -> list[str]:
    found = []
    for argument in operator.call.arguments:
        expected = truth[argument.name]
        is_ = None if argument.part is Part.CONSTANT else (argument.part, _name(prototype, argument))
        if is_ != expected:
            found.append(f"{argument.name} is taken for {is_}, but is {expected}")
    return found


def _name(prototype: OpPrototype, argument: CallArgument) -> str:
    sides: dict[Part, Any] = {Part.INPUT: prototype.inputs, Part.ATTR: prototype.attrs, Part.OUTPUT: prototype.outputs}
    name: str = sides[argument.part][argument.index].name
    return name


def _called(recorder: RecordingPackage, prototype: OpPrototype, operator: EagerOperator | Called) -> list[str]:
    """Call the operator with distinct values and return the parameters that did not receive their bound values."""
    given = {(a.is_input, a.parameter.name): _value(a, n) for n, a in enumerate(operator.schema.arguments)}
    unused = operator.call.unused
    positional = [
        None if a.parameter.name in unused else given[a.is_input, a.parameter.name]
        for a in operator.schema.arguments
        if not a.keyword
    ]
    by_name = {
        a.name: given[a.is_input, a.parameter.name]
        for a in operator.schema.arguments
        if a.keyword and a.parameter.name not in unused
    }
    results = operator.overload(*positional, **by_name)
    results = list(results) if isinstance(results, tuple) else [results]
    returned = [p.name for p in operator.schema.returns]
    outputs = dict(zip(returned, results, strict=True)) if returned else {}
    name, values = recorder.given()
    if name != operator.call.function:
        return [f"{name} was called, not {operator.call.function}"]
    problems = []
    for argument, got in zip(operator.call.arguments, values, strict=True):
        if argument.part is Part.CONSTANT:
            expected = argument.value
        elif argument.part is Part.OUTPUT:
            expected = outputs[_name(prototype, argument)]
        else:
            expected = given[argument.part is Part.INPUT, _name(prototype, argument)]
        problems += _compared(argument, expected, got)
    return problems


def _compared(argument: CallArgument, expected: Any, got: Any) -> list[str]:
    if argument.type.value is ValueKind.HOST_OUTPUT:
        if got != "host memory":
            return [f"{argument.name} was given {got}, not host memory"]
        written = WRITTEN if expected is None else expected.cpu().item()
        return [] if written in (WRITTEN, True) else [f"{argument.name} was read back as {written}"]
    if isinstance(expected, torch.dtype):
        expected = int(next(d for d in DataType if TORCH.from_attr(next(iter(scalar_types(d)), -1)) is expected))
    if isinstance(expected, torch.Tensor):
        expected = {"tensor": expected.data_ptr()}
    elif isinstance(expected, list | tuple):
        expected = [{"tensor": e.data_ptr()} if isinstance(e, torch.Tensor) else e for e in expected]
    return (
        [] if got == expected and type(got) is type(expected) else [f"{argument.name} was given {got}, not {expected}"]
    )


def _value(argument: GeneratedArgument, n: int) -> Any:
    """Return a value that no other argument has; floats are exact in 32 bits."""
    parameter = argument.parameter
    if isinstance(parameter, Parameter) and argument.is_tensor:
        numbers = [number for dtype in parameter.dtypes for number in scalar_types(dtype)]
        dtype = next((d for number in numbers if (d := TORCH.from_attr(number)) is not None), torch.float32)
        if argument.kind is AclnnArgumentKind.TENSOR_LIST:
            return [torch.zeros(n + 2, dtype=dtype).npu(), torch.zeros(n + 3, dtype=dtype).npu()]
        return torch.zeros(n + 2, dtype=dtype).npu()
    return {
        AclnnArgumentKind.INT: n + 3,
        AclnnArgumentKind.FLOAT: n + 0.25,
        AclnnArgumentKind.BOOL: True,
        AclnnArgumentKind.STRING: f'text "{n}"',
        AclnnArgumentKind.INTS: [n, -n - 1],
        AclnnArgumentKind.FLOATS: [n + 0.5, -1.5],
        AclnnArgumentKind.BOOLS: [True, n % 2 == 0],
        AclnnArgumentKind.DTYPE: torch.float16,
        AclnnArgumentKind.DTYPES: [torch.float16],
        AclnnArgumentKind.SCALARS: [n + 3, n + 0.25, True],
        AclnnArgumentKind.SCALAR: n + 0.75,
    }[argument.kind]


# ---------------------------------------------------------------------------------------------------------- random pairs

_WORDS = (
    "query",
    "key",
    "weight",
    "gamma",
    "beta",
    "scale",
    "offset",
    "mask",
    "state",
    "indices",
    "cache",
    "token",
    "bias",
)
_STRANGE = ("quux", "frob", "zork", "blip", "wug")


def random_pair(rng: random.Random, number: int) -> tuple[OpPrototype, AclnnFunction, Truth]:
    """Return a prototype, a function for it, and the true mapping; some names or types do not determine it."""
    names = rng.sample([f"{a}_{b}" for a in _WORDS for b in ("one", "two", "q", "kv")] + list(_WORDS), 14)
    inputs = [_random_input(rng, names.pop(), n) for n in range(rng.randrange(1, 5))]
    attrs = [_random_attr(rng, names.pop()) for _ in range(rng.randrange(0, 4))]
    outputs = [Parameter(names.pop()) for _ in range(rng.randrange(0, 3))]
    if not outputs or rng.random() < 0.2:
        outputs.insert(0, replace(inputs[0], kind=ParameterKind.REQUIRED))
        inputs[0] = outputs[0]
    prototype = OpPrototype(f"Random{number}", tuple(inputs), tuple(attrs), tuple(outputs))
    parameters: list[AclnnParameter] = []
    truth: dict[str, tuple[Part, str] | None] = {}
    generated = rng.random() < 0.3  # const everywhere

    def add(name: str, type_: CType, is_: tuple[Part, str] | None) -> None:
        if rng.random() < 0.04:
            name = rng.choice(_STRANGE) + str(len(parameters))
        parameters.append(AclnnParameter(name, type_))
        truth[name] = is_

    for p in inputs:
        in_place = p.name in prototype.in_place
        base = "aclTensorList" if p.kind is ParameterKind.DYNAMIC else "aclTensor"
        name = _camel(rng, p.name)
        if in_place:
            name += "Ref"
        elif p.kind is ParameterKind.OPTIONAL and rng.random() < 0.7:
            name += "Optional"
        if not in_place and p.kind is not ParameterKind.DYNAMIC and p.dtypes == (DataType.INT64,):
            base = rng.choice(["aclIntArray", "aclTensor"])
        add(name, CType(base, 1, generated or not in_place), (Part.INPUT, p.name))
    for a in attrs:
        add(_camel(rng, a.name), rng.choice(_ATTR_TYPES[a.type]), (Part.ATTR, a.name))
    if rng.random() < 0.5:
        split = rng.randrange(len(parameters))
        parameters = parameters[split:] + parameters[:split]
    returned = [p for p in outputs if p.name not in prototype.in_place]
    for p in returned:
        name = "out" if len(returned) == 1 and rng.random() < 0.6 else _camel(rng, p.name) + "Out"
        host = not generated and rng.random() < 0.1
        type_ = (
            rng.choice([CType("int64_t", 1), CType("float", 1), CType("bool", 1)])
            if host
            else CType("aclTensor", 1, generated)
        )
        add(name, type_, (Part.OUTPUT, p.name))
    if rng.random() < 0.15:
        add("extraOptional", CType("aclTensor", 1, True), None)
    if rng.random() < 0.1:
        add("streamMode", CType("int64_t"), None)
    if rng.random() < 0.1:
        parameters.pop(rng.randrange(len(parameters)))
    function = AclnnFunction(f"aclnnRandom{number}", tuple(parameters))
    return prototype, function, truth


_ATTR_TYPES = {
    AttrType.INT: [CType("int64_t"), CType("int32_t"), CType("int8_t"), CType("uint64_t"), CType("aclScalar", 1, True)],
    AttrType.FLOAT: [CType("double"), CType("float"), CType("aclScalar", 1, True)],
    AttrType.BOOL: [CType("bool")],
    AttrType.STRING: [CType("char", 1), CType("char", 1, True)],
    AttrType.LIST_INT: [CType("aclIntArray", 1, True), CType("aclScalarList", 1, True)],
    AttrType.LIST_FLOAT: [CType("aclFloatArray", 1, True), CType("aclScalarList", 1, True)],
    AttrType.LIST_BOOL: [CType("aclBoolArray", 1, True), CType("aclScalarList", 1, True)],
    AttrType.TYPE: [CType("aclDataType"), CType("int64_t")],
}


def _random_input(rng: random.Random, name: str, n: int) -> Parameter:
    kind = ParameterKind.REQUIRED if n == 0 else rng.choice(list(ParameterKind))
    dtypes = (DataType.FLOAT, DataType.FLOAT16) if n == 0 else rng.choice([(DataType.FLOAT,), (DataType.INT64,)])
    return Parameter(name, kind, dtypes)


def _random_attr(rng: random.Random, name: str) -> Attr:
    return Attr(name, rng.choice(list(_ATTR_TYPES)), True)


def _camel(rng: random.Random, name: str) -> str:
    if rng.random() < 0.3:
        return name
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


__all__ = ["FunctionVerdict", "Truth", "check", "check_derived", "random_pair"]
