"""Deployment of random operators: a package with their kernels, registration by each one's route, and references."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import ascend_graph
from ascend_graph.host import build_operator_package
from benchmarks.fuzz import reference
from benchmarks.fuzz.operators import NUMBERS, TORCH_NUMBERS, FuzzOperator, prototype, relation, schema
from benchmarks.fuzz.overlaps import write_apart

#: Namespace of operators with their authors' own schemas.
NAMESPACE = "fuzzed"
_LIBRARIES: list[torch.library.Library] = []
#: Results of registrations by operator name.
_REGISTERED: dict[str, Any] = {}
_PACKAGES: dict[str, Path] = {}


def kernel_module(ops: Sequence[FuzzOperator]) -> str:
    """Return the Python module of the operators' kernels."""
    text = Path(reference.__file__).read_text()
    for op in ops:
        inputs = ", ".join(i.name for i in op.inputs)
        attrs = f", *, {', '.join(a.name for a in op.attrs)}" if op.attrs else ""
        given = ", ".join(f"{a.name!r}: {a.name}" for a in op.attrs)
        text += (
            f"\n\ndef {op.snake}({inputs}{attrs}):\n"
            f"    outputs = evaluate({op.data()!r}, [{inputs}], {{{given}}})\n"
            f"    return outputs if len(outputs) > 1 else outputs[0]\n"
        )
    return text


def build_package(ops: Sequence[FuzzOperator], directory: Path) -> Path:
    """Build one package of all operators and put it on the search path of this process."""
    directory.mkdir(parents=True, exist_ok=True)
    text = kernel_module(ops)
    name = f"kernels_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    (directory / f"{name}.py").write_text(text)
    header = directory / "op_proto.h"
    header.write_text("\n".join(map(prototype, ops)))
    spec = importlib.util.spec_from_file_location(name, directory / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    kernels = {op.name: getattr(module, op.snake) for op in ops}
    package = build_operator_package(directory / "opp", header, kernels)
    known = [p for p in os.environ.get("ASCEND_CUSTOM_OPP_PATH", "").split(os.pathsep) if p]
    os.environ["ASCEND_CUSTOM_OPP_PATH"] = os.pathsep.join([str(package), *known])
    _PACKAGES.update({op.name: package for op in ops})
    return package


def _arguments(op: FuzzOperator) -> dict[str, Any] | None:
    names = [*op.inputs, *op.attrs]
    pairs = {a.label: a.name for a in names if a.label != a.name and a.label.endswith("_t")}
    return pairs or None


def _functions(op: FuzzOperator, *, of: str) -> Any:
    """Return ``backward=`` or ``forward=`` by the same sums, in the form in which the operator has them.

    A pair saves no outputs: a program that writes to one could not be differentiated then, unlike the reference.
    """
    data = op.data()
    places = [place for place in op.order if place < len(op.inputs)]

    def values(saved: Sequence[Any]) -> list[Any]:
        """Return the inputs in the prototype's order, from those in the schema's."""
        return [saved[places.index(place)] for place in range(len(op.inputs))]

    def compute(ctx: Any, saved: Sequence[Any], given: Sequence[Any]) -> Any:
        inputs = values(saved)
        if of == "backward":
            results = [reference.gradient(data, inputs, list(given), place) for place in places]
            return (
                tuple(results)
                if op.form != "pair"
                else (*results, *[None] * (len(ctx.needs_input_grad) - len(results)))
            )
        made = reference.tangents(data, inputs, values(list(given)[: len(places)]))
        return tuple(made) if len(made) > 1 else made[0]

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any, keyword_only_inputs: Any = None) -> None:
        getattr(ctx, "save_for_backward" if of == "backward" else "save_for_forward")(*inputs[: len(places)])

    if op.form == "pair":
        return lambda ctx, *given: compute(ctx, ctx.saved_tensors, given), setup_context
    if op.form == "names":
        labels = [op.inputs[place].label for place in places]
        scope: dict[str, Any] = {"compute": compute}
        exec(
            f"def named(ctx, *given, {', '.join(labels)}):\n    return compute(ctx, [{', '.join(labels)}], given)",
            scope,
        )
        return scope["named"]

    def from_context(ctx: Any, *given: Any) -> Any:
        saved = list(ctx.saved_tensors)
        return compute(ctx, saved[: len(places)], given)

    return from_context


def _converter(op: FuzzOperator) -> Callable[..., Any]:
    """Return a converter as an author writes it by hand, which adds the node alone."""

    def convert(*args: Any, **kwargs: Any) -> Any:
        inputs = dict(zip((place for place in op.order if place < len(op.inputs)), args, strict=False))
        attrs = {a.name: kwargs.get(a.label, a.omitted) for a in op.attrs}
        attrs = {name: value for name, value in attrs.items() if value is not None}
        raw = getattr(ascend_graph.raw_ops, op.name)
        return raw(*(inputs.get(place) for place in range(len(op.inputs))), **attrs)

    return convert


def register(op: FuzzOperator) -> Any:
    """Register the operator by its route and return its overload."""
    if op.name in _REGISTERED:
        return _REGISTERED[op.name]
    package = _PACKAGES[op.name]
    options: dict[str, Any] = {"shape": relation(op)}
    if op.backward:
        options["backward"] = _functions(op, of="backward")
    if op.forward:
        options["forward"] = _functions(op, of="forward")
    if op.batch is not None and op.route != "aclnn":
        options["batch"] = op.batch
    if op.route == "overload":
        library = torch.library.Library(NAMESPACE, "FRAGMENT")
        _LIBRARIES.append(library)
        library.define(schema(op))
        library.impl(op.snake, reference_function(op), "PrivateUse1")
        overload = getattr(torch.ops.fuzzed, op.snake).default
        if op.functional == "author":
            options["converter"] = _converter(op)
        ascend_graph.register_op(op.name, eager=overload, arguments=_arguments(op), **options)
    elif op.route == "aclnn":
        ascend_graph.load_aclnn(package / "op_api/include")
        made = ascend_graph.register_aclnn(f"aclnn{op.name}", schema=schema(op), op_type=op.name, **options)
        overload = made.overload
    else:
        overload = ascend_graph.register_op(op.name, **options).overload
    _REGISTERED[op.name] = overload
    return overload


def reference_function(op: FuzzOperator) -> Callable[..., Any]:
    """Return the operator as a function of CPU tensors, with the schema's signature."""
    data = op.data()
    positional = [i for i in op.order if i < len(op.inputs)]

    def call(*args: Any, **kwargs: Any) -> Any:
        inputs: list[Any] = [None] * len(op.inputs)
        for place, value in zip(positional, args, strict=False):
            inputs[place] = list(value) if isinstance(value, (list, tuple)) else value
        attrs = {}
        for a in op.attrs:
            value = kwargs.get(a.label, a.omitted)
            value = a.default if value is None else value
            if a.type == "ListType" and a.label in kwargs:
                value = [NUMBERS[name] for n in value for name, number in TORCH_NUMBERS.items() if number == n]
            attrs[a.name] = NUMBERS[str(value).removeprefix("torch.")] if isinstance(value, torch.dtype) else value
        outputs = reference.evaluate(data, inputs, attrs)
        written: list[Any] = []
        returned: list[Any] = []
        for spec, output in zip(op.outputs, outputs, strict=True):
            if spec.name in op.written:
                written.append((inputs[[i.name for i in op.inputs].index(spec.name)], output))
            else:
                returned.append(output)
        write_apart(written)
        return tuple(returned) if len(returned) > 1 else returned[0] if returned else None

    return call


def describe(op: FuzzOperator) -> str:
    """Return the operator as its author would show it."""
    route = {"own": "", "overload": f"  # torch.library: {schema(op)}", "aclnn": f"  # register_aclnn: {schema(op)}"}[
        op.route
    ]
    return f"{prototype(op)}{json.dumps(relation(op))}{route}"
