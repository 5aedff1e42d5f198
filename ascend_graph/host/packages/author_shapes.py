"""Output shapes according to an installed package: from its InferShape function or its relation.

Registering an operator compares its relation with these shapes (:mod:`ascend_graph.registration.author_shapes`).
The launcher names this module in ``ASCEND_GRAPH_AUTHOR_SHAPES``, because registration does not depend on the host runtime.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ascend_graph.host.infer_shape.calls import package_entry, recent_failure, specs_of, values_of
from ascend_graph.host.packages.prebuilt import prebuilt_function
from ascend_graph.prototypes import AttrType, OpPrototype
from ascend_graph.shapes import Relation
from ascend_graph.shapes.compared import compared_values
from ascend_graph.shapes.functions import InferredOutput, Inputs, ShapeFunction

if TYPE_CHECKING:
    from ascend_graph.host.packages.format import OperatorPackage

#: Function from input shapes and dtypes (in prototype order, None if absent) and all attrs to output shapes by name.
Shapes = Callable[[Sequence[Sequence[int] | None], Sequence[str | None], Mapping[str, Any]], Mapping[str, Any]]


@cache
def _packages(selected: str) -> tuple[OperatorPackage, ...]:
    """Return the installed packages, cached: searching for each operator would cost more than the comparison."""
    from ascend_graph.host.packages.load import installed_packages

    return installed_packages()


def _package_of(op_type: str) -> OperatorPackage | None:
    packages = _packages(os.environ.get("ASCEND_CUSTOM_OPP_PATH", ""))
    return next((package for package in packages if op_type in package.metadata), None)


def author_relation(prototype: OpPrototype) -> tuple[str, Relation] | None:
    """Return the relation that an installed package was built with, and its origin in words, or None."""
    package = _package_of(prototype.op_type)
    relation = None if package is None else package.relation(prototype.op_type)
    return None if package is None or relation is None else (f"the package {package.directory}", relation)


def author_function(prototype: OpPrototype) -> ShapeFunction | None:
    """Return the InferShape and InferDataType functions of the installed package of an operator, or None.

    A package that was built here answers by its kernels' library, one that CANN built by its prototype library.
    """
    package = _package_of(prototype.op_type)
    if package is None:
        return prebuilt_function(prototype)
    return package_function(package, prototype) if _has_order_of(package, prototype) else None


def _has_order_of(package: OperatorPackage, prototype: OpPrototype) -> bool:
    """Return whether a prototype has the inputs, outputs and attrs of the package's own in the same order.

    The package's functions take them by position, and a program may have loaded another definition.
    """
    from ascend_graph.host.packages.format import package_prototype

    own = package_prototype(package.directory, prototype.op_type)
    orders = [[(p.name, p.kind) for p in (*o.inputs, *o.outputs)] for o in (own, prototype)]
    attrs = [[(a.name, a.type) for a in o.attrs] for o in (own, prototype)]
    return orders[0] == orders[1] and attrs[0] == attrs[1]


def package_function(package: OperatorPackage, prototype: OpPrototype) -> ShapeFunction | None:
    """Return the InferShape and InferDataType functions of an operator of a loaded package, or None without them."""
    op_type = prototype.op_type
    entry = package_entry(op_type) if package.infers_shapes(op_type) else None
    if entry is None:
        return None
    metadata = package.metadata[op_type]

    def call(inputs: Inputs, attrs: Mapping[str, Any]) -> list[InferredOutput | None]:
        given, answers = values_of(prototype, inputs, attrs, len(prototype.outputs))
        if entry(given.values, len(given.values)):
            raise recent_failure()
        # An output of no dtype and without elements is absent.
        return [None if spec.dtype is None and spec.shape == (0,) else spec for spec in specs_of(answers, "InferShape")]

    return ShapeFunction(
        prototype,
        f"the InferShape function of the package {package.directory}",
        call,
        tuple(metadata.get("compared") or ()),
        input_names(prototype, metadata.get("data_inputs") or ()),
        value_inputs=input_names(prototype, metadata.get("value_inputs") or ()),
    )


def input_names(prototype: OpPrototype, positions: Sequence[int]) -> tuple[str, ...]:
    """Return the names of the inputs at some positions."""
    return tuple(prototype.inputs[n].name for n in positions if n < len(prototype.inputs))


def author_shapes(prototype: OpPrototype) -> tuple[str, Shapes, Mapping[str, Sequence[Any]]] | None:
    """Return the origin of an operator's output shapes, the shape function, and by attr the values it branches on.

    The origin is a text for messages. Return None if no installed package infers the operator's shapes.

    The returned function raises RuntimeError if the author's function rejects the call or fails.
    """
    from ascend_graph.host.packages.output_specs import output_specs

    op_type = prototype.op_type
    package = _package_of(op_type)
    if package is None:
        return None
    relation = package.relation(op_type)
    if relation is None and not (package.infers_shapes(op_type) and _has_order_of(package, prototype)):
        return None
    branches: Mapping[str, Sequence[Any]] = {} if relation is None else compared_values(relation)
    if relation is None:
        texts = package.metadata[op_type].get("compared") or ()
        branches = {a.name: texts for a in prototype.attrs if a.type is AttrType.STRING}
    what = f"the relation {relation}" if relation is not None else "the InferShape function"

    def shapes(
        sizes: Sequence[Sequence[int] | None], dtypes: Sequence[str | None], attrs: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        import torch

        specs = output_specs(package, prototype)
        assert specs is not None
        inputs = [
            None if size is None or dtype is None else torch.zeros(tuple(size), dtype=getattr(torch, dtype))
            for size, dtype in zip(sizes, dtypes, strict=True)
        ]
        found = specs(inputs, attrs)
        return {name: None if spec is None else tuple(spec[0]) for name, spec in found.items()}

    return f"{what} of the package {package.directory}", shapes, branches
