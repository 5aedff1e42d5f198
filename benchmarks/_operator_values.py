"""Comparison of a package's operators with torch on the CPU; ``benchmarks/survey.py --values`` runs it.

``python -m ascend_graph.host --opp OPP benchmarks/_operator_values.py OPP`` prints a line of JSON for each operator: ``agrees``,
``differs`` (with the first such call), ``refuses`` every tried call, or has ``no reference``. The table below maps op types to
torch's functions; an operator that is not in it is compared with the function of the same name.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

import ascend_graph
from ascend_graph.prototypes import DataType, OpPrototype, PassedAs, parse_file
from ascend_graph.prototypes.naming import snake_case

_SHAPES = ((2, 3, 64), (17, 33), (1,), (4, 1024), (257, 1031), (0, 5))
#: Shapes of the inputs of an operator that broadcasts; the last applies to all further inputs.
_BROADCAST = (
    ((2, 3, 64), (64,)),
    ((17, 1), (1, 33)),
    ((5, 1, 7, 1), (4, 1, 9)),
    ((1000,), (1,)),
    ((1,), (3, 301)),
    ((40, 1, 260), (40, 33, 1)),
    ((3, 5, 2, 3, 2, 9), (5, 1, 3, 1, 9)),
)
_TORCH = {
    DataType.FLOAT: torch.float32,
    DataType.FLOAT16: torch.float16,
    DataType.BF16: torch.bfloat16,
    DataType.BOOL: torch.bool,
    DataType.INT8: torch.int8,
    DataType.INT16: torch.int16,
    DataType.INT32: torch.int32,
    DataType.INT64: torch.int64,
    DataType.UINT8: torch.uint8,
}
#: Tolerance between two implementations of one function.
_TOLERANCES = {torch.float32: 1e-4, torch.float16: 2e-3, torch.bfloat16: 8e-3}


@dataclass(frozen=True)
class Reference:
    """Reference function of an operator, with the values to try it with."""

    function: Callable[..., Any]
    #: Value range of each input; the last applies to all further inputs.
    ranges: Sequence[tuple[float, float]] = ((-4.0, 4.0),)
    attrs: Mapping[str, Any] = field(default_factory=dict)
    shapes: Sequence[tuple[int, ...]] = _SHAPES


@dataclass(frozen=True)
class OperatorVerdict:
    """Verdict on an operator."""

    operator: str
    state: str
    calls: int = 0
    detail: str = ""


_UNIT, _POSITIVE, _ANY, _NONZERO = (-0.95, 0.95), (0.05, 8.0), (-4.0, 4.0), (1.0, 6.0)


def _of(function: Callable[..., Any], *ranges: tuple[float, float], **attrs: Any) -> Reference:
    return Reference(function, ranges or (_ANY,), attrs)


_REFERENCES: Mapping[str, Reference] = {
    "acos": _of(torch.acos, _UNIT),
    "acos_grad": _of(lambda y, dy: -dy / torch.sqrt(1 - y * y), _UNIT, _ANY),
    "acosh": _of(torch.acosh, (1.05, 8.0)),
    "acosh_grad": _of(lambda y, dy: dy / torch.sinh(y), (0.2, 3.0), _ANY),
    "addcdiv": _of(lambda x, a, b, v: x + v * a / b, _ANY, _ANY, _NONZERO, _ANY),
    "addcmul": _of(lambda x, a, b, v: x + v * a * b),
    "asin": _of(torch.asin, _UNIT),
    "asin_grad": _of(lambda y, dy: dy / torch.sqrt(1 - y * y), _UNIT, _ANY),
    "atan_grad": _of(lambda x, dy: dy / (1 + x * x)),
    "atanh": _of(torch.atanh, _UNIT),
    "axpy": _of(lambda x, y: x + 2 * y, alpha=2.0),
    "bessel_i1e": _of(torch.special.i1e),
    "clip_by_value": _of(torch.clamp, _ANY, (-2, -1), (1, 2)),
    "div": _of(torch.true_divide, _ANY, _NONZERO),
    "equal": _of(torch.eq, (-2, 2)),
    "erf_inv": _of(torch.erfinv, _UNIT),
    "exp": _of(torch.exp),
    "floor_div": _of(torch.floor_divide, _ANY, _NONZERO),
    "floor_mod": _of(torch.remainder, _ANY, _NONZERO),
    "gcd": _of(torch.gcd, (1, 60)),
    "greater": _of(torch.gt, (-2, 2)),
    "greater_equal": _of(torch.ge, (-2, 2)),
    "invert": _of(torch.bitwise_not),
    "is_close": _of(torch.isclose, (-2, 2)),
    "is_finite": _of(torch.isfinite),
    "is_inf": _of(torch.isinf),
    "is_nan": _of(torch.isnan),
    "is_neg_inf": _of(torch.isneginf),
    "is_pos_inf": _of(torch.isposinf),
    "less": _of(torch.lt, (-2, 2)),
    "less_equal": _of(torch.le, (-2, 2)),
    "log": _of(torch.log, _POSITIVE),
    "log1p": _of(torch.log1p, (-0.5, 8.0)),
    "log_add_exp": _of(torch.logaddexp),
    "masked_fill": _of(lambda x, mask, value: torch.where(mask, value, x)),
    "masked_scale": _of(lambda x, mask: x * mask * 0.5, _ANY, (0, 1), value=0.5),
    "mod": _of(torch.fmod, _ANY, _NONZERO),
    "not_equal": _of(torch.ne, (-2, 2)),
    "pow": _of(torch.pow, _POSITIVE, (-2.0, 3.0)),
    "pows": _of(torch.pow, _POSITIVE, (-2.0, 3.0)),
    "real_div": _of(torch.true_divide, _ANY, _NONZERO),
    "reciprocal": _of(torch.reciprocal, _POSITIVE),
    "rint": _of(torch.round),
    "right_shift": _of(torch.bitwise_right_shift, (0, 60), (0, 4)),
    "rsqrt": _of(torch.rsqrt, _POSITIVE),
    "rsqrt_grad": _of(lambda y, dy: -0.5 * dy * y**3),
    "select": _of(torch.where),
    "sqrt": _of(torch.sqrt, _POSITIVE),
    "sqrt_grad": _of(lambda y, dy: 0.5 * dy / y, _NONZERO, _ANY),
    "tan": _of(torch.tan, (-1.4, 1.4)),
    "tanh_grad": _of(lambda y, dy: dy * (1 - y * y), _UNIT, _ANY),
    "tensor_move": _of(torch.clone),
    "truncate_div": _of(lambda a, b: torch.div(a, b, rounding_mode="trunc"), _ANY, _NONZERO),
    "truncate_mod": _of(torch.fmod, _ANY, _NONZERO),
}
#: Operators whose inputs are broadcast against each other.
_BROADCASTING = frozenset(
    {
        "add",
        "addcdiv",
        "addcmul",
        "axpy",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "div",
        "equal",
        "floor_div",
        "floor_mod",
        "gcd",
        "greater",
        "greater_equal",
        "is_close",
        "less",
        "less_equal",
        "log_add_exp",
        "logical_and",
        "logical_or",
        "masked_fill",
        "maximum",
        "minimum",
        "mod",
        "mul",
        "not_equal",
        "pow",
        "real_div",
        "right_shift",
        "select",
        "squared_difference",
        "sub",
        "truncate_div",
        "truncate_mod",
    }
)
#: Operators that define results for NaN or infinite values, and pass these on.
_SPECIAL = frozenset(
    {
        "abs",
        "add",
        "equal",
        "greater",
        "greater_equal",
        "is_close",
        "is_finite",
        "is_inf",
        "is_nan",
        "is_neg_inf",
        "is_pos_inf",
        "less",
        "less_equal",
        "masked_fill",
        "mul",
        "neg",
        "not_equal",
        "rint",
        "select",
        "sub",
        "trunc",
    }
)
_VERSION = re.compile(r"(?:_?v\d+|_d)$")
#: Functions of torch that share a name with an operator of another meaning.
_OTHERS = frozenset({"split", "tile", "cat", "concat", "stack", "range", "arange", "unique", "var", "std", "histc"})


def verdict(prototype: OpPrototype, package: Path) -> OperatorVerdict:
    """Try an operator of the installed package."""
    name = prototype.op_type
    reference = _reference(prototype)
    if reference is None:
        return OperatorVerdict(name, "no reference")
    inner, plain = (f"aclnn{prefix}{name}" for prefix in ("Inner", ""))
    headers = "".join(path.read_text(errors="replace") for path in (package / "op_api/include").glob("*.h"))
    function = inner if f"{inner}GetWorkspaceSize(" in headers else plain
    results: list[torch.Tensor] = []
    try:
        operator = ascend_graph.register_aclnn(
            function,
            name=f"survey::{snake_case(name)}",
            shape=lambda *_, **__: results[0].new_empty(results[0].shape, device="meta"),
        )
    except ascend_graph.AscendGraphError as error:
        return OperatorVerdict(name, "refuses", detail=str(error)[:300])
    calls, refusal = 0, ""
    for inputs, result in _calls(prototype, reference):
        results[:] = [result]
        where = f"{', '.join(f'{str(t.dtype)[6:]}{list(t.shape)}' for t in inputs)}"
        try:
            given = operator(*(one.npu() for one in inputs), **_attrs(prototype, reference)).cpu()
        except (RuntimeError, ascend_graph.AscendGraphError) as error:
            refusal = refusal or f"{where}: {str(error).strip().splitlines()[0][:300]}"
            continue
        calls += 1
        difference = _difference(given, result)
        if difference:
            return OperatorVerdict(name, "differs", calls, f"{where}: {difference}")
    return OperatorVerdict(name, "agrees" if calls else "refuses", calls, refusal)


def _reference(prototype: OpPrototype) -> Reference | None:
    name = _plain_name(prototype)
    function = getattr(torch, name, None) if name not in _OTHERS else None
    reference = _REFERENCES.get(name) or (Reference(function) if callable(function) else None)
    if reference is None or len(prototype.outputs) != 1 or not prototype.inputs:
        return None
    if any(one.passed_as is not PassedAs.TENSOR for one in prototype.inputs):
        return None
    if not any(dtype in _TORCH for dtype in prototype.outputs[0].dtypes):
        return None
    known = all(one.name in reference.attrs or one.default is not None for one in prototype.attrs)
    if not known or (prototype.attrs and not reference.attrs and name not in _REFERENCES):
        return None
    return reference


def _plain_name(prototype: OpPrototype) -> str:
    """Return the op type in snake case, without its version suffix if only that form is known."""
    name = snake_case(prototype.op_type)
    while name not in _REFERENCES and _VERSION.search(name):
        name = _VERSION.sub("", name)
    return name


def _attrs(prototype: OpPrototype, reference: Reference) -> dict[str, Any]:
    return {one.name: reference.attrs.get(one.name, one.default) for one in prototype.attrs}


def _calls(prototype: OpPrototype, reference: Reference) -> Iterator[tuple[list[torch.Tensor], torch.Tensor]]:
    """Yield inputs of each combination of dtypes and shapes, with the expected result in double precision."""
    generator = torch.Generator().manual_seed(14)
    allowed = [_TORCH[one] for one in prototype.outputs[0].dtypes if one in _TORCH]
    name = _plain_name(prototype)
    shapes: list[tuple[tuple[int, ...], ...]] = [(one,) for one in reference.shapes]
    if name in _BROADCASTING and len(prototype.inputs) > 1:
        shapes += _BROADCAST
    for index in range(max(len(one.dtypes) for one in prototype.inputs)):
        chosen = [one.dtypes[min(index, len(one.dtypes) - 1)] for one in prototype.inputs]
        if any(one not in _TORCH for one in chosen):
            continue
        for given in shapes:
            inputs = [
                _values(_at(given, i), _TORCH[dtype], _at(reference.ranges, i), generator, special=name in _SPECIAL)
                for i, dtype in enumerate(chosen)
            ]
            wide = [one.double() if one.is_floating_point() else one for one in inputs]
            try:
                result = reference.function(*wide)
            except (RuntimeError, TypeError):  # torch has no such call: nothing to compare with
                continue
            dtype = result.dtype
            if dtype not in allowed:
                dtype = inputs[0].dtype if inputs[0].dtype in allowed else allowed[0]
            yield inputs, result.to(dtype)


def _at(values: Sequence[tuple[Any, ...]], index: int) -> tuple[Any, ...]:
    """Return the value at an index; the last applies to all further indices."""
    return values[min(index, len(values) - 1)]


def _values(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    limits: tuple[float, float],
    generator: torch.Generator,
    *,
    special: bool,
) -> torch.Tensor:
    low, high = limits
    if dtype is torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if dtype.is_floating_point:
        values = torch.rand(shape, generator=generator) * (high - low) + low
        if special:
            several = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0])
            chosen = several[torch.randint(len(several), shape, generator=generator)]
            values = torch.where(torch.rand(shape, generator=generator) < 0.2, chosen, values)
        return values.to(dtype)
    least = 0 if dtype is torch.uint8 else math.ceil(low)
    return torch.randint(least, max(math.floor(high), least) + 1, shape, generator=generator).to(dtype)


def _difference(given: torch.Tensor, expected: torch.Tensor) -> str:
    if given.shape != expected.shape or given.dtype != expected.dtype:
        return f"{given.dtype} {list(given.shape)} for {expected.dtype} {list(expected.shape)}"
    if not expected.is_floating_point():
        wrong = given != expected
    else:
        allowed = _TOLERANCES[expected.dtype]
        wrong = ~torch.isclose(given.double(), expected.double(), rtol=allowed, atol=allowed, equal_nan=True)
    if not bool(wrong.any()):
        return ""
    at = int(wrong.flatten().nonzero()[0])
    return f"{int(wrong.sum())} of {wrong.numel()} differ; at {at} {given.flatten()[at]} for {expected.flatten()[at]}"


def main() -> None:
    package = Path(sys.argv[1])
    for header in sorted((package / "op_api/include").glob("*.h")):
        ascend_graph.load_aclnn(header)
    for header in sorted((package / "op_proto/inc").glob("*.h")):
        for prototype in parse_file(header).prototypes:
            print(json.dumps(asdict(verdict(prototype, package))), flush=True)


if __name__ == "__main__":
    main()
