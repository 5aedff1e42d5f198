"""Evidence of an operator's output shapes: InferShape, a meta function, the kernel; relations from each, and who differs.

Every source is a :class:`~ascend_graph.shapes.functions.ShapeFunction` of one prototype, so that all are asked the same.
"""

from __future__ import annotations

import inspect
import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ascend_graph.binding.arguments import bind
from ascend_graph.binding.op_schema import read_schema
from ascend_graph.errors import AscendGraphError
from ascend_graph.inference import InferenceError
from ascend_graph.inference.functions.drawing import draw_call
from ascend_graph.inference.functions.search import infer_with_values
from ascend_graph.inference.functions.values import with_declared_dtypes
from ascend_graph.inference.functions.wording import flat_specs, shown
from ascend_graph.prototypes import Attr, AttrType, DataType, OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.dtypes import TORCH_NAMES
from ascend_graph.prototypes.naming import snake_case
from ascend_graph.shapes import Relation
from ascend_graph.shapes.functions import Answer, InferredOutput, InputSpec, ShapeFunction, ShapeFunctionError

#: Number of calls on which two sources are compared.
COMPARED = 120
_ATTR_TYPES: Mapping[str, AttrType] = {
    "int": AttrType.INT,
    "SymInt": AttrType.INT,
    "float": AttrType.FLOAT,
    "number": AttrType.FLOAT,
    "bool": AttrType.BOOL,
    "str": AttrType.STRING,
    "List[int]": AttrType.LIST_INT,
    "List[SymInt]": AttrType.LIST_INT,
    "ScalarType": AttrType.TYPE,
}
_DTYPES = {dtype: getattr(torch, name) for dtype, name in TORCH_NAMES.items() if hasattr(torch, name)}
_NUMBERS = {dtype: number for number, dtype in _DTYPES.items()}


class EvidenceError(AscendGraphError):
    """Error of a source that cannot be asked: it is unknown, or does not fit the prototype."""


@dataclass(frozen=True, slots=True)
class SourceResult:
    """Relation that one source follows, or the reason why there is none."""

    op_type: str
    source: str
    relation: Relation | None
    questions: int = 0
    reason: str = ""
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the value that ``--format json`` prints."""
        return {
            "operator": self.op_type,
            "source": self.source,
            "relation": None if self.relation is None else str(self.relation),
            "questions": self.questions,
            "reason": self.reason,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Comparison of two sources on the same calls."""

    first: str
    second: str
    compared: int
    differing: int
    #: First call with different answers, with both.
    example: str = ""

    def __str__(self) -> str:
        if not self.differing:
            return f"{self.first} and {self.second} agree in {self.compared} calls"
        return f"{self.first} and {self.second} differ in {self.differing} of {self.compared} calls: {self.example}"


def search(function: ShapeFunction, *, isolated: bool = True) -> SourceResult:
    """Return the relation that a source follows, or the reason why none is found."""
    op_type = function.prototype.op_type
    try:
        found, asked = infer_with_values(function, isolated=isolated)
    except InferenceError as error:
        return SourceResult(op_type, function.source, None, 0, str(error))
    inputs = {p.name for p in function.prototype.inputs}
    values = [
        f"{attr.name} is an argument {'int[]' if attr.type is AttrType.LIST_INT else 'int'} of the schema"
        for attr in asked.prototype.attrs
        if attr.name in inputs and attr.name in found.relation.free_names
    ]
    return SourceResult(
        op_type, function.source, found.relation, found.runs, notes=(*values, *found.limits, *found.notes)
    )


# ------------------------------------------------------------------------------------------------------- meta functions


def python_meta(function: Callable[..., Any], prototype: OpPrototype) -> ShapeFunction:
    """Return a Python meta function as a source: its parameters are inputs and attrs of the prototype by name.

    Raises:
        EvidenceError: A parameter without a default is neither.
    """
    parameters = [
        p for p in inspect.signature(function).parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    own = [*(p.name for p in prototype.inputs), *(a.name for a in prototype.attrs)]
    known = {_plain(name): name for name in own}
    sources: dict[str, str] = {}
    for parameter in parameters:
        name = known.get(_plain(parameter.name))
        if name is not None:
            sources[parameter.name] = name
        elif parameter.default is parameter.empty:
            raise EvidenceError(
                f"{function.__name__}: its parameter {parameter.name} is neither an input nor an attr of {prototype.op_type}; "
                f"expected one of {', '.join(known.values())}. Give the parameter a default, or rename it"
            )

    def call(values: Mapping[str, Any]) -> Any:
        return function(**{parameter: values[name] for parameter, name in sources.items()})

    return _torch_source(prototype, f"the meta function {function.__module__}.{function.__qualname__}", call, "meta")


def overload_meta(overload: Any, prototype: OpPrototype) -> ShapeFunction:
    """Return an overload's meta function, in C++ or Python, as a source."""
    return _torch_source(prototype, f"the meta function of {overload}", _overload_call(overload, prototype), "meta")


def overload_kernel(overload: Any, prototype: OpPrototype, device: str) -> ShapeFunction:
    """Return an overload's kernel, run on small tensors of zeros, as a source."""
    return _torch_source(prototype, f"the kernel of {overload}", _overload_call(overload, prototype), device)


def schema_prototype(overload: Any) -> OpPrototype:
    """Return the equivalent of a prototype for an operator that has none, from its schema."""
    schema = overload._schema
    inputs, attrs = [], []
    usual = (DataType.FLOAT, DataType.FLOAT16, DataType.INT32, DataType.INT64)
    for argument in schema.arguments:
        kind = str(argument.real_type)
        base = kind.removeprefix("Optional[").removesuffix("]") if kind.startswith("Optional[") else kind
        if "Tensor" in kind:
            how = ParameterKind.OPTIONAL if kind.startswith("Optional[") else ParameterKind.REQUIRED
            how = ParameterKind.DYNAMIC if "List[" in kind else how
            inputs.append(Parameter(argument.name, how, usual))
        elif base in _ATTR_TYPES:
            default = argument.default_value if argument.has_default_value() else None
            default = tuple(default) if isinstance(default, list) else default
            attrs.append(Attr(argument.name, _ATTR_TYPES[base], default is None, default))
    names = [returned.name or f"out{n}" for n, returned in enumerate(schema.returns)]
    outputs = tuple(Parameter(name, ParameterKind.REQUIRED) for name in names)
    return OpPrototype(schema.name.partition("::")[2], tuple(inputs), tuple(attrs), outputs)


def prototype_of(name: str, prototypes: Sequence[OpPrototype]) -> OpPrototype | None:
    """Return the prototype whose name in snake case a function's name has, without endings such as ``_meta``."""
    plain = name.rpartition("::")[2].partition(".")[0].removeprefix("npu_")
    for ending in ("_meta", "_fake", "_abstract", "_impl"):
        plain = plain.removesuffix(ending)
    return next((p for p in prototypes if _plain(snake_case(p.op_type)) == _plain(plain)), None)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _overload_call(overload: Any, prototype: OpPrototype) -> Callable[[Mapping[str, Any]], Any]:
    schema = read_schema(overload._schema)
    names = {*(p.name for p in prototype.inputs), *(a.name for a in prototype.attrs)}
    if {a.name for a in schema.arguments} >= names:
        sources = {name: name for name in names}
    else:
        binding = bind(schema, prototype, complete=False)
        sources = binding.argument_names()
    arguments = overload._schema.arguments

    def call(values: Mapping[str, Any]) -> Any:
        args, kwargs = [], {}
        for argument in arguments:
            if argument.name in sources:
                value = values[sources[argument.name]]
            else:
                value = argument.default_value if argument.has_default_value() else None
            if argument.kwarg_only:
                kwargs[argument.name] = value
            else:
                args.append(value)
        return overload(*args, **kwargs)

    return call


def _torch_source(
    prototype: OpPrototype, source: str, call: Callable[[Mapping[str, Any]], Any], device: str
) -> ShapeFunction:
    """Return a source that makes tensors of a call's inputs and describes what a function returns."""

    def tensor(spec: InputSpec) -> torch.Tensor:
        make = torch.empty if device == "meta" else torch.zeros
        return make(spec.shape, dtype=_DTYPES[spec.dtype], device=device)

    def answer(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[InferredOutput | None]:
        values: dict[str, Any] = {}
        for parameter, spec in zip(prototype.inputs, inputs, strict=True):
            values[parameter.name] = [tensor(s) for s in spec] if isinstance(spec, list) else spec and tensor(spec)
        for attr in prototype.attrs:
            value = attrs[attr.name]
            value = _DTYPES.get(DataType(value)) if attr.type is AttrType.TYPE and isinstance(value, int) else value
            values[attr.name] = list(value) if isinstance(value, tuple) else value
        try:
            with torch.no_grad():
                result = call(values)
        except Exception as error:  # what a function raises says that it refuses the call
            raise ShapeFunctionError(f"{source}: {type(error).__name__}: {str(error).partition(chr(10))[0]}") from None
        return _described(prototype, result, inputs, source)

    return ShapeFunction(prototype, source, answer, needs_memory=device != "meta")


def _described(prototype: OpPrototype, result: Any, inputs: Sequence[Any], source: str) -> list[InferredOutput | None]:
    outputs = list(result) if isinstance(result, (tuple, list)) else [] if result is None else [result]
    fresh = [p for p in prototype.outputs if p.name not in prototype.in_place]
    if len(outputs) not in (len(fresh), len(prototype.outputs)):
        raise ShapeFunctionError(
            f"{source} returned {len(outputs)} outputs; expected {len(prototype.outputs)}, as the prototype has"
        )
    given = {p.name: spec for p, spec in zip(prototype.inputs, inputs, strict=True)}
    found: list[InferredOutput | None] = []
    rest = iter(outputs)
    for parameter in prototype.outputs:
        if parameter not in fresh and len(outputs) == len(fresh):
            own = given[parameter.name]
            found.append(InferredOutput(own.shape, own.dtype) if isinstance(own, InputSpec) else None)
            continue
        one = next(rest)
        if one is not None and not isinstance(one, torch.Tensor):
            raise ShapeFunctionError(f"{source} returned {type(one).__name__} for {parameter.name}, expected a tensor")
        found.append(None if one is None else InferredOutput(tuple(map(int, one.shape)), _NUMBERS.get(one.dtype)))
    return found


# ----------------------------------------------------------------------------------------------------------- comparison


def compare_sources(
    functions: Sequence[ShapeFunction], relations: Sequence[Relation | None], *, seed: int = 0
) -> list[Disagreement]:
    """Compare every two sources on the same random calls, drawn from their relations and at random."""
    rng = random.Random(seed)
    drawn = [draw_call(functions[0], [r for r in relations if r is not None], rng) for _ in range(COMPARED)]
    calls = [call for call in drawn if call is not None]
    answers = [[_asked(function, call) for call in calls] for function in functions]
    found = []
    for (a, mine), (b, theirs) in itertools.combinations(zip(functions, answers, strict=True), 2):
        both = [(c, x, y) for c, x, y in zip(calls, mine, theirs, strict=True) if x is not None and y is not None]
        differing = [(c, x, y) for c, x, y in both if _differ(x, y)]
        example = ""
        if differing:
            call, x, y = differing[0]
            example = f"of {shown(a.prototype, *call)} the first makes {_text(a.prototype, x)}, the second {_text(a.prototype, y)}"
        found.append(Disagreement(a.source, b.source, len(both), len(differing), example))
    return found


def prototype_differences(function: ShapeFunction, relation: Relation | None, *, seed: int = 0) -> list[str]:
    """Return the outputs whose dtype, according to a source, the prototype does not have; each with a call."""
    rng = random.Random(seed)
    found: dict[str, str] = {}
    prototype = function.prototype
    for _ in range(COMPARED // 2):
        call = draw_call(function, [relation] if relation is not None else [], rng)
        answer = None if call is None else _asked(function, call)
        for parameter, output in zip(prototype.outputs, answer or (), strict=False):
            for one in flat_specs(output):
                if one.dtype is None or not parameter.dtypes or one.dtype in parameter.dtypes or call is None:
                    continue
                allowed = ", ".join(d.ge_name for d in parameter.dtypes)
                found.setdefault(
                    parameter.name,
                    f"{function.source} makes {parameter.name} {one.dtype.ge_name} of {shown(prototype, *call)}; the "
                    f"prototype has {allowed}",
                )
    return list(found.values())


def _asked(function: ShapeFunction, call: tuple[list[Any], dict[str, Any]]) -> list[Answer] | None:
    inputs, attrs = call
    try:
        return with_declared_dtypes(function.prototype, inputs, function.call(inputs, attrs))
    except ShapeFunctionError:
        return None


def _differ(a: Sequence[Answer], b: Sequence[Answer]) -> bool:
    return any(flat_specs(x) != flat_specs(y) for x, y in zip(a, b, strict=True))


def _text(prototype: OpPrototype, answer: Sequence[Answer]) -> str:
    return ", ".join(
        ", ".join(
            f"{p.name}[{', '.join(map(str, one.shape))}]" + (f" {one.dtype.ge_name}" if one.dtype is not None else "")
            for one in flat_specs(output)
        )
        or f"no {p.name}"
        for p, output in zip(prototype.outputs, answer, strict=True)
    )
