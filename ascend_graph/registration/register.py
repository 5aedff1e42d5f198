"""``register_op``: one call that makes an operator known to eager PyTorch, GE graphs and aclgraph, or changes nothing.

A call is read into a :class:`~ascend_graph.registration.request.Request`, planned
(:mod:`~ascend_graph.registration.planning`: everything is decided and checked, nothing changed), and its changes are
exchanged for those in force (:mod:`~ascend_graph.dispatch.transaction`: all of them or none).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import torch

from ascend_graph.binding import Call
from ascend_graph.binding.bound import Binding
from ascend_graph.binding.op_schema import single_overload
from ascend_graph.dispatch.definition import forget_kernels
from ascend_graph.dispatch.meta import MetaFunction
from ascend_graph.dispatch.transaction import exchange
from ascend_graph.prototypes import OpPrototype
from ascend_graph.registration.cost import Cost, CostModel
from ascend_graph.registration.loop_checks import check_loops
from ascend_graph.registration.loops import Loops
from ascend_graph.registration.planning import Plan, plan
from ascend_graph.registration.request import RegistrationError, Request, read_aclnn_request, read_request
from ascend_graph.registration.torchair import ConverterFunction
from ascend_graph.shapes import Relation


class RegisteredOp:
    """A registered operator: what was decided, from which evidence, and the way back."""

    def __init__(self, planned: Plan) -> None:
        self._plan = planned
        #: The torch operator.
        self.overload: Any = planned.overload

    @property
    def op_type(self) -> str:
        """The GE op type; the aclnn function where no GE operator is known."""
        return self._plan.request.op_type

    @property
    def prototype(self) -> OpPrototype | None:
        """The prototype that it was bound to; None where no GE operator is known."""
        return self._plan.request.prototype if self._plan.request.in_graphs else None

    @property
    def binding(self) -> Binding:
        """What feeds what."""
        return self._plan.binding

    @property
    def call(self) -> Call | None:
        """How the aclnn function is called; None where the operator's kernel is its own."""
        return self._plan.call

    @property
    def called(self) -> OpPrototype:
        """The inputs, attrs and outputs that the aclnn function is called with: of the prototype, or of the schema."""
        return self._plan.request.called

    @property
    def relation(self) -> Relation | None:
        """The shape relation, where there is one."""
        return self._plan.relation

    @property
    def loops(self) -> Loops | None:
        """The dimensions that are declared independent or reduced, where any are."""
        return self._plan.loops

    @property
    def evidence(self) -> Mapping[str, str]:
        """In words, where the meta function, the converter and the gradient come from."""
        return self._plan.evidence

    @cached_property
    def cost_model(self) -> CostModel | None:
        """What tells a call's cost from shapes, dtypes and attrs; None without a relation."""
        return self._plan.cost_model()

    def cost(self, *args: Any, **kwargs: Any) -> Cost:
        """What a call with these arguments costs at least; nothing runs, and the tensors may be on any device, ``meta`` too.

        Returns:
            ``flops``, as ``flops=`` says (None where it was left out), and ``bytes``: those of every tensor that is read and of
            every one that is written, each once.

        Raises:
            RegistrationError: The operator has no shape relation.
            ShapeError: The call does not fit the relation.
        """
        if self.cost_model is None:
            raise RegistrationError(
                f"{self.op_type}: what a call costs follows from a shape relation, and there is none: pass shape="
            )
        return self.cost_model.cost(*self.cost_model.facts(args, kwargs))

    @property
    def converter(self) -> ConverterFunction | None:
        """The converter that was registered; None where an existing one was kept."""
        return self._plan.converter

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the operator."""
        return self.overload(*args, **kwargs)

    @property
    def registered(self) -> bool:
        """Whether the registration is in force."""
        return _registered.get(self._plan.request.operator) is self

    def unregister(self) -> None:
        """Take everything back that registering added; a second call does nothing.

        Graphs compiled before keep what they were compiled with.
        """
        with _lock:
            if self.registered:
                exchange(tuple(self._plan.changes), ())
                forget_kernels(self.overload)
                del _registered[self._plan.request.operator]

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


def _named(name: str) -> list[RegisteredOp]:
    """The registrations of a torch operator's name, or of an op type."""
    with _lock:
        return [op for key, op in _registered.items() if name in (key, op.op_type)]


def register_op(
    op_type: str,
    *,
    eager: Any = None,
    shape: str | Relation | Callable[..., Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
    meta: MetaFunction | Literal["kept"] | None = None,
    converter: ConverterFunction | None = None,
    backward: Any = None,
    samples: Iterable[tuple[Sequence[Any], Mapping[str, Any]]] | None = None,
    aclnn: str | None = None,
    aclnn_arguments: Mapping[str, Any] | None = None,
    batch: Sequence[str] | None = None,
    reduce: Sequence[str] | Mapping[str, str] | None = None,
    flops: str | None = None,
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
        arguments: What names do not settle; see :func:`ascend_graph.binding.arguments.bind`.
        meta: A meta function, as ``torch.library.register_fake`` takes; ``"kept"`` keeps the one that ``eager`` has, beside
            the relation that it was made from, which checks draw calls from.
        converter: A converter, as ``torchair.register_fx_node_ge_converter`` takes.
        backward: The gradient: a function, or another operator; see
            :func:`ascend_graph.registration.autograd.gradient_of`.
        samples: Inputs as ``(args, kwargs)`` to run the eager kernel on, where random ones would not do.
        aclnn: Without ``eager``: the aclnn function, where it is not called after the op type.
        aclnn_arguments: Without ``eager``: what the names of the function's parameters do not settle, ``{"alpha": 1, "out":
            "y"}``; see :func:`ascend_graph.binding.bind_call`.
        batch: Dimensions, groups or ``"..."`` of the relation of which every index is computed by itself, ``("b", "s")``. It is
            checked by running the operator on wholes and on parts where a kernel of it runs here, forward and gradient, and gives
            the rules of ``torch.vmap`` and of DTensor. ``()`` says that there is none: vmap then is a loop, which is announced.
        reduce: Dimensions over which the results of parts are added, ``("k",)``, or ``{"k": "sum"}`` with sum, max or min; checked
            the same way. DTensor gets partial results of it.
        flops: The number of floating-point operations of a call over the relation's dimensions and attrs, ``"2 * m * n * k"``, for
            ``torch.utils.flop_counter``.
        override: Replace an existing meta function, converter, or registration. A converter that is made from the binding
            and replaces another one is compared with it, call by call; see
            :class:`~ascend_graph.registration.comparison.ReplacedConverterWarning`.

    Returns:
        What was decided, and how to take it back.

    Raises:
        UnknownPrototypeError: No prototype of that op type is known.
        SchemaError: ``eager`` is no single overload.
        BindingError: The schema and the prototype, or the prototype and the aclnn function, do not fit by name;
            ``CannMismatchError`` where the installed CANN declares the function with other parameters.
        RelationError, MetaError: The shape relation does not fit.
        InferenceError: No relation explains what the eager kernel returns.
        BatchError: A dimension of ``batch`` or ``reduce`` is none, or is not what is declared; with the call that shows it.

    Warns:
        CannMismatchWarning: the installed CANN defines the op otherwise.
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
    request = read_request(
        op_type,
        eager=eager,
        shape=shape,
        arguments=arguments,
        meta=meta,
        converter=converter,
        backward=backward,
        samples=samples,
        aclnn=aclnn,
        aclnn_arguments=aclnn_arguments,
        batch=batch,
        reduce=reduce,
        flops=flops,
    )
    return _register(request, override)


def register_aclnn(
    function: str,
    *,
    shape: str | Relation | Callable[..., Any] | None = None,
    schema: str | None = None,
    op_type: str | None = None,
    name: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    aclnn_arguments: Mapping[str, Any] | None = None,
    meta: MetaFunction | None = None,
    converter: ConverterFunction | None = None,
    backward: Any = None,
    override: bool = False,
) -> RegisteredOp:
    """Make an aclnn function an operator, without a prototype: eager, aclgraph, export, and GE graphs once ``op_type`` is given.

    It is :func:`register_op` by another source: the header that declares the function in the place of a prototype, and otherwise
    the same checks, the same kernel and the same transaction.

    Args:
        function: The function, ``"aclnnAddRmsNorm"``, of a header that is loaded (:func:`ascend_graph.load_aclnn`) or installed.
        shape: The shape relation of the outputs, in the schema's names or the header's, or a callable as for ``meta``. None where
            nothing is returned.
        schema: The operator's schema, ``"add_rms_norm(Tensor x1, Tensor x2, …) -> (Tensor y, Tensor rstd)"``; its arguments are
            the function's parameters by name. An output of the function may be an argument ``Tensor(a!) out`` that the caller
            passes in. Without it the schema is made from the declaration: tensors and values in the function's order, ``aclScalar``
            as ``Scalar``, ``aclIntArray`` as ``int[]``, ``aclDataType`` as ``ScalarType``, what is read and written as
            ``Tensor(a!)``, outputs as returns, what may be null with the default None.
        op_type: The GE operator that a graph has in its place, by its prototype.
        name: The operator's name, with or without a namespace; ``ascend::`` and the function's in snake case by default.
        arguments: With ``op_type``: what names do not settle between the schema and the prototype; see
            :func:`ascend_graph.binding.arguments.bind`.
        aclnn_arguments: What names do not settle between ``schema`` and the function (:func:`ascend_graph.binding.bind_call`);
            without ``schema`` the values of parameters that the operator shall not have, ``{"cubeMathType": 1}``.
        meta: A meta function, as ``torch.library.register_fake`` takes.
        converter: A converter, as ``torchair.register_fx_node_ge_converter`` takes.
        backward: The gradient; see :func:`register_op`.
        override: Replace an existing converter or registration.

    Returns:
        What was decided, and how to take it back.

    Raises:
        UnknownFunctionError: No header declares the function.
        ConflictingDeclarationsError: Two headers declare it differently.
        BindingError: The schema does not fit the declaration, or a parameter has a type that no call is made with.
        EagerError: The outputs have no shape, or the operator exists already.
        RelationError, MetaError: The shape relation does not fit.
        RegistrationError: The operator is registered differently, or what is asked for contradicts itself.

    >>> import ascend_graph
    >>> _ = ascend_graph.load_aclnn('''
    ... aclnnStatus aclnnLerpExampleGetWorkspaceSize(const aclTensor *self, const aclTensor *end, const aclScalar *weight,
    ...     aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
    ... aclnnStatus aclnnLerpExample(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);
    ... ''')
    >>> op = register_aclnn("aclnnLerpExample", shape="self[*s], end[*s] -> out[*s]")
    >>> print(op.overload._schema)
    ascend::lerp_example(Tensor self, Tensor end, Scalar weight) -> Tensor out
    >>> op(torch.empty(2, 3, device="meta"), torch.empty(2, 3, device="meta"), 0.5).shape
    torch.Size([2, 3])
    >>> op.unregister()
    """
    request = read_aclnn_request(
        function,
        shape=shape,
        schema=schema,
        op_type=op_type,
        name=name,
        arguments=arguments,
        meta=meta,
        converter=converter,
        backward=backward,
        aclnn_arguments=aclnn_arguments,
    )
    return _register(request, override)


def _register(request: Request, override: bool) -> RegisteredOp:
    """Plan a request and put it in force, or do nothing if it is."""
    with _lock:
        earlier = _registered.get(request.operator)
        if earlier is not None:
            differences = request.differences(earlier._plan.request)
            if not differences:
                return earlier
            if not override:
                raise RegistrationError(_already(earlier._plan.request, request, differences))
        planned = plan(request, None if earlier is None else earlier._plan, override, _named)
        try:
            exchange(() if earlier is None else tuple(earlier._plan.changes), tuple(planned.changes))
        finally:
            if planned.overload is not None:
                forget_kernels(planned.overload)
        try:
            _check_loops(planned)
        except BaseException:
            exchange(tuple(planned.changes), () if earlier is None else tuple(earlier._plan.changes))
            forget_kernels(planned.overload)
            raise
        _registered.pop(request.operator, None)
        registered = _registered[request.operator] = RegisteredOp(planned)
        return registered


def _check_loops(planned: Plan) -> None:
    """Check what is declared of dimensions, where the operator has a kernel that runs here."""
    if planned.loops is None:
        return
    device = next(
        (d for key, d in (("CPU", "cpu"), ("PrivateUse1", "npu")) if _has_kernel(planned.overload, key, d)), None
    )
    if device is None:
        planned.evidence["batch"] = f"declared: {planned.loops.written}; not checked, as no kernel of it runs here"
        return
    cuts = check_loops(planned.overload, planned.loops, device=device, samples=planned.request.samples)
    planned.evidence["batch"] = (
        f"declared: {planned.loops.written}; the operator was compared with its parts {cuts} times"
    )


def _has_kernel(overload: Any, key: str, device: str) -> bool:
    if not torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), key):
        return (
            torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "CompositeExplicitAutograd")
            and key == "CPU"
        )
    return device == "cpu" or torch.get_device_module(device).is_available()


def _already(before: Request, now: Request, differences: Iterable[str]) -> str:
    lines = [f"{now.operator} is registered already, differently; pass override=True to replace it:"]
    for name in differences:
        old, new = getattr(before, name), getattr(now, name)
        if name == "prototype":
            old, new = old.place, new.place
        lines.append(f"  {name}: registered {_shown(old)}, asked for {_shown(new)}")
    return "\n".join(lines)


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, Relation) else repr(value)
