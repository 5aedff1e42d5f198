"""Compilation of a shape relation to a meta function.

A meta function computes from shapes and dtypes alone what an operator returns. Here it is a closure over a compiled
relation: sizes may be symbolic, conditions become ``torch._check``, and nothing is specialized to a size.
"""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ascend_graph.dispatch.fitting import fit
from ascend_graph.dispatch.meta_dtypes import TORCH, GeNumber
from ascend_graph.shapes import Relation, RelationError, ShapeError
from ascend_graph.shapes.backends.program import OutputPlan, PlannedLeaf, constant_of, dtype_slot_of
from ascend_graph.shapes.form import AttrKind, ExpressionKind
from ascend_graph.shapes.relation import kind_of
from ascend_graph.versions import guard_or_false

MetaFunction = Callable[..., Any]


# -------------------------------------------------------------------------------------------------------------- dtypes


# ------------------------------------------------------------------------------------------------------- meta functions


def _decide(condition: Any) -> bool:
    """Return whether a condition over sizes is known to hold; adds a guard only where torch's broadcasting does."""
    return condition if isinstance(condition, bool) else guard_or_false(condition)


class _Asked(threading.local):
    """Call of a meta function in this thread, for messages: operators of one relation share its program."""

    #: Name of the operator, and a line with its relation.
    call = ("", "")


_asked = _Asked()


def _check(condition: Any, message: Callable[[], str]) -> None:
    """Demand a condition over sizes, which may be symbolic."""
    if condition is True:
        return
    if isinstance(condition, torch.SymBool):
        subject, shown = _asked.call
        torch._check(condition, lambda: f"{subject}: {message()}{shown}")
    elif not condition:
        raise ShapeError(message())


def meta_function(
    relation: Relation,
    schema: torch.FunctionSchema,
    names: Mapping[str, str] | None = None,
    *,
    ge_numbers: frozenset[str] = frozenset(),
    defaults: Mapping[str, Any] | None = None,
) -> MetaFunction:
    """Build a meta function for ``schema`` that follows ``relation``.

    Args:
        relation: The shape relation. Its inputs are tensor arguments of the schema, its free names other arguments,
            its outputs the returns, in order.
        schema: The schema of the overload, ``overload._schema``.
        names: The relation's name by schema argument; other arguments keep their own names.
        ge_numbers: The arguments that are GE's numbers of dtypes; other dtype arguments are torch's.
        defaults: The value that None stands for, by argument.

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
    fitted = fit(relation, schema, names or {})
    subject = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
    inputs = relation.inputs

    shown = f"\n  shape relation: {relation}"

    def compiled(present: frozenset[str], attrs: Mapping[str, AttrKind]) -> _Compiled:
        program = relation.program(present, attrs, system=TORCH, check=_check, decide=_decide)
        return _Compiled(program.steps, program.template, tuple(map(_maker, program.outputs)))

    # A relation that fits no call at all is refused here, not at the first call.
    whole = compiled(frozenset(inputs), fitted.attrs)
    variants: dict[tuple[object, ...], _Compiled] = {(False,) * len(fitted.optional): whole}
    arguments = schema.arguments
    complete, needed, optional = _completer(arguments), fitted.needed, fitted.optional
    stands_for = [(n, defaults[a.name]) for n, a in enumerate(arguments) if a.name in defaults] if defaults else []
    given, may_be_absent = _picker((*fitted.attr_positions, *fitted.tensor_positions)), _picker(optional)
    of_any_kind = _picker(fitted.of_any_kind)
    ges = [n for n, position in enumerate(fitted.attr_positions) if arguments[position].name in ge_numbers]
    if ges:
        given = _with_ge_numbers(given, ges)
    device_of = _device_of(arguments)
    single, count = len(relation.outputs) == 1, len(arguments)
    varies = bool(optional or fitted.of_any_kind)

    def variant(key: tuple[object, ...], values: Sequence[Any]) -> _Compiled:
        """Compile the program for a call with these arguments absent, and attrs of these classes."""
        missing = {position for position, gone in zip(optional, key, strict=False) if gone}
        kinds = dict(fitted.attrs)
        for name, position in zip(fitted.attrs, fitted.attr_positions, strict=True):
            if position in missing:
                kinds[name] = AttrKind(ExpressionKind.NONE)
            elif position in fitted.of_any_kind:
                kinds[name] = kind_of(values[position])
        absent = {name for position, name in fitted.names.items() if position in missing}
        program = variants[key] = compiled(frozenset(inputs) - absent, kinds)
        return program

    def meta(*args: Any, **kwargs: Any) -> Any:
        values = args if len(args) >= needed and not kwargs else complete(args, kwargs)
        if stands_for:
            values = [*(values if len(values) == count else complete(args, kwargs))]
            for n, default in stands_for:
                values[n] = default if values[n] is None else values[n]
        _asked.call = subject, shown
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
            raise ShapeError(f"{subject}: {error}{shown}") from None
        return tuple(made) if made else None

    meta.__name__ = f"{schema.name.partition('::')[2]}_meta"
    meta.__doc__ = f"Meta function of {subject}: {relation}"
    meta.relation = relation  # type: ignore[attr-defined]
    return meta


#: Function that makes one output from the environment, on a device.
Maker = Callable[[list[Any], torch.device], Any]

_IS_NONE = functools.partial(operator.is_, None)


def _picker(positions: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return a function that selects the values at some positions."""
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
    """Program for one set of present inputs, and the makers of its outputs."""

    steps: tuple[Callable[[list[Any]], None], ...]
    template: tuple[Any, ...]
    makers: tuple[Maker, ...]


def _maker(plan: OutputPlan) -> Maker:
    """Return a function that makes one output."""
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


def _device_of(arguments: Sequence[torch.Argument]) -> Callable[[Sequence[Any]], torch.device]:
    """Return a function from all arguments to the device of the outputs: that of the first tensor."""
    types = [str(a.type) for a in arguments]
    positions = [n for n, type_ in enumerate(types) if "Tensor" in type_]
    if positions and types[positions[0]] == "Tensor":
        first = positions[0]
        return lambda values: values[first].device
    device = next((n for n, type_ in enumerate(types) if type_ in ("Device", "Optional[Device]")), None)

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


def _completer(arguments: Sequence[torch.Argument]) -> Callable[[tuple[Any, ...], dict[str, Any]], Sequence[Any]]:
    """Return a function from a call's arguments to all values in schema order; the dispatcher omits defaults."""
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
