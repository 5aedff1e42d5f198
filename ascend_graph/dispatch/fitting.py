"""Fit of a schema's arguments and returns to the inputs and outputs of a relation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ascend_graph.errors import AscendGraphError
from ascend_graph.shapes import Relation
from ascend_graph.shapes.form import AttrKind, ExpressionKind
from ascend_graph.shapes.syntax import DimensionGroup, Dims, Itself, Name, Tensor, ValueOutput, bound_names
from ascend_graph.shapes.unknown import advice


class MetaError(AscendGraphError):
    """Error of a relation that does not fit a schema, or of an operator that cannot take a meta function."""


@dataclass(frozen=True, slots=True)
class _Fitted:
    """Positions of a relation's names among a schema's arguments."""

    tensor_positions: tuple[int, ...]
    #: Kinds of the attrs if they are given.
    attrs: Mapping[str, AttrKind]
    attr_positions: tuple[int, ...]
    #: Arguments that may be absent, arguments whose kind depends on a call's value, and names of inputs by argument.
    optional: tuple[int, ...]
    of_any_kind: tuple[int, ...]
    names: Mapping[int, str]
    #: Number of positional arguments with which a call needs no completion.
    needed: int


#: Expression kind of an argument by its type without ``Optional[…]``; for other types it depends on the value.
_KINDS = {
    **dict.fromkeys(("int", "SymInt"), ExpressionKind.NUMBER),
    **dict.fromkeys(("List[int", "List[SymInt"), ExpressionKind.SIZES),
    "bool": ExpressionKind.BOOL,
    "float": ExpressionKind.FLOAT,
    "str": ExpressionKind.TEXT,
    "ScalarType": ExpressionKind.DTYPE,
}


def _is_list(type_: Any) -> bool:
    return str(type_).removeprefix("Optional[").startswith("List[")


#: Types of tensors that a relation gives.
_TENSORS = frozenset(
    {"Tensor", "Optional[Tensor]", "List[Tensor]", "List[Optional[Tensor]]"}
    | {"Optional[List[Tensor]]", "Optional[List[Optional[Tensor]]]"}
)

_NESTED = "expected Tensor or Tensor[], for relations give these alone. Use such a type in the schema, or pass meta="


def fit(relation: Relation, schema: torch.FunctionSchema, names: Mapping[str, str]) -> _Fitted:
    subject = f"{schema.name}{f'.{schema.overload_name}' if schema.overload_name else ''}"

    def refuse(message: str) -> MetaError:
        return MetaError(f"{subject}: {message}\n  relation: {relation}\n  schema:   {schema}")

    listed = schema.arguments  # each access to it copies all of them
    types = [str(a.type) for a in listed]
    arguments = {names.get(a.name, a.name): n for n, a in enumerate(listed)}
    strangers = names.keys() - {a.name for a in listed}
    if strangers:
        raise refuse(
            f"names= mentions {', '.join(sorted(strangers))}; expected some of the arguments: {', '.join(arguments)}"
        )
    tensors = {name: n for name, n in arguments.items() if "Tensor" in types[n]}
    others = {name: n for name, n in arguments.items() if name not in tensors}
    for tensor in relation.input_tensors:
        if tensor.name not in tensors:
            what = "is not a tensor argument" if tensor.name in arguments else "is not an argument"
            raise refuse(f"{tensor.name} {what}; expected one of the tensor arguments: {', '.join(tensors) or 'none'}")
        _fit_input(tensor, types[tensors[tensor.name]], refuse)
    unknown = relation.free_names - others.keys()
    if unknown:
        dims = sorted({name for t in relation.input_tensors for name in bound_names(t)})
        raise refuse(
            f"{', '.join(sorted(unknown))} must be a dimension or an argument; "
            f"dimensions: {', '.join(dims) or 'none'}; arguments that are not tensors: {', '.join(others) or 'none'}"
            f"{advice(relation, unknown, [*dims, *others])}"
        )
    returns = schema.returns
    if len(relation.outputs) != len(returns):
        raise refuse(
            f"the relation has {len(relation.outputs)} output(s); expected {len(returns)}, as the schema has returns"
        )
    for output, returned in zip(relation.output_tensors, returns, strict=True):
        _fit_output(output, returned, schema=schema, names=names, refuse=refuse)
    attr_names = relation.attr_names
    attrs = {name: n for name, n in others.items() if name in attr_names}
    positions = tuple([tensors[name] for name in relation.inputs])
    by_position = dict(zip(positions, relation.inputs, strict=True))
    attr_positions = tuple(attrs.values())
    optional = tuple([p for p in (*positions, *attr_positions) if types[p].startswith("Optional[")])
    kinds = {
        name: _KINDS.get(str(listed[n].real_type).removeprefix("Optional[").rstrip("]")) for name, n in attrs.items()
    }
    of_any_kind = tuple([attrs[name] for name, kind in kinds.items() if kind is None])
    # The first tensor also counts: it gives the device.
    first = [*tensors.values()][:1]
    required = bool(first) and types[first[0]] == "Tensor"
    needed = max((*positions, *attr_positions, *first), default=-1) + 1 if required else len(listed)
    _check_groups(relation, kinds, {name: types[n] for name, n in attrs.items()}, refuse)
    given = {name: AttrKind(kind or ExpressionKind.OTHER) for name, kind in kinds.items()}
    return _Fitted(positions, given, attr_positions, optional, of_any_kind, by_position, needed)


def _fit_input(tensor: Tensor, type_: str, refuse: Callable[[str], MetaError]) -> None:
    """Raise if a tensor of the relation is a list and its argument is not one, or the reverse."""
    if type_ not in _TENSORS:
        raise refuse(f"{tensor.name} is a {type_}; {_NESTED}")
    shape = tensor.alternatives[-1].shape
    bare = all(isinstance(a.shape, Itself) for a in tensor.alternatives)
    if _is_list(type_) and tensor.index is None and not bare:
        raise refuse(f"{tensor.name} is a list of tensors; write {tensor.name}[i]{shape}")
    if not _is_list(type_) and tensor.index is not None:
        raise refuse(f"{tensor.name} is one tensor, not a list; write {tensor.name}{shape}")


def _check_groups(
    relation: Relation, kinds: Mapping[str, Any], types: Mapping[str, str], refuse: Callable[[str], MetaError]
) -> None:
    """Check that a group of dimensions, as ``s`` in ``*s``, has the name of no argument but a list of sizes."""
    shapes = [a.shape for t in (*relation.input_tensors, *relation.output_tensors) for a in t.alternatives]
    items = [item for shape in shapes if isinstance(shape, Dims) for item in shape.items]
    groups = {i.value.id for i in items if isinstance(i, DimensionGroup) and isinstance(i.value, Name)}
    for name in sorted(groups & {n for n, kind in kinds.items() if kind is not ExpressionKind.SIZES}):
        raise refuse(
            f"*{name} stands for dimensions, and {name} is an argument of type {types[name]}, which is not a list of sizes; "
            f"write another name for the dimensions, such as *{name}_dims"
        )


def _fit_output(
    output: Tensor,
    returned: torch.Argument,
    *,
    schema: torch.FunctionSchema,
    names: Mapping[str, str],
    refuse: Callable[[str], MetaError],
) -> None:
    """Refuse an output of another kind than the schema's return, or without the alias that it declares."""
    number = all(isinstance(a.shape, ValueOutput) for a in output.alternatives)
    if "Tensor" not in str(returned.type):
        if _is_list(returned.type):
            raise refuse(
                f"output {output.name} is a {returned.type}, which no relation gives; pass a function instead: "
                "shape=lambda x: [0, 0]"
            )
        if not number:
            raise refuse(f"output {output.name} is a {returned.type}, not a tensor; write '{output.name} = 0'")
        return
    if str(returned.type) not in _TENSORS:
        raise refuse(f"output {output.name} is a {returned.type}; {_NESTED}")
    if number:
        return
    if _is_list(returned.type) != (output.index is not None) and not all(
        isinstance(a.shape, Itself) for a in output.alternatives
    ):
        raise refuse(
            f"output {output.name} is {'a list' if _is_list(returned.type) else 'not a list'} of tensors in the "
            "schema; it must be so in the relation"
        )
    itself = any(isinstance(a.shape, Itself) for a in output.alternatives)
    alias = returned.alias_info
    if alias is None:
        if itself:
            raise refuse(
                f"output {output.name} would be the input itself, but the schema does not declare the alias; write "
                "Tensor(a) in it"
            )
        return
    owner = next(
        (a for a in schema.arguments if a.alias_info is not None and a.alias_info.before_set == alias.before_set), None
    )
    if owner is not None and alias.is_write:
        name = names.get(owner.name, owner.name)
        if not itself or output.name != name:
            raise refuse(
                f"output {output.name} is the argument {name} itself; write '{name}' alone as the output: -> {name}"
            )
