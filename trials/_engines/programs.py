"""Declaration and comparison of programs: each is a function of a device whose results on the two devices must agree."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Results = Any
_HALF = (torch.float16, torch.bfloat16)
Function = Callable[[str], Results]


@dataclass(frozen=True)
class Program:
    """A program of an engine; ``run("cpu")`` is the reference of ``run("npu")``."""

    name: str
    run: Function
    #: What a refusal has to say where a device, or the wheel, refuses the program too.
    refusal: str | None = None
    #: False where the program compares by itself, and raises AssertionError.
    compared: bool = True


class Programs:
    """The programs of one engine, in order."""

    def __init__(self) -> None:
        self.all: dict[str, Program] = {}

    def add(self, name: str, run: Function, *, refusal: str | None = None, compared: bool = True) -> None:
        """Declare a program."""
        assert name not in self.all, f"program {name!r} is declared twice"
        self.all[name] = Program(name, run, refusal, compared)

    def __call__(
        self, name: str, *, refusal: str | None = None, compared: bool = True
    ) -> Callable[[Function], Function]:
        """Declare a function as a program."""

        def declare(function: Function) -> Function:
            self.add(name, function, refusal=refusal, compared=compared)
            return function

        return declare


def outcome(program: Program) -> dict[str, str]:
    """Return how a program ends: ``equal``, ``wrong``, ``refused`` or ``failed`` (on the CPU, too)."""
    try:
        want = program.run("cpu") if program.compared else None
    except Exception as error:
        return {"outcome": "failed", "detail": _shown(error)}
    try:
        got = program.run("npu")
        differences = list(differing(got, want)) if program.compared else []
    except AssertionError as error:
        return {"outcome": "wrong", "detail": _shown(error)}
    except Exception as error:
        expected = program.refusal is not None and program.refusal in str(error)
        return {"outcome": "expected" if expected else "refused", "detail": _shown(error)}
    if differences:
        return {"outcome": "wrong", "detail": "; ".join(differences[:3])}
    return {"outcome": "equal", "detail": ""}


def _shown(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename.rsplit('site-packages/')[-1]}:{frames[-1].lineno}"
    return f"{type(error).__name__}: {str(error)[:400]} [{where}]"


def differing(got: Results, want: Results) -> Iterator[str]:
    """Yield a sentence for each difference between two nests of tensors, numbers and texts.

    In half precision a tensor may differ by a part of its own norm, or by a smaller part of the largest one: gradients
    that cancel (those of biases before a softmax) are nothing but rounding.
    """
    largest = max((float(one.detach().float().norm()) for one in tensors_of(want) if one.dtype in _HALF), default=0.0)
    yield from _differing(got, want, "result", largest)


def _differing(got: Results, want: Results, name: str, largest: float) -> Iterator[str]:
    if isinstance(want, torch.Tensor):
        yield from _tensor_difference(got.detach().cpu(), want.detach().cpu(), name, largest)
    elif isinstance(want, Mapping):
        if list(got) != list(want):
            yield f"{name}: has {list(got)}, not {list(want)}"
            return
        for key, value in want.items():
            yield from _differing(got[key], value, f"{name}[{key!r}]", largest)
    elif isinstance(want, Sequence) and not isinstance(want, str):
        if len(got) != len(want):
            yield f"{name}: has {len(got)} elements, not {len(want)}"
            return
        for index, (one, other) in enumerate(zip(got, want, strict=True)):
            yield from _differing(one, other, f"{name}[{index}]", largest)
    elif isinstance(want, float):
        if not math.isclose(got, want, rel_tol=1e-3, abs_tol=1e-4):
            yield f"{name}: is {got}, not {want}"
    elif got != want:
        yield f"{name}: is {got!r}, not {want!r}"


def _tensor_difference(got: torch.Tensor, want: torch.Tensor, name: str, largest: float) -> Iterator[str]:
    half = want.dtype in _HALF and got.dtype == want.dtype and got.shape == want.shape
    if half and want.isfinite().all() and got.isfinite().all():
        difference, size = float((got.float() - want.float()).norm()), float(want.float().norm())
        if difference > 0.02 * size + 0.01 * largest:
            yield f"{name}: differs by {difference:.3g}, of a norm of {size:.3g}"
        return
    try:
        torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-4, equal_nan=True)
    except AssertionError as error:
        yield f"{name}: {' '.join(str(error).split())[:200]}"


def tensors_of(value: Any) -> list[torch.Tensor]:
    """Return the tensors of a nest, in order, without their history."""
    if isinstance(value, torch.Tensor):
        return [value.detach().cpu()]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [tensor for one in value for tensor in tensors_of(one)] if isinstance(value, (list, tuple)) else []


def named(tensors: Iterable[tuple[str, torch.Tensor | None]]) -> dict[str, torch.Tensor]:
    """Return the tensors that are there by name, without their history."""
    return {name: tensor.detach().cpu().clone() for name, tensor in tensors if tensor is not None}
