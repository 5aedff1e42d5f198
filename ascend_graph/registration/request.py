"""Request of a ``register_op`` call, as a value. Equal requests denote the same registration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import torch

from ascend_graph.aclnn import AclnnFunction, find_aclnn
from ascend_graph.binding.calls.from_declaration import Declared, derive
from ascend_graph.binding.calls.from_schema import bind_schema
from ascend_graph.binding.dtypes import ge_dtype
from ascend_graph.binding.generated_schema import operator_name
from ascend_graph.binding.op_schema import read_schema, single_overload
from ascend_graph.binding.own_binding import own_binding
from ascend_graph.dispatch.calls import NAMESPACE
from ascend_graph.dispatch.meta import MetaFunction
from ascend_graph.dispatch.torchair import ConverterFunction
from ascend_graph.eager.choices import (
    FunctionChoice,
    Functions,
    arguments_of,
    read_alternatives,
    without_unknown,
)
from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import OpPrototype, find_prototype
from ascend_graph.prototypes.naming import snake_case
from ascend_graph.registration.identity.sameness import difference
from ascend_graph.shapes import Relation, parse_relation
from ascend_graph.shapes.declared_dtypes import complete_relation


class RegistrationError(AscendGraphError):
    """Error of an operator that cannot be registered as requested; nothing was changed."""


@dataclass(frozen=True, slots=True, eq=False)
class RegistrationRequest:
    """Call of ``register_op``, with its arguments in one form."""

    op_type: str
    #: Name ``namespace::name.overload`` of the torch operator.
    operator: str
    #: Overload of the operator; None if the registration defines it.
    overload: Any
    prototype: OpPrototype
    shape: Relation | None
    arguments: Mapping[str, Any]
    meta: MetaFunction | None
    converter: ConverterFunction | None
    backward: Any
    forward: Any
    samples: Sequence[tuple[Sequence[Any], Mapping[str, Any]]] | None
    #: Name of the aclnn function, if it is not the op type's, and the given sources of its parameters.
    aclnn: Functions | None = None
    aclnn_arguments: Mapping[str, Any] = field(default_factory=dict)
    #: Operator that ``register_aclnn`` makes from a function; ``prototype`` is then the one that ``op_type=`` names, or
    #: the function's equivalent of one.
    declared: Declared | None = None
    #: The same for other functions, and the choice among all.
    others: tuple[Declared, ...] = ()
    alternatives: tuple[FunctionChoice, ...] = ()
    #: True if there is a GE operator.
    in_graphs: bool = True
    #: Independent dimensions of the relation, reduced ones with their reduction, and number of operations of a call.
    batch: tuple[str, ...] | None = None
    reduce: Mapping[str, str] = field(default_factory=dict)
    flops: str | None = None
    #: True if the operator's own meta function stays, with the relation that it was made from.
    keep_meta: bool = False

    @property
    def is_kernel(self) -> bool:
        """True if the operator has neither a prototype nor an aclnn function, only its schema and kernel."""
        return self.overload is not None and not self.in_graphs

    def without_ge(self) -> str:
        """Return the message of a GE graph that meets the operator, with the line to write."""
        namespace, _, name = self.operator.partition(".")[0].partition("::")
        guess = "".join(word.capitalize() for word in name.split("_"))
        try:
            known = f'"{find_prototype(guess).op_type}"'
        except AscendGraphError:
            known = '"OpType"'
        if self.is_kernel:
            line = (
                f"ascend_graph.register_op({known}, eager=torch.ops.{namespace}.{name}, …) instead of register_kernel"
            )
        else:
            line = f'ascend_graph.register_aclnn("{self.op_type}", op_type={known}, …)'
        which = "" if known != '"OpType"' else "; its REG_OP is loaded by ascend_graph.load_prototypes"
        return (
            f"{self.operator}: registered without a prototype, so a GE graph has no node for it; eager mode, npugraph_ex, aot_eager "
            f"and export need none. With the prototype's op type write: {line}{which}"
        )

    @property
    def called(self) -> OpPrototype:
        """Inputs, attrs and outputs of the aclnn call."""
        return self.prototype if self.declared is None else self.declared.schema.prototype

    def differences(self, earlier: RegistrationRequest) -> dict[str, str]:
        """Return the fields in which an earlier request differs, with the difference in words."""
        found = {f.name: difference(getattr(earlier, f.name), getattr(self, f.name)) for f in fields(self)}
        return {name: where for name, where in found.items() if where}


def _check_functions(
    meta: MetaFunction | None,
    converter: ConverterFunction | None,
    op_type: str,
    overload: Any,
    aclnn: Functions | None,
    aclnn_arguments: Mapping[str, Any] | None,
    operator: str,
) -> None:
    """Raise if a function is not callable, or if aclnn arguments are given for an operator with its own kernel."""
    for name, function in (("meta", meta), ("converter", converter)):
        if function is not None and (not callable(function) or isinstance(function, type)):
            raise RegistrationError(f"{op_type}: {name}={function!r} must be a function; pass one, not a class")
    if overload is not None and (aclnn is not None or aclnn_arguments):
        raise RegistrationError(
            f"{op_type}: {operator} has a kernel of its own; aclnn= and aclnn_arguments= are for an operator that registering "
            "defines: leave eager= out"
        )


def read_request(
    op_type: str,
    *,
    eager: Any,
    shape: str | Relation | Callable[..., Any] | None,
    arguments: Mapping[str, Any] | None,
    meta: MetaFunction | Literal["kept"] | None,
    converter: ConverterFunction | None,
    backward: Any,
    forward: Any = None,
    samples: Iterable[tuple[Sequence[Any], Mapping[str, Any]]] | None,
    aclnn: Functions | None = None,
    aclnn_arguments: Mapping[str, Any] | None = None,
    batch: Sequence[str] | None = None,
    reduce: Sequence[str] | Mapping[str, str] | None = None,
    flops: str | None = None,
    prototype: OpPrototype | None = None,
    namespace: str = NAMESPACE,
) -> RegistrationRequest:
    """Read the request of a call of ``register_op``, with the same arguments.

    A package's operators have their own ``prototype`` and ``namespace``.

    Raises:
        RegistrationError: The arguments contradict each other.
    """
    prototype = prototype or find_prototype(op_type)
    overload = None if eager is None else single_overload(eager)
    operator = f"{namespace}::{operator_name(prototype.op_type)}" if overload is None else overload.name()
    relation, function, keep_meta = _shapes(op_type, shape, meta)
    relation = None if relation is None else complete_relation(prototype, relation)
    if keep_meta and (overload is None or relation is None):
        raise _nothing_kept(op_type)
    _check_functions(function, converter, op_type, overload, aclnn, aclnn_arguments, operator)
    given_batch, given_reduce = _loops(op_type, batch, reduce)
    return RegistrationRequest(
        op_type,
        operator,
        overload,
        prototype,
        relation,
        _pairs(op_type, "arguments", arguments),
        function,
        converter,
        backward,
        forward,
        None if samples is None else _read_samples(op_type, samples),
        aclnn,
        _pairs(op_type, "aclnn_arguments", aclnn_arguments),
        batch=given_batch,
        reduce=given_reduce,
        flops=flops,
        keep_meta=keep_meta,
    )


def read_kernel_request(
    *,
    eager: Any,
    shape: str | Relation | Callable[..., Any] | None,
    meta: MetaFunction | Literal["kept"] | None,
    converter: ConverterFunction | None,
    backward: Any,
    forward: Any,
    samples: Iterable[tuple[Sequence[Any], Mapping[str, Any]]] | None,
    batch: Sequence[str] | None,
    reduce: Sequence[str] | Mapping[str, str] | None,
    flops: str | None,
) -> RegistrationRequest:
    """Read the request of a call of ``register_kernel``, with the same arguments.

    Raises:
        RegistrationError: The arguments contradict each other.
    """
    overload = single_overload(eager)
    relation, function, keep = _shapes(overload.name(), shape, meta)
    if keep and relation is None:
        raise _nothing_kept(overload.name())
    _check_functions(function, converter, overload.name(), None, None, None, overload.name())
    given_batch, given_reduce = _loops(overload.name(), batch, reduce)
    return RegistrationRequest(
        overload.name(),
        overload.name(),
        overload,
        own_binding(read_schema(overload._schema), relation).prototype,
        relation,
        {},
        function,
        converter,
        backward,
        forward,
        None if samples is None else _read_samples(overload.name(), samples),
        in_graphs=False,
        batch=given_batch,
        reduce=given_reduce,
        flops=flops,
        keep_meta=keep,
    )


def _shapes(
    subject: str,
    shape: str | Relation | Callable[..., Any] | None,
    meta: MetaFunction | Literal["kept"] | None,
) -> tuple[Relation | None, MetaFunction | None, bool]:
    """Return the relation, the meta function, and whether the operator's own meta function is kept."""
    if callable(shape) and not isinstance(shape, Relation):
        if meta is not None:
            raise RegistrationError(f"{subject}: shape= is a function and meta= is given too; pass one of them")
        return None, shape, False
    relation = None if shape is None else parse_relation(shape)
    return (relation, None, True) if meta == "kept" else (relation, meta, False)


def _nothing_kept(subject: str) -> RegistrationError:
    return RegistrationError(
        f'{subject}: meta="kept" says that eager= has a meta function, which is kept, and shape= its relation; pass both'
    )


def _loops(
    subject: str, batch: Sequence[str] | None, reduce: Sequence[str] | Mapping[str, str] | None
) -> tuple[tuple[str, ...] | None, dict[str, str]]:
    """Return the declared dimensions in one form."""
    for what, given in (("batch", batch), ("reduce", reduce)):
        if isinstance(given, str):
            raise RegistrationError(f'{subject}: {what}={given!r} is a text; write {what}=("{given}",)')
        if given is not None and not (isinstance(given, Iterable) and all(isinstance(name, str) for name in given)):
            raise RegistrationError(f'{subject}: {what}={given!r} must be names of dimensions; write {what}=("n",)')
    ways = dict(reduce) if isinstance(reduce, Mapping) else dict.fromkeys(reduce or (), "sum")
    return None if batch is None else tuple(batch), ways


def _declared(
    schema: str | None,
    relation: Relation | None,
    declaration: AclnnFunction,
    rest: str,
    fixed: dict[str, Any],
    name: str | None,
    function: str,
    namespace: str,
) -> Declared:
    """Return the operator of a function, from its declaration or the given schema."""
    if schema is None:
        outputs = () if relation is None else {*relation.outputs} - {*relation.inputs}
        return derive(declaration, rest or None, fixed, outputs)
    if name is not None:
        raise RegistrationError(
            f"{function}: name={name!r} and schema={schema!r}: the schema has the name; leave name= out"
        )
    return _given_schema(declaration, namespace, schema, fixed)


def read_aclnn_request(
    functions: Functions,
    *,
    shape: str | Relation | Callable[..., Any] | None,
    schema: str | None,
    op_type: str | None,
    name: str | None,
    arguments: Mapping[str, Any] | None,
    meta: MetaFunction | None,
    converter: ConverterFunction | None,
    backward: Any,
    forward: Any,
    aclnn_arguments: Mapping[str, Any] | None,
) -> RegistrationRequest:
    """Read the request of a call of ``register_aclnn``, with the same arguments.

    Raises:
        RegistrationError: The arguments contradict each other.
        UnknownFunctionError: No header declares the function.
        BindingError: The schema and the declaration do not fit.
    """
    alternatives = without_unknown(read_alternatives("register_aclnn", functions))
    function = alternatives[0].function
    namespace, separator, rest = (name or schema or "").partition("(")[0].strip().rpartition("::")
    namespace = namespace if separator else NAMESPACE
    relation, meta_function, _ = _shapes(function, shape, meta)
    declared, *others = (
        _declared(
            schema,
            relation,
            find_aclnn(a.function),
            rest or (snake_case(function.removeprefix("aclnn")) if len(alternatives) > 1 else ""),
            _fixed(arguments_of(aclnn_arguments, a, alternatives)),
            name,
            a.function,
            namespace,
        )
        for a in alternatives
    )
    if arguments and op_type is None:
        raise RegistrationError(
            f"{function}: arguments= is for a prototype: give op_type=, or say what the function's parameters are in "
            "aclnn_arguments="
        )
    meta = meta_function or meta
    _check_functions(meta, converter, function, None, None, None, function)
    prototype = declared.schema.prototype if op_type is None else find_prototype(op_type)
    return RegistrationRequest(
        op_type or function,
        f"{namespace}::{declared.schema.name}",
        None,
        prototype,
        None if relation is None else _in_schema_names(relation, declared),
        dict(arguments or {}),
        meta,
        converter,
        backward,
        forward,
        None,
        None,
        dict(aclnn_arguments or {}),
        declared,
        tuple(others),
        alternatives,
        op_type is not None,
    )


def _pairs(subject: str, name: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise RegistrationError(f"{subject}: {name}={given!r} must be a mapping. Write {name}={{'argument': 'input'}}")
    return dict(given or {})


def _fixed(arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return ``aclnn_arguments=`` with GE's numbers for dtypes."""
    return {k: int(ge_dtype(v)) if isinstance(v, torch.dtype) else v for k, v in (arguments or {}).items()}


def _given_schema(function: AclnnFunction, namespace: str, text: str, arguments: Mapping[str, Any]) -> Declared:
    bare = text.strip().removeprefix(f"{namespace}::")
    try:
        parsed = torch._C.parse_schema(f"{namespace}::{bare}")
    except RuntimeError as error:
        raise RegistrationError(
            f"{function.name}: schema={text!r} must parse as a schema of torch: {str(error).strip()}"
        ) from None
    if parsed.overload_name:
        raise RegistrationError(
            f"{function.name}: schema={text!r} names the overload {parsed.overload_name}; expected no overload name"
        )
    return bind_schema(function, read_schema(parsed), bare, arguments)


def _in_schema_names(relation: Relation, declared: Declared) -> Relation:
    """Rename a relation from the header's names to the schema's."""
    own = {a.name for a in declared.schema.arguments} | {p.name for p in declared.schema.prototype.outputs}
    mentioned = {*relation.inputs, *relation.outputs, *relation.free_names}
    names = {old: new for old, new in declared.names.items() if old != new and old in mentioned and old not in own}
    return relation.renamed(names)


def _read_samples(op_type: str, samples: Iterable[Any]) -> tuple[tuple[tuple[Any, ...], dict[str, Any]], ...]:
    """Copy and check the samples, so that those of an iterator can be read again."""
    expected = "(args, kwargs), such as ((x, y), {})"
    if not isinstance(samples, Iterable):
        raise RegistrationError(f"{op_type}: samples={samples!r} must be a list of {expected}")
    kept = []
    for n, sample in enumerate(samples):
        match sample:
            case (list() | tuple() as args, Mapping() as kwargs):
                kept.append((tuple(args), dict(kwargs)))
            case _:
                raise RegistrationError(f"{op_type}: samples[{n}] is {type(sample).__name__}; expected {expected}")
    return tuple(kept)
