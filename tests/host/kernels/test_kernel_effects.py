"""Every host kernel against what it declares to do to memory, on inputs that are guessed until it takes some."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from ascend_graph.host.kernels import HostKernel, find_host_kernel, host_kernels
from ascend_graph.host.runtime.engine.effects import EffectError, checked

T = torch.Tensor

TENSORS: tuple[Callable[[], T], ...] = (
    lambda: torch.rand(4, 4) + 0.5,
    lambda: torch.rand(4) + 0.5,
    lambda: torch.tensor(0.5),
    lambda: torch.zeros(4, dtype=torch.int64),
    lambda: torch.zeros(4, 4, dtype=torch.int64),
    lambda: torch.tensor(0),
    lambda: torch.tensor([4, 4]),
    lambda: torch.ones(4, 4, dtype=torch.bool),
    lambda: torch.rand(4, 4).half(),
    lambda: torch.rand(4, 4).double(),
    lambda: torch.rand(2, 4, 4, 4),
    lambda: torch.tensor([2, 4, 4, 4]),
    lambda: torch.rand(4, 4).to(torch.complex64),
    lambda: torch.zeros(16, dtype=torch.uint8),
    lambda: torch.ones(4, 4, dtype=torch.int32),
)
#: Attrs by name, where 1 does not serve.
ATTRS: dict[str, Any] = {
    **dict.fromkeys(["axis", "concat_dim", "dim", "dimension", "dst_type", "dtype", "split_dim", "type"], 0),
    "axes": [0],
    "dims": [4],
    "ksize": [1, 1, 1, 1],
    "strides": [1, 1, 1, 1],
    "order": [1, 0],
    "perm": [1, 0],
    "data_format": "NCHW",
    "input_layout": "BNSD",
    "mode": "reflect",
    "num": 4,
    "orig_input_shape": [2, 4, 4, 4],
    "output_size": [2, 2],
    "pads": [0, 0, 0, 0],
    "reduce": "update",
    "shifts": [1],
}
_MOST_GUESSES = 80


def choices(count: int) -> list[tuple[Callable[[], T], ...]]:
    """Makers of inputs: every one, some of the pairs and triples."""
    every = list(itertools.product(TENSORS, repeat=count))
    return every if len(every) <= _MOST_GUESSES else random.Random(0).sample(every, _MOST_GUESSES)


def guesses(kernel: HostKernel) -> Iterator[list[Any]]:
    """Inputs, the optional ones left out and then given, too."""
    for given in dict.fromkeys(
        [tuple(n in kernel.required_inputs for n in kernel.inputs), (True,) * len(kernel.inputs)]
    ):
        count = sum(given)
        for choice in choices(min(count, 3)):
            makers = itertools.chain(choice, itertools.repeat(choice[-1] if choice else TENSORS[0]))
            yield [
                [(make := next(makers))(), make()]
                if name in kernel.dynamic_inputs
                else next(makers)()
                if used
                else None
                for name, used in zip(kernel.inputs, given, strict=True)
            ]


def taken(kernel: HostKernel) -> int:
    """How many guesses a kernel took while it was checked."""
    names = {*kernel.required_attrs, *(kernel.attrs & {"data_format"})}
    attrs = {name: ATTRS.get(name, 1) for name in names}
    function, count = checked(kernel, kernel.function), 0
    for inputs in guesses(kernel):
        try:
            function(*inputs, **attrs)
        except EffectError:
            raise
        except Exception:
            continue
        count += 1
        if count == 6:
            break
    return count


def kernels_of_the_package() -> list[str]:
    """Return the op types in order, without those that other test modules register when they are imported."""
    return sorted(
        op_type
        for op_type, kernel in host_kernels().items()
        if not getattr(kernel.function, "__module__", "").startswith("tests.")
    )


@pytest.mark.parametrize("op_type", kernels_of_the_package())
def test_a_kernel_does_what_it_declares(op_type: str) -> None:
    kernel = find_host_kernel(op_type)
    assert kernel is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not taken(kernel):
            pytest.skip("it takes none of the guesses; TorchAir's declared cases may have some that it takes")


@pytest.mark.parametrize(
    ("op_type", "changes"),
    [
        ("Reshape", {"views": frozenset()}),
        ("Cast", {"views": frozenset()}),
        ("AssignAdd", {"written_inputs": frozenset(), "references": {}}),
        ("Add", {"function": lambda x1, x2: x1}),
        ("Add", {"function": lambda x1, x2: x1.add_(x2)}),
        ("Assign", {"function": lambda ref, value: ref + value}),
    ],
)
def test_a_fault_is_found_by_the_guesses(op_type: str, changes: dict[str, Any]) -> None:
    kernel = find_host_kernel(op_type)
    assert kernel is not None
    with pytest.raises(EffectError):
        taken(replace(kernel, **changes))
