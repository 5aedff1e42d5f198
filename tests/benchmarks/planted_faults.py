"""Operators whose kernel on the device is replaced by a wrong one: what the operator database's checks must find."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.operators import comparison
from benchmarks.operators.comparison import ComparisonVerdict
from benchmarks.operators.trees import tensors

Kernel = Callable[..., Any]


def _on_cpu(overload: Any) -> Kernel:
    """The operator as it should be: computed by the CPU."""

    def kernel(*args: Any) -> torch.Tensor:
        moved = [a.cpu() if isinstance(a, torch.Tensor) else a for a in args]
        return overload(*moved).to("npu")

    return kernel


def _one_value(*args: Any) -> torch.Tensor:
    result = _on_cpu(torch.ops.aten.sinh.default)(*args)
    if result.numel():
        result.view(-1)[-1] *= 1.001
    return result


def _all_values(*args: Any) -> torch.Tensor:
    return _on_cpu(torch.ops.aten.sin.default)(*args) * 1.001


def _shifted(*args: Any) -> torch.Tensor:
    return _on_cpu(torch.ops.aten.cos.default)(*args) + 1e-3


def _not_when_captured(x: torch.Tensor) -> torch.Tensor:
    return x.clone() if torch.npu.is_current_stream_capturing() else _on_cpu(torch.ops.aten.erf.default)(x)


def _other_strides(x: torch.Tensor) -> torch.Tensor:
    result = _on_cpu(torch.ops.aten.exp2.default)(x)
    return torch.stack([result, result], -1)[..., 0]  # every second element of memory


def _any_device(x: torch.Tensor, dim: int, index: torch.Tensor, **options: Any) -> torch.Tensor:
    return torch.gather(x.cpu(), dim, index.cpu()).to("npu")


def _no_conjugate(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    plain = [t.conj() if t.is_conj() else t for t in (a, b)]
    return _on_cpu(torch.ops.aten.mm.default)(*plain)


def _no_strides(x: torch.Tensor) -> torch.Tensor:
    flat = x.as_strided(x.shape, torch.empty(x.shape, device="meta").stride())
    return _on_cpu(torch.ops.aten.cosh.default)(flat)


def _narrow(x: torch.Tensor) -> torch.Tensor:
    return _on_cpu(torch.ops.aten.erfc.default)(x).half()


def _gradient(grad: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    return grad * output


def _not_resized(x: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    if out.shape == x.shape:
        out.copy_(torch.expm1(x.cpu()))
    return out


def _not_written(x: torch.Tensor) -> torch.Tensor:
    return x


def _same_for_every_seed(x: torch.Tensor, *, generator: Any = None) -> torch.Tensor:
    return (x > 0.5).to(x.dtype)


def _other_moments(x: torch.Tensor, **options: Any) -> torch.Tensor:
    return torch.rand(x.shape, dtype=options.get("dtype") or x.dtype).to("npu")


def _accepts_all(x: torch.Tensor, diagonal: int = 0) -> torch.Tensor:
    return _on_cpu(torch.ops.aten.triu.default)(x, diagonal) if x.dim() > 1 else x.clone()


def _dies(x: torch.Tensor) -> torch.Tensor:
    os.abort()


def _hangs(x: torch.Tensor) -> torch.Tensor:
    time.sleep(3600)
    return x


def _raises(x: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("planted")


#: For each operator of the database the overload whose kernel is planted, and what must be found in which check.
FAULTS: dict[str, tuple[str, Kernel, ComparisonVerdict, str]] = {
    "sinh": ("sinh", _one_value, ComparisonVerdict.WRONG, "forward"),
    "sin": ("sin", _all_values, ComparisonVerdict.WRONG, "forward"),
    "cos": ("cos", _shifted, ComparisonVerdict.WRONG, "forward"),
    "erf": ("erf", _not_when_captured, ComparisonVerdict.WRONG, "captured"),
    "exp2": ("exp2", _other_strides, ComparisonVerdict.WRONG, "layout contiguous"),
    "gather": ("gather", _any_device, ComparisonVerdict.LENIENT, "devices"),
    "mm": ("mm", _no_conjugate, ComparisonVerdict.WRONG, "conjugate"),
    "cosh": ("cosh", _no_strides, ComparisonVerdict.WRONG, "noncontiguous"),
    "erfc": ("erfc", _narrow, ComparisonVerdict.WRONG, "forward"),
    "tanh": ("tanh_backward", _gradient, ComparisonVerdict.WRONG, "backward"),
    "expm1": ("expm1.out", _not_resized, ComparisonVerdict.WRONG, "out empty"),
    "log1p": ("log1p_", _not_written, ComparisonVerdict.WRONG, "in place"),
    "bernoulli": ("bernoulli", _same_for_every_seed, ComparisonVerdict.WRONG, "forward"),
    "randn_like": ("randn_like", _other_moments, ComparisonVerdict.WRONG, "forward"),
    "triu": ("triu", _accepts_all, ComparisonVerdict.LENIENT, "errors"),
    "asinh": ("asinh", _dies, ComparisonVerdict.DIED, "forward"),
    "atanh": ("atanh", _hangs, ComparisonVerdict.DIED, "forward"),
    "digamma": ("digamma", _raises, ComparisonVerdict.RAISES, "forward"),
}

_LIBRARIES: list[torch.library.Library] = []


def plant() -> None:
    """Replace the kernels, in the process that calls it."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for overload, kernel, _, _ in FAULTS.values():
            library.impl(overload, kernel, "PrivateUse1")
    _LIBRARIES.append(library)


def spoil_results() -> None:
    """In the process that calls it, one number of every result on the device is wrong by a thousandth.

    A result without such a number counts as raised: what is then found equal has not been looked at.
    """
    attempt = comparison.attempt

    def spoiled(call: Any, tree: Any, device: str, *args: Any, **kwargs: Any) -> Any:
        result = attempt(call, tree, device, *args, **kwargs)
        if device == "cpu" or isinstance(result, comparison.Raised):
            return result
        for t in tensors(result):
            number = (
                (t.is_floating_point() or t.is_complex())
                and t.layout is torch.strided
                and t.numel() > 0
                and not t.is_meta
            )
            if number and (size := t.detach().abs().nan_to_num(0, 0, 0).max().item()) > 1e-30:
                with torch.no_grad():
                    place = (t.abs() == size).nonzero()[0].tolist()
                    memory = t.detach().clone()
                    memory[tuple(place)] *= 1.001
                    t.set_(memory)
                return result
        return comparison.Raised("nothing to spoil")

    comparison.attempt = spoiled
