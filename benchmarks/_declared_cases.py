"""TorchAir's declared cases, run on the host runtime and compared with PyTorch on the CPU.

The authors of TorchAir's converters declare the inputs that each operator accepts (``@declare_supported``). A case
is one such set of inputs: it is compiled with TorchAir's backend, run, and its results compared with those of the same
operator on the CPU. For random and uninitialized results only shapes and dtypes are known.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import FunctionType
from typing import Any

import torch

_RANDOM = ("bernoulli", "multinomial", "native_dropout", "rand", "randint", "randn", "randperm", "uniform")
_LARGE_HALF = 1 << 22
_LARGEST = 1 << 27
_UNINITIALIZED = ("empty", "empty_like", "new_empty", "new_empty_strided")

#: Operators whose results differ from the CPU's because of TorchAir's graphs, with the reason.
KNOWN_DIFFERENCES = {
    "aten.max_pool2d_with_indices.default": "TorchAir returns the maxima in place of the indices before Ascend950",
    "aten._native_batch_norm_legit.default": "the variance is saved in place of 1/sqrt(variance + epsilon) before Ascend950",
    "aten._native_batch_norm_legit_functional.default": "the same",
    "aten.native_batch_norm_backward.default": "it takes the variance in place of 1/sqrt(variance + epsilon) before Ascend950",
    "aten.native_group_norm_backward.default": "TorchAir squares 1/sigma, and these cases have negative ones",
    "aten.native_layer_norm.default": "statistics are float32 on the device, of the input's dtype on the CPU",
    "aten.convolution.default": "a float16 transposed convolution of three dimensions, which the CPU sums up in float16",
}
#: Operators that PyTorch's own meta functions or its tracer refuse in some or all declared cases.
NOT_TRACED = (
    "<built-in function",
    "<function sym_sum",
    "aten._log_softmax.default",
    "aten._prelu_kernel",
    "aten.batch_norm_backward_elemt",
    "aten.batch_norm_backward_reduce",
    "aten.batch_norm_elemt",
    "aten.fill.Tensor",
)


class Variant(Enum):
    """Contents and shapes of a case's tensors without given values."""

    DECLARED = "as declared"
    #: Shapes that are most easily mistaken for something else: a number, and a mask of 128 bits.
    ONE = "of one element"
    SIXTEEN = "of 16 elements"
    #: Floats with NaN and infinities among them.
    SPECIAL = "with NaN and infinities"


class CaseState(Enum):
    """Outcome of a case."""

    TOO_LARGE = "too large"
    NOT_CONVERTED = "not converted"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"
    NO_REFERENCE = "no reference"
    DISAGREE = "disagree"
    AGREE = "agree"


@dataclass(frozen=True, slots=True)
class DeclaredCase:
    """Declared case: an operator and its inputs, as TorchAir describes them."""

    op: Any
    index: int
    support: Any
    variant: Variant = Variant.DECLARED

    @property
    def name(self) -> str:
        """Operator, number and variant of the case: ``aten.add.Tensor-0``, ``aten.add.Tensor-0-special``."""
        suffix = "" if self.variant is Variant.DECLARED else f"-{self.variant.name.lower()}"
        # Of a function its name: its text has its address, another one in each process.
        name = self.op.__qualname__ if isinstance(self.op, FunctionType) else self.op
        return f"{name}-{self.index}{suffix}"

    def inputs(self) -> tuple[list[Any], dict[str, Any]]:
        """Return new CPU inputs, the same every time."""
        torch.manual_seed(self.index)
        return [_materialized(a, self.variant) for a in self.support.args], {
            k: _materialized(v, self.variant) for k, v in self.support.kwargs.items()
        }

    @property
    def is_large(self) -> bool:
        """True if an input has more elements than a small machine holds (one declared case has 64 GiB)."""
        values = [
            v for a in (*self.support.args, *self.support.kwargs.values()) for v in (a if isinstance(a, list) else [a])
        ]
        # Some cases are written I32([2, 3]) for I32(2, 3).
        sizes = [v.dims[0] if v.dims and isinstance(v.dims[0], list) else v.dims for v in values if hasattr(v, "dims")]
        return any(math.prod(dims) > _LARGEST for dims in sizes)

    @property
    def is_random(self) -> bool:
        """True if the contents of the results are undetermined."""
        return _base_name(self.op) in _RANDOM + _UNINITIALIZED


@dataclass(slots=True)
class CaseResult:
    """Result of a case, with the GE operators of its graph and an error message."""

    case: DeclaredCase
    dynamic: bool
    result: CaseState
    message: str = ""
    ge_ops: frozenset[str] = field(default_factory=frozenset)


def _base_name(op: Any) -> str:
    return str(op).split(".")[1] if "." in str(op) else str(op)


def _materialized(value: Any, variant: Variant) -> Any:
    if isinstance(value, (list, tuple)):
        return [_materialized(v, variant) for v in value]
    if not hasattr(value, "dims"):
        return value
    if value.value is not None:
        return torch.tensor(value.value, dtype=value.dtype)
    dims = {Variant.ONE: [1], Variant.SIXTEEN: [16]}.get(variant, value.dims)
    if value.value_range is not None:
        low, high = value.value_range
        made = (torch.rand(*dims) * (high - low) + low).to(value.dtype)
    else:
        made = torch.randn(*dims).to(value.dtype)
    if variant is Variant.SPECIAL and made.is_floating_point():
        for position, special in enumerate((math.nan, math.inf, -math.inf)):
            made.reshape(-1)[position :: 2 * 3 + 1] = special
    return made


def declared_cases() -> list[DeclaredCase]:
    """Return all declared cases of the installed TorchAir, by operator."""
    import torchair._ge_concrete_graph.ge_converter.custom  # noqa: F401
    from torchair._ge_concrete_graph.fx2ge_converter import _declare_supported_converters

    converters = _declare_supported_converters()
    return [
        DeclaredCase(op, i, support)
        for op, converter in sorted(converters.items(), key=lambda item: str(item[0]))
        for i, support in enumerate(converter.supported_cases)
    ]


def _to_npu(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _to_npu(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_npu(v) for v in value]
    return value.to("npu") if isinstance(value, torch.Tensor) else value


def _called(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return the operator's results, copied so that none is an input."""
    out = op(*args, **kwargs)
    if isinstance(out, (list, tuple)):
        return [o.clone() if isinstance(o, torch.Tensor) else o for o in out]
    return out.clone() if isinstance(out, torch.Tensor) else out


def _reference(op: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Return the operator's results on the CPU."""
    halves = all(a.dtype is torch.float16 for a in args if isinstance(a, torch.Tensor))
    if halves and any(isinstance(a, torch.Tensor) and a.numel() > _LARGE_HALF for a in args):
        # A matmul of large float16 matrices takes a CPU minutes; this one is also more precise.
        return _called(op, [a.float() if isinstance(a, torch.Tensor) else a for a in args], kwargs).half()
    return _called(op, args, kwargs)


def run_case(case: DeclaredCase, *, dynamic: bool = False) -> CaseResult:
    """Compile a case with TorchAir, run it on the host runtime, and compare it with the CPU."""
    import torchair

    if case.is_large:
        return CaseResult(case, dynamic, CaseState.TOO_LARGE, "inputs of more than 128 Mi elements")
    outcome = CaseResult(case, dynamic, CaseState.NOT_CONVERTED)
    expected = None
    if not str(case.op).startswith("npu"):
        try:
            args, kwargs = case.inputs()
            expected = _reference(case.op, args, kwargs)
        except Exception as error:  # what the CPU makes of arguments that nobody chose for it
            outcome.message = str(error)
            if case.variant is not Variant.DECLARED:  # not every operator takes every shape
                outcome.result = CaseState.NO_REFERENCE
                return outcome
    torch._dynamo.reset()
    compiled = torch.compile(_called, backend=torchair.get_npu_backend(), dynamic=dynamic, fullgraph=True)
    runs = []
    with _watched_compilation() as seen:
        try:
            for _ in range(2):  # what a graph keeps from one call to the next shows in the second
                args, kwargs = (_to_npu(given) for given in case.inputs())
                results = compiled(case.op, args, kwargs)
                runs.append((results, args, kwargs))
            outcome.result = CaseState.NO_REFERENCE
        except Exception as error:  # TorchAir's, PyTorch's or ours: what it was is the outcome
            outcome.message = str(error)
            if seen:
                unsupported = "has no kernel for GE operator" in outcome.message
                outcome.result = CaseState.UNSUPPORTED if unsupported else CaseState.FAILED
    outcome.ge_ops = frozenset(seen)
    if outcome.result is not CaseState.NO_REFERENCE or expected is None:
        return outcome
    given = case.inputs()
    messages = []
    for results, args, kwargs in runs:
        messages.append(difference(results, expected, contents=not case.is_random))
        if not _writes(case.op):
            changed = difference(_tensors((args, kwargs)), _tensors(given))
            messages.append(changed and f"the operator wrote to its inputs: {changed}")
    if not case.is_random:
        first, second = (_tensors(results) for results, _, _ in runs)
        again = difference(second, first)
        messages.append(again and f"called again: {again}")
    outcome.message = next(filter(None, messages), "")
    outcome.result = CaseState.DISAGREE if outcome.message else CaseState.AGREE
    return outcome


def _writes(op: Any) -> bool:
    """Return whether an operator writes to its arguments; Python's own operators on numbers have no schema."""
    return isinstance(op, torch._ops.OpOverload) and op._schema.is_mutable


def _tensors(value: Any) -> list[torch.Tensor]:
    """Return the tensors in nested lists, tuples and dicts, on the CPU."""
    if isinstance(value, torch.Tensor):
        return [value.cpu()]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for item in items for tensor in _tensors(item)]


class _watched_compilation:  # noqa: N801
    """Context manager that collects the GE operators of the graphs compiled within it."""

    def __enter__(self) -> set[str]:
        from torchair._ge_concrete_graph.ge_ir_pb2 import ModelDef

        from ascend_graph.host.runtime import engine

        seen: set[str] = set()
        self._original = original = engine.compile_model

        def compile_model(model: bytes, options: Any) -> Any:
            definition = ModelDef()
            definition.ParseFromString(model)
            seen.update(op.type for op in definition.graph[0].op)
            return original(model, options)

        engine.compile_model = compile_model
        return seen

    def __exit__(self, *_: object) -> None:
        from ascend_graph.host.runtime import engine

        engine.compile_model = self._original


#: Relative and absolute tolerances: TorchAir's own for its cases, and wider ones for the narrow dtypes.
_TOLERANCES = {torch.float16: (2e-3, 1e-3), torch.bfloat16: (1.6e-2, 1e-2)}


def difference(results: Any, expected: Any, *, contents: bool = True) -> str:
    """Return in one line how results differ from the expected ones; empty if they agree.

    >>> difference(torch.ones(2), torch.ones(2))
    ''
    >>> difference(torch.ones(2), torch.ones(3))
    'output 0: shape (2,), expected (3,)'
    """
    for i, (result, wanted) in enumerate(_paired(results, expected)):
        if not isinstance(wanted, torch.Tensor):
            if isinstance(result, torch.Tensor) or result != wanted:
                return f"output {i}: {result}, expected {wanted}"
            continue
        if not isinstance(result, torch.Tensor):
            return f"output {i}: {type(result).__name__}, expected a tensor"
        actual = result.cpu()
        if actual.shape != wanted.shape:
            return f"output {i}: shape {tuple(actual.shape)}, expected {tuple(wanted.shape)}"
        if actual.dtype != wanted.dtype:
            return f"output {i}: {actual.dtype}, expected {wanted.dtype}"
        if not contents:
            continue
        rtol, atol = _TOLERANCES.get(wanted.dtype, (1e-3, 1e-5))
        if not torch.allclose(actual, wanted, rtol, atol, equal_nan=True):
            wide = torch.complex128 if wanted.is_complex() else torch.float64
            error = (actual.to(wide) - wanted.to(wide)).abs().nan_to_num(float("inf"))
            return f"output {i}: differs by up to {error.max().item():.3g}"
    return ""


def _paired(results: Any, expected: Any) -> Iterator[tuple[Any, Any]]:
    several = isinstance(expected, (list, tuple))
    actual = list(results) if isinstance(results, (list, tuple)) else [results]
    wanted = list(expected) if several else [expected]
    if len(actual) != len(wanted):
        yield f"{len(actual)} outputs", f"{len(wanted)} outputs"
        return
    yield from zip(actual, wanted, strict=True)


if __name__ == "__main__":
    chosen = [
        replace(c, variant=v)
        for c in declared_cases()
        for v in Variant
        if any(c.name.startswith(p) for p in sys.argv[1:] or [""])
    ]
    for chosen_case in chosen:
        for is_dynamic in (False, True):
            done = run_case(chosen_case, dynamic=is_dynamic)
            print(f"{done.case.name} {'dynamic' if is_dynamic else 'static'}: {done.result.value} {done.message[:300]}")
