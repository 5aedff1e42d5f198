"""The decoder of examples/serving, prompts and then single tokens, against plain PyTorch on the CPU, in every mode."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
import torch.nn.functional as F
from operator_modes import naming_what_is_lacking

T = torch.Tensor
EXAMPLE = Path(__file__).parents[3] / "examples" / "serving" / "decoder.py"


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("serving_decoder", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def linear(layer: torch.nn.Module, x: T) -> T:
    scale = x.float().abs().amax(-1, keepdim=True) / 127
    rows = torch.round(x.float() / scale)
    return (rows @ layer.weight.float() * layer.scale * scale).bfloat16()


def norm(x: T, gamma: T) -> T:
    return (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6) * gamma.float()).bfloat16()


def rotated(x: T, angle: T) -> T:
    """[batch, heads, length, dimension]."""
    a, b = x.float().chunk(2, -1)
    cos, sin = angle.cos().bfloat16().float(), angle.sin().bfloat16().float()
    return (x.float() * cos + torch.cat([-b, a], -1) * sin).bfloat16()


def gated(unit: torch.nn.Module, x: T) -> T:
    gate, up = linear(unit.gate_up, x).float().chunk(2, -1)
    return linear(unit.down, (F.silu(gate) * up).bfloat16())


def mixed(experts: torch.nn.Module, x: T) -> T:
    """Every expert for every token, by the weights of the two best, 0 for the others."""
    scores = torch.softmax((x @ experts.router).float(), -1)
    best = scores.topk(2, -1)
    weights = torch.zeros_like(scores).scatter(-1, best.indices, best.values / best.values.sum(-1, keepdim=True))
    y = torch.zeros_like(x, dtype=torch.float32)
    for n in range(experts.config.experts):
        scale = x.float().abs().amax(-1, keepdim=True) / 127
        gate, up = (
            torch.round(x.float() / scale) @ experts.gate_up[n].float() * experts.gate_up_scale[n] * scale
        ).chunk(2, -1)
        hidden = F.silu(gate) * up
        own = hidden.abs().amax(-1, keepdim=True) / 127
        rows = torch.round(hidden / own) @ experts.down[n].float() * experts.down_scale[n] * own
        y = y + weights[..., n : n + 1] * rows
    return y.bfloat16()


def reference(model: torch.nn.Module, tokens: T) -> T:
    """Logits of the last token, all of the sequence computed at once, no cache."""
    c, length = model.config, tokens.size(1)
    frequencies = 10000.0 ** (-torch.arange(0, c.width, 2) / c.width)
    angle = torch.outer(torch.arange(length), frequencies).repeat(1, 2)
    x = model.embedding[tokens]
    for layer in model.layers:
        parts = linear(layer.qkv, norm(x, layer.norms[0])).unflatten(-1, (-1, c.width)).transpose(1, 2)
        q, k, v = parts.split([c.heads, c.kv_heads, c.kv_heads], 1)
        q, k = rotated(q, angle), rotated(k, angle)
        k, v = (t.repeat_interleave(c.heads // c.kv_heads, 1).float() for t in (k, v))
        scores = q.float() @ k.transpose(-1, -2) / math.sqrt(c.width)
        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), -torch.inf)
        y = (scores.softmax(-1) @ v).bfloat16().transpose(1, 2).flatten(2)
        x = x + linear(layer.out, y)
        y = norm(x, layer.norms[1])
        x = x + (mixed(layer.unit, y) if c.experts else gated(layer.unit, y))
    return linear(model.head, norm(x, model.norm)[:, -1])


# Operators return what they write to, which PyTorch warns of where they are traced.
@pytest.mark.parametrize(
    ("mode", "experts"),
    [
        ("eager", 0),
        ("eager", 4),
        ("ge", 0),
        ("npugraph_ex", 0),
        pytest.param("ge", 4, marks=pytest.mark.slow),
        pytest.param("npugraph_ex", 4, marks=pytest.mark.slow),
    ],
)
def test_prompts_and_single_tokens(mode: str, experts: int) -> None:
    serving = example()
    torch.manual_seed(0)
    torch._dynamo.reset()
    config = serving.Config(experts=experts)
    model = serving.Decoder(config).eval()
    tokens = torch.randint(0, config.vocabulary, (2, 7))
    with torch.no_grad():
        expected = [reference(model, tokens[:, :length]) for length in (5, 6, 7)]
        run = serving.compiled(model.npu(), mode)
        steps = [serving.prefill(config, tokens[:, :5])]
        steps += [serving.decode(config, tokens[:, length - 1], length) for length in (6, 7)]
        for step, logits in zip(steps, expected, strict=True):
            with naming_what_is_lacking():
                found = serving.call(run, step).float()
            torch.testing.assert_close(found, logits.float(), rtol=0.05, atol=0.1)
