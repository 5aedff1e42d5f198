"""A small transformer trained in half precision: eager, in GE graphs and under npugraph_ex as on the CPU."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torchair
from torch import nn
from torch.nn import functional as F

Tensor = torch.Tensor
WIDTH, HEADS, TOKENS = 16, 2, 11


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.behind = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.projections, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        heads = self.projections(self.before(x)).view(batch, length, 3, HEADS, width // HEADS)
        q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-1, -2) / (width // HEADS) ** 0.5, -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.behind(x))))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.layer = nn.Embedding(TOKENS, WIDTH), Layer()
        self.norm, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.out(self.norm(self.layer(self.embedding(tokens))))


def train(
    model: nn.Module, run: Any, device: str, dtype: torch.dtype, autocast: bool
) -> tuple[list[float], list[Tensor]]:
    """The losses of three steps, and the parameters after them."""
    torch.manual_seed(1)
    tokens, targets = torch.randint(TOKENS, (2, 6)).to(device), torch.randint(TOKENS, (12,)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast(device, dtype, enabled=autocast):
            scores = run(tokens)
        loss = F.cross_entropy(scores.float().view(-1, TOKENS), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().float().cpu() for p in model.parameters()]


@pytest.mark.parametrize("precision", ["whole", "autocast"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("way", ["eager", "GE", "npugraph_ex"])
def test_half_precision_trains(way: str, dtype: torch.dtype, precision: str) -> None:
    torch.manual_seed(0)
    model = Model()
    if precision == "whole":
        model = model.to(dtype)
    on_device = copy.deepcopy(model).npu()
    torch._dynamo.reset()
    run: Any = on_device
    if way != "eager":
        backend = torchair.get_npu_backend() if way == "GE" else "npugraph_ex"
        run = torch.compile(on_device, backend=backend, dynamic=False)
    losses, parameters = train(on_device, run, "npu", dtype, precision == "autocast")
    expected_losses, expected = train(model, model, "cpu", dtype, precision == "autocast")
    tolerance = 2e-2 if dtype is torch.bfloat16 else 3e-3
    assert losses == pytest.approx(expected_losses, abs=tolerance)
    assert losses[-1] < losses[0]
    for actual, wanted in zip(parameters, expected, strict=True):
        torch.testing.assert_close(actual, wanted, rtol=0, atol=tolerance)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")  # the wheel's, where a graph writes to its inputs
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "norm",
    [lambda: nn.LayerNorm(16), lambda: nn.GroupNorm(4, 16), lambda: nn.BatchNorm1d(16), lambda: nn.RMSNorm(16)],
    ids=["layer", "group", "batch", "rms"],
)
def test_norms_in_half_precision_have_gradients_under_npugraph_ex(norm: Any, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 16), norm()).to(dtype)
    x, direction = torch.randn(8, 16).to(dtype), torch.randn(8, 16)
    on_device = copy.deepcopy(model).npu()
    torch._dynamo.reset()
    y = torch.compile(on_device, backend="npugraph_ex", dynamic=False)(x.npu())
    (y.float() * direction.npu()).sum().backward()
    wide = model.float()
    (wide(x.float()) * direction).sum().backward()
    for actual, expected in zip(on_device.parameters(), wide.parameters(), strict=True):
        assert actual.grad is not None
        assert expected.grad is not None
        assert actual.grad.dtype is dtype
        largest = max(1.0, expected.grad.abs().max().item())
        torch.testing.assert_close(actual.grad.cpu().float(), expected.grad, rtol=0, atol=5e-2 * largest)
