"""Tensors of different devices meet only where PyTorch lets them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import preloaded
import pytest
import torch
from torch import nn

Tensor = torch.Tensor

MIXED: dict[str, Callable[[Tensor, Tensor], object]] = {
    "add": lambda x, y: x + y,
    "add_to_the_cpu": lambda x, y: y + x,
    "in_place": lambda x, y: x.mul_(y),
    "into_the_cpu": lambda x, y: y.mul_(x),
    "mm": lambda x, y: x @ y,
    "cat": lambda x, y: torch.cat([x, y]),
    "stack": lambda x, y: torch.stack([x, y]),
    "out": lambda x, y: torch.add(x, x, out=y),
    "linear": lambda x, y: nn.functional.linear(x, y),
    "convolution": lambda x, y: nn.functional.conv2d(x[None, None], y[None, None]),
    "embedding": lambda x, y: nn.functional.embedding(y.long(), x),
    "where": lambda x, y: torch.where(x > 0, x, y),
    "addcdiv_scalar": lambda x, y: torch.addcdiv(x, y[0, 0], x),
    "clamp_scalar": lambda x, y: torch.clamp(x, y[0, 0], y[0, 1]),
    "addcmul_scalar": lambda x, y: torch.addcmul(x, y[0, 0], x),
    "addcmul_to_a_scalar": lambda x, y: torch.addcmul(y[0, 0], x, x),
    "two_scalars": lambda x, y: torch.addcmul(x, y[0, 0], y[0, 1]),
    "scalar_that_is_written": lambda x, y: y[0, 0].add_(x[0, 0]),
    "one_element": lambda x, y: x + y[0, :1],
    "gather": lambda x, y: x.gather(0, y.long()),
    "scatter": lambda x, y: x.scatter(0, x.long(), y),
    "layer_norm": lambda x, y: nn.functional.layer_norm(x, (2,), y[0]),
    "index_of_a_cpu_tensor": lambda x, y: y[x.long()],
    "foreach": lambda x, y: torch._foreach_add([x, x], [y, y]),
}


@pytest.mark.parametrize("name", MIXED)
def test_cpu_tensors_beside_device_tensors_are_refused(name: str) -> None:
    cpu = torch.ones(2, 2)
    x, y = cpu.npu(), cpu.clone()
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but found at least two"):
        MIXED[name](x, y)
    assert torch.equal(x.cpu(), cpu)
    assert torch.equal(y, cpu)


def test_the_refusal_names_devices_argument_and_operator() -> None:
    with pytest.raises(RuntimeError) as raised:
        torch.ones(2, 2).npu().add(torch.ones(2, 2))
    assert str(raised.value) == (
        "Expected all tensors to be on the same device, but found at least two devices, npu:0 and cpu! "
        "(when checking argument for argument other in method aten::add.Tensor)"
    )


LET_THROUGH: dict[str, Callable[[Tensor, Callable[[Tensor], Tensor]], Tensor]] = {
    "scalar": lambda x, to: x + torch.tensor(2.0),
    "scalar_first": lambda x, to: torch.tensor(2.0) * x,
    "comparison": lambda x, to: x > torch.tensor(0.5),
    "where": lambda x, to: torch.where(x > 1, x, torch.tensor(0.0)),
    "where_two": lambda x, to: torch.where(x > 1, torch.tensor(1.0), torch.tensor(0.0)),
    "addcmul": lambda x, to: torch.addcmul(x, x, torch.tensor(2.0)),
    "lerp": lambda x, to: torch.lerp(x, x * 2, torch.tensor(0.5)),
    "index": lambda x, to: x[torch.tensor([1, 0])],
    "index_put": lambda x, to: x.index_put((torch.tensor([1]),), torch.tensor(5.0)),
    "masked_fill": lambda x, to: x.masked_fill(x > 1, torch.tensor(9.0)),
    "index_fill": lambda x, to: x.index_fill(0, to(torch.tensor([1])), torch.tensor(9.0)),
    "fill": lambda x, to: x.clone().fill_(torch.tensor(3.0)),
    "foreach": lambda x, to: torch._foreach_mul([x, x], torch.tensor(3.0))[1],
    "packed": lambda x, to: nn.utils.rnn.pack_padded_sequence(x, torch.tensor([2, 1])).data,
}


@pytest.mark.parametrize("name", LET_THROUGH)
def test_cpu_tensors_are_let_through_where_pytorch_does(name: str) -> None:
    x = torch.arange(4.0).reshape(2, 2)
    result = LET_THROUGH[name](x.npu(), lambda t: t.npu())
    assert result.device.type == "npu"
    assert torch.equal(result.cpu(), LET_THROUGH[name](x, lambda t: t))


def test_copies_and_likes_go_where_they_are_told() -> None:
    x = torch.arange(4.0).npu()
    assert x.to("cpu", non_blocking=True).is_pinned()
    assert not x.cpu().is_pinned()
    assert torch.zeros_like(x, device="cpu").device.type == "cpu"
    assert torch.full_like(x.cpu(), 2.0, device="npu").device.type == "npu"
    assert torch.rand_like(x, device="cpu").device.type == "cpu"
    lengths = nn.utils.rnn.pack_padded_sequence(torch.ones(3, 2, 1).npu(), torch.tensor([3, 2])).batch_sizes
    assert lengths.device.type == "cpu"
    with pytest.raises(RuntimeError, match="lengths"):
        torch.ops.aten._pack_padded_sequence(x[:, None, None], torch.tensor([4]).npu(), False)


TWO_DEVICES = """
import torch, torch_npu

cpu = torch.arange(4.0)
zero, one = cpu.to("npu:0"), cpu.to("npu:1")

def refused(call):
    try:
        call()
    except RuntimeError as error:
        assert "but found at least two devices, npu:0 and npu:1!" in str(error), error
        return
    raise AssertionError("accepted")

refused(lambda: zero + one)
refused(lambda: zero + one[0])
refused(lambda: zero[one.long()])
refused(lambda: torch.cat([zero, one]))
refused(lambda: torch._foreach_mul([zero], [one]))
refused(lambda: torch.nn.functional.linear(zero, torch.eye(4, device="npu:1")))
for tensor in (
    one + one, one[[1]], one.clone(), one.sum(), torch.cat([one, one]), torch.zeros_like(one), one.to(torch.half),
    torch.ones(3, device="npu:1"), zero.to("npu:1"), torch.empty(2, device="npu:1").copy_(zero[:2]), one.unique(),
):
    assert tensor.device == torch.device("npu:1"), tensor.device
assert torch.equal(torch.zeros_like(zero).copy_(one).cpu(), cpu)
assert torch.equal(one.to("npu:0").add(zero).cpu(), cpu * 2)
with torch.npu.device(1):
    assert torch.ones(3, device="npu").device.index == 1
    assert (zero + zero).device.index == 0
assert torch.npu.current_device() == 0
x = one.clone().requires_grad_()
(x.to("npu:0") * zero).sum().backward()
assert x.grad.device.index == 1 and torch.equal(x.grad.cpu(), cpu)
"""


def test_devices_are_told_apart(tmp_path: Path) -> None:
    script = tmp_path / "two.py"
    script.write_text(TWO_DEVICES)
    environment = {**os.environ, "ASCEND_GRAPH_HOST_DEVICES": "2"}
    result = preloaded.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert result.returncode == 0, result.stderr
