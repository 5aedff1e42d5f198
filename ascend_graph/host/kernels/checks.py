"""Checks of a kernel's inputs and attrs: each refuses with the value that was given and the valid ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

T = torch.Tensor
#: A shape: a name stands for a dimension of any size.
Shape = Sequence[int | str]


def listed(values: Iterable[object]) -> str:
    """Return values as text: ``0, 1 or 2``."""
    *others, last = map(str, values)
    return f"{', '.join(others)} or {last}" if others else last


def _shape_text(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]"


def check_choice(name: str, value: object, *choices: object, when: str = "") -> None:
    """Refuse a value that is not one of the choices; ``when`` says with what they are the choices."""
    if value not in choices:
        subject = f"{name} {value!r}{when and f' with {when}'}"
        raise ValueError(f"{subject} is not supported; expected {listed(map(repr, choices))}")


def check_between(name: str, value: float, least: float, most: float, why: str = "") -> None:
    """Refuse a number out of a closed range; ``why`` says where the range is from."""
    if not least <= value <= most:
        raise ValueError(f"{name} {value} is out of range; expected {least} to {most}{why and f', {why}'}")


def check_multiple(name: str, value: int, factor: int, most: int | None = None) -> None:
    """Refuse a number that is not a positive multiple of ``factor``, up to ``most``."""
    if factor <= 0 or value <= 0 or value % factor or (most is not None and value > most):
        up_to = "" if most is None else f" up to {most}"
        raise ValueError(f"{name} {value} is not supported; expected a positive multiple of {factor}{up_to}")


def check_shape(name: str, tensor: T | None, *valid: Shape, why: str = "") -> None:
    """Refuse a tensor of any other shape than the valid ones, and an absent one."""
    shape = () if tensor is None else tuple(tensor.shape)
    if tensor is None or not any(_fits(shape, other) for other in valid):
        given = "is not given" if tensor is None else f"has the shape {list(shape)}"
        raise ValueError(f"{name} {given}; expected {listed(map(_shape_text, valid))}{why and f', {why}'}")


def _fits(shape: tuple[int, ...], other: Shape) -> bool:
    return len(shape) == len(other) and all(
        isinstance(size, str) or size == given for size, given in zip(other, shape, strict=True)
    )


def check_count(name: str, values: T | Sequence[object], expected: int, each: str) -> None:
    """Refuse values of another number than one for each of something."""
    given = values.numel() if isinstance(values, T) else len(values)
    if given != expected:
        raise ValueError(f"{name} has {given} elements; expected {expected}, one for each {each}")


def check_dtype(name: str, tensor: T | None, like: str, dtype: torch.dtype) -> None:
    """Refuse a tensor of another dtype than that of the input ``like``; an absent one passes."""
    if tensor is not None and tensor.dtype != dtype:
        raise ValueError(f"{name} is {tensor.dtype}; expected the dtype of {like}, {dtype}")


def check_matrices(first: str, a: T, second: str, b: T) -> None:
    """Refuse two tensors whose last two dimensions are not matrices that can be multiplied."""
    if a.dim() < 2 or b.dim() < 2 or a.size(-1) != b.size(-2):
        raise ValueError(
            f"{first} {list(a.shape)} and {second} {list(b.shape)} cannot be multiplied; expected the columns of {first} to be "
            f"as many as the rows of {second}"
        )


def check_last(name: str, gamma: T, x: T) -> None:
    """Refuse a tensor whose shape is not the last dimensions of x's."""
    last = x.shape[max(x.dim() - gamma.dim(), 0) :]
    if gamma.shape != last:
        raise ValueError(f"{name} has the shape {list(gamma.shape)}; expected the last dimensions of x, {list(last)}")


def check_covers(name: str, mask: T, queries: int, keys: int) -> None:
    """Refuse a mask that is smaller than the scores it is for."""
    if mask.size(-2) < queries or mask.size(-1) < keys:
        raise ValueError(
            f"{name} has the shape {list(mask.shape)}; expected at least {queries} rows and {keys} columns, one for each "
            "query and key"
        )


def check_range(name: str, numbers: T, end: int, start: int = 0) -> None:
    """Refuse a tensor with a number below ``start``, or not below ``end``; tensors without data pass."""
    if numbers.is_meta or not numbers.numel():
        return
    least, most = (int(number) for number in numbers.aminmax())
    if least < start or most >= end:
        raise ValueError(f"{name} has {least if least < start else most}; expected {start} to {end - 1}")


def refuse_given(why: str, **values: Any) -> None:
    """Refuse arguments that are given: any tensor, also one without elements, and what is not None, empty, false or 0."""
    if names := [name for name, value in values.items() if isinstance(value, T) or value]:
        raise ValueError(f"{', '.join(names)}: {why}; leave {'it' if len(names) == 1 else 'all of them'} out")
