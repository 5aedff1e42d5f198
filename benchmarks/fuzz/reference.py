"""Reference computation of random operators from their descriptions, for the CPU and as the kernel of a package.

An output is a sum over the inputs and over numbers made from the attrs, so that a swapped input or attr changes it. Each
input is summed over the dimensions that the output lacks and repeated along those that the input lacks. The text of this
module goes into packages of kernels and into scripts that repeat a fault: it imports only torch.
"""

from __future__ import annotations

from typing import Any

import torch

#: Value of an absent input in a sum.
ABSENT = 3.0
#: Dtypes by GE's numbers.
DTYPES = {0: torch.float32, 1: torch.float16, 3: torch.int32, 9: torch.int64, 27: torch.bfloat16}


def names_of(dims: list[str], rank: int) -> list[str]:
    """Return a name for each axis: a group ``*s`` stands for all remaining axes."""
    found: list[str] = []
    for dim in dims:
        if dim.startswith("*"):
            found += [f"{dim}{i}" for i in range(rank - len(dims) + 1)]
        else:
            found.append(dim)
    return found


def spread(x: torch.Tensor, have: list[str], want: list[str], sizes: dict[str, int]) -> torch.Tensor:
    """Return a tensor with the wanted axes: others are summed over, missing ones repeated."""
    gone = [i for i, name in enumerate(have) if name not in want]
    x = x.sum(gone) if gone else x
    left = [name for name in have if name in want]
    x = x.permute([left.index(name) for name in want if name in left])
    for axis, name in enumerate(want):
        if name not in left:
            x = x.unsqueeze(axis)
    return x.expand([sizes[name] for name in want])


def number(value: Any) -> float:
    """Return a number that distinguishes values of an attr, in multiples of an eighth, so that sums are exact."""
    if isinstance(value, bool):
        return 0.5 if value else -0.25
    if isinstance(value, (int, float)):
        return value * 0.25
    if isinstance(value, str):
        return len(value) * 0.25 + sum(map(ord, value)) % 16 * 0.125
    return len(value) * 0.125 + sum((i + 1) * number(v) for i, v in enumerate(value))


def curve(x: torch.Tensor, kind: str) -> torch.Tensor:
    """Apply the function of an input that an output sums."""
    return x * x if kind == "square" else x


def _sizes(op: dict[str, Any], inputs: list[Any]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for spec, value in zip(op["inputs"], inputs, strict=True):
        for i, t in enumerate(value if spec["kind"] == "list" else [value] if value is not None else []):
            for name, size in zip(names_of(spec["dims"], t.dim()), t.shape, strict=True):
                key = f"{name}#{i}" if name.endswith("[i]") else name
                if sizes.setdefault(key, size) != size:
                    raise ValueError(f"{spec['name']}: {name} is {size}, and {sizes[key]} before")
    return sizes


def _group(op: dict[str, Any], inputs: list[Any]) -> int:
    """Return the number of axes of the group, from a present input that has it."""
    for spec, value in zip(op["inputs"], inputs, strict=True):
        t = value[0] if spec["kind"] == "list" and value else value
        if isinstance(t, torch.Tensor) and any(d.startswith("*") for d in spec["dims"]):
            return t.dim() - len(spec["dims"]) + 1
    return 0


def _numbers(op: dict[str, Any], attrs: dict[str, Any]) -> float:
    return sum(number(attrs[a["name"]]) * (i + 1) for i, a in enumerate(op["attrs"]) if a["type"] != "Type")


def _derived(y: torch.Tensor, dims: list[str], written: list[str], attrs: dict[str, Any]) -> torch.Tensor:
    """Return an output with the sizes in its relation: ``2 * n``, ``n + k`` with an attr, ``n // 2``."""
    for place, text in enumerate(written):
        # A group before it stands for any number of axes.
        axis = place - len(written) if any(d.startswith("*") for d in written[:place]) else place
        axis %= max(y.dim(), 1)
        if text.startswith("2 * "):
            y = torch.cat([y, -y], axis)
        elif " + " in text:
            more = attrs[text.partition(" + ")[2]]
            y = torch.cat(
                [y, y.narrow(axis, 0, 1).expand([more if i == axis else s for i, s in enumerate(y.shape)])], axis
            )
        elif text.endswith(" // 2"):
            y = y.narrow(axis, 0, y.shape[axis] // 2)
    return y


def _first(inputs: list[Any]) -> torch.Tensor:
    found: torch.Tensor = next(t for v in inputs for t in (v if isinstance(v, list) else [v]) if t is not None)
    return found


def _dtype(op: dict[str, Any], output: dict[str, Any], inputs: list[Any], attrs: dict[str, Any]) -> torch.dtype:
    """Return an output's dtype: of a named input, an attr, its own, or that of the first tensor."""
    named = next((v for i, v in zip(op["inputs"], inputs, strict=True) if i["name"] == output["dtype"]), None)
    found: torch.dtype = _first(inputs if named is None else [named]).dtype
    if named is None and output["dtype"]:
        found = DTYPES[attrs[output["dtype"]]] if output["dtype"] in attrs else getattr(torch, output["dtype"])
    return found


def evaluate(op: dict[str, Any], inputs: list[Any], attrs: dict[str, Any]) -> list[Any]:
    """Return the outputs of a call, in the prototype's order; None for an absent one.

    Args:
        op: The description, as data.
        inputs: Tensors, None or lists of tensors, in the prototype's order.
        attrs: The values by the prototype's names; a dtype is GE's number.
    """
    sizes, group, constant = _sizes(op, inputs), _group(op, inputs), _numbers(op, attrs)
    device = _first(inputs).device
    outputs: list[Any] = []
    for index, output in enumerate(op["outputs"]):
        of = next((n for n, i in enumerate(op["inputs"]) if i["name"] == output["name"]), None)
        if (output["when"] and not attrs[output["when"]]) or (of is not None and inputs[of] is None):
            outputs.append(None)
            continue
        dtype = _dtype(op, output, inputs, attrs)
        if output["list"]:
            xs = inputs[output["list"] - 1]
            outputs.append(
                [(curve(x.float(), output["curve"]) * (index + 1) + constant + i).to(dtype) for i, x in enumerate(xs)]
            )
            continue
        want = names_of(
            output["dims"], len(output["dims"]) + (group - 1 if any(d.startswith("*") for d in output["dims"]) else 0)
        )
        total = torch.full([sizes[name] for name in want], constant + index, device=device)
        for i, (spec, value) in enumerate(zip(op["inputs"], inputs, strict=True)):
            weight = output["weights"][i]
            if value is None:
                total = total + ABSENT * weight
                continue
            for t in value if spec["kind"] == "list" else [value]:
                have = names_of(spec["dims"], t.dim())
                total = total + weight * spread(curve(t.float(), output["curve"]), have, want, sizes)
        y = _derived(total, want, output["written"], attrs).to(dtype)
        if output["count"]:
            count = attrs[output["count"]] if output["count"] in attrs else sizes[output["count"]]
            outputs.append([y + i for i in range(count)])
        else:
            outputs.append(y)
    return outputs


def gradient(op: dict[str, Any], inputs: list[Any], grads: list[Any], place: int) -> Any:
    """Return the gradient of one input from those of the outputs, whose sizes must be plain dimensions."""
    x = inputs[place]
    if x is None or not x.is_floating_point():
        return None
    sizes, group = _sizes(op, inputs), _group(op, inputs)
    have = names_of(op["inputs"][place]["dims"], x.dim())
    total = torch.zeros_like(x, dtype=torch.float32)
    for output, grad in zip(op["outputs"], grads, strict=True):
        if grad is None:
            continue
        dims = output["dims"]
        want = names_of(dims, len(dims) + (group - 1 if any(d.startswith("*") for d in dims) else 0))
        slope = 2.0 * x.float() if output["curve"] == "square" else torch.ones_like(x, dtype=torch.float32)
        total = total + output["weights"][place] * slope * spread(grad.float(), want, have, sizes)
    return total.to(x.dtype)


def tangents(op: dict[str, Any], inputs: list[Any], given: list[Any]) -> list[Any]:
    """Return the tangents of the outputs from those of the inputs, whose outputs must have plain dimensions."""
    sizes, group = _sizes(op, inputs), _group(op, inputs)
    found: list[Any] = []
    for index, output in enumerate(op["outputs"]):
        dtype = _dtype(op, output, inputs, {})

        def slope(x: Any, t: Any, square: bool = output["curve"] == "square") -> Any:
            return 2.0 * x.float() * t.float() if square else t.float()

        if output["list"]:
            xs, ts = inputs[output["list"] - 1], given[output["list"] - 1]
            found.append(
                [None if t is None else (slope(x, t) * (index + 1)).to(dtype) for x, t in zip(xs, ts, strict=True)]
            )
            continue
        dims = output["dims"]
        want = names_of(dims, len(dims) + (group - 1 if any(d.startswith("*") for d in dims) else 0))
        total: Any = None
        for place, (spec, value, tangent) in enumerate(zip(op["inputs"], inputs, given, strict=True)):
            for x, t in zip(value, tangent, strict=True) if spec["kind"] == "list" else [(value, tangent)]:
                if x is not None and t is not None:
                    have = names_of(spec["dims"], x.dim())
                    part = output["weights"][place] * spread(slope(x, t), have, want, sizes)
                    total = part if total is None else total + part
        found.append(None if total is None else total.to(dtype))
    return found
