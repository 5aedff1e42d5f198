"""What one call of ``register_op`` asked for, as a value; two equal requests are one registration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import torch

from ascend_graph.aclnn import AclnnFunction, find_aclnn
from ascend_graph.binding.declared import Declared, bind_schema, derive
from ascend_graph.binding.dtypes import ge_dtype
from ascend_graph.binding.op_schema import read_schema, single_overload
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
    #: The operator that ``register_aclnn`` makes from a function; ``prototype`` is then the one that ``op_type=`` names, or what
    #: would be the function's.
    declared: Declared | None = None
    #: Whether there is a GE operator.
    in_graphs: bool = True
    #: The dimensions of the relation that are independent, those that are reduced and how, and how many operations a call has.
    batch: tuple[str, ...] | None = None
    reduce: Mapping[str, str] = field(default_factory=dict)
    flops: str | None = None
    #: Whether the operator's own meta function stays, beside the relation that it was made from.
    keep_meta: bool = False

    @property
    def called(self) -> OpPrototype:
        """The inputs, attrs and outputs that the call of the aclnn function is made of."""
        return self.prototype if self.declared is None else self.declared.schema.prototype

    def differences(self, other: Request) -> list[str]:
        """The names of the fields in which another request differs."""
        return [f.name for f in fields(self) if not _same(getattr(self, f.name), getattr(other, f.name))]


def read_request(
    op_type: str,
    *,
    eager: Any,
    shape: str | Relation | Callable[..., Any] | None,
    arguments: Mapping[str, Any] | None,
    meta: MetaFunction | Literal["kept"] | None,
    converter: ConverterFunction | None,
    backward: Any,
    samples: Iterable[tuple[Sequence[Any], Mapping[str, Any]]] | None,
    aclnn: str | None = None,
    aclnn_arguments: Mapping[str, Any] | None = None,
    batch: Sequence[str] | None = None,
    reduce: Sequence[str] | Mapping[str, str] | None = None,
    flops: str | None = None,
) -> Request:
    """The request of a call of ``register_op``, whose arguments see there.

    Raises:
        RegistrationError: The arguments contradict each other.
    """
    prototype = find_prototype(op_type)
    overload = None if eager is None else single_overload(eager)
    operator = f"{NAMESPACE}::{operator_schema(prototype).name}" if overload is None else overload.name()
    if callable(shape) and not isinstance(shape, Relation):
        if meta is not None:
            raise RegistrationError(f"{op_type}: shape= is a function and meta= is given too; pass one of them")
        meta, shape = shape, None
    keep_meta = meta == "kept"
    if meta == "kept":
        if overload is None or shape is None:
            raise RegistrationError(
                f'{op_type}: meta="kept" says that eager= has a meta function, which is kept, and shape= its relation; pass both'
            )
        meta = None
    for name, function in (("meta", meta), ("converter", converter)):
        if function is not None and not callable(function):
            raise RegistrationError(f"{op_type}: {name}={function!r} is no function")
    if overload is not None and (aclnn is not None or aclnn_arguments):
        raise RegistrationError(
            f"{op_type}: {operator} has a kernel of its own; aclnn= and aclnn_arguments= are for an operator that registering "
            "defines: leave eager= out"
        )
    relation = parse_relation(shape) if isinstance(shape, str) else shape
    for what, given in (("batch", batch), ("reduce", reduce)):
        if isinstance(given, str):
            raise RegistrationError(f'{op_type}: {what}={given!r} is a text; write {what}=("{given}",)')
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
        batch=None if batch is None else tuple(batch),
        reduce=dict(reduce) if isinstance(reduce, Mapping) else dict.fromkeys(reduce or (), "sum"),
        flops=flops,
        keep_meta=keep_meta,
    )


def read_aclnn_request(
    function: str,
    *,
    shape: str | Relation | Callable[..., Any] | None,
    schema: str | None,
    op_type: str | None,
    name: str | None,
    arguments: Mapping[str, Any] | None,
    meta: MetaFunction | None,
    converter: ConverterFunction | None,
    backward: Any,
    aclnn_arguments: Mapping[str, Any] | None,
) -> Request:
    """The request of a call of ``register_aclnn``, whose arguments see there.

    Raises:
        RegistrationError: The arguments contradict each other.
        UnknownFunctionError: No header declares the function.
        BindingError: The schema and the declaration do not fit.
    """
    declaration = find_aclnn(function)
    fixed = {
        key: int(ge_dtype(value)) if isinstance(value, torch.dtype) else value
        for key, value in (aclnn_arguments or {}).items()
    }
    namespace, separator, rest = (name or schema or "").partition("(")[0].strip().rpartition("::")
    namespace = namespace if separator else NAMESPACE
    relation = parse_relation(shape) if isinstance(shape, str) else shape if isinstance(shape, Relation) else None
    if schema is None:
        outputs = () if relation is None else {*relation.outputs} - {*relation.inputs}
        declared = derive(declaration, rest or None, fixed, outputs)
    else:
        if name is not None:
            raise RegistrationError(
                f"{function}: name={name!r} and schema={schema!r}: the schema has the name; leave name= out"
            )
        declared = _given_schema(declaration, namespace, schema, fixed)
    if arguments and op_type is None:
        raise RegistrationError(
            f"{function}: arguments= is for a prototype, which op_type= names; what the function's parameters are is said in "
            "aclnn_arguments="
        )
    if callable(shape) and not isinstance(shape, Relation):
        if meta is not None:
            raise RegistrationError(f"{function}: shape= is a function and meta= is given too; pass one of them")
        meta = shape
    for what, given in (("meta", meta), ("converter", converter)):
        if given is not None and not callable(given):
            raise RegistrationError(f"{function}: {what}={given!r} is no function")
    prototype = declared.schema.prototype if op_type is None else find_prototype(op_type)
    return Request(
        op_type or function,
        f"{namespace}::{declared.schema.name}",
        None,
        prototype,
        None if relation is None else _in_schema_names(relation, declared),
        dict(arguments or {}),
        meta,
        converter,
        backward,
        None,
        None,
        dict(aclnn_arguments or {}),
        declared,
        op_type is not None,
    )


#: Where operators are defined that have no other name.
NAMESPACE = "ascend"


def _given_schema(function: AclnnFunction, namespace: str, text: str, arguments: Mapping[str, Any]) -> Declared:
    bare = text.strip().removeprefix(f"{namespace}::")
    try:
        parsed = torch._C.parse_schema(f"{namespace}::{bare}")
    except RuntimeError as error:
        raise RegistrationError(f"{function.name}: schema={text!r} is none: {str(error).strip()}") from None
    if parsed.overload_name:
        raise RegistrationError(
            f"{function.name}: schema={text!r} names the overload {parsed.overload_name}; one operator is one overload, the default"
        )
    return bind_schema(function, read_schema(parsed), bare, arguments)


def _in_schema_names(relation: Relation, declared: Declared) -> Relation:
    """The relation in the schema's names, if it speaks the header's."""
    own = {a.name for a in declared.schema.arguments} | {p.name for p in declared.schema.prototype.outputs}
    mentioned = {*relation.inputs, *relation.outputs, *relation.free_names}
    names = {old: new for old, new in declared.names.items() if old != new and old in mentioned and old not in own}
    return relation.renamed(names)


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
