"""Function ``register_op``: one call that registers an operator for eager, GE graphs and aclgraph, or changes nothing.

A call is read into a :class:`~ascend_graph.registration.request.RegistrationRequest` and planned
(:mod:`~ascend_graph.registration.planning`: everything is decided and checked, nothing changed). Then its changes
replace the applied ones (:mod:`~ascend_graph.dispatch.transaction`: all of them or none).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import torch

from ascend_graph.dispatch.announced import superseded
from ascend_graph.dispatch.definition import forget_kernels
from ascend_graph.dispatch.meta import MetaFunction
from ascend_graph.dispatch.modes import outside_modes
from ascend_graph.dispatch.torchair import ConverterFunction
from ascend_graph.dispatch.transaction import swap_changes
from ascend_graph.eager.choices import Functions
from ascend_graph.registration.dimensions.independence_checks import check_independent_dims
from ascend_graph.registration.dimensions.input_dtypes import fed_inputs, listed_dtypes
from ascend_graph.registration.plan import RegistrationPlan
from ascend_graph.registration.planning import plan
from ascend_graph.registration.registered import RegisteredOp, find_named, registry, registry_lock
from ascend_graph.registration.request import (
    RegistrationError,
    RegistrationRequest,
    read_aclnn_request,
    read_kernel_request,
    read_request,
)
from ascend_graph.shapes import Relation
from ascend_graph.sources.installed import one_state


def register_op(
    op_type: str,
    *,
    eager: Any = None,
    shape: str | Relation | Callable[..., Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
    meta: MetaFunction | Literal["kept"] | None = None,
    converter: ConverterFunction | None = None,
    backward: Any = None,
    forward: Any = None,
    samples: Iterable[tuple[Sequence[Any], Mapping[str, Any]]] | None = None,
    aclnn: Functions | None = None,
    aclnn_arguments: Mapping[str, Any] | None = None,
    batch: Sequence[str] | None = None,
    reduce: Sequence[str] | Mapping[str, str] | None = None,
    flops: str | None = None,
    override: bool = False,
) -> RegisteredOp:
    """Register an operator for eager PyTorch, TorchAir's GE graphs and aclgraph, with one call.

    All or nothing: everything is checked before anything is registered, and a failure reverts the changes. The same
    call twice is one registration; a different one for the same operator is an error, unless ``override``.

    Args:
        op_type: The op type of a prototype that is loaded (:func:`ascend_graph.load_prototypes`) or installed.
        eager: The torch operator: an overload, a packet that has one, or what ``custom_op`` returned. Without it ``torch.ops.ascend.<snake_case>`` is
            defined from the prototype and calls ``aclnn<OpType>`` on NPU tensors.
        shape: The shape relation, in the prototype's names or in the schema's, or a callable as for ``meta``. Without it,
            in this order: a meta function that exists is kept; outputs that are inputs need none; a relation that
            :func:`ascend_graph.load_relations` read; the relation that the installed package's InferShape follows, or a
            meta function that calls it; the eager kernel is run on small inputs, or on ``samples``, and the one simple
            relation that explains every run is taken.
        arguments: Matches that names do not settle; see :func:`ascend_graph.binding.arguments.bind`.
        meta: A meta function, as ``torch.library.register_fake`` takes; ``"kept"`` keeps the one that ``eager`` has,
            together with the relation that it was made from, which checks draw calls from.
        converter: A converter, as ``torchair.register_fx_node_ge_converter`` takes.
        backward: The gradient: a function, or another operator; see
            :func:`ascend_graph.autograd.register.gradient_of`.
        forward: The tangent of forward-mode differentiation, a function ``(ctx, *tangents)``; see
            :func:`ascend_graph.autograd.register.tangent_of`. Without it the tangent is derived from ``backward``, which is
            differentiated once more; without both, forward mode is refused.
        samples: Inputs as ``(args, kwargs)`` to run the eager kernel on, if random ones would be invalid.
        aclnn: Without ``eager``: the aclnn function, if it is not named after the op type. Several functions are names in the
            order of preference, of which a call takes the first that a library has; or names with conditions,
            ``{"aclnnAddV2": lambda args: args["x"].dtype == torch.int8, "aclnnAdd310": "Ascend310P", "aclnnAdd": None}``: a
            function of all arguments by name, the beginning of a SoC's name, or None for every call.
        aclnn_arguments: Without ``eager``: sources of parameters that names do not settle, such as
            ``{"alpha": 1, "out": "y", "stride": lambda args: args["cache"].stride(0)}``; see
            :func:`ascend_graph.binding.bind_call`. For several functions they may be given by function.
        batch: Independent dimensions, groups or ``"..."`` of the relation, such as ``("b", "s")``: every index is
            computed separately. If a kernel runs here, it is checked by running the operator on wholes and on parts,
            forward and gradient. It gives the rules of ``torch.vmap`` and of DTensor. ``()`` declares that there are
            none: vmap then is a loop, with a warning.
        reduce: Dimensions over which the results of parts are added, ``("k",)``, or ``{"k": "sum"}`` with sum, max or min; checked
            the same way. DTensor gets partial results of it.
        flops: The number of floating-point operations of a call, as a formula over the relation's dimensions and attrs,
            ``"2 * m * n * k"``, for ``torch.utils.flop_counter``.
        override: Replace an existing meta function, converter, or registration. A converter that is made from the binding
            and replaces another one is compared with it, call by call; see
            :class:`~ascend_graph.registration.conversion.comparison.ReplacedConverterWarning`.

    Returns:
        The registered operator, with the decisions and ``unregister``.

    Raises:
        UnknownPrototypeError: No prototype of that op type is known.
        SchemaError: ``eager`` is not a single overload.
        BindingError: The schema and the prototype, or the prototype and the aclnn function, do not fit by name;
            ``CannMismatchError`` if the installed CANN declares the function with other parameters.
        RelationError, MetaError: The shape relation does not fit.
        InferenceError: No relation explains the outputs of the eager kernel.
        BatchError: A dimension of ``batch`` or ``reduce`` is unknown, or not as declared; with the call that shows it.
        RegistrationError: The operator is registered differently, or the arguments contradict each other.

    Warns:
        CannMismatchWarning: The installed CANN defines the op differently.
        NarrowRelationWarning: The relation found by running refuses shapes that the kernel takes.

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
        forward=forward,
        samples=samples,
        aclnn=aclnn,
        aclnn_arguments=aclnn_arguments,
        batch=batch,
        reduce=reduce,
        flops=flops,
    )
    return register_request(request, override)


def register_aclnn(
    function: Functions,
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
    forward: Any = None,
    override: bool = False,
) -> RegisteredOp:
    """Register an aclnn function as an operator without a prototype.

    The operator works in eager mode, aclgraph and export, and with ``op_type`` in GE graphs. It is :func:`register_op`
    with another source: the header that declares the function instead of a prototype. The checks, the kernel and the
    transaction are the same.

    Args:
        function: The function, ``"aclnnAddRmsNorm"``, of a header that is loaded (:func:`ascend_graph.load_aclnn`) or installed;
            or several functions of one schema, as ``aclnn=`` of :func:`register_op` takes them.
        shape: The shape relation of the outputs, in the schema's names or the header's, or a callable as for ``meta``.
            None if nothing is returned.
        schema: The operator's schema, ``"add_rms_norm(Tensor x1, Tensor x2, …) -> (Tensor y, Tensor rstd)"``; its
            arguments are the function's parameters by name. An output of the function may be an argument that the
            caller passes in, ``Tensor(a!) out``. Without it the schema is made from the declaration: tensors and values
            in the function's order, ``aclScalar`` as ``Scalar``, ``aclIntArray`` as ``int[]``, ``aclDataType`` as
            ``ScalarType``, parameters read and written as ``Tensor(a!)``, outputs as returns, parameters that may be
            null with the default None.
        op_type: The GE operator that replaces it in graphs, by its prototype.
        name: The operator's name, with or without a namespace; ``ascend::`` and the function's in snake case by default.
        arguments: With ``op_type``: matches between the schema and the prototype that names do not settle; see
            :func:`ascend_graph.binding.arguments.bind`.
        aclnn_arguments: Matches between ``schema`` and the function that names do not settle
            (:func:`ascend_graph.binding.bind_call`); without ``schema`` the values of parameters that the operator
            shall not have, ``{"cubeMathType": 1}``, or functions of all arguments that compute them.
        meta: A meta function, as ``torch.library.register_fake`` takes.
        converter: A converter, as ``torchair.register_fx_node_ge_converter`` takes.
        backward: The gradient; see :func:`register_op`.
        forward: The tangent; see :func:`register_op`.
        override: Replace an existing converter or registration.

    Returns:
        The registered operator, with the decisions and ``unregister``.

    Raises:
        UnknownFunctionError: No header declares the function.
        ConflictingDeclarationsError: Two headers declare it differently.
        BindingError: The schema does not fit the declaration, or a parameter has an unsupported type.
        EagerError: The outputs have no shape, or the operator exists already.
        RelationError, MetaError: The shape relation does not fit.
        RegistrationError: The operator is registered differently, or the arguments contradict each other.

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
        forward=forward,
        aclnn_arguments=aclnn_arguments,
    )
    return register_request(request, override)


def register_kernel(
    *,
    eager: Any,
    shape: str | Relation | Callable[..., Any] | None = None,
    meta: MetaFunction | Literal["kept"] | None = None,
    converter: ConverterFunction | None = None,
    backward: Any = None,
    forward: Any = None,
    samples: Iterable[tuple[Sequence[Any], Mapping[str, Any]]] | None = None,
    batch: Sequence[str] | None = None,
    reduce: Sequence[str] | Mapping[str, str] | None = None,
    flops: str | None = None,
    override: bool = False,
) -> RegisteredOp:
    """Register an operator that has a schema and an eager kernel, but neither a prototype nor an aclnn function.

    Such a kernel launches directly, or calls something else. It works in eager mode, aclgraph, ``aot_eager`` and export. A
    GE graph refuses it and names the line to write: with a prototype it is registered by :func:`register_op`. The checks
    and the transaction are those of :func:`register_op`.

    Args:
        eager: The torch operator: an overload, a packet that has one, or what ``torch.library.custom_op`` returned.
        shape: The shape relation of the returns, in the schema's names, or a callable as for ``meta``; ``"->"`` if nothing is
            returned. Without it: see :func:`register_op`.
        meta: A meta function, as ``torch.library.register_fake`` takes; ``"kept"`` keeps the one that ``eager`` has.
        converter: A converter, as ``torchair.register_fx_node_ge_converter`` takes, for a kernel that GE graphs replace by
            several nodes.
        backward: The gradient; see :func:`register_op`.
        forward: The tangent; see :func:`register_op`.
        samples: Inputs as ``(args, kwargs)`` to run the eager kernel on, if random ones would be invalid.
        batch: Independent dimensions of the relation, for ``torch.vmap`` and DTensor; see :func:`register_op`.
        reduce: Reduced dimensions; see :func:`register_op`.
        flops: The number of floating-point operations of a call, as a formula; see :func:`register_op`.
        override: Replace an existing meta function, converter, or registration.

    Returns:
        The registered operator, with the decisions and ``unregister``.

    Raises:
        SchemaError: ``eager`` is not a single overload.
        RelationError, MetaError: The shape relation does not fit.
        InferenceError: No relation explains the outputs of the eager kernel.
        BatchError: A dimension of ``batch`` or ``reduce`` is unknown, or not as declared; with the call that shows it.
        RegistrationError: The operator is registered differently, or the arguments contradict each other.

    >>> library = torch.library.Library("kernel_example", "DEF")
    >>> _ = library.define("halves(Tensor x, int parts) -> (Tensor, Tensor)")
    >>> op = register_kernel(
    ...     eager=torch.ops.kernel_example.halves, shape="x[n, d] -> y[n, d // parts], scale[n]: float32"
    ... )
    >>> y, scale = op(torch.empty(4, 6, dtype=torch.float16, device="meta"), 2)
    >>> y.shape, y.dtype, scale.shape, scale.dtype
    (torch.Size([4, 3]), torch.float16, torch.Size([4]), torch.float32)
    >>> op.unregister()
    """
    request = read_kernel_request(
        eager=eager,
        shape=shape,
        meta=meta,
        converter=converter,
        backward=backward,
        forward=forward,
        samples=samples,
        batch=batch,
        reduce=reduce,
        flops=flops,
    )
    return register_request(request, override)


def register_request(request: RegistrationRequest, override: bool = False) -> RegisteredOp:
    """Plan a request and apply it, or do nothing if it is applied already.

    Raises:
        AscendGraphError: The request cannot be met; see :func:`register_op`.
    """
    with registry_lock, one_state(), outside_modes():
        earlier = registry.get(request.operator)
        if earlier is not None:
            differences = request.differences(earlier._plan.request)
            if not differences:
                return earlier
            if not override:
                raise RegistrationError(_already(earlier._plan.request, request, differences))
        # An operator of a package that waits for its first lookup makes way for this one.
        before = None if earlier is None else earlier._plan
        with superseded(request.operator):
            planned = plan(request, before, override, find_named)
            _apply(planned, before)
        registry.pop(request.operator, None)
        registered = registry[request.operator] = RegisteredOp(planned)
        return registered


def _apply(planned: RegistrationPlan, before: RegistrationPlan | None) -> None:
    """Replace the changes of an earlier plan by those of this one, or change nothing."""
    old = () if before is None else tuple(before.changes)
    try:
        swap_changes(old, tuple(planned.changes))
    finally:
        if planned.overload is not None:
            forget_kernels(planned.overload)
    try:
        _check_loops(planned)
    except BaseException:
        swap_changes(tuple(planned.changes), old)
        forget_kernels(planned.overload)
        raise


def _check_loops(planned: RegistrationPlan) -> None:
    """Check the declared dimensions if the operator has a kernel that runs here."""
    if planned.independent_dims is None:
        return
    device = next(
        (d for key, d in (("CPU", "cpu"), ("PrivateUse1", "npu")) if _has_kernel(planned.overload, key, d)), None
    )
    if device is None:
        planned.evidence["batch"] = (
            f"declared: {planned.independent_dims.written}; not checked, as no kernel of it runs here"
        )
        return
    listed = listed_dtypes(fed_inputs(planned.binding))
    cuts = check_independent_dims(
        planned.overload, planned.independent_dims, device=device, samples=planned.request.samples, listed=listed
    )
    planned.evidence["batch"] = (
        f"declared: {planned.independent_dims.written}; the operator was compared with its parts {cuts} times"
    )


def _has_kernel(overload: Any, key: str, device: str) -> bool:
    if not torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), key):
        return (
            torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "CompositeExplicitAutograd")
            and key == "CPU"
        )
    return device == "cpu" or torch.get_device_module(device).is_available()


def _already(before: RegistrationRequest, now: RegistrationRequest, differences: Mapping[str, str]) -> str:
    lines = [f"{now.operator} is registered already, differently; pass override=True to replace it:"]
    for name, where in differences.items():
        old, new = getattr(before, name), getattr(now, name)
        if name == "prototype" and before.is_kernel is now.is_kernel:
            old, new = old.place, new.place
        elif name == "prototype":
            old, new = (r.prototype.place if r.in_graphs else "none, by register_kernel" for r in (before, now))
        line = f"  {name}: registered {_shown(old)}, asked for {_shown(new)}"
        within = where.startswith("its ") and callable(old) and callable(new)
        lines.append(f"{line}; {where}" if within else line)
    return "\n".join(lines)


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, Relation) else repr(value)
