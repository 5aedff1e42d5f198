"""Memory that a binding takes for itself: workspaces, results that outlive a call, launches that no capture records."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

import pytest
import torch

import ascend_graph
from ascend_graph.checks.report import CheckReport

kept: dict[tuple[int, ...], torch.Tensor] = {}


def overflowing(x: torch.Tensor) -> torch.Tensor:
    workspace = torch.empty(3, device=x.device)
    ctypes.memset(workspace.data_ptr() + 12, 1, 4)
    return x * 2


def within(x: torch.Tensor) -> torch.Tensor:
    workspace = torch.empty(4, device=x.device)
    ctypes.memset(workspace.data_ptr() + 12, 1, 4)
    return x * 2


def reusing(x: torch.Tensor) -> torch.Tensor:
    return torch.mul(x, 2, out=kept.setdefault(tuple(x.shape), torch.empty_like(x.contiguous())))


def on_another_stream(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(x.shape, device=x.device)
    with torch.npu.stream(torch.npu.default_stream()):
        return torch.mul(x, 2, out=y)


def of_any_bytes(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + (x.dtype is torch.float16)


def of_floats(x: torch.Tensor) -> torch.Tensor:
    if x.dtype is not torch.float32:
        raise RuntimeError("of_floats takes float32")
    return x * 2


@pytest.fixture
def checked() -> Iterator[Callable[[Callable[[torch.Tensor], torch.Tensor], str], CheckReport]]:
    library = torch.library.Library("memory_of_calls", "FRAGMENT")
    registered = []

    def check(function: Callable[[torch.Tensor], torch.Tensor], *checks: str) -> CheckReport:
        name = function.__name__
        library.define(f"{name}(Tensor x) -> Tensor")
        library.impl(name, function, "PrivateUse1")
        op = ascend_graph.register_kernel(eager=getattr(torch.ops.memory_of_calls, name), shape="x[*s] -> y[*s]")
        registered.append(op)
        return ascend_graph.opcheck(op, reference=lambda x: x * 2, checks=checks, raise_exception=False)

    yield check
    for op in registered:
        op.unregister()
    library._destroy()
    kept.clear()


def test_writes_past_a_workspace_are_found(checked: Callable[..., CheckReport]) -> None:
    (failure,) = checked(overflowing, "outside").failures
    assert "bytes outside a tensor of 12 bytes that the operator allocates" in failure.message
    assert "byte 12" in failure.message
    assert "a workspace that is smaller" in failure.advice
    assert checked(within, "outside").ok


def test_a_result_that_the_next_call_writes_over_is_found(checked: Callable[..., CheckReport]) -> None:
    (failure,) = checked(reusing, "arguments").failures
    assert failure.message.startswith("return 0 is memory of a result of an earlier call")


def test_a_launch_that_no_capture_records_is_found(checked: Callable[..., CheckReport]) -> None:
    (failure,) = checked(on_another_stream, "npugraph_ex").failures
    assert failure.message.startswith("no capture records all that it launches")
    assert "getCurrentNPUStream" in failure.advice
    assert checked(within, "npugraph_ex").ok


def test_a_dtype_that_is_computed_wrongly_is_found_without_a_prototype(checked: Callable[..., CheckReport]) -> None:
    (failure,) = checked(of_any_bytes, "dtypes").failures
    assert failure.message.startswith("float16 is taken, and computed otherwise: against the reference: return 0:")
    assert "TORCH_CHECK" in failure.advice
    assert checked(of_floats, "dtypes").ok
