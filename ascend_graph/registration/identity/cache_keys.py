"""Graphs that PyTorch and TorchAir keep on disk: one with a registered operator is not taken once that has changed.

Both take an operator's name as all of it. A graph that was kept has the gradient, the shapes and the defaults of the
time when it was compiled, and a later process got them although the operator had changed. PyTorch's keys hold
what the operators are; TorchAir has no such keys, and compiles anew where a kept program does not load.
"""

from __future__ import annotations

import contextlib
import functools
import uuid
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import fx
from torch._library.simple_registry import singleton

from ascend_graph.errors import AscendGraphError
from ascend_graph.import_patches import patch_modules
from ascend_graph.registration import author_meta
from ascend_graph.registration.identity.fingerprint import NoFingerprintError, fingerprint
from ascend_graph.registration.registered import RegisteredOp, registry

#: Class of all that a key is made of; its first argument is the graph.
_DETAILS = "FxGraphHashDetails"
_ATTRIBUTE = "registered_operators"
#: For a registration that has no fingerprint: another one in each process, for which nothing is found.
_in_this_process: WeakKeyDictionary[RegisteredOp, str] = WeakKeyDictionary()


def _with_operators(module: ModuleType) -> Iterator[None]:
    """Make the keys of a module that is being loaded hold the registered operators of a graph."""
    yield
    details = getattr(module, _DETAILS, None)
    if details is None:
        return
    original = details.__init__

    @functools.wraps(original)
    def init(self: Any, gm: Any, *args: Any, **kwargs: Any) -> None:
        original(self, gm, *args, **kwargs)
        if keys := operator_keys(gm):
            setattr(self, _ATTRIBUTE, tuple(keys.items()))

    details.__init__ = init


_PATCHES = {"torch._inductor.codecache": _with_operators}


def install_when_loaded() -> None:
    """Make the keys hold the operators, also if PyTorch's caches are loaded later. A second call does nothing."""
    patch_modules(_PATCHES)


def operator_keys(graph: fx.GraphModule | None) -> dict[str, str]:
    """Return the fingerprint of each registered operator that a graph calls, by name."""
    found = {op.overload.name(): op for op in _registered_in(graph)} if graph is not None else {}
    return {name: operator_key(found[name]) for name in sorted(found)}


class ChangedOperatorError(AscendGraphError):
    """Error of a kept program whose operators are not what they were."""


def keep_with_operators(graph: fx.GraphModule, compiled: Any) -> Any:
    """Make the program that TorchAir keeps of a graph (``cache_compile``) load only while its operators are what they are."""
    write = getattr(compiled, "get_code", None)
    names = {op.overload.name(): op for op in _registered_in(graph)}
    if write is None or not names:
        return compiled

    def get_code(*args: Any, **kwargs: Any) -> Any:
        code = write(*args, **kwargs)
        if not isinstance(code, str):
            return code
        keys = {name: operator_key(op) for name, op in sorted(names.items())}
        return f"{code}\nfrom {__name__} import {check_unchanged.__name__}\n{check_unchanged.__name__}({keys!r})\n"

    compiled.get_code = get_code
    return compiled


def check_unchanged(keys: Mapping[str, str]) -> None:
    """Check that operators are what they were when a program was kept; one that is not registered is no question.

    Args:
        keys: Their fingerprints at that time, by name.

    Raises:
        ChangedOperatorError: One is registered otherwise.
    """
    for name, key in keys.items():
        op = _registered_as(name)
        if op is not None and operator_key(op) != key:
            raise ChangedOperatorError(
                f"{name}: is registered otherwise than when this program was kept; compile it again"
            )


def _registered_as(name: str) -> RegisteredOp | None:
    """Return a registered operator by the name of its overload; one of an installed package is registered on first use."""
    namespace, _, rest = name.partition("::")
    with contextlib.suppress(AttributeError):
        getattr(getattr(torch.ops, namespace), rest.partition(".")[0])
    return registry.get(name)


def operator_key(op: RegisteredOp) -> str:
    """Return the fingerprint of what graphs take from a registration: schema, prototype, shapes, gradient, batching.

    The kernel is no part: graphs call it.
    """
    try:
        return fingerprint(_parts(op), _Operators({op.overload.name()}))
    except NoFingerprintError:
        return _in_this_process.setdefault(op, uuid.uuid4().hex)


def _parts(op: RegisteredOp) -> tuple[Any, ...]:
    request = op._plan.request
    holder = singleton.find(op.overload.name()).fake_impl
    meta = None if holder.kernel is None else holder.kernel.func
    if meta is not None and meta.__module__ == author_meta.__name__:
        raise NoFingerprintError(meta)
    given = None if meta is None or meta.__module__.startswith("ascend_graph.") else meta
    return (
        str(op.overload._schema),
        str(op.relation),
        op.binding.argument_names(),
        (op.called.op_type, op.called.inputs, op.called.attrs, op.called.outputs),
        request.arguments,
        request.converter,
        given,
        request.meta,
        request.backward,
        request.forward,
        request.batch,
        dict(request.reduce),
    )


class _Operators:
    """Stand-ins for the operators that functions read, such as another one's gradient."""

    def __init__(self, within: set[str]) -> None:
        self._within = within

    def __call__(self, operator: Any) -> Any:
        overloads = (
            [operator]
            if isinstance(operator, torch._ops.OpOverload)
            else [getattr(operator, name) for name in operator.overloads()]
        )
        return [self._one(overload) for overload in overloads]

    def _one(self, overload: Any) -> Any:
        name = overload.name()
        op = registry.get(name)
        if op is None or name in self._within:
            return (name, str(overload._schema))
        self._within.add(name)
        return _parts(op)


def _registered_in(graph: fx.GraphModule) -> Iterator[RegisteredOp]:
    for module in graph.modules():
        for node in module.graph.nodes if isinstance(module, fx.GraphModule) else ():
            for value in (node.target, *node.args, *node.kwargs.values()):
                yield from _of(value)


def _of(value: Any) -> Iterator[RegisteredOp]:
    if isinstance(value, torch._ops.OpOverload):
        if (op := registry.get(value.name())) is not None:
            yield op
    elif isinstance(value, torch._ops.OpOverloadPacket):
        for name in value.overloads():
            yield from _of(getattr(value, name))
