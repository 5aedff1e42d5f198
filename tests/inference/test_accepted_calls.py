"""Relations found for operators with optional tensors, absent attrs and lists: what they accept is as the kernel's."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from ascend_graph.dispatch.meta import meta_function
from ascend_graph.inference import infer_overload
from ascend_graph.shapes import RelationError, ShapeError

pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning")


def biased(x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    return x.clone() if bias is None else x + bias


def negated(x: torch.Tensor, bias: torch.Tensor | None = None, flag: bool = False) -> torch.Tensor:
    return biased(-x if flag else x, bias)


def summed(x: torch.Tensor, dims: list[int] | None = None, dtype: torch.dtype | None = None) -> torch.Tensor:
    y = x.clone() if dims is None else x.sum(dims)
    return y if dtype is None else y.to(dtype)


def of_all(
    x: torch.Tensor,
    bias: torch.Tensor | None = None,
    dims: list[int] | None = None,
    flag: bool = False,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    return summed(negated(x, bias, flag), dims, dtype)


def two(
    x: torch.Tensor, a: torch.Tensor | None = None, b: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    return x.clone() if a is None else x * a, x.clone() if b is None else x.sum(-1) + b


def masked(x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    return x.clone() if mask is None else torch.where(mask, x, torch.zeros((), dtype=x.dtype))


def paired(xs: list[torch.Tensor], ys: list[torch.Tensor]) -> list[torch.Tensor]:
    return [x + y for x, y in zip(xs, ys, strict=True)]


def scaled(x: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
    return x.to(torch.float32, copy=True) if scale is None else x.to(torch.float32) * scale


def clamped(x: torch.Tensor, lo: float | None = None, hi: float | None = None) -> torch.Tensor:
    return torch.clamp(x, lo, hi)


def quantized(x: torch.Tensor, smooth: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    y = x.float() if smooth is None else x.float() * smooth
    scale = y.abs().amax(-1) / 127
    return (y / scale.unsqueeze(-1)).round().to(torch.int8), scale


def stacked(xs: list[torch.Tensor], dim: int = 0) -> torch.Tensor:
    return torch.stack(xs, dim)


def interpolated(a: torch.Tensor, b: torch.Tensor, w: torch.Tensor | None = None) -> torch.Tensor:
    return a + (b - a) * (0.5 if w is None else w)


def chosen(x: torch.Tensor, mask: torch.Tensor | None = None, other: torch.Tensor | None = None) -> torch.Tensor:
    return x.clone() if mask is None else torch.where(mask.bool(), x, x.new_zeros(()) if other is None else other)


def accumulated(x: torch.Tensor, init: torch.Tensor | None = None, dim: int = -1) -> torch.Tensor:
    y = x.cumsum(dim)
    return y if init is None else y + init.unsqueeze(dim)


def dequantized(x: torch.Tensor, scale: torch.Tensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return (x.float() * scale).to(dtype)


CASES: dict[str, tuple[str, Callable[..., Any], str]] = {
    "biased": (
        "(Tensor x, Tensor? bias=None) -> Tensor",
        biased,
        "x[...], bias[...] -> out0[...]: x if bias is None else promote(x, bias)",
    ),
    "negated": (
        "(Tensor x, Tensor? bias=None, bool flag=False) -> Tensor",
        negated,
        "x[...], bias[...] -> out0[...]: x if bias is None else promote(x, bias)",
    ),
    "summed": (
        "(Tensor x, int[]? dims=None) -> Tensor",
        summed,
        "x[*s, *r@dims] -> out0[*s, *r@dims]: x if dims is None else "
        "[]: integral_sum(x) if dims is not None and len(dims) == 0 else [*s]: integral_sum(x)",
    ),
    "cast": (
        "(Tensor x, int[]? dims=None, ScalarType? dtype=None) -> Tensor",
        summed,
        "x[*s, *r@dims] -> out0[*s, *r@dims]: (x if dtype is None else dtype) if dims is None else ",
    ),
    "of_all": (
        "(Tensor x, Tensor? bias=None, int[]? dims=None, bool flag=False, ScalarType? dtype=None) -> Tensor",
        of_all,
        "-> out0[*s, *r@dims]: ((x if bias is None else promote(x, bias)) if dtype is None else dtype) if dims is None",
    ),
    "two": ("(Tensor x, Tensor? a=None, Tensor? b=None) -> (Tensor, Tensor)", two, "b is None"),
    "masked": ("(Tensor x, Tensor? mask=None) -> Tensor", masked, "x[...], mask[...] -> out0[...]"),
    "clamped": (
        "(Tensor x, Scalar? lo=None, Scalar? hi=None) -> Tensor",
        clamped,
        "(promote(x) if lo is None else promote(x, lo)) if hi is None else",
    ),
    "quantized": (
        "(Tensor x, Tensor? smooth=None) -> (Tensor, Tensor)",
        quantized,
        "x[*s, n], smooth[n] -> out0 like x: int8, out1[*s]: float32 if smooth is None else promote(float32, smooth)",
    ),
    "interpolated": (
        "(Tensor a, Tensor b, Tensor? w=None) -> Tensor",
        interpolated,
        "a[...], b[...], w[...] -> out0[...]: floating(a, b) if w is None else promote(a, b, w)",
    ),
    "chosen": ("(Tensor x, Tensor? mask=None, Tensor? other=None) -> Tensor", chosen, "x[...], mask[...], other"),
    "accumulated": ("(Tensor x, Tensor? init=None, int dim=-1) -> Tensor", accumulated, "init"),
    "dequantized": ("(Tensor x, Tensor scale, ScalarType dtype=6) -> Tensor", dequantized, "-> out0[...]: dtype"),
    "stacked": ("(Tensor[] xs, int dim=0) -> Tensor", stacked, "xs[i][*s]: T -> out0[*s, len(xs)@dim]"),
    "paired": (
        "(Tensor[] xs, Tensor[] ys) -> Tensor[]",
        paired,
        "xs[i][*s[i]]: T, ys[i][*s[i]]: T1 -> out0[i][*s[i]]: promote(xs, ys)",
    ),
    "scaled": ("(Tensor x, Tensor? scale=None) -> Tensor", scaled, "float32"),
}
DTYPES = (torch.float32, torch.float16, torch.int32, torch.bool, torch.int64)


def arguments(schema: torch.FunctionSchema, rng: random.Random) -> list[Any]:
    """Draw a call: tensors of one shape, broadcast ones, and others, in equal and in different dtypes."""
    rank = rng.randint(0, 3)
    base = [rng.choice((1, 2, 3)) for _ in range(rank)]
    alike, drawn = rng.choice(DTYPES), []
    for argument in schema.arguments:
        kind = str(argument.type)
        if kind == "Tensor" or (kind == "Optional[Tensor]" and rng.random() < 0.7):
            shape = base
            if drawn and rng.random() < 0.5:
                shape = [rng.choice((size, size, 1, 3)) for size in base][rng.randint(0, 1) :]
            if drawn and rng.random() < 0.1:
                shape = [2, *shape]
            drawn.append(torch.ones(shape, dtype=rng.choice(DTYPES) if rng.random() < 0.4 else alike))
        elif kind == "Optional[List[int]]":
            drawn.append(None if rng.random() < 0.4 else rng.sample(range(rank), rng.randint(0, rank)))
        elif kind == "List[Tensor]":
            dtypes = [alike, alike] if rng.random() < 0.6 else rng.sample(DTYPES, 2)
            drawn.append([torch.ones(base, dtype=dtype) for dtype in dtypes])
        elif kind == "Optional[number]":
            drawn.append(rng.choice((None, 1, 0.5)))
        elif argument.name == "dtype":
            drawn.append(rng.choice((torch.float16, torch.int32, torch.float32)))
        elif kind == "int":
            drawn.append(rng.randint(-rank, rank))
        elif kind == "bool":
            drawn.append(rng.random() < 0.3)
        elif kind == "Optional[int]":
            drawn.append(None if rng.random() < 0.6 else torch.float16)
        else:
            drawn.append(None)
    return drawn


def specs(outputs: Any) -> list[tuple[tuple[int, ...], torch.dtype]]:
    return [(tuple(o.shape), o.dtype) for o in (outputs if isinstance(outputs, tuple | list) else (outputs,))]


@pytest.mark.parametrize("case", CASES)
def test_what_is_accepted_is_as_the_kernel_computes(case: str) -> None:
    schema, kernel, said = CASES[case]
    library = torch.library.Library(f"optional_{case}", "DEF")
    try:
        library.define(f"op{schema}")
        library.impl("op", kernel, "CPU")
        overload = getattr(torch.ops, f"optional_{case}").op.default
        relation = infer_overload(overload).relation
        assert said in str(relation)
        meta, rng = meta_function(relation, overload._schema), random.Random(case)
        ran, accepted, wrong = 0, 0, []
        for _ in range(300):
            given = arguments(overload._schema, rng)
            try:
                result = overload(*given)
            except Exception:
                continue
            ran += 1
            try:
                promised = meta(*torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.to("meta"), given))
            except (ShapeError, RelationError, RuntimeError):
                continue
            accepted += 1
            if specs(promised) != specs(result):
                wrong.append((given, specs(result), specs(promised)))
        assert wrong == []
        assert accepted > ran // 6, str(relation)
    finally:
        library._destroy()


def test_a_crash_for_an_optional_tensor_of_another_size_is_a_refusal() -> None:
    def kernel(x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        if bias is not None and bias.shape != x.shape[-1:]:
            ctypes.string_at(0)
        return x.clone() if bias is None else x + bias

    library = torch.library.Library("optional_crash", "DEF")
    try:
        library.define("op(Tensor x, Tensor? bias=None) -> Tensor")
        library.impl("op", kernel, "CPU")
        relation = infer_overload(torch.ops.optional_crash.op.default).relation
        assert "x if bias is None else promote(x, bias)" in str(relation)
    finally:
        library._destroy()
