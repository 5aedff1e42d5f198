"""Checks of independent and reduced dimensions by running: an operator on a whole is compared with it on parts."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product, repeat
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from ascend_graph.autograd.register import refuses_itself
from ascend_graph.binding.dtype_ints import used_as_dtype
from ascend_graph.dispatch.meta_dtypes import TORCH
from ascend_graph.inference import signature_of
from ascend_graph.inference.attr_draws import plain_values
from ascend_graph.inference.domains import Domain, safe_name
from ascend_graph.inference.running import bind
from ascend_graph.registration.dimensions.independent_dims import (
    REDUCTIONS,
    Arguments,
    BatchError,
    IndependentDims,
    combine,
    input_dimensions,
    outputs_of,
    ranks_of,
)
from ascend_graph.registration.dimensions.input_dtypes import dtype_combinations
from ascend_graph.shapes import Relation, RelationError, ShapeError
from ascend_graph.shapes.axis_layout import ELLIPSIS
from ascend_graph.shapes.compared import compared_values
from ascend_graph.shapes.samples import RelationSampleError, sample

#: Number of calls that check a declaration, and number of calls drawn for them.
CHECKS, DRAWN = 8, 400
#: Texts to try for a required attr that the relation does not compare: common values of CANN's attrs.
_TEXTS = ("", "none", "mean", "sum", "ND", "BSND")
#: Torch's numbers of float32, float16, bfloat16 and int64.
_DTYPE_NUMBERS = (6, 5, 15, 4)
_SIZES = (1, 2, 3, 4, 4, 5, 6, 8)
#: Tolerance between the operator on parts and the operator on the whole, which adds in another order.
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 5e-2}


def check_independent_dims(
    overload: Any,
    independent: IndependentDims,
    *,
    device: str = "cpu",
    samples: Sequence[tuple[Sequence[Any], Mapping[str, Any]]] | None = None,
    listed: Mapping[str, Sequence[torch.dtype]] | None = None,
    seed: int = 0,
) -> int:
    """Compare the operator on wholes with the operator on parts, and return the number of cuts compared.

    Args:
        overload: The operator.
        independent: The declaration.
        device: The device of drawn calls.
        samples: Calls to cut, used instead of drawn ones.
        listed: The dtypes that the prototype lists by argument; without them floats and integers are tried.
        seed: The seed of drawn calls.

    Raises:
        BatchError: A part differs, or no drawn call runs.
    """
    schema, rng = overload._schema, random.Random(seed)
    done = dict.fromkeys((*independent.batch, *independent.reduce), 0)
    for values in (
        _drawn(overload, independent, rng, device, listed or {}) if samples is None else _given(schema, samples, device)
    ):
        if all(count >= CHECKS for count in done.values()):
            break
        call = Arguments(independent, schema, values, ranks_of(values))
        for name, count in list(done.items()):
            label = _label(call, name, rng)
            if label is not None and count < CHECKS:
                done[name] += _cut(overload, independent, call, name, label, rng)
    unchecked = [name for name, count in done.items() if not count]
    if unchecked:
        raise BatchError(
            f"{schema.name}: {', '.join(unchecked)} of {independent.relation} could not be checked: no call that was drawn runs and has a "
            "dimension of that name that can be cut in all that has it; give samples= of calls that run"
        )
    return sum(done.values())


def find_independent_dims(
    overload: Any,
    relation: Relation,
    *,
    device: str = "cpu",
    samples: Sequence[tuple[Sequence[Any], Mapping[str, Any]]] | None = None,
) -> IndependentDims:
    """Find the dimensions of a relation that are independent or reduced in every call compared.

    That is evidence from these calls alone, as for an inferred relation; nothing is registered. Write it as ``batch=``
    and ``reduce=`` if the operator is meant to behave so.
    """
    batch: list[str] = []
    reduce: dict[str, str] = {}
    for name in input_dimensions(relation):
        for how in (None, *REDUCTIONS):
            trial = (
                IndependentDims(relation, (name,), {}) if how is None else IndependentDims(relation, (), {name: how})
            )
            try:
                check_independent_dims(overload, trial, device=device, samples=samples)
            except BatchError:
                continue
            if how is None:
                batch.append(name)
            else:
                reduce[name] = how
            break
    return IndependentDims(relation, tuple(batch), reduce)


def _given(
    schema: torch.FunctionSchema, samples: Sequence[tuple[Sequence[Any], Mapping[str, Any]]], device: str
) -> Iterator[dict[str, Any]]:
    for args, kwargs in chain.from_iterable(repeat(samples, CHECKS)):
        yield tree_map_only(torch.Tensor, lambda t: t.to(device), bind(schema, args, kwargs))


def _drawn(
    overload: Any,
    independent: IndependentDims,
    rng: random.Random,
    device: str,
    listed: Mapping[str, Sequence[torch.dtype]],
) -> Iterator[dict[str, Any]]:
    """Yield calls that run, after finding out which tensors hold floats and which small integers."""
    schema = overload._schema
    signature = signature_of(schema)
    own = {safe_name(a.name): a.name for a in schema.arguments}
    required = [own[t.name] for t in signature.required]
    optional = [own[t.name] for t in signature.tensors if t.optional]
    fixed = _fixed_dtypes(listed)
    free = [name for name in required if name not in fixed]
    kinds = sorted(product((True, False), repeat=min(len(free), 4)), key=lambda k: k.count(False))
    tried = 0
    for number in itertools.count():
        if tried >= DRAWN:
            return
        tried += 1
        attrs = {own[name]: value for name, value in plain_values(signature, Domain(""), rng).items()}
        attrs |= _undefaulted(schema, independent.relation, rng, number)
        attrs |= {own[a.name]: a.default for a in signature.attrs if a.has_default and rng.random() < 0.5}
        dtypes = _dtype_numbers(schema, independent.relation, rng)
        attrs |= dtypes
        named = {name: TORCH.to_name(TORCH.from_attr(n) or torch.float32) for name, n in dtypes.items()}
        try:
            found = sample(independent.relation, attrs | named, rng, optional=optional, sizes=_SIZES, tries=20)
        except (RelationSampleError, ShapeError, RelationError):
            continue
        for kind in kinds:
            floats = dict(zip(free, kind, strict=False))
            values: dict[str, Any] = dict.fromkeys(a.name for a in schema.arguments) | attrs
            for name, shape in found.shapes.items():
                if shape is not None and not isinstance(shape, list):
                    usual = getattr(torch, str(found.dtypes[name])) if floats.get(name, True) else torch.int64
                    dtype = fixed.get(name, usual)
                    values[name] = _tensor(shape, dtype, rng).to(device)
            tried += 1
            try:
                with torch.no_grad():
                    outputs_of(overload, schema, values)
            except Exception:  # what a kernel raises says that the inputs are invalid
                continue
            kinds = [kind]
            yield values
            break


def _fixed_dtypes(listed: Mapping[str, Sequence[torch.dtype]]) -> dict[str, torch.dtype]:
    """Return the dtypes of the arguments that are not float32 where the prototype lists float32 for others."""
    columns = dtype_combinations(listed)
    column = next((c for c in columns if torch.float32 in c.values()), columns[0] if columns else {})
    return {name: dtype for name, dtype in column.items() if dtype is not torch.float32}


def _undefaulted(schema: Any, relation: Relation, rng: random.Random, number: int) -> dict[str, Any]:
    """Draw the attrs without a default that inference does not draw: texts in turn, lists of texts, floats and flags."""
    compared = compared_values(relation)
    found: dict[str, Any] = {}
    for place, argument in enumerate(schema.arguments):
        if argument.has_default_value():
            continue
        texts = [value for value in compared.get(argument.name, ()) if isinstance(value, str)] or _TEXTS
        items = {"str": texts, "float": (0.5, 1.0, 2.0), "bool": (True, False)}
        kind = str(argument.type)
        if kind == "str":
            found[argument.name] = texts[(number + place * (number // len(texts))) % len(texts)]
        elif kind.startswith("List[") and kind[5:-1] in items:
            length = argument.N or rng.choice((1, 2, 2, 3))
            found[argument.name] = [rng.choice(items[kind[5:-1]]) for _ in range(length)]
    return found


def _dtype_numbers(schema: Any, relation: Relation, rng: random.Random) -> dict[str, Any]:
    """Draw the attrs that the relation or the schema takes for dtypes: the default, else one of torch's numbers."""
    used = used_as_dtype(relation) | {
        a.name for a in schema.arguments if str(a.real_type) == "ScalarType" and not a.has_default_value()
    }
    arguments = [a for a in schema.arguments if a.name in used and "Tensor" not in str(a.type)]
    return {a.name: a.default_value if a.default_value is not None else rng.choice(_DTYPE_NUMBERS) for a in arguments}


def _tensor(shape: Sequence[int], dtype: torch.dtype, rng: random.Random) -> torch.Tensor:
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    if dtype.is_floating_point:
        values = torch.randn(tuple(shape), generator=generator)
        # One tensor in two has one sign: a largest or smallest number among many hardly ever has the other.
        return (values if rng.random() < 0.5 else rng.choice((1, -1)) * values.abs()).to(dtype)
    return torch.randint(0, 2, tuple(shape), generator=generator).to(dtype)


def _label(call: Arguments, name: str, rng: random.Random) -> str | None:
    """Choose one dimension of a name: itself, or one of a group; return None if the call has none."""
    labels = {
        label
        for places in call.inputs.values()
        if places is not None
        for label in places.axes
        if label is not None and (label == name or label.startswith(f"{name}["))
    }
    return rng.choice(sorted(labels)) if labels else None


def _parts_of(
    at: int,
    size: int,
    axes: Mapping[str, int],
    sliced: Sequence[str],
    leaves: Mapping[str, Any],
    overload: Any,
    schema: Any,
    name: str,
    independent: IndependentDims,
    call: Arguments,
    label: str,
) -> list[Any]:
    """Return the outputs of the call's two parts."""
    parts = []
    for low, high in ((0, at), (at, size)):
        given = {n: v.narrow(axes[n], low, high - low) if n in sliced else v for n, v in leaves.items()}
        try:
            parts.append(
                outputs_of(
                    overload, schema, {n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in given.items()}
                )
            )
        except Exception as error:
            raise BatchError(
                f"{schema.name}: {name} is not independent in {independent.relation}: with {_shown(call)} the part {low} to {high} of {label} "
                f"is refused: {error}\nIf that is a limit of this kernel alone, such as a least size, give samples= of calls whose parts it takes"
            ) from None
    return parts


def _cut(
    overload: Any, independent: IndependentDims, call: Arguments, name: str, label: str, rng: random.Random
) -> int:
    """Compare one call with its two parts, and return the number of cuts: 0 or 1."""
    schema = call.schema
    axes = {n: axis for n in call.inputs if (axis := call.axis(n, label)) is not None}
    whole = {n: call.values[n].shape[axis] for n, axis in axes.items()}
    size = max(whole.values(), default=0)
    sliced = [n for n, length in whole.items() if length == size]
    if size < 2 or call.twice(label) or (name != ELLIPSIS and len(sliced) < len(whole)):
        return 0
    at = rng.randint(1, size - 1)
    leaves = {
        n: v.detach().clone().requires_grad_(v.is_floating_point() and _differentiable(overload))
        if isinstance(v, torch.Tensor)
        else v
        for n, v in call.values.items()
    }
    expected = outputs_of(overload, schema, leaves)
    parts = _parts_of(at, size, axes, sliced, leaves, overload, schema, name, independent, call, label)
    joined: list[torch.Tensor | None] = []
    combined = False
    for number, (out, places) in enumerate(zip(expected, call.outputs, strict=True)):
        first, second = parts[0][number], parts[1][number]
        if out is None:
            joined.append(None)
            continue
        if isinstance(out, list):
            raise BatchError(
                f"{schema.name}: {name!r} is declared, and the output {independent.relation.outputs[number]} of {independent.relation} is a list; "
                "expected tensors, for a list has no independent dimensions. Write: batch=(), with which torch.vmap calls the "
                "operator for each element"
            )
        axis = places.axes.index(label) if places is not None and label in places.axes else None
        if axis is None and name in independent.batch:
            raise BatchError(
                f"{schema.name}: batch={name!r}: the output {independent.relation.outputs[number]} of {independent.relation} has no {name}; "
                "what is added over it is declared with reduce="
            )
        if _beside(first, axis) != _beside(out, axis) or _beside(second, axis) != _beside(out, axis):
            raise _differs(
                independent,
                call,
                name,
                label,
                at,
                number,
                f"has the shapes {_sizes(first)} and {_sizes(second)} by parts",
            )
        if axis is not None:
            if first.shape[axis] + second.shape[axis] != out.shape[axis]:
                raise _differs(independent, call, name, label, at, number, "has another size")
            together = torch.cat((first, second), axis)
        elif out.dtype is torch.bool and independent.reduce[name] == "sum":
            raise _differs(independent, call, name, label, at, number, "has flags, which are not added")
        else:
            together = combine(independent.reduce[name], (first, second))
            combined = True
        joined.append(together)
        worst = _difference(out.detach(), together.detach())
        if worst:
            raise _differs(independent, call, name, label, at, number, worst)
    if name in independent.reduce and not combined:
        raise BatchError(
            f"{schema.name}: reduce={name!r}: every output of {independent.relation} has {name}, so nothing is combined over it; "
            f'declare it with batch=("{name}",)'
        )
    _compare_gradients(independent, call, name, label, at, leaves, expected, joined)
    return 1


def _beside(tensor: torch.Tensor, axis: int | None) -> tuple[int, ...]:
    """Return the sizes of all axes but one."""
    return tuple(size for n, size in enumerate(tensor.shape) if n != axis)


def _sizes(tensor: torch.Tensor) -> str:
    return str(tuple(tensor.shape))


def _differentiable(overload: Any) -> bool:
    keys = ("CompositeImplicitAutograd", "Autograd", "AutogradCPU", "AutogradPrivateUse1")
    return not refuses_itself(overload) and any(
        torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), key) for key in keys
    )


def _compare_gradients(
    independent: IndependentDims,
    call: Arguments,
    name: str,
    label: str,
    at: int,
    leaves: Mapping[str, Any],
    expected: Sequence[Any],
    joined: Sequence[Any],
) -> None:
    """Compare the gradients of the whole with those through the parts, if there is a gradient."""
    wanted = {n: v for n, v in leaves.items() if isinstance(v, torch.Tensor) and v.requires_grad}
    pairs = [
        (e, j) for e, j in zip(expected, joined, strict=True) if e is not None and e.requires_grad and j.requires_grad
    ]
    if not pairs or not wanted:
        return
    try:
        weights = [torch.randn(e.shape, generator=torch.Generator().manual_seed(1)).to(e) for e, _ in pairs]
        one, other = (
            torch.autograd.grad([p[k] for p in pairs], list(wanted.values()), weights, allow_unused=True)
            for k in (0, 1)
        )
    except RuntimeError:  # an operator without a gradient
        return
    for input_, a, b in zip(wanted, one, other, strict=True):
        if a is not None and b is not None and (worst := _difference(a, b)):
            raise BatchError(
                f"{call.schema.name}: {name} is not independent in {independent.relation}: with {_shown(call)} cut at {at} of {label} the "
                f"gradient of {input_} {worst}; correct backward=, or leave {name} out of {_declared_by(independent, name)}"
            )


def _difference(a: torch.Tensor, b: torch.Tensor) -> str:
    if a.shape != b.shape:
        return f"has the shape {tuple(b.shape)} by parts, {tuple(a.shape)} as a whole"
    if not a.dtype.is_floating_point:
        return "" if torch.equal(a, b) else "has other numbers by parts"
    tolerance = _TOLERANCE.get(a.dtype, 5e-2)
    one, other = a.double().cpu(), b.double().cpu()
    # Numbers that cancel in a sum are as exact as the largest among them, of which the results are a measure.
    largest = max((one[one.isfinite()].abs().max().item() if one.isfinite().any() else 0.0), 1.0)
    if torch.allclose(one, other, rtol=tolerance, atol=tolerance * largest, equal_nan=True):
        return ""
    return f"differs by {(a.double() - b.double()).abs().max().item():.3g} by parts"


def _differs(
    independent: IndependentDims, call: Arguments, name: str, label: str, at: int, number: int, what: str
) -> BatchError:
    kind = "independent" if name in independent.batch else f"reduced by {independent.reduce[name]}"
    return BatchError(
        f"{call.schema.name}: {name} is not {kind} in {independent.relation}: with {_shown(call)} cut at {at} of {label} the output "
        f"{independent.relation.outputs[number]} {what}; leave {name} out of {_declared_by(independent, name)}, or correct the kernel"
    )


def _declared_by(independent: IndependentDims, name: str) -> str:
    return "batch=" if name in independent.batch else "reduce="


def _shown(call: Arguments) -> str:
    return ", ".join(
        f"{n} {tuple(v.shape)}" if isinstance(v, torch.Tensor) else f"{n}={v!r}"
        for n, v in call.values.items()
        if v is not None
    )
