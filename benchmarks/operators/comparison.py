"""One call on the CPU and on the device, compared: values, or, where they are random or uninitialised, what can be known of them."""

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

#: How often a random operator is run for its moments.
DRAWS = 48


class Verdict(Enum):
    """What a comparison says."""

    EQUAL = "equal"
    REFUSED = "refused"  #: the CPU raises, and so does the device
    RAISES = "raises"  #: the CPU gives a result, the device raises
    WRONG = "wrong"
    LENIENT = "lenient"  #: what must be refused is not
    UNCAPTURED = "not captured"  #: a capture refuses the call, and so does a device's
    DIED = "died"  #: the process ended, or the time was over
    NO_SAMPLE = "no sample"  #: the database raises while it makes samples


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


class _Filled(TorchDispatchMode):
    """New memory that an operator gives as it found it is filled with a number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result.fill_(self._number) if "empty" in func.name() else result


def _filled(call: Call, tree: Any, number: int) -> Any:
    with _Filled(number):
        return attempt(call, tree, "cpu")


def _uninitialised(call: Call, tree: Any) -> bool:
    """Whether the result is memory as it was found: PyTorch fills such memory when it is to be deterministic."""
    was = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        filled = attempt(call, tree, "cpu")
    finally:
        torch.use_deterministic_algorithms(was[0], warn_only=was[1])
    if difference(_filled(call, tree, 0), _filled(call, tree, 1), "cpu"):
        return True
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
    call: Call, tree: Any, device: str, *, moments: bool = False, stay: frozenset[int] = frozenset()
) -> tuple[Verdict, str]:
    """Run the call on both devices; `stay` says which of its tensors stay on the CPU."""
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
