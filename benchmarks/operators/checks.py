"""The checks of one operator of PyTorch's database: the same call on the CPU and on the device, compared."""

from __future__ import annotations

import itertools
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, partial
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.testing._internal.opinfo.core import ForeachFuncInfo, OpInfo, SampleInput

from benchmarks.operators.trees import Mover, difference, map_leaves, tensors

#: How often a random operator is run for its moments.
DRAWS = 48
#: How many samples get the checks of an operator that hardly depend on the sample.
FEW = 2


class Verdict(Enum):
    """What a comparison says."""

    EQUAL = "equal"
    REFUSED = "refused"  #: the CPU raises, and so does the device
    RAISES = "raises"  #: the CPU gives a result, the device raises
    WRONG = "wrong"
    LENIENT = "lenient"  #: what must be refused is not
    DIED = "died"  #: the process ended, or the time was over
    NO_SAMPLE = "no sample"  #: the database raises while it makes samples


@dataclass(frozen=True)
class Outcome:
    """One comparison that did not find both equal."""

    operator: str
    dtype: str
    sample: int
    check: str
    verdict: Verdict
    message: str


@dataclass
class Tally:
    """What came out for one operator and dtype."""

    samples: int = 0
    verdicts: Counter[tuple[str, Verdict]] = field(default_factory=Counter)
    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Plan:
    """What to check: how many samples, and which of :data:`CHECKS`."""

    samples: int = 5
    checks: tuple[str, ...] = ()
    device: str = "npu"


@dataclass(frozen=True)
class Raised:
    """That a call raised, and what."""

    text: str


@contextmanager
def shifted_seeds(shift: int) -> Iterator[None]:
    """Every seed that is set inside is another one: the database seeds some operators itself."""
    seed = torch.manual_seed
    torch.manual_seed = lambda value: seed(int(value) + shift)
    try:
        yield
    finally:
        torch.manual_seed = seed


Call = Callable[[Any], Any]


def attempt(call: Call, tree: Any, device: str, shift: int = 0, stay: frozenset[int] = frozenset()) -> Any:
    """The call's result on a copy of the arguments on the device, or what it raised."""
    with warnings.catch_warnings(), shifted_seeds(shift):
        warnings.simplefilter("ignore")
        try:
            arguments = Mover(device, stay)(tree)
            torch.manual_seed(0)
            return call(arguments)
        except Exception as error:
            return Raised(f"{type(error).__name__}: {error}")


def _random(call: Call, tree: Any, expected: Any, shifts: Sequence[int]) -> bool:
    return any(difference(attempt(call, tree, "cpu", shift), expected, "cpu") for shift in shifts)


def _uninitialised(call: Call, tree: Any) -> bool:
    """Whether the result is memory as it was found: PyTorch fills such memory when it is to be deterministic."""
    was = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        filled = attempt(call, tree, "cpu")
    finally:
        torch.use_deterministic_algorithms(was[0], warn_only=was[1])
    for left in (0, 0, 0, 1, 2):
        # What lies in the memory that comes next.
        blocks = [torch.full(t.shape, left, dtype=t.dtype) for t in tensors(filled) for _ in range(64)]
        del blocks
        if difference(attempt(call, tree, "cpu"), filled, "cpu"):
            return True
    return False


def _moments(call: Call, tree: Any, device: str) -> torch.Tensor:
    """Of every run, the mean of each result's values and of their squares, squeezed so that no tail counts for much."""
    rows = []
    for shift in range(1, DRAWS + 1):
        result = attempt(call, tree, device, shift)
        row = []
        for t in tensors(result):
            x = t.detach().to("cpu").resolve_conj().resolve_neg()
            x = (torch.view_as_real(x) if x.is_complex() else x).double()
            x = x / (1 + x.abs())
            row += [x.mean(), x.square().mean()] if x.numel() else []
        rows.append(torch.stack(row) if row else torch.zeros(0, dtype=torch.double))
    return torch.stack(rows)


def _properties_differ(call: Call, tree: Any, actual: Any, expected: Any, device: str, moments: bool) -> str | None:
    """What is wrong with the result of a random operator: its form, that it repeats after a seed, its moments."""
    if message := difference(actual, expected, device, with_values=False):
        return message
    again = attempt(call, tree, device)
    if message := difference(Mover("cpu")(again), Mover("cpu")(actual), "cpu"):
        return f"does not repeat after the same seed: {message}"
    if not moments:
        return None
    here, there = _moments(call, tree, "cpu"), _moments(call, tree, device)
    spread = ((here.var(0) + there.var(0)) / DRAWS).sqrt()
    far = (here.mean(0) - there.mean(0)).abs() > 6 * spread + 1e-6
    if far.any():
        i = int(far.nonzero()[0])
        return f"moment {i} of {DRAWS} draws is {there.mean(0)[i]:.4f}, not {here.mean(0)[i]:.4f}"
    if here.numel() and bool((here.std(0) > 0).any()) and not bool((there.std(0) > 0).any()):
        return "gives the same for every seed"
    return None


def compare(
    call: Call,
    tree: Any,
    device: str,
    *,
    moments: bool = False,
    must_raise: bool = False,
    stay: frozenset[int] = frozenset(),
) -> tuple[Verdict, str]:
    """Run the call on both devices; `must_raise` says that a device refuses it whatever the CPU does."""
    if must_raise:
        actual = attempt(call, tree, device, stay=stay)
        return (
            (Verdict.REFUSED, "") if isinstance(actual, Raised) else (Verdict.LENIENT, "accepts what must be refused")
        )
    expected, actual = attempt(call, tree, "cpu"), attempt(call, tree, device, stay=stay)
    if isinstance(expected, Raised):
        if isinstance(actual, Raised):
            return Verdict.REFUSED, ""
        return Verdict.LENIENT, f"the CPU raises {expected.text[:300]}"
    if isinstance(actual, Raised):
        return Verdict.RAISES, actual.text
    if stay:
        actual, device = Mover("cpu")(actual), "cpu"
    random = _random(call, tree, expected, [1])
    message = difference(actual, expected, device)
    if random or (message and difference(actual, expected, device, with_values=False) is None):
        if _uninitialised(call, tree):
            message = difference(actual, expected, device, with_values=False)
        elif random or _random(call, tree, expected, range(2, 10)):
            message = _properties_differ(call, tree, actual, expected, device, moments)
    return (Verdict.WRONG, message) if message else (Verdict.EQUAL, "")


# The calls. Each takes the arguments (input, args, kwargs) on one device, and gives everything that must agree.


def _like(t: torch.Tensor) -> torch.Tensor:
    """Numbers of a tensor's shape, dtype and device, the same on every device."""
    generator = torch.Generator().manual_seed(t.numel() + 1)
    return torch.randn(t.shape, dtype=t.dtype, generator=generator).to(t.device)


def _differentiable(t: torch.Tensor) -> bool:
    return t.requires_grad and (t.is_floating_point() or t.is_complex())


def _aliases(result: Any, arguments: Any) -> list[tuple[bool, list[bool]]]:
    """For every tensor of the result whether it is a view, and with which arguments it shares memory."""

    def address(t: torch.Tensor) -> int:
        return t.untyped_storage().data_ptr() if t.layout is torch.strided and not t._is_zerotensor() else 0

    sources = [address(t) for t in tensors(arguments)]
    return [(t._is_view(), [address(t) == s != 0 for s in sources]) for t in tensors(result)]


def _forward(op: Callable[..., Any], tree: Any) -> Any:
    value, args, kwargs = tree
    result = op(value, *args, **kwargs)
    return {"result": result, "arguments": tree, "aliases": _aliases(result, tree)}


def _gradients(op: Callable[..., Any], process: Callable[[Any], Any], tree: Any) -> Any:
    leaves = [t for t in tensors(tree) if _differentiable(t)]
    value, args, kwargs = tree
    outputs = [t for t in tensors(process(op(value, *args, **kwargs))) if _differentiable(t)]
    if not outputs or not leaves:
        return {"gradients": []}
    return {"gradients": torch.autograd.grad(outputs, leaves, [_like(t) for t in outputs], allow_unused=True)}


def _tangents(op: Callable[..., Any], tree: Any) -> Any:
    with forward_ad.dual_level():
        dual = map_leaves(
            lambda t: (
                forward_ad.make_dual(t.detach(), _like(t)) if isinstance(t, torch.Tensor) and _differentiable(t) else t
            ),
            tree,
        )
        value, args, kwargs = dual
        pairs = [forward_ad.unpack_dual(t) for t in tensors(op(value, *args, **kwargs))]
        return {"tangents": [(p.primal, p.tangent) for p in pairs]}


def _out(op: Callable[..., Any], tree: Any) -> Any:
    (value, args, kwargs), out = tree
    before = [t.data_ptr() for t in tensors(out)]
    result = op(value, *args, **kwargs, out=out)
    same = [r is o for r, o in zip(tensors(result), tensors(out), strict=True)]
    kept = [
        t.data_ptr() == address or t.numel() == 0 or address == 0
        for t, address in zip(tensors(out), before, strict=True)
    ]
    return {"out": out, "same": same, "kept": kept, "strides": [t.stride() for t in tensors(out)]}


def _inplace(op: Callable[..., Any], tree: Any) -> Any:
    value, args, kwargs = tree
    result = op(value, *args, **kwargs)
    return {"result": result, "input": value, "same": result is value}


def _inplace_gradients(op: Callable[..., Any], process: Callable[[Any], Any], tree: Any) -> Any:
    return _gradients(lambda value, *args, **kwargs: op(value.clone(), *args, **kwargs), process, tree)


def _noncontiguous(t: torch.Tensor) -> torch.Tensor:
    """The same values with a gap between any two of a row."""
    wide = torch.stack([t.detach(), torch.full_like(t.detach(), 7)], -1)
    return wide[..., 0]


def _arguments(sample: SampleInput) -> Any:
    return (sample.input, tuple(sample.args), dict(sample.kwargs))


def _detached(tree: Any) -> Any:
    return map_leaves(lambda leaf: leaf.detach() if isinstance(leaf, torch.Tensor) else leaf, tree)


def _replace_tensors(f: Callable[[torch.Tensor], torch.Tensor], tree: Any) -> Any:
    def leaf(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            return value
        made = f(value.detach())
        return made.requires_grad_() if value.requires_grad else made

    return map_leaves(leaf, tree)


@dataclass(frozen=True)
class Case:
    """One comparison to be made."""

    check: str
    call: Call
    tree: Any
    moments: bool = False
    must_raise: bool = False


def _out_cases(op: OpInfo, tree: Any, few: bool) -> Iterator[Case]:
    plain = _detached(tree)
    result = attempt(lambda t: op(t[0], *t[1], **t[2]), plain, "cpu")
    flat = tensors(result)
    if isinstance(result, Raised) or not flat or any(t.layout is not torch.strided for t in flat):
        return
    if not isinstance(result, torch.Tensor | tuple):
        return
    call = partial(_out, op)

    def outs(f: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        return f(result) if isinstance(result, torch.Tensor) else tuple(f(t) for t in flat)

    yield Case("out", call, (plain, outs(lambda t: torch.full(t.shape, 3, dtype=t.dtype))))
    yield Case("out empty", call, (plain, outs(lambda t: torch.empty(0, dtype=t.dtype))))
    yield Case("out strided", call, (plain, outs(lambda t: _noncontiguous(torch.full(t.shape, 3, dtype=t.dtype)))))
    if not few:
        return
    yield Case("out shape", call, (plain, outs(lambda t: torch.full((*t.shape, 2), 3, dtype=t.dtype))))
    for dtype in (torch.int64, torch.float64):
        if any(t.dtype != dtype for t in flat):
            yield Case(f"out {str(dtype)[6:]}", call, (plain, outs(lambda t, d=dtype: torch.full(t.shape, 3, dtype=d))))


def _cases(op: OpInfo, sample: SampleInput, dtype: torch.dtype, few: bool) -> Iterator[Case]:
    tree = _arguments(sample)
    process = sample.output_process_fn_grad
    gradients = any(_differentiable(t) for t in tensors(tree))
    yield Case("forward", partial(_forward, op), tree, moments=few)
    if gradients:
        yield Case("backward", partial(_gradients, op, process), tree)
        if op.supports_forward_ad:
            yield Case("forward AD", partial(_tangents, op), tree)
    if op.supports_out:
        yield from _out_cases(op, tree, few)
    inplace = op.get_inplace()
    if inplace is not None and not sample.broadcasts_input:
        yield Case("in place", partial(_inplace, inplace), _detached(tree))
        if gradients and op.supports_inplace_autograd:
            yield Case("in place backward", partial(_inplace_gradients, inplace, process), tree)
    variants: list[tuple[str, Callable[[torch.Tensor], torch.Tensor]]] = [("noncontiguous", _noncontiguous)]
    if dtype.is_complex:
        variants.append(("conjugate", lambda t: t.conj_physical().conj() if t.is_complex() else t))
    if few and (dtype.is_complex or dtype.is_floating_point):
        variants.append(("negative", lambda t: torch._neg_view(-t) if t.is_complex() or t.is_floating_point() else t))
    for name, variant in variants:
        changed = _replace_tensors(variant, tree)
        yield Case(name, partial(_forward, op), changed)
        if gradients:
            yield Case(f"{name} backward", partial(_gradients, op, process), changed)
        if inplace is not None and not sample.broadcasts_input:
            yield Case(f"{name} in place", partial(_inplace, inplace), _detached(changed))


def _devices_call(op: Callable[..., Any], device: str, tree: Any) -> Any:
    """All but the first tensor stay on the CPU."""
    first = True

    def move(leaf: Any) -> Any:
        nonlocal first
        if not isinstance(leaf, torch.Tensor):
            return leaf
        moved = leaf.to(device) if first else leaf
        first = False
        return moved

    value, args, kwargs = map_leaves(move, tree)
    return op(value, *args, **kwargs)


def _device_cases(op: OpInfo, sample: SampleInput, device: str) -> Iterator[Case]:
    tree = _detached(_arguments(sample))
    found = tensors(tree)
    if len(found) > 1 and all(t.dim() > 0 and t.numel() > 0 for t in found):
        yield Case("devices", partial(_devices_call, op, device), tree, must_raise=True)


CHECKS = (
    *("forward", "backward", "forward AD", "in place", "in place backward"),
    *("out", "out empty", "out strided", "out shape", "out int64", "out float64"),
    *(
        f"{kind}{part}"
        for kind in ("noncontiguous", "conjugate", "negative")
        for part in ("", " backward", " in place")
    ),
    *("devices", "errors"),
)


#: The names of PyTorch's databases: its operators, and those of lists of tensors.
OPERATORS, FOREACH = "op_db", "foreach"


@cache
def database(name: str) -> dict[str, OpInfo]:
    """A database's entries by their full names."""
    from torch.testing._internal import common_methods_invocations as made

    entries = made.op_db
    if name == FOREACH:
        kinds = ("unary", "binary", "pointwise", "reduce", "other")
        entries = [op for kind in kinds for op in getattr(made, f"foreach_{kind}_op_db")]
    return {op.full_name: op for op in entries}


def dtypes_of(op: OpInfo) -> list[torch.dtype]:
    """float32, one integer, one complex and bool, where the CPU's kernel takes them."""
    supported = op.supported_dtypes("cpu")
    families = (
        (torch.float32,),
        (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
        (torch.complex64, torch.complex128),
        (torch.bool,),
    )
    found = [next((d for d in family if d in supported), None) for family in families]
    return [d for d in found if d is not None]


def _samples(op: OpInfo, dtype: torch.dtype, count: int, device: str = "cpu") -> Iterator[SampleInput]:
    torch.manual_seed(zlib.crc32(f"{op.full_name} {dtype}".encode()))
    gradients = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from itertools.islice(op.sample_inputs(device, dtype, requires_grad=gradients), count)


def _staying(op: OpInfo, dtype: torch.dtype, sample: int, device: str) -> frozenset[int]:
    """Which tensors of a sample the database leaves on the CPU for every device."""
    there = next(itertools.islice(_samples(op, dtype, sample + 1, device), sample, None))
    return frozenset(i for i, t in enumerate(tensors(_arguments(there))) if t.device.type == "cpu")


def check_operator(
    op: OpInfo,
    dtype: torch.dtype,
    plan: Plan,
    *,
    skip: frozenset[tuple[int, str]] = frozenset(),
    starting: Callable[[int, str], None] = lambda sample, check: None,
) -> Tally:
    """Make every comparison of one operator and dtype; `starting` is told before each which it is.

    Args:
        skip: comparisons to leave out, by sample and check: those that ended a process before.
    """
    tally = Tally()
    name, type_name = op.full_name, str(dtype)[6:]

    def judge(i: int, case: Case) -> None:
        if (plan.checks and case.check not in plan.checks) or (i, case.check) in skip:
            return
        starting(i, case.check)
        if case.must_raise and staying(i):
            return
        verdict, message = compare(case.call, case.tree, plan.device, moments=case.moments, must_raise=case.must_raise)
        if verdict is Verdict.RAISES and (stay := staying(i)):
            verdict, message = compare(case.call, case.tree, plan.device, moments=case.moments, stay=stay)
        tally.verdicts[case.check, verdict] += 1
        if verdict not in (Verdict.EQUAL, Verdict.REFUSED):
            tally.outcomes.append(Outcome(name, type_name, i, case.check, verdict, message))

    @cache
    def staying(i: int) -> frozenset[int]:
        try:
            return _staying(op, dtype, i, plan.device)
        except Exception:  # no samples for the device: then nothing is known to stay
            return frozenset()

    def no_sample(i: int, check: str, error: Exception) -> None:
        tally.verdicts[check, Verdict.NO_SAMPLE] += 1
        tally.outcomes.append(Outcome(name, type_name, i, check, Verdict.NO_SAMPLE, f"{type(error).__name__}: {error}"))

    starting(0, "samples")
    try:
        samples = list(_samples(op, dtype, plan.samples))
    except Exception as error:
        samples = []
        no_sample(0, "samples", error)
    tally.samples = len(samples)
    for i, sample in enumerate(samples):
        for case in _cases(op, sample, dtype, few=i < FEW):
            judge(i, case)
    if dtype == dtypes_of(op)[0]:
        if not isinstance(op, ForeachFuncInfo):  # whose tensors are each others' strangers
            for i, sample in enumerate(samples[:FEW]):
                for case in _device_cases(op, sample, plan.device):
                    judge(i, case)
        if op.error_inputs_func is not None:
            try:
                errors = list(op.error_inputs("cpu"))
            except Exception as error:
                errors = []
                no_sample(0, "errors", error)
            for i, wrong in enumerate(errors):
                judge(i, Case("errors", partial(_forward, op), _arguments(wrong.sample_input)))
    return tally
