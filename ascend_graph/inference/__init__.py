"""Inference of an operator's shape relation by running its eager kernel on small inputs.

The kernel runs on inputs of several shapes with distinct sizes. A relation of a finite family is accepted if it alone
explains every run, and fresh runs with other shapes, dtypes and strides after it. Anything else is refused with the
table of the domains tried. A relation found claims nothing beyond the runs: an attr that only ran with its default must
have it. :mod:`ascend_graph.inference.search` does the searching, :mod:`ascend_graph.inference.running` the running.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from ascend_graph.dispatch.fake import existing_meta
from ascend_graph.inference.domains import AttrArgument, OperatorSignature, TensorArgument, restored, safe_name
from ascend_graph.inference.results import DomainTrial, InferenceError, Inferred, NarrowRelationWarning
from ascend_graph.inference.running import KernelError, Runner, bind
from ascend_graph.inference.search import Search
from ascend_graph.shapes import RelationError, parse_relation
from ascend_graph.shapes.parsing.grammar import KEYWORDS

__all__ = [
    "TIME_LIMIT",
    "DomainTrial",
    "InferenceError",
    "Inferred",
    "NarrowRelationWarning",
    "declares_aliases",
    "infer_overload",
    "infer_relation",
    "signature_of",
]

#: Time limit of one kernel run, in seconds.
TIME_LIMIT = 10.0


def signature_of(schema: torch.FunctionSchema) -> OperatorSignature:
    """Return the operator signature that inference needs, read from a schema.

    Raises:
        InferenceError: The schema returns something other than tensors, or nothing.
    """
    tensors, attrs = [], []
    for a in schema.arguments:
        kind = str(a.type)
        if "Tensor" in kind:
            tensors.append(TensorArgument(safe_name(a.name), kind.startswith("Optional["), "List[" in kind))
            continue
        # ScalarType, Layout and Device read as int in a schema's type; `real_type` tells them apart.
        real = str(a.real_type)
        base = real.removeprefix("Optional[").removesuffix("]") if real.startswith("Optional[") else real
        known = {"int": "int", "SymInt": "int", "List[int]": "int[]", "List[SymInt]": "int[]", "bool": "bool"}
        known |= {"float": "float", "number": "number", "Scalar": "number", "ScalarType": "dtype", "str": "str"}
        has_default = a.has_default_value()
        default = a.default_value if has_default else None
        attrs.append(
            AttrArgument(
                safe_name(a.name), known.get(base, "other"), real.startswith("Optional["), default, has_default
            )
        )
    if not schema.returns:
        raise InferenceError(f'{schema.name} returns nothing, so no shape can be found. Write: shape="->"')
    if any("Tensor" not in str(r.type) for r in schema.returns):
        raise InferenceError(
            f"{schema.name} returns {', '.join(str(r.type) for r in schema.returns)}; expected tensors only"
        )
    outputs = tuple("List[" in str(r.type) for r in schema.returns)
    return OperatorSignature(schema.name, tuple(tensors), tuple(attrs), outputs)


def infer_relation(
    kernel: Callable[..., Any],
    schema: torch.FunctionSchema,
    *,
    samples: Iterable[tuple[Sequence[Any], Mapping[str, Any]]] | None = None,
    device: str | torch.device = "cpu",
    seed: int = 0,
    time_limit: float = TIME_LIMIT,
) -> Inferred:
    """Find the shape relation of ``kernel`` by running it.

    Args:
        kernel: The eager kernel, called with the schema's arguments.
        schema: Its schema.
        samples: Inputs as ``(args, kwargs)``, used instead of random ones if those would be invalid.
        device: The device of random inputs.
        seed: The seed of the random inputs.
        time_limit: The time limit of one run, in seconds.

    Returns:
        The relation with the evidence; ``print`` shows the ``shape=`` line to write, with notes on its limits.

    Warns:
        NarrowRelationWarning: The kernel was seen to take shapes that the relation refuses.

    Raises:
        InferenceError: No relation of the family, or more than one, explains the runs; or the kernel hangs, crashes,
            returns outputs that its schema does not declare, or an undeclared alias.

    >>> schema = torch.ops.aten.mm.default._schema
    >>> print(infer_relation(torch.mm, schema).relation)
    self[m, k], mat2[k, n] -> out0[m, n]
    """
    aliases = _declared_aliases(schema)
    if aliases is not None:
        return Inferred(parse_relation(aliases), 0)
    signature = signature_of(schema)
    bound = None
    if samples is not None:
        calls = [bind(schema, args, kwargs) for args, kwargs in samples]
        bound = [{safe_name(name): value for name, value in call.items()} for call in calls]
    try:
        with Runner(kernel, schema, device, time_limit, given=bound) as runner:
            search = Search(signature, runner, random.Random(seed))
            found = search.run() if bound is None else search.from_samples(bound)
    except KernelError as error:
        raise InferenceError(str(error)) from None
    names = [a.name for a in schema.arguments]
    text = restored(str(found.relation), names)
    try:
        found = replace(found, relation=parse_relation(text), narrower=restored(found.narrower, names))
    except RelationError:
        words = ", ".join(name for name in names if name in KEYWORDS)
        raise InferenceError(
            f"{schema.name}: {words} is a word of the shape language, so {found.relation} cannot be written with it; rename the argument"
        ) from None
    if found.narrow:
        text = f"{schema.name}: the relation found is {found.narrower}; write shape= to say more"
        warnings.warn(text, NarrowRelationWarning, stacklevel=2)
    return found


def infer_overload(overload: torch._ops.OpOverload, **options: Any) -> Inferred:
    """Call :func:`infer_relation` for a registered operator, unless it has a meta function.

    Raises:
        InferenceError: There is a meta function already, or see :func:`infer_relation`.
    """
    existing = existing_meta(overload)
    if existing is not None:
        raise InferenceError(
            f"{overload} has a meta function already ({existing}); nothing is inferred. Remove it first"
        )
    return infer_relation(overload, overload._schema, **options)


def declares_aliases(schema: torch.FunctionSchema) -> bool:
    """Return whether an operator's outputs all alias inputs by its schema, so that there is no shape to find."""
    return _declared_aliases(schema) is not None


def _declared_aliases(schema: torch.FunctionSchema) -> str | None:
    """Return the relation of an operator whose outputs all alias inputs by its schema, or None."""
    names = []
    for returned in schema.returns:
        alias = returned.alias_info
        if alias is None or not alias.is_write:
            return None
        owner = [
            a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.before_set == alias.before_set
        ]
        if len(owner) != 1:
            return None
        names += owner
    if any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments) and not schema.returns:
        return "->"
    return f"{', '.join(names)} -> {', '.join(names)}" if names else None
