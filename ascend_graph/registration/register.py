"""``register_op``: one call that makes an operator known to eager PyTorch, GE graphs and aclgraph, or changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch

from ascend_graph.eager import operator_schema
from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import OpPrototype, find_prototype
from ascend_graph.registration.autograd import Gradient, plan_gradient, register_gradient
from ascend_graph.registration.binding import Binding, BindingError, bind
from ascend_graph.registration.comparison import beside
from ascend_graph.registration.converter import make_converter
from ascend_graph.registration.dispatch import forget_kernels
from ascend_graph.registration.functionalize import needs_twin, register_twin
from ascend_graph.registration.inference import infer_overload
from ascend_graph.registration.meta import MetaFunction, existing_meta, meta_function, register_meta
from ascend_graph.registration.schema import read_schema, single_overload
from ascend_graph.registration.torchair import ConverterFunction, existing_converter, register_converter
from ascend_graph.shapes import Relation, parse_relation


class RegistrationError(AscendGraphError):
    """The operator cannot be registered as asked; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Request:
    """What one call of ``register_op`` asked for; two equal requests are one registration."""

    op_type: str
    #: ``namespace::name.overload`` of the torch operator.
    operator: str
    #: The overload; None where registering defines it.
    overload: Any
    prototype: OpPrototype
    shape: Any
    arguments: tuple[tuple[str, Any], ...]
    meta: Any
    converter: Any
    backward: Any
    samples: Any


@dataclass(slots=True, eq=False)
class RegisteredOp:
    """A registered operator: what was decided, from which evidence, and the way back."""

    op_type: str
    overload: Any
    prototype: OpPrototype
    binding: Binding
    #: The shape relation, where there is one.
    relation: Relation | None
    #: In words, where the meta function, the converter and the gradient come from.
    evidence: Mapping[str, str]
    #: The converter that was registered; None where an existing one was kept.
    converter: ConverterFunction | None
    _request: Request
    _handles: list[Any] = field(default_factory=list)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the operator."""
        return self.overload(*args, **kwargs)

    @property
    def registered(self) -> bool:
        """Whether the registration is in force."""
        return _registered.get(self._request.operator) is self

    def unregister(self) -> None:
        """Take everything back that registering added; a second call does nothing.

        Graphs compiled before keep what they were compiled with.
        """
        with _lock:
            if _registered.get(self._request.operator) is self:
                del _registered[self._request.operator]
            _undo(self._handles, self.overload)

    def _restore(self, again: RegisteredOp) -> None:
        """Take over what was registered again for the same request, so that this object is in force as before."""
        self.overload, self._handles = again.overload, again._handles
        _registered[self._request.operator] = self

    def __repr__(self) -> str:
        return f"RegisteredOp({self.op_type!r}, {self.overload}{'' if self.registered else ', unregistered'})"


_lock = threading.RLock()
_registered: dict[str, RegisteredOp] = {}


def registered_ops() -> tuple[RegisteredOp, ...]:
    """The operators registered now, in the order they were registered."""
    with _lock:
        return tuple(_registered.values())


def find_registered(operator: Any) -> RegisteredOp | None:
    """The registration of a torch operator, of a name such as ``npu::npu_swiglu``, or of an op type; None if there is none."""
    if isinstance(operator, torch._ops.OpOverloadPacket):
        operator = single_overload(operator)
    name = operator.name() if isinstance(operator, torch._ops.OpOverload) else operator
    with _lock:
        return next((op for key, op in _registered.items() if name in (key, op.op_type)), None)


def register_op(
    op_type: str,
    *,
    eager: Any = None,
    shape: str | Relation | Callable[..., Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
    meta: MetaFunction | None = None,
    converter: ConverterFunction | None = None,
    backward: Any = None,
    samples: Iterable[tuple[Sequence[Any], Mapping[str, Any]]] | None = None,
    override: bool = False,
) -> RegisteredOp:
    """Make an operator known to eager PyTorch, TorchAir's GE graphs and aclgraph, with one call.

    All or nothing: everything is checked before anything is registered, and a failure takes back what was done. The same
    call twice is one registration; a different one for the same operator is an error, unless ``override``.

    Args:
        op_type: The op type of a prototype that is loaded (:func:`ascend_graph.load_prototypes`) or installed.
        eager: The torch operator: an overload, or a packet that has one. Without it ``torch.ops.ascend.<snake_case>`` is
            defined from the prototype and calls ``aclnn<OpType>`` on NPU tensors.
        shape: The shape relation, in the prototype's names or in the schema's, or a callable as for ``meta``. Without it,
            in this order: a meta function that exists is kept; outputs that are inputs need none; the eager kernel is
            run on small inputs, or on ``samples``, and the one simple relation that explains every run is taken.
        arguments: What names do not settle; see :func:`ascend_graph.registration.binding.bind`.
        meta: A meta function, as ``torch.library.register_fake`` takes.
        converter: A converter, as ``torchair.register_fx_node_ge_converter`` takes.
        backward: The gradient: a function, or another operator; see
            :func:`ascend_graph.registration.autograd.plan_gradient`.
        samples: Inputs as ``(args, kwargs)`` to run the eager kernel on, where random ones would not do.
        override: Replace an existing meta function, converter, or registration. A converter that is made from the binding
            and replaces another one is compared with it, call by call; see
            :class:`~ascend_graph.registration.comparison.ReplacedConverterWarning`.

    Returns:
        What was decided, and how to take it back.

    Raises:
        UnknownPrototypeError: No prototype of that op type is known.
        SchemaError: ``eager`` is no single overload.
        BindingError: The schema and the prototype do not fit by name.
        RelationError, MetaError: The shape relation does not fit.
        InferenceError: No relation explains what the eager kernel returns.

    Warns:
        NarrowRelationWarning: the relation found by running refuses shapes that the kernel takes.
        RegistrationError: The operator is registered differently, or what is asked for contradicts itself.

    >>> import ascend_graph
    >>> _ = ascend_graph.load_prototypes('''
    ... REG_OP(ScaleExample)
    ...     .INPUT(x, TensorType({DT_FLOAT}))
    ...     .OUTPUT(y, TensorType({DT_FLOAT}))
    ...     .REQUIRED_ATTR(factor, Float)
    ...     .OP_END_FACTORY_REG(ScaleExample)
    ... ''')
    >>> library = torch.library.Library("register_example", "DEF")
    >>> _ = library.define("scale(Tensor self, float factor) -> Tensor")
    >>> op = register_op("ScaleExample", eager=torch.ops.register_example.scale, shape="x[*s] -> y[*s]")
    >>> op.binding.argument_names()
    {'self': 'x', 'factor': 'factor'}
    >>> op(torch.empty(2, 3, device="meta"), 2.0).shape
    torch.Size([2, 3])
    >>> op.unregister()
    """
    prototype = find_prototype(op_type)
    overload = None if eager is None else single_overload(eager)
    operator = f"ascend::{operator_schema(prototype).name}" if overload is None else overload.name()
    if callable(shape) and not isinstance(shape, Relation):
        if meta is not None:
            raise RegistrationError(f"{op_type}: shape= is a function and meta= is given too; pass one of them")
        meta, shape = shape, None
    relation = parse_relation(shape) if isinstance(shape, str) else shape
    given = tuple(sorted((arguments or {}).items(), key=lambda entry: entry[0]))
    request = Request(op_type, operator, overload, prototype, relation, given, meta, converter, backward, samples)
    with _lock:
        earlier = _registered.get(operator)
        if earlier is not None and earlier._request == request:
            return earlier
        if earlier is not None and not override:
            raise RegistrationError(_already(earlier, request))
        plan = _Plan(request, earlier, override)
        if earlier is not None:
            earlier.unregister()
        try:
            return plan.carry_out()
        except BaseException:
            if earlier is not None:
                earlier._restore(_Plan(earlier._request, None, True).carry_out())
            raise


def _already(earlier: RegisteredOp, request: Request) -> str:
    lines = [f"{request.operator} is registered already, differently; pass override=True to replace it:"]
    for name in Request.__slots__:
        before, now = getattr(earlier._request, name), getattr(request, name)
        if before != now:
            if name == "prototype":
                before, now = before.place, now.place
            lines.append(f"  {name}: registered {_shown(before)}, asked for {_shown(now)}")
    return "\n".join(lines)


def _qualified(function: Any) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, Relation) else repr(value)


def _undo(handles: list[Any], overload: Any) -> None:
    while handles:
        handles.pop().remove()
    if overload is not None:
        forget_kernels(overload)


class _Plan:
    """Everything that one registration needs, computed and checked before anything is changed."""

    def __init__(self, request: Request, earlier: RegisteredOp | None, override: bool) -> None:
        self.request, self.override = request, override
        relation = self.relation = request.shape
        if request.overload is None:
            schema = torch._C.parse_schema(f"ascend::{operator_schema(request.prototype)}")
        else:
            schema = request.overload._schema
        output_names = relation.outputs if relation is not None else ()
        self.binding = bind(
            read_schema(schema),
            request.prototype,
            dict(request.arguments),
            output_names=output_names,
            own_schema=request.overload is None,
        )
        self.evidence: dict[str, str] = {}
        ours = {type(handle).__name__ for handle in earlier._handles} if earlier is not None else set()
        self.meta = self.plan_meta("MetaHandle" in ours)
        self.converter = self.plan_converter("ConverterHandle" in ours)
        self.gradient: Gradient | None = None
        if request.backward is not None:
            self.gradient = plan_gradient(request.backward, self.binding)
            self.evidence["gradient"] = self.gradient.description

    def plan_meta(self, ours: bool) -> MetaFunction | None:
        request = self.request
        overload, relation = request.overload, request.shape
        if overload is None:
            # Defining the operator checks these, and registers the meta function with the kernel.
            self.evidence["eager"] = f"aclnn{request.op_type}, called by the kernel made from the prototype"
            self.evidence["meta"] = (
                "the function given" if request.meta is not None else f"the relation given: {relation}"
            )
            return cast("MetaFunction | None", request.meta)
        wanted: MetaFunction | None = request.meta
        source = "the function given"
        if relation is not None:
            checked = meta_function(relation, overload._schema, self.relation_names(relation))
            if wanted is None:
                wanted, source = checked, f"the relation given: {relation}"
        existing = None if ours else existing_meta(overload)
        if wanted is not None:
            if existing is not None and not self.override:
                raise RegistrationError(
                    f"{overload} has a meta function already ({existing}): leave shape= and meta= out to keep it, or pass "
                    "override=True to replace it"
                )
            self.evidence["meta"] = source
            return wanted
        if existing is not None:
            self.evidence["meta"] = f"kept: {existing}"
            return None
        on_npu = torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "PrivateUse1")
        inferred = infer_overload(overload, samples=request.samples, device="npu" if on_npu else "cpu")
        self.relation = inferred.relation
        ran = f"found by {inferred.runs} runs of the eager kernel" if inferred.runs else "outputs that are inputs"
        notes = "".join(f"; {note}" for note in (inferred.narrower, *inferred.strides) if note)
        self.evidence["meta"] = f"{ran}: {inferred.relation}{notes}"
        return meta_function(inferred.relation, overload._schema)

    def relation_names(self, relation: Relation) -> dict[str, str]:
        """From schema names to the relation's, which speaks either the prototype's names or the schema's."""
        ge_names = self.binding.argument_names()
        mentioned = {*relation.inputs, *relation.free_names}
        own = {argument.name for argument in self.binding.schema.arguments}
        if mentioned <= set(ge_names.values()):
            return ge_names
        if mentioned <= own:
            return {}
        strangers = sorted(mentioned - set(ge_names.values()) - own)
        raise BindingError(
            f"{self.request.op_type}: the relation {relation} mentions {', '.join(strangers or sorted(mentioned))}; use "
            f"the prototype's names ({', '.join(ge_names.values())}) or the schema's ({', '.join(sorted(own))}), not a mix"
        )

    def plan_converter(self, ours: bool) -> ConverterFunction | None:
        request = self.request
        existing = None if ours or request.overload is None else existing_converter(request.overload)
        if request.converter is not None:
            if existing is not None and not self.override:
                raise RegistrationError(
                    f"{request.overload} has a converter already ({_qualified(existing)}): leave "
                    "converter= out to keep it, or pass override=True to replace it"
                )
            self.evidence["converter"] = "the function given"
            return cast("ConverterFunction", request.converter)
        if existing is not None and not self.override:
            self.evidence["converter"] = f"kept: {_qualified(existing)}"
            return None
        self.evidence["converter"] = "made from the binding"
        if existing is not None:
            self.evidence["converter"] += f"; its nodes are compared with those of {_qualified(existing)}"
        return make_converter(self.binding)

    def compared(self, ours: ConverterFunction, replaced: ConverterFunction) -> ConverterFunction:
        """Around a converter made from the binding: what says where it differs from the one that it replaces."""
        if self.request.converter is not None:
            return ours
        return beside(ours, replaced, self.request.operator, self.request.prototype)

    def carry_out(self) -> RegisteredOp:
        request, handles = self.request, list[Any]()
        overload = request.overload
        try:
            if overload is None:
                # eager.operators makes its meta functions with this package: imported here, where both are complete.
                from ascend_graph.eager import define_operator

                defined = define_operator(request.prototype, self.meta or request.shape)
                handles.append(defined)
                overload = defined.overload
            elif self.meta is not None:
                handles.append(register_meta(overload, self.meta, override=self.override))
            if self.converter is not None:
                handles.append(
                    register_converter(overload, self.converter, override=self.override, around=self.compared)
                )
            if needs_twin(overload, self.binding.schema):
                handles.append(register_twin(overload, self.binding, request.converter))
            if self.gradient is not None:
                handles.append(register_gradient(overload, self.gradient))
        except BaseException:
            _undo(handles, overload)
            raise
        registered = RegisteredOp(
            request.op_type,
            overload,
            request.prototype,
            self.binding,
            self.relation,
            self.evidence,
            self.converter,
            request,
            handles,
        )
        _registered[request.operator] = registered
        return registered
