"""``register_op``: one call that makes an operator known to eager PyTorch, GE graphs and aclgraph, or changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import OpPrototype, find_prototype
from ascend_graph.registration.autograd import Gradient, plan_gradient, register_gradient
from ascend_graph.registration.binding import Binding, BindingError, bind
from ascend_graph.registration.converter import (
    ConverterFunction,
    existing_converter,
    make_converter,
    register_converter,
)
from ascend_graph.registration.meta import MetaFunction, existing_meta, meta_function, register_meta
from ascend_graph.registration.schema import read_schema, single_overload
from ascend_graph.shapes import Relation, parse_relation


class RegistrationError(AscendGraphError):
    """The operator cannot be registered as asked; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Request:
    """What one call of ``register_op`` asked for; two equal requests are one registration."""

    op_type: str
    overload: Any
    prototype: OpPrototype
    shape: Any
    arguments: tuple[tuple[str, Any], ...]
    meta: Any
    converter: Any
    backward: Any


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
        return _registered.get(self.overload) is self

    def unregister(self) -> None:
        """Take everything back that registering added; a second call does nothing.

        Graphs compiled before keep what they were compiled with.
        """
        with _lock:
            if _registered.get(self.overload) is self:
                del _registered[self.overload]
            _undo(self._handles, self.overload)

    def __repr__(self) -> str:
        return f"RegisteredOp({self.op_type!r}, {self.overload}{'' if self.registered else ', unregistered'})"


_lock = threading.RLock()
_registered: dict[Any, RegisteredOp] = {}


def registered_ops() -> tuple[RegisteredOp, ...]:
    """The operators registered now, in the order they were registered."""
    with _lock:
        return tuple(_registered.values())


def register_op(
    op_type: str,
    *,
    eager: Any = None,
    shape: str | Relation | Callable[..., Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
    meta: MetaFunction | None = None,
    converter: ConverterFunction | None = None,
    backward: Any = None,
    override: bool = False,
) -> RegisteredOp:
    """Make an operator known to eager PyTorch, TorchAir's GE graphs and aclgraph, with one call.

    All or nothing: everything is checked before anything is registered, and a failure takes back what was done. The same
    call twice is one registration; a different one for the same operator is an error, unless ``override``.

    Args:
        op_type: The op type of a prototype that is loaded (:func:`ascend_graph.load_prototypes`) or installed.
        eager: The torch operator: an overload, or a packet that has one.
        shape: The shape relation, in the prototype's names or in the schema's, or a callable as for ``meta``.
        arguments: What names do not settle; see :func:`ascend_graph.registration.binding.bind`.
        meta: A meta function, as ``torch.library.register_fake`` takes.
        converter: A converter, as ``torchair.register_fx_node_ge_converter`` takes.
        backward: The gradient: a function, or another operator; see
            :func:`ascend_graph.registration.autograd.plan_gradient`.
        override: Replace an existing meta function, converter, or registration.

    Returns:
        What was decided, and how to take it back.

    Raises:
        UnknownPrototypeError: No prototype of that op type is known.
        SchemaError: ``eager`` is no single overload.
        BindingError: The schema and the prototype do not fit by name.
        RelationError, MetaError: The shape relation does not fit.
        RegistrationError: The operator is registered differently, or there is no meta function to be had.
    """
    prototype = find_prototype(op_type)
    if eager is None:
        raise RegistrationError(
            f"{op_type}: pass eager=, the torch operator that launches it, e.g. eager=torch.ops.npu.npu_add_custom"
        )
    overload = single_overload(eager)
    if callable(shape) and not isinstance(shape, Relation):
        if meta is not None:
            raise RegistrationError(f"{op_type}: shape= is a function and meta= is given too; pass one of them")
        meta, shape = shape, None
    relation = parse_relation(shape) if isinstance(shape, str) else shape
    request = Request(
        op_type, overload, prototype, relation, tuple((arguments or {}).items()), meta, converter, backward
    )
    with _lock:
        earlier = _registered.get(overload)
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
                _Plan(earlier._request, None, True).carry_out()
            raise


def _already(earlier: RegisteredOp, request: Request) -> str:
    lines = [f"{request.overload} is registered already, differently; pass override=True to replace it:"]
    for name in Request.__slots__:
        before, now = getattr(earlier._request, name), getattr(request, name)
        if before != now:
            if name == "prototype":
                before, now = before.place, now.place
            lines.append(f"  {name}: registered {_shown(before)}, asked for {_shown(now)}")
    return "\n".join(lines)


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, Relation) else repr(value)


def _undo(handles: list[Any], overload: Any) -> None:
    while handles:
        handles.pop().remove()
    # The overload remembers which kernel each dispatch key led to, also one that is gone: calling that is a crash.
    overload._dispatch_cache.clear()


class _Plan:
    """Everything that one registration needs, computed and checked before anything is changed."""

    def __init__(self, request: Request, earlier: RegisteredOp | None, override: bool) -> None:
        self.request, self.override = request, override
        overload, relation = request.overload, request.shape
        schema = read_schema(overload._schema)
        output_names = relation.outputs if relation is not None else ()
        self.binding = bind(schema, request.prototype, dict(request.arguments), output_names=output_names)
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
        raise RegistrationError(
            f"{overload} has no meta function, and shape= says nothing about its outputs. Write the relation of output to "
            f"input shapes, for example shape={self.example_relation()!r}"
        )

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

    def example_relation(self) -> str:
        inputs = [t for t in self.binding.schema.arguments if t.is_tensor and not t.optional]
        names = self.binding.argument_names()
        left = ", ".join(f"{names.get(t.name, t.name)}[...]" for t in inputs)
        outputs = [self.request.prototype.outputs[r.output] for r in self.binding.returns if r.output is not None]
        return f"{left} -> {', '.join(f'{o.name}[...]' for o in outputs)}"

    def plan_converter(self, ours: bool) -> ConverterFunction | None:
        request = self.request
        existing = None if ours else existing_converter(request.overload)
        if request.converter is not None:
            if existing is not None and not self.override:
                raise RegistrationError(
                    f"{request.overload} has a converter already ({existing.__module__}.{existing.__qualname__}): leave "
                    "converter= out to keep it, or pass override=True to replace it"
                )
            self.evidence["converter"] = "the function given"
            return request.converter
        if existing is not None and not self.override:
            self.evidence["converter"] = f"kept: {existing.__module__}.{existing.__qualname__}"
            return None
        self.evidence["converter"] = "made from the binding"
        return make_converter(self.binding)

    def carry_out(self) -> RegisteredOp:
        request, handles = self.request, []
        try:
            if self.meta is not None:
                handles.append(register_meta(request.overload, self.meta, override=self.override))
            if self.converter is not None:
                handles.append(register_converter(request.overload, self.converter, override=self.override))
            if self.gradient is not None:
                handles.append(register_gradient(request.overload, self.gradient))
        except BaseException:
            _undo(handles, request.overload)
            raise
        registered = RegisteredOp(
            request.op_type,
            request.overload,
            request.prototype,
            self.binding,
            request.shape,
            self.evidence,
            self.converter,
            request,
            handles,
        )
        _registered[request.overload] = registered
        return registered
