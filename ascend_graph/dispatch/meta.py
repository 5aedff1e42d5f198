"""Shape relation → meta function.

A meta function says, from shapes and dtypes alone, what an operator returns. Here it is a closure over a compiled
relation: sizes may be symbolic, what must hold becomes ``torch._check``, nothing is specialised to a size.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ascend_graph.binding.dtypes import by_torch_dtype
from ascend_graph.errors import AscendGraphError
from ascend_graph.shapes import DtypeSystem, Relation, RelationError, ShapeError
from ascend_graph.shapes.dtypes import CATEGORY
from ascend_graph.shapes.form import AttrKind, Kind
from ascend_graph.shapes.program import OutputPlan, PlannedLeaf, constant_of, dtype_slot_of
from ascend_graph.shapes.relation import kind_of
from ascend_graph.shapes.syntax import Itself, Tensor, Value, bound_names
from ascend_graph.versions import guard_or_false

MetaFunction = Callable[..., Any]


class MetaError(AscendGraphError):
    """A relation does not fit an operator's schema, or an operator cannot take a meta function."""


# -------------------------------------------------------------------------------------------------------------- dtypes

# The numbers of c10::ScalarType (c10/core/ScalarType.h), which schemas carry where a dtype is an `int`.
_SCALAR_TYPES = (
    *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"),
    *("complex32", "complex64", "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16", "quint4x2"),
    *("quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16", "float8_e5m2", "float8_e4m3fn"),
    *("float8_e5m2fnuz", "float8_e4m3fnuz", "uint16", "uint32", "uint64"),
)
# torch_npu numbers a dtype that torch has not as 256 + ge::DataType and stores it in the torch dtype on the right.
_NPU_TYPES = {
    285: torch.uint8,  # INT4
    290: torch.uint8,  # HIFLOAT8
    291: torch.float8_e5m2,
    292: torch.float8_e4m3fn,
    293: torch.float8_e8m0fnu,
    296: torch.uint8,  # FLOAT4_E2M1
    297: torch.uint8,  # FLOAT4_E1M2
}
_BY_NUMBER: dict[int, torch.dtype] = {
    **{n: getattr(torch, name) for n, name in enumerate(_SCALAR_TYPES) if hasattr(torch, name)},
    44: torch.float8_e8m0fnu,
    **_NPU_TYPES,
}


class GeNumber(int):
    """The value of an int attr that is GE's number of a dtype."""


# GE's numbers: the dtypes that torch has, and how torch_npu stores the others.
_BY_GE_NUMBER: dict[int, torch.dtype] = {int(ge): dtype for dtype, ge in by_torch_dtype().items()} | {
    number - 256: dtype for number, dtype in _NPU_TYPES.items()
}
_BY_NAME = {name: dtype for name in CATEGORY if isinstance(dtype := getattr(torch, name, None), torch.dtype)}


def _from_attr(value: object) -> torch.dtype | None:
    if value is None or isinstance(value, torch.dtype):
        return value
    if isinstance(value, GeNumber):
        return _BY_GE_NUMBER.get(value)
    if isinstance(value, int):
        return _BY_NUMBER.get(value)
    return _BY_NAME.get(value) if isinstance(value, str) else None


#: torch's dtypes for the language; dtype attrs may be ``torch.dtype``, the number of a ``ScalarType`` or a name.
TORCH: DtypeSystem[torch.dtype] = DtypeSystem(
    from_name=_BY_NAME.__getitem__,
    to_name=lambda dtype: str(dtype).removeprefix("torch."),
    from_attr=_from_attr,
    default_float=lambda: str(torch.get_default_dtype()).removeprefix("torch."),
    complex_of_bfloat16="bcomplex32" if "bcomplex32" in _BY_NAME else "complex64",
)

# ------------------------------------------------------------------------------------------------------- meta functions


def _decide(condition: Any) -> bool:
    """Whether a condition over sizes is known to hold; asking adds a guard only where torch's broadcasting adds one."""
    return condition if isinstance(condition, bool) else guard_or_false(condition)


def _checker(subject: str) -> Callable[[Any, Callable[[], str]], None]:
    def check(condition: Any, message: Callable[[], str]) -> None:
        if condition is True:
            return
        if isinstance(condition, torch.SymBool):
            torch._check(condition, lambda: f"{subject}: {message()}")
        elif not condition:
            raise ShapeError(message())

    return check


def meta_function(
    relation: Relation,
    schema: torch.FunctionSchema,
    names: Mapping[str, str] | None = None,
    *,
    ge_numbers: frozenset[str] = frozenset(),
) -> MetaFunction:
    """A meta function for ``schema`` that follows ``relation``.

    Args:
        relation: The shape relation. Its inputs are tensor arguments of the schema, its free names other arguments,
            its outputs the returns, in order.
        schema: The schema of the overload, ``overload._schema``.
        names: From schema argument to the relation's name for it; an argument not named has its own name.
        ge_numbers: The arguments that are GE's numbers of dtypes; the others that give a dtype are torch's.

    Returns:
        A function with the schema's signature. It gives new tensors on the device of the first tensor argument,
        contiguous unless the relation says ``like``; an output that is an input is that very tensor.

    Raises:
        MetaError: The relation does not fit the schema.
        RelationError: A name of the relation is neither a dimension nor an argument.

    >>> from ascend_graph.shapes import parse_relation
    >>> schema = torch.ops.aten.mm.default._schema
    >>> meta = meta_function(parse_relation("self[m, k], mat2[k, n] -> out[m, n]"), schema)
    >>> meta(torch.empty(2, 3, device="meta"), torch.empty(3, 5, device="meta")).shape
    torch.Size([2, 5])
    """
    fitted = _fit(relation, schema, names or {})
    subject = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
    check = _checker(subject)
    inputs = relation.inputs

    def compiled(present: frozenset[str], attrs: Mapping[str, AttrKind]) -> _Compiled:
        program = relation.program(present, attrs, system=TORCH, check=check, decide=_decide)
        return _Compiled(program.steps, program.template, tuple(map(_maker, program.outputs)))

    # A relation that fits no call at all is refused here, not at the first call.
    whole = compiled(frozenset(inputs), fitted.attrs)
    variants: dict[tuple[object, ...], _Compiled] = {(False,) * len(fitted.optional): whole}
    complete, needed, optional = _completer(schema), fitted.needed, fitted.optional
    given, may_be_absent = _picker((*fitted.attr_positions, *fitted.tensor_positions)), _picker(optional)
    of_any_kind = _picker(fitted.of_any_kind)
    ges = [n for n, position in enumerate(fitted.attr_positions) if schema.arguments[position].name in ge_numbers]
    if ges:
        given = _with_ge_numbers(given, ges)
    device_of = _device_of(schema)
    single = len(schema.returns) == 1
    varies = bool(optional or fitted.of_any_kind)

    def variant(key: tuple[object, ...], values: Sequence[Any]) -> _Compiled:
        """The program for a call with these arguments absent, and attrs of these classes."""
        missing = {position for position, gone in zip(optional, key, strict=False) if gone}
        kinds = dict(fitted.attrs)
        for name, position in zip(fitted.attrs, fitted.attr_positions, strict=True):
            if position in missing:
                kinds[name] = AttrKind(Kind.NONE)
            elif position in fitted.of_any_kind:
                kinds[name] = kind_of(values[position])
        absent = {name for position, name in fitted.names.items() if position in missing}
        program = variants[key] = compiled(frozenset(inputs) - absent, kinds)
        return program

    def meta(*args: Any, **kwargs: Any) -> Any:
        values = args if len(args) >= needed and not kwargs else complete(args, kwargs)
        try:
            program = whole
            if varies:
                key: tuple[object, ...] = tuple(map(_IS_NONE, may_be_absent(values)))
                if fitted.of_any_kind:
                    key += tuple(map(type, of_any_kind(values)))
                program = variants.get(key) or variant(key, values)
            env = [*given(values), *program.template]
            for step in program.steps:
                step(env)
            device = device_of(values)
            if single:
                return program.makers[0](env, device)
            made = [make(env, device) for make in program.makers]
        except (ShapeError, RelationError) as error:
            raise ShapeError(f"{subject}: {error}") from None
        return tuple(made) if made else None

    meta.__name__ = f"{schema.name.partition('::')[2]}_meta"
    meta.__doc__ = f"Meta function of {subject}: {relation}"
    meta.relation = relation  # type: ignore[attr-defined]
    return meta


#: Makes one output from the environment, for a device.
Maker = Callable[[list[Any], torch.device], Any]

_IS_NONE = functools.partial(operator.is_, None)


def _picker(positions: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """A function that gives the values at some positions."""
    if len(positions) > 1:
        return operator.itemgetter(*positions)
    return (lambda values: (values[positions[0]],)) if positions else (lambda values: ())


def _with_ge_numbers(
    given: Callable[[Sequence[Any]], Sequence[Any]], ges: Sequence[int]
) -> Callable[[Sequence[Any]], Sequence[Any]]:
    def values(call: Sequence[Any]) -> Sequence[Any]:
        found = list(given(call))
        for n in ges:
            found[n] = None if found[n] is None else GeNumber(found[n])
        return found

    return values


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A program for one set of present inputs, and what makes its outputs."""

    steps: tuple[Callable[[list[Any]], None], ...]
    template: tuple[Any, ...]
    makers: tuple[Maker, ...]


def _maker(plan: OutputPlan) -> Maker:
    """A function that makes one output."""
    leaves = [(condition, _leaf_maker(leaf)) for condition, leaf in plan.branches]
    if plan.count is not None:
        count, index, one = plan.count, plan.index, leaves[0][1]

        def make_list(env: list[Any], device: torch.device) -> Any:
            made = []
            for number in range(count(env)):
                env[index] = number
                made.append(one(env, device))
            return made

        return make_list
    if len(leaves) == 1:
        return leaves[0][1]

    def choose(env: list[Any], device: torch.device) -> Any:
        for condition, make in leaves:
            if condition is None or condition(env):
                return make(env, device)
        raise AssertionError("the last alternative has no condition")

    return choose


def _leaf_maker(leaf: PlannedLeaf | None) -> Maker:
    if leaf is None:
        return lambda env, device: None
    if leaf.number is not None:
        number = leaf.number
        return lambda env, device: number(env)
    sizes, dtype, origin, empty = leaf.sizes, leaf.dtype, leaf.origin, torch.empty
    if origin is None:
        constant = constant_of(dtype)
        if constant is not None:
            return lambda env, device: empty(sizes(env), dtype=constant, device=device)
        given = dtype_slot_of(dtype)
        if given is not None:
            return lambda env, device: empty(sizes(env), dtype=env[given].dtype, device=device)
        return lambda env, device: empty(sizes(env), dtype=dtype(env), device=device)
    source = origin.source
    if origin.itself:
        return lambda env, device: source(env)

    def make_like(env: list[Any], device: torch.device) -> Any:
        tensor = source(env)
        # torch.empty_like is a decomposition in Python; of a plain tensor that is contiguous it is torch.empty.
        if tensor.__class__ is torch.Tensor and tensor.layout is torch.strided and tensor.is_contiguous():
            return empty(tensor.shape, dtype=dtype(env), device=tensor.device)
        return torch.empty_like(tensor, dtype=dtype(env))

    return make_like


def _device_of(schema: torch.FunctionSchema) -> Callable[[Sequence[Any]], torch.device]:
    """A function that gives the device of the outputs from all arguments: that of the first tensor."""
    positions = [n for n, a in enumerate(schema.arguments) if _is_tensor(a.type)]
    if positions and str(schema.arguments[positions[0]].type) == "Tensor":
        first = positions[0]
        return lambda values: values[first].device
    device = next((n for n, a in enumerate(schema.arguments) if str(a.type) in ("Device", "Optional[Device]")), None)

    def device_of(values: Sequence[Any]) -> torch.device:
        for position in positions:
            value = values[position]
            for tensor in value if isinstance(value, list | tuple) else (value,):
                if tensor is not None:
                    return tensor.device  # type: ignore[no-any-return]
        chosen = None if device is None else values[device]
        return torch.device("cpu") if chosen is None else torch.device(chosen)

    return device_of


# ---------------------------------------------------------------------------------------------- relation against schema


@dataclass(frozen=True, slots=True)
class _Fitted:
    """Where a schema keeps what the relation names."""

    tensor_positions: tuple[int, ...]
    #: The kinds of the attrs where they are given.
    attrs: Mapping[str, AttrKind]
    attr_positions: tuple[int, ...]
    #: The arguments that may be absent, those whose kind is that of a call's value, and the names of inputs by argument.
    optional: tuple[int, ...]
    of_any_kind: tuple[int, ...]
    names: Mapping[int, str]
    #: How many arguments must be given in place for a call to need no completion.
    needed: int


#: How a relation reads an argument by its type, without ``Optional[…]``; of the others the value tells.
_KINDS = {
    **dict.fromkeys(("int", "SymInt"), Kind.NUMBER),
    **dict.fromkeys(("List[int", "List[SymInt"), Kind.SIZES),
    "bool": Kind.BOOL,
    "float": Kind.FLOAT,
    "str": Kind.TEXT,
    "ScalarType": Kind.DTYPE,
}


def _is_tensor(type_: Any) -> bool:
    return "Tensor" in str(type_)


def _is_list(type_: Any) -> bool:
    return str(type_).removeprefix("Optional[").startswith("List[")


def _fit(relation: Relation, schema: torch.FunctionSchema, names: Mapping[str, str]) -> _Fitted:
    subject = f"{schema.name}{f'.{schema.overload_name}' if schema.overload_name else ''}"

    def refuse(message: str) -> MetaError:
        return MetaError(f"{subject}: {message}\n  relation: {relation}\n  schema:   {schema}")

    arguments = {names.get(a.name, a.name): (n, a) for n, a in enumerate(schema.arguments)}
    strangers = names.keys() - {a.name for a in schema.arguments}
    if strangers:
        raise refuse(f"names= mentions {', '.join(sorted(strangers))}; arguments: {', '.join(arguments)}")
    tensors = {name: entry for name, entry in arguments.items() if _is_tensor(entry[1].type)}
    others = {name: entry for name, entry in arguments.items() if name not in tensors}
    for tensor in relation.input_tensors:
        if tensor.name not in tensors:
            what = "is no tensor argument" if tensor.name in arguments else "is no argument"
            raise refuse(f"{tensor.name} {what}; tensor arguments: {', '.join(tensors) or 'none'}")
        is_list = _is_list(tensors[tensor.name][1].type)
        bare = all(isinstance(a.shape, Itself) for a in tensor.alternatives)
        if is_list and tensor.index is None and not bare:
            raise refuse(f"{tensor.name} is a list of tensors; write {tensor.name}[i]{tensor.alternatives[-1].shape}")
        if not is_list and tensor.index is not None:
            raise refuse(f"{tensor.name} is one tensor, not a list; write {tensor.name}{tensor.alternatives[-1].shape}")
    unknown = relation.free_names - others.keys()
    if unknown:
        dims = sorted({name for t in relation.input_tensors for name in bound_names(t)})
        raise refuse(
            f"{', '.join(sorted(unknown))} is neither a dimension nor an argument; "
            f"dimensions: {', '.join(dims) or 'none'}; arguments that are no tensors: {', '.join(others) or 'none'}"
        )
    if len(relation.outputs) != len(schema.returns):
        raise refuse(f"the relation has {len(relation.outputs)} output(s), the schema {len(schema.returns)} return(s)")
    for output, returned in zip(relation.output_tensors, schema.returns, strict=True):
        _fit_output(output, returned, schema=schema, names=names, refuse=refuse)
    attrs = {name: entry for name, entry in others.items() if name in relation.attr_names}
    positions = tuple(tensors[name][0] for name in relation.inputs)
    by_position = dict(zip(positions, relation.inputs, strict=True))
    attr_positions = tuple(n for n, _ in attrs.values())
    optional = tuple(p for p in (*positions, *attr_positions) if str(schema.arguments[p].type).startswith("Optional["))
    kinds = {name: _KINDS.get(str(a.real_type).removeprefix("Optional[").rstrip("]")) for name, (_, a) in attrs.items()}
    of_any_kind = tuple(attrs[name][0] for name, kind in kinds.items() if kind is None)
    # The first tensor also counts: it gives the device.
    first = [n for n, _ in tensors.values()][:1]
    required = bool(first) and str(schema.arguments[first[0]].type) == "Tensor"
    needed = max((*positions, *attr_positions, *first), default=-1) + 1 if required else len(schema.arguments)
    given = {name: AttrKind(kind or Kind.OTHER) for name, kind in kinds.items()}
    return _Fitted(positions, given, attr_positions, optional, of_any_kind, by_position, needed)


def _fit_output(
    output: Tensor,
    returned: torch.Argument,
    *,
    schema: torch.FunctionSchema,
    names: Mapping[str, str],
    refuse: Callable[[str], MetaError],
) -> None:
    """Refuse an output that is not of the kind that the schema returns, or not the alias that it declares."""
    number = all(isinstance(a.shape, Value) for a in output.alternatives)
    if not _is_tensor(returned.type):
        if not number:
            raise refuse(f"output {output.name} is a {returned.type}, not a tensor; write '{output.name} = 0'")
        return
    if number:
        return
    if _is_list(returned.type) != (output.index is not None) and not all(
        isinstance(a.shape, Itself) for a in output.alternatives
    ):
        raise refuse(
            f"output {output.name} is {'a list' if _is_list(returned.type) else 'no list'} of tensors in the schema"
        )
    itself = any(isinstance(a.shape, Itself) for a in output.alternatives)
    alias = returned.alias_info
    if alias is None:
        if itself:
            raise refuse(f"output {output.name} would be the input itself, but the schema does not declare the alias")
        return
    owner = next(
        (a for a in schema.arguments if a.alias_info is not None and a.alias_info.before_set == alias.before_set), None
    )
    if owner is not None and alias.is_write:
        name = names.get(owner.name, owner.name)
        if not itself or output.name != name:
            raise refuse(f"output {output.name} is the argument {name} itself; write '{name}' as the output")


def _completer(schema: torch.FunctionSchema) -> Callable[[tuple[Any, ...], dict[str, Any]], Sequence[Any]]:
    """A function from a call's arguments to all values in schema order; the dispatcher leaves defaults out."""
    arguments = schema.arguments
    defaults = tuple(a.default_value if a.has_default_value() else None for a in arguments)
    position = {a.name: n for n, a in enumerate(arguments)}

    def complete(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sequence[Any]:
        values: Any = args + defaults[len(args) :]
        if kwargs:
            values = list(values)
            for name, value in kwargs.items():
                values[position[name]] = value
        return values  # type: ignore[no-any-return]

    return complete
