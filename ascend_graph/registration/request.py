"""What one call of ``register_op`` asked for, as a value; two equal requests are one registration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import torch

from ascend_graph.binding.op_schema import single_overload
from ascend_graph.binding.own_schema import operator_schema
from ascend_graph.dispatch.meta import MetaFunction
from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import OpPrototype, find_prototype
from ascend_graph.registration.torchair import ConverterFunction
from ascend_graph.shapes import Relation, parse_relation


class RegistrationError(AscendGraphError):
    """The operator cannot be registered as asked; nothing was changed."""


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One call of ``register_op``, its arguments in one form."""

    op_type: str
    #: ``namespace::name.overload`` of the torch operator.
    operator: str
    #: The overload; None where registering defines it.
    overload: Any
    prototype: OpPrototype
    shape: Relation | None
    arguments: Mapping[str, Any]
    meta: MetaFunction | None
    converter: ConverterFunction | None
    backward: Any
    samples: Sequence[tuple[Sequence[Any], Mapping[str, Any]]] | None
    #: The aclnn function, where it is not called after the op type, and what is said of its parameters.
    aclnn: str | None = None
    aclnn_arguments: Mapping[str, Any] = field(default_factory=dict)

    def differences(self, other: Request) -> list[str]:
        """The names of the fields in which another request differs."""
        return [f.name for f in fields(self) if not _same(getattr(self, f.name), getattr(other, f.name))]


def read_request(
    op_type: str,
    *,
    eager: Any,
    shape: str | Relation | Callable[..., Any] | None,
    arguments: Mapping[str, Any] | None,
    meta: MetaFunction | None,
    converter: ConverterFunction | None,
    backward: Any,
    samples: Iterable[tuple[Sequence[Any], Mapping[str, Any]]] | None,
    aclnn: str | None = None,
    aclnn_arguments: Mapping[str, Any] | None = None,
) -> Request:
    """The request of a call of ``register_op``, whose arguments see there.

    Raises:
        RegistrationError: The arguments contradict each other.
    """
    prototype = find_prototype(op_type)
    overload = None if eager is None else single_overload(eager)
    operator = f"ascend::{operator_schema(prototype).name}" if overload is None else overload.name()
    if callable(shape) and not isinstance(shape, Relation):
        if meta is not None:
            raise RegistrationError(f"{op_type}: shape= is a function and meta= is given too; pass one of them")
        meta, shape = shape, None
    for name, function in (("meta", meta), ("converter", converter)):
        if function is not None and not callable(function):
            raise RegistrationError(f"{op_type}: {name}={function!r} is no function")
    if overload is not None and (aclnn is not None or aclnn_arguments):
        raise RegistrationError(
            f"{op_type}: {operator} has a kernel of its own; aclnn= and aclnn_arguments= are for an operator that registering "
            "defines: leave eager= out"
        )
    relation = parse_relation(shape) if isinstance(shape, str) else shape
    return Request(
        op_type,
        operator,
        overload,
        prototype,
        relation,
        dict(arguments or {}),
        meta,
        converter,
        backward,
        None if samples is None else _read_samples(op_type, samples),
        aclnn,
        dict(aclnn_arguments or {}),
    )


def _read_samples(op_type: str, samples: Iterable[Any]) -> tuple[tuple[tuple[Any, ...], dict[str, Any]], ...]:
    """The samples, kept: what gives them only once may be asked for again."""
    kept = []
    for n, sample in enumerate(samples):
        match sample:
            case (list() | tuple() as args, Mapping() as kwargs):
                kept.append((tuple(args), dict(kwargs)))
            case _:
                raise RegistrationError(
                    f"{op_type}: samples[{n}] is {type(sample).__name__}; a sample is (args, kwargs), such as ((x, y), {{}})"
                )
    return tuple(kept)


def _same(a: Any, b: Any) -> bool:
    """Whether two values are equal; tensors are if they are of one dtype and device and hold the same numbers."""
    if a is b:
        return True
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return _same_tensor(a, b)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same(value, b[key]) for key, value in a.items())
    try:
        return bool(a == b)
    except Exception:
        return False  # what cannot say whether it is equal, as an array of several elements, is taken for another


def _same_tensor(a: Any, b: Any) -> bool:
    if type(a) is not type(b) or (a.dtype, a.device, a.layout) != (b.dtype, b.device, b.layout):
        return False
    if a.layout is not torch.strided or a.device.type == "meta":
        return False
    return a.shape == b.shape and a.stride() == b.stride() and torch.equal(a, b)
