"""Comparison of a call on the CPU and on the device: by values, or by properties of random or uninitialized results."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.operators.trees import Mover, difference, tensors

#: Number of runs of a random operator for its moments.
DRAWS = 48


class ComparisonVerdict(Enum):
    """Verdict of a comparison."""

    EQUAL = "equal"
    REFUSED = "refused"  #: the CPU raises, and so does the device
    RAISES = "raises"  #: the CPU gives a result, the device raises
    WRONG = "wrong"
    LENIENT = "lenient"  #: what must be refused is not
    UNCAPTURED = "not captured"  #: a capture refuses the call, and so does a device's
    DIED = "died"  #: the process ended, or the time was over
    NO_FAKE = "no fake"  #: fake tensors do not know the result
    NO_SAMPLE = "no sample"  #: the database raises while it makes samples


@dataclass(frozen=True)
class Raised:
    """Error that a call raised."""

    text: str


@contextmanager
def shifted_seeds(shift: int) -> Iterator[None]:
    """Shift every seed that is set in the block: the database seeds some operators itself."""
    seed = torch.manual_seed
    torch.manual_seed = lambda value: seed(int(value) + shift)
    try:
        yield
    finally:
        torch.manual_seed = seed


Call = Callable[[Any], Any]


def attempt(call: Call, tree: Any, device: str, shift: int = 0, stay: frozenset[int] = frozenset()) -> Any:
    """Return the call's result on a copy of the arguments on the device, or its error."""
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


class _Filled(TorchDispatchMode):
    """Dispatch mode that fills new memory that an operator returns uninitialized with a number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result.fill_(self._number) if "empty" in func.name() else result


def _filled(call: Call, tree: Any, number: int) -> Any:
    with _Filled(number):
        return attempt(call, tree, "cpu")


def _uninitialized(call: Call, tree: Any) -> bool:
    """Return whether the result is uninitialized memory, which PyTorch fills in deterministic mode."""
    was = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        filled = attempt(call, tree, "cpu")
    finally:
        torch.use_deterministic_algorithms(was[0], warn_only=was[1])
    if difference(_filled(call, tree, 0), _filled(call, tree, 1), "cpu"):
        return True
    for left in (0, 0, 0, 1, 2):
        # Contents of the memory that is allocated next.
        blocks = [torch.full(t.shape, left, dtype=t.dtype) for t in tensors(filled) for _ in range(64)]
        del blocks
        if difference(attempt(call, tree, "cpu"), filled, "cpu"):
            return True
    return False


def _moments(call: Call, tree: Any, device: str) -> torch.Tensor:
    """Return for every run the means of each result's values and of their squares, squashed to limit heavy tails."""
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
    """Return a random operator's fault in form, repetition after a seed, or moments; None if there is none."""
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
    call: Call, tree: Any, device: str, *, moments: bool = False, stay: frozenset[int] = frozenset()
) -> tuple[ComparisonVerdict, str]:
    """Run the call on both devices and compare the results; the tensors with indices in `stay` stay on the CPU."""
    expected, actual = attempt(call, tree, "cpu"), attempt(call, tree, device, stay=stay)
    if isinstance(expected, Raised):
        if isinstance(actual, Raised):
            return ComparisonVerdict.REFUSED, ""
        return ComparisonVerdict.LENIENT, f"the CPU raises {expected.text[:300]}"
    if isinstance(actual, Raised):
        return ComparisonVerdict.RAISES, actual.text
    if stay:
        actual, device = Mover("cpu")(actual), "cpu"
    random = _random(call, tree, expected, [1])
    message = difference(actual, expected, device)
    if random or (message and difference(actual, expected, device, with_values=False) is None):
        if _uninitialized(call, tree):
            message = difference(actual, expected, device, with_values=False)
        elif random or _random(call, tree, expected, range(2, 10)):
            message = _properties_differ(call, tree, actual, expected, device, moments)
    return (ComparisonVerdict.WRONG, message) if message else (ComparisonVerdict.EQUAL, "")
